package assemble

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestUnnamedSessions distinguishes ids of conversations from their substitutes.
func TestUnnamedSessions(t *testing.T) {
	for _, c := range []struct {
		format, origin, session, run string
		want                         bool
	}{
		{"agno", "http://127.0.0.1:7777/sessions/s1/runs", "s1", "r1", false},
		{"agno", "http://127.0.0.1:7777/sessions/s1", "s1", "r1", false},
		{"agno", "http://127.0.0.1:7777/teams/t/runs", "teams/t/runs", "r1", true},
		{"agno", "/tmp/recorded/team.sse", "team", "r1", true},
		{"agno", "/tmp/recorded/team.sse", "7d0c", "r1", false},
		{"agno", "", "agno", "r1", true},
		{"grace", "chats/plan.sse", "plan", "turn", true},
		{"grace", `C:\chats\plan.sse`, "plan", "turn", true},
		{"grace", "chats/planning.sse", "plan", "turn", false},
		{"llm-message", "ws://127.0.0.1:8889", "127.0.0.1:8889", "r1", true},
		{"llm-message", "ws://127.0.0.1:8889/agent/ws?x=1", "ws", "r1", true},
		{"codex-exec", "out.jsonl", "unknown", "r1", true},
		{"letta", "http://127.0.0.1:8283/v1/runs/run-1/stream", "run-1", "run-1", true},
		{"letta", "captures/agent-7.jsonl", "agent-7", "run-1", false},
		{"anthropic-sse", "http://127.0.0.1/v1/messages", "msg_1", "msg_1", true},
		{"claude-code", "projects/x/5e55.jsonl", "5e55", "r1", false},
		{"legion", "sessions/5e55/messages.jsonl", "5e55", "r1", false},
	} {
		m := msg.Message{Session: c.session, Run: c.run, Host: msg.Host{Format: c.format, Origin: c.origin}}
		if got := unnamed(&m); got != c.want {
			t.Errorf("%s of %s in %q: unnamed %t", c.session, c.format, c.origin, got)
		}
	}
}

// requested are the facts of the requests on the spans of a run.
type requested struct {
	Asked, Answered, Server, Reasons, Ended string
	Params                                  int
	Unnamed                                 bool
}

// TestRequestsOfAChat has two exchanges of a run: each chat has the request that it answers,
// whose model is another one; the run has the model of the last request and the last stop
// reason, apart from how it ended.
func TestRequestsOfAChat(t *testing.T) {
	request := func(model, limit string, at int64) msg.Message {
		return msg.Message{
			Kind: msg.Status, Run: "a", Time: at, Signal: msg.ModelStart, Model: model, Provider: "anthropic",
			Attrs: []msg.Attr{{Key: "type", Value: "request"}, {Key: msg.ParamStream, Value: "true"}, {Key: msg.ParamMaxTokens, Value: limit}, {Key: msg.SessionFrom, Value: "content"}},
		}
	}
	answer := func(resp string, at int64, reason string) []msg.Message {
		text, used := said("a", resp, at), tokens("a", resp, at+1, 5)
		text.Model, used.Model, used.FinishReason = "tern-2026", "tern-2026", reason
		return []msg.Message{text, used}
	}
	w := newHarness(t)
	w.host = msg.Host{Server: "models.internal:443"}
	w.apply(user("a", 0), request("tern", "64", 1))
	w.apply(answer("r1", 2, "tool_use")...)
	w.restart()
	w.apply(request("tern-mini", "128", 4))
	w.apply(answer("r2", 5, "end_turn")...)
	end := stop("a", 7)
	end.FinishReason = "completed"
	w.apply(end)
	w.commit()
	got := make(map[string]requested)
	for _, s := range w.rows {
		r := requested{Asked: s.AskedModel, Answered: s.Model, Server: s.Server, Ended: s.Ended, Params: len(s.Request), Unnamed: s.Unnamed}
		if len(s.FinishReasons) > 0 {
			r.Reasons = s.FinishReasons[0]
		}
		got[s.Kind.String()+" "+s.ResponseID] = r
	}
	want := map[string]requested{
		"chat r1": {"tern", "tern-2026", "models.internal:443", "tool_use", "", 2, true},
		"chat r2": {"tern-mini", "tern-2026", "models.internal:443", "end_turn", "", 2, true},
		"run ":    {"tern-mini", "tern-2026", "models.internal:443", "end_turn", "completed", 0, true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestStateOfARunIsNoReason has a run whose end states only that it is completed: why its
// model stopped is unknown. A chat whose request is unknown has no server.
func TestStateOfARunIsNoReason(t *testing.T) {
	w := newHarness(t)
	w.host = msg.Host{Server: "agents.internal:7777"}
	start, end := user("a", 0), stop("a", 3)
	start.Signal, end.FinishReason = msg.RunStart, "completed"
	text := said("a", "r1", 2)
	text.Model, text.FinishReason = "tern", "completed"
	text.SetAttr(msg.FinishReasonOf, "run")
	w.apply(start, text, end)
	w.commit()
	for _, s := range w.rows {
		if len(s.FinishReasons) > 0 {
			t.Errorf("%s stopped because of %q", s.Kind, s.FinishReasons)
		}
		if want := map[msg.SpanKind]string{msg.SpanRun: "agents.internal:7777"}[s.Kind]; s.Server != want {
			t.Errorf("%s is of %q, want %q", s.Kind, s.Server, want)
		}
	}
}

// TestAnAnswerThatEndsItsRun has the reason of the run on the answer itself.
func TestAnAnswerThatEndsItsRun(t *testing.T) {
	w := newHarness(t)
	text := said("a", "", 2)
	text.Signal, text.FinishReason = msg.RunEnd, "stop"
	w.apply(user("a", 0), text)
	w.commit()
	for _, s := range w.rows {
		if len(s.FinishReasons) > 0 || (s.Ended == "stop") != (s.Kind == msg.SpanRun) {
			t.Errorf("a %s stopped because of %q and ended by %q", s.Kind, s.FinishReasons, s.Ended)
		}
	}
}

// TestModelsOfTurns has a first message of a turn that is a response's, with the model that
// answered, and a second turn that does not name the model that is asked for.
func TestModelsOfTurns(t *testing.T) {
	begins := said("a", "r1", 1)
	begins.Signal, begins.Model = msg.RunStart, "tern-2026"
	w := newHarness(t)
	w.apply(begins)
	w.commit()
	w.apply(msg.Message{Kind: msg.Status, Run: "a", Time: 2, Model: "tern"})
	second := said("b", "r2", 5)
	second.Model = "tern"
	w.apply(user("b", 4), second, stop("b", 6))
	w.commit()
	for _, s := range w.rows {
		want := map[string][2]string{"chat r1": {"", "tern-2026"}, "run a": {"tern", "tern-2026"}, "chat r2": {"tern", "tern"}, "run b": {"tern", "tern"}}[s.Kind.String()+" "+first(s.ResponseID, s.Run)]
		if got := [2]string{s.AskedModel, s.Model}; got != want {
			t.Errorf("%s of %s: asked and answered %q, want %q", s.Kind, s.Run, got, want)
		}
	}
}

// TestAgentsGoByTheirID has a run whose agent has an id and no name.
func TestAgentsGoByTheirID(t *testing.T) {
	w := newHarness(t)
	text := said("a", "r1", 2)
	text.Agent.ID = "agent-7"
	w.apply(user("a", 0), text, stop("a", 3))
	w.commit()
	for _, s := range w.rows {
		if s.Agent.Name != "agent-7" {
			t.Errorf("the agent of a %s is called %q", s.Kind, s.Agent.Name)
		}
	}
}
