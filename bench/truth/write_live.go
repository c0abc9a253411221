package truth

import (
	"fmt"

	"github.com/earshot-dev/earshot/core/frame"
)

// spoken is a part of the conversation as a request repeats it.
type spoken struct {
	prompt string
	answer *Response
	result *Work
}

// exchanges writes each request with its response as a stream, as a tap records them. A request has the whole
// conversation before it, and is made when the results that it has are there.
func (s *Scenario) exchanges(origin string, request func(before []spoken) frame.Frame, refusal object, answer func(t *tape, r *Response, name string)) (out []Stream) {
	var before []spoken
	for i, turn := range s.Turns {
		before = append(before, spoken{prompt: turn.Prompt})
		from := turn.At
		for j := range turn.Responses {
			r := &turn.Responses[j]
			if r.Retried {
				t := &tape{Stream: Stream{Origin: origin, Live: true}}
				t.add(from, request(before))
				t.add(from+0.05, frame.Frame{Kind: frame.Body, Data: encode(refusal)})
				t.add(from+0.05, frame.Frame{Kind: frame.Close})
				out, from = append(out, t.stream()), r.From
			}
			t := &tape{Stream: Stream{Origin: origin, Live: true}}
			t.add(from, request(before))
			answer(t, r, fmt.Sprintf("%s%d%d", s.session()[4:8], i, j))
			t.add(called(r), frame.Frame{Kind: frame.Close})
			out = append(out, t.stream())
			before = append(before, spoken{answer: r})
			for _, w := range r.Work {
				before = append(before, spoken{result: w})
			}
			from = lastResult(r, nil)
		}
	}
	return out
}

// called is when the last call of a response was made, or the response was complete.
func called(r *Response) float64 {
	end := r.To
	for _, w := range r.Work {
		end = max(end, w.From)
	}
	return end
}

func request(path string, body object) frame.Frame {
	return frame.Frame{Kind: frame.Request, Name: "POST " + path, FromClient: true, Data: encode(body)}
}

// withResult adds a result to the user's message that has those of the calls beside it.
func withResult(messages list, result object) list {
	if last, ok := messages[len(messages)-1].(object); ok && last["role"] == "user" {
		last["content"] = append(last["content"].(list), result)
		return messages
	}
	return append(messages, object{"role": "user", "content": list{result}})
}

// anthropic writes Anthropic's Messages API, streamed.
func anthropic() format {
	return format{name: "anthropic-sse", lens: lens{
		can: []feature{calls, parallel, failure, retry, thoughts, interrupted, turns}, tokens: unsplit, heard: true, endedAt: lastResult,
	}, write: func(s *Scenario) []Stream {
		return s.exchanges("https://api.anthropic.com/v1/messages", func(before []spoken) frame.Frame {
			var messages list
			for _, b := range before {
				switch {
				case b.answer != nil:
					content := list{}
					if b.answer.Text != "" {
						content = append(content, object{"type": "text", "text": b.answer.Text})
					}
					for _, w := range b.answer.Work {
						content = append(content, object{"type": "tool_use", "id": w.ID, "name": w.Name, "input": input(w)})
					}
					messages = append(messages, object{"role": "assistant", "content": content})
				case b.result != nil:
					block := object{"type": "tool_result", "tool_use_id": b.result.ID, "content": b.result.Result, "is_error": b.result.Failed}
					messages = withResult(messages, block)
				default:
					messages = append(messages, object{"role": "user", "content": b.prompt})
				}
			}
			return request("/v1/messages", object{"model": "claude-sonnet-4-5", "max_tokens": 1024, "stream": true, "messages": messages})
		}, object{"type": "error", "error": object{"type": "overloaded_error", "message": "Overloaded"}}, func(t *tape, r *Response, name string) {
			event := func(seconds float64, typ string, o object) { o["type"] = typ; t.event(seconds, typ, o) }
			event(r.From, "message_start", object{"message": object{"id": "msg_04" + name, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "content": list{},
				"usage": object{"input_tokens": r.Tokens.Input, "cache_creation_input_tokens": r.Tokens.CacheWrite, "cache_read_input_tokens": r.Tokens.CacheRead, "output_tokens": 1}}})
			n := 0
			block := func(seconds float64, start, delta object) {
				event(seconds, "content_block_start", object{"index": n, "content_block": start})
				event(seconds, "content_block_delta", object{"index": n, "delta": delta})
				event(seconds, "content_block_stop", object{"index": n})
				n++
			}
			stop := "end_turn"
			if r.Think != "" {
				block(r.To, object{"type": "thinking", "thinking": ""}, object{"type": "thinking_delta", "thinking": r.Think})
			}
			if r.Text != "" {
				block(r.To, object{"type": "text", "text": ""}, object{"type": "text_delta", "text": r.Text})
			}
			for _, w := range r.Work {
				stop = "tool_use"
				block(w.From, object{"type": "tool_use", "id": w.ID, "name": w.Name, "input": object{}}, object{"type": "input_json_delta", "partial_json": text(input(w))})
			}
			event(called(r), "message_delta", object{"delta": object{"stop_reason": stop}, "usage": object{"output_tokens": r.Tokens.Output + r.Tokens.Reasoning}})
			event(called(r), "message_stop", object{})
		})
	}}
}

