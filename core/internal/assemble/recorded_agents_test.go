package assemble_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/earshot-dev/earshot/core/frame"
)

// lines writes a stream of JSON lines.
func (s *story) lines(format, origin string, list ...any) recording {
	rec := recording{format: format, origin: origin}
	for _, v := range list {
		rec.frames = append(rec.frames, frame.Frame{Kind: frame.Line, Data: line(v)})
	}
	return rec
}

func (s *story) stamp(t float64) string { return s.at(t).UTC().Format("2006-01-02T15:04:05.000Z") }

// codexTokens are the counts of a response as OpenAI writes them.
func (st *step) codexTokens() object {
	return object{
		"input_tokens": st.in + st.read, "input_tokens_details": object{"cached_tokens": st.read}, "cached_input_tokens": st.read,
		"output_tokens": st.out, "output_tokens_details": object{"reasoning_tokens": 0}, "reasoning_output_tokens": 0, "total_tokens": st.in + st.read + st.out,
	}
}

// codex is the call as Codex has it, where another tool runs an agent.
func (c toolCall) codex() toolCall {
	if a := c.agent; a != nil {
		c.tool, c.args = "spawn_agent", string(line(object{"agent_type": a.typ, "message": a.task}))
		c.result = string(line(object{"agent_id": a.id, "nickname": a.typ}))
	}
	return c
}

