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
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return exchange.API{
		Name: "openai-responses", Revision: 3, Provider: "openai",
		Summary: "OpenAI Responses API: requests, event streams and whole responses.",
		Request: request, Event: event,
	}.Factory()
}

func event(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	if v.Get("object").Equal("response") {
		whole(x, v, out)
		return
	}
	typ := v.Get("type").Str()
	switch typ {
	case "response.created", "response.in_progress", "response.queued":
		begin(x, v.Get("response"))
		return
	case "response.completed", "response.incomplete", "response.failed":
		whole(x, v.Get("response"), out)
		return
	case "error":
		fail(x, v, out)
		return
	case "":
		if v.Get("error").Is(jsonv.Object) {
			fail(x, v, out)
			return
		}
	case "keepalive":
		return
	}
	switch {
	case x.ID == "" && strings.HasPrefix(typ, "response."):
		x.Unknown(out, typ, v.Raw())
	case typ == "response.output_item.added":
		open(x, v.Get("item"), out)
	case typ == "response.output_item.done":
		give(x, v.Get("item"), out)
	case strings.HasSuffix(typ, ".delta"):
		delta(x, typ, v, out)
	case strings.HasPrefix(typ, "response."):
		// Ends of pieces, and what a tool of the provider is doing: the item says it whole.
	default:
		x.Unknown(out, typ, v.Raw())
	}
}

func begin(x *exchange.Exchange, r jsonv.Value) {
	x.Begin(exchange.Ident(r.Get("id")), exchange.Ident(r.Get("model")))
}

// open begins an item of which pieces will come.
func open(x *exchange.Exchange, item jsonv.Value, out *decoder.Output) {
	x.First(out)
	name := exchange.Ident(item.Get("id"))
	if name == "" || x.Part(name) != nil {
		return
	}
	switch item.Get("type").Str() {
	case "message":
		x.Open(name, msg.Assistant, "")
	case "reasoning":
		x.Open(name, msg.Reasoning, "")
	case "function_call", "custom_tool_call":
		if p := x.Open(name, msg.ToolCall, exchange.Ident(item.Get("call_id"))); p != nil {
			p.Tool = exchange.Ident(item.Get("name"))
		}
	}
}

func delta(x *exchange.Exchange, typ string, v jsonv.Value, out *decoder.Output) {
	switch typ {
	case "response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta",
		"response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		x.Add(out, x.Part(exchange.Ident(v.Get("item_id"))), v.Get("delta").Text())
	}
}

// whole ends a response: it has all items, and what they took.
func whole(x *exchange.Exchange, r jsonv.Value, out *decoder.Output) {
	begin(x, r)
	for item := range r.Get("output").Elems() {
		give(x, item, out)
	}
	switch status := exchange.Ident(r.Get("status")); status {
	case "queued", "in_progress": // an answer that is still to be asked for
		return
	case "failed":
		fail(x, r, out)
	case "incomplete":
		x.Stop = exchange.Ident(r.Path("incomplete_details", "reason"))
	default:
		x.Stop = status
	}
	usage(x, r.Get("usage"))
	x.End(out, x.Waits)
}

func fail(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	fault := v.Get("error")
	if !fault.Is(jsonv.Object) {
		fault = v
	}
	typ := exchange.Ident(fault.Get("code"))
	if typ == "" {
		typ = exchange.Ident(fault.Get("type"))
	}
	x.Fail(out, typ, fault.Get("message").Text())
}

func usage(x *exchange.Exchange, u jsonv.Value) {
	if !u.Is(jsonv.Object) {
		return
	}
	x.Counted = true
	input, output := u.Get("input_tokens").Uint(), u.Get("output_tokens").Uint()
	cached := min(u.Path("input_tokens_details", "cached_tokens").Uint(), input)
	thought := min(u.Path("output_tokens_details", "reasoning_tokens").Uint(), output)
	x.Usage = msg.Tokens{Input: input - cached, CacheRead: cached, Output: output - thought, Reasoning: thought}
}
