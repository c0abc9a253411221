package conversation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
)

type kept struct {
	Session
	Model string `json:",omitempty"`
}

func newKept(s Session) *kept { return &kept{Session: s} }

// TestSessions: a store remembers the sessions that were used last, also through a snapshot.
func TestSessions(t *testing.T) {
	var all Sessions[*kept]
	for _, id := range strings.Split("a b c a d b d", " ") {
		if s := all.Enter(id, 3, newKept); s.ID != id || all.Find(id) != s {
			t.Fatalf("%s: %+v", id, s)
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var again Sessions[*kept]
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	ids := ""
	for _, s := range again {
		ids += s.ID
	}
	if ids != "abd" || again.Find("c") != nil {
		t.Errorf("%s are remembered, want the last three", ids)
	}
}

// TestBelow: the session at the top is that of the parent, if it is known.
func TestBelow(t *testing.T) {
	var all Sessions[*kept]
	for _, id := range []string{"top", "agent", "inner"} {
		all.Enter(id, 8, newKept)
	}
	agent, inner := all.Find("agent"), all.Find("inner")
	all.Delegate(&agent.Session, "agent")
	all.Delegate(&agent.Session, "top")
	all.Delegate(&agent.Session, "other")
	if agent.Parent != "top" || agent.Root != "top" || !agent.Run.Child {
		t.Errorf("the agent of the session at the top is %+v", agent)
	}
	inner.Delegated("agent")
	if all.Below(&inner.Session, "agent"); inner.Root != "top" || inner.Parent != "agent" || !inner.Run.Child {
		t.Errorf("%+v", inner)
	}
	if all.Below(&inner.Session, "lost"); inner.Root != "lost" {
		t.Errorf("%+v", inner)
	}
}

// TestTotal: the tokens of a sub-agent may be the first message of its run.
func TestTotal(t *testing.T) {
	s := Session{ID: "agent", Root: "top"}
	s.Delegated("top")
	s.Run.Caused("turn", "call", msg.ByOrder, 70)
	var out decoder.Output
	s.Total(&out, Counts{Input: 3, Output: 4}, "m", "p", Time{})
	m := out.Messages[0]
	if m.Session != "top" || m.Run != "agent" || m.ParentRun != "turn" || m.ParentCall != "call" || m.Usage.Total() != 7 || m.Complete != msg.Summary {
		t.Errorf("%+v", m)
	}
}
