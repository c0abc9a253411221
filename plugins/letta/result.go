package letta

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// results decodes the results of tools. The fields of the message itself repeat the first of
// the list, if any.
func (r *run) results(w *writer, v jsonv.Value) {
	r.close(w)
	r.Begun, r.Late, r.Response = true, false, ""
	list := v.Get("tool_returns")
	if !list.Is(jsonv.Array) || list.Len() == 0 {
		r.result(w, v, v)
		return
	}
	markRepeated(v, list)
	for e := range list.Elems() {
		r.result(w, v, e)
	}
}

// result decodes the result of one tool; v is the message that contains it.
func (r *run) result(w *writer, v, e jsonv.Value) {
	returned := e.First("tool_return", "function_return")
	id := ident.Of(e.First("tool_call_id", "function_call_id"))
	if id == "" { // of the run's last call
		if c := w.Calls.Newest(func(c *call) bool { return c.Run == r.ID }); c != nil {
			id = c.ID
		} else if id = ident.Of(v.Get("id")); id == "" {
			id = msg.HashKey(r.ID, string(v.Get("date").Peek()), string(returned.Peek()))
		}
	}
	part := conversation.PartID{Kind: "result", Name: conversation.SumOf(id)}
	facts := func() conversation.Sum { return conversation.SumOf(returned.Peek()) }
	if r.repeats(w, v, part, facts) {
		e.MarkRead()
		return
	}
	if !w.whole { // the stream may repeat it
		r.Emitted.Complete(part, facts())
	}
	c := w.Calls.Take(id)
	if c == nil {
		c = &call{}
	}
	named := v.Get("name")
	if ident.Is(named, c.Name); c.Name == "" && !named.Equal("tool") { // the word of some servers for any tool
		c.Name = ident.Of(named)
	}
	m := w.message(r, msg.ToolResult, "result:"+id)
	m.ParentKey, m.Role = "call:"+id, msg.RoleTool
	m.Tool.CallID, m.Tool.Name = id, c.Name
	if id := v.Get("sender_id"); isAgent(id) {
		m.Agent = w.agent(ident.Of(id), "")
	}
	m.IsError = e.Get("status").Equal("error") || v.Get("is_err").Bool()
	w.stamp(m, v)
	m.Content, m.Attachments = contentOf(returned)
	m.SetAttr("stdout", lines(e.Get("stdout")))
	m.SetAttr("stderr", lines(e.Get("stderr")))
	errorText, unpacked := m.Content, false
	switch {
	case c.Key != "": // other forms have no result of speechTool
		m.Kind, m.ParentKey, m.Hidden = msg.Status, c.Key, true
		m.SetAttr("type", speechTool)
	case delegates(c.Name):
		m.Kind, m.Delegation.To, m.Delegation.Async = msg.DelegationResult, c.To, c.Name == asyncTool
		unpacked = w.fillAnswer(m)
	}
	if m.IsError {
		m.Tool.ErrorType = errorType(errorText)
	}
	if unpacked {
		w.KeepUnread(&w.inner, len(w.Out.Messages)-1)
	}
}

// errorType classifies the text of a tool's error.
func errorType(t msg.Text) string {
	const most = 400
	s := t.String()
	return conversation.ErrorClass(s[:min(len(s), most)], "request to call tool denied", "denied", "interrupted", "interrupted",
		"cancelled", "cancelled", "timed out", "timeout", "imeout", "timeout", "No tool named", "not_found",
		"ool rule violation", "validation", "ValidationError", "validation")
}
