package assemble

import (
	"strconv"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// While a store takes no batch, the state that Seal gave is not in the checkpoint: a
// session that falls silent then goes on as if nothing had been forgotten.
func TestSilentWhileNothingIsCommitted(t *testing.T) {
	w := newWorld(t)
	w.apply(user("a", 0), called("a", "c1", "Read", 1), result("a", "c1", 2))
	w.a.Finish()
	if err := w.a.Seal(func(string, bool, []byte) {}); err != nil { // and nobody keeps it
		t.Fatal(err)
	}
	w.idle(time.Unix(0, 0).Add(time.Hour), 1)
	w.apply(user("b", 10))
	w.idle(time.Unix(0, 0).Add(10*time.Hour), 1)
	w.seal()
	if g := w.a.groups[groupKey{"default", "f", "s"}]; g == nil || g.Runs["b"] == nil || g.Runs["b"].Prev != "a" {
		t.Error("the turn before is forgotten")
	}
	if w.idle(time.Unix(0, 0).Add(20*time.Hour), 0); len(w.a.groups) != 0 {
		t.Error("a session that is over and stored is held in memory")
	}
	w.apply(user("c", 20))
	w.a.Finish()
	w.seal()
	if r := w.rows[spanKey(w, "c")]; len(r.Links) != 1 {
		t.Errorf("what was stored is not read back: %+v", r)
	}
}

// An open session is not held in memory for as long as it may stay silent. What comes
// of it is what would have come of one that is.
func TestOpenSessionsAreNotHeld(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }
	const ended = `
		run a 0-1 idle
		  chat - 0-1 idle
		  tool Sleep 1-1 idle cancelled:no_result
		`
	asleep := func(t *testing.T) *world {
		w := newWorld(t)
		w.apply(user("a", 0), called("a", "c1", "Sleep", 1))
		w.seal()
		for _, d := range []time.Duration{holdOver, holdOpen - 1, holdOpen} {
			w.idle(at(d), 0)
			if held := len(w.a.groups) == 1; held != (d < holdOpen) {
				t.Fatalf("after %s: held %v", d, held)
			}
		}
		return w
	}
	t.Run("goes on", func(t *testing.T) {
		w := asleep(t)
		w.apply(result("a", "c1", 300))
		w.a.Finish()
		w.want(`
		run a 0-300 idle
		  chat - 0-1
		  tool Sleep 1-300
		`)
	})
	t.Run("ends by silence", func(t *testing.T) {
		w := asleep(t)
		w.idle(at(time.Hour), 0)
		if got := w.tree(); got != "" {
			t.Errorf("a run that waits for a call was ended after an hour:\n%s", got)
		}
		if w.idle(at(2*time.Hour), 0); len(w.a.groups) != 0 {
			t.Error("it was woken for nothing and is held")
		}
		w.idle(at(7*time.Hour), 0)
		w.want(ended)
		if w.idle(at(8*time.Hour), 0); len(w.a.groups)+len(w.a.asleep) != 0 {
			t.Error("it is over and held")
		}
	})
	t.Run("is ended", func(t *testing.T) {
		w := asleep(t)
		if err := w.a.Finish(); err != nil {
			t.Fatal(err)
		}
		w.want(ended)
	})
	t.Run("after a restart", func(t *testing.T) {
		w := asleep(t)
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

// Sessions whose time is over at once, as after a restart, are not all read at once:
// nothing else is taken meanwhile.
func TestManyWakeInTurn(t *testing.T) {
	w := newWorld(t)
	const open = 3*mostWoken - 1
	for i := range open {
		if err := w.a.Resume(groupKey{"default", "f", strconv.Itoa(i)}.String(), time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range []int{2*mostWoken - 1, mostWoken - 1, 0} {
		if w.idle(time.Unix(0, 0).Add(time.Hour), 0); len(w.a.asleep) != want {
			t.Errorf("look %d: %d of %d are asleep, want %d", n, len(w.a.asleep), open, want)
		}
	}
}

func (w *world) idle(now time.Time, uncommitted int) {
	w.t.Helper()
	if err := w.a.Idle(now, uncommitted); err != nil {
		w.t.Fatal(err)
	}
}

func spanKey(w *world, run string) string {
	for k, s := range w.rows {
		if s.Kind == msg.SpanRun && s.Run == run {
			return k
		}
	}
	return ""
}
