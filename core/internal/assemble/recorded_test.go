package assemble_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// recordedRun is a run as each of its views has it.
type recordedRun struct {
	views []recording
	whole string // the format that has all of it
	// totals is set if a view has tokens of its responses as a total: the sums are the same, those of a response are not.
	totals bool
}

// A story is a session; its views are written from it.
type story struct {
	session string
	start   time.Time
	turns   []turn
}

type turn struct {
	prompt, text string
	at, end      float64 // seconds since the start
	steps        []step
}

// step is a response of the model, and the calls that it makes.
type step struct {
	request, id string
	from, to    float64
	think, text string
	in, out     int
	read, write int
	calls       []toolCall
}

type toolCall struct {
	id, tool, args, result string
	from, to               float64
	failed                 bool
	agent                  *agent
}

type agent struct {
	id, typ, task string
	steps         []step
}

func (s *story) at(t float64) time.Time { return s.start.Add(time.Duration(t * float64(time.Second))) }

func line(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

type object = map[string]any

// transcript writes the files of format claude-code.
func (s *story) transcript() []recording {
	main := recording{format: "claude-code", origin: "/home/ada/.claude/projects/-srv/" + s.session + ".jsonl"}
	out := []recording{}
	n := 0
	write := func(rec *recording, parent *string, at float64, side string, fields object) {
		n++
		uuid := fmt.Sprintf("%s-line-%04d", s.session, n)
		o := object{"parentUuid": nil, "isSidechain": side != "", "cwd": "/srv", "sessionId": s.session, "version": "2.1.260", "uuid": uuid, "timestamp": s.at(at).UTC().Format("2006-01-02T15:04:05.000Z")}
		if *parent != "" {
			o["parentUuid"] = *parent
		}
		if side != "" {
			o["agentId"] = side
		}
		for k, v := range fields {
			o[k] = v
		}
		*parent = uuid
		rec.frames = append(rec.frames, frame.Frame{Kind: frame.Line, Data: line(o)})
	}
	var steps func(rec *recording, parent *string, side, prompt string, list []step)
	steps = func(rec *recording, parent *string, side, prompt string, list []step) {
		for _, st := range list {
			usage := object{"input_tokens": st.in, "output_tokens": st.out, "cache_read_input_tokens": st.read, "cache_creation_input_tokens": st.write}
			for _, b := range st.blocks() {
				write(rec, parent, st.to, side, object{"type": "assistant", "requestId": st.request, "message": object{
					"id": st.id, "type": "message", "role": "assistant", "model": "claude-small-1", "content": []object{b}, "stop_reason": st.stop(), "usage": usage,
				}})
			}
			for _, c := range st.calls {
				fields := object{"type": "user", "promptId": prompt, "message": object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": c.id, "content": c.result, "is_error": c.failed}}}}
				if a := c.agent; a != nil {
					fields["toolUseResult"] = object{"status": "completed", "agentId": a.id, "content": []object{{"type": "text", "text": c.result}}}
					child := recording{format: "claude-code", origin: "/home/ada/.claude/projects/-srv/" + s.session + "/subagents/agent-" + a.id + ".jsonl"}
					up := ""
					write(&child, &up, c.from, a.id, object{"type": "user", "promptId": prompt, "message": object{"role": "user", "content": a.task}})
					steps(&child, &up, a.id, prompt, a.steps)
					out = append(out, child)
				}
				write(rec, parent, c.to, side, fields)
			}
		}
	}
	parent := ""
	for _, t := range s.turns {
		write(&main, &parent, t.at, "", object{"type": "user", "promptId": t.prompt, "message": object{"role": "user", "content": t.text}})
		steps(&main, &parent, "", t.prompt, t.steps)
		write(&main, &parent, t.end, "", object{"type": "system", "subtype": "turn_duration", "durationMs": int((t.end - t.at) * 1000)})
	}
	return append([]recording{main}, out...)
}

// attributes writes attributes of OTLP.
func attributes(o object) (list []object) {
	for k, v := range o {
		value := object{"stringValue": fmt.Sprint(v)}
		if n, ok := v.(int); ok {
			value = object{"intValue": fmt.Sprint(n)}
		}
		list = append(list, object{"key": k, "value": value})
	}
	return list
}

// logs writes the log events of format claude-code-otel.
func (s *story) logs() []recording {
	rec := recording{format: "claude-code-otel", origin: "otlp"}
	n := 0
	event := func(name, prompt string, at float64, fields object) {
		n++
		fields["event.name"], fields["event.timestamp"], fields["session.id"], fields["prompt.id"], fields["event.sequence"] = name, s.at(at).UTC().Format("2006-01-02T15:04:05.000Z"), s.session, prompt, n
		nano := fmt.Sprint(s.at(at).UnixNano())
		rec.frames = append(rec.frames, frame.Frame{Kind: frame.Line, Data: line(object{"resourceLogs": []object{{
			"resource":  object{"attributes": attributes(object{"service.name": "claude-code"})},
			"scopeLogs": []object{{"scope": object{"name": "com.anthropic.claude_code.events"}, "logRecords": []object{{"timeUnixNano": nano, "observedTimeUnixNano": nano, "body": object{"stringValue": "claude_code." + name}, "attributes": attributes(fields)}}}},
		}}})})
	}
	var steps func(prompt string, list []step)
	steps = func(prompt string, list []step) {
		for _, st := range list {
			event("api_request", prompt, st.to, object{
				"model": "claude-small-1", "request_id": st.request, "duration_ms": int((st.to - st.from) * 1000), "cost_usd": "0.004", "ttft_ms": 200,
				"input_tokens": st.in, "output_tokens": st.out, "cache_read_tokens": st.read, "cache_creation_tokens": st.write,
			})
			if st.text != "" {
				event("assistant_response", prompt, st.to, object{"model": "claude-small-1", "request_id": st.request, "response": st.text})
			}
			for _, c := range st.calls {
				if c.agent != nil {
					steps(prompt, c.agent.steps)
				}
				event("tool_result", prompt, c.to, object{"tool_use_id": c.id, "tool_name": c.tool, "success": fmt.Sprint(!c.failed), "duration_ms": int((c.to - c.from) * 1000), "tool_input": c.args})
			}
		}
	}
	for _, t := range s.turns {
		event("user_prompt", t.prompt, t.at, object{"prompt": t.text})
		steps(t.prompt, t.steps)
	}
	return []recording{rec}
}

// traces writes the spans of format claude-code-otel, which do not name the prompt.
func (s *story) traces() []recording {
	rec := recording{format: "claude-code-otel", origin: "otlp-traces"}
	for n, t := range s.turns {
		var spans []object
		span := func(parent, name string, from, to float64, fields object) string {
			id := fmt.Sprintf("%08x%08x", n+1, len(spans)+1)
			fields["session.id"], fields["span.type"] = s.session, name
			spans = append(spans, object{
				"traceId": fmt.Sprintf("%032x", s.start.Unix()*100+int64(n)), "spanId": id, "parentSpanId": parent, "name": "claude_code." + name,
				"startTimeUnixNano": fmt.Sprint(s.at(from).UnixNano()), "endTimeUnixNano": fmt.Sprint(s.at(to).UnixNano()), "attributes": attributes(fields),
			})
			return id
		}
		root := span("", "interaction", t.at, t.end, object{"user_prompt": t.text})
		var steps func(parent, agentID string, list []step)
		steps = func(parent, agentID string, list []step) {
			of := func(o object) object {
				if agentID != "" {
					o["agent_id"] = agentID
				}
				return o
			}
			for _, st := range list {
				span(parent, "llm_request", st.from, st.to, of(object{
					"model": "claude-small-1", "request_id": st.request, "ttft_ms": 200, "stop_reason": st.stop(),
					"input_tokens": st.in, "output_tokens": st.out, "cache_read_tokens": st.read, "cache_creation_tokens": st.write,
				}))
				for _, c := range st.calls {
					call := span(parent, "tool", c.from, c.to, of(object{"tool_name": c.tool, "tool_use_id": c.id, "tool_input": c.args}))
					span(call, "tool.execution", c.from, c.to, of(object{"tool_use_id": c.id, "success": fmt.Sprint(!c.failed)}))
					if c.agent != nil {
						steps(call, c.agent.id, c.agent.steps)
					}
				}
			}
		}
		steps(root, "", t.steps)
		slices.Reverse(spans)
		rec.frames = append(rec.frames, frame.Frame{Kind: frame.Line, Data: line(object{"resourceSpans": []object{{
			"resource":   object{"attributes": attributes(object{"service.name": "claude-code"})},
			"scopeSpans": []object{{"scope": object{"name": "com.anthropic.claude_code.tracing"}, "spans": spans}},
		}}})})
	}
	return []recording{rec}
}

// tap writes the exchanges of format anthropic-sse, a stream each.
func (s *story) tap() (out []recording) {
	exchange := func(agentID, prompt string, st step, messages []object) {
		header := object{"x-claude-code-session-id": s.session, "request-id": st.request}
		if agentID != "" {
			header["x-claude-code-agent-id"], header["x-claude-code-agent-type"] = agentID, "Explore"
		}
		rec := recording{format: "anthropic-sse", origin: "http://127.0.0.1/" + st.id}
		add := func(kind frame.Kind, id, name string, at float64, data any) {
			rec.frames = append(rec.frames, frame.Frame{Kind: kind, ID: id, Name: name, FromClient: kind == frame.Request, At: s.at(at).UnixNano(), Data: line(data)})
		}
		add(frame.Request, string(line(header)), "POST /v1/messages", st.from, object{
			"model": "claude-small-1", "max_tokens": 64, "messages": messages,
			"system": []object{{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.260; cc_prompt_id=" + prompt + ";"}, {"type": "text", "text": "You keep a lighthouse."}},
		})
		usage := object{"input_tokens": st.in, "output_tokens": st.out, "cache_read_input_tokens": st.read, "cache_creation_input_tokens": st.write}
		event := func(at float64, o object) { add(frame.Event, "", o["type"].(string), at, o) }
		event(st.from+0.2, object{"type": "message_start", "message": object{"id": st.id, "model": "claude-small-1", "usage": usage}})
		for i, b := range st.blocks() {
			event(st.from+0.2, object{"type": "content_block_start", "index": i, "content_block": b})
			event(st.to, object{"type": "content_block_stop", "index": i})
		}
		event(st.to, object{"type": "message_delta", "delta": object{"stop_reason": st.stop()}, "usage": usage})
		event(st.to, object{"type": "message_stop"})
		rec.frames = append(rec.frames, frame.Frame{Kind: frame.Close, At: s.at(st.to).UnixNano()})
		out = append(out, rec)
	}
	var steps func(agentID, prompt, text string, list []step)
	steps = func(agentID, prompt, text string, list []step) {
		messages := []object{{"role": "user", "content": text}}
		for _, st := range list {
			exchange(agentID, prompt, st, messages)
			messages = append(slices.Clone(messages), object{"role": "assistant", "content": st.blocks()})
			var results []object
			for _, c := range st.calls {
				if c.agent != nil {
					steps(c.agent.id, prompt, c.agent.task, c.agent.steps)
				}
				results = append(results, object{"type": "tool_result", "tool_use_id": c.id, "content": c.result, "is_error": c.failed})
			}
			if results != nil {
				messages = append(messages, object{"role": "user", "content": results})
			}
		}
	}
	for _, t := range s.turns {
		steps("", t.prompt, t.text, t.steps)
	}
	return out
}

func (st *step) stop() string {
	if len(st.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

// blocks are the content of the response.
func (st *step) blocks() (blocks []object) {
	if st.think != "" {
		blocks = append(blocks, object{"type": "thinking", "thinking": st.think, "signature": "sealed"})
	}
	if st.text != "" {
		blocks = append(blocks, object{"type": "text", "text": st.text})
	}
	for _, c := range st.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": c.id, "name": c.tool, "input": json.RawMessage(c.args)})
	}
	return blocks
}

func recordedRuns() map[string]recordedRun {
	runs := map[string]recordedRun{}
	for name, s := range map[string]story{
		"a tool": {session: "5e55aaaa-0000-4000-8000-000000000001", start: time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC), turns: []turn{
			{prompt: "d00d0001-0000-4000-8000-000000000001", text: "Trim the lamp", at: 1, end: 9, steps: []step{
				{request: "req_lamp_01", id: "msg_lamp_01", from: 1.1, to: 3, think: "First the log.", text: "I look.", in: 12, out: 40, read: 100, write: 7, calls: []toolCall{
					{id: "toolu_lamp_01", tool: "Read", args: `{"file_path":"/lamp/log"}`, result: "wick: 3 mm", from: 3.2, to: 4},
					{id: "toolu_lamp_02", tool: "Bash", args: `{"command":"ls"}`, result: "no such lamp", from: 3.2, to: 4.5, failed: true},
				}},
				{request: "req_lamp_02", id: "msg_lamp_02", from: 4.6, to: 8, text: "It is trimmed.", in: 9, out: 21, read: 120},
			}},
		}},
		"across an hour": {session: "5e55aaaa-0000-4000-8000-000000000002", start: time.Date(2026, 3, 3, 6, 59, 56, 0, time.UTC), turns: []turn{
			{prompt: "d00d0002-0000-4000-8000-000000000001", text: "Sound the horn", at: 1, end: 6, steps: []step{
				{request: "req_horn_01", id: "msg_horn_01", from: 1.5, to: 3.9, in: 5, out: 6, calls: []toolCall{{id: "toolu_horn_01", tool: "Bash", args: `{"command":"horn"}`, result: "mooo", from: 4.1, to: 4.8}}},
				{request: "req_horn_02", id: "msg_horn_02", from: 3.95, to: 5, text: "It sounds.", in: 8, out: 4},
			}},
			{prompt: "d00d0002-0000-4000-8000-000000000002", text: "Once more", at: 20, end: 24, steps: []step{
				{request: "req_horn_03", id: "msg_horn_03", from: 21, to: 23, text: "Again.", in: 3, out: 2},
			}},
		}},
		"a sub-agent": {session: "5e55aaaa-0000-4000-8000-000000000003", start: time.Date(2026, 3, 3, 8, 0, 0, 0, time.UTC), turns: []turn{
			{prompt: "d00d0003-0000-4000-8000-000000000001", text: "Count the boats", at: 1, end: 20, steps: []step{
				{request: "req_boat_01", id: "msg_boat_01", from: 1.2, to: 3, in: 11, out: 12, calls: []toolCall{
					{id: "toolu_boat_01", tool: "Agent", args: `{"description":"Count","prompt":"Count them all.","subagent_type":"Explore"}`, result: "There are nine.", from: 3, to: 15, agent: &agent{
						id: "ab0a7000000000001", typ: "Explore", task: "Count them all.", steps: []step{
							{request: "req_boat_02", id: "msg_boat_02", from: 4, to: 6, in: 13, out: 14, calls: []toolCall{{id: "toolu_boat_02", tool: "Grep", args: `{"pattern":"boat"}`, result: "9", from: 6, to: 7}}},
							{request: "req_boat_03", id: "msg_boat_03", from: 7, to: 9, text: "There are nine.", in: 15, out: 16},
						},
					}},
				}},
				{request: "req_boat_04", id: "msg_boat_04", from: 15.5, to: 18, text: "Nine boats.", in: 17, out: 18},
			}},
		}},
	} {
		runs["claude code: "+name] = recordedRun{whole: "claude-code", views: slices.Concat(s.transcript(), s.logs(), s.tap())}
		runs["claude code, traces: "+name] = recordedRun{whole: "claude-code", views: slices.Concat(s.transcript(), s.traces())}
		runs["claude code, output: "+name] = recordedRun{whole: "claude-code", totals: true, views: slices.Concat(s.transcript(), s.stream(true), s.logs())}
		runs["claude code, output of old: "+name] = recordedRun{whole: "claude-code", totals: true, views: slices.Concat(s.transcript(), s.stream(false))}
		runs["codex: "+name] = recordedRun{whole: "codex", views: slices.Concat(s.rollout(true), s.codexLogs(), s.responses(true))}
		runs["codex, no ids of items: "+name] = recordedRun{whole: "codex", views: slices.Concat(s.rollout(false), s.codexLogs(), s.responses(false))}
		runs["codex app server: "+name] = recordedRun{whole: "codex", views: slices.Concat(s.rollout(true), s.appServer(), s.codexLogs())}
		runs["codex app server, traffic: "+name] = recordedRun{whole: "codex", views: slices.Concat(s.rollout(true), s.appServer(), s.responses(true), s.codexTraces())}
		runs["codex app server, no ids of items: "+name] = recordedRun{whole: "codex", views: slices.Concat(s.rollout(false), s.appServer(), s.codexLogs(), s.responses(false))}
		runs["gemini: "+name] = recordedRun{whole: "gemini-cli", views: slices.Concat(s.chat(), s.geminiLogs(), s.assist())}
		runs["codex, traces: "+name] = recordedRun{whole: "codex", views: slices.Concat(s.rollout(true), s.codexTraces())}
		runs["gemini, traces: "+name] = recordedRun{whole: "gemini-cli", views: slices.Concat(s.chat(), s.geminiTraces())}
		runs["copilot: "+name] = recordedRun{whole: "copilot", totals: true, views: slices.Concat(s.eventLog(), s.copilotTraces())}
		if name != "a sub-agent" { // whose tokens the output of codex exec does not have
			runs["codex exec: "+name] = recordedRun{whole: "codex", totals: true, views: slices.Concat(s.rollout(true), s.exec(), s.codexLogs())}
		}
	}
	return runs
}
