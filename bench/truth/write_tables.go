package truth

import (
	"fmt"
	"slices"

	"github.com/earshot-dev/earshot/core/frame"
)

// Formats of databases are written as the rows that the source of SQLite reads, each when it is inserted or changed.

// rows is the stream of a database.
type rows struct{ tape }

func (t *rows) row(seconds float64, table string, row object) {
	t.add(seconds, frame.Frame{Kind: frame.Line, Data: encode(object{"table": table, "row": row})})
}

// joined are the tokens where all input is one class, and all output.
func joined(t Tokens) Tokens {
	return Tokens{Input: t.Input + t.CacheRead + t.CacheWrite, Output: t.Output + t.Reasoning}
}

// cursor writes the conversations of Cursor. When a call ended is not in them.
func cursor() format {
	return format{name: "cursor", write: writeCursor, lens: lens{
		can: []feature{calls, parallel, failure, delegation, thoughts, interrupted, turns}, noTimes: true, tokens: joined, tool: named("task_v2"),
		result: cursorResult,
	}}
}

// cursorResult is the result of a call, a JSON text.
func cursorResult(w *Work) string {
	if w.Delegate != nil {
		return text(object{"agentId": "conv-" + w.Delegate.ID, "text": w.Result})
	}
	return text(object{"output": w.Result})
}

func writeCursor(s *Scenario) []Stream {
	t := &rows{tape{Stream: Stream{Origin: "/home/ada/.config/Cursor/User/globalStorage/state.vscdb"}}}
	n := 0
	conversation := func(seconds float64, name string, d *Work, up string) (bubble func(seconds float64, typ int, o object) string) {
		var headers list
		write := func(seconds float64) {
			value := object{"_v": 16, "composerId": name, "name": "Locks", "createdAt": millis(0), "status": "completed", "unifiedMode": "agent",
				"modelConfig": object{"modelName": "sand-1"}, "fullConversationHeadersOnly": append(list{}, headers...)}
			if d != nil {
				value["subagentInfo"] = object{"subagentType": 3, "subagentTypeName": d.Delegate.Agent, "parentComposerId": up, "rootParentConversationId": up, "toolCallId": d.ID}
			}
			t.row(seconds, "cursorDiskKV", object{"key": "composerData:" + name, "value": value})
		}
		write(seconds)
		return func(seconds float64, typ int, o object) string {
			id, ok := o["bubbleId"].(string)
			if !ok {
				n++
				id = fmt.Sprint("b", n, "-", s.session())
				headers = append(headers, object{"bubbleId": id, "type": typ})
				write(seconds)
			}
			o["_v"], o["type"], o["bubbleId"] = 3, typ, id
			if o["createdAt"] == nil {
				o["createdAt"] = stamp(seconds)
			}
			t.row(seconds, "cursorDiskKV", object{"key": "bubbleId:" + name + ":" + id, "value": o})
			return id
		}
	}
	type writer func(seconds float64, typ int, o object) string
	var work func(name string, bubble writer, rs []Response)
	work = func(name string, bubble writer, rs []Response) {
		for i := range rs {
			r := &rs[i]
			if r.Think != "" {
				bubble(r.From, 2, object{"text": "", "thinking": object{"text": r.Think}})
			}
			all := joined(r.Tokens)
			bubble(r.To, 2, object{"text": r.Text, "tokenCount": object{"inputTokens": all.Input, "outputTokens": all.Output}})
			for _, w := range r.Work {
				args := input(w)
				if d := w.Delegate; d != nil {
					args = object{"prompt": d.Task, "subagentType": d.Agent, "description": w.Argument}
				}
				call := func(status string) object {
					return object{"tool": 40, "name": toolName(w, "task_v2"), "toolCallId": w.ID, "status": status, "params": text(args), "rawArgs": text(args)}
				}
				id := bubble(w.From, 2, object{"text": "", "toolFormerData": call("running")})
				if d := w.Delegate; d != nil {
					child := "conv-" + d.ID
					b := conversation(w.From+0.1, child, w, name)
					b(w.From+0.2, 1, object{"text": d.Task})
					work(child, b, d.Responses)
				}
				if w.Open {
					continue
				}
				status := "completed"
				if w.Failed {
					status = "error"
				}
				done := call(status)
				done["result"] = cursorResult(w)
				bubble(w.To, 2, object{"bubbleId": id, "createdAt": stamp(w.From), "text": "", "toolFormerData": done})
			}
		}
	}
	name := "conv-" + s.session()
	main := conversation(0, name, nil, "")
	for _, turn := range s.Turns {
		main(turn.At, 1, object{"text": turn.Prompt})
		work(name, main, turn.Responses)
	}
	return []Stream{t.stream()}
}

