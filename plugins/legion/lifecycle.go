package legion

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// lifecycle decodes a state of a tool call: one record for each change, each
// with everything known of the call by then.
//
//	pending ─ awaiting_permission ─ running ─ completed | failed
//	                              ╲ denied      interrupted
func (r *record) lifecycle(data jsonv.Value) {
	id := read(data.Get("tool_use_id"))
	response := data.Get("turn_id")
	if !response.Exists() && data != r.root { // there it is the record's own id
		response = data.Get("message_id")
	}
	c := r.issue(data.Get("tool_use_id"), data.Get("name"), data.Get("input"), stampOf(data.Get("created_at")), r.lane.responseID(response))
	if c == nil {
		r.unknown("tool_call", r.raw)
		return
	}
	cause := data.Get("_triggering_message")
	cause.MarkRead()
	if c.Wait != notAsked {
		data.Get("permission").MarkRead()
	}
	switch status := read(data.Get("status")); string(status) {
	case "pending":
	case "awaiting_permission", "permission_required":
		at := stampOf(cause.Get("timestamp"))
		r.ask(c, cause.Get("data").First("request_id"), at)
	case "running", "executing":
		r.granted(c, data)
	case "completed", "failed", "denied", "interrupted", "orphaned":
		r.granted(c, data)
		o := outcome{at: stampOf(data.Get("completed_at")), failed: string(status) != "completed"}
		o.text, o.files = anthropic.Content(data.First("result", "error"))
		if o.failed {
			o.text, o.files = anthropic.Content(data.First("error", "result"))
			o.errorType = endings(string(status))
		}
		o.bare = o.text.IsZero() && len(o.files) == 0
		r.finishOrLaunch(id, o, false)
	default:
		r.unknown("tool_call "+string(status), r.raw)
	}
}

// endings names the error of a call that ended in that state.
func endings(status string) string {
	switch status {
	case "denied":
		return "denied"
	case "interrupted", "orphaned":
		return "interrupted"
	}
	return "tool_error"
}

// granted ends the wait for a permission, if one was going on.
func (r *record) granted(c *call, data jsonv.Value) {
	if c.Wait != waiting {
		return
	}
	at := stampOf(data.First("permission_response_at", "started_at", "completed_at"))
	yes := !data.Get("permission_granted").Is(jsonv.False) && !data.Get("status").Equal("denied")
	r.answer(c, yes, at)
}

// permission decodes a request for a permission, or its answer. Older ones name
// neither the call nor, in the answer, the request.
func (r *record) permission(f jsonv.Value) {
	field := func(key string) jsonv.Value {
		for _, v := range [...]jsonv.Value{f, r.root, r.head.data, r.head.content} {
			if x := v.Get(key); x.Exists() {
				return x
			}
		}
		return jsonv.Value{}
	}
	c := r.s.Calls.Get(string(field("tool_use_id").Chars()))
	request := field("request_id")
	if r.typ == "permission_request" {
		if c == nil {
			c = r.newest(func(c *call) bool { return c.Wait == notAsked && field("tool_name").Equal(c.Name) })
		}
		if c != nil {
			r.ask(c, request, r.at)
			field("input_params").MarkRead()
			r.asked(c, field)
			return
		}
	} else {
		if c == nil {
			c = r.newest(func(c *call) bool { return c.Wait == waiting && (!request.Exists() || request.Equal(c.Request)) })
		}
		decision := field("decision")
		if !decision.Exists() {
			decision = field("behavior")
		}
		if c != nil {
			r.answer(c, decision.Equal("allow"), r.at)
			r.asked(c, field)
			return
		}
	}
	m := r.status(msg.Text{})
	if request.Exists() {
		m.Key = r.typ + ":" + scalar(request)
	}
	tool := scalar(field("tool_name"))
	field("content").Equal("Permission requested for tool: " + tool)
	m.SetAttr("tool", tool)
}

// asked counts the facts of a permission about a known call as read.
func (r *record) asked(c *call, field func(string) jsonv.Value) {
	field("tool_use_id").Equal(c.ID)
	field("tool_name").Equal(c.Name)
	known(field("request_id"))
	field("content").Equal("Permission requested for tool: " + c.Name)
}

// newest returns the open call that was issued last of those that fit.
func (r *record) newest(fits func(*call) bool) *call {
	return r.s.Calls.Newest(func(c *call) bool { return c.Issued && c.Done == ongoing && fits(c) })
}
