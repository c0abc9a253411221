package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// storedCheck is an exporter that asks its destination, before the first batch, how far it
// has the streams. A store that was emptied, replaced or restored from a backup has less
// than the checkpoint has, and after a few batches its accounts would look right again.
type storedCheck struct {
	export.Exporter
	name   string
	stored export.Stored
	want   map[export.Stream]int64 // positions of the checkpoint
	report func(msg.DeadLetter)
	log    *slog.Logger
	done   bool
}

// checkStored wraps an exporter that can be asked. One with something in its spool has less
// for a good reason.
func (r *runner) checkStored(e Exporter) (export.Exporter, error) {
	stored, ok := e.Exporter.(export.Stored)
	if !ok || r.backfill != nil {
		return e.Exporter, nil
	}
	state, err := spooled(r.Config.DataDir)
	if err != nil || state[e.Name] > 0 {
		return e.Exporter, err
	}
	streams, err := r.checkpoint.Streams("")
	if err != nil || len(streams) == 0 {
		return e.Exporter, err
	}
	v := &storedCheck{
		Exporter: e.Exporter, name: e.Name, stored: stored, want: make(map[export.Stream]int64), log: r.Logger,
		report: func(l msg.DeadLetter) { r.pipeline.AddDeadLetter(l) },
	}
	for i := range streams {
		if s := &streams[i]; s.Replay == nil {
			pos := s.Pos
			if s.Format != "" {
				pos = s.Ledgered
			}
			v.want[export.Stream{Source: s.Source, Key: s.Key}] = pos
		}
	}
	return v, nil
}

// Export implements export.Exporter.
func (v *storedCheck) Export(ctx context.Context, b *export.Batch) error {
	if !v.done {
		has, err := v.stored.Reached(ctx)
		if err != nil {
			return err
		}
		v.compare(has)
		v.done, v.want = true, nil
	}
	return v.Exporter.Export(ctx, b)
}

// Gather implements export.Gatherer: what is gathered is exported after the question.
func (v *storedCheck) Gather(b *export.Batch) bool {
	g, ok := v.Exporter.(export.Gatherer)
	return ok && g.Gather(b)
}

// Ungather implements export.Gatherer.
func (v *storedCheck) Ungather(put func(*export.Batch) error) error {
	if g, ok := v.Exporter.(export.Gatherer); ok {
		return g.Ungather(put)
	}
	return nil
}

// Split implements export.Gatherer.
func (v *storedCheck) Split(b *export.Batch) (halves [2]*export.Batch, ok bool) {
	if g, can := v.Exporter.(export.Gatherer); can {
		return g.Split(b)
	}
	return halves, false
}

// compare reports, for each source, the streams of which the destination has less.
func (v *storedCheck) compare(has map[export.Stream]int64) {
	streams, bytes := make(map[string]int), make(map[string]int64)
	for s, pos := range v.want {
		if n := pos - has[s]; n > 0 {
			streams[s.Source]++
			bytes[s.Source] += n
		}
	}
	for _, source := range slices.Sorted(maps.Keys(streams)) {
		detail := fmt.Sprintf("%s does not have the last %d bytes of %d streams that it had accepted: it was emptied, replaced or restored; earshot dlq retry, or backfill, reads again what the source still has",
			v.name, bytes[source], streams[source])
		v.log.Error("rows are missing", "exporter", v.name, "source", source, "streams", streams[source], "bytes", bytes[source])
		now := time.Now().UnixNano()
		v.report(msg.DeadLetter{
			ID: msg.NewDeadLetterID("", source, "store", v.name, fmt.Sprint(bytes[source])), Source: source, Stage: "store", Reason: msg.ReasonStoreBehind,
			Detail: detail, Origin: v.name, Seen: now, Ver: 1,
		})
	}
}
