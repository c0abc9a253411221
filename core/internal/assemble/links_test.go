package assemble

import (
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestStrongestLinkStands: a file beside the transcript and the call's result both
// name the child. In whatever order they are read, the stronger way stands.
func TestStrongestLinkStands(t *testing.T) {
	meta := msg.Message{Key: "meta", Kind: msg.Status, Time: 2, Signal: msg.Link, Tool: msg.Tool{CallID: "d"},
		Delegation: msg.Delegate{ChildRun: "x", Link: msg.ByMetaFile}}
	begin := delegated("a", "d", "scout", 1)
	end := answered("a", "d", 6)
	end.Delegation = msg.Delegate{ChildRun: "x", Link: msg.ByNativeID}
	first := user("x", 2)
	first.ParentRun = msg.UnknownRun
	steps := []struct {
		name string
		play []msg.Message
	}{
		{"meta", []msg.Message{meta}},
		{"begin", []msg.Message{user("a", 0), begin}},
		{"child", []msg.Message{first, said("x", "r", 4)}},
		{"end", []msg.Message{end}},
	}
	orders := [][]int{}
	var permute func(done []int)
	permute = func(done []int) {
		if len(done) == len(steps) {
			orders = append(orders, append([]int(nil), done...))
		}
		for i := range steps {
			used, begun := false, i != 3
			for _, d := range done {
				used, begun = used || d == i, begun || d == 1
			}
			if !used && begun {
				permute(append(done, i))
			}
		}
	}
	permute(nil)
	for _, order := range orders {
		w := newWorld(t)
		name := ""
		for _, i := range order {
			name += " " + steps[i].name
			w.apply(steps[i].play...)
			for len(w.replay) > 0 {
				r := w.replay[0]
				w.replay = w.replay[1:]
				if err := w.a.ResetRun(r); err != nil {
					t.Fatal(err)
				}
				w.apply(steps[2].play...)
			}
			w.restart()
		}
		w.apply(msg.Message{Kind: msg.Stop, Run: "x", Time: 8, Signal: msg.RunEnd}, msg.Message{Kind: msg.Stop, Run: "a", Time: 9, Signal: msg.RunEnd})
		w.seal()
		seen := 0
		for _, s := range w.rows {
			if !s.Deleted && (s.Kind == msg.SpanDelegation || s.Kind == msg.SpanRun && s.Run == "x") {
				if seen++; s.Delegate.Link != msg.ByNativeID {
					t.Errorf("%s: the %s is linked by %q", name, s.Kind, s.Delegate.Link)
				}
			}
		}
		if seen != 2 {
			t.Errorf("%s: %d spans", name, seen)
		}
	}
	if len(orders) != 12 {
		t.Errorf("%d orders", len(orders))
	}
}
