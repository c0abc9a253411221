package truth

import (
	"fmt"

	"github.com/earshot-dev/earshot/core/frame"
)

// otel writes spans of the conventions for generative AI, which come as they end.
func otel() format {
	return format{name: "otel-genai", write: writeOTel, lens: lens{
		can: []feature{calls, parallel, failure, delegation, thoughts, turns, repetition, numbering},
	}}
}

func writeOTel(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/var/log/otel/" + s.Name + ".jsonl"}, twice: s.Twice}
	s.spans(func(p span) {
		status := object{}
		if p.failed {
			status = object{"code": 2, "message": p.attributes["gen_ai.tool.call.result"]}
		}
		t.line(p.to, object{"resourceSpans": list{object{"resource": object{"attributes": attributes(object{"service.name": "locks"})}, "scopeSpans": list{object{"scope": object{"name": "locks"}, "spans": list{object{
			"traceId": p.trace, "spanId": p.id, "parentSpanId": p.parent, "name": p.name, "kind": 1, "status": status, "attributes": attributes(p.attributes),
			"startTimeUnixNano": fmt.Sprint(at(p.from).UnixNano()), "endTimeUnixNano": fmt.Sprint(at(p.to).UnixNano())}}}}}}})
	})
	return []Stream{t.stream()}
}

// copilotOTel writes the file of spans of Copilot CLI, which counts reasoning as output.
func copilotOTel() format {
	return format{name: "copilot-otel", write: writeCopilotOTel, lens: lens{
		can: []feature{calls, parallel, failure, delegation, thoughts, turns, repetition}, tokens: unsplit,
	}}
}

func writeCopilotOTel(s *Scenario) []Stream {
	t := &tape{Stream: Stream{Origin: "/var/log/copilot/" + s.Name + ".jsonl"}, twice: s.Twice}
	clock := func(seconds float64) list {
		return list{at(seconds).Unix(), at(seconds).Nanosecond()}
	}
	s.spans(func(p span) {
		delete(p.attributes, "gen_ai.usage.reasoning.output_tokens")
		if n, ok := p.attributes["gen_ai.usage.cache_creation.input_tokens"]; ok {
			p.attributes["gen_ai.usage.cache_write.input_tokens"] = n
			delete(p.attributes, "gen_ai.usage.cache_creation.input_tokens")
		}
		status := object{"code": 0}
		if p.failed {
			status = object{"code": 2, "message": p.attributes["gen_ai.tool.call.result"]}
		}
		var parent any
		if p.parent != "" {
			parent = p.parent
		}
		t.line(p.to, object{"type": "span", "traceId": p.trace, "spanId": p.id, "parentSpanId": parent, "name": p.name, "kind": 0, "startTime": clock(p.from), "endTime": clock(p.to),
			"status": status, "attributes": p.attributes, "events": list{}, "resource": object{"attributes": object{"service.name": "github-copilot"}}})
	})
	return []Stream{t.stream()}
}

// span is a span of an agent, a response or a call.
type span struct {
	trace, id, parent, name string
	from, to                float64
	failed                  bool
	attributes              object
}

