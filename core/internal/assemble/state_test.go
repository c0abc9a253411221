package assemble

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// stateOfMain returns groups as the code at e43ec3e encoded them: of random sessions, so that
// every field but apart, fan, forgot, history and left is set in one of them, and of the
// first half of TestStateOfMainGoesOn.
func stateOfMain(t *testing.T) (groups map[string]json.RawMessage) {
	t.Helper()
	b, err := os.ReadFile("testdata/state-e43ec3e.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &groups); err != nil {
		t.Fatal(err)
	}
	return groups
}

// prune drops empty objects, which a decoded state does not encode again.
func prune(v any) any {
	m, _ := v.(map[string]any)
	for k, x := range m {
		if x, ok := prune(x).(map[string]any); ok && len(x) == 0 {
			delete(m, k)
		}
	}
	return v
}

// TestStateOfMainIsKept decodes and encodes each state, which loses and adds nothing.
func TestStateOfMainIsKept(t *testing.T) {
	decode := func(b []byte) (v any) {
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		return prune(v)
	}
	for key, state := range stateOfMain(t) {
		k, err := link.ParseKey(key)
		if err != nil {
			t.Fatal(err)
		}
		g, err := openGroup(k, state)
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		b, err := g.encode()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(decode(state), decode(b)); d != "" {
			t.Errorf("%q (-main +now):\n%s", key, d)
		}
	}
}

// halves are the messages of a session that main applied and those that follow: at the cut
// a turn has ended, a delegation, a call, a response and a child are open, a link and a
// result have no call yet, and a child has no parent.
func halves() (first, second []msg.Message) {
	child := func(m msg.Message, call string) msg.Message {
		m.ParentRun, m.ParentCall = "b", call
		return m
	}
	early := result("b", "late", 15)
	orphan := child(user("d", 12), "after")
	return []msg.Message{
			user("a", 0), said("a", "r1", 1), called("a", "c1", "Read", 2), result("a", "c1", 3), stop("a", 4),
			user("b", 5), usageOf("b", "r2", 6, msg.Complete, msg.Tokens{Input: 100, Output: 10, Provenance: msg.Provider}), called("b", "c2", "Bash", 7),
			delegated("b", "d1", "scout", 8), child(user("c", 9), "d1"), said("c", "r3", 10), orphan, said("d", "r5", 13), early, said("b", "r4", 16),
		}, []msg.Message{
			result("b", "c2", 20), called("b", "late", "Grep", 14), delegated("b", "after", "owl", 11), said("c", "r3", 21), stop("c", 22), result("b", "d1", 23),
			usageOf("b", "r4", 24, msg.Complete, msg.Tokens{Input: 150, Output: 20, Provenance: msg.Provider}), stop("d", 25), stop("b", 26),
		}
}

// TestStateOfMainGoesOn continues a session from the state that main encoded.
func TestStateOfMainGoesOn(t *testing.T) {
	first, second := halves()
	now := newHarness(t)
	now.apply(first...)
	now.commit()
	before := newHarness(t)
	for key, row := range now.rows {
		before.rows[key] = row
	}
	before.state["default\x00f\x00s"] = stateOfMain(t)["default\x00f\x00s"]
	now.apply(second...)
	before.apply(second...)
	if d := cmp.Diff(now.tree(), before.tree()); d != "" {
		t.Errorf("(-now +from main's state):\n%s", d)
	}
}
