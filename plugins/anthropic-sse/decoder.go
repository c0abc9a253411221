// Package anthropicsse decodes exchanges with Anthropic's Messages API as a tap hears
// them: the request, and the response as a stream of events or as one body.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - Usage is told twice: message_start has the input's classes and the first output
//     tokens, message_delta the output as it is in the end, and, since 2025, the input
//     again. The counts are running totals, never to be added.
//   - A call's arguments come as pieces of JSON text; a call without arguments has no
//     pieces, and its input is {}.
//   - Tool results are user messages. A client may put texts beside them, reminders to
//     the model for the most part: they are no prompts.
//   - An event named error may come in the midst of a stream whose status was 200.
//   - ping events and spaces behind the JSON mean nothing.
//   - What names the conversation is metadata.user_id, if anything: Claude Code puts the
//     session into it, as text that ends in _session_ID and, later, as JSON.
package anthropicsse

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// New returns the factory of decoders of this format.
func New() decoder.Factory { return factory{} }

type factory struct{}

func (factory) Info() decoder.Info {
	return decoder.Info{
		Name: "anthropic-sse", Version: "1.0.0", Revision: 1,
		Summary:    "Anthropic Messages API: requests, event streams and whole responses.",
		Transports: []frame.Kind{frame.Request, frame.Event, frame.Body},
		Options:    json.RawMessage(exchange.Schema),
	}
}

// New returns a decoder for one stream.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	o, err := exchange.ParseOptions(s.Options)
	if err != nil {
		return nil, fmt.Errorf("anthropic-sse: %w", err)
	}
	return &stream{x: exchange.Exchange{Agent: o.Agent, Provider: "anthropic"}}, nil
}

type stream struct {
	doc jsonv.Doc
	x   exchange.Exchange
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) { return json.Marshal(&d.x) }

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error { return json.Unmarshal(b, &d.x) }

// Flush implements decoder.Decoder.
func (d *stream) Flush(out *decoder.Output) error {
	d.x.Flush(out)
	return nil
}

// Decode implements decoder.Decoder.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		return nil
	}
	root, ok := exchange.Parse(&d.doc, f.Data, out)
	switch {
	case !ok:
	case f.Kind == frame.Request:
		d.request(root, out)
	default:
		d.event(root, out)
	}
	return nil
}

func (d *stream) event(v jsonv.Value, out *decoder.Output) {
	x := &d.x
	switch typ := v.Get("type").Str(); typ {
	case "message_start":
		m := v.Get("message")
		x.Begin(exchange.Ident(m.Get("id")), exchange.Ident(m.Get("model")))
		d.usage(m.Get("usage"))
	case "content_block_start":
		d.start(v, out)
	case "content_block_delta":
		delta := v.Get("delta")
		p := x.Part(index(v))
		switch {
		case delta.Get("type").Equal("signature_delta"), delta.Get("type").Equal("citations_delta"):
		case x.ID == "":
			x.Unknown(out, typ, v.Raw())
		default:
			x.Add(out, p, piece(delta))
		}
	case "content_block_stop":
		if p := x.Part(index(v)); p != nil {
			x.Close(out, p)
		}
	case "message_delta":
		d.usage(v.Get("usage"))
		if stop := exchange.Ident(v.Path("delta", "stop_reason")); stop != "" {
			x.Stop = stop
		}
	case "message_stop":
		d.end(out)
	case "ping":
	case "":
		if v.Get("input_tokens").Kind() != jsonv.Number { // what count_tokens says
			x.Unknown(out, typ, v.Raw())
		}
	case "error":
		fault := v.Get("error")
		x.Fail(out, exchange.Ident(fault.Get("type")), fault.Get("message").Text())
	case "message":
		d.whole(v, out)
	default:
		x.Unknown(out, typ, v.Raw())
	}
}

func index(v jsonv.Value) string { return string(v.Get("index").Raw()) }

func piece(delta jsonv.Value) msg.Text {
	for _, name := range [...]string{"text", "thinking", "partial_json"} {
		if v := delta.Get(name); v.Is(jsonv.String) {
			return v.Text()
		}
	}
	return msg.Text{}
}

