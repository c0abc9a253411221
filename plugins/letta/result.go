package letta

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// results decodes the results of tools. The fields of the message itself repeat the first of
// the list, if any.
func (d *stream) results(r *run, v jsonv.Value) {
	d.closeBlocks(r)
	r.Begun, r.Response = true, ""
	list := v.Get("tool_returns")
	if list.Len() == 0 || !list.Is(jsonv.Array) {
		d.result(r, v, v)
		return
	}
	markRepeated(v, head(list))
	for e := range list.Elems() {
		d.result(r, v, e)
	}
}

// result decodes the result of one tool; v is the message that contains it.
func (d *stream) result(r *run, v, e jsonv.Value) {
	id := ident.Of(e.First("tool_call_id", "function_call_id"))
	if id == "" {
		id = d.lastCall(r, v)
	}
	returned := e.First("tool_return", "function_return")
	if !d.whole { // the stream may repeat it
		facts := max(1, hash(returned.Peek()))
		if p := r.part(0, resulting, hash(id)); p.Sum == 0 {
			p.Sum = facts
		} else {
			if p.Sum != facts {
				d.keepRaw(v, "late_piece")
			}
			e.MarkRead()
			return
		}
	}
	c := d.takeCall(id)
	name := ""
	if c != nil {
		name = c.Name
	}
	if name == "" {
		name = toolName(v.Get("name"))
	} else {
		ident.Is(v.Get("name"), name)
	}
	kind := msg.ToolResult
	switch {
	case c != nil && c.Key != "":
		kind = msg.Status // other forms have no result of speechTool
	case delegates(name):
		kind = msg.DelegationResult
	}
	m := d.addMessage(r, kind, "result:"+id)
	m.ParentKey, m.Role = "call:"+id, msg.RoleTool
	m.Tool.CallID, m.Tool.Name = id, name
	if id := v.Get("sender_id"); agentID(id) {
		m.Agent = d.agent(ident.Of(id), "")
	}
	m.IsError = e.Get("status").Equal("error") || v.Get("is_err").Bool()
	d.stamp(m, v)
	content, files := contentOf(returned)
	m.Content, m.Attachments = content, files
	m.SetAttr("stdout", lines(e.Get("stdout")))
	m.SetAttr("stderr", lines(e.Get("stderr")))
	unpacked := false
	switch kind {
	case msg.Status:
		m.ParentKey, m.Hidden = c.Key, true
		m.SetAttr("type", speechTool)
	case msg.DelegationResult:
		if c != nil {
			m.Delegation.To = c.To
		}
		m.Delegation.Async = name == asyncTool
		unpacked = d.fillAnswer(m, content)
	}
	if m.IsError {
		m.Tool.ErrorType = errorType(content)
	}
	if unpacked {
		d.keepUnread(&d.inner, len(d.out.Messages)-1)
	}
}

// lastCall is the id of the run's last open call, for a result without an id.
func (d *stream) lastCall(r *run, v jsonv.Value) string {
	for i := len(d.Calls) - 1; i >= 0; i-- {
		if d.Calls[i].Run == r.ID {
			return d.Calls[i].ID
		}
	}
	if id := ident.Of(v.Get("id")); id != "" {
		return id
	}
	return msg.HashKey(r.ID, string(v.Get("date").Peek()), string(v.First("tool_return", "function_return").Peek()))
}

// toolName returns the tool's name in a result. Some servers write the word tool instead.
func toolName(v jsonv.Value) string {
	if v.Equal("tool") {
		return ""
	}
	return ident.Of(v)
}

// errorType classifies the text of a tool's error.
func errorType(t msg.Text) string {
	const most = 400
	s := t.String()
	if len(s) > most {
		s = s[:most]
	}
	for _, known := range [...]struct{ part, class string }{
		{"request to call tool denied", "denied"},
		{"interrupted", "interrupted"},
		{"cancelled", "cancelled"},
		{"timed out", "timeout"},
		{"imeout", "timeout"},
		{"No tool named", "not_found"},
		{"ool rule violation", "validation"},
		{"ValidationError", "validation"},
	} {
		if strings.Contains(s, known.part) {
			return known.class
		}
	}
	return "tool_error"
}
