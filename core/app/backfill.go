package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
)

// again is a second decoding of what was decoded before.
type again struct {
	name    string // of this one, in the names of its batches
	letters func(*msg.DeadLetter)
}

// Backfill decodes everything that the file sources have, from the beginning, with
// the decoders of today. The rows have the ids that they have, and a version that
// says which decoder gave them, so that the tables converge on the newest; a
// sidecar may run beside it. The account of the sources stays that of the sidecar.
//
// sources are the names of those to read; all when empty. letter, if set, is told
// of what still cannot be decoded.
func Backfill(ctx context.Context, s Settings, sources []string, letter func(*msg.DeadLetter)) error {
	c := *s.Config
	c.Telemetry.Listen = ""
	c.Sources = nil
	for _, src := range s.Config.Sources {
		switch {
		case len(sources) > 0 && !slices.Contains(sources, src.Name):
		case src.Type == config.TypeFile:
			f := *src.File
			f.StartAt, f.IgnoreOlderThan = config.StartAtBeginning, 0
			src.File = &f
			c.Sources = append(c.Sources, src)
		case len(sources) > 0:
			return fmt.Errorf("source %s: of type %s, which cannot be read again", src.Name, src.Type)
		}
	}
	if len(c.Sources) == 0 {
		return errors.New("no file sources to read again")
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Drain <= 0 {
		s.Drain = time.Minute
	}
	if s.UntilIdle <= 0 {
		s.UntilIdle = time.Second
	}
	s.Config = &c
	r := &runner{Settings: s, metrics: telemetry.New(), again: &again{name: fmt.Sprintf("%x", time.Now().UnixNano()), letters: letter}}
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

func (a *again) wrap(x export.Exporter) export.Exporter { return &secondHand{x, a} }

// secondHand passes batches on without the account of the streams. They have names
// of their own: a store that has seen the first decoding must not take the second
// for a repetition of it.
type secondHand struct {
	export.Exporter
	again *again
}

func (x *secondHand) Export(ctx context.Context, b *export.Batch) error {
	if x.again.letters != nil {
		for i := range b.Letters {
			x.again.letters(&b.Letters[i])
		}
	}
	return x.Exporter.Export(ctx, &export.Batch{ID: b.ID + "-" + x.again.name, Messages: b.Messages, Spans: b.Spans, Letters: b.Letters})
}
