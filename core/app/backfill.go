package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/msg"
)

// backfill is a second decoding of streams that were decoded before.
type backfill struct {
	name        string // of this one, in the names of its batches
	deadLetters func(*msg.DeadLetter)
}

// Backfill decodes all files of the file sources from the beginning, and the recordings of
// the other sources that the journal still has (journal.keep), with the present decoders. A
// recording whose beginning is gone is left as it was decoded. The rows keep their ids, and
// their version is the decoder's revision, so that the tables converge on the newest; a
// sidecar may run beside it. The ledger of the sources stays the sidecar's.
//
// sources are the names of those to read; all when empty. letter, if set, receives every
// dead letter.
func Backfill(ctx context.Context, s Settings, sources []string, letter func(*msg.DeadLetter)) error {
	c := *s.Config
	c.Telemetry.Listen = ""
	c.Sources = nil
	for _, src := range s.Config.Sources {
		switch {
		case len(sources) > 0 && !slices.Contains(sources, src.Name):
		default:
			if all, ok := src.Section.(source.Rereadable); ok {
				src.Section = all.FromBeginning()
			}
			c.Sources = append(c.Sources, src)
		}
	}
	if len(c.Sources) == 0 {
		return errors.New("no such sources")
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
	r := newRunner(s, &backfill{name: fmt.Sprintf("%x", time.Now().UnixNano()), deadLetters: letter})
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.supersede(ctx)
}

// supersede leaves the newest version of the records that were decoded again: their time may
// differ from the time that the earlier decoder read.
func (r *runner) supersede(ctx context.Context) error {
	var formats []string
	for i := range r.Config.Sources {
		if f := r.Config.Sources[i].Format; !slices.Contains(formats, f) {
			formats = append(formats, f)
		}
	}
	for _, e := range r.exporters {
		if x, ok := e.Exporter.(export.Superseder); ok {
			if err := x.Supersede(ctx, formats); err != nil {
				return err
			}
		}
	}
	return nil
}

// wholeStreams is a sink that takes recordings from their beginning or not at all: the end of
// a stream alone decodes to fewer messages than the whole had.
type wholeStreams struct {
	source.Sink
	log *slog.Logger
}

// Open implements source.Sink.
func (w *wholeStreams) Open(ctx context.Context, id source.ID, rewind func(int64)) (source.Stream, int64, error) {
	st, pos, err := w.Sink.Open(ctx, id, rewind)
	return &wholeStream{Stream: st, log: w.log, id: id}, pos, err
}

// wholeStream is a stream of wholes.
type wholeStream struct {
	source.Stream
	log           *slog.Logger
	id            source.ID
	started, skip bool
}

// Deliver implements source.Stream.
func (w *wholeStream) Deliver(ctx context.Context, b *frame.Batch) error {
	if !w.started && len(b.Frames) > 0 {
		w.started = true
		if w.skip = b.Frames[0].Pos > 0 || b.Frames[0].Reason != ""; w.skip {
			w.log.Warn("the beginning of a stream is gone from the journal; it is not decoded again", "stream", w.id.Key, "origin", w.id.Origin)
		}
	}
	if w.skip {
		b.Done()
		return nil
	}
	return w.Stream.Deliver(ctx, b)
}

func (a *backfill) wrap(x export.Exporter) export.Exporter {
	return &backfillExporter{export.AsGatherer(x), a}
}

// backfillExporter passes batches on without the ledger of the sources. They have names
// of their own: a store that has seen the first decoding must not take the second
// for a repetition of it.
type backfillExporter struct {
	export.Gatherer
	backfill *backfill
}

// Export implements export.Exporter.
func (x *backfillExporter) Export(ctx context.Context, b *export.Batch) error {
	err := x.Gatherer.Export(ctx, x.named(b))
	if err == nil || export.IsPermanent(err) && b.Len() == 1 { // else it is offered again, or its halves are
		x.report(b)
	}
	return err
}

func (x *backfillExporter) report(b *export.Batch) {
	if x.backfill.deadLetters == nil {
		return
	}
	for i := range b.DeadLetters {
		x.backfill.deadLetters(&b.DeadLetters[i])
	}
}

func (x *backfillExporter) named(b *export.Batch) *export.Batch {
	return &export.Batch{ID: b.ID + "-" + x.backfill.name, Messages: b.Messages, Spans: b.Spans, DeadLetters: b.DeadLetters, Streams: b.Streams, Rows: b.Rows}
}

// Gather implements export.Gatherer.
func (x *backfillExporter) Gather(b *export.Batch) bool {
	gathered := x.Gatherer.Gather(x.named(b))
	if gathered {
		x.report(b)
	}
	return gathered
}