// rollout writes the files of format codex. items is set if the items have ids, as newer versions write them.
func (s *story) rollout(items bool) (out []recording) {
	var thread func(id, parent string, turns []turn)
	thread = func(id, parent string, turns []turn) {
		var list []any
		add := func(at float64, typ string, payload object) {
			list = append(list, object{"timestamp": s.stamp(at), "type": typ, "payload": payload})
		}
		item := func(at float64, id string, payload object) {
			if items && id != "" {
				payload["id"] = id
			}
			add(at, "response_item", payload)
		}
		meta := object{"id": id, "session_id": s.session, "timestamp": s.stamp(turns[0].at), "cwd": "/srv", "originator": "codex_cli_rs", "cli_version": "0.146.0", "source": "cli", "model_provider": "openai"}
		if parent != "" {
			meta["source"] = object{"subagent": object{"thread_spawn": object{"parent_thread_id": parent, "depth": 1}}}
		}
		add(turns[0].at, "session_meta", meta)
		var total step
		for _, t := range turns {
			add(t.at, "event_msg", object{"type": "task_started", "turn_id": t.prompt})
			add(t.at, "turn_context", object{"turn_id": t.prompt, "cwd": "/srv", "model": "gpt-small-1"})
			item(t.at, "", object{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": t.text}}})
			for _, st := range t.steps {
				if st.text != "" {
					item(st.to, "msg_"+st.id, object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": st.text}}})
				}
				for _, c := range st.calls {
					c = c.codex()
					item(st.to, "fc_"+c.id, object{"type": "function_call", "call_id": c.id, "name": c.tool, "arguments": c.args})
				}
				total.in, total.out, total.read = total.in+st.in, total.out+st.out, total.read+st.read
				add(st.to, "event_msg", object{"type": "token_count", "info": object{"total_token_usage": total.codexTokens(), "last_token_usage": st.codexTokens()}})
				for _, c := range st.calls {
					c = c.codex()
					if a := c.agent; a != nil {
						thread(a.id, id, []turn{{prompt: a.id + "-turn", text: a.task, at: c.from, end: c.to, steps: a.steps}})
					}
					item(c.to, "", object{"type": "function_call_output", "call_id": c.id, "output": c.result})
				}
			}
			add(t.end, "event_msg", object{"type": "task_complete", "turn_id": t.prompt})
		}
		out = append(out, s.lines("codex", "/home/ada/.codex/sessions/rollout-2026-03-03T06-10-00-"+id+".jsonl", list...))
	}
	thread(s.session, "", s.turns)
	slices.Reverse(out)
	return out
}

// logRecords writes log records over OTLP, a frame each.
func (s *story) logRecords(format, origin string) (rec *recording, event func(name string, at float64, fields object)) {
	rec = &recording{format: format, origin: origin}
	return rec, func(name string, at float64, fields object) {
		fields["event.name"], fields["event.timestamp"] = name, s.stamp(at)
		nano := fmt.Sprint(s.at(at).UnixNano())
		rec.frames = append(rec.frames, frame.Frame{Kind: frame.Line, Data: line(object{"resourceLogs": []object{{"scopeLogs": []object{{
			"logRecords": []object{{"timeUnixNano": "0", "observedTimeUnixNano": nano, "body": nil, "attributes": attributes(fields)}},
		}}}}})})
	}
}

// codexLogs writes the log events of format codex-otel: each thread is a conversation, and no response has an id.
func (s *story) codexLogs() []recording {
	rec, event := s.logRecords("codex-otel", "codex-otlp")
	var steps func(thread string, list []step)
	steps = func(thread string, list []step) {
		for _, st := range list {
			event("codex.sse_event", st.to, object{
				"conversation.id": thread, "model": "gpt-small-1", "event.kind": "response.completed", "input_token_count": st.in + st.read, "cached_token_count": st.read,
				"output_token_count": st.out, "reasoning_token_count": 0, "tool_token_count": st.in + st.read + st.out, "duration_ms": int((st.to - st.from) * 1000),
			})
			for _, c := range st.calls {
				c = c.codex()
				if a := c.agent; a != nil {
					event("codex.user_prompt", c.from, object{"conversation.id": a.id, "prompt": a.task})
					steps(a.id, a.steps)
				}
				event("codex.tool_result", c.to, object{"conversation.id": thread, "call_id": c.id, "tool_name": c.tool, "arguments": c.args, "output": c.result, "success": fmt.Sprint(!c.failed), "duration_ms": int((c.to - c.from) * 1000)})
			}
		}
	}
	for _, t := range s.turns {
		event("codex.user_prompt", t.at, object{"conversation.id": s.session, "prompt": t.text})
		steps(s.session, t.steps)
	}
	return []recording{*rec}
}

// spans writes a trace of spans over OTLP, from the leaves on, as a client does.
func (s *story) spans(rec *recording, n int, write func(span func(parent, name string, from, to float64, fields object) string)) {
	var spans []object
	write(func(parent, name string, from, to float64, fields object) string {
		id := fmt.Sprintf("%08x%08x", n+1, len(spans)+1)
		spans = append(spans, object{
			"traceId": fmt.Sprintf("%032x", s.start.Unix()*100+int64(n)), "spanId": id, "parentSpanId": parent, "name": name,
			"startTimeUnixNano": fmt.Sprint(s.at(from).UnixNano()), "endTimeUnixNano": fmt.Sprint(s.at(to).UnixNano()), "attributes": attributes(fields),
		})
		return id
	})
	slices.Reverse(spans)
	rec.frames = append(rec.frames, frame.Frame{Kind: frame.Line, Data: line(object{"resourceSpans": []object{{"scopeSpans": []object{{"spans": spans}}}}})})
}

// codexTraces writes the spans of format codex-otel: each turn names its thread and itself.
func (s *story) codexTraces() []recording {
	rec := recording{format: "codex-otel", origin: "codex-otlp-traces"}
	n := 0
	var trace func(thread, turn string, from, to float64, list []step)
	trace = func(thread, turn string, from, to float64, list []step) {
		n++
		s.spans(&rec, n, func(span func(parent, name string, from, to float64, fields object) string) {
			root := span("", "session_task.turn", from, to, object{"thread.id": thread, "turn.id": turn, "model": "gpt-small-1"})
			for _, st := range list {
				span(root, "handle_responses", st.from, st.to, object{"gen_ai.usage.input_tokens": st.in + st.read, "gen_ai.usage.cache_read.input_tokens": st.read, "gen_ai.usage.output_tokens": st.out})
			}
		})
		for _, st := range list {
			for _, c := range st.calls {
				if a := c.agent; a != nil {
					trace(a.id, a.id+"-turn", c.from, c.to, a.steps)
				}
			}
		}
	}
	for _, t := range s.turns {
		trace(s.session, t.prompt, t.at, t.end, t.steps)
	}
	return []recording{rec}
}

// geminiTraces writes the spans of format gemini-otel, whose calls have ids.
func (s *story) geminiTraces() []recording {
	rec := recording{format: "gemini-otel", origin: "gemini-otlp-traces"}
	for n, t := range s.turns {
		s.spans(&rec, n, func(span func(parent, name string, from, to float64, fields object) string) {
			of := func(parent, op string, from, to float64, fields object) string {
				fields["session.id"], fields["gen_ai.operation.name"] = s.session, op
				return span(parent, op, from, to, fields)
			}
			var steps func(parent string, list []step)
			steps = func(parent string, list []step) {
				for _, st := range list {
					of(parent, "llm_call", st.from, st.to, object{"gen_ai.request.model": "gem-small", "gen_ai.response.id": "gr-" + st.id, "gen_ai.usage.input_tokens": st.in + st.read, "gen_ai.usage.cache_read.input_tokens": st.read, "gen_ai.usage.output_tokens": st.out})
					for _, c := range st.calls {
						call := of(parent, "tool_call", c.from, c.to, object{"gen_ai.tool.name": c.tool, "gen_ai.tool.call_id": c.id})
						if a := c.agent; a != nil {
							steps(of(call, "agent_call", c.from, c.to, object{"gen_ai.agent.name": a.typ}), a.steps)
						}
					}
				}
			}
			steps(of("", "user_prompt", t.at, t.end, object{}), t.steps)
		})
	}
	return []recording{rec}
}

// responses writes the exchanges of format openai-responses, a stream each. turns is set if the requests name their turn.
func (s *story) responses(turns bool) (out []recording) {
	exchange := func(thread, parent, turn string, st step, input []object) {
		header := object{"session-id": s.session, "thread-id": thread}
		if parent != "" {
			header["x-codex-parent-thread-id"], header["x-openai-subagent"] = parent, "collab_spawn"
		}
		if turns {
			header["x-codex-turn-metadata"] = string(line(object{"session_id": s.session, "thread_id": thread, "turn_id": turn}))
		}
		rec := recording{format: "openai-responses", origin: "http://127.0.0.1/" + st.id}
		add := func(kind frame.Kind, id, name string, at float64, data any) {
			rec.frames = append(rec.frames, frame.Frame{Kind: kind, ID: id, Name: name, FromClient: kind == frame.Request, At: s.at(at).UnixNano(), Data: line(data)})
		}
		add(frame.Request, string(line(header)), "POST /v1/responses", st.from, object{"model": "gpt-small-1", "stream": true, "instructions": "You keep a lighthouse.", "input": input})
		var items []object
		if st.text != "" {
			items = append(items, object{"id": "msg_" + st.id, "type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": st.text}}})
		}
		for _, c := range st.calls {
			c = c.codex()
			items = append(items, object{"id": "fc_" + c.id, "type": "function_call", "call_id": c.id, "name": c.tool, "arguments": c.args})
		}
		event := func(at float64, o object) { add(frame.Event, "", o["type"].(string), at, o) }
		event(st.from+0.2, object{"type": "response.created", "response": object{"id": "resp_" + st.id, "object": "response", "model": "gpt-small-1", "status": "in_progress"}})
		for _, it := range items {
			event(st.to, object{"type": "response.output_item.done", "item": it})
		}
		event(st.to, object{"type": "response.completed", "response": object{"id": "resp_" + st.id, "object": "response", "model": "gpt-small-1", "status": "completed", "output": items, "usage": st.codexTokens()}})
		rec.frames = append(rec.frames, frame.Frame{Kind: frame.Close, At: s.at(st.to).UnixNano()})
		out = append(out, rec)
	}
	var steps func(thread, parent, turn, text string, list []step)
	steps = func(thread, parent, turn, text string, list []step) {
		input := []object{{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": text}}}}
		for _, st := range list {
			exchange(thread, parent, turn, st, slices.Clone(input))
			if st.text != "" {
				input = append(input, object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": st.text}}})
			}
			for _, c := range st.calls {
				c = c.codex()
				input = append(input, object{"type": "function_call", "call_id": c.id, "name": c.tool, "arguments": c.args})
			}
			for _, c := range st.calls {
				c = c.codex()
				if a := c.agent; a != nil {
					steps(a.id, thread, a.id+"-turn", a.task, a.steps)
				}
				input = append(input, object{"type": "function_call_output", "call_id": c.id, "output": c.result})
			}
		}
	}
	for _, t := range s.turns {
		steps(s.session, "", t.prompt, t.text, t.steps)
	}
	return out
}

// exec writes the standard output of format codex-exec, which has neither prompts nor ids of calls.
func (s *story) exec() []recording {
	var list []any
	list = append(list, object{"type": "thread.started", "thread_id": s.session})
	var total step
	for _, t := range s.turns {
		list = append(list, object{"type": "turn.started"})
		n := 0
		item := func(fields object) {
			fields["id"] = fmt.Sprint("item_", n)
			n++
			list = append(list, object{"type": "item.completed", "item": fields})
		}
		for _, st := range t.steps {
			if st.text != "" {
				item(object{"type": "agent_message", "text": st.text})
			}
			for _, c := range st.calls {
				item(object{"type": "command_execution", "command": c.args, "aggregated_output": c.result, "exit_code": 0, "status": "completed"})
			}
			total.in, total.out, total.read = total.in+st.in, total.out+st.out, total.read+st.read
		}
		list = append(list, object{"type": "turn.completed", "usage": total.codexTokens()})
	}
	rec := s.lines("codex-exec", "exec", list...)
	for i := range rec.frames {
		rec.frames[i].At = s.at(float64(i)).UnixNano()
	}
	return []recording{rec}
}

// appServer writes the messages of format codex-app-server: a recording of one connection, on which the threads
// of sub-agents are, too. A shell command is an item with the id of its call.
func (s *story) appServer() []recording {
	var list []any
	millis := func(t float64) int64 { return s.at(t).UnixMilli() }
	notify := func(at float64, method string, params object) {
		list = append(list, object{"method": method, "params": params, "emittedAtMs": millis(at)})
	}
	var play func(thread, id, text string, at, end float64, steps []step, total *step)
	play = func(thread, id, text string, at, end float64, steps []step, total *step) {
		item := func(from, to float64, it object) {
			if from > 0 {
				begun := object{}
				for k, v := range it {
					begun[k] = v
				}
				for _, k := range []string{"aggregatedOutput", "exitCode", "receiverThreadIds", "agentsStates"} {
					delete(begun, k)
				}
				notify(from, "item/started", object{"threadId": thread, "turnId": id, "item": begun, "startedAtMs": millis(from)})
			}
			if to > 0 {
				notify(to, "item/completed", object{"threadId": thread, "turnId": id, "item": it, "completedAtMs": millis(to)})
			}
		}
		turn := func(status string) object {
			return object{"id": id, "items": []object{}, "status": status, "startedAt": s.at(at).Unix(), "completedAt": s.at(end).Unix()}
		}
		notify(at, "turn/started", object{"threadId": thread, "turn": turn("inProgress")})
		item(at, at, object{"type": "userMessage", "id": "user-" + id, "content": []object{{"type": "text", "text": text}}})
		for _, st := range steps {
			if st.text != "" {
				item(st.to, st.to, object{"type": "agentMessage", "id": "msg_" + st.id, "text": st.text})
			}
			of := func(c toolCall) object {
				if c.agent != nil {
					return object{
						"type": "collabAgentToolCall", "id": c.id, "tool": "spawnAgent", "senderThreadId": thread, "receiverThreadIds": []string{c.agent.id}, "prompt": c.agent.task,
						"agentsStates": object{c.agent.id: object{"status": "completed", "message": c.result}},
					}
				}
				return object{"type": "commandExecution", "id": c.id, "command": c.args, "aggregatedOutput": c.result, "exitCode": 0}
			}
			for _, c := range st.calls {
				item(st.to, 0, of(c))
			}
			total.in, total.out, total.read = total.in+st.in, total.out+st.out, total.read+st.read
			notify(st.to, "thread/tokenUsage/updated", object{"threadId": thread, "turnId": id, "tokenUsage": object{"total": total.appServerTokens(), "last": st.appServerTokens()}})
			for _, c := range st.calls {
				if a := c.agent; a != nil {
					notify(c.from, "thread/started", object{"thread": object{"id": a.id, "sessionId": s.session, "parentThreadId": thread, "agentRole": a.typ, "modelProvider": "openai", "cwd": "/srv"}})
					play(a.id, a.id+"-turn", a.task, c.from, c.to, a.steps, new(step))
				}
				item(0, c.to, of(c))
			}
		}
		notify(end, "turn/completed", object{"threadId": thread, "turn": turn("completed")})
	}
	list = append(list, object{"id": 1, "result": object{"model": "gpt-small-1", "thread": object{"id": s.session, "sessionId": s.session, "modelProvider": "openai", "cwd": "/srv", "source": "vscode"}}, "emittedAtMs": millis(0)})
	var total step
	for _, t := range s.turns {
		play(s.session, t.prompt, t.text, t.at, t.end, t.steps, &total)
	}
	return []recording{s.lines("codex-app-server", "/var/lib/earshot/wrap/codex-app-server/"+s.session+".jsonl", list...)}
}

// appServerTokens are the counts of a response as the app server writes them.
func (st *step) appServerTokens() object {
	return object{"inputTokens": st.in + st.read, "cachedInputTokens": st.read, "outputTokens": st.out, "reasoningOutputTokens": 0, "totalTokens": st.in + st.read + st.out}
}

// chat writes the files of format gemini-cli.
func (s *story) chat() (out []recording) {
	tokens := func(st step) object {
		return object{"input": st.in + st.read, "output": st.out, "cached": st.read, "thoughts": 0, "tool": 0, "total": st.in + st.read + st.out}
	}
	var list []any
	var steps func(list *[]any, steps []step)
	steps = func(list *[]any, all []step) {
		for _, st := range all {
			o := object{"id": "g-" + st.id, "timestamp": s.stamp(st.to), "type": "gemini", "content": st.text, "tokens": tokens(st), "model": "gem-small"}
			var calls []object
			for _, c := range st.calls {
				call := object{
					"id": c.id, "name": c.tool, "args": json.RawMessage(c.args), "status": "success", "timestamp": s.stamp(c.to),
					"result": []object{{"functionResponse": object{"id": c.id, "name": c.tool, "response": object{"output": c.result}}}},
				}
				if a := c.agent; a != nil {
					call["agentId"] = a.id
					child := []any{
						object{"sessionId": a.id, "startTime": s.stamp(c.from), "kind": "subagent"},
						object{"id": "u-" + a.id, "timestamp": s.stamp(c.from), "type": "user", "content": a.task},
					}
					steps(&child, a.steps)
					out = append(out, s.lines("gemini-cli", "/home/ada/.gemini/tmp/x/chats/"+s.session+"/"+a.id+".jsonl", child...))
				}
				calls = append(calls, call)
			}
			if calls != nil {
				o["toolCalls"] = calls
			}
			*list = append(*list, o)
		}
	}
	list = append(list, object{"sessionId": s.session, "startTime": s.stamp(0), "kind": "main"})
	for _, t := range s.turns {
		list = append(list, object{"id": "u-" + t.prompt, "timestamp": s.stamp(t.at), "type": "user", "content": t.text})
		steps(&list, t.steps)
	}
	return append([]recording{s.lines("gemini-cli", "/home/ada/.gemini/tmp/x/chats/session-"+s.session+".jsonl", list...)}, out...)
}

// geminiLogs writes the log events of format gemini-otel, which have neither ids of calls nor of responses.
func (s *story) geminiLogs() []recording {
	rec, event := s.logRecords("gemini-otel", "gemini-otlp")
	var steps func(prompt string, list []step)
	steps = func(prompt string, list []step) {
		for _, st := range list {
			event("gemini_cli.api_response", st.to, object{
				"session.id": s.session, "prompt_id": prompt, "model": "gem-small", "input_token_count": st.in + st.read, "cached_content_token_count": st.read,
				"output_token_count": st.out, "thoughts_token_count": 0, "tool_token_count": 0, "duration_ms": int((st.to - st.from) * 1000),
			})
			for _, c := range st.calls {
				if a := c.agent; a != nil {
					steps(a.id+"#0", a.steps)
				}
				event("gemini_cli.tool_call", c.to, object{"session.id": s.session, "prompt_id": prompt, "function_name": c.tool, "function_args": c.args, "duration_ms": int((c.to - c.from) * 1000), "success": "true"})
			}
		}
	}
	for i, t := range s.turns {
		prompt := fmt.Sprintf("%s########%d", s.session, i)
		event("gemini_cli.user_prompt", t.at, object{"session.id": s.session, "prompt_id": prompt, "prompt": t.text})
		steps(prompt, t.steps)
	}
	return []recording{*rec}
}

// assist writes the exchanges of format gemini-api as Code Assist has them, whose requests name session and prompt.
func (s *story) assist() (out []recording) {
	exchange := func(prompt string, st step, contents []object) {
		rec := recording{format: "gemini-api", origin: "http://127.0.0.1/" + st.id}
		add := func(kind frame.Kind, name string, at float64, data any) {
			rec.frames = append(rec.frames, frame.Frame{Kind: kind, Name: name, FromClient: kind == frame.Request, At: s.at(at).UnixNano(), Data: line(data)})
		}
		add(frame.Request, "POST /v1internal:generateContent", st.from, object{"model": "gem-small", "user_prompt_id": prompt, "request": object{"contents": contents, "session_id": s.session}})
		var parts []object
		if st.text != "" {
			parts = append(parts, object{"text": st.text})
		}
		for _, c := range st.calls {
			parts = append(parts, object{"functionCall": object{"name": c.tool, "args": json.RawMessage(c.args)}})
		}
		add(frame.Body, "", st.to, object{"response": object{
			"candidates":   []object{{"content": object{"parts": parts, "role": "model"}, "finishReason": "STOP"}},
			"modelVersion": "gem-small", "responseId": "gr-" + st.id,
			"usageMetadata": object{"promptTokenCount": st.in + st.read, "cachedContentTokenCount": st.read, "candidatesTokenCount": st.out, "totalTokenCount": st.in + st.read + st.out},
		}})
		rec.frames = append(rec.frames, frame.Frame{Kind: frame.Close, At: s.at(st.to).UnixNano()})
		out = append(out, rec)
	}
	var steps func(prompt, text string, list []step)
	steps = func(prompt, text string, list []step) {
		contents := []object{{"role": "user", "parts": []object{{"text": text}}}}
		for _, st := range list {
			exchange(prompt, st, slices.Clone(contents))
			var calls, results []object
			if st.text != "" {
				calls = append(calls, object{"text": st.text})
			}
			for _, c := range st.calls {
				if a := c.agent; a != nil {
					steps(a.id+"#0", a.task, a.steps)
				}
				calls = append(calls, object{"functionCall": object{"id": c.id, "name": c.tool, "args": json.RawMessage(c.args)}})
				results = append(results, object{"functionResponse": object{"id": c.id, "name": c.tool, "response": object{"output": c.result}}})
			}
			contents = append(contents, object{"role": "model", "parts": calls})
			if results != nil {
				contents = append(contents, object{"role": "user", "parts": results})
			}
		}
	}
	for i, t := range s.turns {
		steps(fmt.Sprintf("%s########%d", s.session, i), t.text, t.steps)
	}
	return out
}

// eventLog writes the file of format copilot: a message has its output alone, and the end of the program the totals.
func (s *story) eventLog() []recording {
	var list []any
	n := 0
	add := func(at float64, agentID, typ string, data object) {
		n++
		o := object{"type": typ, "data": data, "id": fmt.Sprintf("%s-record-%04d", s.session, n), "timestamp": s.stamp(at)}
		if agentID != "" {
			o["agentId"] = agentID
		}
		list = append(list, o)
	}
	add(0, "", "session.start", object{"sessionId": s.session, "copilotVersion": "1.0.74", "context": object{"cwd": "/srv"}})
	var total step
	var steps func(agentID, interaction string, all []step)
	steps = func(agentID, interaction string, all []step) {
		for _, st := range all {
			requests := []object{}
			for _, c := range st.calls {
				requests = append(requests, object{"toolCallId": c.id, "name": c.tool, "arguments": json.RawMessage(c.args), "type": "function"})
			}
			add(st.to, agentID, "assistant.message", object{"messageId": "m-" + st.id, "content": st.text, "toolRequests": requests, "interactionId": interaction, "outputTokens": st.out, "model": "gpt-small-2", "apiCallId": st.id})
			total.in, total.out, total.read = total.in+st.in, total.out+st.out, total.read+st.read
			for _, c := range st.calls {
				add(c.from, agentID, "tool.execution_start", object{"toolCallId": c.id, "toolName": c.tool, "arguments": json.RawMessage(c.args)})
				if a := c.agent; a != nil {
					add(c.from, c.id, "subagent.started", object{"toolCallId": c.id, "agentName": a.typ, "model": "gpt-small-2"})
					steps(c.id, interaction, a.steps)
					add(c.to, c.id, "subagent.completed", object{"toolCallId": c.id, "agentName": a.typ})
				}
				add(c.to, agentID, "tool.execution_complete", object{"toolCallId": c.id, "success": !c.failed, "result": object{"content": c.result}})
			}
		}
	}
	for _, t := range s.turns {
		add(t.at, "", "user.message", object{"content": t.text, "interactionId": t.prompt})
		steps("", t.prompt, t.steps)
	}
	last := s.turns[len(s.turns)-1].end
	add(last, "", "session.shutdown", object{"shutdownType": "routine", "modelMetrics": object{"gpt-small-2": object{
		"requests": object{"count": 4}, "usage": object{"inputTokens": total.in + total.read, "outputTokens": total.out, "cacheReadTokens": total.read, "cacheWriteTokens": 0},
	}}})
	return []recording{s.lines("copilot", "/home/ada/.copilot/session-state/"+s.session+"/events.jsonl", list...)}
}

// copilotTraces writes the spans of format copilot-otel.
func (s *story) copilotTraces() []recording {
	rec := recording{format: "copilot-otel", origin: "copilot-otlp"}
	for n, t := range s.turns {
		s.spans(&rec, n, func(write func(parent, name string, from, to float64, fields object) string) {
			span := func(parent, name, op string, from, to float64, fields object) string {
				fields["gen_ai.conversation.id"], fields["gen_ai.operation.name"] = s.session, op
				return write(parent, name, from, to, fields)
			}
			root := span("", "invoke_agent", "invoke_agent", t.at, t.end, object{"gen_ai.agent.name": "copilot-cli", "github.copilot.interaction_id": t.prompt})
			var steps func(parent string, list []step)
			steps = func(parent string, list []step) {
				for _, st := range list {
					span(parent, "chat gpt-small-2", "chat", st.from, st.to, object{
						"gen_ai.request.model": "gpt-small-2", "gen_ai.response.id": st.id, "gen_ai.usage.input_tokens": st.in + st.read,
						"gen_ai.usage.cache_read.input_tokens": st.read, "gen_ai.usage.output_tokens": st.out,
					})
					for _, c := range st.calls {
						call := span(parent, "execute_tool "+c.tool, "execute_tool", c.from, c.to, object{"gen_ai.tool.name": c.tool, "gen_ai.tool.call.id": c.id})
						if a := c.agent; a != nil {
							steps(span(call, "invoke_agent "+a.typ, "invoke_agent", c.from, c.to, object{"gen_ai.agent.name": a.typ}), a.steps)
						}
					}
				}
			}
			steps(root, t.steps)
		})
	}
	return []recording{rec}
}

// stream writes the output of format claude-stream: a response's lines have the output tokens as they were when it began. requests is
// set if they name the request, as newer versions do.
func (s *story) stream(requests bool) []recording {
	var list []any
	n := 0
	var at []float64
	add := func(t float64, parent string, o object) {
		n++
		o["session_id"], o["uuid"], o["parent_tool_use_id"] = s.session, fmt.Sprintf("%s-stream-%04d", s.session, n), nil
		if parent != "" {
			o["parent_tool_use_id"] = parent
		}
		list, at = append(list, o), append(at, t)
	}
	var main step
	var steps func(parent string, all []step)
	steps = func(parent string, all []step) {
		for _, st := range all {
			out := min(st.out, 2)
			if parent != "" {
				out = st.out
			} else {
				main.in, main.out, main.read, main.write = main.in+st.in, main.out+st.out, main.read+st.read, main.write+st.write
			}
			for _, b := range st.blocks() {
				o := object{"type": "assistant"}
				if requests {
					o["request_id"] = st.request
				}
				o["message"] = object{
					"id": st.id, "type": "message", "role": "assistant", "model": "claude-small-1", "content": []object{b}, "stop_reason": nil,
					"usage": object{"input_tokens": st.in, "output_tokens": out, "cache_read_input_tokens": st.read, "cache_creation_input_tokens": st.write},
				}
				add(st.to, parent, o)
			}
			for _, c := range st.calls {
				o := object{"type": "user", "message": object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": c.id, "content": c.result, "is_error": c.failed}}}}
				if a := c.agent; a != nil {
					add(c.from, "", object{"type": "system", "subtype": "task_started", "task_id": a.id, "tool_use_id": c.id, "description": a.task, "task_type": "local_agent", "subagent_type": a.typ, "prompt": a.task})
					add(c.from, c.id, object{"type": "user", "message": object{"role": "user", "content": []object{{"type": "text", "text": a.task}}}})
					steps(c.id, a.steps)
					o["tool_use_result"] = object{"status": "completed", "agentId": a.id, "content": []object{{"type": "text", "text": c.result}}}
				}
				add(c.to, parent, o)
			}
		}
	}
	for _, t := range s.turns {
		main = step{}
		add(t.at, "", object{"type": "system", "subtype": "init", "cwd": "/srv", "model": "claude-small-1", "claude_code_version": "2.1.260"})
		add(t.at, "", object{"type": "user", "message": object{"role": "user", "content": t.text}, "isReplay": true})
		steps("", t.steps)
		add(t.end, "", object{"type": "result", "subtype": "success", "is_error": false, "usage": object{"input_tokens": main.in, "output_tokens": main.out, "cache_read_input_tokens": main.read, "cache_creation_input_tokens": main.write}})
	}
	rec := s.lines("claude-stream", "stdout", list...)
	for i := range rec.frames {
		rec.frames[i].At = s.at(at[i]).UnixNano()
	}
	return []recording{rec}
}
