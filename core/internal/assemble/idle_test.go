package assemble

import (
	"strconv"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// While a store takes no batch, the state of the last commit is not in the checkpoint: a
// session that falls silent then goes on as if it had never been evicted.
func TestSilentWhileNothingIsCommitted(t *testing.T) {
	w := newHarness(t)
	w.apply(user("a", 0), called("a", "c1", "Read", 1), result("a", "c1", 2))
	w.a.Finish()
	if err := w.a.Commit(func(string, bool, []byte) {}); err != nil { // and no store keeps it
		t.Fatal(err)
	}
	w.idle(time.Unix(0, t0).Add(time.Hour), 1)
	w.apply(user("b", 10))
	w.idle(time.Unix(0, t0).Add(10*time.Hour), 1)
	w.commit()
	if g := w.a.groups[link.Key{Tenant: "default", Format: "f", Session: "s"}]; g == nil || g.Runs["b"] == nil || g.Runs["b"].Previous != "a" {
		t.Error("the turn before is forgotten")
	}
	if w.idle(time.Unix(0, t0).Add(20*time.Hour), 0); len(w.a.groups) != 0 {
		t.Error("a session that is over and stored is held in memory")
	}
	w.apply(user("c", 20))
	w.a.Finish()
	w.commit()
	if r := w.rows[spanKey(w, "c")]; len(r.Links) != 1 {
		t.Errorf("what was stored is not read back: %+v", r)
	}
}

// TestResultsThatAreNeverRecorded: of a call whose record never has the result, the outcome is not known; it was not cancelled.
func TestResultsThatAreNeverRecorded(t *testing.T) {
	w := newHarness(t)
	silent := called("a", "c1", "Shell", 1)
	silent.SetAttr(msg.Results, msg.None)
	w.apply(user("a", 0), silent, called("a", "c2", "Sleep", 2), msg.Message{Kind: msg.Stop, Run: "a", Time: 3, Signal: msg.RunEnd})
	w.want(`
		run a 0-3
		  tool Shell 1-3 idle
		  tool Sleep 2-3 idle cancelled:no_result
		`)
}

// An open session is evicted long before silence ends it. Its rows are those of a session that
// stays in memory.
func TestOpenSessionsAreNotHeld(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(0, t0).Add(d) }
	const ended = `
		run a 0-1 idle
		  tool Sleep 1-1 idle cancelled:no_result
		`
	evicted := func(t *testing.T) *harness {
		w := newHarness(t)
		w.apply(user("a", 0), called("a", "c1", "Sleep", 1))
		w.commit()
		for _, d := range []time.Duration{holdEnded, holdOpen - 1, holdOpen} {
			w.idle(at(d), 0)
			if held := len(w.a.groups) == 1; held != (d < holdOpen) {
				t.Fatalf("after %s: held %v", d, held)
			}
		}
		return w
	}
	t.Run("goes on", func(t *testing.T) {
		w := evicted(t)
		w.apply(result("a", "c1", 300))
		w.a.Finish()
		w.want(`
		run a 0-300 idle
		  tool Sleep 1-300
		`)
	})
	t.Run("ends by silence", func(t *testing.T) {
		w := evicted(t)
		w.idle(at(time.Hour), 0)
		if got := w.tree(); got != "" {
			t.Errorf("a run that waits for a call was ended after an hour:\n%s", got)
		}
		if w.idle(at(2*time.Hour), 0); len(w.a.groups) != 0 {
			t.Error("it was woken for nothing and is held")
		}
		w.idle(at(7*time.Hour), 0)
		w.want(ended)
		if w.idle(at(8*time.Hour), 0); len(w.a.groups)+len(w.a.evicted) != 0 {
			t.Error("it is over and held")
		}
	})
	t.Run("is ended", func(t *testing.T) {
		w := evicted(t)
		if err := w.a.Finish(); err != nil {
			t.Fatal(err)
		}
		w.want(ended)
	})
	t.Run("after a restart", func(t *testing.T) {
		w := evicted(t)
		w.restart()
		for key := range w.state {
			if err := w.a.Resume(key, at(0)); err != nil {
				t.Fatal(err)
			}
		}
		w.idle(at(7*time.Hour), 0)
		w.want(ended)
	})
}

