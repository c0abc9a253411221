package openairesponses

import (
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// emit emits an item that arrives whole, once.
func emit(x *exchange.Exchange, item jsonv.Value, out *decoder.Output) {
	id := ident.Of(item.Get("id"))
	if id == "" {
		id = ident.Of(item.Get("call_id"))
	}
	if id == "" {
		id = msg.HashKey(string(item.Peek()))
	}
	if !x.Once(id) {
		item.MarkRead()
		return
	}
	x.First(out)
	switch typ := item.Get("type").Str(); {
	case typ == "message":
		say(x, id, msg.Assistant, "", text(item.Get("content")), out)
	case typ == "reasoning":
		said := text(item.Get("summary"))
		if more := text(item.Get("content")); !more.IsZero() {
			said = exchange.Join(said, more)
		}
		say(x, id, msg.Reasoning, "", said, out)
	case typ == "function_call", typ == "custom_tool_call":
		x.Waits = true
		call(x, id, item, ident.Of(item.Get("name")), item.First("arguments", "input"), out)
	case typ == "local_shell_call", typ == "shell_call", typ == "apply_patch_call", typ == "computer_call":
		x.Waits = true
		call(x, id, item, strings.TrimSuffix(typ, "_call"), item.First("action", "operation"), out)
	case strings.HasSuffix(typ, "_call"): // the provider runs it
		ran(x, id, item, strings.TrimSuffix(typ, "_call"), out)
	default:
		x.Unknown(out, "item/"+typ, item.Raw())
	}
}

// say emits a text, which replaces its pieces.
func say(x *exchange.Exchange, id string, kind msg.Kind, callID string, t msg.Text, out *decoder.Output) {
	p := x.Part(id)
	if p == nil {
		if p = x.Open(id, kind, callID); p == nil {
			return
		}
	}
	x.Bytes -= len(p.Text)
	p.Text, p.Cut = t.Append(p.Text[:0]), false
	x.Bytes += len(p.Text)
	x.Close(out, p)
}

// call emits a call.
func call(x *exchange.Exchange, id string, item jsonv.Value, tool string, arguments jsonv.Value, out *decoder.Output) {
	p := x.Part(id)
	if p == nil {
		callID := ident.Of(item.Get("call_id"))
		if callID == "" {
			callID = id
		}
		if p = x.Open(id, msg.ToolCall, callID); p == nil {
			return
		}
	}
	item.Get("call_id").Equal(p.CallID)
	p.Tool, p.Server = tool, ident.Of(item.Get("server_label"))
	say(x, id, msg.ToolCall, p.CallID, arguments.Text(), out)
}

// ran emits a call that the provider has run, and its result.
func ran(x *exchange.Exchange, id string, item jsonv.Value, tool string, out *decoder.Output) {
	if name := ident.Of(item.Get("name")); name != "" { // of a tool on an MCP server
		tool = name
	}
	call(x, id, item, tool, item.First("arguments", "action", "queries", "code"), out)
	m := x.Message(out, msg.ToolResult, "result:"+id)
	m.Role, m.Tool.CallID, m.Tool.Name, m.ParentKey = msg.RoleTool, id, tool, "call:"+id
	m.Tool.Server = ident.Of(item.Get("server_label"))
	m.Content = item.First("output", "results", "outputs").Text()
	if picture := item.Get("result"); picture.Is(jsonv.String) {
		m.Attachments = append(m.Attachments, media.Base64(picture, ""))
	}
	if fault := item.Get("error"); fault.Exists() || item.Get("status").Equal("failed") {
		m.IsError, m.Tool.ErrorType = true, "tool_error"
		if m.Content.IsZero() {
			m.Content = fault.Text()
		}
	}
}

// text is the text of a list of parts.
func text(v jsonv.Value) (t msg.Text) {
	for p := range v.Elems() {
		if s := p.First("text", "refusal"); s.Exists() {
			t = exchange.Join(t, s.Text())
		}
	}
	return t
}
