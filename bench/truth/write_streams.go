package truth

import (
	"fmt"

	"github.com/earshot-dev/earshot/core/frame"
)

// acp writes the recordings of connections between an editor and an agent. The traffic has the tokens of turns.
func acp() format {
	return format{name: "acp", write: writeACP, lens: lens{
		can: []feature{calls, parallel, failure, thoughts, interrupted, turns},
	}}
}

func writeACP(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/var/lib/earshot/wrap/acp/" + s.Name + ".jsonl"}}
	line := func(seconds float64, dir string, o object) {
		o["jsonrpc"] = "2.0"
		t.line(seconds, object{"t": stamp(seconds), "dir": dir, "frame": o})
	}
	update := func(seconds float64, kind string, o object) {
		o["sessionUpdate"] = kind
		line(seconds, "in", object{"method": "session/update", "params": object{"sessionId": s.session(), "update": o}})
	}
	said := func(words string) object { return object{"content": object{"type": "text", "text": words}} }
	line(0, "out", object{"id": 0, "method": "initialize", "params": object{"protocolVersion": 1, "clientCapabilities": object{}}})
	line(0, "in", object{"id": 0, "result": object{"protocolVersion": 1, "agentInfo": object{"name": "lock-keeper", "version": "1.0.0"}, "authMethods": list{}}})
	line(0, "out", object{"id": 1, "method": "session/new", "params": object{"cwd": "/srv/locks", "mcpServers": list{}}})
	line(0, "in", object{"id": 1, "result": object{"sessionId": s.session()}})
	for i, turn := range s.Turns {
		line(turn.At, "out", object{"id": 2 + i, "method": "session/prompt", "params": object{"sessionId": s.session(), "prompt": list{object{"type": "text", "text": turn.Prompt}}}})
		var sum Tokens
		end := 0.0
		for j := range turn.Responses {
			r := &turn.Responses[j]
			sum.add(r.Tokens)
			if r.Think != "" {
				update(r.To, "agent_thought_chunk", said(r.Think))
			}
			if r.Text != "" {
				update(r.To, "agent_message_chunk", said(r.Text))
			}
			end = r.To
			for _, w := range r.Work {
				update(w.From, "tool_call", object{"toolCallId": w.ID, "title": w.Name, "kind": "execute", "status": "pending", "rawInput": input(w)})
				status := "completed"
				if w.Failed {
					status = "failed"
				}
				if end = -1; !w.Open {
					update(w.To, "tool_call_update", object{"toolCallId": w.ID, "status": status, "rawOutput": w.Result})
				}
			}
		}
		reason := "end_turn"
		if end < 0 { // a person stops it
			end, reason = turn.Responses[len(turn.Responses)-1].To+1, "cancelled"
			line(end, "out", object{"method": "session/cancel", "params": object{"sessionId": s.session()}})
		}
		line(end+0.1, "in", object{"id": 2 + i, "result": object{"stopReason": reason, "usage": object{"inputTokens": sum.Input, "outputTokens": sum.Output, "thoughtTokens": sum.Reasoning,
			"cachedReadTokens": sum.CacheRead, "cachedWriteTokens": sum.CacheWrite}}})
	}
	return []Stream{t.stream()}
}

// atif writes trajectories, whole documents. A step has the time at which its answer was complete, and its calls end with
// the next step; an interrupted trajectory is none.
func atif() format {
	return format{name: "atif", write: writeATIF, lens: lens{
		can: []feature{calls, parallel, failure, thoughts, turns}, calledAt: completed, noTimes: true,
	}}
}

