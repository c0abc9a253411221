package verdicts

import (
	"fmt"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// letta writes the recording of a tap in front of a Letta server: a request, and the events of its run.
type letta struct {
	record
	session string
	turn    int
	calls   map[string][2]string // name and arguments
}

func newLetta(session string) *letta { return &letta{session: session, calls: map[string][2]string{}} }

func (w *letta) path() string {
	return "/v1/agents/agent-" + w.session + "/messages/stream"
}

func (w *letta) frame(now time.Time, f frame.Frame) {
	w.add(fmt.Sprintf("http://127.0.0.1:8283%s#%d", w.path(), w.turn), now, f, true)
}

func (w *letta) event(now time.Time, typ string, more m) {
	id := w.id(w.session[:24])
	data := m{"message_type": typ, "id": "message-" + id, "otid": id, "date": now.UTC().Format("2006-01-02T15:04:05+00:00"), "name": nil, "sender_id": nil, "is_err": nil, "seq_id": nil,
		"step_id": "step-" + id, "run_id": fmt.Sprintf("run-%s%012d", w.session[:24], w.turn)}
	for k, v := range more {
		data[k] = v
	}
	w.frame(now, frame.Frame{Kind: frame.Event, Data: encode(data)})
}

func (w *letta) request(now time.Time, messages ...any) {
	w.turn++
	w.frame(now, frame.Frame{Kind: frame.Request, Name: "POST " + w.path(), FromClient: true, Data: encode(m{"messages": messages, "stream_tokens": true})})
	w.event(now, "ping", m{"step_id": nil, "otid": nil, "id": "ping"})
}

func (w *letta) stop(now time.Time, reason string) {
	w.frame(now, frame.Frame{Kind: frame.Event, Data: encode(m{"message_type": "stop_reason", "stop_reason": reason})})
	w.frame(now, frame.Frame{Kind: frame.Event, Data: []byte("[DONE]")})
	w.frame(now, frame.Frame{Kind: frame.Close})
}

func (w *letta) write(s step, now time.Time) bool {
	call := func() m {
		return m{"name": w.calls[s.ID][0], "arguments": w.calls[s.ID][1], "tool_call_id": "call_" + w.session[:8] + s.ID}
	}
	switch s.What {
	case "user":
		w.request(now, m{"role": "user", "content": s.Text})
	case "ping":
		w.event(now, "ping", m{"step_id": nil, "otid": nil, "id": "ping"})
	case "text":
		w.event(now, "reasoning_message", m{"source": "reasoner_model", "reasoning": s.Text, "signature": nil})
	case "final":
		w.event(now, "assistant_message", m{"content": s.Text})
		w.stop(now, "end_turn")
	case "call":
		w.calls[s.ID] = [2]string{s.Name, s.Text}
		w.event(now, "tool_call_message", m{"tool_call": call(), "tool_calls": []any{call()}})
	case "ask": // a call that needs permission is made with the question
		name, args, _ := strings.Cut(s.Text, " ")
		w.calls[s.ID] = [2]string{name, args}
		w.event(now, "approval_request_message", m{"tool_call": call()})
		w.stop(now, "requires_approval")
	case "allow":
		w.request(now, m{"type": "approval", "approvals": []any{m{"type": "approval", "tool_call_id": "call_" + w.session[:8] + s.ID, "approve": true, "reason": nil}}})
	case "result", "error":
		status := s.status()
		r := m{"type": "tool", "tool_return": s.Text, "status": status, "tool_call_id": "call_" + w.session[:8] + s.ID, "stdout": nil, "stderr": nil}
		w.event(now, "tool_return_message", m{"name": w.calls[s.ID][0], "tool_return": s.Text, "status": status, "tool_call_id": r["tool_call_id"], "stdout": nil, "stderr": nil, "tool_returns": []any{r}})
	case "close":
		w.frame(now, frame.Frame{Kind: frame.Close, Name: frame.Lost})
	default:
		return false
	}
	return true
}

// langGraph writes the recording of a tap in front of LangGraph's platform.
type langGraph struct {
	record
	session string
	turn    int
	calls   map[string]string // name
}

func newLangGraph(session string) *langGraph {
	return &langGraph{session: session, calls: map[string]string{}}
}

func (w *langGraph) frame(now time.Time, f frame.Frame) {
	w.add(fmt.Sprintf("http://127.0.0.1:2024/threads/%s/runs/stream#%d", w.session, w.turn), now, f, true)
}

func (w *langGraph) event(now time.Time, name string, data any) {
	w.frame(now, frame.Frame{Kind: frame.Event, Name: name, Data: encode(data)})
}

func (w *langGraph) request(now time.Time, more m) {
	w.turn++
	more["assistant_id"], more["stream_mode"] = "quarry-graph", []any{"messages", "updates"}
	w.frame(now, frame.Frame{Kind: frame.Request, Name: "POST /threads/" + w.session + "/runs/stream", FromClient: true, Data: encode(more)})
	w.event(now, "metadata", m{"run_id": fmt.Sprintf("%s%012d", w.session[:24], w.turn), "attempt": 1})
}

func (w *langGraph) reply(now time.Time, text, finish string, calls ...any) {
	meta, usage := m{}, any(nil)
	if finish != "" {
		meta["finish_reason"], meta["model_name"] = finish, "gpt-crew-5"
		usage = m{"input_tokens": 50, "output_tokens": 25, "total_tokens": 75}
	}
	if calls == nil {
		calls = []any{}
	}
	w.event(now, "messages/partial", []any{m{"content": text, "additional_kwargs": m{}, "response_metadata": meta, "type": "ai", "name": nil, "id": w.id("run--" + w.session[:18]), "tool_calls": calls, "invalid_tool_calls": []any{}, "usage_metadata": usage}})
}

func (w *langGraph) write(s step, now time.Time) bool {
	switch s.What {
	case "user":
		w.request(now, m{"input": m{"messages": []any{m{"type": "human", "content": s.Text}}}})
	case "resume":
		w.request(now, m{"command": m{"resume": s.Text}})
	case "text":
		w.reply(now, s.Text, "")
	case "final":
		w.reply(now, s.Text, "stop")
		w.frame(now, frame.Frame{Kind: frame.Close})
	case "call":
		w.calls[s.ID] = s.Name
		w.reply(now, "", "tool_calls", m{"name": s.Name, "args": raw(s.Text), "id": "call_" + w.session[:8] + s.ID, "type": "tool_call"})
	case "result", "error":
		status := s.status()
		w.event(now, "messages/complete", []any{m{"content": s.Text, "type": "tool", "name": w.calls[s.ID], "id": w.id("tool-" + w.session[:18]), "tool_call_id": "call_" + w.session[:8] + s.ID, "status": status}})
	case "pause":
		w.event(now, "updates", m{"__interrupt__": []any{m{"value": m{"question": s.Text}, "id": w.id("interrupt-" + w.session[:8])}}})
		w.frame(now, frame.Frame{Kind: frame.Close})
	case "fail":
		w.event(now, "error", m{"error": "GraphRecursionError", "message": s.Text})
		w.frame(now, frame.Frame{Kind: frame.Close})
	case "close":
		w.frame(now, frame.Frame{Kind: frame.Close, Name: frame.Lost})
	default:
		return false
	}
	return true
}

// openAIChat writes the exchanges of an agent with Chat Completions, each a stream of its own.
type openAIChat struct {
	record
	session string
	turn    int
	said    []any
}

func newOpenAIChat(session string) *openAIChat { return &openAIChat{session: session} }

func (w *openAIChat) frame(now time.Time, f frame.Frame) {
	w.add(fmt.Sprintf("http://127.0.0.1:7802/v1/chat/completions#%s-%d", w.session, w.turn), now, f, true)
}

func (w *openAIChat) request(now time.Time, said ...any) {
	w.turn++
	w.said = append(w.said, said...)
	w.frame(now, frame.Frame{Kind: frame.Request, Name: "POST /v1/chat/completions", FromClient: true,
		Data: encode(m{"model": "gpt-5-mini", "stream": true, "metadata": m{"session_id": w.session}, "messages": w.said})})
}

func (w *openAIChat) chunk(now time.Time, finish any, delta m) {
	w.frame(now, frame.Frame{Kind: frame.Event, Data: encode(m{"id": fmt.Sprintf("chatcmpl-%s%d", w.session[:8], w.turn), "object": "chat.completion.chunk", "created": now.Unix(),
		"model": "gpt-5-mini-2025-08-07", "choices": []any{m{"index": 0, "delta": delta, "finish_reason": finish}}})})
}

func (w *openAIChat) done(now time.Time, said m) {
	w.said = append(w.said, said)
	w.frame(now, frame.Frame{Kind: frame.Event, Data: []byte("[DONE]")})
	w.frame(now, frame.Frame{Kind: frame.Close})
}

func (w *openAIChat) write(s step, now time.Time) bool {
	switch s.What {
	case "user":
		w.request(now, m{"role": "user", "content": s.Text})
	case "text":
		w.chunk(now, nil, m{"content": s.Text})
	case "final":
		w.chunk(now, "stop", m{"content": s.Text})
		w.done(now, m{"role": "assistant", "content": s.Text})
	case "call":
		call := m{"index": 0, "id": "call_" + w.session[:8] + s.ID, "type": "function", "function": m{"name": s.Name, "arguments": s.Text}}
		w.chunk(now, nil, m{"tool_calls": []any{call}})
		w.chunk(now, "tool_calls", m{})
		w.done(now, m{"role": "assistant", "content": nil, "tool_calls": []any{call}})
	case "result":
		w.request(now, m{"role": "tool", "tool_call_id": "call_" + w.session[:8] + s.ID, "content": s.Text})
	case "again":
		w.request(now)
	case "retry", "limit", "refuse": // the answer is an error; a retry asks again at once
		e := m{"message": "Rate limit reached", "type": "requests", "param": nil, "code": "rate_limit_exceeded"}
		if s.What == "limit" {
			e = m{"message": "You exceeded your current quota", "type": "insufficient_quota", "param": nil, "code": "insufficient_quota"}
		}
		w.frame(now, frame.Frame{Kind: frame.Body, Data: encode(m{"error": e})})
		w.frame(now, frame.Frame{Kind: frame.Close})
		if s.What == "retry" {
			w.request(now)
		}
	case "close":
		w.frame(now, frame.Frame{Kind: frame.Close, Name: frame.Lost})
	default:
		return false
	}
	return true
}
