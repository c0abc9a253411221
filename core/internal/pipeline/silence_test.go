package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/msg"
)

// ended waits until a span of the kind has ended, and returns it.
func (t *table) ended(tb testing.TB, kind msg.SpanKind) msg.Span {
	tb.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		t.mu.Lock()
		for _, s := range t.spans {
			if s.Kind == kind {
				t.mu.Unlock()
				return s
			}
		}
		t.mu.Unlock()
	}
	tb.Errorf("no %s has ended", kind)
	return msg.Span{}
}

// TestSilenceEndsARunByItself: a run that stays silent ends, with its last response,
// while nothing else happens anywhere.
func TestSilenceEndsARunByItself(t *testing.T) {
	now := time.Now().Unix()
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "quiet", lines: [][]byte{
		fmt.Appendf(nil, `{"n":1,"run":"a","kind":"user","text":"When is high tide?","t":%d}`, now-2),
		fmt.Appendf(nil, `{"n":2,"run":"a","kind":"assistant","text":"At noon.","t":%d}`, now-1),
	}}}}
	w.settings.Assemble = assemble.Settings{IdleRun: 1500 * time.Millisecond}
	w.during = func(*pipeline.Pipeline) {
		if s := w.table.ended(t, msg.SpanRun); s.State != msg.SpanIdle || s.End/1e9 != now-1 {
			t.Errorf("the run: %s, to %d", s.State, s.End/1e9-now)
		}
		if s := w.table.ended(t, msg.SpanChat); s.End/1e9 != now-1 {
			t.Errorf("its response: to %d", s.End/1e9-now)
		}
	}
	w.run(nil)
}

// TestHistoryEndsAtOnce: a run whose records are old when they are read ends as soon as they
// are read; one whose records are of now runs.
func TestHistoryEndsAtOnce(t *testing.T) {
	then, now := time.Now().AddDate(-1, 0, 0).Unix(), time.Now().Unix()
	called := func(at int64) [][]byte {
		return [][]byte{
			fmt.Appendf(nil, `{"n":1,"run":"a","kind":"user","text":"Sound the depth.","t":%d}`, at),
			fmt.Appendf(nil, `{"n":2,"run":"a","kind":"tool_call","call":"c","tool":"Sound","t":%d}`, at+1),
		}
	}
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "old", lines: called(then)}, {name: "new", lines: called(now)}}}
	w.during = func(*pipeline.Pipeline) {
		if s := w.table.ended(t, msg.SpanRun); s.Session != "/old" || s.State != msg.SpanIdle || s.Outcome == msg.OutcomeOK {
			t.Errorf("the run: %s %s %s", s.Session, s.State, s.Outcome)
		}
		if s := w.table.ended(t, msg.SpanTool); s.Session != "/old" || s.State != msg.SpanIdle || s.Outcome != msg.OutcomeCancelled || s.ErrorType != "no_result" {
			t.Errorf("the call: %s %s %s %s", s.Session, s.State, s.Outcome, s.ErrorType)
		}
		w.table.mu.Lock()
		defer w.table.mu.Unlock()
		for _, s := range w.table.spans {
			if s.Session == "/new" && s.Kind != msg.SpanChat {
				t.Errorf("a call of a moment ago has ended: %s %s", s.Kind, s.State)
			}
		}
	}
	w.run(nil)
}

// TestHeartbeat: an account is written although no frame is read, which shows that Earshot
// runs.
func TestHeartbeat(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "quiet", lines: lines(`{"n":%d,"run":"a","kind":"user","t":1700000}`, 3)}}}
	w.settings.Heartbeat = time.Millisecond
	w.during = func(*pipeline.Pipeline) {
		written := func() int {
			w.table.mu.Lock()
			defer w.table.mu.Unlock()
			return w.table.accounts
		}
		for end, was := time.Now().Add(10*time.Second), written(); written() < was+3; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d accounts in ten seconds", written()-was)
			}
		}
	}
	w.run(nil)
	if n := w.table.ledger["quiet"].Messages; n != 3 || len(w.table.messages) != 3 {
		t.Errorf("the account has %d messages", n)
	}
}
