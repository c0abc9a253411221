package managedagents

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// event decodes one event, once.
func (d *stream) event(v jsonv.Value) {
	typ, id, at := v.Get("type").Str(), ident.Of(v.Get("id")), v.Get("processed_at")
	d.At = conversation.TimeOf(at)
	preview := cmp.Or(ident.Of(v.Get("event_id")), ident.Of(v.Path("event", "id")))
	switch {
	case typ == "event_start" && preview != "":
		d.Previews.Open(preview, msg.Assistant)
		d.status(nil, "preview:"+preview, typ).SetAttr("event", v.Path("event", "type").Str())
		return
	case typ == "event_delta" && preview != "":
		d.Previews.Append(d.Previews.Part(preview), v.Path("delta", "content", "text").Text(), maxPreview)
		return
	case typ == "" || id == "" && !v.Get("content").Exists():
		d.Unknown(typ, v)
		return
	case id == "", at.Is(jsonv.Null): // a client sends it, or it waits to be read
		m := d.status(nil, "queued:"+cmp.Or(id, msg.HashKey(string(v.Peek()))), "queued")
		m.Content, m.Attachments = anthropic.Content(v.Get("content"))
		m.SetAttr("event", typ)
		return
	}
	if d.Previews.Drop(d.Previews.Part(id)); typ != "session" && typ != "session_thread" && !d.Seen.Add(id, maxSeen) {
		d.status(nil, "again:"+id, "repeated")
		v.MarkRead()
		return
	}
	of := ident.Of(v.Get("session_thread_id"))
	if of != "" && d.isPrimary(of, typ) {
		of = ""
	}
	t := d.thread(cmp.Or(of, d.own), ident.Of(v.Get("agent_name")))
	switch typ {
	case "user.message", "user.define_outcome":
		d.prompt(t, v, id)
	case "system.message":
		m := d.add(t, msg.System, id)
		m.Role, m.Hidden = msg.RoleSystem, true
		m.Content, _ = anthropic.Content(v.Get("content"))
	case "user.interrupt":
		for _, o := range d.Threads { // without a thread it stops all of them
			if o == t || !v.Get("session_thread_id").Is(jsonv.String) {
				o.Interrupted = o.Run.Active()
			}
		}
		d.status(t, id, typ).Role = msg.RoleUser
	case "user.tool_confirmation":
		m := d.status(t, id, typ)
		m.Role, m.Content, m.Tool.CallID = msg.RoleUser, v.Get("deny_message").Text(), ident.Of(v.Get("tool_use_id"))
		record.Signal(m, msg.WaitEnd)
		m.SetAttr("decision", ident.Of(v.Get("result")))
	case "agent.message":
		m := d.part(t, msg.Assistant, id, id)
		m.Content, m.Attachments = anthropic.Content(v.Get("content"))
	case "agent.thinking":
		m := d.part(t, msg.Reasoning, id, id)
		m.Hidden = true
		m.SetAttr("redacted", "true")
	case "agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use":
		d.call(t, v, id, typ == "agent.custom_tool_use")
	case "agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result", "user.tool_result":
		d.result(t, v, id)
	case "agent.thread_message_sent":
		d.sent(t, v, id)
	case "agent.thread_message_received":
		d.received(t, v, id)
	case "agent.thread_context_compacted":
		record.Signal(d.status(t, id, typ), msg.Compaction)
	case "span.model_request_start":
		d.request(t, id)
		m := d.status(t, id, typ)
		m.ResponseID = id
		record.Signal(m, msg.ModelStart)
	case "span.model_request_end":
		d.usage(t, v, id)
	default:
		d.lifecycle(t, v, typ, id)
	}
}

// transition decodes a change of the state of the session, which is that of its primary thread, or of a child thread.
func (d *stream) transition(t *thread, v jsonv.Value, to, typ, id string) {
	switch to {
	case "session.status_running":
		if t.Run.Child {
			t.Run.Wake(t.ID)
		}
		d.status(t, id, typ)
	case "session.status_idle":
		d.idle(t, v, typ, id)
	case "session.status_rescheduled":
		record.Signal(d.status(t, id, typ), msg.Retry)
	default:
		d.end(t, id, typ, typ[len("session."):], t.Run.Failed)
	}
}

// isPrimary reports whether a thread that an event names is the primary one, whose events name none but for its own states: one that
// is created while no turn goes on, or of which nothing has said that it was created or is written to.
func (d *stream) isPrimary(of, typ string) bool {
	if d.own != "" || slices.ContainsFunc(d.Threads, func(t *thread) bool { return t.ID == of }) {
		return false
	}
	switch typ {
	case "session.thread_created":
		return !d.thread("", "").Run.Active()
	case "session.thread_status_running", "session.thread_status_idle", "session.thread_status_rescheduled", "session.thread_status_terminated", "user.interrupt":
		return true
	}
	return false
}

