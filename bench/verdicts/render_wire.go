package verdicts

import (
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// anthropic writes the exchanges of an agent with the Messages API, each a stream of its own; the headers name the sub-agents.
type anthropic struct {
	record
	session string
	turn    int
	lanes   map[string]*exchange
	calls   map[string]step
}

// exchange is how far one agent's conversation with the provider is.
type exchange struct {
	parent string // the lane above
	turn   int
	open   bool
	block  int
	said   []any
	answer []any
}

func newAnthropic(session string) *anthropic {
	return &anthropic{session: session, lanes: map[string]*exchange{}, calls: map[string]step{}}
}

func (w *anthropic) lane(s step) *exchange {
	if w.lanes[s.Lane] == nil {
		w.lanes[s.Lane] = &exchange{}
	}
	return w.lanes[s.Lane]
}

func (w *anthropic) frame(x *exchange, now time.Time, f frame.Frame) {
	w.add(fmt.Sprintf("http://127.0.0.1:7801/v1/messages#%s-%d", w.session, x.turn), now, f, true)
}

func (w *anthropic) event(x *exchange, now time.Time, typ string, more m) {
	more["type"] = typ
	w.frame(x, now, frame.Frame{Kind: frame.Event, Name: typ, Data: encode(more)})
}

func (w *anthropic) request(s step, now time.Time, content ...any) {
	x := w.lane(s)
	if w.turn++; len(content) > 0 {
		x.said = append(x.said, m{"role": "user", "content": content})
	}
	x.turn = w.turn
	headers := m{"x-claude-code-session-id": w.session}
	if s.Lane != "" {
		headers["x-claude-code-agent-id"], headers["x-claude-code-agent-type"] = w.session[:8]+s.Lane, w.calls[s.Lane].Name
		if x.parent != "" {
			headers["x-claude-code-parent-agent-id"] = w.session[:8] + x.parent
		}
	}
	w.frame(x, now, frame.Frame{Kind: frame.Request, Name: "POST /v1/messages", ID: string(encode(headers)), FromClient: true, Data: encode(m{"model": "claude-sonnet-4-5", "max_tokens": 1024, "stream": true,
		"system": []any{m{"type": "text", "text": "You keep the quarry."}}, "metadata": m{"user_id": "user_2f1c_account_77aa_session_" + w.session}, "messages": x.said})})
}

func (w *anthropic) start(x *exchange, now time.Time) {
	if !x.open {
		x.open, x.block, x.answer = true, 0, nil
		w.event(x, now, "message_start", m{"message": m{"id": w.id("msg_" + w.session[:8]), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
			"usage": m{"input_tokens": 41, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 3}}})
	}
}

func (w *anthropic) piece(x *exchange, now time.Time, block, delta m) {
	w.start(x, now)
	w.event(x, now, "content_block_start", m{"index": x.block, "content_block": block})
	w.event(x, now, "content_block_delta", m{"index": x.block, "delta": delta})
	w.event(x, now, "content_block_stop", m{"index": x.block})
	x.block++
}

func (w *anthropic) stop(x *exchange, now time.Time, reason string) {
	w.event(x, now, "message_delta", m{"delta": m{"stop_reason": reason, "stop_sequence": nil}, "usage": m{"output_tokens": 30}})
	w.event(x, now, "message_stop", m{})
	w.frame(x, now, frame.Frame{Kind: frame.Close})
	x.said, x.open = append(x.said, m{"role": "assistant", "content": x.answer}), false
}

func (w *anthropic) write(s step, now time.Time) bool {
	x := w.lane(s)
	text := m{"type": "text", "text": s.Text}
	switch s.What {
	case "user":
		w.request(s, now, text)
	case "begin":
		w.request(s, now, m{"type": "text", "text": w.calls[s.Lane].Text})
	case "ping":
		w.event(x, now, "ping", m{})
	case "think":
		w.piece(x, now, m{"type": "thinking", "thinking": "", "signature": ""}, m{"type": "thinking_delta", "thinking": s.Text})
	case "text", "final":
		w.piece(x, now, m{"type": "text", "text": ""}, m{"type": "text_delta", "text": s.Text})
		if x.answer = append(x.answer, text); s.What == "final" {
			w.stop(x, now, "end_turn")
		}
	case "call", "delegate":
		name, input := s.Name, raw(s.Text)
		if w.calls[s.ID] = s; s.What == "delegate" {
			name, input = "Agent", m{"description": "Ask", "prompt": s.Text, "subagent_type": s.Name}
			w.lanes[s.ID] = &exchange{parent: s.Lane}
		}
		id := "toolu_" + w.session[:8] + s.ID
		w.piece(x, now, m{"type": "tool_use", "id": id, "name": name, "input": m{}}, m{"type": "input_json_delta", "partial_json": string(encode(input))})
		x.answer = append(x.answer, m{"type": "tool_use", "id": id, "name": name, "input": input})
		w.stop(x, now, "tool_use")
	case "result", "error":
		w.request(s, now, m{"type": "tool_result", "tool_use_id": "toolu_" + w.session[:8] + s.ID, "content": s.Text, "is_error": s.What == "error"})
	case "again":
		w.request(s, now)
	case "retry", "limit", "refuse": // the answer is an error; a retry asks again at once
		e := m{"type": "overloaded_error", "message": "Overloaded"}
		if s.What == "limit" {
			e = m{"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API."}
		}
		w.frame(x, now, frame.Frame{Kind: frame.Body, Data: encode(m{"type": "error", "error": e, "request_id": "req_011"})})
		w.frame(x, now, frame.Frame{Kind: frame.Close})
		if s.What == "retry" {
			w.request(s, now)
		}
	case "close":
		w.frame(x, now, frame.Frame{Kind: frame.Close, Name: frame.Lost})
	default:
		return false
	}
	return true
}

// openAIResponses writes the exchanges of an agent with the Responses API.
type openAIResponses struct {
	record
	session string
	turn    int
	open    bool
	calls   map[string]string
	input   []any
	output  []any
}

func newOpenAIResponses(session string) *openAIResponses {
	return &openAIResponses{session: session, calls: map[string]string{}}
}

func (w *openAIResponses) frame(now time.Time, f frame.Frame) {
	w.add(fmt.Sprintf("http://127.0.0.1:7803/v1/responses#%s-%d", w.session, w.turn), now, f, true)
}

func (w *openAIResponses) event(now time.Time, typ string, more m) {
	more["type"] = typ
	w.frame(now, frame.Frame{Kind: frame.Event, Name: typ, Data: encode(more)})
}

func (w *openAIResponses) request(now time.Time, input ...any) {
	w.turn++
	w.input, w.open, w.output = append(w.input, input...), false, nil
	w.frame(now, frame.Frame{Kind: frame.Request, Name: "POST /v1/responses", FromClient: true, Data: encode(m{"model": "gpt-5", "stream": true, "instructions": "You keep the quarry.", "prompt_cache_key": w.session, "input": w.input})})
}

func (w *openAIResponses) response(status string) m {
	r := m{"id": fmt.Sprintf("resp_%s%d", w.session[:8], w.turn), "object": "response", "status": status, "model": "gpt-5-2025-08-07", "output": append([]any{}, w.output...), "usage": nil, "error": nil, "incomplete_details": nil}
	if status == "completed" {
		r["usage"] = m{"input_tokens": 260, "output_tokens": 9, "total_tokens": 269}
	}
	return r
}

func (w *openAIResponses) item(now time.Time, item m, delta string, more m) {
	if !w.open {
		w.open = true
		w.event(now, "response.created", m{"response": w.response("in_progress")})
	}
	n := len(w.output)
	w.event(now, "response.output_item.added", m{"output_index": n, "item": m{"id": item["id"], "type": item["type"], "status": "in_progress", "call_id": item["call_id"], "name": item["name"], "role": item["role"], "arguments": "", "content": []any{}, "summary": []any{}}})
	if delta != "" {
		more["output_index"], more["item_id"] = n, item["id"]
		w.event(now, delta, more)
	}
	w.event(now, "response.output_item.done", m{"output_index": n, "item": item})
	w.output, w.input = append(w.output, item), append(w.input, item)
}

func (w *openAIResponses) done(now time.Time) {
	w.event(now, "response.completed", m{"response": w.response("completed")})
	w.frame(now, frame.Frame{Kind: frame.Close})
}

func (w *openAIResponses) write(s step, now time.Time) bool {
	switch s.What {
	case "user":
		w.request(now, m{"type": "message", "role": "user", "content": []any{m{"type": "input_text", "text": s.Text}}})
	case "think":
		w.item(now, m{"id": w.id("rs_" + w.session[:8]), "type": "reasoning", "summary": []any{m{"type": "summary_text", "text": s.Text}}}, "response.reasoning_summary_text.delta", m{"summary_index": 0, "delta": s.Text})
	case "text", "final":
		w.item(now, m{"id": w.id("msg_" + w.session[:8]), "type": "message", "role": "assistant", "status": "completed", "content": []any{m{"type": "output_text", "text": s.Text, "annotations": []any{}}}},
			"response.output_text.delta", m{"content_index": 0, "delta": s.Text})
		if s.What == "final" {
			w.done(now)
		}
	case "call":
		args := s.Text
		if args == "" {
			args = "{}"
		}
		w.item(now, m{"id": w.id("fc_" + w.session[:8]), "type": "function_call", "status": "completed", "call_id": "call_" + w.session[:8] + s.ID, "name": s.Name, "arguments": args}, "", nil)
		w.done(now)
	case "result":
		w.request(now, m{"type": "function_call_output", "call_id": "call_" + w.session[:8] + s.ID, "output": s.Text})
	case "again":
		w.request(now)
	case "refuse":
		w.frame(now, frame.Frame{Kind: frame.Body, Data: encode(m{"error": m{"message": "The server is overloaded", "type": "server_error", "param": nil, "code": "server_is_overloaded"}})})
		w.frame(now, frame.Frame{Kind: frame.Close})
	case "close":
		w.frame(now, frame.Frame{Kind: frame.Close, Name: frame.Lost})
	default:
		return false
	}
	return true
}

// agUI writes the recording of a tap in front of an agent that speaks AG-UI.
type agUI struct {
	record
	session string
	turn    int
	said    []any
}

func newAGUI(session string) *agUI { return &agUI{session: session} }

func (w *agUI) run() string { return fmt.Sprintf("run-%s-%d", w.session[:13], w.turn) }

func (w *agUI) frame(now time.Time, f frame.Frame) {
	w.add(fmt.Sprintf("http://127.0.0.1:7804/agent#%s-%d", w.session, w.turn), now, f, true)
}

func (w *agUI) event(now time.Time, typ string, more m) {
	more["type"], more["timestamp"] = typ, now.UnixMilli()
	w.frame(now, frame.Frame{Kind: frame.Event, Data: encode(more)})
}

func (w *agUI) request(now time.Time, more m) {
	w.turn++
	more["threadId"], more["runId"], more["messages"], more["tools"] = "thread-"+w.session, w.run(), w.said, []any{}
	w.frame(now, frame.Frame{Kind: frame.Request, Name: "POST /agent", FromClient: true, Data: encode(more)})
	w.event(now, "RUN_STARTED", m{"threadId": "thread-" + w.session, "runId": w.run()})
}

func (w *agUI) message(now time.Time, kind, role, text string) {
	id := w.id("m-" + w.session[:8])
	w.event(now, kind+"_MESSAGE_START", m{"messageId": id, "role": role})
	w.event(now, kind+"_MESSAGE_CONTENT", m{"messageId": id, "delta": text})
	w.event(now, kind+"_MESSAGE_END", m{"messageId": id})
}

func (w *agUI) finish(now time.Time, more m) {
	more["threadId"], more["runId"] = "thread-"+w.session, w.run()
	w.event(now, "RUN_FINISHED", more)
	w.frame(now, frame.Frame{Kind: frame.Close})
}

func (w *agUI) write(s step, now time.Time) bool {
	call := "call_" + w.session[:8] + s.ID
	switch s.What {
	case "user":
		w.said = append(w.said, m{"id": w.id("u-" + w.session[:8]), "role": "user", "content": s.Text})
		w.request(now, m{})
	case "resume":
		w.request(now, m{"resume": []any{m{"interruptId": "int-1", "payload": s.Text}}})
	case "text":
		w.message(now, "TEXT", "assistant", s.Text)
	case "think":
		w.message(now, "REASONING", "reasoning", s.Text)
	case "final":
		w.message(now, "TEXT", "assistant", s.Text)
		w.finish(now, m{})
	case "call":
		w.event(now, "TOOL_CALL_START", m{"toolCallId": call, "toolCallName": s.Name})
		w.event(now, "TOOL_CALL_ARGS", m{"toolCallId": call, "delta": string(encode(raw(s.Text)))})
		w.event(now, "TOOL_CALL_END", m{"toolCallId": call})
	case "result":
		w.event(now, "TOOL_CALL_RESULT", m{"toolCallId": call, "messageId": w.id("t-" + w.session[:8]), "role": "tool", "content": s.Text})
	case "pause":
		w.finish(now, m{"outcome": m{"type": "interrupt", "interrupts": []any{m{"id": "int-1", "reason": s.Text}}}})
	case "fail":
		w.event(now, "RUN_ERROR", m{"message": s.Text, "code": "BROKEN"})
		w.frame(now, frame.Frame{Kind: frame.Close})
	case "close":
		w.frame(now, frame.Frame{Kind: frame.Close, Name: frame.Lost})
	default:
		return false
	}
	return true
}
