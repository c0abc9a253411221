package verdicts

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/frame"
)

// began is when every incident begins.
var began = time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)

// writer writes steps as the records of a format. It returns false for a step that the format cannot
// show.
type writer interface {
	write(s step, now time.Time) bool
	heard() []app.Heard
}

// record collects the frames of a writer.
type record struct {
	list    []app.Heard
	streams map[string]int
	n       int // of ids
	backlog time.Time
}

func (r *record) heard() []app.Heard { return r.list }

func (r *record) id(prefix string) string {
	r.n++
	return fmt.Sprintf("%s%04d", prefix, r.n)
}

func (r *record) add(origin string, at time.Time, f frame.Frame, live bool) {
	if r.streams == nil {
		r.streams = make(map[string]int)
	}
	if _, ok := r.streams[origin]; !ok {
		r.streams[origin] = len(r.streams)
	}
	h := app.Heard{Stream: r.streams[origin], Origin: origin, At: at, Live: live, Frame: f}
	if !r.backlog.IsZero() {
		h.Backlog, h.Written, h.At = true, at, r.backlog
	}
	r.list = append(r.list, h)
}

type m = map[string]any

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func raw(arguments string) any {
	if arguments == "" {
		return m{}
	}
	return json.RawMessage(arguments)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// claudeCode writes transcripts of Claude Code: one of the session, one of each sub-agent.
type claudeCode struct {
	record
	session string
	last    map[string]string // uuid, by lane
	reply   map[string]string // the response that is going on, by lane
	prompts map[string]string
	launch  map[string]bool // a delegate in the background
	open    int             // calls of the session's own run without a result
	queued  []string        // what the person wrote meanwhile
}

func newClaudeCode(session string) *claudeCode {
	return &claudeCode{session: session, last: map[string]string{}, reply: map[string]string{}, prompts: map[string]string{}, launch: map[string]bool{}}
}

func (w *claudeCode) line(s step, now time.Time, rec m) {
	origin := "/home/ada/.claude/projects/-srv-quarry/" + w.session + ".jsonl"
	rec["isSidechain"], rec["sessionId"], rec["version"], rec["cwd"], rec["timestamp"] = false, w.session, "2.1.230", "/srv/quarry", stamp(now)
	if s.Lane != "" {
		origin = "/home/ada/.claude/projects/-srv-quarry/" + w.session + "/subagents/agent-" + s.Lane + ".jsonl"
		rec["isSidechain"], rec["agentId"] = true, s.Lane
	}
	if rec["parentUuid"] = nil; w.last[s.Lane] != "" {
		rec["parentUuid"] = w.last[s.Lane]
	}
	w.last[s.Lane] = w.id(w.session[:8] + "-0000-4000-8000-00000000")
	rec["uuid"], rec["userType"] = w.last[s.Lane], "external"
	w.add(origin, now, frame.Frame{Kind: frame.Line, Data: encode(rec)}, false)
}

func (w *claudeCode) assistant(s step, now time.Time, stop any, block m) {
	if w.reply[s.Lane] == "" {
		w.reply[s.Lane] = w.id("msg_" + w.session[:4])
	}
	w.line(s, now, m{"type": "assistant", "requestId": "req_" + w.reply[s.Lane], "message": m{
		"id": w.reply[s.Lane], "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "content": []any{block},
		"stop_reason": stop, "stop_sequence": nil, "usage": m{"input_tokens": 4, "output_tokens": 30, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 10},
	}})
}

func (w *claudeCode) write(s step, now time.Time) bool {
	if s.Lane == "" {
		switch s.What {
		case "call", "delegate", "background":
			w.open++
		case "result", "error":
			w.open--
		case "interrupt":
			w.open = 0
		}
	}
	switch s.What {
	case "user", "begin":
		text := s.Text
		if s.What == "user" && w.open > 0 { // it is shown to the model with the next result
			w.queued = append(w.queued, text)
			w.add("/home/ada/.claude/projects/-srv-quarry/"+w.session+".jsonl", now, frame.Frame{Kind: frame.Line, Data: encode(m{"type": "queue-operation", "operation": "enqueue",
				"timestamp": stamp(now), "sessionId": w.session, "content": text})}, false)
			return true
		}
		if s.What == "begin" && text == "" {
			text = w.prompts[s.Lane]
		}
		w.reply[s.Lane] = ""
		if s.What == "begin" {
			w.add("/home/ada/.claude/projects/-srv-quarry/"+w.session+"/subagents/agent-"+s.Lane+".meta.json", now,
				frame.Frame{Kind: frame.Body, Data: encode(m{"agentType": "helper", "description": "Ask", "toolUseId": "toolu_" + w.session[:4] + s.Lane, "spawnDepth": 1})}, false)
		}
		w.line(s, now, m{"type": "user", "message": m{"role": "user", "content": text}})
	case "text":
		w.assistant(s, now, nil, m{"type": "text", "text": s.Text})
	case "final":
		w.assistant(s, now, "end_turn", m{"type": "text", "text": s.Text})
		w.reply[s.Lane] = ""
		if s.Lane == "" {
			w.line(s, now, m{"type": "system", "subtype": "turn_duration", "durationMs": 1000})
		}
	case "call":
		w.assistant(s, now, "tool_use", m{"type": "tool_use", "id": "toolu_" + w.session[:4] + s.ID, "name": s.Name, "input": raw(s.Text)})
	case "delegate", "background":
		w.prompts[s.ID] = s.Text
		input := m{"description": "Ask " + s.Name, "prompt": s.Text, "subagent_type": s.Name}
		if s.What == "background" {
			input["run_in_background"], w.launch[s.ID] = true, true
		}
		w.assistant(s, now, "tool_use", m{"type": "tool_use", "id": "toolu_" + w.session[:4] + s.ID, "name": "Agent", "input": input})
	case "result", "error":
		w.reply[s.Lane] = ""
		block := m{"type": "tool_result", "tool_use_id": "toolu_" + w.session[:4] + s.ID, "content": s.Text}
		if s.What == "error" {
			block["is_error"] = true
		}
		rec := m{"type": "user", "message": m{"role": "user", "content": []any{block}}}
		if w.prompts[s.ID] != "" {
			rec["toolUseResult"] = m{"status": "completed", "agentId": s.ID, "content": []any{m{"type": "text", "text": s.Text}}}
			if w.launch[s.ID] {
				rec["toolUseResult"] = m{"isAsync": true, "status": "async_launched", "agentId": s.ID, "description": "Ask", "prompt": w.prompts[s.ID], "outputFile": "/tmp/tasks/" + s.ID + ".output"}
			}
		}
		w.line(s, now, rec)
		if s.Lane == "" {
			for _, text := range w.queued {
				w.line(s, now, m{"type": "attachment", "attachment": m{"type": "queued_command", "prompt": text}})
			}
			w.queued = nil
		}
	case "think":
		w.assistant(s, now, nil, m{"type": "thinking", "thinking": s.Text, "signature": "c2ln"})
	case "compact":
		w.line(s, now, m{"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "compactMetadata": m{"trigger": "auto", "preTokens": 155000}})
		w.line(s, now, m{"type": "user", "isCompactSummary": true, "isVisibleInTranscriptOnly": true, "message": m{"role": "user", "content": s.Text}})
	case "interrupt":
		w.line(s, now, m{"type": "user", "message": m{"role": "user", "content": []any{m{"type": "text", "text": "[Request interrupted by user]"}}}})
	case "retry":
		w.line(s, now, m{"type": "system", "subtype": "api_error", "level": "error", "retryInMs": waits(s, time.Second).Milliseconds(), "retryAttempt": 1, "maxRetries": 10,
			"error": m{"status": 529, "error": m{"type": "error", "error": m{"type": "overloaded_error", "message": "Overloaded"}}}})
	case "limit":
		w.line(s, now, m{"type": "assistant", "isApiErrorMessage": true, "apiErrorStatus": 429, "error": "rate_limit", "requestId": "req_lim", "message": m{
			"id": w.id("aaaa"), "model": "<synthetic>", "role": "assistant", "type": "message", "stop_reason": "stop_sequence", "usage": m{"input_tokens": 0, "output_tokens": 0},
			"content": []any{m{"type": "text", "text": "You've hit your limit · resets 6pm"}}}})
	default:
		return false
	}
	return true
}

// openCode writes the events of OpenCode's server.
type openCode struct {
	record
	session  string
	user     map[string]string // message, by lane
	reply    map[string]string
	calls    map[string]m
	above    map[string]string // the lane that asks for a delegate
	finished map[string]bool
}

func newOpenCode(session string) *openCode {
	return &openCode{session: session, user: map[string]string{}, reply: map[string]string{}, calls: map[string]m{}, above: map[string]string{}, finished: map[string]bool{}}
}

func (w *openCode) ses(lane string) string {
	return "ses_" + w.session[:8] + "f001" + (lane + "QuarryGateOpen")[:12]
}

func (w *openCode) event(now time.Time, typ string, properties m) {
	w.add("http://127.0.0.1:4096/event", now, frame.Frame{Kind: frame.Event, Data: encode(m{"type": typ, "properties": properties})}, true)
}

func (w *openCode) create(s step, now time.Time, parent string) {
	info := m{"id": w.ses(s.Lane), "projectID": "5b1f0c77aa21", "directory": "/srv/quarry", "title": "Quarry", "version": "1.14.30", "time": m{"created": now.UnixMilli(), "updated": now.UnixMilli()}}
	if parent != "" {
		info["parentID"] = parent
	}
	w.event(now, "session.created", m{"info": info})
}

func (w *openCode) prompt(s step, now time.Time) {
	w.user[s.Lane] = w.id("msg_" + w.session[:8])
	w.reply[s.Lane] = ""
	w.event(now, "message.updated", m{"sessionID": w.ses(s.Lane), "info": m{"id": w.user[s.Lane], "sessionID": w.ses(s.Lane), "role": "user", "time": m{"created": now.UnixMilli()}, "agent": "build", "model": m{"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}}})
	w.part(s, now, w.user[s.Lane], m{"type": "text", "text": s.Text})
}

func (w *openCode) part(s step, now time.Time, message string, part m) {
	if part["id"] == nil {
		part["id"] = w.id("prt_" + w.session[:8])
	}
	part["sessionID"], part["messageID"] = w.ses(s.Lane), message
	w.event(now, "message.part.updated", m{"sessionID": w.ses(s.Lane), "part": part})
}

func (w *openCode) info(s step, now time.Time, finish string) {
	info := m{"id": w.reply[s.Lane], "sessionID": w.ses(s.Lane), "role": "assistant", "parentID": w.user[s.Lane], "modelID": "claude-sonnet-4-5", "providerID": "anthropic",
		"mode": "build", "agent": "build", "path": m{"cwd": "/srv/quarry", "root": "/srv/quarry"}, "cost": 0, "time": m{"created": now.UnixMilli()},
		"tokens": m{"input": 0, "output": 0, "reasoning": 0, "cache": m{"read": 0, "write": 0}}}
	if finish != "" {
		info["finish"], info["time"] = finish, m{"created": now.UnixMilli(), "completed": now.UnixMilli()}
	}
	w.event(now, "message.updated", m{"sessionID": w.ses(s.Lane), "info": info})
}

func (w *openCode) answer(s step, now time.Time) string {
	if w.reply[s.Lane] == "" {
		w.reply[s.Lane] = w.id("msg_" + w.session[:8])
		w.info(s, now, "")
	}
	return w.reply[s.Lane]
}

func (w *openCode) write(s step, now time.Time) bool {
	ms := now.UnixMilli()
	switch s.What {
	case "user":
		if w.user[s.Lane] == "" {
			w.create(s, now, "")
		}
		w.prompt(s, now)
	case "begin":
		w.create(s, now, w.ses(w.above[s.Lane]))
		w.prompt(s, now)
		if call := w.calls[s.Lane]; call != nil {
			call["state"].(m)["metadata"] = m{"sessionId": w.ses(s.Lane)}
			w.part(step{Lane: w.above[s.Lane]}, now, call["messageID"].(string), call)
		}
	case "text", "final":
		id := w.answer(s, now)
		w.part(s, now, id, m{"type": "text", "text": s.Text, "time": m{"start": ms, "end": ms}})
		if s.What == "final" {
			w.info(s, now, "stop")
			w.event(now, "session.idle", m{"sessionID": w.ses(s.Lane)})
			w.reply[s.Lane] = ""
		}
	case "call", "delegate":
		id := w.answer(s, now)
		input, tool := raw(s.Text), s.Name
		if s.What == "delegate" {
			input, tool = m{"description": "Ask " + s.Name, "prompt": s.Text, "subagent_type": s.Name}, "task"
			w.above[s.ID] = s.Lane
		}
		p := m{"id": w.id("prt_" + w.session[:8]), "type": "tool", "callID": "call_" + w.session[:8] + s.ID, "tool": tool, "state": m{"status": "running", "input": input, "time": m{"start": ms}}}
		w.calls[s.ID] = p
		w.part(s, now, id, p)
	case "result", "error":
		p := w.calls[s.ID]
		state := p["state"].(m)
		start := state["time"].(m)["start"]
		state["status"], state["time"] = "completed", m{"start": start, "end": ms}
		if s.What == "error" {
			state["status"], state["error"] = "error", s.Text
		} else {
			state["output"], state["title"] = s.Text, "done"
			if state["metadata"] == nil {
				state["metadata"] = m{}
			}
		}
		w.part(s, now, p["messageID"].(string), p)
		w.info(s, now, "tool-calls")
		w.reply[s.Lane] = ""
	case "ping":
		w.event(now, "server.heartbeat", m{})
	case "compact": // a message that asks for it, a response that is the summary
		w.user[s.Lane] = w.id("msg_" + w.session[:8])
		w.event(now, "message.updated", m{"sessionID": w.ses(s.Lane), "info": m{"id": w.user[s.Lane], "sessionID": w.ses(s.Lane), "role": "user", "time": m{"created": ms}, "agent": "build", "model": m{"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}}})
		w.part(s, now, w.user[s.Lane], m{"type": "compaction", "auto": true})
		id := w.id("msg_" + w.session[:8])
		info := m{"id": id, "sessionID": w.ses(s.Lane), "role": "assistant", "parentID": w.user[s.Lane], "modelID": "claude-sonnet-4-5", "providerID": "anthropic", "mode": "compaction", "agent": "compaction", "summary": true, "time": m{"created": ms}}
		w.event(now, "message.updated", m{"sessionID": w.ses(s.Lane), "info": info})
		w.part(s, now, id, m{"type": "text", "text": s.Text, "time": m{"start": ms, "end": ms}})
		info["finish"], info["time"] = "stop", m{"created": ms, "completed": ms}
		w.event(now, "message.updated", m{"sessionID": w.ses(s.Lane), "info": info})
		w.event(now, "session.compacted", m{"sessionID": w.ses(s.Lane)})
	case "think":
		w.part(s, now, w.answer(s, now), m{"type": "reasoning", "text": s.Text, "time": m{"start": ms}})
	case "retry":
		w.event(now, "session.status", m{"sessionID": w.ses(s.Lane), "status": m{"type": "retry", "attempt": w.n, "message": "Overloaded", "next": ms + waits(s, 4*time.Second).Milliseconds()}})
	case "ask":
		p := w.calls[s.ID]
		w.event(now, "permission.asked", m{"id": "per_" + w.session[:8] + s.ID, "sessionID": w.ses(s.Lane), "permission": "bash", "patterns": []any{"*"}, "metadata": m{}, "always": []any{},
			"tool": m{"messageID": p["messageID"], "callID": p["callID"]}})
	case "allow":
		w.event(now, "permission.replied", m{"sessionID": w.ses(s.Lane), "requestID": "per_" + w.session[:8] + s.ID, "reply": "once"})
	case "abort":
		aborted := m{"name": "MessageAbortedError", "data": m{"message": "aborted"}}
		w.event(now, "session.error", m{"sessionID": w.ses(s.Lane), "error": aborted})
		id := w.answer(s, now)
		w.event(now, "message.updated", m{"sessionID": w.ses(s.Lane), "info": m{"id": id, "sessionID": w.ses(s.Lane), "role": "assistant", "parentID": w.user[s.Lane], "modelID": "claude-sonnet-4-5",
			"providerID": "anthropic", "mode": "build", "agent": "build", "time": m{"created": ms, "completed": ms}, "error": aborted}})
		w.event(now, "session.idle", m{"sessionID": w.ses(s.Lane)})
	default:
		return false
	}
	return true
}

// codex writes a rollout of Codex.
type codex struct {
	record
	session string
	turn    string
}

func newCodex(session string) *codex { return &codex{session: session} }

func (w *codex) line(now time.Time, typ string, payload m) {
	w.add("/home/ada/.codex/sessions/2026/03/04/rollout-2026-03-04T09-10-11-"+w.session+".jsonl", now, frame.Frame{Kind: frame.Line, Data: encode(m{"timestamp": stamp(now), "type": typ, "payload": payload})}, false)
}

func (w *codex) write(s step, now time.Time) bool {
	if s.Lane != "" {
		return false
	}
	switch s.What {
	case "user":
		if w.turn == "" {
			w.line(now, "session_meta", m{"id": w.session, "timestamp": stamp(now), "cwd": "/srv/quarry", "originator": "codex_cli_rs", "cli_version": "0.146.0", "source": "cli", "model_provider": "openai"})
		}
		w.turn = w.id(w.session[:24] + "0000b")
		w.line(now, "event_msg", m{"type": "task_started", "turn_id": w.turn, "started_at": now.Unix()})
		w.line(now, "turn_context", m{"turn_id": w.turn, "cwd": "/srv/quarry", "approval_policy": "on-request", "model": "gpt-5.6-luna"})
		w.line(now, "response_item", m{"type": "message", "role": "user", "id": w.id("msg_u"), "content": []any{m{"type": "input_text", "text": s.Text}}})
		w.line(now, "event_msg", m{"type": "user_message", "message": s.Text})
	case "text":
		w.line(now, "response_item", m{"type": "message", "role": "assistant", "id": w.id("msg_a"), "content": []any{m{"type": "output_text", "text": s.Text}}})
	case "final":
		w.line(now, "response_item", m{"type": "message", "role": "assistant", "id": w.id("msg_a"), "phase": "final_answer", "content": []any{m{"type": "output_text", "text": s.Text}}})
		w.line(now, "event_msg", m{"type": "task_complete", "turn_id": w.turn, "last_agent_message": s.Text, "completed_at": now.Unix()})
	case "call":
		name, args := s.Name, s.Text
		if args == "" {
			args = "{}"
		}
		w.line(now, "response_item", m{"type": "function_call", "id": w.id("fc_"), "call_id": "call_" + w.session[:8] + s.ID, "name": name, "arguments": args})
	case "result", "error":
		w.line(now, "response_item", m{"type": "function_call_output", "call_id": "call_" + w.session[:8] + s.ID, "output": "Exit code: 0\nOutput:\n" + s.Text + "\n"})
	case "interrupt":
		w.line(now, "event_msg", m{"type": "turn_aborted", "turn_id": w.turn, "reason": "interrupted"})
	case "retry":
		w.line(now, "event_msg", m{"type": "stream_error", "message": "Reconnecting... 1/5"})
	case "ask":
		w.line(now, "event_msg", m{"type": "exec_approval_request", "call_id": "call_" + w.session[:8] + s.ID, "turn_id": w.turn, "command": []any{"bash"}, "cwd": "/srv/quarry"})
	default:
		return false
	}
	return true
}

// agno writes the events of a team of AGNO.
type agno struct {
	record
	session string
	tasks   map[string]m
	names   map[string]string
}

func newAgno(session string) *agno {
	return &agno{session: session, tasks: map[string]m{}, names: map[string]string{}}
}

func (w *agno) run(lane string) string {
	return w.session[:24] + fmt.Sprintf("%012x", len(lane)*4097+7)
}

func (w *agno) event(s step, now time.Time, name string, more m) {
	data := m{"created_at": now.Unix(), "session_id": w.session, "run_id": w.run(s.Lane)}
	if s.Lane == "" {
		name = "Team" + name
		data["team_id"], data["team_name"] = "quarry", "Quarry Office"
	} else {
		data["agent_id"], data["agent_name"], data["parent_run_id"] = w.names[s.Lane], w.names[s.Lane], w.run("")
	}
	data["event"] = name
	for k, v := range more {
		data[k] = v
	}
	w.add("http://127.0.0.1:7777/teams/quarry/runs", now, frame.Frame{Kind: frame.Event, Name: name, Data: encode(data)}, true)
}

func (w *agno) tool(s step, now time.Time, name string, args any, more m) m {
	t := m{"tool_call_id": "call_" + w.session[:8] + s.ID, "tool_name": name, "tool_args": args, "tool_call_error": nil, "result": nil, "metrics": nil, "child_run_id": nil, "created_at": now.Unix()}
	for k, v := range more {
		t[k] = v
	}
	w.tasks[s.ID] = t
	return t
}

func (w *agno) write(s step, now time.Time) bool {
	switch s.What {
	case "user", "begin":
		w.event(s, now, "RunStarted", m{"model": "birch-2", "model_provider": "OpenAI"})
	case "text":
		w.event(s, now, "RunContent", m{"content": s.Text, "content_type": "str", "reasoning_content": ""})
	case "final":
		w.event(s, now, "RunContent", m{"content": s.Text, "content_type": "str", "reasoning_content": ""})
		w.event(s, now, "RunCompleted", m{"content": s.Text})
	case "fail":
		w.event(s, now, "RunError", m{"content": s.Text})
	case "call":
		w.event(s, now, "ToolCallStarted", m{"tool": w.tool(s, now, s.Name, raw(s.Text), nil)})
	case "delegate":
		w.names[s.ID] = s.Name
		w.event(s, now, "ToolCallStarted", m{"tool": w.tool(s, now, "delegate_task_to_member", m{"member_id": s.Name, "task": s.Text}, nil)})
	case "result", "error":
		t := w.tasks[s.ID]
		t["result"], t["tool_call_error"] = s.Text, s.What == "error"
		w.event(s, now, "ToolCallCompleted", m{"tool": t, "content": s.Text})
	case "ask", "pause":
		t := w.tasks[s.ID]
		if t == nil {
			return false
		}
		t["requires_confirmation"] = true
		w.event(s, now, "RunPaused", m{"tools": []any{t}})
	case "close":
		w.add("http://127.0.0.1:7777/teams/quarry/runs", now, frame.Frame{Kind: frame.Close, Name: frame.Lost}, true)
	default:
		return false
	}
	return true
}
