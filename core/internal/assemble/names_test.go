package assemble

import (
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// agents are the names on the spans of a run.
func (w *harness) agents(run string) map[string]bool {
	w.commit()
	names := make(map[string]bool)
	for _, s := range w.rows {
		if s.Run == run && !s.Tombstone {
			names[s.Agent.Name] = true
		}
	}
	return names
}

// TestChildHasTheNameOfItsCall: an agent that has no name of its own has the one that it was
// called by, in any order of reading its run and its call.
func TestChildHasTheNameOfItsCall(t *testing.T) {
	child := func(run string, name string) []msg.Message {
		first := user(run, 2)
		first.ParentRun, first.ParentCall = "a", "d-"+run
		answer := said(run, "r-"+run, 4)
		answer.Agent.Name = name
		return []msg.Message{first, called(run, "t-"+run, "Grep", 3), result(run, "t-"+run, 4), answer, {Kind: msg.Stop, Run: run, Time: 5, Signal: msg.RunEnd}}
	}
	call := func(run string) []msg.Message {
		return []msg.Message{delegated("a", "d-"+run, "scout", 1)}
	}
	begin, end := []msg.Message{user("a", 0)}, func(run string) []msg.Message {
		return []msg.Message{answered("a", "d-"+run, 6)}
	}
	for _, c := range []struct {
		name string
		own  string
		play [][]msg.Message
		want string
	}{
		{"call first", "", [][]msg.Message{begin, call("x"), child("x", ""), end("x")}, "scout"},
		{"call over first", "", [][]msg.Message{begin, call("x"), end("x"), child("x", "")}, "scout"},
		{"child first", "", [][]msg.Message{child("x", ""), begin, call("x"), nil, child("x", ""), end("x")}, "scout"},
		{"a name of its own", "ranger", [][]msg.Message{begin, call("x"), child("x", "ranger"), end("x")}, "ranger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newHarness(t)
			for _, part := range c.play {
				if part == nil { // the stream of the child is decoded again
					for _, r := range w.replay {
						if err := w.a.ResetRun(r); err != nil {
							t.Fatal(err)
						}
					}
				}
				w.apply(part...)
				w.restart()
			}
			names := w.agents("x")
			if !names[c.want] || c.own == "" && len(names) != 1 {
				t.Errorf("the spans say %v, want %s", names, c.want)
			}
		})
	}
}

func TestMessagesHaveTheNameOfTheirRun(t *testing.T) {
	w := newHarness(t)
	first := user("x", 2)
	first.ParentRun, first.ParentCall = "a", "d"
	w.apply(user("a", 0), delegated("a", "d", "scout", 1), first)
	m := tokens("x", "r1", 3, 10)
	m.Session, m.Host, m.Time = "s", msg.Host{Tenant: "default", Format: "f"}, t0+3*sec
	if _, err := w.a.Apply(&m, 1, 1, time.Unix(0, t0), t0); err != nil {
		t.Fatal(err)
	}
	if m.Agent.Name != "scout" {
		t.Errorf("the tokens are of %q", m.Agent.Name)
	}
}
