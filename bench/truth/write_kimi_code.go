package truth

import "fmt"

// kimiCode writes the files of Kimi Code, one for each agent. A call begins when it is made, a text is there when its response is.
func kimiCode() format {
	return format{name: "kimi-code", write: writeKimiCode, lens: lens{
		can:    []feature{calls, parallel, failure, delegation, retry, thoughts, interrupted, compaction, turns, numbering},
		tokens: unsplit, tool: named("Agent"), result: func(w *Work) string {
			if w.Delegate == nil {
				return w.Result
			}
			return kimiAgent("agent-0", w)
		},
	}}
}

// kimiAgent is the result of an agent, as the model reads it.
func kimiAgent(agent string, w *Work) string {
	return fmt.Sprintf("agent_id: %s\nactual_subagent_type: %s\nstatus: completed\n\n[summary]\n%s", agent, w.Delegate.Agent, w.Result)
}

func writeKimiCode(s *Scenario) (out []Stream) {
	session := "session_" + s.session()
	n := 0
	type write func(seconds float64, typ string, payload object)
	open := func(agent string, from float64) (*tape, write) {
		t := &tape{Stream: Stream{Origin: "/home/ada/.kimi-code/sessions/wd_locks_0123456789ab/" + session + "/agents/" + agent + "/wire.jsonl"}}
		t.line(from, object{"type": "metadata", "protocol_version": "1.5", "created_at": millis(from)})
		return t, func(seconds float64, typ string, payload object) {
			payload["type"], payload["agentId"], payload["time"] = typ, agent, millis(seconds)
			t.line(seconds, payload)
		}
	}
	prompt := func(write write, seconds float64, text, origin string) {
		parts := list{object{"type": "text", "text": text}}
		write(seconds, "turn.prompt", object{"input": parts, "origin": object{"kind": origin}})
		write(seconds, "context.append_message", object{"message": object{"role": "user", "content": parts, "toolCalls": list{}, "origin": object{"kind": origin}}})
	}
	agents := 0
	var work func(write write, turn int, rs []Response) (end float64)
	work = func(write write, turn int, rs []Response) (end float64) {
		for i := range rs {
			r := &rs[i]
			n++
			step := fmt.Sprintf("7a3c%04x-%s-4000-8000-0000000000bb", n, s.session()[4:8])
			event := func(seconds float64, typ string, e object) {
				e["type"], e["turnId"], e["step"] = typ, fmt.Sprint(turn), i+1
				write(seconds, "context.append_loop_event", object{"event": e})
			}
			request := object{"kind": "loop", "provider": "kimi", "model": "kimi-k2.5", "modelAlias": "kimi-code/k2.5", "toolSelect": false, "systemPromptHash": "a1", "toolsHash": "b2", "messageCount": i, "turnStep": fmt.Sprint(turn, ".", i+1)}
			event(r.From, "step.begin", object{"uuid": step})
			if r.Retried {
				write(r.From, "llm.request", object{"kind": "loop", "provider": "kimi", "model": "kimi-k2.5", "modelAlias": "kimi-code/k2.5", "turnStep": fmt.Sprint(turn, ".", i+1)})
				request["attempt"] = "2/10"
			}
			write(r.From+0.001, "llm.request", request)
			u := unsplit(r.Tokens)
			usage := object{"inputOther": u.Input, "output": u.Output, "inputCacheRead": u.CacheRead, "inputCacheCreation": u.CacheWrite}
			write(r.To, "usage.record", object{"model": "kimi-code/k2.5", "usage": usage, "usageScope": "turn"})
			if r.Think != "" {
				event(r.To, "content.part", object{"stepUuid": step, "part": object{"type": "think", "think": r.Think}})
			}
			if r.Text != "" {
				event(r.To, "content.part", object{"stepUuid": step, "part": object{"type": "text", "text": r.Text}})
			}
			end = r.To
			reason := "end_turn"
			for _, w := range r.Work {
				reason = "tool_use"
				event(w.From, "tool.call", object{"stepUuid": step, "toolCallId": w.ID, "name": toolName(w, "Agent"), "args": input(w)})
				output := w.Result
				if d := w.Delegate; d != nil {
					child := fmt.Sprint("agent-", agents)
					agents++
					t, own := open(child, w.From+0.1)
					prompt(own, w.From+0.1, d.Task, "system_trigger")
					own(work(own, 0, d.Responses), "turn.ended", object{"turnId": 0, "reason": "completed"})
					out = append(out, t.stream())
					output = kimiAgent(child, w)
				}
				if end = max(end, w.From); w.Open {
					reason = "interrupted"
					continue
				}
				event(w.To, "tool.result", object{"toolCallId": w.ID, "result": object{"output": output, "isError": w.Failed}})
				end = max(end, w.To)
			}
			event(end, "step.end", object{"uuid": step, "finishReason": reason, "usage": usage, "messageId": "chatcmpl-" + step[:8]})
		}
		return end
	}
	main, write2 := open("main", 0)
	for i, t := range s.Turns {
		if s.Compact && i == 1 {
			write2(t.At-2, "context.apply_compaction", object{"summary": "The log was read.", "contextSummary": "The log was read.", "compactedCount": 2})
		}
		prompt(write2, t.At, t.Prompt, "user")
		end := work(write2, i, t.Responses)
		reason := "completed"
		for _, w := range t.Responses[len(t.Responses)-1].Work {
			if w.Open {
				reason = "cancelled"
			}
		}
		write2(end, "turn.ended", object{"turnId": i, "reason": reason})
	}
	return append(out, main.stream())
}