// spans writes the spans of a scenario, a trace for each turn.
func (s *Scenario) spans(write func(span)) {
	n := 0
	number := func() string { n++; return fmt.Sprintf("%s%012x", s.session()[4:8], n) }
	for i, turn := range s.Turns {
		add := func(id, parent, name string, from, to float64, failed bool, o object) {
			if o["gen_ai.conversation.id"] = "conv-" + s.session(); failed {
				o["error.type"] = "tool_error"
			}
			write(span{fmt.Sprintf("4bf92f3577b34da6a3ce%s%08x", s.session()[4:8], i+1), id, parent, name, from, to, failed, o})
		}
		said := func(role string, parts ...object) string { return text(list{object{"role": role, "parts": parts}}) }
		var work func(up, agent, prompt string, from float64, rs []Response) float64
		work = func(up, agent, prompt string, from float64, rs []Response) float64 {
			own := number()
			end := 0.0
			for j := range rs {
				r := &rs[j]
				var parts []object
				if r.Think != "" {
					parts = append(parts, object{"type": "reasoning", "content": r.Think})
				}
				if r.Text != "" {
					parts = append(parts, object{"type": "text", "content": r.Text})
				}
				for _, w := range r.Work {
					parts = append(parts, object{"type": "tool_call", "id": w.ID, "name": w.Name, "arguments": input(w)})
				}
				u := r.Tokens
				chat := object{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "small-1", "gen_ai.response.model": "small-1",
					"gen_ai.response.id": "msg_05" + own[2:] + fmt.Sprint(j), "gen_ai.output.messages": said("assistant", parts...),
					"gen_ai.usage.input_tokens": u.Input + u.CacheRead + u.CacheWrite, "gen_ai.usage.output_tokens": u.Output + u.Reasoning,
					"gen_ai.usage.cache_read.input_tokens": u.CacheRead, "gen_ai.usage.cache_creation.input_tokens": u.CacheWrite, "gen_ai.usage.reasoning.output_tokens": u.Reasoning}
				if j == 0 {
					chat["gen_ai.input.messages"] = said("user", object{"type": "text", "content": prompt})
				}
				add(number(), own, "chat small-1", r.From, r.To, false, chat)
				for _, w := range r.Work {
					tool := number()
					if d := w.Delegate; d != nil {
						work(tool, d.Agent, d.Task, w.From+0.1, d.Responses)
					}
					add(tool, own, "execute_tool "+w.Name, w.From, w.To, w.Failed, object{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": w.Name,
						"gen_ai.tool.call.id": w.ID, "gen_ai.tool.call.arguments": text(input(w)), "gen_ai.tool.call.result": w.Result})
				}
				end = max(r.To, lastResult(r, nil))
			}
			add(own, up, "invoke_agent "+agent, from, end+0.05, false, object{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent})
			return end
		}
		work("", "keeper", turn.Prompt, turn.At, turn.Responses)
	}
}

func attributes(o object) (out list) {
	for k, v := range o {
		value := object{"stringValue": v}
		switch n := v.(type) {
		case uint64:
			value = object{"intValue": fmt.Sprint(n)}
		case bool:
			value = object{"boolValue": n}
		}
		out = append(out, object{"key": k, "value": value})
	}
	return out
}

// logs is a stream of log records over OTLP, each in a request of its own.
type logs struct {
	tape
	service string
	common  object // attributes of each
}

func (t *logs) record(seconds float64, name string, o object) {
	o["event.name"], o["event.timestamp"] = name, stamp(seconds)
	for k, v := range t.common {
		o[k] = v
	}
	nanos := fmt.Sprint(at(seconds).UnixNano())
	t.add(seconds, frame.Frame{Kind: frame.Line, Data: encode(object{"resourceLogs": list{object{"resource": object{"attributes": attributes(object{"service.name": t.service})},
		"scopeLogs": list{object{"scope": object{"name": t.service}, "logRecords": list{object{"timeUnixNano": nanos, "observedTimeUnixNano": nanos, "attributes": attributes(o)}}}}}}})})
}

// took is how long something took, as the attribute of a log record.
func took(from, to float64) string { return fmt.Sprint(millis(to) - millis(from)) }

// fault is the result of a call where the traffic has none but of one that failed.
func fault(w *Work) string {
	if w.Failed {
		return w.Result
	}
	return ""
}

// claudeOTel writes the log events of Claude Code, whose flags add the texts. Results are never there.
func claudeOTel() format {
	return format{name: "claude-code-otel", write: writeClaudeOTel, lens: lens{
		can: []feature{calls, parallel, failure, retry, thoughts, turns, repetition}, tokens: unsplit, result: fault,
	}}
}

func writeClaudeOTel(s *Scenario) []Stream {
	t := &logs{tape{Stream: Stream{Origin: "/var/log/otel/" + s.Name + ".jsonl"}, twice: s.Twice}, "claude-code", object{"session.id": s.session()}}
	n := 0
	for i, turn := range s.Turns {
		event := func(seconds float64, name string, o object) {
			n++
			o["prompt.id"], o["event.sequence"] = id(600+i), uint64(n)
			t.record(seconds, name, o)
		}
		event(turn.At, "user_prompt", object{"prompt": turn.Prompt, "prompt_length": fmt.Sprint(len(turn.Prompt))})
		for j := range turn.Responses {
			r, request := &turn.Responses[j], fmt.Sprintf("req_05%s%d%d", s.session()[4:8], i, j)
			if r.Retried {
				event(r.From-3, "api_error", object{"model": "claude-sonnet-4-5", "error": "overloaded", "status_code": "529", "attempt": "1", "duration_ms": "100"})
			}
			event(r.To, "api_request", object{"model": "claude-sonnet-4-5", "request_id": request, "duration_ms": took(r.From, r.To), "input_tokens": fmt.Sprint(r.Tokens.Input),
				"output_tokens": fmt.Sprint(r.Tokens.Output + r.Tokens.Reasoning), "cache_read_tokens": fmt.Sprint(r.Tokens.CacheRead), "cache_creation_tokens": fmt.Sprint(r.Tokens.CacheWrite)})
			if r.Text != "" {
				event(r.To, "assistant_response", object{"response": r.Text, "response_length": fmt.Sprint(len(r.Text)), "model": "claude-sonnet-4-5", "request_id": request})
			}
			for _, w := range r.Work {
				o := object{"tool_use_id": w.ID, "tool_name": w.Name, "success": fmt.Sprint(!w.Failed), "duration_ms": took(w.From, w.To), "tool_input": text(input(w))}
				if w.Failed {
					o["error"] = w.Result
				}
				event(w.To, "tool_result", o)
			}
		}
	}
	return []Stream{t.stream()}
}

