package openairesponses

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// emit emits an item that arrives whole, once. Its name is that of the part whose pieces came.
func emit(x *exchange.Exchange, name string, item jsonv.Value, out *decoder.Output) {
	id := ident.First(item.Get("id"), item.Get("call_id"))
	if id == "" {
		id = msg.HashKey(string(item.Peek()))
	}
	known := !x.Once(id)
	if name = cmp.Or(name, id); name != id && !x.Once(name) {
		known = true
	}
	if known {
		item.MarkRead()
		return
	}
	x.First(out)
	switch typ := item.Get("type").Str(); {
	case typ == "message" && item.Get("role").Equal("user"): // which a compaction keeps
		item.MarkRead()
	case typ == "message":
		say(x, name, id, msg.Assistant, "", text(item.Get("content")), out)
	case typ == "reasoning":
		said := text(item.Get("summary"))
		if more := text(item.Get("content")); !more.IsZero() {
			said = exchange.Join(said, more)
		}
		say(x, name, id, msg.Reasoning, "", said, out)
	case typ == "function_call", typ == "custom_tool_call":
		x.Waits = true
		call(x, name, item, ident.Of(item.Get("name")), item.First("arguments", "input"), out)
		if item.Get("status").Equal("incomplete") {
			exchange.BreakOff(x, ident.Of(item.Get("call_id")))
		}
	case typ == "local_shell_call", typ == "shell_call", typ == "apply_patch_call", typ == "computer_call":
		x.Waits = x.Waits || !item.Path("environment", "type").Equal("container_reference") // where the provider runs it
		call(x, name, item, strings.TrimSuffix(typ, "_call"), item.First("action", "actions", "operation"), out)
	case typ == "tool_search_call":
		x.Waits = x.Waits || item.Get("execution").Equal("client")
		call(x, name, item, "tool_search", item.Get("arguments"), out)
	case typ == "tool_search_output": // of the call before it, which has an id only if the client searches
		x.Ran(out, cmp.Or(ident.Of(item.Get("call_id")), strings.TrimPrefix(x.Last, "call:")), "tool_search").Content = item.Get("tools").JSON()
	case strings.HasSuffix(typ, "_call"): // the provider runs it
		ran(x, name, id, item, strings.TrimSuffix(typ, "_call"), out)
	case typ == "program":
		call(x, name, item, typ, item.Get("code"), out)
	case strings.HasSuffix(typ, "_output") && item.Get("call_id").Is(jsonv.String):
		tool := strings.TrimSuffix(strings.TrimSuffix(typ, "_output"), "_call")
		m := x.Ran(out, ident.Of(item.Get("call_id")), tool)
		m.Content = item.First("output", "result").Text()
		conversation.Failed(m, failed(item))
	case typ == "compaction":
		m := x.Message(out, msg.Status, "compaction:"+id)
		m.SetAttr("type", typ)
		m.Signal = msg.Compaction
	case typ == "mcp_list_tools", typ == "mcp_approval_request": // the answer to that is in the next request
		x.Waits = x.Waits || typ == "mcp_approval_request"
		m := x.Status(out, typ+":"+id, typ)
		conversation.AttrsAs(m, item, ident.Of, "name", "server=server_label")
		if m.Content = item.First("tools", "arguments").Text(); item.Get("error").Exists() { // the server has not listed any
			m.IsError, m.Tool.ErrorType, m.Content = true, "tool_error", item.Get("error").Text()
		}
	default:
		x.Unknown(out, "item/"+typ, item.Raw())
	}
}

// say emits the text of an item with an id, which replaces its pieces.
func say(x *exchange.Exchange, name, id string, kind msg.Kind, callID string, t msg.Text, out *decoder.Output) {
	p := x.Part(name)
	if p == nil {
		if p = x.Open(name, kind, callID); p == nil {
			return
		}
	}
	x.Replace(p, t)
	before := len(out.Messages)
	if x.Close(out, p); len(out.Messages) > before {
		out.Messages[before].SetAttr(msg.ResponseItem, id)
	}
}

// call emits a call.
func call(x *exchange.Exchange, name string, item jsonv.Value, tool string, arguments jsonv.Value, out *decoder.Output) {
	p := x.Part(name)
	if p == nil {
		if p = x.Open(name, msg.ToolCall, cmp.Or(ident.First(item.Get("call_id"), item.Get("id")), name)); p == nil {
			return
		}
	}
	item.Get("call_id").Equal(p.CallID)
	item.Get("namespace").MarkRead()
	p.Tool, p.Server = tool, ident.Of(item.Get("server_label"))
	say(x, name, cmp.Or(ident.Of(item.Get("id")), p.CallID), msg.ToolCall, p.CallID, arguments.Text(), out)
}

// ran emits a call that the provider has run, and its result.
func ran(x *exchange.Exchange, part, id string, item jsonv.Value, tool string, out *decoder.Output) {
	if name := ident.Of(item.Get("name")); name != "" { // of a tool on an MCP server
		tool = name
	}
	call(x, part, item, tool, item.First("arguments", "action", "queries", "code", "prompt"), out)
	m := x.Ran(out, id, tool)
	m.Tool.Server = ident.Of(item.Get("server_label"))
	m.Content = item.First("output", "results", "outputs", "revised_prompt").Text()
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

// failed reports whether an output is of a call that failed, for a shell of one of its commands: {outcome: {type: "exit", exit_code: 1} | {type: "timeout"}}.
func failed(item jsonv.Value) bool {
	fails := item.Get("status").In("failed", "incomplete")
	for o := range item.Get("output").Elems() {
		end := o.Get("outcome")
		fails = fails || end.Get("type").Equal("timeout") || end.Get("exit_code").Is(jsonv.Number) && end.Get("exit_code").Int() != 0
	}
	return fails
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
