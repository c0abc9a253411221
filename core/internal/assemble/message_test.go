package assemble

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// writtenTo is the beginning of a run that the message of another agent causes: by itself it is
// known to be a child, and no more.
func writtenTo(run, agent, toOne, toMany string, at int64) []msg.Message {
	asked := user(run, at)
	asked.Precision, asked.ParentRun, asked.Delegation.CorrelationPrompt = msg.Millis, msg.UnknownRun, toOne
	note := msg.Message{
		Kind: msg.Status, Run: run, Time: at, Precision: msg.Millis, ParentRun: msg.UnknownRun,
		Agent: msg.Agent{ID: agent}, Delegation: msg.Delegate{CorrelationPrompt: toMany},
	}
	return []msg.Message{asked, note}
}

// TestMessageToMany: one call asks several agents the same. Each of their runs is below it, and
// a second run of one of them, which the call did not cause, is not.
func TestMessageToMany(t *testing.T) {
	begin, end := hires("a", "d", "", "by a", 1, 9)
	scripts := []script{
		{"letta", "s", [][]msg.Message{{user("a", 0), begin}, {end, stop("a", 10)}}},
		{"letta", "b", [][]msg.Message{append(writtenTo("x", "agent-b", "to b", "by a", 2), stop("x", 5)), append(writtenTo("z", "agent-b", "to b", "by a", 6), stop("z", 7))}},
		{"letta", "c", [][]msg.Message{append(writtenTo("y", "agent-c", "to c", "by a", 3), stop("y", 8))}},
	}
	var want map[string]msg.Span
	for _, order := range interleavings(scripts) {
		for _, h := range []how{{}, {restarts: true}} {
			got := play(t, scripts, order, h)
			if want == nil {
				want = got
			}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(msg.Text{})); d != "" {
				t.Fatalf("order %v, %+v: -first +this:\n%s", order, h, d)
			}
		}
	}
	call := msg.NewSpanID("default", "letta", "s", msg.SpanTool, "d")
	below := make(map[string]bool)
	for _, s := range want {
		if s.Kind == msg.SpanRun {
			below[s.Run] = s.Parent == call && s.TraceID == msg.NewTraceID("default", "letta", "s", "a") && s.Delegate.Link == msg.ByPrompt
		}
	}
	if d := cmp.Diff(map[string]bool{"a": false, "x": true, "y": true, "z": false}, below); d != "" {
		t.Errorf("runs below the call (-want +got):\n%s", d)
	}
}

// TestChainOfMessages: an agent that was written to writes to a third. In any order of reading
// all three are one tree; without the first, the other two are.
func TestChainOfMessages(t *testing.T) {
	b1, e1 := hires("a", "d1", "", "to b", 1, 9)
	b2, e2 := hires("x", "d2", "", "to c", 3, 8)
	scripts := []script{
		{"letta", "s", [][]msg.Message{{user("a", 0), b1}, {e1, stop("a", 10)}}},
		{"letta", "b", [][]msg.Message{append(writtenTo("x", "agent-b", "to b", "by a", 2), b2), {e2, stop("x", 9)}}},
		{"letta", "c", [][]msg.Message{append(writtenTo("y", "agent-c", "to c", "by x", 4), stop("y", 7))}},
	}
	for n, list := range [][]script{scripts, scripts[1:]} {
		root := []msg.TraceID{msg.NewTraceID("default", "letta", "s", "a"), msg.NewTraceID("default", "letta", "b", "x")}[n]
		for _, order := range interleavings(list) {
			for _, s := range play(t, list, order, how{restarts: true}) {
				if s.TraceID != root {
					t.Errorf("order %v: the %s of run %s is in trace %s", order, s.Kind, s.Run, s.TraceID)
				}
			}
		}
	}
}

// TestAwaitsItsParent: a stream with a run that another agent's message began is awaited until
// the call that sent it is read, and one with a turn of its own is not.
func TestAwaitsItsParent(t *testing.T) {
	begin, end := hires("a", "d", "", "to b", 1, 9)
	w := newHarness(t)
	say := func(session string, stream uint64, list ...msg.Message) {
		for i, m := range list {
			m.Session, m.Host = session, msg.Host{Tenant: "default", Format: "letta", Ver: uint64(i)}
			m.Key = fmt.Sprint(m.Kind, m.Run, m.Time, m.Tool.CallID)
			m.Time, m.Complete = t0+m.Time*sec, msg.Complete
			if _, err := w.a.Apply(&m, stream, 1, time.Unix(0, 0), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	awaits := func(session string, stream uint64) bool {
		waits, err := w.a.Awaits(stream, []RunRef{{Tenant: "default", Format: "letta", Session: session}})
		if err != nil {
			t.Fatal(err)
		}
		return waits
	}
	say("b", 2, writtenTo("x", "agent-b", "to b", "by a", 2)...)
	if !awaits("b", 2) || awaits("b", 3) {
		t.Errorf("before the call: awaited %v, another stream of the session %v", awaits("b", 2), awaits("b", 3))
	}
	say("s", 1, user("a", 0), begin, end)
	if awaits("b", 2) || awaits("s", 1) {
		t.Errorf("after the call: awaited %v, the call's own %v", awaits("b", 2), awaits("s", 1))
	}
}

// TestRunNamedByItsCause: a call names the run that it causes, which is of its own session or
// of another one. Either way the run is below it.
func TestRunNamedByItsCause(t *testing.T) {
	begin, end := hires("a", "d", "run x", "", 1, 1)
	begin.Delegation.CorrelationID, begin.Delegation.ChildRun, begin.Delegation.Link, begin.Delegation.Async = "run x", "x", msg.ByNativeID, true
	begin.Precision = msg.Inferred
	first := said("x", "q", 20)
	first.Delegation.CorrelationID = "run x"
	child := []msg.Message{first, stop("x", 30)}
	for name, scripts := range map[string][]script{
		"its own session": {{"letta", "s", [][]msg.Message{{user("a", 0), begin, end, stop("a", 1)}, child}}},
		"another":         {{"letta", "s", [][]msg.Message{{user("a", 0), begin, end, stop("a", 1)}}}, {"letta", "x", [][]msg.Message{child}}},
	} {
		for _, order := range interleavings(scripts) {
			for _, s := range play(t, scripts, order, how{restarts: true}) {
				if s.TraceID != msg.NewTraceID("default", "letta", "s", "a") {
					t.Errorf("%s, order %v: the %s of run %s is in another trace", name, order, s.Kind, s.Run)
				}
				if s.Kind == msg.SpanRun && s.Run == "x" && s.Parent != msg.NewSpanID("default", "letta", "s", msg.SpanTool, "d") {
					t.Errorf("%s, order %v: the run stands below %s", name, order, s.Parent)
				}
				if s.Kind == msg.SpanDelegation && (s.Delegate.ChildRun != "x" || s.Delegate.Link != msg.ByNativeID) {
					t.Errorf("%s, order %v: the call names %q by %s", name, order, s.Delegate.ChildRun, s.Delegate.Link)
				}
			}
		}
	}
}
