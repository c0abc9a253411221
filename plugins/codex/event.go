package codex

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// event decodes an event_msg: what the CLI told its user interface.
func (d *thread) event(r *record) {
	typ := r.p.Get("type").Str()
	switch typ {
	case "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content":
		d.heard(r, typ)
	case "token_count":
		d.tokens(r)
	case "task_started", "turn_started":
		d.started(r)
	case "task_complete", "turn_complete":
		d.ended(r, typ, stopped)
	case "turn_aborted":
		reason := ident(r.p.Get("reason"))
		if reason == "" {
			reason = "interrupted"
		}
		d.ended(r, typ, reason)
	case "error":
		d.fault(r)
	case "stream_error":
		m := d.status(r, r.id(), typ)
		m.Signal, m.Content = msg.Retry, r.p.Get("message").Text()
	case "exec_command_end", "mcp_tool_call_end", "patch_apply_end", "dynamic_tool_call_response", "view_image_tool_call":
		d.end(r, typ, r.p)
	case "web_search_end", "image_generation_end":
		d.serveEnd(r, typ)
	case "item_completed":
		d.completed(r)
	case "sub_agent_activity":
		d.activity(r, typ, r.p.Get("event_id"), r.p.Get("agent_thread_id"), r.p.Get("kind").Equal("started"))
	case "collab_agent_spawn_end":
		d.activity(r, typ, r.p.Get("call_id"), r.p.Get("new_thread_id"), true)
	case "collab_waiting_end":
		d.status(r, r.id(), typ).Tool.CallID = ident(r.p.Get("call_id"))
		d.statuses(r, r.p.Get("statuses"))
		for s := range r.p.Get("agent_statuses").Elems() {
			if status, answer, final := outcomeOf(s.Get("status")); final {
				if d.done(r, peek(s.Get("thread_id")), status, answer, msg.Text{}) {
					s.Get("thread_id").MarkRead()
					taken(s.Get("status"))
				}
			}
		}
	case "collab_close_end":
		d.status(r, r.id(), typ).Tool.CallID = ident(r.p.Get("call_id"))
		if status, answer, final := outcomeOf(r.p.Get("status")); final {
			if d.done(r, peek(r.p.Get("receiver_thread_id")), status, answer, msg.Text{}) {
				r.p.Get("receiver_thread_id").MarkRead()
				taken(r.p.Get("status"))
			}
		}
	case "guardian_assessment":
		d.assessed(r)
	case "exec_approval_request", "apply_patch_approval_request", "request_permissions", "request_user_input", "elicitation_request":
		m := d.status(r, r.id(), typ)
		if m.Tool.CallID = ident(r.p.Get("call_id")); m.Tool.CallID != "" {
			m.Signal = msg.WaitStart
		}
	default:
		text, ok := note(r.p, typ)
		if !ok {
			d.unknown(r, "event_msg/"+typ)
			return
		}
		m := d.status(r, r.id(), typ)
		m.Content = text.Text()
		if typ == "undo_completed" && r.p.Get("success").Is(jsonv.False) {
			m.IsError = true
		}
		if model := ident(r.p.Path("thread_settings", "model")); model != "" {
			d.Model = model
			m.SetAttr("model", model)
		}
	}
}

// note knows the events that are kept as a status, and which text of theirs is
// worth keeping.
func note(p jsonv.Value, typ string) (text jsonv.Value, ok bool) {
	switch typ {
	case "thread_name_updated":
		return p.Get("thread_name"), true
	case "thread_goal_updated":
		return p.Path("goal", "objective"), true
	case "entered_review_mode":
		return p.Get("user_facing_hint"), true
	case "exited_review_mode":
		return p.Get("review_output"), true
	case "warning", "guardian_warning", "background_event", "deprecation_notice", "undo_completed", "model_reroute":
		return p.First("message", "summary"), true
	case "thread_settings_applied", "thread_rolled_back", "context_compacted", "collab_agent_interaction_end", "collab_resume_end",
		"collab_agent_spawn_begin", "collab_agent_interaction_begin", "collab_waiting_begin", "collab_close_begin",
		"dynamic_tool_call_request", "exec_command_begin", "exec_command_output_delta", "terminal_interaction", "mcp_tool_call_begin",
		"patch_apply_begin", "patch_apply_updated", "web_search_begin", "image_generation_begin", "plan_update", "turn_diff", "session_configured",
		"item_started", "agent_reasoning_section_break", "hook_started", "hook_completed", "undo_started", "shutdown_complete":
		return jsonv.Value{}, true
	}
	return jsonv.Value{}, false
}

// fault decodes error: {message, codex_error_info} or {error: {kind, message}}.
func (d *thread) fault(r *record) {
	m := d.give(r, msg.Error, r.id())
	m.IsError = true
	inner := r.p.Get("error")
	text := r.p.Get("message")
	if !text.Exists() {
		text = inner.Get("message")
	}
	m.Content = text.Text()
	if m.Tool.ErrorType = errorInfo(r.p.Get("codex_error_info")); m.Tool.ErrorType == "" {
		m.Tool.ErrorType = ident(inner.First("kind", "type", "code"))
	}
}

// assessed decodes guardian_assessment: a reviewer, who may be a model, decides
// whether a call may be made.
func (d *thread) assessed(r *record) {
	status := ident(r.p.Get("status"))
	m := d.status(r, r.id(), "guardian_assessment")
	m.Tool.CallID = ident(r.p.Get("target_item_id"))
	m.Signal = msg.WaitEnd
	if status == "in_progress" {
		m.Signal = msg.WaitStart
		m.SetAttr(msg.AttrWaitsFor, msg.ForOutside)
	}
	m.Content = r.p.Get("rationale").Text()
	m.SetAttr("status", status)
	m.SetAttr("risk_level", ident(r.p.Get("risk_level")))
	if c := d.find(m.Tool.CallID); c != nil && status == "denied" {
		c.Refused = true
	}
}
