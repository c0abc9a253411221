package claudestream

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// assistant decodes a line of a response.
func (d *stream) assistant(ln *line) {
	m := ln.root.Get("message")
	if !m.Is(jsonv.Object) {
		return
	}
	if m.Get("model").Equal("<synthetic>") || ln.root.Get("isApiErrorMessage").Bool() {
		d.synthetic(ln, m)
		return
	}
	d.wake(ln)
	l := ln.lane
	l.Failed = false
	r := d.response(ln, m.Get("id"), m.Get("model"))
	r.count(ln, m.Get("usage"))
	r.stop(l, m.Get("stop_reason"))
	ln.known = m.Get("usage").Is(jsonv.Object)
	if r.again(ln) {
		ln.known = true
		return
	}
	content := m.Get("content")
	if content.Is(jsonv.String) {
		d.text(ln, r, content)
	}
	for block := range content.Elems() {
		d.block(ln, r, block)
	}
}

// block decodes one content block of a response.
func (d *stream) block(ln *line, r *response, b jsonv.Value) {
	typ := b.Get("type")
	switch {
	case typ.Equal("text"):
		d.text(ln, r, b.Get("text"))
	case typ.Equal("thinking"), typ.Equal("redacted_thinking"):
		r.whole(true)
		m := d.part(ln, r, msg.Reasoning, ordinal(r.ID+"/thinking", &r.Thoughts))
		m.Content = b.Get("thinking").Text()
		if m.Content.IsZero() { // the model keeps it to itself; the rest is a signature
			m.Hidden = true
			m.SetAttr("redacted", "true")
		}
	case typ.Equal("tool_use"), typ.Equal("server_tool_use"), typ.Equal("mcp_tool_use"):
		d.call(ln, r, b)
	case b.Get("tool_use_id").Is(jsonv.String): // web_search_tool_result and its like: the provider ran the tool
		d.serverResult(ln, r, b)
	default:
		d.unknown(ln, "assistant/"+cmp.Or(typ.Str(), b.Kind().String()), b)
	}
}

// text gives what the model said. Some models begin with nothing but newlines.
func (d *stream) text(ln *line, r *response, v jsonv.Value) {
	r.whole(false)
	m := d.part(ln, r, msg.Assistant, ordinal(r.ID+"/text", &r.Texts))
	m.Content = v.Text()
	if m.Hidden = blank(m.Content); !m.Hidden {
		d.scratch = m.Content.Append(d.scratch[:0])
		ln.lane.Said = hash(d.scratch)
	}
}

func blank(t msg.Text) bool {
	const most = 32 // more than newlines, escaped
	raw, _ := t.Alias()
	return len(raw) <= most && strings.TrimSpace(t.String()) == ""
}

// serverResult gives the result of a tool that the provider ran within the
// response.
func (d *stream) serverResult(ln *line, r *response, b jsonv.Value) {
	id := ident(b.Get("tool_use_id"))
	m := d.part(ln, r, msg.ToolResult, "result:"+id)
	m.Role = msg.RoleTool
	m.Tool.CallID = id
	if c := d.take(id); c != nil {
		m.Tool.Name = c.Name
	}
	content := b.Get("content")
	m.SetAttr("block", ident(b.Get("type")))
	m.Content = d.content(content, m)
	if failed := content.Get("error_code"); failed.Exists() || b.Get("is_error").Bool() {
		m.IsError, m.Tool.ErrorType = true, "tool_error"
	}
}

// synthetic decodes what the CLI put where a response should be.
func (d *stream) synthetic(ln *line, m jsonv.Value) {
	content := m.Get("content")
	kind := ident(ln.root.Get("error"))
	failed := ln.root.Get("isApiErrorMessage").Bool() || kind != ""
	for b := range content.Elems() {
		failed = failed || begins(b.Get("text"), "API Error")
	}
	if !failed { // "No response requested." and its like stand for no answer at all
		d.status(ln, ln.id(), "synthetic")
		return
	}
	d.wake(ln)
	d.finish(ln, ln.lane)
	ln.lane.Failed = true
	e := d.give(ln, msg.Error, ln.id())
	e.Role, e.IsError = msg.RoleAssistant, true
	e.Content = d.content(content, e)
	e.Tool.ErrorType = cmp.Or(kind, "api_error")
	for b := range content.Elems() { // the result line says it again
		ln.lane.Said = hash(b.Get("text").Text().Append(nil))
	}
}
