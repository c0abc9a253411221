package codex

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// event decodes an event_msg, which the CLI writes for its user interface.
func (d *thread) event(r *record) {
	typ := r.p.Get("type").Str()
	switch typ {
	case "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content":
		d.shown(r, typ)
	case "token_count":
		d.tokens(r)
	case "task_started", "turn_started":
		d.started(r)
	case "task_complete", "turn_complete":
		d.ended(r, typ, stopped)
	case "turn_aborted":
		reason := ident.Of(r.p.Get("reason"))
		if reason == "" {
			reason = "interrupted"
		}
		d.ended(r, typ, reason)
	case "error":
		d.fault(r)
	case "stream_error":
		m := d.Status(r.id(), typ)
		m.Signal, m.Content = msg.Retry, r.p.Get("message").Text()
	case "exec_command_end", "mcp_tool_call_end", "patch_apply_end", "dynamic_tool_call_response", "view_image_tool_call":
		d.callEvent(r, typ, r.p)
	case "web_search_end", "image_generation_end":
		d.serveEnd(r, typ)
	case "item_completed":
		d.completed(r)
	case "sub_agent_activity":
		d.activity(r, typ, r.p.Get("event_id"), r.p.Get("agent_thread_id"), r.p.Get("kind").Equal("started"))
	case "collab_agent_spawn_end":
		d.activity(r, typ, r.p.Get("call_id"), r.p.Get("new_thread_id"), true)
	case "collab_waiting_end":
		d.Status(r.id(), typ).Tool.CallID = ident.Of(r.p.Get("call_id"))
		d.answers(r.p.Get("statuses"))
		for s := range r.p.Get("agent_statuses").Elems() {
			if who := s.Get("thread_id"); d.answer(ident.Peek(who), s.Get("status")) {
				who.MarkRead()
			}
		}
	case "collab_close_end":
		d.Status(r.id(), typ).Tool.CallID = ident.Of(r.p.Get("call_id"))
		if who := r.p.Get("receiver_thread_id"); d.answer(ident.Peek(who), r.p.Get("status")) {
			who.MarkRead()
		}
	case "guardian_assessment":
		d.assessed(r)
	case "exec_approval_request", "apply_patch_approval_request", "request_permissions", "request_user_input", "elicitation_request":
		m := d.Status(r.id(), typ)
		if m.Tool.CallID = ident.Of(r.p.Get("call_id")); m.Tool.CallID != "" {
			m.Signal = msg.WaitStart
		}
	default:
		text, ok := note(r.p, typ)
		if !ok {
			d.unknown(r, "event_msg/"+typ)
			return
		}
		m := d.Status(r.id(), typ)
		m.Content = text.Text()
		if typ == "undo_completed" && r.p.Get("success").Is(jsonv.False) {
			m.IsError = true
		}
		if model := ident.Of(r.p.Path("thread_settings", "model")); model != "" {
			d.Model = model
			m.SetAttr("model", model)
		}
	}
}

// note returns the text of an event that is kept as a status; ok is false for an unknown
// event.
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
	m := d.Add(msg.Error, r.id())
	m.IsError = true
	inner := r.p.Get("error")
	text := r.p.Get("message")
	if !text.Exists() {
		text = inner.Get("message")
	}
	m.Content = text.Text()
	if m.Tool.ErrorType = errorInfo(r.p.Get("codex_error_info")); m.Tool.ErrorType == "" {
		m.Tool.ErrorType = ident.Of(inner.First("kind", "type", "code"))
	}
}

// assessed decodes guardian_assessment: a reviewer, who may be a model, decides
// whether a call may be made.
func (d *thread) assessed(r *record) {
	status := ident.Of(r.p.Get("status"))
	m := d.Status(r.id(), "guardian_assessment")
	m.Tool.CallID = ident.Of(r.p.Get("target_item_id"))
	m.Signal = msg.WaitEnd
	if status == "in_progress" {
		m.Signal = msg.WaitStart
		m.SetAttr(msg.AttrWaitsFor, msg.ForOutside)
	}
	m.Content = r.p.Get("rationale").Text()
	m.SetAttr("status", status)
	m.SetAttr("risk_level", ident.Of(r.p.Get("risk_level")))
	if c := d.Calls.GetOpen(m.Tool.CallID); c != nil && status == "denied" {
		c.Refused = true
	}
}

// completed decodes item_completed, in which newer versions write the events of some kinds
// of items.
func (d *thread) completed(r *record) {
	item := r.p.Get("item")
	typ := item.Get("type").Str()
	switch typ {
	case "Plan":
		m := d.Add(msg.Plan, "plan:"+ident.Of(item.Get("id"))+":"+r.id())
		m.Role, m.Content = msg.RoleAssistant, item.Get("text").Text()
	case "UserMessage":
		d.completedText(r, 'u', item.Get("content"))
	case "AgentMessage":
		d.completedText(r, 'a', item.Get("content"))
	case "Reasoning":
		d.Status(r.id(), "item_completed/"+typ)
	case "CommandExecution", "McpToolCall", "FileChange":
		d.callEvent(r, typ, item)
	case "SubAgentActivity":
		d.activity(r, "item_completed/"+typ, item.First("event_id", "call_id", "id"), item.Get("agent_thread_id"), item.Get("kind").Equal("started"))
	case "Extension", "WebSearch", "ImageGeneration", "ImageView", "Sleep", "ContextCompaction", "HookPrompt", "EnteredReviewMode",
		"ExitedReviewMode", "CollabAgentToolCall", "DynamicToolCall":
		m := d.Status(r.id(), "item_completed/"+typ)
		setIDs(m, item, "kind", "query")
		if results := item.Get("results"); results.Is(jsonv.Array) {
			m.Content = results.JSON()
		}
	default:
		d.unknown(r, "event_msg/item_completed/"+typ)
	}
}