func writeATIF(s *Scenario) []Stream {
	var steps list
	step := func(seconds float64, source string, o object) {
		o["step_id"], o["timestamp"], o["source"] = len(steps)+1, stamp(seconds), source
		steps = append(steps, o)
	}
	for _, turn := range s.Turns {
		step(turn.At, "user", object{"message": turn.Prompt})
		for i := range turn.Responses {
			r := &turn.Responses[i]
			u := r.Tokens
			o := object{"message": r.Text, "model_name": "small-2", "metrics": object{"prompt_tokens": u.Input + u.CacheRead + u.CacheWrite, "completion_tokens": u.Output + u.Reasoning,
				"cached_tokens": u.CacheRead, "extra": object{"cache_write_tokens": u.CacheWrite, "reasoning_tokens": u.Reasoning}}}
			if r.Think != "" {
				o["reasoning_content"] = r.Think
			}
			var made, results list
			for _, w := range r.Work {
				made = append(made, object{"tool_call_id": w.ID, "function_name": w.Name, "arguments": input(w)})
				results = append(results, object{"source_call_id": w.ID, "content": w.Result, "extra": object{"is_error": w.Failed}})
			}
			if made != nil {
				o["tool_calls"], o["observation"] = made, object{"results": results}
			}
			step(r.To, "agent", o)
		}
	}
	t := &tape{Stream: Stream{Origin: "/srv/trajectories/" + s.Name + ".json"}}
	t.add(0, frame.Frame{Kind: frame.Body, Data: encode(object{"schema_version": "ATIF-v1.7", "session_id": s.session(),
		"agent": object{"name": "lock-keeper", "version": "2.1.0", "model_name": "small-1"}, "steps": steps})})
	return []Stream{t.Stream}
}

// bedrock writes Converse of Bedrock, streamed, as a tap has cut its binary events.
func bedrock() format {
	return format{name: "bedrock-converse", lens: lens{
		can: []feature{calls, parallel, failure, retry, thoughts, interrupted, turns, numbering}, tokens: unsplit, heard: true, endedAt: lastResult,
	}, write: func(s *Scenario) []Stream {
		return s.exchanges("https://bedrock-runtime.eu-west-1.amazonaws.com", func(before []spoken) frame.Frame {
			var messages list
			for _, b := range before {
				switch {
				case b.answer != nil:
					content := list{}
					if b.answer.Text != "" {
						content = append(content, object{"text": b.answer.Text})
					}
					for _, w := range b.answer.Work {
						content = append(content, object{"toolUse": object{"toolUseId": w.ID, "name": w.Name, "input": input(w)}})
					}
					messages = append(messages, object{"role": "assistant", "content": content})
				case b.result != nil:
					status := "success"
					if b.result.Failed {
						status = "error"
					}
					block := object{"toolResult": object{"toolUseId": b.result.ID, "content": list{object{"text": b.result.Result}}, "status": status}}
					messages = withResult(messages, block)
				default:
					messages = append(messages, object{"role": "user", "content": list{object{"text": b.prompt}}})
				}
			}
			return request("/model/eu.anthropic.claude-sonnet-4-5-v1%3A0/converse-stream", object{"messages": messages})
		}, object{"message": "Too many requests, please wait before trying again."}, func(t *tape, r *Response, _ string) {
			n := 0
			event := func(seconds float64, name string, o object) { t.event(seconds, name, o) }
			event(r.From, "messageStart", object{"role": "assistant"})
			block := func(seconds float64, start, delta object) {
				if start != nil {
					event(seconds, "contentBlockStart", object{"contentBlockIndex": n, "start": start})
				}
				event(seconds, "contentBlockDelta", object{"contentBlockIndex": n, "delta": delta})
				event(seconds, "contentBlockStop", object{"contentBlockIndex": n})
				n++
			}
			stop := "end_turn"
			if r.Think != "" {
				block(r.To, nil, object{"reasoningContent": object{"text": r.Think}})
			}
			if r.Text != "" {
				block(r.To, nil, object{"text": r.Text})
			}
			for _, w := range r.Work {
				stop = "tool_use"
				block(w.From, object{"toolUse": object{"toolUseId": w.ID, "name": w.Name}}, object{"toolUse": object{"input": text(input(w))}})
			}
			event(called(r), "messageStop", object{"stopReason": stop})
			event(called(r), "metadata", object{"usage": object{"inputTokens": r.Tokens.Input, "outputTokens": r.Tokens.Output + r.Tokens.Reasoning,
				"cacheReadInputTokens": r.Tokens.CacheRead, "cacheWriteInputTokens": r.Tokens.CacheWrite}, "metrics": object{"latencyMs": 1200}})
		})
	}}
}

