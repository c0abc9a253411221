package assemble

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestSpansAreEmittedOnce has every way in which a span that has ended is emitted again: the
// doc comment of exporters/otel lists for each how a receiver takes it. No other exists.
func TestSpansAreEmittedOnce(t *testing.T) {
	meta := msg.Message{Kind: msg.Status, Time: 12, Signal: msg.Link, Tool: msg.Tool{CallID: "d"}, Delegation: msg.Delegate{ChildRun: "x", Link: msg.ByMetaFile}}
	child := user("x", 2)
	child.ParentRun, child.ParentCall = "a", "d"
	background := delegated("a", "d", "scout", 1)
	background.Delegation.Async = true
	turn := []msg.Message{user("a", 0), asks("r1", "c", 1), returned("c", 2, 10), used("r1", 2, 100, 0, 5), in("r2", delegated("a", "d", "scout", 3)),
		child, said("x", "q", 4), stop("x", 5), answered("a", "d", 6), used("r2", 7, 150, 0, 5), said("a", "r3", 8), used("r3", 9, 200, 0, 5), stop("a", 10)}
	idle := func(w *harness) { w.a.Finish(); w.commit() }
	for name, c := range map[string]struct {
		play func(w *harness)
		want []string
	}{
		"a turn, a commit for each message": {func(w *harness) {
			for _, m := range turn {
				w.apply(m)
				w.restart()
			}
		}, nil},
		"a run that silence ended goes on": {func(w *harness) {
			w.apply(user("a", 0), said("a", "r1", 1))
			idle(w)
			w.apply(said("a", "r1", 900), stop("a", 901))
		}, []string{"chat r1", "run a"}},
		"a result comes after silence": {func(w *harness) {
			w.apply(user("a", 0), called("a", "c", "Read", 1))
			idle(w)
			w.apply(result("a", "c", 900), stop("a", 901))
		}, []string{"run a", "tool Read"}},
		"more of a response that was complete": {func(w *harness) {
			w.apply(user("a", 0), said("a", "r1", 1), tokens("a", "r1", 2, 5), said("a", "r1", 3), stop("a", 4))
		}, []string{"chat r1"}},
		"a child that is named behind its call": {func(w *harness) {
			w.apply(user("a", 0), delegated("a", "d", "scout", 1), answered("a", "d", 6), meta, stop("a", 13))
		}, []string{"delegation Task"}},
		"a child that goes on behind its call": {func(w *harness) {
			w.apply(user("a", 0), background, answered("a", "d", 2), child, said("x", "q", 4), stop("x", 5), stop("a", 6))
		}, []string{"delegation Task"}},
		"the response that began a run ends behind it": {func(w *harness) {
			s := &msg.Stream{Tenant: "default", Format: "f", Method: "POST", Status: 200, Session: "s", Run: "a"}
			w.setResponse(1, t0, s)
			w.apply(user("a", 0), said("a", "r1", 1), stop("a", 2))
			w.commit()
			s.Pace = msg.Pace{Start: t0, Total: 3 * sec}
			w.setResponse(1, t0, s)
		}, []string{"run a"}},
	} {
		w := newHarness(t)
		emitted := make(map[string]int)
		w.emitted = func(s msg.Span) {
			if s.State != msg.SpanOpen && !s.Tombstone && !s.Amends {
				emitted[s.TraceID.String()+" "+s.Kind.String()+" "+first(s.ResponseID, s.Tool.Name, s.Run)]++
			}
		}
		c.play(w)
		w.commit()
		var again []string
		for id, n := range emitted {
			if n > 1 {
				again = append(again, id[33:])
			}
		}
		slices.Sort(again)
		if d := cmp.Diff(c.want, again); d != "" {
			t.Errorf("%s: emitted again (-want +got):\n%s", name, d)
		}
	}
}

func first(names ...string) string {
	i := slices.IndexFunc(names, func(s string) bool { return s != "" })
	return names[max(i, 0)]
}
