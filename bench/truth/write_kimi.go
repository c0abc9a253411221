package truth

import (
	"fmt"
	"math"
)

// kimi writes the files of Kimi CLI: of a session, and of each sub-agent, whose events the file of its parent repeats.
func kimi() format {
	return format{name: "kimi", write: writeKimi, lens: lens{
		can:    []feature{calls, parallel, failure, delegation, retry, thoughts, interrupted, compaction, turns, numbering},
		tokens: unsplit, tool: named("Agent"),
	}}
}

func writeKimi(s *Scenario) (out []Stream) {
	folder := func(session string) string {
		return "/home/ada/.kimi/sessions/0cc175b9c0f1b6a831c399e269772661/" + session
	}
	open := func(origin string) *tape {
		t := &tape{Stream: Stream{Origin: origin + "/wire.jsonl"}}
		t.line(0, object{"type": "metadata", "protocol_version": "1.10"})
		return t
	}
	type event func(seconds float64, typ string, payload object)
	into := func(t *tape) event {
		return func(seconds float64, typ string, payload object) {
			t.line(seconds, object{"timestamp": math.Round((float64(Began.Unix())+seconds)*1000) / 1000, "message": object{"type": typ, "payload": payload}})
		}
	}
	var work func(t *tape, write event, agent string, rs []Response)
	work = func(t *tape, write event, agent string, rs []Response) {
		for i := range rs {
			r := &rs[i]
			step, end := i+1, r.To
			write(r.From, "StepBegin", object{"n": step})
			if r.Retried {
				write(r.From+0.001, "StepRetry", object{"n": step, "next_attempt": 2, "max_attempts": 3, "wait_s": 0.4, "error_type": "APIStatusError", "status_code": 529})
			}
			if r.Think != "" {
				write(r.To, "ContentPart", object{"type": "think", "think": r.Think, "encrypted": nil})
			}
			if r.Text != "" {
				write(r.To, "ContentPart", object{"type": "text", "text": r.Text})
			}
			for _, w := range r.Work {
				write(w.From, "ToolCall", object{"type": "function", "id": w.ID, "function": object{"name": toolName(w, "Agent"), "arguments": text(input(w))}, "extras": nil})
				end = max(end, w.From)
			}
			u := unsplit(r.Tokens)
			write(end, "StatusUpdate", object{"context_usage": 0.1, "context_tokens": u.Input + u.CacheRead + u.CacheWrite, "max_context_tokens": 262144, "plan_mode": false, "mcp_status": nil,
				"message_id":  fmt.Sprintf("chatcmpl-%s-%s-%d", s.session()[4:8], agent, step),
				"token_usage": object{"input_other": u.Input, "output": u.Output, "input_cache_read": u.CacheRead, "input_cache_creation": u.CacheWrite}})
			for _, w := range r.Work {
				if d := w.Delegate; d != nil {
					child := open(folder(s.session()) + "/subagents/" + d.ID)
					own := into(child)
					both := func(seconds float64, typ string, payload object) {
						own(seconds, typ, payload)
						write(seconds, "SubagentEvent", object{"parent_tool_call_id": w.ID, "agent_id": d.ID, "subagent_type": d.Agent, "event": object{"type": typ, "payload": payload}})
					}
					both(w.From+0.1, "TurnBegin", object{"user_input": d.Task})
					work(child, both, d.ID, d.Responses)
					both(w.To-0.001, "TurnEnd", object{})
					out = append(out, child.stream())
				}
				if w.Open {
					continue
				}
				value := object{"is_error": w.Failed, "output": w.Result, "message": "", "display": list{}}
				if w.Failed {
					value["output"], value["message"] = "", w.Result
				}
				write(w.To, "ToolResult", object{"tool_call_id": w.ID, "return_value": value})
			}
		}
	}
	main := open(folder(s.session()))
	write := into(main)
	for i, t := range s.Turns {
		write(t.At, "TurnBegin", object{"user_input": list{object{"type": "text", "text": t.Prompt}}})
		if s.Compact && i == 1 {
			write(t.At+0.001, "CompactionBegin", object{})
			write(t.At+0.002, "CompactionEnd", object{})
		}
		work(main, write, "main", t.Responses)
		end := t.At
		t.each(func(r *Response, _ *Work) { end = max(end, r.To, lastResult(r, nil)) })
		write(end, "TurnEnd", object{})
	}
	return append(out, main.stream())
}