// lifecycle decodes an event about the session or one of its threads.
func (d *stream) lifecycle(t *thread, v jsonv.Value, typ, id string) {
	switch typ {
	case "session.thread_created":
		m := d.status(d.thread(d.own, ""), id, typ)
		m.SetAttr("thread", ident.Of(v.Get("session_thread_id")))
		m.SetAttr("thread_agent", t.Agent)
	case "session.thread_status_running", "session.thread_status_idle", "session.thread_status_rescheduled", "session.thread_status_terminated":
		if t.ID == "" { // the primary thread, of which session.status_* has the same
			m := d.status(t, id, typ)
			m.SetAttr("thread", ident.Of(v.Get("session_thread_id")))
			m.SetAttr("stop_reason", ident.Of(v.Path("stop_reason", "type")))
			return
		}
		d.transition(t, v, strings.Replace(typ, "thread_", "", 1), typ, id)
	case "session.status_running", "session.status_idle", "session.status_terminated", "session.deleted", "session.status_rescheduled":
		d.transition(t, v, typ, typ, id)
	case "session.error":
		fault, retry := v.Get("error"), ident.Of(v.Path("error", "retry_status", "type"))
		m := d.add(t, msg.Error, id)
		if t.Run.Failed = retry != "retrying"; !t.Run.Failed {
			m.Kind, m.Hidden = msg.Status, true
			record.Signal(m, msg.Retry)
		}
		m.Content, m.Tool.ErrorType, m.IsError = fault.Get("message").Text(), ident.Of(fault.Get("type")), true
		m.SetAttr("retry_status", retry)
		conversation.Attrs(m, fault, "mcp_server_name")
	case "session.updated", "session", "session_thread", "session.usage",
		"span.outcome_evaluation_start", "span.outcome_evaluation_ongoing", "span.outcome_evaluation_end":
		agent := v.Get("agent")
		d.Model, t.Agent = cmp.Or(ident.Of(agent.Path("model", "id")), d.Model), cmp.Or(ident.Of(agent.Get("name")), t.Agent)
		m := d.status(nil, typ+":"+id, typ)
		m.Title, m.Model = conversation.Excerpt(v.Get("title")), d.Model
		if m.Content = v.Get("explanation").Text(); m.Content.IsZero() {
			m.Content = agent.Get("system").Text()
		}
		conversation.Attrs(m, v, "status", "environment_id", "parent_thread_id", "session_id", "deployment_id", "outcome_id", "result", "outcome_evaluation_start_id")
		m.SetAttr("agent", t.Agent)
		m.SetAttr("agent_id", ident.Of(agent.Get("id")))
		m.SetAttr("usage", conversation.ShortJSON(v.Get("usage")))
	default:
		d.Unknown(typ, v)
	}
}

// prompt decodes the words of a user, which begin a turn unless one goes on.
func (d *stream) prompt(t *thread, v jsonv.Value, id string) {
	t.Interrupted = false // the agent goes on with it
	t.Run.Wake(id)
	m := d.add(t, msg.User, id)
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
	if m.Content, m.Attachments = anthropic.Content(v.Get("content")); v.Get("description").Exists() {
		m.Content = v.Get("description").Text()
		conversation.Attrs(m, v, "outcome_id")
		m.SetAttr("rubric", conversation.ShortJSON(v.Get("rubric")))
	}
}

// call decodes a tool call: {name, input, mcp_server_name?, evaluated_permission?}.
func (d *stream) call(t *thread, v jsonv.Value, id string, custom bool) {
	if !v.Get("name").Is(jsonv.String) {
		d.Unknown("tool_use", v)
		return
	}
	c := &call{Call: conversation.Call{ID: id, Name: cmp.Or(ident.Of(v.Get("name")), "tool"), Server: ident.Of(v.Get("mcp_server_name"))}, Thread: t.ID, Custom: custom}
	m := d.part(t, msg.ToolCall, id, "call:"+id)
	c.Run = m.Run
	c.On(m)
	anthropic.Arguments(m, v.Get("input"))
	m.SetAttr("permission", ident.Of(v.Get("evaluated_permission")))
	d.Calls.Add(c)
}

// result decodes the result of a call, by the tool, by a server or by the client.
func (d *stream) result(t *thread, v jsonv.Value, id string) {
	use := ident.Of(v.First("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id"))
	c := d.Calls.Get(use)
	if use == "" {
		d.Unknown("tool_result", v)
		return
	} else if c == nil {
		t.Run.Wake(id)
		c = &call{Call: conversation.Call{ID: use}, Thread: t.ID, Run: t.Run.ID}
	}
	d.Calls.End(c)
	m := d.about(c, msg.ToolResult, "result:"+use)
	m.Role = msg.RoleTool
	m.SetAttr("event", id)
	m.Content, m.Attachments = anthropic.Content(v.Get("content"))
	conversation.Failed(m, v.Get("is_error").Bool())
}