// start begins a content block. One that has no pieces is whole.
func (d *stream) start(v jsonv.Value, out *decoder.Output) {
	x, b := &d.x, v.Get("content_block")
	var p *exchange.Part
	switch typ := b.Get("type").Str(); {
	case x.ID == "":
		x.Unknown(out, "content_block_start", v.Raw())
	case typ == "text":
		p = x.Open(index(v), msg.Assistant, "")
		d.said(p, b.Get("text"), out)
	case typ == "thinking":
		p = x.Open(index(v), msg.Reasoning, "")
		d.said(p, b.Get("thinking"), out)
	case call(typ):
		x.First(out)
		id := exchange.Ident(b.Get("id"))
		if p = x.Open(index(v), msg.ToolCall, id); p != nil {
			p.Tool, p.Server = exchange.Ident(b.Get("name")), exchange.Ident(b.Get("server_name"))
			if input := b.Get("input"); input.Len() > 0 { // whole, and no pieces follow
				x.Add(out, p, input.JSON())
			}
		}
	default:
		x.First(out)
		d.block(b, out)
	}
}

func (d *stream) said(p *exchange.Part, v jsonv.Value, out *decoder.Output) {
	if text := v.Text(); !text.IsZero() {
		d.x.Add(out, p, text)
	}
}

func call(typ string) bool {
	return typ == "tool_use" || typ == "server_tool_use" || typ == "mcp_tool_use"
}

// whole decodes a response that came as one body.
func (d *stream) whole(v jsonv.Value, out *decoder.Output) {
	x := &d.x
	x.Begin(exchange.Ident(v.Get("id")), exchange.Ident(v.Get("model")))
	for b := range v.Get("content").Elems() {
		d.block(b, out)
	}
	d.usage(v.Get("usage"))
	x.Stop = exchange.Ident(v.Get("stop_reason"))
	d.end(out)
}

// block gives a content block that is whole.
func (d *stream) block(b jsonv.Value, out *decoder.Output) {
	x := &d.x
	switch typ := b.Get("type").Str(); {
	case typ == "text":
		if text := b.Get("text").Text(); !text.IsZero() {
			x.Say(out, msg.Assistant, "").Content = text
		}
	case typ == "thinking":
		if text := b.Get("thinking").Text(); !text.IsZero() {
			x.Say(out, msg.Reasoning, "").Content = text
		}
	case typ == "redacted_thinking":
		m := x.Say(out, msg.Reasoning, "")
		m.Hidden = true
		m.SetAttr("redacted", "true")
	case call(typ):
		if p := x.Open("whole", msg.ToolCall, exchange.Ident(b.Get("id"))); p != nil {
			p.Tool, p.Server = exchange.Ident(b.Get("name")), exchange.Ident(b.Get("server_name"))
			p.Text = b.Get("input").JSON().Append(nil)
			x.Bytes += len(p.Text)
			x.Close(out, p)
		}
	case b.Get("tool_use_id").Is(jsonv.String): // web_search_tool_result and its like: the provider ran the tool
		d.result(b, out)
	default:
		x.Unknown(out, "content_block/"+typ, b.Raw())
	}
}

// result gives the result of a tool that the provider ran within the response.
func (d *stream) result(b jsonv.Value, out *decoder.Output) {
	id := exchange.Ident(b.Get("tool_use_id"))
	m := d.x.Message(out, msg.ToolResult, "result:"+id)
	m.Role, m.Tool.CallID, m.ParentKey = msg.RoleTool, id, "call:"+id
	m.Content = b.Get("content").Text()
	if b.Path("content", "error_code").Exists() || b.Get("is_error").Bool() {
		m.IsError, m.Tool.ErrorType = true, "tool_error"
	}
}

func (d *stream) end(out *decoder.Output) {
	d.x.End(out, d.x.Stop == "tool_use" || d.x.Stop == "pause_turn")
}

// usage takes running totals.
func (d *stream) usage(u jsonv.Value) {
	if !u.Is(jsonv.Object) {
		return
	}
	t := &d.x.Usage
	d.x.Counted = true
	thought := u.Path("output_tokens_details", "thinking_tokens").Uint()
	output := max(t.Output+t.Reasoning, u.Get("output_tokens").Uint())
	t.Reasoning = min(max(t.Reasoning, thought), output)
	t.Output = output - t.Reasoning
	t.Input = max(t.Input, u.Get("input_tokens").Uint())
	t.CacheRead = max(t.CacheRead, u.Get("cache_read_input_tokens").Uint())
	parts := u.Get("cache_creation")
	t.CacheWrite = max(t.CacheWrite, u.Get("cache_creation_input_tokens").Uint(),
		parts.Get("ephemeral_5m_input_tokens").Uint()+parts.Get("ephemeral_1h_input_tokens").Uint())
}

// session is the conversation as the client calls it.
func session(v jsonv.Value) string {
	id := exchange.Ident(v)
	if _, after, ok := strings.Cut(id, "_session_"); ok {
		return after
	}
	var named struct {
		Session string `json:"session_id"`
	}
	if json.Unmarshal([]byte(v.Str()), &named) == nil {
		return named.Session
	}
	return ""
}
