// Package openairesponses decodes exchanges with OpenAI's Responses API as a tap hears
// them: the request, and the response as a stream of events or as one body.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - A response is a list of items. Each is told in pieces and then whole
//     (response.output_item.done), and all of them again when the response is over. An
//     item counts when it is told whole; its pieces only until then.
//   - An item has an id, and a call has a call_id beside it: results name the call_id.
//   - input_tokens has the cached ones in it, output_tokens the reasoning.
//   - A request with previous_response_id has only what is new. Its conversation is named
//     by that response then, unless the client names it: by conversation, or, as Codex
//     does, by a UUID in prompt_cache_key. So of a chain of three, the third begins a
//     session of its own.
//   - Tools that the provider runs (web search, MCP, code) are items that hold call and
//     result at once.
package openairesponses

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
		Name: "openai-responses", Version: "1.0.0", Revision: 1,
		Summary:    "OpenAI Responses API: requests, event streams and whole responses.",
		Transports: []frame.Kind{frame.Request, frame.Event, frame.Body},
		Options:    json.RawMessage(exchange.Schema),
	}
}

// New returns a decoder for one stream.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	o, err := exchange.ParseOptions(s.Options)
	if err != nil {
		return nil, fmt.Errorf("openai-responses: %w", err)
	}
	return &stream{state: state{Exchange: exchange.Exchange{Agent: o.Agent, Provider: "openai"}}}, nil
}

type stream struct {
	doc jsonv.Doc
	state
}

// maxGiven is how many items of a response are known to have been given.
const maxGiven = 1024

type state struct {
	exchange.Exchange
	Given []string `json:",omitempty"` // ids of the response's items that were given
	Calls bool     `json:",omitempty"` // one of them waits for the client
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) { return json.Marshal(&d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error { return json.Unmarshal(b, &d.state) }

// Flush implements decoder.Decoder.
func (d *stream) Flush(out *decoder.Output) error {
	d.Exchange.Flush(out)
	return nil
}

// Decode implements decoder.Decoder.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close || string(f.Data) == "[DONE]" { // of servers that are used to it
		return nil
	}
	root, ok := exchange.Parse(&d.doc, f.Data, out)
	switch {
	case !ok:
	case f.Kind == frame.Request:
		d.request(root, out)
	case root.Get("object").Equal("response"):
		d.whole(root, out)
	default:
		d.event(root, out)
	}
	return nil
}

func (d *stream) event(v jsonv.Value, out *decoder.Output) {
	typ := v.Get("type").Str()
	switch typ {
	case "response.created", "response.in_progress", "response.queued":
		d.begin(v.Get("response"))
		return
	case "response.completed", "response.incomplete", "response.failed":
		d.whole(v.Get("response"), out)
		return
	case "error":
		d.fail(v, out)
		return
	case "":
		if v.Get("error").Is(jsonv.Object) {
			d.fail(v, out)
			return
		}
	case "keepalive":
		return
	}
	switch {
	case d.ID == "" && strings.HasPrefix(typ, "response."):
		d.Unknown(out, typ, v.Raw())
	case typ == "response.output_item.added":
		d.open(v.Get("item"), out)
	case typ == "response.output_item.done":
		d.item(v.Get("item"), out)
	case strings.HasSuffix(typ, ".delta"):
		d.delta(typ, v, out)
	case strings.HasPrefix(typ, "response."):
		// Ends of pieces, and what a tool of the provider is doing: the item says it whole.
	default:
		d.Unknown(out, typ, v.Raw())
	}
}

func (d *stream) begin(r jsonv.Value) {
	id := exchange.Ident(r.Get("id"))
	if id != d.ID {
		d.Given, d.Calls = nil, false
	}
	d.Begin(id, exchange.Ident(r.Get("model")))
}

// open begins an item of which pieces will come.
func (d *stream) open(item jsonv.Value, out *decoder.Output) {
	d.First(out)
	name := exchange.Ident(item.Get("id"))
	if name == "" || d.Part(name) != nil {
		return
	}
	switch item.Get("type").Str() {
	case "message":
		d.Open(name, msg.Assistant, "")
	case "reasoning":
		d.Open(name, msg.Reasoning, "")
	case "function_call", "custom_tool_call":
		if p := d.Open(name, msg.ToolCall, exchange.Ident(item.Get("call_id"))); p != nil {
			p.Tool = exchange.Ident(item.Get("name"))
		}
	}
}

func (d *stream) delta(typ string, v jsonv.Value, out *decoder.Output) {
	switch typ {
	case "response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta",
		"response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		d.Add(out, d.Part(exchange.Ident(v.Get("item_id"))), v.Get("delta").Text())
	}
}

// whole ends a response: it has all items, and what they took.
func (d *stream) whole(r jsonv.Value, out *decoder.Output) {
	d.begin(r)
	for item := range r.Get("output").Elems() {
		d.item(item, out)
	}
	switch status := exchange.Ident(r.Get("status")); status {
	case "queued", "in_progress": // an answer that is still to be asked for
		return
	case "failed":
		d.fail(r, out)
	case "incomplete":
		d.Stop = exchange.Ident(r.Path("incomplete_details", "reason"))
	default:
		d.Stop = status
	}
	d.usage(r.Get("usage"))
	d.End(out, d.Calls)
}

func (d *stream) fail(v jsonv.Value, out *decoder.Output) {
	fault := v.Get("error")
	if !fault.Is(jsonv.Object) {
		fault = v
	}
	typ := exchange.Ident(fault.Get("code"))
	if typ == "" {
		typ = exchange.Ident(fault.Get("type"))
	}
	d.Fail(out, typ, fault.Get("message").Text())
}

func (d *stream) usage(u jsonv.Value) {
	if !u.Is(jsonv.Object) {
		return
	}
	d.Counted = true
	input, output := u.Get("input_tokens").Uint(), u.Get("output_tokens").Uint()
	cached := min(u.Path("input_tokens_details", "cached_tokens").Uint(), input)
	thought := min(u.Path("output_tokens_details", "reasoning_tokens").Uint(), output)
	d.Usage = msg.Tokens{Input: input - cached, CacheRead: cached, Output: output - thought, Reasoning: thought}
}