// sent decodes a message to another thread: work that is handed to a child, or its answer to the primary thread.
func (d *stream) sent(t *thread, v jsonv.Value, id string) {
	to, child := ident.Of(v.Get("to_agent_name")), ident.Of(v.Get("to_session_thread_id"))
	if to == "" && t.ID != "" {
		m := d.status(t, id, "agent.thread_message_sent")
		m.Content, m.Attachments = anthropic.Content(v.Get("content"))
		m.SetAttr("to_thread", child)
		return
	}
	c := &call{Call: conversation.Call{ID: id, Name: "thread_message"}, Thread: t.ID, Child: child, To: to}
	m := d.part(t, msg.Delegation, id, "call:"+id)
	c.Run = m.Run
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal = c.ID, c.Name, true
	m.Delegation = msg.Delegate{To: to, ChildRun: child, Link: msg.ByNativeID, Async: true}
	m.Delegation.Task, m.Attachments = anthropic.Content(v.Get("content"))
	if d.Calls.Add(c); child != "" {
		d.thread(child, to).Run.Caused(c.Run, c.ID, msg.ByNativeID, 0)
	}
}

// received decodes a message of another thread: the answer of a child, or the task of the thread.
func (d *stream) received(t *thread, v jsonv.Value, id string) {
	from, name := ident.Of(v.Get("from_session_thread_id")), ident.Of(v.Get("from_agent_name"))
	text, files := anthropic.Content(v.Get("content"))
	c := d.Calls.Oldest(func(c *call) bool { return c.Child == from && c.Thread == t.ID })
	if c != nil && from != "" {
		d.Calls.End(c)
		m := d.about(c, msg.DelegationResult, "result:"+c.ID)
		m.Role, m.Content, m.Attachments = msg.RoleTool, text, files
		m.Delegation = msg.Delegate{To: c.To, ChildRun: c.Child, Link: msg.ByNativeID, Async: true}
		m.SetAttr("event", id)
		return
	}
	t.Run.Wake(cmp.Or(t.ID, id))
	m := d.add(t, msg.User, id)
	m.Role, m.Agent = msg.RoleUser, msg.Agent{ID: from, Name: name, Kind: msg.KindAgent}
	m.Content, m.Attachments = text, files
}

// usage decodes the end of a request to the model.
func (d *stream) usage(t *thread, v jsonv.Value, id string) {
	start, r := cmp.Or(ident.Of(v.Get("model_request_start_id")), id), t.Response
	if r == nil || r.ID != start {
		r = d.request(t, start)
	}
	r.At = d.At
	r.Count(anthropic.Usage(v.Get("model_usage")), msg.Provider)
	r.Tier = anthropic.Tier(v.Get("model_usage"))
	m := r.Usage(d.Out, msg.Complete)
	if m == nil {
		return
	}
	m.Agent = t.agent()
	m.Session, _ = d.In()
	t.Run.Mark(m)
	m.IsError = v.Get("is_error").Bool()
	record.Signal(m, msg.ModelEnd)
	m.SetAttr("event", id)
	m.SetAttr("speed", ident.Of(v.Path("model_usage", "speed")))
}

// idle decodes the end of a turn, or that calls wait: {stop_reason: {type, event_ids?}}.
func (d *stream) idle(t *thread, v jsonv.Value, typ, id string) {
	stop := v.Get("stop_reason")
	reason := ident.Of(stop.Get("type"))
	if reason != "requires_action" {
		if t.Interrupted && t.Run.Active() {
			d.end(t, id, typ, "interrupted", true).SetAttr("stop_reason", reason)
			return
		}
		d.end(t, id, typ, reason, reason == "retries_exhausted")
		return
	}
	m := d.status(t, id, typ)
	m.SetAttr("stop_reason", reason)
	m.SetAttr("waits", conversation.ShortJSON(stop.Get("event_ids")))
	for e := range stop.Get("event_ids").Elems() {
		c := d.Calls.GetOpen(ident.Peek(e))
		if c == nil || c.Custom {
			continue
		}
		record.Hide(d.about(c, msg.Status, "wait:"+c.ID), "human_wait").Signal = msg.WaitStart
	}
}

// end ends the run of the thread, if there is one.
func (d *stream) end(t *thread, id, typ, reason string, failed bool) *msg.Message {
	if !t.Run.Active() || !t.Run.Started {
		m := d.status(t, id, typ)
		m.SetAttr("stop_reason", reason)
		return m
	}
	m := d.add(t, msg.Stop, id)
	t.Run.Finish(m, reason, failed)
	t.Response, t.Interrupted, t.Run.Failed = nil, false, false
	return m
}
