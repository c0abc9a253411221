// Package openairesponses decodes exchanges with OpenAI's Responses API as a tap records
// them: the request, and the response as a stream of events or as one body.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - A response is a list of items. Each arrives in pieces and then whole
//     (response.output_item.done), and all of them again at the end of the response. An
//     item counts when it arrives whole; its pieces only until then.
//   - An item has an id, and a call has a call_id beside it: results name the call_id.
//   - input_tokens has the cached ones in it, output_tokens the reasoning.
//   - A request with previous_response_id has new items only. Its conversation is that of
//     this response then, which the host finds, unless the client names it: by conversation, or, as Codex
//     does, by a UUID in prompt_cache_key.
//   - A response in the background is asked for again by its id, once or often, whole or as the events
//     behind a number: a copy, which has no request. completed_at has the second in which it ended.
//   - Over a WebSocket a request is {type: response.create, …}, and each after the first names the
//     response before it and has new items only. One with generate: false is read and not answered.
//   - Tools that the provider runs (web search, MCP, code) are items that hold call and
//     result at once.
package openairesponses

import (
	"cmp"
	_ "embed"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return exchange.API{
		Name: "openai-responses", Revision: 13, Provider: "openai",
		Summary: "OpenAI Responses API: requests, event streams and whole responses, and its WebSocket.",
		Request: request, Event: event, Socket: true, Lines: true, Rest: unknown.NewKeeper(leavesOut),
		Retrieved: func(origin string) string { // a response, and the output of a batch
			return cmp.Or(exchange.Resource(origin, "responses", "compact", "input_tokens"), exchange.Resource(origin, "files"))
		},
	}.Factory()
}

func event(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	if request, body, fault, ok := openai.Batched(v); ok {
		exchange.Batched(x, request)
		if fault.Is(jsonv.Object) {
			class, text := exchange.Fault(fault)
			exchange.Rejected(x, out, class, text)
			return
		}
		event(x, body, out)
		return
	}
	switch object := v.Get("object"); {
	case object.In("response", "response.compaction"):
		whole(x, v, out)
		return
	case object.Equal("response.input_tokens"): // of a request that only counts
		return
	case x.Retrieved != "" && object.Equal("list"): // of the items of its input
		v.MarkRead()
		return
	}
	typ := v.Get("type").Str()
	if x.Retrieved != "" && strings.HasPrefix(typ, "response.") && !ends(typ) { // the end has all of it, and its beginning may not be here
		v.Skip("item", "item_id", "text", "refusal", "arguments", "input", "code", "delta", "part", "annotation", "partial_image_b64", "command", "output", "diff")
		v.Get("response").Skip("id", "model", "instructions", "text", "prompt", "tool_choice", "previous_response_id")
		return
	}
	switch {
	case typ == "response.created", typ == "response.in_progress", typ == "response.queued":
		begin(x, v.Get("response"), typ == "response.created", out)
	case ends(typ):
		whole(x, v.Get("response"), out)
	case typ == "error", typ == "" && v.Get("error").Is(jsonv.Object):
		fail(x, v, out)
	case typ == "" && v.Get("error").Is(jsonv.String): // xAI
		x.Fail(out, ident.Of(v.Get("code")), v.Get("error").Text())
	case typ == "" && v.Get("detail").Exists(): // of a server on FastAPI
		x.Fail(out, "", v.Get("detail").Text())
	case typ == "response.create": // over a WebSocket
		exchange.Identify(x, v.Get("client_metadata"))
		request(x, v, out)
	case typ == "keepalive", typ == "response.processed":
	case x.ID == "" && strings.HasPrefix(typ, "response."):
		x.Unknown(out, typ, v.Raw())
	case typ == "response.output_item.added":
		open(x, place(v, v.Get("item")), v.Get("item"), out)
	case typ == "response.output_item.done":
		emit(x, ended(x, v), v.Get("item"), out)
	case strings.HasPrefix(typ, "response.") && (delta(x, typ, v, out) || echo(v, typ)):
	default:
		x.Unknown(out, typ, v.Raw())
	}
}

// ends reports whether an event has the whole response.
func ends(typ string) bool {
	return typ == "response.completed" || typ == "response.incomplete" || typ == "response.failed" || typ == "response.cancelled"
}

// begin begins a response, or goes on with the one that is open, whose id may be another in each
// event.
func begin(x *exchange.Exchange, r jsonv.Value, created bool, out *decoder.Output) {
	if created || x.ID == "" || x.Over {
		x.Answer(out, r.Get("id"), r.Get("model"))
	} else {
		r.Get("id").MarkRead()
		r.Get("model").Equal(x.Model)
	}
	r.Skip("instructions", "text", "prompt", "tool_choice", "previous_response_id") // of the request
	if created && r.Get("background").Bool() {
		background(x, out)
	}
}

// background emits that a response has begun which may be asked for by its id.
func background(x *exchange.Exchange, out *decoder.Output) *msg.Message {
	m := x.Status(out, "begun:"+x.ID, "response_begun")
	m.Model, m.Provider, m.ResponseID = x.Model, x.Provider, x.ID
	return m
}