// Sessions that are due at the same moment, as after a restart, are reloaded in turn: other
// messages are applied meanwhile.
func TestManyReloadInTurn(t *testing.T) {
	w := newHarness(t)
	const open = 3*maxReloaded - 1
	for i := range open {
		if err := w.a.Resume("default\x00f\x00"+strconv.Itoa(i), time.Unix(0, t0)); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range []int{2*maxReloaded - 1, maxReloaded - 1, 0} {
		if w.idle(time.Unix(0, t0).Add(time.Hour), 0); len(w.a.evicted) != want {
			t.Errorf("look %d: %d of %d are evicted, want %d", n, len(w.a.evicted), open, want)
		}
	}
}

func (w *harness) idle(now time.Time, uncommitted int) {
	w.t.Helper()
	if err := w.a.Idle(now, uncommitted); err != nil {
		w.t.Fatal(err)
	}
}

func spanKey(w *harness, run string) string {
	for k, s := range w.rows {
		if s.Kind == msg.SpanRun && s.Run == run {
			return k
		}
	}
	return ""
}

// Silence counts from when the sender was at work, not from when its messages are read, and the
// state keeps that.
func TestSilenceCountsFromTheSender(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(0, t0).Add(d) }
	put := func(w *harness, read, alive time.Time, list ...msg.Message) {
		for _, m := range list {
			m.Session, m.Host, m.Complete = "s", msg.Host{Tenant: "default", Format: "f", Source: "src"}, msg.Complete
			m.Key, m.Time = string(m.Kind.String()+m.Run+m.Tool.CallID), t0+m.Time*sec
			if _, err := w.a.Apply(&m, 1, 1, read, alive.UnixNano()); err != nil {
				t.Fatal(err)
			}
		}
	}
	year := 365 * 24 * time.Hour
	t.Run("history", func(t *testing.T) {
		w := newHarness(t)
		put(w, at(year), at(0), user("a", 0), called("a", "c1", "Sleep", 1))
		w.commit()
		if w.idle(at(year+settled-1), 0); w.a.Ended() {
			t.Error("it was ended while the rest of it may be on its way")
		}
		if w.idle(at(year+settled), 0); !w.a.Ended() {
			t.Error("what was silent for a year is not ended")
		}
		w.want(`
		run a 0-1 idle
		  tool Sleep 1-1 idle cancelled:no_result
		`)
		if w.a.Ended() || len(w.open) > 0 {
			t.Errorf("open: %d", len(w.open))
		}
	})
	t.Run("history without a rest", func(t *testing.T) {
		w := newHarness(t)
		read := false
		w.a.settings.HistoryRead = func() bool { return read }
		put(w, at(year), at(0), user("a", 0))
		put(w, at(year), at(year), user("b", int64(year/time.Second)))
		w.commit()
		if w.idle(at(year), 0); w.a.Ended() {
			t.Error("it was ended while files are read")
		}
		read = true
		w.idle(at(year), 0)
		if w.commit(); len(w.open) != 1 {
			t.Errorf("%d runs go on when all is read, want that of a moment ago", len(w.open))
		}
	})
	t.Run("work in the background that has ended", func(t *testing.T) {
		begin := delegated("a", "d", "scout", 1)
		begin.Delegation.Async, begin.Delegation.ChildRun, begin.Delegation.Link = true, "x", msg.ByNativeID
		child := user("x", 2)
		child.ParentRun, child.ParentCall = "a", "d"
		for _, c := range []struct {
			name  string
			after []msg.Message
			ended bool
		}{{"its notice does not come", []msg.Message{said("x", "q", 4), stop("x", 5)}, true}, {"it goes on", []msg.Message{called("x", "c", "Sleep", 4)}, false}} {
			w := newHarness(t)
			put(w, at(0), at(0), append([]msg.Message{user("a", 0), begin, child}, c.after...)...)
			w.commit()
			for range 2 { // the run ends behind the call that it waited for
				w.idle(at(40*time.Minute), 0)
			}
			w.commit()
			if n := len(w.open); (n == 0) != c.ended {
				t.Errorf("%s: %d spans are open after the silence of a run", c.name, n)
			}
		}
	})
	t.Run("clocks", func(t *testing.T) {
		for name, clock := range map[string]time.Duration{"behind": -8 * time.Hour, "ahead": 8 * time.Hour} {
			w := newHarness(t)
			put(w, at(-clock), at(-clock), user("a", 0), called("a", "c1", "Sleep", 1)) // by the sender's clock it is t0
			w.commit()
			if w.idle(at(-clock+time.Hour), 0); w.a.Ended() {
				t.Errorf("%s: a call that waits is ended", name)
			}
			if w.idle(at(-clock+7*time.Hour), 0); !w.a.Ended() {
				t.Errorf("%s: it runs for ever", name)
			}
		}
	})
	t.Run("a turn that was interrupted last year", func(t *testing.T) {
		w := newHarness(t)
		put(w, at(year), at(0), user("a", 0), called("a", "c1", "Sleep", 1))
		put(w, at(year), at(year), user("b", int64(year/time.Second)), called("b", "c2", "Read", int64(year/time.Second)))
		w.commit()
		w.idle(at(year+settled), 0)
		w.commit()
		if _, open := w.open[w.a.groups[link.Key{Tenant: "default", Format: "f", Session: "s"}].ids.of(msg.SpanTool, "c1")]; open || len(w.open) != 2 {
			t.Errorf("%d open, the old call: %t", len(w.open), open)
		}
	})
	t.Run("after a restart", func(t *testing.T) {
		w := newHarness(t)
		put(w, at(0), at(0), user("a", 0))
		w.restart()
		for key := range w.state {
			if err := w.a.Resume(key, at(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if w.idle(at(time.Hour+settled), 0); !w.a.Ended() {
			t.Error("the restart counts as a sign of life")
		}
	})
	t.Run("bookkeeping", func(t *testing.T) {
		w := newHarness(t)
		put(w, at(year), at(0), user("a", 0))
		put(w, at(year), at(year), msg.Message{Kind: msg.Status, Precision: msg.Inferred})
		if w.idle(at(year+settled), 0); !w.a.Ended() {
			t.Error("a record without a time keeps a run of last year open")
		}
	})
}

// History that is read is never shown as open: a run that had been silent for long enough when
// it was read is not going on, and is about to end.
func TestHistoryIsNeverOpen(t *testing.T) {
	read := time.Unix(0, t0).Add(1000 * time.Hour)
	for name, c := range map[string]struct {
		ago  time.Duration
		open bool
	}{"a year ago": {900 * time.Hour, false}, "a moment ago": {time.Second, true}, "while a call runs": {time.Hour, true}} {
		w := newHarness(t)
		for _, m := range []msg.Message{user("a", 0), called("a", "c1", "Bash", 1)} {
			m.Host.Tenant, m.Host.Format = "t", "f"
			if _, err := w.a.Apply(&m, 1, 1, read, read.Add(-c.ago).UnixNano()); err != nil {
				t.Fatal(err)
			}
		}
		w.commit()
		if got := len(w.open) > 0; got != c.open {
			t.Errorf("%s: open %t", name, got)
		}
	}
}

// TestAMachineThatSlept: a time without a look at the clock is no silence.
func TestAMachineThatSlept(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(0, t0).Add(d) }
	for _, slept := range []bool{false, true} {
		w := newHarness(t)
		w.apply(user("a", 0))
		w.commit()
		for d := time.Duration(0); d <= 5*time.Hour; d += time.Second {
			if slept && d == time.Minute {
				d = 5 * time.Hour
			}
			w.a.Looks(at(d))
		}
		if w.idle(at(5*time.Hour), 0); w.a.Ended() == slept {
			t.Errorf("slept: %t, ended: %t", slept, !slept)
		}
	}
}