// managedAgents writes the events of sessions of Claude Managed Agents: that of the session, and that of each thread below it.
// A call is known by the event that made it.
func managedAgents() format {
	return format{name: "claude-managed-agents", write: writeManagedAgents, lens: lens{
		can:    []feature{calls, parallel, failure, delegation, interrupted, turns, retry, repetition, compaction},
		tokens: unsplit, tool: named("thread_message"),
	}}
}

func writeManagedAgents(s *Scenario) (out []Stream) {
	url := "https://api.anthropic.com/v1/sessions/sesn_" + s.session()
	n := 0
	type log func(seconds float64, typ string, o object) string
	open := func(path string) (*tape, log) {
		t := &tape{Stream: Stream{Origin: url + path, Live: true}, twice: s.Twice}
		return t, func(seconds float64, typ string, o object) string {
			n++
			if o["id"] == nil {
				o["id"] = fmt.Sprintf("sevt_%s%04d", s.session()[4:8], n)
			}
			o["type"], o["processed_at"] = typ, stamp(seconds)
			t.event(seconds, typ, o)
			return o["id"].(string)
		}
	}
	said := func(words string) list { return list{object{"type": "text", "text": words}} }
	main, primary := open("/events/stream")
	var work func(add log, rs []Response)
	work = func(add log, rs []Response) {
		for i := range rs {
			r := &rs[i]
			if r.Retried {
				add(r.From-3, "session.error", object{"error": object{"type": "model_overloaded_error", "message": "The model is overloaded.", "retry_status": object{"type": "retrying"}}})
				add(r.From-2, "session.status_rescheduled", object{})
			}
			start := add(r.From, "span.model_request_start", object{})
			if r.Text != "" {
				add(r.To, "agent.message", object{"content": said(r.Text)})
			}
			for _, w := range r.Work {
				d := w.Delegate
				if d == nil {
					add(w.From, "agent.tool_use", object{"id": w.ID, "name": w.Name, "input": input(w), "evaluated_permission": "allow"})
					continue
				}
				thread := "sthr_" + d.ID
				add(w.From, "session.thread_created", object{"session_thread_id": thread, "agent_name": d.Agent})
				add(w.From, "agent.thread_message_sent", object{"id": w.ID, "to_session_thread_id": thread, "to_agent_name": d.Agent, "content": said(d.Task)})
				child, own := open("/threads/" + thread + "/stream")
				own(w.From+0.1, "agent.thread_message_received", object{"from_agent_name": "claude", "content": said(d.Task)})
				own(w.From+0.2, "session.thread_status_running", object{"session_thread_id": thread, "agent_name": d.Agent})
				work(own, d.Responses)
				own(w.To-0.1, "session.thread_status_idle", object{"session_thread_id": thread, "agent_name": d.Agent, "stop_reason": object{"type": "end_turn"}})
				out = append(out, child.stream())
			}
			add(called(r)+0.01, "span.model_request_end", object{"model_request_start_id": start, "is_error": false, "model_usage": object{"input_tokens": r.Tokens.Input,
				"output_tokens": r.Tokens.Output + r.Tokens.Reasoning, "cache_read_input_tokens": r.Tokens.CacheRead, "cache_creation_input_tokens": r.Tokens.CacheWrite}})
			for _, w := range r.Work {
				switch {
				case w.Open:
				case w.Delegate != nil:
					add(w.To, "agent.thread_message_received", object{"from_session_thread_id": "sthr_" + w.Delegate.ID, "from_agent_name": w.Delegate.Agent, "content": said(w.Result)})
				default:
					add(w.To, "agent.tool_result", object{"tool_use_id": w.ID, "content": said(w.Result), "is_error": w.Failed})
				}
			}
		}
	}
	for i, turn := range s.Turns {
		if s.Compact && i == 1 {
			primary(turn.At-1, "agent.thread_context_compacted", object{})
		}
		primary(turn.At, "user.message", object{"content": said(turn.Prompt)})
		primary(turn.At+0.05, "session.status_running", object{})
		work(primary, turn.Responses)
		if last := turn.Responses[len(turn.Responses)-1]; len(last.Work) == 0 {
			primary(last.To+0.1, "session.status_idle", object{"stop_reason": object{"type": "end_turn"}})
		}
	}
	return append([]Stream{main.stream()}, out...)
}