// cursorPrinted writes what cursor-agent --output-format stream-json prints: one run for each turn, which resumes the session. A
// prompt that is repeated cannot be told from another one.
func cursorPrinted() format {
	return format{name: "cursor", variant: "printed", write: writeCursorPrinted, lens: lens{
		can: []feature{calls, parallel, failure, thoughts, turns}, tokens: unsplit, result: cursorResult,
	}}
}

func writeCursorPrinted(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/var/log/cursor/" + s.Name + ".jsonl"}}
	line := func(seconds float64, typ string, o object) {
		o["type"], o["session_id"] = typ, s.session()
		t.line(seconds, o)
	}
	for i, turn := range s.Turns {
		line(turn.At, "system", object{"subtype": "init", "cwd": "/srv/locks", "model": "Sand 1", "permissionMode": "default", "apiKeySource": "login"})
		line(turn.At, "user", object{"message": object{"role": "user", "content": list{object{"type": "text", "text": turn.Prompt}}}})
		var sum Tokens
		var said string
		end := turn.At
		for i := range turn.Responses {
			r := &turn.Responses[i]
			sum.add(r.Tokens)
			said += r.Text
			if r.Think != "" {
				line(r.From, "thinking", object{"subtype": "delta", "text": r.Think, "timestamp_ms": millis(r.From)})
				line(r.From, "thinking", object{"subtype": "completed", "timestamp_ms": millis(r.From)})
			}
			if r.Text != "" {
				line(r.To, "assistant", object{"message": object{"role": "assistant", "content": list{object{"type": "text", "text": r.Text}}}})
			}
			for _, w := range r.Work {
				call := func(seconds float64, subtype string, result any) {
					f := object{"name": w.Name, "arguments": text(input(w))}
					if result != nil {
						f["result"] = result
					}
					line(seconds, "tool_call", object{"subtype": subtype, "call_id": w.ID, "timestamp_ms": millis(seconds), "tool_call": object{"function": f}})
				}
				call(w.From, "started", nil)
				how := "success"
				if w.Failed {
					how = "error"
				}
				call(w.To, "completed", object{how: object{"output": w.Result}})
			}
			end = max(r.To, lastResult(r, nil))
		}
		line(end, "result", object{"subtype": "success", "is_error": false, "duration_ms": 900, "result": said, "request_id": fmt.Sprint("req-", i, "-", s.session()),
			"usage": object{"inputTokens": sum.Input, "outputTokens": sum.Output + sum.Reasoning, "cacheReadTokens": sum.CacheRead, "cacheWriteTokens": sum.CacheWrite}})
	}
	return []Stream{t.stream()}
}

// goose writes the sessions of Goose, whose times are whole seconds, and whose tokens are those of a session.
func goose() format {
	return format{name: "goose", write: writeGoose, lens: lens{
		can: []feature{calls, parallel, failure, delegation, thoughts, interrupted, turns}, noTimes: true, tokens: joined, tool: named("delegate"),
	}}
}

