package assemble

import (
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
	w.a.Idle(time.Unix(0, 0).Add(time.Hour), 1)
	w.apply(user("b", 10))
	w.a.Idle(time.Unix(0, 0).Add(10*time.Hour), 1)
	w.seal()
	if g := w.a.groups[groupKey{"default", "f", "s"}]; g == nil || g.Runs["b"] == nil || g.Runs["b"].Prev != "a" {
		t.Error("the turn before is forgotten")
	}
	if w.a.Idle(time.Unix(0, 0).Add(20*time.Hour), 0); len(w.a.groups) != 0 {
		t.Error("a session that is over and stored is held in memory")
	}
	w.apply(user("c", 20))
	w.a.Finish()
	w.seal()
	if r := w.rows[spanKey(w, "c")]; len(r.Links) != 1 {
		t.Errorf("what was stored is not read back: %+v", r)
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