// whole is when a response was complete, by which its calls begin where a protocol does not end each call.
func whole(r *Response, _ *Work) float64 { return called(r) }

// openAIChat writes OpenAI's Chat Completions, streamed.
func openAIChat() format {
	return format{name: "openai-chat", lens: lens{
		can: []feature{calls, parallel, retry, thoughts, interrupted, turns, numbering}, tokens: uncharged, calledAt: whole, heard: true, endedAt: lastResult,
	}, write: func(s *Scenario) []Stream {
		return s.exchanges("https://api.openai.com/v1/chat/completions", func(before []spoken) frame.Frame {
			messages := list{object{"role": "system", "content": "You keep the locks."}}
			for _, b := range before {
				switch {
				case b.answer != nil:
					o := object{"role": "assistant", "content": b.answer.Text}
					var made list
					for _, w := range b.answer.Work {
						made = append(made, object{"id": w.ID, "type": "function", "function": object{"name": w.Name, "arguments": text(input(w))}})
					}
					if made != nil {
						o["tool_calls"] = made
					}
					messages = append(messages, o)
				case b.result != nil:
					messages = append(messages, object{"role": "tool", "tool_call_id": b.result.ID, "content": b.result.Result})
				default:
					messages = append(messages, object{"role": "user", "content": b.prompt})
				}
			}
			return request("/v1/chat/completions", object{"model": "gpt-5-mini", "stream": true, "stream_options": object{"include_usage": true}, "messages": messages})
		}, object{"error": object{"message": "Rate limit reached", "type": "requests", "param": nil, "code": "rate_limit_exceeded"}}, func(t *tape, r *Response, name string) {
			chunk := func(seconds float64, choices list, usage any) {
				t.event(seconds, "", object{"id": "chatcmpl-" + name, "object": "chat.completion.chunk", "created": at(r.From).Unix(), "model": "gpt-5-mini-2025-08-07", "choices": choices, "usage": usage})
			}
			delta := func(seconds float64, d object, finish any) {
				chunk(seconds, list{object{"index": 0, "delta": d, "finish_reason": finish}}, nil)
			}
			if r.Think != "" {
				delta(r.To, object{"role": "assistant", "reasoning_content": r.Think}, nil)
			}
			delta(r.To, object{"role": "assistant", "content": r.Text}, nil)
			finish := "stop"
			for i, w := range r.Work {
				finish = "tool_calls"
				delta(w.From, object{"tool_calls": list{object{"index": i, "id": w.ID, "type": "function", "function": object{"name": w.Name, "arguments": ""}}}}, nil)
				delta(w.From, object{"tool_calls": list{object{"index": i, "function": object{"arguments": text(input(w))}}}}, nil)
			}
			delta(called(r), object{}, finish)
			in, out := r.Tokens.Input+r.Tokens.CacheRead+r.Tokens.CacheWrite, r.Tokens.Output+r.Tokens.Reasoning
			chunk(called(r), list{}, object{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
				"prompt_tokens_details": object{"cached_tokens": r.Tokens.CacheRead}, "completion_tokens_details": object{"reasoning_tokens": r.Tokens.Reasoning}})
			t.add(called(r), frame.Frame{Kind: frame.Event, Data: []byte("[DONE]")})
		})
	}}
}