func writeGoose(s *Scenario) []Stream {
	t := &rows{tape{Stream: Stream{Origin: "/home/ada/.local/share/goose/sessions/sessions.db"}}}
	n := 0
	type writer func(seconds float64, role string, sum *Tokens, content ...any)
	open := func(seconds float64, name string, up string) writer {
		write := func(seconds float64, sum *Tokens) {
			row := object{"id": name, "name": "Locks", "session_type": "user", "working_dir": "/srv/locks", "created_at": "2026-03-04 09:00:00", "updated_at": "2026-03-04 09:00:00",
				"accumulated_input_tokens": nil, "accumulated_output_tokens": nil, "provider_name": "anthropic", "model_config_json": object{"model_name": "kelp-2"}, "goose_mode": "auto"}
			if up != "" {
				row["session_type"], row["parent_session_id"] = "sub_agent", up
			}
			if sum != nil {
				all := joined(*sum)
				row["accumulated_input_tokens"], row["accumulated_output_tokens"] = all.Input, all.Output
			}
			t.row(seconds, "sessions", row)
		}
		write(seconds, nil)
		return func(seconds float64, role string, sum *Tokens, content ...any) {
			n++
			t.row(seconds, "messages", object{"id": n, "session_id": name, "role": role, "content_json": content, "created_timestamp": at(seconds).Unix(), "timestamp": "2026-03-04 09:00:00",
				"metadata_json": object{"userVisible": true, "agentVisible": true}, "message_id": fmt.Sprint("msg_", s.session()[4:8], n)})
			if sum != nil {
				write(seconds+0.001, sum)
			}
		}
	}
	said := func(words string) object { return object{"type": "text", "text": words} }
	var work func(name string, say writer, sum *Tokens, rs []Response)
	work = func(name string, say writer, sum *Tokens, rs []Response) {
		for i := range rs {
			r := &rs[i]
			sum.add(r.Tokens)
			var content list
			if r.Think != "" {
				content = append(content, object{"type": "thinking", "thinking": r.Think, "signature": "c2ln"})
			}
			if r.Text != "" {
				content = append(content, said(r.Text))
			}
			for _, w := range r.Work {
				args := input(w)
				if d := w.Delegate; d != nil {
					args = object{"instructions": d.Task, "source": d.Agent}
				}
				content = append(content, object{"type": "toolRequest", "id": w.ID, "toolCall": object{"status": "success", "value": object{"name": toolName(w, "delegate"), "arguments": args}}})
			}
			total := *sum
			say(r.To, "assistant", &total, content...)
			for _, w := range r.Work {
				value := object{"content": list{said(w.Result)}, "isError": w.Failed}
				if d := w.Delegate; d != nil {
					child := "20260304_" + d.ID
					value["_meta"] = object{"subagent_session_id": child}
					own := open(w.From+0.1, child, name)
					own(w.From+0.2, "user", nil, said(d.Task))
					work(child, own, &Tokens{}, d.Responses)
				}
				if !w.Open {
					say(w.To, "user", nil, object{"type": "toolResponse", "id": w.ID, "toolResult": object{"status": "success", "value": value}})
				}
			}
		}
	}
	name := "20260304_" + s.session()[4:8]
	main, sum := open(0, name, ""), &Tokens{}
	for _, turn := range s.Turns {
		main(turn.At, "user", nil, said(turn.Prompt))
		work(name, main, sum, turn.Responses)
	}
	return []Stream{t.stream()}
}

// crush writes the rows of Crush, whose times are in seconds and which count no tokens of a response.
func crush() format {
	return format{name: "crush", write: writeCrush, lens: lens{
		can: []feature{calls, parallel, failure, delegation, thoughts, interrupted, turns, numbering}, noTimes: true, noTokens: true, tool: named("agent"),
	}}
}

func writeCrush(s *Scenario) []Stream {
	t := &rows{tape{Stream: Stream{Origin: "/srv/locks/.crush/crush.db"}}}
	n := 0
	open := func(seconds float64, name string, up any) {
		t.row(seconds, "sessions", object{"id": name, "parent_session_id": up, "title": "Locks", "message_count": 0, "prompt_tokens": 900, "completion_tokens": 9, "cost": 0.01,
			"created_at": at(seconds).Unix(), "updated_at": at(seconds).Unix(), "summary_message_id": nil, "todos": nil})
	}
	part := func(typ string, data object) object { return object{"type": typ, "data": data} }
	name := func() string { n++; return s.session()[:24] + fmt.Sprintf("%012x", n) }
	write := func(seconds, began float64, id, session, role string, parts ...any) {
		row := object{"id": id, "session_id": session, "role": role, "parts": parts, "model": "", "provider": nil, "is_summary_message": 0,
			"created_at": at(began).Unix(), "updated_at": at(seconds).Unix(), "finished_at": nil}
		if role == "assistant" {
			row["model"], row["provider"] = "claude-sonnet-4-5", "anthropic"
		}
		t.row(seconds, "messages", row)
	}
	stop := part("finish", object{"reason": "stop", "time": 0})
	var work func(session string, rs []Response)
	work = func(session string, rs []Response) {
		for i := range rs {
			r, id := &rs[i], name()
			var parts list
			if r.Think != "" {
				parts = append(parts, part("reasoning", object{"thinking": r.Think, "signature": "c2ln", "started_at": at(r.From).Unix(), "finished_at": at(r.To).Unix()}))
			}
			if r.Text != "" {
				parts = append(parts, part("text", object{"text": r.Text}))
			}
			reason, end := "end_turn", r.To
			for _, w := range r.Work {
				args := input(w)
				if d := w.Delegate; d != nil {
					args = object{"prompt": d.Task}
				}
				parts = append(parts, part("tool_call", object{"id": w.ID, "name": toolName(w, "agent"), "input": text(args), "finished": true}))
				reason, end = "tool_use", max(end, w.To)
			}
			write(r.To, r.From, id, session, "assistant", parts...)
			for _, w := range r.Work {
				if d := w.Delegate; d != nil {
					child := id + "$$" + w.ID
					open(w.From+0.1, child, session)
					write(w.From+0.2, w.From+0.2, name(), child, "user", part("text", object{"text": d.Task}), stop)
					work(child, d.Responses)
				}
				if !w.Open {
					write(w.To, w.To, name(), session, "tool", part("tool_result", object{"tool_call_id": w.ID, "name": toolName(w, "agent"), "content": w.Result, "data": "", "mime_type": "", "metadata": "", "is_error": w.Failed}), stop)
				}
			}
			if !slices.ContainsFunc(r.Work, func(w *Work) bool { return w.Open }) {
				write(end+0.001, r.From, id, session, "assistant", append(parts, part("finish", object{"reason": reason, "time": at(end).Unix()}))...)
			}
		}
	}
	open(0, s.session(), nil)
	for _, turn := range s.Turns {
		write(turn.At, turn.At, name(), s.session(), "user", part("text", object{"text": turn.Prompt}), stop)
		work(s.session(), turn.Responses)
	}
	return []Stream{t.stream()}
}

