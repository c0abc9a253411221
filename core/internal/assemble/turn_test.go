package assemble

import (
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// aTurn is a turn in which every kind of message is, with every fact that a span has: a slow model, a call that fails and is tried
// again, a call that waits for a person, a delegation that is paused, an answer in parts, a call without a result.
func aTurn() []msg.Message {
	agent := msg.Agent{ID: "keeper-1", Name: "Keeper", Kind: msg.KindAgent}
	client := msg.Client{Project: "/srv/lamp", Version: "2.1.0", User: "ada"}
	asks := msg.Message{Kind: msg.User, Run: "a", Time: 1, Client: client, Content: msg.Plain("Light the lamp"), Agent: msg.Agent{ID: "ada", Name: "Ada", Kind: msg.KindHuman}}
	asks.Host.Server = "models:443"
	request := msg.Message{Kind: msg.Status, Run: "a", Time: 2, Agent: agent, Signal: msg.ModelStart, Model: "lamp-large", Provider: "acme", Client: msg.Client{Branch: "main"}, Attrs: []msg.Attr{{Key: msg.ParamTemperature, Value: "0.5"}}}
	token := msg.Message{Kind: msg.Status, Run: "a", Time: 4, Signal: msg.FirstToken, ResponseID: "r1"}
	thinks := msg.Message{Kind: msg.Reasoning, Run: "a", Time: 5, ResponseID: "r1", Model: "lamp-large-7", Provider: "acme"}
	makes := func(id, resp string, at int64) msg.Message {
		m := in(resp, called("a", id, "wick", at))
		m.Tool.Server, m.Tool.Arguments, m.Model = "lamps", msg.Plain(`{"length": 4, "of": ["wool"]}`), "lamp-large-7"
		return m
	}
	fails := result("a", "c1", 8)
	fails.IsError, fails.Tool.ErrorType, fails.Content = true, "timeout", msg.Plain("No wick in "+strings.Repeat("the drawer ", 40))
	ended := func(resp string, at int64, reason string) msg.Message {
		return msg.Message{Kind: msg.Status, Run: "a", Time: at, Signal: msg.ModelEnd, ResponseID: resp, FinishReason: reason}
	}
	counted := func(resp string, at int64, in, out uint64) msg.Message {
		m := tokens("a", resp, at, in)
		m.Usage.Output, m.Usage.CacheRead, m.Usage.Reasoning, m.Usage.Provenance = out, 7, 3, msg.Provider
		return m
	}
	waits := msg.Message{Kind: msg.Status, Run: "a", Time: 12, Signal: msg.WaitStart, Tool: msg.Tool{CallID: "c2"}, Attrs: []msg.Attr{{Key: msg.AttrWaitsFor, Value: "harbour"}}}
	goes := msg.Message{Kind: msg.Status, Run: "a", Time: 14, Signal: msg.WaitEnd, Tool: msg.Tool{CallID: "c2"}}
	works := result("a", "c2", 15)
	works.Content, works.Tool.ProtocolID = msg.Plain("Cut to 4"), "p2"
	hands := in("r2", delegated("a", "d1", "Scout", 16))
	hands.Delegation.ToID = "scout-1"
	child := user("x", 17)
	child.ParentRun, child.ParentCall, child.Delegation.Link, child.Delegation.Confidence = "a", "d1", msg.ByMetaFile, 90
	pause := msg.Message{Kind: msg.Status, Run: "x", Time: 19, Signal: msg.RunPause}
	wrong := msg.Message{Kind: msg.Error, Run: "x", Time: 21, Content: msg.Plain("Fog"), Attrs: []msg.Attr{{Key: "error_type", Value: "weather"}}}
	gone := stop("x", 22)
	gone.IsError, gone.FinishReason = true, "failed"
	answer := msg.Message{Kind: msg.Assistant, Run: "a", Time: 26, ResponseID: "r3", Model: "lamp-large-7", FinishReason: "end_turn"}
	partial := usageOf("a", "r3", 25, msg.Partial, msg.Tokens{Input: 60, Output: 1, Provenance: msg.Provider})
	last := usageOf("a", "r3", 27, msg.Complete, msg.Tokens{Input: 60, Output: 9, Provenance: msg.Provider})
	done := stop("a", 30)
	done.FinishReason = "completed"
	return []msg.Message{
		asks, request, token, thinks, makes("c1", "r1", 6), ended("r1", 7, "tool_use"), counted("r1", 7, 20, 5), fails, makes("c2", "r2", 11), counted("r2", 11, 40, 6),
		waits, goes, works, hands, child, said("x", "q1", 18), pause, wrong, gone, answered("a", "d1", 23), partial, answer, last, makes("c3", "", 28), done,
	}
}

// TestCallsWithoutADelegate: a tool that is no delegation by itself may cause the run of another session, before or after its result.
func TestCallsWithoutADelegate(t *testing.T) {
	for name, c := range map[string]struct{ id, prompt string }{"the thread": {"codex 1", ""}, "the prompt": {"", "codex p"}} {
		begin, end := called("a", "d", "shell", 1), result("a", "d", 9)
		begin.Delegation.CorrelationPrompt, end.Delegation.CorrelationID = c.prompt, c.id
		scripts := []script{
			{"claude-code", "s", [][]msg.Message{{user("a", 0), said("a", "r1", 1), begin}, {end}, {said("a", "r2", 10), stop("a", 11)}}},
			{"codex", "th", [][]msg.Message{hired("x", c.id, c.prompt, 2), {said("x", "q", 7), stop("x", 8)}}},
		}
		for _, order := range interleavings(scripts) {
			for _, h := range []how{{}, {restarts: true}} {
				rows := play(t, scripts, order, h)
				var call, run msg.Span
				for _, s := range rows {
					switch {
					case s.Kind == msg.SpanRun && s.Run == "x":
						run = s
					case s.Tool.CallID == "d":
						call = s
					}
				}
				if run.Parent != call.ID || run.TraceID != call.TraceID || call.Delegate.ChildRun != "x" {
					t.Errorf("%s, order %v, %+v: the run is below %s, the call %s has %q", name, order, h, run.Parent, call.ID, call.Delegate.ChildRun)
				}
			}
		}
	}
}

// TestSilenceAfterASilentEnd: a model that goes on after silence had ended its run was silent.
func TestSilenceAfterASilentEnd(t *testing.T) {
	w := newHarness(t)
	w.apply(user("a", 0), said("a", "r1", 10))
	if err := w.a.Finish(); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.apply(said("a", "r2", 7210), runEnd)
	w.wantFindings("run a 7210 silence 7200")
}

// TestALateMessageOfAnOldTurn: a record that is read again of a turn that was evicted ends no other turn, is no open work, and leaves the spans of that turn as they were.
func TestALateMessageOfAnOldTurn(t *testing.T) {
	for _, correlated := range []bool{false, true} {
		lateMessage(t, correlated)
	}
}

// lateMessage is a session whose place is remembered, if another one may have caused it, or not.
func lateMessage(t *testing.T, correlated bool) {
	w := newHarness(t)
	stated := func(list ...msg.Message) {
		for i := range list {
			list[i].Precision = msg.Seconds
		}
		w.apply(list...)
		w.restart()
	}
	for i := range int64(2 * maxEndedRuns) {
		run := fmt.Sprint("t", i)
		prompt := user(run, 10*i)
		if correlated {
			prompt.Signal, prompt.Delegation.CorrelationPrompt = msg.RunStart, "prompt "+run
		}
		stated(prompt, said(run, "r"+run, 10*i+2), tokens(run, "r"+run, 10*i+3, 5))
	}
	stated(user("now", 400), called("now", "c", "Bash", 401))
	if r := w.a.mustGroup(t).Runs["t0"]; r != nil && !r.Stub || (r != nil) != correlated {
		t.Fatal("the turn was not evicted")
	}
	again := said("t0", "rt0", 3)
	again.Key = "written again"
	stated(again)
	g := w.a.mustGroup(t)
	if now, old := g.Runs["now"], g.Runs["t0"]; now.Ended != running || old.Ended == running {
		t.Errorf("the turn that goes on ended by %d, the old one by %d", now.Ended, old.Ended)
	}
	stated(result("now", "c", 410), user("next", 500), stop("next", 501))
	want := map[string]string{"t0": "run t0 0-3 tokens=5", "now": "run now 400-410", "next": "run next 500-501"}
	links := map[string]int{"t0": 0, "now": 1, "next": 1}
	w.commit()
	for _, s := range w.rows {
		if s.Kind == msg.SpanRun && want[s.Run] != "" && (label(s) != want[s.Run] || len(s.Links) != links[s.Run]) {
			t.Errorf("%s with %d links, want %s with %d", label(s), len(s.Links), want[s.Run], links[s.Run])
		}
		if s.Kind == msg.SpanChat && s.ResponseID == "rt0" && label(s) != "chat rt0 0-3 tokens=5" {
			t.Errorf("the response is %s", label(s))
		}
	}
}

// TestAStoppedDelegateGoesOn: a delegate that was interrupted, and gets more to do, was not cancelled, and its run lasts until its last
// message.
func TestAStoppedDelegateGoesOn(t *testing.T) {
	w := newHarness(t)
	var child msg.Span
	w.emitted = func(s msg.Span) {
		if s.Kind == msg.SpanRun && s.Run == "c" {
			child = s
		}
	}
	begin, halt, more := user("c", 2), stop("c", 5), user("c", 20)
	begin.ParentRun, begin.ParentCall = "a", "c1"
	halt.IsError, halt.FinishReason = true, "interrupted"
	more.Complete = msg.Complete
	w.apply(user("a", 0), in("r1", delegated("a", "c1", "ranger", 1)), begin, said("c", "r2", 4), halt)
	w.commit()
	if child.Outcome != msg.OutcomeCancelled {
		t.Fatalf("the delegate is %s, want cancelled", child.Outcome)
	}
	w.apply(answered("a", "c1", 6), more, said("c", "r3", 24))
	w.commit()
	if child.Outcome != msg.OutcomeUnset || child.Ended != "" || (child.End-child.Start)/sec != 22 {
		t.Errorf("the delegate is %s, %q, after %d s: want an unknown end after 22 s", child.Outcome, child.Ended, (child.End-child.Start)/sec)
	}
}