// vercelUI writes the message streams of Vercel's AI SDK, one for each turn. Nothing in them has a time.
func vercelUI() format {
	return format{name: "vercel-ui", write: writeVercelUI, lens: lens{
		can: []feature{calls, parallel, failure, thoughts, interrupted, turns, numbering}, heard: true,
	}}
}

func writeVercelUI(s *Scenario) (out []Stream) {
	for i, turn := range s.Turns {
		t := &tape{Stream: Stream{Origin: "http://127.0.0.1:3000/api/chat", Live: true}}
		t.add(turn.At, request("/api/chat", object{"id": "chat-" + s.session(), "trigger": "submit-message", "messages": list{
			object{"id": fmt.Sprint("m-", s.session(), "-", i), "role": "user", "parts": list{object{"type": "text", "text": turn.Prompt}}}}}))
		chunk := func(seconds float64, typ string, o object) { o["type"] = typ; t.event(seconds, "", o) }
		part := func(seconds float64, kind, words string) {
			if words != "" {
				chunk(seconds, kind+"-start", object{"id": "0"})
				chunk(seconds, kind+"-delta", object{"id": "0", "delta": words})
				chunk(seconds, kind+"-end", object{"id": "0"})
			}
		}
		chunk(turn.At+0.1, "start", object{"messageId": fmt.Sprint("a-", s.session(), "-", i)})
		var sum Tokens
		for j := range turn.Responses {
			r := &turn.Responses[j]
			sum.add(r.Tokens)
			chunk(r.From, "start-step", object{})
			part(r.To, "reasoning", r.Think)
			part(r.To, "text", r.Text)
			for _, w := range r.Work {
				chunk(w.From, "tool-input-start", object{"toolCallId": w.ID, "toolName": w.Name})
				chunk(w.From, "tool-input-available", object{"toolCallId": w.ID, "toolName": w.Name, "input": input(w)})
				switch {
				case w.Open:
				case w.Failed:
					chunk(w.To, "tool-output-error", object{"toolCallId": w.ID, "errorText": w.Result})
				default:
					chunk(w.To, "tool-output-available", object{"toolCallId": w.ID, "output": w.Result})
				}
			}
			chunk(max(r.To, lastResult(r, nil)), "finish-step", object{})
		}
		last := &turn.Responses[len(turn.Responses)-1]
		in, written := sum.Input+sum.CacheRead+sum.CacheWrite, sum.Output+sum.Reasoning
		chunk(max(last.To, lastResult(last, nil))+0.01, "finish", object{"finishReason": "stop", "messageMetadata": object{"totalUsage": object{"inputTokens": in, "outputTokens": written, "totalTokens": in + written,
			"inputTokenDetails":  object{"noCacheTokens": sum.Input, "cacheReadTokens": sum.CacheRead, "cacheWriteTokens": sum.CacheWrite},
			"outputTokenDetails": object{"textTokens": sum.Output, "reasoningTokens": sum.Reasoning}}}})
		t.add(max(last.To, lastResult(last, nil))+0.02, frame.Frame{Kind: frame.Event, Data: []byte("[DONE]")})
		out = append(out, t.stream())
	}
	return out
}

