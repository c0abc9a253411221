package claudecode

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// assistant decodes a line of a response.
func (d *transcript) assistant(ln *line) (rule string) {
	m := ln.root.Get("message")
	if !m.Is(jsonv.Object) {
		return ""
	}
	if m.Get("model").Equal("<synthetic>") || ln.root.Get("isApiErrorMessage").Bool() {
		d.synthetic(ln, m)
		return ""
	}
	if ln.run == "" {
		d.begin(ln, d.cause(ln))
	}
	ln.lane.Failed = false
	r, again := d.response(ln, m)
	r.count(ln, m)
	if again {
		return ruleRepeated
	}
	content := m.Get("content")
	if content.Is(jsonv.String) {
		d.text(ln, r, content)
	}
	for block := range content.Elems() {
		d.block(ln, r, block)
	}
	if ln.given == 0 && m.Get("usage").Is(jsonv.Object) {
		return ruleUsageOnly
	}
	return ""
}

// cause names the run of an answer that follows no prompt: by the line that it
// answers.
func (d *transcript) cause(ln *line) string {
	if id := ident(ln.root.Get("parentUuid")); id != "" {
		return id
	}
	return ln.id()
}

// block decodes one content block of a response.
func (d *transcript) block(ln *line, r *response, b jsonv.Value) {
	typ := b.Get("type")
	switch {
	case typ.Equal("text"):
		d.text(ln, r, b.Get("text"))
	case typ.Equal("thinking"), typ.Equal("redacted_thinking"):
		m := d.part(ln, r, msg.Reasoning, ordinal(r.Key+"/thinking", &r.Thoughts))
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
func (d *transcript) text(ln *line, r *response, v jsonv.Value) {
	m := d.part(ln, r, msg.Assistant, ordinal(r.Key+"/text", &r.Texts))
	m.Content = v.Text()
	m.Hidden = blank(m.Content)
}

// ordinal tells apart the parts of one kind: the n-th text of a response is the
// n-th text in every form in which the response is told.
func ordinal(key string, n *int) string {
	*n++
	if *n == 1 {
		return key
	}
	return key + "/" + strconv.Itoa(*n-1)
}

func blank(t msg.Text) bool {
	const most = 32 // more than newlines, escaped
	raw, _ := t.Alias()
	return len(raw) <= most && strings.TrimSpace(t.String()) == ""
}

// serverResult gives the result of a tool that the provider ran within the
// response.
func (d *transcript) serverResult(ln *line, r *response, b jsonv.Value) {
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
func (d *transcript) synthetic(ln *line, m jsonv.Value) {
	l := ln.lane
	if !ln.root.Get("isApiErrorMessage").Bool() {
		// "No response requested." and its like stand for no answer at all.
		d.status(ln, ln.id(), "synthetic")
		return
	}
	if ln.run == "" {
		d.begin(ln, d.cause(ln))
	}
	d.finish(ln, l)
	l.Failed = true
	e := d.give(ln, msg.Error, ln.id())
	e.Role, e.IsError = msg.RoleAssistant, true
	e.Content = d.content(m.Get("content"), e)
	e.Tool.ErrorType = "api_error"
	if kind := ln.root.Get("error"); kind.Is(jsonv.String) { // rate_limit, authentication_failed, server_error, ...
		e.Tool.ErrorType = ident(kind)
	}
	e.SetAttr("status_code", number(ln.root.Get("apiErrorStatus")))
	e.SetAttr("request_id", ln.root.Get("requestId").Str())
}
