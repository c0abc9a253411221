package letta

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// emitWait emits that a call waits for approval.
func (d *stream) emitWait(r *run, b *block, c *call) {
	m := d.status(r, "wait:"+c.ID, "approval_request")
	m.Signal = msg.WaitStart
	m.ParentKey = "call:" + c.ID
	m.Tool.CallID, m.Tool.Name = c.ID, c.Name
	m.ResponseID = b.Response
	at(m, c.Time, c.Prec)
}

// decision is a person's decision on one call, or the result of a tool that the client ran
// itself.
type decision struct {
	CallID   string
	Approved string `json:",omitempty"` // true, false
	Reason   string `json:",omitempty"`
	Returned bool   `json:",omitempty"`
	Content  string `json:",omitempty"`
	Failed   bool   `json:",omitempty"`

	Files []msg.Attachment `json:",omitempty"`
}

// decisions reads a response to requests for approval.
func (d *stream) decisions(v jsonv.Value) []decision {
	var out []decision
	list := v.First("approvals", "tool_returns")
	for e := range list.Elems() {
		id := e.Get("tool_call_id")
		if returned := e.Get("tool_return"); returned.Exists() {
			content, files := contentOf(returned)
			out = append(out, decision{CallID: ident.Of(id), Returned: true, Content: content.String(), Failed: e.Get("status").Equal("error"), Files: files})
			continue
		}
		out = append(out, d.readDecision(e, id)...)
	}
	if len(out) == 0 {
		out = d.readDecision(v, v.Get("approval_request_id"))
	}
	return out
}

// readDecision reads one decision. Older servers name the request's message instead of the
// call or the calls.
func (d *stream) readDecision(v, id jsonv.Value) []decision {
	one := decision{CallID: ident.Of(id), Reason: v.Get("reason").Str()}
	if approve := v.Get("approve"); approve.Is(jsonv.True) || approve.Is(jsonv.False) {
		one.Approved = string(approve.Peek())
	}
	var out []decision
	for _, c := range d.Calls {
		if c.Request != "" && c.Request == one.CallID {
			of := one
			of.CallID = c.ID
			out = append(out, of)
		}
	}
	if out == nil {
		out = append(out, one)
	}
	return out
}

// emitDecision emits a decision as a message of the run that it started.
func (d *stream) emitDecision(r *run, in *input, one decision) {
	key := "waited:" + one.CallID
	if one.CallID == "" {
		key += msg.HashKey(d.runID(r), one.Approved, one.Reason)
	}
	m := d.status(r, key, "approval_response")
	m.Signal, m.Role = msg.WaitEnd, msg.RoleUser
	m.Tool.CallID = one.CallID
	r.setTime(m, in)
	m.SetAttr("approved", one.Approved)
	m.SetAttr("reason", one.Reason)
	if one.CallID == "" {
		return
	}
	m.ParentKey = "call:" + one.CallID
	name := ""
	if c := d.findCall(one.CallID); c != nil {
		name = c.Name
	}
	m.Tool.Name = name
	if !one.Returned {
		return
	}
	// The server repeats it as the call's result; until then this is the result.
	m = d.addMessage(r, msg.ToolResult, "result:"+one.CallID)
	m.Complete = min(m.Complete, msg.Summary)
	m.ParentKey, m.Role = "call:"+one.CallID, msg.RoleTool
	m.Tool.CallID, m.Tool.Name = one.CallID, name
	m.Content, m.Attachments, m.IsError = msg.Plain(one.Content), one.Files, one.Failed
	if one.Failed {
		m.Tool.ErrorType = errorType(m.Content)
	}
	r.setTime(m, in)
}