// hermes writes the sessions of Hermes. Whether a call failed is not in them, and a call begins with its response.
func hermes() format {
	return format{name: "hermes", write: writeHermes, lens: lens{
		can: []feature{calls, parallel, delegation, thoughts, interrupted, turns}, calledAt: completed, tool: named("delegate_task"),
		result: hermesResult,
	}}
}

func hermesResult(w *Work) string {
	if w.Delegate != nil {
		return text(object{"results": list{object{"summary": w.Result}}})
	}
	return w.Result
}

func writeHermes(s *Scenario) []Stream {
	t := &rows{tape{Stream: Stream{Origin: "/home/ada/.hermes/state.db"}}}
	n := 0
	clock := func(seconds float64) float64 { return float64(at(seconds).UnixMilli()) / 1000 }
	type writer func(seconds float64, role string, sum *Tokens, o object)
	open := func(seconds float64, name, up string) writer {
		write := func(at float64, u Tokens) {
			row := object{"id": name, "source": "cli", "model": "heron-4", "model_config": nil, "parent_session_id": nil, "started_at": clock(seconds), "ended_at": nil, "end_reason": nil,
				"input_tokens": u.Input, "output_tokens": u.Output + u.Reasoning, "cache_read_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite, "reasoning_tokens": u.Reasoning,
				"cwd": "/srv/locks", "title": "Locks", "api_call_count": 1}
			if up != "" {
				row["source"], row["model_config"], row["parent_session_id"] = "subagent", object{"_delegate_from": up}, up
			}
			t.row(at, "sessions", row)
		}
		write(seconds, Tokens{})
		return func(seconds float64, role string, sum *Tokens, o object) {
			n++
			o["id"], o["session_id"], o["role"], o["timestamp"] = n, name, role, clock(seconds)
			t.row(seconds, "messages", o)
			if sum != nil {
				write(seconds+0.001, *sum)
			}
		}
	}
	var work func(name string, say writer, sum *Tokens, rs []Response)
	work = func(name string, say writer, sum *Tokens, rs []Response) {
		for i := range rs {
			r := &rs[i]
			sum.add(r.Tokens)
			o := object{"content": r.Text, "finish_reason": "stop"}
			if r.Think != "" {
				o["reasoning"], o["reasoning_content"] = r.Think, r.Think
			}
			var made list
			for _, w := range r.Work {
				args := input(w)
				if d := w.Delegate; d != nil {
					args = object{"goal": d.Task}
				}
				made = append(made, object{"id": w.ID, "call_id": w.ID, "type": "function", "function": object{"name": toolName(w, "delegate_task"), "arguments": text(args)}})
			}
			if made != nil {
				o["tool_calls"], o["finish_reason"] = made, "tool_calls"
			}
			total := *sum
			say(r.To, "assistant", &total, o)
			for _, w := range r.Work {
				if d := w.Delegate; d != nil {
					child := "20260304_" + d.ID
					own := open(w.From+0.1, child, name)
					own(w.From+0.2, "user", nil, object{"content": d.Task})
					work(child, own, &Tokens{}, d.Responses)
				}
				if !w.Open {
					say(w.To, "tool", nil, object{"content": hermesResult(w), "tool_call_id": w.ID, "tool_name": toolName(w, "delegate_task")})
				}
			}
		}
	}
	name := "20260304_" + s.session()[4:8]
	main, sum := open(0, name, ""), &Tokens{}
	for _, turn := range s.Turns {
		main(turn.At, "user", nil, object{"content": turn.Prompt})
		work(name, main, sum, turn.Responses)
	}
	return []Stream{t.stream()}
}