// openAIResponses writes OpenAI's Responses API, streamed.
func openAIResponses() format {
	return format{name: "openai-responses", lens: lens{
		can: []feature{calls, parallel, retry, thoughts, interrupted, turns, numbering}, tokens: uncharged, heard: true, endedAt: lastResult,
	}, write: func(s *Scenario) []Stream {
		return s.exchanges("https://api.openai.com/v1/responses", func(before []spoken) frame.Frame {
			var in list
			for _, b := range before {
				switch {
				case b.answer != nil:
					if b.answer.Text != "" {
						in = append(in, object{"type": "message", "role": "assistant", "content": list{object{"type": "output_text", "text": b.answer.Text}}})
					}
					for _, w := range b.answer.Work {
						in = append(in, object{"type": "function_call", "call_id": w.ID, "name": w.Name, "arguments": text(input(w))})
					}
				case b.result != nil:
					in = append(in, object{"type": "function_call_output", "call_id": b.result.ID, "output": b.result.Result})
				default:
					in = append(in, object{"type": "message", "role": "user", "content": list{object{"type": "input_text", "text": b.prompt}}})
				}
			}
			return request("/v1/responses", object{"model": "gpt-5", "stream": true, "instructions": "You keep the locks.", "prompt_cache_key": s.session(), "input": in})
		}, object{"error": object{"message": "Rate limit reached", "type": "requests", "param": nil, "code": "rate_limit_exceeded"}}, func(t *tape, r *Response, name string) {
			n := 0
			event := func(seconds float64, typ string, o object) {
				n++
				o["type"], o["sequence_number"] = typ, n
				t.event(seconds, typ, o)
			}
			response := func(status string, output list, usage any) object {
				return object{"response": object{"id": "resp_" + name, "object": "response", "created_at": at(r.From).Unix(), "status": status, "model": "gpt-5-2025-08-07", "output": output, "usage": usage}}
			}
			event(r.From, "response.created", response("in_progress", list{}, nil))
			var items list
			item := func(seconds float64, prefix string, o object) {
				o["id"] = fmt.Sprint(prefix, name, len(items))
				event(seconds, "response.output_item.done", object{"output_index": len(items), "item": o})
				items = append(items, o)
			}
			if r.Think != "" {
				item(r.To, "rs_", object{"type": "reasoning", "summary": list{object{"type": "summary_text", "text": r.Think}}})
			}
			if r.Text != "" {
				item(r.To, "msg_", object{"type": "message", "role": "assistant", "status": "completed", "content": list{object{"type": "output_text", "text": r.Text, "annotations": list{}}}})
			}
			for _, w := range r.Work {
				item(w.From, "fc_", object{"type": "function_call", "status": "completed", "call_id": w.ID, "name": w.Name, "arguments": text(input(w))})
			}
			in, out := r.Tokens.Input+r.Tokens.CacheRead+r.Tokens.CacheWrite, r.Tokens.Output+r.Tokens.Reasoning
			event(called(r), "response.completed", response("completed", items, object{"input_tokens": in, "output_tokens": out, "total_tokens": in + out,
				"input_tokens_details": object{"cached_tokens": r.Tokens.CacheRead}, "output_tokens_details": object{"reasoning_tokens": r.Tokens.Reasoning}}))
		})
	}}
}