// langGraph writes runs of LangGraph's platform in two stream modes.
func langGraph() format {
	return format{name: "langgraph", write: writeLangGraph, lens: lens{
		can: []feature{calls, parallel, failure, thoughts, interrupted, turns, numbering}, heard: true, calledAt: whole,
	}}
}

func writeLangGraph(s *Scenario) (out []Stream) {
	thread := s.session()
	var state list
	n := 0
	for i, turn := range s.Turns {
		path := "/threads/" + thread + "/runs/stream"
		t := &tape{Stream: Stream{Origin: "http://127.0.0.1:2024" + path, Live: true}}
		human := object{"type": "human", "content": turn.Prompt, "id": fmt.Sprint("human-", thread, "-", i)}
		t.add(turn.At, request(path, object{"assistant_id": "locks", "stream_mode": list{"values", "messages-tuple"}, "input": object{"messages": list{object{"role": "user", "content": turn.Prompt}}}}))
		t.event(turn.At+0.01, "metadata", object{"run_id": fmt.Sprint("1ef0aaaa-", thread, "-", i), "attempt": 1})
		state = append(state, human)
		values := func(seconds float64) { t.event(seconds, "values", object{"messages": append(list(nil), state...)}) }
		values(turn.At + 0.02)
		for j := range turn.Responses {
			r := &turn.Responses[j]
			n++
			node := func(name string) object {
				ns := fmt.Sprint(name, ":", id(2000+n))
				return object{"langgraph_node": name, "langgraph_checkpoint_ns": ns, "thread_id": thread, "ls_provider": "anthropic", "ls_model_name": "claude-sonnet-4-5"}
			}
			u := r.Tokens
			usage := object{"input_tokens": u.Input + u.CacheRead + u.CacheWrite, "output_tokens": u.Output + u.Reasoning,
				"input_token_details": object{"cache_read": u.CacheRead, "cache_creation": u.CacheWrite}, "output_token_details": object{"reasoning": u.Reasoning}}
			reply := fmt.Sprint("run--", thread, "-", n)
			chunk := func(seconds float64, content list, o object) {
				o["type"], o["id"], o["content"] = "AIMessageChunk", reply, content
				t.event(seconds, "messages", list{o, node("model")})
			}
			var content, made list
			if r.Think != "" {
				content = append(content, object{"type": "thinking", "thinking": r.Think})
			}
			if r.Text != "" {
				content = append(content, object{"type": "text", "text": r.Text})
			}
			if content != nil {
				chunk(r.To, content, object{})
			}
			for k, w := range r.Work {
				chunk(w.From, list{}, object{"tool_call_chunks": list{object{"type": "tool_call_chunk", "index": k, "id": w.ID, "name": w.Name, "args": text(input(w))}}})
				made = append(made, object{"type": "tool_call", "id": w.ID, "name": w.Name, "args": input(w)})
			}
			chunk(called(r), list{}, object{"usage_metadata": usage, "chunk_position": "last"})
			whole := object{"type": "ai", "id": reply, "content": content, "tool_calls": made, "usage_metadata": usage}
			state = append(state, whole)
			values(called(r) + 0.01)
			for _, w := range r.Work {
				if w.Open {
					continue
				}
				result := object{"type": "tool", "id": "tool-" + reply + w.ID, "tool_call_id": w.ID, "name": w.Name, "content": w.Result, "status": map[bool]string{true: "error", false: "success"}[w.Failed]}
				t.event(w.To, "messages", list{result, node("tools")})
				state = append(state, result)
			}
			if len(r.Work) > 0 && !r.Work[0].Open {
				values(lastResult(r, nil) + 0.01)
			}
		}
		out = append(out, t.stream())
	}
	return out
}
