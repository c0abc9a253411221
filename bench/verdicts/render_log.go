package verdicts

import (
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// pi writes a session of Pi: a message when it is whole.
type pi struct {
	record
	session string
	last    string
	pending []any             // what the model has written of a message
	calls   map[string]string // name
}

func newPi(session string) *pi { return &pi{session: session, calls: map[string]string{}} }

func (w *pi) line(now time.Time, rec m) {
	if rec["timestamp"] = stamp(now); w.n == 0 {
		w.add(w.path(), now, frame.Frame{Kind: frame.Line, Data: encode(m{"type": "session", "version": 3, "id": w.session, "timestamp": stamp(now), "cwd": "/srv/quarry"})}, false)
	}
	if rec["parentId"] = nil; w.last != "" {
		rec["parentId"] = w.last
	}
	w.last = w.id(w.session[:4])
	rec["id"] = w.last
	w.add(w.path(), now, frame.Frame{Kind: frame.Line, Data: encode(rec)}, false)
}

func (w *pi) path() string {
	return "/home/ada/.pi/agent/sessions/--srv-quarry--/2026-03-04T09-00-00_" + w.session + ".jsonl"
}

func (w *pi) message(now time.Time, more m) {
	more["timestamp"] = now.UnixMilli()
	w.line(now, m{"type": "message", "message": more})
}

func (w *pi) assistant(now time.Time, stop string, more m, content ...any) {
	content = append(w.pending, content...)
	w.pending = nil
	rec := m{"role": "assistant", "content": content, "api": "openai-responses", "provider": "openai", "model": "small-2", "stopReason": stop, "responseId": "resp_" + w.session[:8] + w.last,
		"usage": m{"input": 20, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 25, "cost": m{"total": 0.001}}}
	for k, v := range more {
		rec[k] = v
	}
	w.message(now, rec)
}

func (w *pi) write(s step, now time.Time) bool {
	text := m{"type": "text", "text": s.Text}
	switch s.What {
	case "user":
		w.message(now, m{"role": "user", "content": []any{text}})
	case "text": // it is in the log with the message
		w.pending = append(w.pending, text)
	case "final":
		w.assistant(now, "stop", nil, text)
	case "call":
		w.calls[s.ID] = s.Name
		w.assistant(now, "toolUse", nil, m{"type": "toolCall", "id": "call_" + w.session[:8] + s.ID, "name": s.Name, "arguments": raw(s.Text)})
	case "result", "error":
		w.message(now, m{"role": "toolResult", "toolCallId": "call_" + w.session[:8] + s.ID, "toolName": w.calls[s.ID], "content": []any{text}, "isError": s.What == "error"})
	case "retry":
		w.assistant(now, "error", m{"errorMessage": "529 overloaded_error: Overloaded"})
	case "interrupt":
		w.assistant(now, "aborted", m{"errorMessage": "Request was aborted"})
	case "compact":
		w.line(now, m{"type": "compaction", "summary": s.Text, "firstKeptEntryId": w.last, "tokensBefore": 90000})
	default:
		return false
	}
	return true
}

// copilot writes the event log of Copilot CLI.
type copilot struct {
	record
	session string
	turn    string
	last    string
	calls   map[string]step
}

func newCopilot(session string) *copilot {
	return &copilot{session: session, calls: map[string]step{}}
}

func (w *copilot) call(id string) string { return "toolu_" + w.session[:8] + id }

func (w *copilot) event(s step, now time.Time, typ string, data m) {
	if s.Lane != "" {
		data["parentToolCallId"] = w.call(s.Lane)
	}
	rec := m{"type": typ, "data": data, "timestamp": stamp(now), "parentId": nil}
	if w.last != "" {
		rec["parentId"] = w.last
	}
	w.last = w.id(w.session[:24] + "00000000")
	if rec["id"] = w.last; s.Lane != "" {
		rec["agentId"] = w.call(s.Lane)
	}
	w.add("/home/ada/.copilot/session-state/"+w.session+"/events.jsonl", now, frame.Frame{Kind: frame.Line, Data: encode(rec)}, false)
}

func (w *copilot) message(s step, now time.Time, text string, requests ...any) {
	w.event(s, now, "assistant.message", m{"messageId": w.id(w.session[:24] + "aaaa0000"), "content": text, "toolRequests": append([]any{}, requests...), "interactionId": w.turn, "outputTokens": 20, "model": "claude-haiku-4.5"})
}

func (w *copilot) write(s step, now time.Time) bool {
	switch s.What {
	case "user":
		if w.n == 0 {
			w.event(s, now, "session.start", m{"sessionId": w.session, "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.74", "startTime": stamp(now), "context": m{"cwd": "/srv/quarry"}, "alreadyInUse": false})
		}
		w.turn = w.id(w.session[:24] + "bbbb0000")
		w.event(s, now, "user.message", m{"content": s.Text, "attachments": []any{}, "interactionId": w.turn})
		w.event(s, now, "assistant.turn_start", m{"turnId": "0", "interactionId": w.turn})
	case "begin":
		d := w.calls[s.Lane]
		w.event(step{Lane: s.Lane}, now, "subagent.started", m{"toolCallId": w.call(s.Lane), "agentName": d.Name, "agentDisplayName": d.Name, "model": "claude-haiku-4.5"})
		w.event(s, now, "user.message", m{"content": d.Text, "attachments": []any{}, "interactionId": w.turn, "source": "agent-" + w.session})
	case "text":
		w.message(s, now, s.Text)
	case "final":
		w.message(s, now, s.Text)
		if s.Lane == "" {
			w.event(s, now, "assistant.turn_end", m{"turnId": "0"})
		} else {
			w.event(s, now, "subagent.completed", m{"toolCallId": w.call(s.Lane), "agentName": w.calls[s.Lane].Name, "model": "claude-haiku-4.5", "totalToolCalls": 1, "totalTokens": 900, "durationMs": 4000})
		}
	case "call", "delegate":
		name, input := s.Name, raw(s.Text)
		if s.What == "delegate" {
			name, input = "task", m{"agent_type": s.Name, "description": "Ask " + s.Name, "prompt": s.Text}
		}
		w.calls[s.ID] = s
		w.message(s, now, "", m{"toolCallId": w.call(s.ID), "name": name, "arguments": input, "type": "function"})
		w.event(s, now, "tool.execution_start", m{"toolCallId": w.call(s.ID), "toolName": name, "arguments": input})
	case "result":
		w.event(s, now, "tool.execution_complete", m{"toolCallId": w.call(s.ID), "interactionId": w.turn, "success": true, "result": m{"content": s.Text}})
	case "error":
		w.event(s, now, "tool.execution_complete", m{"toolCallId": w.call(s.ID), "interactionId": w.turn, "success": false, "error": m{"message": s.Text, "code": "failure"}})
	case "ask":
		w.event(s, now, "permission.requested", m{"requestId": "perm-" + s.ID, "permissionRequest": m{"kind": "shell", "toolCallId": w.call(s.ID), "fullCommandText": w.calls[s.ID].Text}})
	case "allow":
		w.event(s, now, "permission.completed", m{"requestId": "perm-" + s.ID, "toolCallId": w.call(s.ID), "result": m{"kind": "approved"}})
	case "fail":
		if s.Lane == "" {
			return false
		}
		w.event(s, now, "subagent.failed", m{"toolCallId": w.call(s.Lane), "agentName": w.calls[s.Lane].Name, "model": "claude-haiku-4.5", "error": s.Text, "durationMs": 7000})
	case "interrupt":
		w.event(s, now, "abort", m{"reason": "user_initiated"})
	case "retry":
		w.event(s, now, "model.call_failure", m{"source": "top_level", "model": "claude-haiku-4.5", "statusCode": 529, "errorMessage": "Overloaded", "errorType": "overloaded"})
	case "limit":
		w.event(s, now, "session.error", m{"errorType": "rate_limit", "message": "You have no requests left this month.", "statusCode": 429})
	case "compact":
		w.event(s, now, "session.compaction_start", m{"currentTokens": 90000, "tokenLimit": 100000, "trigger": "threshold"})
		w.event(s, now, "session.compaction_complete", m{"success": true, "preCompactionTokens": 90000, "postCompactionTokens": 5000, "summaryContent": s.Text})
	default:
		return false
	}
	return true
}

// claudeStream writes what `claude -p --output-format stream-json` prints.
type claudeStream struct {
	record
	session string
	reply   map[string]string
	calls   map[string]step
}

func newClaudeStream(session string) *claudeStream {
	return &claudeStream{session: session, reply: map[string]string{}, calls: map[string]step{}}
}

func (w *claudeStream) line(s step, now time.Time, rec m) {
	rec["session_id"], rec["uuid"] = w.session, w.id(w.session[:24]+"00000000")
	if rec["type"] == "user" || rec["type"] == "assistant" {
		if rec["parent_tool_use_id"] = nil; s.Lane != "" {
			rec["parent_tool_use_id"] = "toolu_" + w.session[:4] + s.Lane
		}
	}
	w.add("/var/log/claude/"+w.session+".jsonl", now, frame.Frame{Kind: frame.Line, Data: encode(rec)}, false)
}

func (w *claudeStream) assistant(s step, now time.Time, stop any, block m) {
	if w.reply[s.Lane] == "" {
		w.reply[s.Lane] = w.id("msg_" + w.session[:4])
	}
	w.line(s, now, m{"type": "assistant", "message": m{"model": "claude-sonnet-4-5-20250929", "id": w.reply[s.Lane], "type": "message", "role": "assistant", "content": []any{block}, "stop_reason": stop, "stop_sequence": nil,
		"usage": m{"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 3}}})
}

func (w *claudeStream) write(s step, now time.Time) bool {
	call := "toolu_" + w.session[:4] + s.ID
	switch s.What {
	case "user":
		if w.n == 0 {
			w.line(s, now, m{"type": "system", "subtype": "init", "cwd": "/srv/quarry", "tools": []any{"Task", "Bash"}, "mcp_servers": []any{}, "model": "claude-sonnet-4-5-20250929", "permissionMode": "default", "claude_code_version": "2.1.230"})
		}
		w.line(s, now, m{"type": "user", "message": m{"role": "user", "content": s.Text}})
	case "begin":
		d := w.calls[s.Lane]
		w.line(s, now, m{"type": "system", "subtype": "task_started", "task_id": "a" + w.session[:12] + s.Lane, "tool_use_id": "toolu_" + w.session[:4] + s.Lane, "description": "Ask", "task_type": "local_agent", "subagent_type": d.Name, "prompt": d.Text})
		w.line(s, now, m{"type": "user", "message": m{"role": "user", "content": []any{m{"type": "text", "text": d.Text}}}})
	case "text":
		w.assistant(s, now, nil, m{"type": "text", "text": s.Text})
	case "final":
		w.assistant(s, now, "end_turn", m{"type": "text", "text": s.Text})
		if w.reply[s.Lane] = ""; s.Lane == "" {
			w.line(s, now, m{"type": "result", "subtype": "success", "is_error": false, "duration_ms": 8100, "duration_api_ms": 7900, "num_turns": 2, "result": s.Text})
		}
	case "call":
		w.assistant(s, now, nil, m{"type": "tool_use", "id": call, "name": s.Name, "input": raw(s.Text)})
	case "delegate":
		w.calls[s.ID] = s
		w.assistant(s, now, nil, m{"type": "tool_use", "id": call, "name": "Agent", "input": m{"subagent_type": s.Name, "description": "Ask", "prompt": s.Text}})
	case "result", "error":
		w.reply[s.Lane] = ""
		rec := m{"type": "user", "message": m{"role": "user", "content": []any{m{"tool_use_id": call, "type": "tool_result", "content": s.Text, "is_error": s.What == "error"}}}}
		if w.calls[s.ID].What == "delegate" {
			rec["tool_use_result"] = m{"status": "completed", "agentId": "a" + w.session[:12] + s.ID, "content": []any{m{"type": "text", "text": s.Text}}}
		}
		w.line(s, now, rec)
	case "retry":
		w.line(s, now, m{"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": waits(s, time.Second).Milliseconds(), "error_status": 529, "error": "overloaded"})
	default:
		return false
	}
	return true
}

// waits is how long a retry says that it waits: the duration with which its text begins.
func waits(s step, otherwise time.Duration) time.Duration {
	first, _, _ := strings.Cut(s.Text, " ")
	if d, err := time.ParseDuration(first); err == nil {
		return d
	}
	return otherwise
}

// acp writes the recording of `earshot wrap` between an editor and its agent.
type acp struct {
	record
	session string
	prompt  int // the request that is going on
	asked   int
	last    string // call
	tools   map[string]string
}

func newACP(session string) *acp { return &acp{session: session, tools: map[string]string{}} }

func (w *acp) line(now time.Time, dir string, data m) {
	data["jsonrpc"] = "2.0"
	w.add("/srv/quarry/data/wrap/acp/"+w.session+".jsonl", now, frame.Frame{Kind: frame.Line, Data: encode(m{"t": stamp(now), "dir": dir, "frame": data})}, false)
}

func (w *acp) update(now time.Time, update m) {
	w.line(now, "in", m{"method": "session/update", "params": m{"sessionId": w.session, "update": update}})
}

func (w *acp) write(s step, now time.Time) bool {
	call := "toolu_" + w.session[:8] + s.ID
	meta := m{"claudeCode": m{"toolName": w.tools[s.ID]}}
	switch s.What {
	case "user":
		if w.prompt == 0 {
			w.line(now, "out", m{"id": 1, "method": "initialize", "params": m{"protocolVersion": 1, "clientCapabilities": m{}}})
			w.line(now, "in", m{"id": 1, "result": m{"protocolVersion": 1, "agentInfo": m{"name": "quarry-adapter", "version": "0.9.2"}, "authMethods": []any{}}})
			w.line(now, "out", m{"id": 2, "method": "session/new", "params": m{"cwd": "/srv/quarry", "mcpServers": []any{}}})
			w.line(now, "in", m{"id": 2, "result": m{"sessionId": w.session}})
			w.prompt = 2
		}
		w.prompt++
		w.line(now, "out", m{"id": w.prompt, "method": "session/prompt", "params": m{"sessionId": w.session, "prompt": []any{m{"type": "text", "text": s.Text}}}})
	case "text", "think":
		kind := map[string]string{"text": "agent_message_chunk", "think": "agent_thought_chunk"}[s.What]
		w.update(now, m{"sessionUpdate": kind, "content": m{"type": "text", "text": s.Text}})
	case "final":
		w.update(now, m{"sessionUpdate": "agent_message_chunk", "content": m{"type": "text", "text": s.Text}})
		w.line(now, "in", m{"id": w.prompt, "result": m{"stopReason": "end_turn"}})
	case "call":
		w.tools[s.ID], w.last = s.Name, s.ID
		w.update(now, m{"sessionUpdate": "tool_call", "toolCallId": call, "title": s.Name, "kind": "execute", "status": "pending", "rawInput": raw(s.Text), "content": []any{}, "_meta": m{"claudeCode": m{"toolName": s.Name}}})
	case "progress":
		w.update(now, m{"sessionUpdate": "tool_call_update", "toolCallId": "toolu_" + w.session[:8] + w.last, "status": "in_progress", "content": []any{m{"type": "content", "content": m{"type": "text", "text": s.Text}}}})
	case "result", "error":
		w.update(now, m{"sessionUpdate": "tool_call_update", "toolCallId": call, "status": map[string]string{"result": "completed", "error": "failed"}[s.What], "rawOutput": s.Text, "_meta": meta})
	case "ask":
		w.asked++
		w.line(now, "in", m{"id": 700 + w.asked, "method": "session/request_permission", "params": m{"sessionId": w.session, "toolCall": m{"toolCallId": call, "title": w.tools[s.ID]},
			"options": []any{m{"kind": "allow_once", "name": "Allow this", "optionId": "allow"}}}})
	case "allow":
		w.line(now, "out", m{"id": 700 + w.asked, "result": m{"outcome": m{"outcome": "selected", "optionId": "allow"}}})
	case "interrupt":
		w.line(now, "out", m{"method": "session/cancel", "params": m{"sessionId": w.session}})
		w.line(now, "in", m{"id": w.prompt, "result": m{"stopReason": "cancelled"}})
	default:
		return false
	}
	return true
}
