package pipeline_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
)

// stored is how many rows of messages the table has.
func (t *table) stored() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.messages)
}

func (t *table) wait(tb testing.TB, messages int) {
	tb.Helper()
	eventually(tb, func() bool { return t.stored() == messages })
}

func eventually(tb testing.TB, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatal("not in 20 s")
		}
	}
}

// TestRowsWaitWhileNobodyReads: rows wait for the interval that is set, and are with the exporter when
// Store returns. Nothing is lost or twice.
func TestRowsWaitWhileNobodyReads(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "live", lines: lines(`{"n":%d,"run":"a","kind":"user","t":1700000}`, 3)}}}
	w.settings.Heartbeat = time.Nanosecond
	w.during = func(p *pipeline.Pipeline) {
		w.table.wait(t, 3)
		eventually(t, func() bool { return p.Drained(t.Context()) }) // before: an account that is to be written waits for the interval too
		p.SetFlushInterval(t.Context(), time.Hour)
		w.table.mu.Lock()
		calls := w.table.calls
		w.table.mu.Unlock()
		w.files[0].grow(`{"n":4,"run":"a","kind":"user","t":1700000}`, `{"n":5,"run":"a","kind":"user","t":1700000}`)
		eventually(t, func() bool { return p.Progress().Messages == 5 })
		time.Sleep(100 * time.Millisecond) // twenty flush intervals, and as many heartbeats
		w.table.mu.Lock()
		if len(w.table.messages) != 3 || w.table.calls != calls {
			t.Errorf("%d messages are stored before a read, in %d batches", len(w.table.messages), w.table.calls-calls)
		}
		w.table.mu.Unlock()
		for range 2 { // another one finds nothing to wait for
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if err := p.Store(ctx); err != nil {
				t.Error(err)
			}
			cancel()
		}
		if n := w.table.stored(); n != 5 {
			t.Errorf("%d messages of 5 are stored", n)
		}
		p.SetFlushInterval(t.Context(), time.Millisecond)
	}
	w.run(nil)
	if n := w.table.ledger["live"].Messages; n != 5 || w.table.stored() != 5 {
		t.Errorf("%d messages, the account has %d", w.table.stored(), n)
	}
}

// TestSilentFormatEnds: the process of a format without frames ends, and another one decodes the next
// frame in the state in which the first was.
func TestSilentFormatEnds(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "quiet", lines: [][]byte{[]byte(`{"open":"first "}`)}}}}
	w.settings.FlushIdle, w.settings.CloseIdle, w.settings.EndIdle = time.Millisecond, time.Millisecond, time.Millisecond
	var process atomic.Pointer[host.Process]
	var launches atomic.Int32
	w.launched = func(p *host.Process) { process.Store(p); launches.Add(1) }
	w.during = func(p *pipeline.Pipeline) {
		eventually(t, func() bool { return process.Load().Exited() })
		eventually(t, func() bool { return p.Drained(t.Context()) })
		if broken := p.Broken(); len(broken) > 0 {
			t.Error(broken)
		}
		w.files[0].grow(`{"open":"second "}`, `{"shut":true}`)
		eventually(t, func() bool { return p.Progress().Frames == 3 })
		w.files[0].grow(`{"open":""}`) // to the process that is there, or to another
		eventually(t, func() bool { return p.Progress().Frames == 4 })
	}
	w.run(nil)
	for _, m := range w.table.messages {
		if got := m.Content.String(); got != "first second " {
			t.Errorf("the message is %q", got)
		}
	}
	if len(w.table.messages) != 1 || len(w.table.letters) > 0 || launches.Load() < 2 {
		t.Errorf("%d messages, %d dead letters, %d processes", len(w.table.messages), len(w.table.letters), launches.Load())
	}
}
