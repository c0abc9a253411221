package pipeline_test

import (
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/pipeline"
)

// TestFullPipelineGoesOn: an exporter that is away until everything between it and the source
// is full blocks the pipeline, and no longer than it is away.
func TestFullPipelineGoesOn(t *testing.T) {
	all := lines(`{"n":%d,"run":"r","kind":"user","text":"x"}`, 12000)
	back := make(chan struct{})
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: all, most: 2}}, settings: pipeline.Settings{SnapEvery: 1}}
	w.table.fail = func(int) error { <-back; return nil }
	w.during = func(p *pipeline.Pipeline) {
		defer close(back)
		for last, since := int64(-1), time.Now(); time.Since(since) < 300*time.Millisecond; <-time.After(5 * time.Millisecond) {
			if n := p.Progress().Delivered; n != last {
				last, since = n, time.Now()
			}
		}
		if n := p.Progress().Delivered; n >= int64(len(all)*50) {
			t.Error("it was never full")
		}
	}
	w.run(nil)
	if n := len(w.table.messages); n != len(all) {
		t.Errorf("%d messages of %d", n, len(all))
	}
}

// TestBatchOfAllInFlightDoesNotWait: a commit batch that holds all bytes that may be in flight
// is closed when the sources wait for it, not when it is due by time.
func TestBatchOfAllInFlightDoesNotWait(t *testing.T) {
	all := lines(`{"n":%d,"run":"r","kind":"user","text":"x"}`, 12000)
	stop := make(chan struct{})
	w := &world{
		t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: all, most: 2}},
		settings: pipeline.Settings{FlushInterval: time.Hour, BatchRows: 1 << 20, BatchBytes: 64 << 10, MaxInFlight: 64 << 10},
	}
	w.during = func(p *pipeline.Pipeline) {
		defer close(stop)
		for end := time.Now().Add(20 * time.Second); p.Progress().Committed < int64(len(all)/2); <-time.After(time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("it stands still: %+v", p.Progress())
				return
			}
		}
	}
	w.run(stop)
}