// codexOTel writes the log events of Codex, which have no answers.
func codexOTel() format {
	return format{name: "codex-otel", write: writeCodexOTel, lens: lens{
		can: []feature{calls, parallel, failure, thoughts, turns, repetition}, tokens: uncharged, noAnswers: true,
	}}
}

func writeCodexOTel(s *Scenario) []Stream {
	t := &logs{tape{Stream: Stream{Origin: "/var/log/otel/" + s.Name + ".jsonl"}, twice: s.Twice}, "codex", object{"conversation.id": s.session(), "model": "gpt-5.6-luna"}}
	t.record(0, "codex.conversation_starts", object{"provider_name": "OpenAI", "reasoning_effort": "low"})
	for _, turn := range s.Turns {
		t.record(turn.At, "codex.user_prompt", object{"prompt": turn.Prompt, "prompt_length": fmt.Sprint(len(turn.Prompt))})
		for i := range turn.Responses {
			r := &turn.Responses[i]
			u := openAIUsage(r.Tokens)
			t.record(r.To, "codex.sse_event", object{"event.kind": "response.completed", "input_token_count": u["input_tokens"], "cached_token_count": u["cached_input_tokens"],
				"output_token_count": u["output_tokens"], "reasoning_token_count": u["reasoning_output_tokens"], "tool_token_count": u["total_tokens"]})
			for _, w := range r.Work {
				t.record(w.To, "codex.tool_result", object{"call_id": w.ID, "tool_name": w.Name, "arguments": text(input(w)), "output": w.Result, "success": fmt.Sprint(!w.Failed), "duration_ms": took(w.From, w.To)})
			}
		}
	}
	return []Stream{t.stream()}
}

// geminiOTel writes the log events of Gemini CLI, which have neither answers nor results, and name no call.
func geminiOTel() format {
	return format{name: "gemini-otel", write: writeGeminiOTel, lens: lens{
		can: []feature{calls, parallel, failure, thoughts, turns, repetition}, tokens: uncharged, noAnswers: true, noIDs: true, result: fault,
	}}
}

func writeGeminiOTel(s *Scenario) []Stream {
	t := &logs{tape{Stream: Stream{Origin: "/var/log/otel/" + s.Name + ".jsonl"}, twice: s.Twice}, "gemini-cli", object{"session.id": s.session()}}
	for i, turn := range s.Turns {
		prompt := fmt.Sprint(s.session(), "########", i)
		t.record(turn.At, "gemini_cli.user_prompt", object{"prompt": turn.Prompt, "prompt_length": uint64(len(turn.Prompt)), "prompt_id": prompt})
		for j := range turn.Responses {
			r := &turn.Responses[j]
			u := r.Tokens
			in := u.Input + u.CacheRead + u.CacheWrite
			t.record(r.To, "gemini_cli.api_response", object{"model": "gemini-9-flash", "duration_ms": uint64(millis(r.To) - millis(r.From)), "input_token_count": in, "output_token_count": u.Output,
				"cached_content_token_count": u.CacheRead, "thoughts_token_count": u.Reasoning, "tool_token_count": uint64(0), "total_token_count": in + u.Output + u.Reasoning, "prompt_id": prompt})
			for _, w := range r.Work {
				o := object{"function_name": w.Name, "function_args": text(input(w)), "duration_ms": uint64(millis(w.To) - millis(w.From)), "success": !w.Failed, "decision": "auto_accept", "prompt_id": prompt}
				if w.Failed {
					o["error"] = w.Result
				}
				t.record(w.To, "gemini_cli.tool_call", o)
			}
		}
	}
	return []Stream{t.stream()}
}