// gemini writes the API of the Gemini models, streamed; calls have no ids.
func gemini() format {
	return format{name: "gemini-api", lens: lens{
		can: []feature{calls, parallel, failure, retry, thoughts, interrupted, turns, numbering}, noIDs: true, tokens: uncharged, heard: true, endedAt: lastResult,
	}, write: func(s *Scenario) []Stream {
		return s.exchanges("https://generativelanguage.googleapis.com", func(before []spoken) frame.Frame {
			var contents list
			for _, b := range before {
				role, parts := "user", list{}
				switch {
				case b.answer != nil:
					role = "model"
					if b.answer.Text != "" {
						parts = append(parts, object{"text": b.answer.Text})
					}
					for _, w := range b.answer.Work {
						parts = append(parts, object{"functionCall": object{"name": w.Name, "args": input(w)}})
					}
				case b.result != nil:
					name := "output"
					if b.result.Failed {
						name = "error"
					}
					parts = list{object{"functionResponse": object{"name": b.result.Name, "response": object{name: b.result.Result}}}}
					if last := contents[len(contents)-1].(object); last["role"] == "user" {
						last["parts"] = append(last["parts"].(list), parts...)
						continue
					}
				default:
					parts = list{object{"text": b.prompt}}
				}
				contents = append(contents, object{"role": role, "parts": parts})
			}
			return request("/v1beta/models/gemini-9-flash:streamGenerateContent?alt=sse", object{"contents": contents})
		}, object{"error": object{"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}, func(t *tape, r *Response, name string) {
			chunk := func(seconds float64, part object, finish string) {
				u := r.Tokens
				in := u.Input + u.CacheRead + u.CacheWrite
				candidate := object{"content": object{"role": "model", "parts": list{part}}, "index": 0}
				if finish != "" {
					candidate["finishReason"] = finish
				}
				t.event(seconds, "", object{"candidates": list{candidate}, "modelVersion": "gemini-9-flash-001", "responseId": "gR4k" + name + "LockAB1",
					"usageMetadata": object{"promptTokenCount": in, "cachedContentTokenCount": u.CacheRead, "candidatesTokenCount": u.Output, "thoughtsTokenCount": u.Reasoning, "totalTokenCount": in + u.Output + u.Reasoning}})
			}
			if r.Think != "" {
				chunk(r.To, object{"text": r.Think, "thought": true}, "")
			}
			if r.Text != "" {
				chunk(r.To, object{"text": r.Text}, "")
			}
			for _, w := range r.Work {
				chunk(w.From, object{"functionCall": object{"name": w.Name, "args": input(w)}}, "")
			}
			chunk(called(r), object{"text": ""}, "STOP")
		})
	}}
}

// geminiLive writes a session of the Live API over a WebSocket, in which a text is asked and answered.
func geminiLive() format {
	return format{name: "gemini-live", lens: lens{
		can: []feature{calls, parallel, failure, thoughts, interrupted, turns}, tokens: uncharged, heard: true,
		calledAt: func(r *Response, _ *Work) float64 { return called(r) },
	}, write: func(s *Scenario) []Stream {
		t := &tape{Stream: Stream{Origin: "wss://generativelanguage.googleapis.com/ws/BidiGenerateContent", Live: true}}
		ask := func(seconds float64, o object) {
			t.add(seconds, frame.Frame{Kind: frame.Text, FromClient: true, Data: encode(o)})
		}
		answer := func(seconds float64, o object) {
			t.add(seconds, frame.Frame{Kind: frame.Binary, Data: encode(o)})
		}
		said := func(seconds float64, part object) {
			answer(seconds, object{"serverContent": object{"modelTurn": object{"role": "model", "parts": list{part}}}})
		}
		ask(0, object{"setup": object{"model": "models/gemini-9-flash-live", "generationConfig": object{"responseModalities": list{"TEXT"}}}})
		answer(0, object{"setupComplete": object{"sessionId": s.session()}})
		for _, turn := range s.Turns {
			ask(turn.At, object{"clientContent": object{"turns": list{object{"role": "user", "parts": list{object{"text": turn.Prompt}}}}, "turnComplete": true}})
			for i := range turn.Responses {
				r := &turn.Responses[i]
				u := r.Tokens
				in := u.Input + u.CacheRead + u.CacheWrite
				usage := object{"promptTokenCount": in, "cachedContentTokenCount": u.CacheRead, "responseTokenCount": u.Output, "thoughtsTokenCount": u.Reasoning, "totalTokenCount": in + u.Output + u.Reasoning}
				if r.Think != "" {
					said(r.To, object{"text": r.Think, "thought": true})
				}
				if r.Text != "" {
					said(r.To, object{"text": r.Text})
				}
				if len(r.Work) == 0 {
					answer(r.To, object{"serverContent": object{"turnComplete": true}, "usageMetadata": usage})
					continue
				}
				var made list
				for _, w := range r.Work {
					made = append(made, object{"id": w.ID, "name": w.Name, "args": input(w)})
				}
				answer(called(r), object{"toolCall": object{"functionCalls": made}, "usageMetadata": usage})
				for _, w := range r.Work {
					name := "output"
					if w.Failed {
						name = "error"
					}
					if !w.Open {
						ask(w.To, object{"toolResponse": object{"functionResponses": list{object{"id": w.ID, "name": w.Name, "response": object{name: w.Result}}}}})
					}
				}
			}
		}
		return []Stream{t.stream()}
	}}
}

// ollama writes Ollama's API; calls have no ids.
func ollama() format {
	return format{name: "ollama", lens: lens{
		can: []feature{calls, parallel, retry, thoughts, interrupted, turns, numbering}, noIDs: true, tokens: func(t Tokens) Tokens { return uncharged(unsplit(t)) }, heard: true, endedAt: lastResult,
	}, write: func(s *Scenario) []Stream {
		return s.exchanges("http://127.0.0.1:11434", func(before []spoken) frame.Frame {
			messages := list{object{"role": "system", "content": "You keep the locks."}}
			for _, b := range before {
				switch {
				case b.answer != nil:
					o := object{"role": "assistant", "content": b.answer.Text}
					var made list
					for _, w := range b.answer.Work {
						made = append(made, object{"function": object{"name": w.Name, "arguments": input(w)}})
					}
					if made != nil {
						o["tool_calls"] = made
					}
					messages = append(messages, o)
				case b.result != nil:
					messages = append(messages, object{"role": "tool", "tool_name": b.result.Name, "content": b.result.Result})
				default:
					messages = append(messages, object{"role": "user", "content": b.prompt})
				}
			}
			return request("/api/chat", object{"model": "lock-model:9b", "messages": messages})
		}, object{"error": "model is loading"}, func(t *tape, r *Response, _ string) {
			line := func(seconds float64, message, more object) {
				message["role"] = "assistant"
				o := object{"model": "lock-model:9b", "created_at": stamp(seconds), "message": message, "done": false}
				for k, v := range more {
					o[k] = v
				}
				t.line(seconds, o)
			}
			if r.Think != "" {
				line(r.To, object{"content": "", "thinking": r.Think}, nil)
			}
			if r.Text != "" {
				line(r.To, object{"content": r.Text}, nil)
			}
			for i, w := range r.Work {
				line(w.From, object{"content": "", "tool_calls": list{object{"function": object{"index": i, "name": w.Name, "arguments": input(w)}}}}, nil)
			}
			line(called(r), object{"content": ""}, object{"done": true, "done_reason": "stop", "prompt_eval_count": r.Tokens.Input + r.Tokens.CacheRead + r.Tokens.CacheWrite,
				"prompt_eval_cached_count": r.Tokens.CacheRead, "eval_count": r.Tokens.Output + r.Tokens.Reasoning})
		})
	}}
}

// agUI writes the events of an agent to its user interface.
func agUI() format {
	return format{name: "ag-ui", write: writeAGUI, lens: lens{
		can: []feature{calls, parallel, thoughts, interrupted, turns, numbering}, noTokens: true,
	}}
}

func writeAGUI(s *Scenario) (out []Stream) {
	for i, turn := range s.Turns {
		t := &tape{Stream: Stream{Origin: "http://127.0.0.1:8000/agent", Live: true}}
		run := fmt.Sprint("run-", s.session()[:8], "-", i)
		t.add(turn.At, request("/agent", object{"threadId": "thread-" + s.session(), "runId": run, "tools": list{}, "context": list{}, "state": object{},
			"messages": list{object{"id": "u-" + run, "role": "user", "content": turn.Prompt}}}))
		event := func(seconds float64, typ string, o object) {
			o["type"], o["timestamp"] = typ, millis(seconds)
			t.event(seconds, "", o)
		}
		event(turn.At+0.01, "RUN_STARTED", object{"threadId": "thread-" + s.session(), "runId": run})
		end := 0.0
		for j := range turn.Responses {
			r := &turn.Responses[j]
			message := fmt.Sprint("m-", run, "-", j)
			if r.Think != "" {
				event(r.From, "REASONING_START", object{"messageId": "r-" + message})
				event(r.From, "REASONING_MESSAGE_START", object{"messageId": "r-" + message, "role": "reasoning"})
				event(r.To, "REASONING_MESSAGE_CONTENT", object{"messageId": "r-" + message, "delta": r.Think})
				event(r.To, "REASONING_MESSAGE_END", object{"messageId": "r-" + message})
				event(r.To, "REASONING_END", object{"messageId": "r-" + message})
			}
			if r.Text != "" {
				event(r.To, "TEXT_MESSAGE_START", object{"messageId": message, "role": "assistant"})
				event(r.To, "TEXT_MESSAGE_CONTENT", object{"messageId": message, "delta": r.Text})
				event(r.To, "TEXT_MESSAGE_END", object{"messageId": message})
			}
			end = r.To
			for _, w := range r.Work {
				event(w.From, "TOOL_CALL_START", object{"toolCallId": w.ID, "toolCallName": w.Name, "parentMessageId": message})
				event(w.From, "TOOL_CALL_ARGS", object{"toolCallId": w.ID, "delta": text(input(w))})
				event(w.From, "TOOL_CALL_END", object{"toolCallId": w.ID})
				if !w.Open {
					event(w.To, "TOOL_CALL_RESULT", object{"messageId": "t-" + w.ID, "toolCallId": w.ID, "content": w.Result, "role": "tool"})
				}
				end = -1
			}
		}
		if end > 0 {
			event(end+0.1, "RUN_FINISHED", object{"threadId": "thread-" + s.session(), "runId": run})
		}
		out = append(out, t.stream())
	}
	return out
}

// agno writes the events of a team of AGNO, whose times are whole seconds.
func agno() format {
	return format{name: "agno", write: writeAgno, lens: lens{
		can: []feature{calls, parallel, failure, delegation, turns, repetition, numbering}, noTimes: true, noPrompts: true, tool: named("delegate_task_to_member"),
	}}
}

func writeAgno(s *Scenario) (out []Stream) {
	for i, turn := range s.Turns {
		t := &tape{Stream: Stream{Origin: "http://127.0.0.1:7777/teams/locks/runs", Live: true}}
		index := 0
		event := func(seconds float64, run, agent, name string, more object) {
			o := object{"created_at": at(seconds).Unix(), "session_id": s.session(), "run_id": run}
			if agent == "" {
				name = "Team" + name
				o["team_id"], o["team_name"] = "locks", "Locks"
			} else {
				o["agent_id"], o["agent_name"], o["parent_run_id"] = agent, agent, id(700+i)
			}
			o["event"] = name
			for k, v := range more {
				o[k] = v
			}
			t.event(seconds, name, o)
		}
		var work func(run, agent string, from float64, rs []Response)
		work = func(run, agent string, from float64, rs []Response) {
			event(from, run, agent, "RunStarted", object{"model": "birch-2", "model_provider": "OpenAI"})
			var sum Tokens
			all, end := "", 0.0
			for j := range rs {
				r := &rs[j]
				sum.add(r.Tokens)
				if r.Text != "" {
					event(r.To, run, agent, "RunContent", object{"content": r.Text, "content_type": "str", "reasoning_content": ""})
				}
				all, end = all+r.Text, max(r.To, lastResult(r, nil))
				for _, w := range r.Work {
					args := input(w)
					if w.Delegate != nil {
						args = object{"member_id": w.Delegate.Agent, "task": w.Delegate.Task}
					}
					tool := func(result, failed any) object {
						return object{"tool": object{"tool_call_id": w.ID, "tool_name": toolName(w, "delegate_task_to_member"), "tool_args": args, "tool_call_error": failed, "result": result,
							"metrics": nil, "child_run_id": nil, "created_at": at(w.From).Unix()}, "content": nil}
					}
					event(w.From, run, agent, "ToolCallStarted", tool(nil, nil))
					if d := w.Delegate; d != nil {
						work(id(800+i), d.Agent, w.From+0.5, d.Responses)
					}
					event(w.To, run, agent, "ToolCallCompleted", tool(w.Result, w.Failed))
				}
			}
			event(end+0.1, run, agent, "RunCompleted", object{"content": all, "content_type": "str", "metrics": object{"input_tokens": sum.Input + sum.CacheRead + sum.CacheWrite,
				"output_tokens": sum.Output + sum.Reasoning, "cache_read_tokens": sum.CacheRead, "total_tokens": sum.Input + sum.CacheRead + sum.CacheWrite + sum.Output + sum.Reasoning}})
		}
		work(id(700+i), "", turn.At, turn.Responses)
		stream := t.stream()
		for k := range stream.Frames {
			var o object
			decode(stream.Frames[k].Data, &o)
			o["event_index"] = index
			index++
			stream.Frames[k].Data = encode(o)
		}
		if s.Twice { // the client lost the connection, and resumed from the beginning
			again := append([]frame.Frame(nil), stream.Frames...)
			for k := range again {
				again[k].At += 60e9
			}
			stream.Frames = append(stream.Frames, again...)
		}
		out = append(out, stream)
	}
	return out
}
