package assemble

import (
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// placed applies a message and returns it as the assembler has filled it.
func (w *harness) placed(m msg.Message) msg.Message {
	w.t.Helper()
	m.Session, m.Host, m.Time = "s", msg.Host{Tenant: "default", Format: "f", Source: "src"}, t0+m.Time*sec
	if m.Key == "" {
		m.Key = m.Kind.String() + m.Run + m.Tool.CallID
	}
	if _, err := w.a.Apply(&m, 1, 1, time.Unix(0, t0), t0); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// inferred is a delegation, or its result, that is known from the child only.
func inferred(kind msg.Kind, run, child string, at int64) msg.Message {
	m := msg.Message{Kind: kind, Run: run, Time: at, Complete: msg.Summary}
	m.Tool = msg.Tool{CallID: msg.InferredCall(child), Name: "delegate", Internal: true}
	m.Delegation = msg.Delegate{To: "scout", ChildRun: child, Link: msg.ByParent}
	return m
}

// below is the first message of a child run.
func below(run, parent, call string, at int64) msg.Message {
	m := user(run, at)
	m.ParentRun, m.ParentCall = parent, call
	return m
}

// TestInferredDelegationYields: a delegation that was inferred from its child is a span where
// no other message has the call, and none where one has it, also in a stream before a restart.
func TestInferredDelegationYields(t *testing.T) {
	alone := newHarness(t)
	alone.apply(user("a", 0), inferred(msg.Delegation, "a", "x", 1), below("x", "a", msg.InferredCall("x"), 1), inferred(msg.DelegationResult, "a", "x", 4))
	count := func(w *harness) (n int) {
		w.commit()
		for _, s := range w.rows {
			if s.Kind == msg.SpanDelegation && !s.Tombstone {
				n++
			}
		}
		return n
	}
	if n := count(alone); n != 1 {
		t.Errorf("alone: %d delegations:\n%s", n, alone.tree())
	}
	w := newHarness(t)
	done := answered("a", "d", 5)
	done.Delegation.ChildRun, done.Delegation.Link = "x", msg.ByParent
	w.apply(user("a", 0), delegated("a", "d", "scout", 1), below("x", "a", "d", 2), done)
	w.restart()
	for _, m := range []msg.Message{inferred(msg.Delegation, "a", "x", 2), inferred(msg.DelegationResult, "a", "x", 5)} {
		if got := w.placed(m); got.Kind != msg.Status || !got.Hidden {
			t.Errorf("%s beside the stated call is a %s", m.Kind, got.Kind)
		}
	}
	if got := w.placed(below("x", "a", msg.InferredCall("x"), 2)); got.ParentCall != "d" {
		t.Errorf("the child stands below %q", got.ParentCall)
	}
	if n := count(w); n != 1 {
		t.Errorf("%d delegations:\n%s", n, w.tree())
	}
}

// TestSummaryAddsNothing: a form with less detail changes no span of a run that the full form
// has ended.
func TestSummaryAddsNothing(t *testing.T) {
	w := newHarness(t)
	w.apply(user("a", 0), called("a", "c", "Grep", 1), result("a", "c", 3), said("a", "", 6),
		msg.Message{Kind: msg.Stop, Run: "a", Time: 6, Signal: msg.RunEnd, FinishReason: "completed"})
	want := w.tree()
	w.restart()
	rough := said("a", "", 0)
	rough.Key, rough.Complete = "rough", msg.Summary
	total := tokens("a", "", 0, 10)
	total.Complete = msg.Summary
	w.apply(rough, total, msg.Message{Kind: msg.Stop, Run: "a", Time: 0, Signal: msg.RunEnd, FinishReason: "completed", Complete: msg.Summary, Key: "rough end"})
	if got := w.tree(); got != want {
		t.Errorf("before\n%safter\n%s", want, got)
	}
}

// TestCancelledRunIsNoError: a run that ends as cancelled is cancelled, also if its end is no
// error.
func TestCancelledRunIsNoError(t *testing.T) {
	w := newHarness(t)
	w.apply(user("a", 0), msg.Message{Kind: msg.Stop, Run: "a", Time: 6, Signal: msg.RunEnd, FinishReason: "cancelled"})
	w.commit()
	for _, s := range w.rows {
		if s.Outcome != msg.OutcomeCancelled {
			t.Errorf("the run is %s", s.Outcome)
		}
	}
}

// TestCallLastsAsMeasured: the span of a call whose duration was measured lasts that long, at
// any time of its result, and also if the result is read first.
func TestCallLastsAsMeasured(t *testing.T) {
	call, done := called("a", "c", "Grep", 1), result("a", "c", 9)
	done.Tool.Duration = 4_000_001_000
	for name, list := range map[string][]msg.Message{"call first": {user("a", 0), call, done}, "result first": {user("a", 0), done, call}} {
		w := newHarness(t)
		w.apply(list...)
		w.commit()
		for _, s := range w.rows {
			if s.Kind == msg.SpanTool && s.End-s.Start != 4_000_001_000 {
				t.Errorf("%s: the call lasted %d ns", name, s.End-s.Start)
			}
		}
	}
}

// TestDelegateIsOneAgent: a delegation by the id of an agent has the agent's name, whether the
// name is read before the call, while it is open, or after it.
func TestDelegateIsOneAgent(t *testing.T) {
	named := said("x", "r", 3)
	named.Agent = msg.Agent{ID: "scout-1", Name: "The Scout"}
	call := delegated("a", "d", "scout-1", 1)
	for name, list := range map[string][]msg.Message{
		"before": {user("a", 0), named, call, answered("a", "d", 4)},
		"while":  {user("a", 0), call, named, answered("a", "d", 4)},
		"after":  {user("a", 0), call, answered("a", "d", 4), named},
	} {
		w := newHarness(t)
		w.apply(list...)
		w.commit()
		n := 0
		for _, s := range w.rows {
			if s.Kind != msg.SpanDelegation {
				continue
			}
			if n++; s.Delegate.To != "The Scout" || s.Delegate.ToID != "scout-1" {
				t.Errorf("%s: to %q, %q", name, s.Delegate.To, s.Delegate.ToID)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d delegations", name, n)
		}
	}
	w := newHarness(t)
	w.apply(named)
	w.restart()
	bare := said("y", "q", 5)
	bare.Agent = msg.Agent{ID: "scout-1", Name: "scout-1"}
	if got := w.placed(bare); got.Agent.Name != "The Scout" {
		t.Errorf("a run with the id alone is of %q", got.Agent.Name)
	}
}

// TestHistoryYieldsToRuns: messages without a run are hidden where the session has runs, and
// emitted again, hidden, when runs follow later.
func TestHistoryYieldsToRuns(t *testing.T) {
	line := msg.Message{Kind: msg.User, Time: 1, Complete: msg.Summary, Key: "h"}
	line.SetAttr("type", msg.History)
	w := newHarness(t)
	first := w.placed(line)
	w.restart()
	w.apply(user("a", 1))
	again := w.placed(line)
	if first.Hidden || !again.Hidden || again.Host.Ver <= first.Host.Ver {
		t.Errorf("hidden %v in version %d, then %v in version %d", first.Hidden, first.Host.Ver, again.Hidden, again.Host.Ver)
	}
	if len(w.replay) != 1 || w.replay[0].Run != "" {
		t.Errorf("decoded again: %v", w.replay)
	}
}
