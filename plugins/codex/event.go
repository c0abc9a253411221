package codex

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// event decodes an event_msg, which the CLI writes for its user interface.
func (d *thread) event(r *record) {
	switch typ := r.p.Get("type").Str(); typ {
	case "user_message":
		d.asked(r, r.p.First("message", "text"))
	case "agent_message":
		d.answered(r, msg.Assistant, 'a', r.p.First("message", "text"))
	case "agent_reasoning":
		d.answered(r, msg.Reasoning, 's', r.p.First("message", "text"))
	case "agent_reasoning_raw_content":
		d.answered(r, msg.Reasoning, 'c', r.p.First("message", "text"))
	case "token_count":
		d.tokens(r)
	case "task_started", "turn_started":
		d.started(r)
	case "task_complete", "task_completed", "turn_complete":
		d.ended(r, typ, codex.Stopped)
	case "turn.completed":
		d.counted(r)
		d.ended(r, typ, codex.Stopped)
	case "turn_aborted":
		d.ended(r, typ, cmp.Or(ident.Of(r.p.Get("reason")), "interrupted"))
	case "error":
		d.fault(r)
	case "stream_error":
		m := d.Status(r.id(), typ)
		m.Signal, m.Content = msg.Retry, r.p.Get("message").Text()
	case "exec_command_end", "mcp_tool_call_end", "patch_apply_end", "dynamic_tool_call_response", "view_image_tool_call":
		d.calls.event(r, typ, r.p)
	case "web_search_end", "image_generation_end":
		d.calls.served(r, r.p, typ, ident.Of(r.p.Get("call_id")))
	case "item_completed":
		r.family = byDone
		d.completed(r)
	case "sub_agent_activity":
		d.calls.activity(r, r.p, typ, r.p.Get("event_id"), r.p.Get("agent_thread_id"), r.p.Get("kind").Equal("started"))
	case "collab_agent_spawn_end":
		d.calls.activity(r, r.p, typ, r.p.Get("call_id"), r.p.Get("new_thread_id"), true)
	case "collab_waiting_end":
		d.Status(r.id(), typ).Tool.CallID = ident.Of(r.p.Get("call_id"))
		d.calls.answers(r.p.Get("statuses"))
		for s := range r.p.Get("agent_statuses").Elems() {
			d.calls.answerOf(s.Get("thread_id"), s.Get("status"))
		}
	case "collab_close_end":
		d.Status(r.id(), typ).Tool.CallID = ident.Of(r.p.Get("call_id"))
		d.calls.answerOf(r.p.Get("receiver_thread_id"), r.p.Get("status"))
	case "guardian_assessment":
		d.calls.assessed(r)
	case "exec_approval_request", "apply_patch_approval_request", "request_permissions", "request_user_input", "elicitation_request":
		m := d.Status(r.id(), typ)
		if m.Tool.CallID = ident.Of(r.p.Get("call_id")); m.Tool.CallID != "" {
			m.Signal = msg.WaitStart
		}
	default:
		d.note(r, typ)
	}
}

// note decodes an event that is kept as a status, with its text.
func (d *thread) note(r *record, typ string) {
	var text jsonv.Value
	switch typ {
	case "thread_name_updated":
		text = r.p.Get("thread_name")
	case "thread_goal_updated":
		text = r.p.Path("goal", "objective")
	case "entered_review_mode":
		text = r.p.Get("user_facing_hint")
	case "exited_review_mode":
		text = r.p.Get("review_output")
	case "warning", "guardian_warning", "background_event", "deprecation_notice", "undo_completed", "model_reroute":
		text = r.p.First("message", "summary")
	case "thread_settings_applied", "thread_rolled_back", "context_compacted", "collab_agent_interaction_end", "collab_resume_end",
		"collab_agent_spawn_begin", "collab_agent_interaction_begin", "collab_waiting_begin", "collab_close_begin",
		"dynamic_tool_call_request", "exec_command_begin", "exec_command_output_delta", "terminal_interaction", "mcp_tool_call_begin",
		"patch_apply_begin", "patch_apply_updated", "web_search_begin", "image_generation_begin", "plan_update", "turn_diff", "session_configured",
		"item_started", "agent_reasoning_section_break", "hook_started", "hook_completed", "undo_started", "shutdown_complete",
		"account/rateLimits/updated", "codex/event/raw_item":
	default:
		d.unknown(r, "event_msg/"+typ)
		return
	}
	m := d.Status(r.id(), typ)
	m.Content = text.Text()
	m.IsError = typ == "undo_completed" && r.p.Get("success").Is(jsonv.False)
	if model := ident.Of(r.p.Path("thread_settings", "model")); model != "" {
		d.Model = model
		m.SetAttr("model", model)
	}
}

// fault decodes error: {message, codex_error_info} or {error: {kind, message}}.
func (d *thread) fault(r *record) {
	fault, inner := r.p, r.p.Get("error")
	if !fault.Get("message").Exists() {
		fault = inner
	}
	if m := d.Fault(r.id(), fault, false); m.Tool.ErrorType == "" {
		m.Tool.ErrorType = ident.Of(inner.First("kind", "type", "code"))
	}
}

// completed decodes item_completed, which a paginated history has in the place of most events. The
// item of an answer or of a thought has the id of its response_item.
func (d *thread) completed(r *record) {
	item := r.p.Get("item")
	typ, id := item.Get("type").Str(), ident.Of(item.Get("id"))
	switch typ {
	case "Plan":
		m := d.Add(msg.Plan, "plan:"+id+":"+r.id())
		m.Role, m.Content = msg.RoleAssistant, item.Get("text").Text()
	case "UserMessage":
		if said := item.Get("content"); !d.known(r, 'u', said) {
			d.prompt(r)
			d.words(r, said, false)
		}
	case "AgentMessage":
		if said := item.Get("content"); !d.known(r, 'a', said) {
			d.answer(r, cmp.Or(id, r.id()), said, item)
		}
	case "Reasoning":
		d.thoughts(r, cmp.Or(id, r.id()), item.Get("summary_text"), item.Get("raw_content"))
	case "CommandExecution", "McpToolCall", "FileChange", "DynamicToolCall", "ImageView":
		d.calls.event(r, typ, item)
	case "WebSearch", "ImageGeneration":
		d.calls.served(r, item, codex.Snake(typ[:1])+codex.Snake(typ[1:]), id)
	case "SubAgentActivity":
		d.calls.activity(r, item, "item_completed/"+typ, item.First("event_id", "call_id", "id"), item.Get("agent_thread_id"), item.Get("kind").Equal("started"))
	case "CollabAgentToolCall":
		d.calls.collaborated(r, item)
	case "Extension", "Sleep", "ContextCompaction", "HookPrompt", "EnteredReviewMode", "ExitedReviewMode":
		m := d.Status(r.id(), "item_completed/"+typ)
		codex.SetIDs(m, item, "kind", "query")
		m.Content = results(item)
	default:
		d.unknown(r, "event_msg/item_completed/"+typ)
	}
}