// place is the name by which the pieces of an item are known: its place in the output. Copilot writes another
// id into each of its events.
func place(v, item jsonv.Value) string {
	if at := v.Get("output_index"); at.Is(jsonv.Number) {
		return "#" + string(at.Peek())
	}
	return ident.Of(item.Get("id"))
}

// ended is the place of an item that ends. A server that leaves the place out there means the only open item of its kind.
func ended(x *exchange.Exchange, v jsonv.Value) string {
	item, kind := v.Get("item"), msg.ToolCall
	name := place(v, item)
	switch typ := item.Get("type"); {
	case v.Get("output_index").Exists() || x.Part(name) != nil:
		return name
	case typ.Equal("message"):
		kind = msg.Assistant
	case typ.Equal("reasoning"):
		kind = msg.Reasoning
	case !typ.In("function_call", "custom_tool_call"):
		return name
	}
	if p, ok := bounded.Only(x.Parts, func(p *exchange.Part) bool { return p.Kind == kind }); ok {
		return p.Name
	}
	return name
}

// echo reports whether an event repeats parts of its item: the end of a piece, or the
// progress of a tool of the provider.
func echo(v jsonv.Value, typ string) bool {
	switch stem, end := typ[:strings.LastIndexByte(typ, '.')], typ[strings.LastIndexByte(typ, '.')+1:]; {
	case end == "done", stem == "response.content_part", strings.HasSuffix(stem, "_part"), stem == "response.output_text.annotation":
	case strings.HasSuffix(stem, "_call"), strings.Contains(stem, "_call_"), strings.HasPrefix(stem, "response.mcp_"):
	default:
		return false
	}
	v.Skip("item_id", "text", "refusal", "arguments", "input", "code", "delta", "part", "annotation", "partial_image_b64", "command", "output", "diff")
	return true
}

// open begins an item of which pieces will come.
func open(x *exchange.Exchange, name string, item jsonv.Value, out *decoder.Output) {
	x.First(out)
	item.Get("id").MarkRead()
	if name == "" || x.Part(name) != nil {
		return
	}
	switch typ := item.Get("type"); {
	case typ.Equal("message"):
		x.Open(name, msg.Assistant, "")
	case typ.Equal("reasoning"):
		x.Open(name, msg.Reasoning, "")
	case typ.In("function_call", "custom_tool_call"):
		if p := x.Open(name, msg.ToolCall, ident.Of(item.Get("call_id"))); p != nil {
			p.Tool = ident.Of(item.Get("name"))
			item.Get("namespace").MarkRead()
		}
	default:
		item.MarkRead()
	}
}

// delta adds a piece to its item. It reports whether there is such a one.
func delta(x *exchange.Exchange, typ string, v jsonv.Value, out *decoder.Output) bool {
	switch typ {
	case "response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta",
		"response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
	default:
		return false
	}
	p := x.Part(place(v, jsonv.Value{}))
	if p == nil {
		p = x.Part(ident.Of(v.Get("item_id")))
	}
	if v.Get("item_id").MarkRead(); p != nil {
		x.Add(out, p, v.Get("delta").Text())
	}
	return p != nil
}

// whole ends a response: it has all items, and the usage.
func whole(x *exchange.Exchange, r jsonv.Value, out *decoder.Output) {
	if r.Get("deleted").Bool() {
		r.Get("id").MarkRead()
		return
	}
	before := len(out.Messages)
	begin(x, r, false, out)
	at := 0
	for item := range r.Get("output").Elems() {
		emit(x, "#"+strconv.Itoa(at), item, out)
		at++
	}
	if r.Get("object").Equal("response.compaction") && strings.HasPrefix(x.Last, "result:") { // which the model has still to read
		x.Waits = true
	}
	switch status := r.Get("status"); {
	case status.In("queued", "in_progress"): // it is to be asked for again
		if x.Retrieved == "" {
			m := background(x, out)
			m.Signal = msg.RunPause
			m.SetAttr(msg.AttrWaitsFor, msg.ForOutside)
		}
		return
	case status.Equal("failed"):
		fail(x, r, out)
	case status.Equal("incomplete"):
		x.Stop = ident.Of(r.Path("incomplete_details", "reason"))
	default:
		x.Stop = ident.Of(status)
	}
	exchange.Notes(x, out, r, "moderation")
	if u := r.Get("usage"); u.Is(jsonv.Object) {
		x.Counted, x.Usage = true, openai.Tokens(openai.Usage(u), msg.NoProvenance)
		exchange.Billed(x, r.Get("service_tier"), openai.Cost(u))
	}
	x.End(out)
	if x.Retrieved != "" {
		date(out.Messages[before:], r)
	}
}

// date gives the parts of a response that is asked for again the time at which the provider ended it, in place of the time of the
// question. One that ended in the second in which it was made keeps that: its whole seconds may be before the request.
func date(parts []msg.Message, r jsonv.Value) {
	end := conversation.TimeOf(r.Get("completed_at"))
	if end.Nanos <= conversation.TimeOf(r.Get("created_at")).Nanos {
		return
	}
	for i := range parts {
		parts[i].Time, parts[i].Precision = end.Nanos, end.Precision
	}
}

func fail(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	fault := v.Get("error")
	if !fault.Is(jsonv.Object) {
		fault = v
	}
	class, text := exchange.Fault(fault)
	x.Fail(out, class, text)
}
