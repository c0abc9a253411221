package truth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
)

// claudeCode writes the transcripts of a session and of its sub-agents.
func claudeCode() format {
	return format{name: "claude-code", write: writeClaudeCode, lens: lens{
		can:    []feature{calls, parallel, failure, delegation, retry, repetition, thoughts, interrupted, compaction, turns, forking},
		tokens: unsplit, tool: named("Agent"),
	}}
}

func writeClaudeCode(s *Scenario) (out []Stream) {
	const project = "/home/ada/.claude/projects/-srv-locks/"
	var tapes []*tape
	session, n := s.session(), 0
	own := session[4:8]
	id := func(n int) string { // of no other conversation: a record that two have is a copy
		return fmt.Sprintf("7a3c%04x-%s-4000-8000-0000000000aa", n, own)
	}
	open := func(origin string) *tape {
		t := &tape{Stream: Stream{Origin: project + origin}, twice: s.Twice}
		tapes = append(tapes, t)
		return t
	}
	line := func(t *tape, agent string, seconds float64, o object) {
		n++
		o["uuid"], o["parentUuid"], o["sessionId"], o["timestamp"] = id(n), nil, session, stamp(seconds)
		if n > 1 && len(t.Frames) > 0 {
			o["parentUuid"] = id(n - 1)
		}
		o["isSidechain"], o["cwd"], o["version"], o["userType"] = agent != "", "/srv/locks", "2.1.230", "external"
		if agent != "" {
			o["agentId"] = agent
		}
		t.line(seconds, o)
	}
	responses := 0
	var work func(t *tape, agent string, list []Response)
	work = func(t *tape, agent string, rs []Response) {
		for i := range rs {
			r := &rs[i]
			responses++
			reply := fmt.Sprintf("msg_01%s%02d", s.session()[4:8], responses)
			left := len(r.Work)
			for _, part := range []string{r.Think, r.Text} {
				if part != "" {
					left++
				}
			}
			block := func(seconds float64, b object) {
				output := uint64(1) // of a line that is written while the model goes on
				if left--; left == 0 {
					output = r.Tokens.Output + r.Tokens.Reasoning
				}
				var stop any
				switch {
				case b["type"] == "tool_use":
					stop = "tool_use"
				case len(r.Work) == 0 && b["type"] == "text":
					stop = "end_turn"
				}
				line(t, agent, seconds, object{"type": "assistant", "requestId": "req_" + reply, "message": object{
					"id": reply, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "content": list{b}, "stop_reason": stop,
					"usage": object{"input_tokens": r.Tokens.Input, "output_tokens": output,
						"cache_read_input_tokens": r.Tokens.CacheRead, "cache_creation_input_tokens": r.Tokens.CacheWrite},
				}})
			}
			if r.Retried {
				line(t, agent, r.From-3, object{"type": "system", "subtype": "api_error", "level": "error", "retryInMs": 2500, "retryAttempt": 1, "maxRetries": 10,
					"error": object{"status": 529, "error": object{"type": "error", "error": object{"type": "overloaded_error", "message": "Overloaded"}}}})
			}
			said(r, block)
			for _, w := range r.Work {
				block(w.From, object{"type": "tool_use", "id": w.ID, "name": toolName(w, "Agent"), "input": input(w)})
			}
			for _, w := range r.Work {
				if d := w.Delegate; d != nil {
					child := open(s.session() + "/subagents/agent-" + d.ID + ".jsonl")
					line(child, d.ID, w.From+0.1, object{"type": "user", "message": object{"role": "user", "content": d.Task}})
					work(child, d.ID, d.Responses)
				}
				if w.Open {
					continue
				}
				o := object{"type": "user", "message": object{"role": "user", "content": list{
					object{"type": "tool_result", "tool_use_id": w.ID, "content": w.Result, "is_error": w.Failed}}}}
				if w.Delegate != nil {
					o["toolUseResult"] = object{"status": "completed", "agentId": w.Delegate.ID, "content": list{object{"type": "text", "text": w.Result}}}
				}
				line(t, agent, w.To, o)
			}
		}
	}
	main := open(s.session() + ".jsonl")
	for i, t := range s.Turns {
		if s.Compact && i == 1 {
			line(main, "", t.At-2, object{"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "compactMetadata": object{"trigger": "auto", "preTokens": 9120}})
			line(main, "", t.At-1, object{"type": "user", "isCompactSummary": true, "isVisibleInTranscriptOnly": true,
				"message": object{"role": "user", "content": "This session is being continued from a previous conversation. The log was read."}})
		}
		if s.Forked && i == 1 {
			origin := main
			session = id(900)
			main = open(session + ".jsonl")
			for _, f := range origin.Frames {
				var o object
				decode(f.Data, &o)
				o["forkedFrom"] = object{"sessionId": o["sessionId"], "messageUuid": o["uuid"]}
				o["sessionId"] = session
				main.line(t.At-1, o)
			}
		}
		line(main, "", t.At, object{"type": "user", "message": object{"role": "user", "content": t.Prompt}})
		work(main, "", t.Responses)
	}
	for _, t := range tapes {
		out = append(out, t.stream())
	}
	return out
}

// claudeStream writes the output of headless runs, prompts replayed: one run for each turn, which resumes the session.
func claudeStream() format {
	return format{name: "claude-stream", write: writeClaudeStream, lens: lens{
		can: []feature{calls, parallel, failure, delegation, thoughts, interrupted, turns, repetition}, noTimes: true, tokens: unsplit, tool: named("Agent"),
	}}
}

func writeClaudeStream(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/var/log/claude/" + s.Name + ".jsonl"}, twice: s.Twice}
	n := 0
	line := func(seconds float64, up *Work, o object) {
		n++
		o["uuid"], o["session_id"], o["parent_tool_use_id"] = id(n), s.session(), nil
		if up != nil {
			o["parent_tool_use_id"] = up.ID
		}
		t.line(seconds, o)
	}
	responses := 0
	for i := range s.Turns {
		turn := &s.Turns[i]
		line(turn.At, nil, object{"type": "system", "subtype": "init", "cwd": "/srv/locks", "tools": list{"Agent"}, "model": "claude-sonnet-4-5-20250929", "permissionMode": "default", "claude_code_version": "2.1.230"})
		line(turn.At, nil, object{"type": "user", "message": object{"role": "user", "content": turn.Prompt}, "isReplay": true})
		last := turn.Responses[len(turn.Responses)-1]
		ends := len(last.Work) == 0
		var sum Tokens
		turn.each(func(r *Response, up *Work) {
			responses++
			reply, output := fmt.Sprintf("msg_02%s%02d", s.session()[4:8], responses), r.Tokens.Output+r.Tokens.Reasoning
			if up == nil {
				sum.add(r.Tokens)
				if ends {
					output = 1 // as it was when the response began; the result has the sum
				}
			}
			block := func(seconds float64, b object) {
				line(seconds, up, object{"type": "assistant", "message": object{
					"id": reply, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "content": list{b}, "stop_reason": nil,
					"usage": object{"input_tokens": r.Tokens.Input, "output_tokens": output,
						"cache_read_input_tokens": r.Tokens.CacheRead, "cache_creation_input_tokens": r.Tokens.CacheWrite}}})
			}
			said(r, block)
			for _, w := range r.Work {
				block(w.From, object{"type": "tool_use", "id": w.ID, "name": toolName(w, "Agent"), "input": input(w)})
				o := object{"type": "user", "message": object{"role": "user", "content": list{
					object{"type": "tool_result", "tool_use_id": w.ID, "content": w.Result, "is_error": w.Failed}}}}
				if d := w.Delegate; d != nil {
					line(w.From+0.1, w, object{"type": "user", "message": object{"role": "user", "content": list{object{"type": "text", "text": d.Task}}}})
					o["tool_use_result"] = object{"status": "completed", "agentId": d.ID, "content": list{object{"type": "text", "text": w.Result}}}
				}
				if !w.Open {
					line(w.To, up, o)
				}
			}
		})
		if ends {
			line(last.To+0.1, nil, object{"type": "result", "subtype": "success", "is_error": false, "num_turns": responses, "result": last.Text, "stop_reason": "end_turn",
				"usage": object{"input_tokens": sum.Input, "output_tokens": sum.Output + sum.Reasoning, "cache_read_input_tokens": sum.CacheRead, "cache_creation_input_tokens": sum.CacheWrite}})
		}
	}
	return []Stream{t.stream()}
}

// codexOutput is how the shell of Codex reports a command.
func codexOutput(w *Work) string {
	if !w.Failed {
		return w.Result
	}
	return "Exit code: 1\nWall time: 2.4 seconds\nOutput:\n" + w.Result
}

// codex writes rollouts, one for each thread.
func codex() format {
	return format{name: "codex", write: writeCodex, lens: lens{
		can:    []feature{calls, parallel, failure, retry, repetition, thoughts, interrupted, compaction, turns, forking},
		tokens: uncharged, result: codexOutput,
	}}
}

func openAIUsage(t Tokens) object {
	in, out := t.Input+t.CacheRead+t.CacheWrite, t.Output+t.Reasoning
	return object{"input_tokens": in, "cached_input_tokens": t.CacheRead, "output_tokens": out, "reasoning_output_tokens": t.Reasoning, "total_tokens": in + out}
}

// codexLine is a line of a rollout, with its members in the order of Codex: there are readers that depend on it.
type codexLine struct {
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Payload   object `json:"payload"`
}

func writeCodex(s *Scenario) (out []Stream) {
	rollout := func(session string) *tape {
		return &tape{Stream: Stream{Origin: "/home/ada/.codex/sessions/2026/03/04/rollout-2026-03-04T09-00-00-" + session + ".jsonl"}, twice: s.Twice}
	}
	t := rollout(s.session())
	line := func(seconds float64, typ string, payload object) {
		t.line(seconds, codexLine{stamp(seconds), typ, payload})
	}
	meta := object{"id": s.session(), "session_id": s.session(), "timestamp": stamp(0), "cwd": "/srv/locks", "originator": "codex_cli_rs", "cli_version": "0.146.0", "source": "cli", "model_provider": "openai"}
	line(0, "session_meta", meta)
	n := 0
	item := func(prefix string) string { n++; return fmt.Sprintf("%s_%s%04d", prefix, s.session()[4:8], n) }
	var total Tokens
	for i, turn := range s.Turns {
		turnID := id(500 + i)
		if s.Compact && i == 1 {
			line(turn.At-2, "compacted", object{"message": "The log was read.", "replacement_history": list{object{"type": "message", "role": "user", "content": list{object{"type": "input_text", "text": s.Turns[0].Prompt}}}}})
			line(turn.At-1, "event_msg", object{"type": "context_compacted"})
		}
		if s.Forked && i == 1 {
			origin := t
			out, t = append(out, origin.stream()), rollout(id(900))
			meta["forked_from_id"], meta["id"], meta["session_id"], meta["timestamp"] = meta["id"], id(900), id(900), stamp(turn.At-1)
			line(turn.At-1, "session_meta", meta)
			for _, f := range origin.Frames { // written at the time of the fork
				var copied codexLine
				decode(f.Data, &copied)
				copied.Timestamp = stamp(turn.At - 1)
				t.line(turn.At-1, copied)
			}
		}
		line(turn.At, "event_msg", object{"type": "task_started", "turn_id": turnID, "model_context_window": 258400})
		line(turn.At, "turn_context", object{"turn_id": turnID, "cwd": "/srv/locks", "approval_policy": "never", "model": "gpt-5.6-luna", "effort": "low", "summary": "auto"})
		line(turn.At, "response_item", object{"type": "message", "role": "user", "id": item("msg"), "content": list{object{"type": "input_text", "text": turn.Prompt}}})
		line(turn.At, "event_msg", object{"type": "user_message", "message": turn.Prompt, "images": list{}})
		for j := range turn.Responses {
			r := &turn.Responses[j]
			if r.Retried {
				line(r.From-3, "event_msg", object{"type": "stream_error", "message": "Reconnecting... 1/5"})
			}
			if r.Think != "" {
				line(r.To, "response_item", object{"type": "reasoning", "id": item("rs"), "summary": list{object{"type": "summary_text", "text": r.Think}}, "content": nil, "encrypted_content": "b3BhcXVl"})
				line(r.To, "event_msg", object{"type": "agent_reasoning", "text": r.Think})
			}
			if r.Text != "" {
				line(r.To, "response_item", object{"type": "message", "role": "assistant", "id": item("msg"), "content": list{object{"type": "output_text", "text": r.Text}}})
				line(r.To, "event_msg", object{"type": "agent_message", "message": r.Text})
			}
			for _, w := range r.Work {
				line(w.From, "response_item", object{"type": "function_call", "id": item("fc"), "call_id": w.ID, "name": w.Name, "arguments": text(input(w))})
			}
			total.add(r.Tokens)
			line(r.To+0.12, "event_msg", object{"type": "token_count", "info": object{"total_token_usage": openAIUsage(total), "last_token_usage": openAIUsage(r.Tokens), "model_context_window": 258400}})
			for _, w := range r.Work {
				if !w.Open {
					line(w.To, "response_item", object{"type": "function_call_output", "call_id": w.ID, "output": codexOutput(w)})
				}
			}
			if len(r.Work) == 0 && j == len(turn.Responses)-1 {
				line(r.To+0.2, "event_msg", object{"type": "task_complete", "turn_id": turnID, "last_agent_message": r.Text})
			}
		}
	}
	return append(out, t.stream())
}

// codexExec writes the output of `codex exec --json`.
func codexExec() format {
	return format{name: "codex-exec", write: writeCodexExec, lens: lens{
		can: []feature{calls, parallel, failure, retry, thoughts, turns}, noPrompts: true, noIDs: true, noTimes: true, tokens: uncharged,
		tool: func(*Work) string { return "command_execution" },
	}}
}

func writeCodexExec(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/var/log/codex/" + s.Name + ".jsonl"}}
	t.line(0, object{"type": "thread.started", "thread_id": s.session()})
	var total Tokens
	n := 0
	for _, turn := range s.Turns {
		t.line(turn.At, object{"type": "turn.started"})
		end := 0.0
		item := func(seconds float64, typ string, o object) object {
			o["type"], o["id"] = typ, fmt.Sprint("item_", n)
			n++
			t.line(seconds, object{"type": "item.completed", "item": o})
			return o
		}
		for i := range turn.Responses {
			r := &turn.Responses[i]
			if r.Retried {
				t.line(r.From-3, object{"type": "error", "message": "Reconnecting... 1/5"})
			}
			if r.Think != "" {
				item(r.To, "reasoning", object{"text": r.Think})
			}
			if r.Text != "" {
				item(r.To, "agent_message", object{"text": r.Text})
			}
			for _, w := range r.Work {
				status, code := "completed", 0
				if w.Failed {
					status, code = "failed", 1
				}
				o := item(w.To, "command_execution", object{"command": w.Argument, "aggregated_output": w.Result, "exit_code": code, "status": status})
				t.line(w.From, object{"type": "item.started", "item": object{"type": "command_execution", "id": o["id"], "command": w.Argument, "aggregated_output": "", "exit_code": nil, "status": "in_progress"}})
			}
			total.add(r.Tokens)
			end = r.To
		}
		t.line(end+0.1, object{"type": "turn.completed", "usage": openAIUsage(total)})
	}
	return []Stream{t.stream()}
}

// geminiCLI writes the chat file of a session.
func geminiCLI() format {
	return format{name: "gemini-cli", write: writeGeminiCLI, lens: lens{
		can:    []feature{calls, parallel, failure, repetition, thoughts, turns},
		tokens: uncharged, calledAt: completed, endedAt: lastResult,
	}}
}

func writeGeminiCLI(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/home/ada/.gemini/tmp/locks/chats/session-2026-03-04T09-00-" + s.session()[:8] + ".jsonl"}, twice: s.Twice}
	t.line(0, object{"sessionId": s.session(), "projectHash": "9f1e0c4b7a6d5e2f", "startTime": stamp(0), "lastUpdated": stamp(0), "kind": "main"})
	n := 0
	for _, turn := range s.Turns {
		n++
		t.line(turn.At, object{"id": id(n), "timestamp": stamp(turn.At), "type": "user", "content": turn.Prompt})
		for i := range turn.Responses {
			r := &turn.Responses[i]
			n++
			u := r.Tokens
			in := u.Input + u.CacheRead + u.CacheWrite
			o := object{"id": id(n), "timestamp": stamp(r.To), "type": "gemini", "content": r.Text, "thoughts": list{}, "model": "gemini-9-pro",
				"tokens": object{"input": in, "output": u.Output, "cached": u.CacheRead, "thoughts": u.Reasoning, "tool": 0, "total": in + u.Output + u.Reasoning}}
			if r.Think != "" {
				o["thoughts"] = list{object{"subject": "The sill", "description": r.Think, "timestamp": stamp(r.To)}}
			}
			t.line(r.To, o)
			var made list
			for _, w := range r.Work {
				response, status := object{"output": w.Result}, "success"
				if w.Failed {
					response, status = object{"error": w.Result}, "error"
				}
				made = append(made, object{"id": w.ID, "name": w.Name, "args": input(w), "status": status, "timestamp": stamp(lastResult(r, w)),
					"result": list{object{"functionResponse": object{"id": w.ID, "name": w.Name, "response": response}}}})
			}
			if made != nil {
				again := object{"toolCalls": made}
				for k, v := range o {
					again[k] = v
				}
				t.line(lastResult(r, nil), again)
			}
		}
	}
	return []Stream{t.stream()}
}

// geminiPrinted writes what gemini --output-format stream-json prints: one run for each turn, which resumes the session.
func geminiPrinted() format {
	return format{name: "gemini-cli", variant: "printed", write: writeGeminiPrinted, lens: lens{
		can:    []feature{calls, parallel, failure, repetition, thoughts, turns},
		tokens: uncharged,
	}}
}

func writeGeminiPrinted(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/var/log/gemini/" + s.Name + ".jsonl"}, twice: s.Twice}
	line := func(seconds float64, typ string, o object) {
		o["type"], o["timestamp"] = typ, stamp(seconds)
		t.line(seconds, o)
	}
	for _, turn := range s.Turns {
		line(turn.At, "init", object{"session_id": s.session(), "model": "gemini-9-pro"})
		line(turn.At+0.01, "message", object{"role": "user", "content": turn.Prompt})
		var sum Tokens
		end := turn.At
		for i := range turn.Responses {
			r := &turn.Responses[i]
			sum.add(r.Tokens)
			half := len(r.Text) / 2
			for at, piece := range []string{r.Text[:half], r.Text[half:]} {
				if piece != "" {
					line(r.To-0.05+float64(at)*0.05, "message", object{"role": "assistant", "content": piece, "delta": true})
				}
			}
			for _, w := range r.Work {
				line(w.From, "tool_use", object{"tool_name": w.Name, "tool_id": w.ID, "parameters": input(w)})
				o := object{"tool_id": w.ID, "status": "success", "output": w.Result}
				if w.Failed {
					o["status"], o["error"] = "error", object{"type": "TOOL_EXECUTION_ERROR", "message": w.Result}
				}
				line(w.To, "tool_result", o)
			}
			end = max(r.To, lastResult(r, nil))
		}
		in := sum.Input + sum.CacheRead + sum.CacheWrite
		line(end, "result", object{"status": "success", "stats": object{"duration_ms": 900, "models": object{"gemini-9-pro": object{
			"input_tokens": in, "cached": sum.CacheRead, "output_tokens": sum.Output, "total_tokens": in + sum.Output + sum.Reasoning}}}})
	}
	return []Stream{t.stream()}
}

// pi writes a session of Pi, and of OpenClaw, which has the same files.
func pi(name string) format {
	return format{name: name, write: writePi, lens: lens{
		can: []feature{calls, parallel, failure, repetition, thoughts, interrupted, compaction, turns}, calledAt: completed,
	}}
}

func writePi(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/home/ada/.pi/agent/sessions/--srv-locks--/" + s.session() + ".jsonl"}, twice: s.Twice}
	t.line(0, object{"type": "session", "version": 3, "id": s.session(), "timestamp": stamp(0), "cwd": "/srv/locks"})
	n, last := 0, any(nil)
	entry := func(seconds float64, o object) {
		n++
		o["id"], o["parentId"], o["timestamp"] = fmt.Sprintf("%s%02x", s.session()[2:8], n), last, stamp(seconds)
		last = o["id"]
		t.line(seconds, o)
	}
	message := func(seconds, created float64, m object) {
		m["timestamp"] = millis(created)
		entry(seconds, object{"type": "message", "message": m})
	}
	said := func(text string) list { return list{object{"type": "text", "text": text}} }
	for i, turn := range s.Turns {
		if s.Compact && i == 1 {
			entry(turn.At-1, object{"type": "compaction", "summary": "The log was read.", "firstKeptEntryId": last, "tokensBefore": 9120})
		}
		message(turn.At, turn.At, object{"role": "user", "content": said(turn.Prompt)})
		for j := range turn.Responses {
			r := &turn.Responses[j]
			content, stop := list{}, "stop"
			if r.Think != "" {
				content = append(content, object{"type": "thinking", "thinking": r.Think})
			}
			if r.Text != "" {
				content = append(content, object{"type": "text", "text": r.Text})
			}
			for _, w := range r.Work {
				stop = "toolUse"
				content = append(content, object{"type": "toolCall", "id": w.ID, "name": w.Name, "arguments": input(w)})
			}
			u := r.Tokens
			message(r.To, r.From, object{"role": "assistant", "content": content, "api": "openai-responses", "provider": "openai", "model": "lynx-2", "stopReason": stop,
				"responseId": fmt.Sprintf("resp_%s%d%d", s.session()[4:8], i, j),
				"usage": object{"input": u.Input, "output": u.Output + u.Reasoning, "cacheRead": u.CacheRead, "cacheWrite": u.CacheWrite, "reasoning": u.Reasoning,
					"totalTokens": u.Input + u.Output + u.Reasoning + u.CacheRead + u.CacheWrite}})
			for _, w := range r.Work {
				if !w.Open {
					message(w.To, w.To, object{"role": "toolResult", "toolCallId": w.ID, "toolName": w.Name, "content": said(w.Result), "isError": w.Failed})
				}
			}
		}
	}
	return []Stream{t.stream()}
}

// legion writes the messages file of a session.
func legion() format {
	return format{name: "legion", write: writeLegion, lens: lens{
		can: []feature{calls, parallel, failure, delegation, repetition, thoughts, interrupted, turns}, tokens: unsplit, tool: named("Task"),
	}}
}

func writeLegion(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/srv/legion/sessions/" + s.session() + "/messages.jsonl"}, twice: s.Twice}
	n := 0
	line := func(seconds float64, up *Work, typ string, data object) {
		n++
		data["parent_tool_use_id"] = nil
		if up != nil {
			data["parent_tool_use_id"] = up.ID
		}
		t.line(seconds, object{"_type": typ, "timestamp": float64(millis(seconds)) / 1000, "session_id": s.session(), "message_id": fmt.Sprint("lk-", s.session()[4:8], n), "data": data})
	}
	for _, turn := range s.Turns {
		n++
		t.line(turn.At, object{"type": "user", "content": turn.Prompt, "timestamp": float64(millis(turn.At)) / 1000, "session_id": s.session(), "message_id": fmt.Sprint("lk-", s.session()[4:8], n)})
	}
	responses := 0
	s.each(func(r *Response, up *Work) {
		responses++
		say := func(seconds float64, block object) {
			line(seconds, up, "AssistantMessage", object{"content": list{block}, "model": "claude-sonnet-4-5-20250929", "error": nil, "stop_reason": nil,
				"message_id": fmt.Sprintf("msg_03%s%02d", s.session()[4:8], responses),
				"usage": object{"input_tokens": r.Tokens.Input, "output_tokens": r.Tokens.Output + r.Tokens.Reasoning,
					"cache_read_input_tokens": r.Tokens.CacheRead, "cache_creation_input_tokens": r.Tokens.CacheWrite}})
		}
		if r.Think != "" {
			say(r.To, object{"thinking": r.Think, "signature": "c2lnbmVk"})
		}
		if r.Text != "" {
			say(r.To, object{"text": r.Text})
		}
		for _, w := range r.Work {
			say(w.From, object{"id": w.ID, "name": toolName(w, "Task"), "input": input(w)})
			if w.Delegate != nil {
				line(w.From+0.1, w, "UserMessage", object{"content": list{object{"text": w.Delegate.Task}}})
			}
			if !w.Open {
				line(w.To, up, "UserMessage", object{"content": list{object{"tool_use_id": w.ID, "content": w.Result, "is_error": w.Failed}}})
			}
		}
		if up == nil && len(r.Work) == 0 {
			line(r.To+0.1, nil, "ResultMessage", object{"subtype": "success", "is_error": false, "num_turns": 1, "stop_reason": "end_turn", "result": r.Text, "usage": nil})
		}
	})
	return []Stream{t.stream()}
}

// mcp writes the messages of a client and a server of tools, as `earshot wrap` records it.
func mcp() format {
	return format{name: "mcp", write: writeMCP, lens: lens{
		can: []feature{calls, parallel, failure, interrupted}, noPrompts: true, noAnswers: true, noTokens: true,
	}}
}

func writeMCP(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/var/lib/earshot/wrap/" + s.Name + ".jsonl"}}
	line := func(seconds float64, dir string, o object) {
		o["jsonrpc"] = "2.0"
		t.line(seconds, object{"t": stamp(seconds), "dir": dir, "frame": o})
	}
	line(0, "out", object{"id": 0, "method": "initialize", "params": object{"protocolVersion": "2025-11-25", "capabilities": object{}, "clientInfo": object{"name": "lock-keeper", "version": "1.0.0"}}})
	line(0.01, "in", object{"id": 0, "result": object{"protocolVersion": "2025-11-25", "capabilities": object{"tools": object{}}, "serverInfo": object{"name": "gauges", "version": "0.3.0"}}})
	n := 0
	s.each(func(r *Response, _ *Work) {
		for _, w := range r.Work {
			n++
			line(w.From, "out", object{"id": n, "method": "tools/call", "params": object{"name": w.Name, "arguments": input(w), "_meta": object{"claudecode/toolUseId": w.ID}}})
			if !w.Open {
				line(w.To, "in", object{"id": n, "result": object{"content": list{object{"type": "text", "text": w.Result}}, "isError": w.Failed}})
			}
		}
	})
	return []Stream{t.stream()}
}

// openCode writes the events of OpenCode's server.
func openCode() format {
	return format{name: "opencode", write: writeOpenCode, lens: lens{
		can:  []feature{calls, parallel, failure, delegation, thoughts, interrupted, turns, retry},
		tool: named("task"),
	}}
}

func writeOpenCode(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "http://127.0.0.1:4096/event", Live: true}}
	n := 0
	number := func(prefix string) string {
		n++
		return fmt.Sprintf("%s_%s%04df001LockKeeper0", prefix, s.session()[4:8], n)
	}
	event := func(seconds float64, typ string, properties object) {
		t.event(seconds, "", object{"type": typ, "properties": properties})
	}
	model := object{"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}
	create := func(seconds float64, session, parent string) {
		info := object{"id": session, "projectID": "5b1f0c77aa21", "directory": "/srv/locks", "title": "Locks", "version": "1.14.30", "time": object{"created": millis(seconds), "updated": millis(seconds)}}
		if parent != "" {
			info["parentID"] = parent
		}
		event(seconds, "session.created", object{"info": info})
	}
	part := func(seconds float64, session, message string, p object) {
		p["sessionID"], p["messageID"] = session, message
		if p["id"] == nil {
			p["id"] = number("prt")
		}
		event(seconds, "message.part.updated", object{"sessionID": session, "part": p})
	}
	prompt := func(seconds float64, session, text string) string {
		user := number("msg")
		event(seconds, "message.updated", object{"sessionID": session, "info": object{"id": user, "sessionID": session, "role": "user", "time": object{"created": millis(seconds)}, "agent": "build", "model": model}})
		part(seconds, session, user, object{"type": "text", "text": text})
		return user
	}
	var work func(session, user string, rs []Response)
	work = func(session, user string, rs []Response) {
		for i := range rs {
			r := &rs[i]
			reply := number("msg")
			counts := object{"input": r.Tokens.Input, "output": r.Tokens.Output, "reasoning": r.Tokens.Reasoning, "cache": object{"read": r.Tokens.CacheRead, "write": r.Tokens.CacheWrite}}
			info := func(seconds float64, finish string) {
				o := object{"id": reply, "sessionID": session, "role": "assistant", "parentID": user, "modelID": "claude-sonnet-4-5", "providerID": "anthropic", "mode": "build", "agent": "build",
					"path": object{"cwd": "/srv/locks", "root": "/srv/locks"}, "cost": 0, "time": object{"created": millis(r.From)},
					"tokens": object{"input": 0, "output": 0, "reasoning": 0, "cache": object{"read": 0, "write": 0}}}
				if finish != "" {
					o["finish"], o["tokens"], o["time"] = finish, counts, object{"created": millis(r.From), "completed": millis(seconds)}
				}
				event(seconds, "message.updated", object{"sessionID": session, "info": o})
			}
			if r.Retried {
				event(r.From-3, "session.status", object{"sessionID": session, "status": object{"type": "retry", "attempt": 1, "message": "Overloaded", "next": millis(r.From)}})
			}
			info(r.From, "")
			span := object{"start": millis(r.From), "end": millis(r.To)}
			if r.Think != "" {
				part(r.To, session, reply, object{"type": "reasoning", "text": r.Think, "time": span})
			}
			if r.Text != "" {
				part(r.To, session, reply, object{"type": "text", "text": r.Text, "time": span})
			}
			end, finish := r.To, "stop"
			for _, w := range r.Work {
				finish = "tool-calls"
				tool := number("prt")
				state := func(status string, more object) object {
					more["status"], more["input"] = status, input(w)
					return object{"id": tool, "type": "tool", "callID": w.ID, "tool": toolName(w, "task"), "state": more}
				}
				part(w.From, session, reply, state("running", object{"time": object{"start": millis(w.From)}}))
				meta := object{}
				if d := w.Delegate; d != nil {
					child := "ses_" + d.ID + "f001LockKeeper0"
					meta["sessionId"] = child
					create(w.From+0.1, child, session)
					part(w.From+0.1, session, reply, state("running", object{"time": object{"start": millis(w.From)}, "metadata": meta}))
					work(child, prompt(w.From+0.2, child, d.Task), d.Responses)
				}
				times := object{"start": millis(w.From), "end": millis(w.To)}
				switch {
				case w.Open:
					continue
				case w.Failed:
					part(w.To, session, reply, state("error", object{"error": w.Result, "time": times}))
				default:
					part(w.To, session, reply, state("completed", object{"output": w.Result, "title": "done", "metadata": meta, "time": times}))
				}
				end = max(end, w.To)
			}
			if finish == "stop" || end > r.To {
				part(end, session, reply, object{"type": "step-finish", "reason": finish, "tokens": counts, "cost": 0})
				info(end+0.02, finish)
			} else {
				part(end, session, reply, object{"type": "step-finish", "reason": finish, "tokens": counts, "cost": 0})
			}
			if finish == "stop" && i == len(rs)-1 {
				event(end+0.03, "session.idle", object{"sessionID": session})
			}
		}
	}
	session := "ses_" + strings.ReplaceAll(s.session()[:8], "-", "") + "f001LockKeeper0"
	create(0, session, "")
	for _, turn := range s.Turns {
		work(session, prompt(turn.At, session, turn.Prompt), turn.Responses)
	}
	return []Stream{t.stream()}
}

// openCodeRows writes the rows of the database of OpenCode 2. A response is one row, which is written again at each step.
func openCodeRows() format {
	return format{name: "opencode", variant: "database", write: writeOpenCodeRows, lens: lens{
		can:  []feature{calls, parallel, failure, delegation, thoughts, interrupted, turns, retry},
		tool: named("subagent"),
	}}
}

func writeOpenCodeRows(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/home/keeper/.local/share/opencode/opencode.db", Live: true}}
	n := 0
	row := func(seconds float64, table string, r object) { t.line(seconds, object{"table": table, "row": r}) }
	create := func(seconds float64, session string, parent any) {
		row(seconds, "session_v2", object{"id": session, "project_id": "5b1f0c77aa21", "parent_id": parent, "directory": "/srv/locks", "title": "Locks", "version": "2.0.26", "time_created": millis(seconds)})
	}
	message := func(created, seconds float64, session, id, typ string, data object) {
		row(seconds, "session_message", object{"id": id, "session_id": session, "type": typ, "seq": n, "time_created": millis(created), "time_updated": millis(seconds), "data": data})
	}
	named := func() string {
		n++
		return fmt.Sprintf("msg_%s%04df001LockKeeper0", s.session()[4:8], n)
	}
	prompt := func(seconds float64, session, text string) {
		message(seconds, seconds, session, named(), "user", object{"time": object{"created": millis(seconds)}, "text": text})
	}
	var work func(session string, rs []Response)
	work = func(session string, rs []Response) {
		for i := range rs {
			r := &rs[i]
			reply := named()
			state := func(seconds float64, completed bool) {
				content, times, more := list{}, object{"created": millis(r.From)}, object{"agent": "build", "model": object{"id": "claude-sonnet-4-5", "providerID": "anthropic"}}
				if r.Retried {
					more["retry"] = object{"attempt": 1, "at": millis(r.From), "error": object{"type": "provider.rate-limit", "message": "Overloaded"}}
				}
				if seconds >= r.To {
					times["streamed"] = millis(r.To)
					if r.Think != "" {
						content = append(content, object{"type": "reasoning", "text": r.Think, "time": object{"created": millis(r.From), "completed": millis(r.To)}})
					}
					if r.Text != "" {
						content = append(content, object{"type": "text", "text": r.Text})
					}
				}
				for _, w := range r.Work {
					if w.From > seconds {
						continue
					}
					in, o, at := input(w), object{"status": "running", "metadata": object{}}, object{"created": millis(w.From), "ran": millis(w.From)}
					if d := w.Delegate; d != nil {
						in = object{"agent": d.Agent, "description": w.Argument, "prompt": d.Task}
					}
					if !w.Open && w.To <= seconds {
						o, at["completed"] = object{"status": "completed", "content": list{object{"type": "text", "text": w.Result}}}, millis(w.To)
						if d := w.Delegate; d != nil {
							o["metadata"] = object{"sessionID": "ses_" + d.ID + "f001LockKeeper0", "status": "completed"}
						}
						if w.Failed {
							o = object{"status": "error", "error": object{"type": "tool.execution", "message": w.Result}}
						}
					}
					o["input"] = in
					content = append(content, object{"type": "tool", "id": w.ID, "name": toolName(w, "subagent"), "state": o, "time": at})
				}
				if completed {
					times["completed"], more["finish"], more["cost"] = millis(seconds), "stop", 0
					if len(r.Work) > 0 {
						more["finish"] = "tool-calls"
					}
					more["tokens"] = object{"input": r.Tokens.Input, "output": r.Tokens.Output, "reasoning": r.Tokens.Reasoning, "cache": object{"read": r.Tokens.CacheRead, "write": r.Tokens.CacheWrite}}
				}
				more["time"], more["content"] = times, content
				message(r.From, seconds, session, reply, "assistant", more)
			}
			state(r.From, false)
			state(r.To, false)
			end := r.To
			for _, w := range r.Work {
				state(w.From, false)
				end = max(end, w.From)
				if d := w.Delegate; d != nil {
					child := "ses_" + d.ID + "f001LockKeeper0"
					create(w.From+0.1, child, session)
					prompt(w.From+0.2, child, d.Task)
					work(child, d.Responses)
				}
				if !w.Open {
					state(w.To, false)
					end = max(end, w.To)
				}
			}
			if state(end+0.01, true); len(r.Work) == 0 && i == len(rs)-1 {
				message(end+0.02, end+0.02, session, named(), "idle", object{"time": object{"created": millis(end + 0.02)}, "outcome": "succeeded"})
			}
		}
	}
	session := "ses_" + s.session()[:8] + "f001LockKeeper0"
	create(0, session, nil)
	for _, turn := range s.Turns {
		prompt(turn.At, session, turn.Prompt)
		work(session, turn.Responses)
	}
	return []Stream{t.stream()}
}

// cline writes the document of a session of Cline. A message has the time at which it was complete.
func cline() format {
	return format{name: "cline", write: writeCline, lens: lens{can: []feature{calls, parallel, failure, thoughts, turns, numbering}, tokens: unsplit, calledAt: completed}}
}

func writeCline(s *Scenario) []Stream {
	session := fmt.Sprintf("%d_%s", millis(0), s.session()[4:8])
	end := 0.0
	var messages list
	message := func(role string, seconds float64, more object, blocks ...object) {
		more["id"], more["role"], more["content"], more["ts"] = fmt.Sprintf("msg_%d", len(messages)), role, blocks, millis(seconds)
		messages = append(messages, more)
		end = max(end, seconds)
	}
	for _, turn := range s.Turns {
		message("user", turn.At, object{}, object{"type": "text", "text": "<user_input mode=\"act\">" + turn.Prompt + "</user_input>"})
		for i := range turn.Responses {
			r := &turn.Responses[i]
			u := r.Tokens
			var blocks []object
			said(r, func(_ float64, b object) { blocks = append(blocks, b) })
			for _, w := range r.Work {
				blocks = append(blocks, object{"type": "tool_use", "id": w.ID, "name": w.Name, "input": input(w)})
			}
			message("assistant", r.To, object{
				"modelInfo": object{"id": "claude-sonnet-4-5", "provider": "anthropic"},
				"metrics":   object{"inputTokens": u.Input + u.CacheRead + u.CacheWrite, "outputTokens": u.Output + u.Reasoning, "cacheReadTokens": u.CacheRead, "cacheWriteTokens": u.CacheWrite},
			}, blocks...)
			done := slices.Clone(r.Work)
			slices.SortStableFunc(done, func(x, y *Work) int { return cmp.Compare(x.To, y.To) })
			for _, w := range done {
				message("user", w.To, object{}, object{"type": "tool_result", "tool_use_id": w.ID, "name": w.Name, "content": w.Result, "is_error": w.Failed})
			}
		}
	}
	t := &tape{Stream: Stream{Origin: "/home/keeper/.cline/data/sessions/" + session + "/" + session + ".messages.json"}}
	t.add(end, frame.Frame{Kind: frame.Body, Data: encode(object{
		"version": 1, "updated_at": stamp(end), "sessionId": session, "origin": object{"source": "cli", "mode": "user", "sessionId": session}, "messages": messages,
	})})
	return []Stream{t.stream()}
}

// rooCode writes the document of a task of Roo Code, which has commands alone and no ids of calls.
func rooCode() format {
	return format{name: "roo-code", write: writeRooCode, lens: lens{
		can: []feature{calls, failure, thoughts, turns}, noIDs: true, noTimes: true, tokens: unsplit, tool: func(*Work) string { return "execute_command" },
	}}
}

func writeRooCode(s *Scenario) []Stream {
	end := 0.0
	var messages list
	message := func(seconds float64, typ, kind, text string) {
		messages = append(messages, object{"ts": millis(seconds), "type": typ, typ: kind, "text": text, "partial": false})
		end = max(end, seconds)
	}
	for n, turn := range s.Turns {
		kind := "user_feedback"
		if n == 0 {
			kind = "text"
		}
		message(turn.At, "say", kind, turn.Prompt)
		for i := range turn.Responses {
			r := &turn.Responses[i]
			u := r.Tokens
			message(r.From, "say", "api_req_started", text(object{
				"apiProtocol": "anthropic", "tokensIn": u.Input + u.CacheRead + u.CacheWrite, "tokensOut": u.Output + u.Reasoning, "cacheReads": u.CacheRead, "cacheWrites": u.CacheWrite, "cost": 0.01,
			}))
			if r.Think != "" {
				message(r.To-0.002, "say", "reasoning", r.Think)
			}
			switch {
			case r.Text != "" && len(r.Work) == 0 && i == len(turn.Responses)-1:
				message(r.To, "say", "completion_result", r.Text)
				message(r.To+0.001, "ask", "completion_result", "")
			case r.Text != "":
				message(r.To-0.001, "say", "text", r.Text)
			}
			for _, w := range r.Work {
				message(w.From, "ask", "command", w.Argument)
				if w.Failed {
					message(w.To, "say", "error", w.Result)
				} else {
					message(w.To, "say", "command_output", w.Result)
				}
			}
		}
	}
	t := &tape{Stream: Stream{Origin: "/home/keeper/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks/" + s.session() + "/ui_messages.json"}}
	t.add(end, frame.Frame{Kind: frame.Body, Data: encode(messages)})
	return []Stream{t.stream()}
}

// droid writes the files of Droid, in which the tokens are those of a session. A message has the time at which it was complete.
func droid() format {
	return format{name: "droid", write: writeDroid, lens: lens{
		can: []feature{calls, parallel, failure, delegation, thoughts, turns, numbering}, calledAt: completed, tool: named("Task"),
	}}
}

func writeDroid(s *Scenario) (streams []Stream) {
	n := 0
	write := func(session, calling, call string, from float64) (message func(seconds float64, role string, blocks ...object), done func(sum Tokens)) {
		origin := "/home/keeper/.factory/sessions/-srv-locks/" + session
		lines := &tape{Stream: Stream{Origin: origin + ".jsonl"}}
		start := object{"type": "session_start", "id": session, "title": "Locks", "owner": "keeper", "version": 2, "cwd": "/srv/locks"}
		if calling != "" {
			start["callingSessionId"], start["callingToolUseId"] = calling, call
		}
		lines.line(from, start)
		end := from
		message = func(seconds float64, role string, blocks ...object) {
			n++
			end = max(end, seconds)
			lines.line(seconds, object{"type": "message", "id": fmt.Sprintf("%s-%d", session, n), "timestamp": stamp(seconds), "message": object{"role": role, "content": blocks}})
		}
		done = func(sum Tokens) {
			settings := &tape{Stream: Stream{Origin: origin + ".settings.json"}}
			settings.add(end, frame.Frame{Kind: frame.Body, Data: encode(object{"model": "claude-sonnet-4-5", "providerLock": "anthropic", "providerLockTimestamp": stamp(from), "tokenUsage": object{
				"inputTokens": sum.Input, "outputTokens": sum.Output, "cacheReadTokens": sum.CacheRead, "cacheCreationTokens": sum.CacheWrite, "thinkingTokens": sum.Reasoning,
			}})})
			streams = append(streams, lines.stream(), settings.stream())
		}
		return message, done
	}
	var work func(session string, rs []Response, message func(float64, string, ...object)) Tokens
	work = func(session string, rs []Response, message func(float64, string, ...object)) (sum Tokens) {
		for i := range rs {
			r := &rs[i]
			sum.add(r.Tokens)
			var blocks []object
			said(r, func(_ float64, b object) { blocks = append(blocks, b) })
			for _, w := range r.Work {
				blocks = append(blocks, object{"type": "tool_use", "id": w.ID, "name": toolName(w, "Task"), "input": input(w)})
			}
			message(r.To, "assistant", blocks...)
			for _, w := range r.Work {
				if d := w.Delegate; d != nil {
					child := s.session()[:34] + d.ID[:2]
					own, done := write(child, session, w.ID, w.From+0.1)
					own(w.From+0.2, "user", object{"type": "text", "text": d.Task})
					done(work(child, d.Responses, own))
				}
				message(w.To, "user", object{"type": "tool_result", "tool_use_id": w.ID, "content": w.Result, "is_error": w.Failed})
			}
		}
		return sum
	}
	message, done := write(s.session(), "", "", 0)
	var sum Tokens
	for _, turn := range s.Turns {
		message(turn.At, "user", object{"type": "text", "text": turn.Prompt})
		sum.add(work(s.session(), turn.Responses, message))
	}
	done(sum)
	return streams
}

// said writes the thought and the text of a response of Claude as blocks.
func said(r *Response, block func(seconds float64, b object)) {
	if r.Think != "" {
		block(r.To, object{"type": "thinking", "thinking": r.Think, "signature": "c2lnbmVk"})
	}
	if r.Text != "" {
		block(r.To, object{"type": "text", "text": r.Text})
	}
}