// copilot writes the log of events of Copilot CLI. All tokens but those of the output are in the end of the session. A call
// begins with the message that makes it, before it waits for a permission.
func copilot() format {
	return format{name: "copilot", write: writeCopilot, lens: lens{
		can: []feature{calls, parallel, failure, delegation, thoughts, interrupted, turns, repetition}, tokens: unsplit, tool: named("task"), calledAt: completed,
	}}
}

func writeCopilot(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/home/ada/.copilot/session-state/" + s.session() + "/events.jsonl"}, twice: s.Twice}
	n := 0
	event := func(seconds float64, typ, agent string, data object) {
		n++
		o := object{"type": typ, "data": data, "id": id(3000 + n), "timestamp": stamp(seconds), "parentId": id(3000 + n - 1)}
		if agent != "" {
			o["agentId"] = agent
			if typ != "user.message" {
				data["parentToolCallId"] = agent
			}
		}
		t.line(seconds, o)
	}
	event(0, "session.start", "", object{"sessionId": s.session(), "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.74", "startTime": stamp(0), "context": object{"cwd": "/srv/locks"}})
	var sum Tokens
	replies, last := 0, 0.0
	var work func(interaction, agent string, rs []Response)
	work = func(interaction, agent string, rs []Response) {
		for i := range rs {
			r := &rs[i]
			sum.add(r.Tokens)
			last = max(last, r.To, lastResult(r, nil))
			if agent == "" {
				event(r.From, "assistant.turn_start", "", object{"turnId": fmt.Sprint(i), "interactionId": interaction})
			}
			made := list{}
			for _, w := range r.Work {
				made = append(made, object{"toolCallId": w.ID, "name": toolName(w, "task"), "arguments": copilotInput(w), "type": "function"})
			}
			replies++
			o := object{"messageId": id(4000 + replies), "content": r.Text, "toolRequests": made, "interactionId": interaction, "outputTokens": r.Tokens.Output + r.Tokens.Reasoning, "model": "claude-sonnet-4.6"}
			if r.Think != "" {
				o["reasoningText"] = r.Think
			}
			event(r.To, "assistant.message", agent, o)
			for _, w := range r.Work {
				event(w.From, "tool.execution_start", agent, object{"toolCallId": w.ID, "toolName": toolName(w, "task"), "arguments": copilotInput(w)})
				if d := w.Delegate; d != nil {
					event(w.From+0.1, "subagent.started", w.ID, object{"toolCallId": w.ID, "agentName": d.Agent, "agentDisplayName": d.Agent})
					event(w.From+0.2, "user.message", w.ID, object{"content": d.Task, "interactionId": interaction, "source": "agent-" + s.session()})
					work(interaction, w.ID, d.Responses)
					event(w.To-0.1, "subagent.completed", w.ID, object{"toolCallId": w.ID, "agentName": d.Agent, "totalToolCalls": 1})
				}
				switch {
				case w.Open:
				case w.Failed:
					event(w.To, "tool.execution_complete", agent, object{"toolCallId": w.ID, "success": false, "error": object{"message": w.Result, "code": "failure"}, "interactionId": interaction})
				default:
					event(w.To, "tool.execution_complete", agent, object{"toolCallId": w.ID, "success": true, "result": object{"content": w.Result}, "interactionId": interaction})
				}
			}
			if agent == "" {
				event(max(r.To, lastResult(r, nil)), "assistant.turn_end", "", object{"turnId": fmt.Sprint(i)})
			}
		}
	}
	for i, turn := range s.Turns {
		interaction := id(600 + i)
		event(turn.At, "user.message", "", object{"content": turn.Prompt, "transformedContent": turn.Prompt, "attachments": list{}, "interactionId": interaction})
		work(interaction, "", turn.Responses)
	}
	event(last+5, "session.shutdown", "", object{"shutdownType": "routine", "sessionStartTime": millis(0), "modelMetrics": object{"claude-sonnet-4.6": object{"requests": object{"count": replies},
		"usage": object{"inputTokens": sum.Input + sum.CacheRead + sum.CacheWrite, "outputTokens": sum.Output + sum.Reasoning, "cacheReadTokens": sum.CacheRead, "cacheWriteTokens": sum.CacheWrite}}}})
	return []Stream{t.stream()}
}

func copilotInput(w *Work) object {
	if d := w.Delegate; d != nil {
		return object{"agent_type": d.Agent, "description": w.Argument, "prompt": d.Task}
	}
	return input(w)
}

// codexServer writes the recordings of connections of Codex's app server.
func codexServer() format {
	return format{name: "codex-app-server", write: writeCodexServer, lens: lens{
		can: []feature{calls, parallel, failure, retry, thoughts, interrupted, turns}, tokens: uncharged,
		tool: func(w *Work) string { return "mcp__gauges__" + w.Name },
	}}
}

func writeCodexServer(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/var/lib/earshot/wrap/codex-app-server/" + s.Name + ".jsonl"}}
	line := func(seconds float64, dir string, o object) {
		t.line(seconds, object{"t": stamp(seconds), "dir": dir, "frame": o})
	}
	n := 0
	var turnID string
	note := func(seconds float64, method string, o object) {
		o["threadId"], o["turnId"] = s.session(), turnID
		line(seconds, "in", object{"method": method, "params": o})
	}
	item := func(seconds float64, o object, method string) {
		note(seconds, "item/"+method, object{"item": o, map[string]string{"started": "startedAtMs", "completed": "completedAtMs"}[method]: millis(seconds)})
	}
	said := func(seconds float64, typ string, o object) {
		n++
		o["type"], o["id"] = typ, fmt.Sprint(typ, "_", s.session()[4:8], n)
		item(seconds, o, "completed")
	}
	usage := func(t Tokens) object {
		u := openAIUsage(t)
		return object{"totalTokens": u["total_tokens"], "inputTokens": u["input_tokens"], "cachedInputTokens": u["cached_input_tokens"], "outputTokens": u["output_tokens"], "reasoningOutputTokens": u["reasoning_output_tokens"]}
	}
	line(0, "in", object{"method": "thread/started", "params": object{"thread": object{"id": s.session(), "sessionId": s.session(), "modelProvider": "openai", "cwd": "/srv/locks", "cliVersion": "0.151.0"}}})
	var total Tokens
	for i, turn := range s.Turns {
		turnID = id(500 + i)
		line(turn.At, "in", object{"method": "turn/started", "params": object{"threadId": s.session(), "turn": object{"id": turnID, "items": list{}, "status": "inProgress", "startedAt": at(turn.At).Unix()}}})
		said(turn.At, "userMessage", object{"content": list{object{"type": "text", "text": turn.Prompt}}})
		end := 0.0
		for j := range turn.Responses {
			r := &turn.Responses[j]
			if r.Retried {
				note(r.From-3, "error", object{"error": object{"message": "Reconnecting... 1/5"}, "willRetry": true})
			}
			if r.Think != "" {
				said(r.To, "reasoning", object{"summary": list{r.Think}, "content": list{}})
			}
			if r.Text != "" {
				said(r.To, "agentMessage", object{"text": r.Text, "phase": "commentary"})
			}
			total.add(r.Tokens)
			end = r.To
			for _, w := range r.Work {
				call := object{"type": "mcpToolCall", "id": w.ID, "server": "gauges", "tool": w.Name, "status": "inProgress", "arguments": input(w), "result": nil, "error": nil}
				item(w.From, call, "started")
				if end = -1; w.Open {
					continue
				}
				done := object{"type": "mcpToolCall", "id": w.ID, "server": "gauges", "tool": w.Name, "status": "completed", "arguments": input(w), "error": nil,
					"result": object{"content": list{object{"type": "text", "text": w.Result}}}}
				if w.Failed {
					done["status"], done["result"], done["error"] = "failed", nil, object{"message": w.Result}
				}
				item(w.To, done, "completed")
			}
			note(called(r)+0.001, "thread/tokenUsage/updated", object{"tokenUsage": object{"total": usage(total), "last": usage(r.Tokens), "modelContextWindow": 258400}})
		}
		if end > 0 {
			line(end+0.1, "in", object{"method": "turn/completed", "params": object{"threadId": s.session(), "turn": object{"id": turnID, "items": list{}, "status": "completed", "startedAt": at(turn.At).Unix()}}})
		}
	}
	return []Stream{t.stream()}
}
