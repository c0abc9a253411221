// Package messages decodes exchanges with Anthropic's Messages API: its own, and those of services that
// carry its bodies in theirs. Requests and events enter, messages leave by the exchange.
package messages

import (
	"encoding/json"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Event decodes an event of a response, or a response that came as one body.
func Event(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	switch typ := v.Get("type").Str(); typ {
	case "message_start":
		begin(x, v.Get("message"), out)
	case "content_block_start":
		start(x, v, out)
	case "content_block_delta":
		p := x.Part(index(v))
		v.Get("delta").Get("type").Equal("citations_delta") // whose citation is left out
		switch text, ok := piece(v.Get("delta")); {
		case v.Path("delta", "type").Equal("compaction_delta"):
			compacted(x, v.Path("delta", "content"), out)
		case !ok: // a signature, a citation, or an unknown delta
		case x.ID == "", p == nil:
			x.Unknown(out, typ, v.Raw())
		default:
			x.Add(out, p, text)
		}
	case "content_block_stop":
		if p := x.Part(index(v)); p != nil {
			x.Close(out, p)
		}
	case "message_delta":
		usage(x, v.Get("usage"), true)
		if stop := v.Path("delta", "stop_reason"); stop.Is(jsonv.String) {
			x.Stop = ident.Of(stop)
		}
		stopped(x, v.Path("delta", "stop_details"), out)
	case "message_stop":
		end(x, out)
	case "ping":
	case "message_batch":
		state(x, v, out)
	case "":
		if v.Get("custom_id").Is(jsonv.String) && v.Get("result").Is(jsonv.Object) {
			batched(x, v, out)
			return
		}
		switch fault := v.Get("error"); {
		case v.Get("input_tokens").Kind() == jsonv.Number: // the answer of count_tokens
		case fault.Is(jsonv.Object): // of a gateway, or of Vertex AI
			class, text := exchange.Fault(fault)
			x.Fail(out, class, text)
		case fault.Is(jsonv.String):
			x.Fail(out, "", fault.Text())
		case v.Get("detail").Exists(): // of a server on FastAPI
			x.Fail(out, "", v.Get("detail").Text())
		default:
			x.Unknown(out, typ, v.Raw())
		}
	case "error":
		fault := v.Get("error")
		x.Fail(out, ident.Of(fault.Get("type")), fault.Get("message").Text())
	case "message":
		whole(x, v, out)
	default:
		x.Unknown(out, typ, v.Raw())
	}
}

func index(v jsonv.Value) string { return string(v.Get("index").Peek()) }

// begin begins a response. That of a provider's tool which calls one of the client's is whole; so
// is a connection's second beginning of the same response empty. Where another begins before the
// end of one, as a proxy that tries again writes it, the first was cut off.
func begin(x *exchange.Exchange, m jsonv.Value, out *decoder.Output) {
	if x.ID != "" && !m.Get("id").Equal(x.ID) {
		x.CutOff(out)
	}
	x.Answer(out, m.Get("id"), m.Get("model"))
	usage(x, m.Get("usage"), false)
	if m.Get("content").Len() == 0 {
		return
	}
	for b := range m.Get("content").Elems() {
		block(x, b, out)
	}
	x.Stop = ident.Of(m.Get("stop_reason"))
}

// piece returns the text of a piece; ok is false when it has none.
func piece(delta jsonv.Value) (t msg.Text, ok bool) {
	for _, c := range [...]struct{ typ, name string }{
		{"text_delta", "text"}, {"thinking_delta", "thinking"}, {"input_json_delta", "partial_json"},
	} {
		if v := delta.Get(c.name); v.Is(jsonv.String) {
			delta.Get("type").Equal(c.typ)
			return v.Text(), true
		}
	}
	return msg.Text{}, false
}

// start begins a content block. One that has no pieces is whole.
func start(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	b := v.Get("content_block")
	var p *exchange.Part
	switch typ := b.Get("type"); {
	case x.ID == "":
		x.Unknown(out, "content_block_start", v.Raw())
	case typ.Equal("text"):
		p = x.Open(index(v), msg.Assistant, "")
		piecesOf(x, p, b.Get("text"), out)
	case typ.Equal("thinking"):
		p = x.Open(index(v), msg.Reasoning, "")
		piecesOf(x, p, b.Get("thinking"), out)
	case anthropic.IsCall(typ):
		x.First(out)
		id := ident.Of(b.Get("id"))
		if p = x.Open(index(v), msg.ToolCall, id); p != nil {
			p.Tool, p.Server = ident.Of(b.Get("name")), ident.Of(b.Get("server_name"))
			if input := b.Get("input"); input.Len() > 0 { // whole, and no pieces follow
				x.Add(out, p, input.JSON())
			}
		}
	default:
		x.First(out)
		block(x, b, out)
	}
}

func piecesOf(x *exchange.Exchange, p *exchange.Part, v jsonv.Value, out *decoder.Output) {
	if p == nil { // there are too many
		return
	}
	if text := v.Text(); !text.IsZero() {
		x.Add(out, p, text)
	}
}

// whole decodes a response that came as one body.
func whole(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	x.Answer(out, v.Get("id"), v.Get("model"))
	for b := range v.Get("content").Elems() {
		block(x, b, out)
	}
	usage(x, v.Get("usage"), true)
	x.Stop = ident.Of(v.Get("stop_reason"))
	stopped(x, v.Get("stop_details"), out)
	end(x, out)
}

// state emits the state of a batch.
func state(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	id := ident.Of(v.Get("id"))
	if x.Session == "" {
		x.Session = id
	}
	m := x.Status(out, "", "message_batch")
	m.SetAttr("batch", id)
	conversation.AttrsAs(m, v, ident.Of, "status=processing_status")
	conversation.AttrsAs(m, v.Get("request_counts"), jsonv.Value.Digits, "processing", "succeeded", "errored", "canceled", "expired")
	facts := make([]string, 0, 2*len(m.Attrs))
	for _, a := range m.Attrs {
		facts = append(facts, a.Key, a.Value)
	}
	m.Key = "batch:" + msg.HashKey(facts...)
}

// batched decodes a line of the results of a batch:
//
//	{custom_id, result: {type: succeeded, message} | {type: errored, error: {error: {type, message}}} | {type: canceled | expired}}
func batched(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	exchange.Batched(x, ident.Of(v.Get("custom_id")))
	r := v.Get("result")
	if m := r.Get("message"); m.Is(jsonv.Object) {
		r.Get("type").Equal("succeeded")
		m.Get("type").Equal("message")
		whole(x, m, out)
		return
	}
	fault := r.Get("error")
	if inner := fault.Get("error"); inner.Is(jsonv.Object) {
		fault.Get("type").Equal("error")
		fault = inner
	}
	if !fault.Is(jsonv.Object) {
		exchange.Rejected(x, out, ident.Of(r.Get("type")), msg.Text{})
		return
	}
	r.Get("type").Equal("errored")
	exchange.Rejected(x, out, ident.Of(fault.Get("type")), fault.Get("message").Text())
}

// block emits a content block that is whole.
func block(x *exchange.Exchange, b jsonv.Value, out *decoder.Output) {
	switch typ := b.Get("type"); {
	case typ.Equal("text"):
		if text := b.Get("text").Text(); !text.IsZero() {
			x.Say(out, msg.Assistant, "").Content = text
		}
	case typ.Equal("thinking"):
		if text := b.Get("thinking").Text(); !text.IsZero() {
			x.Say(out, msg.Reasoning, "").Content = text
		}
	case typ.Equal("redacted_thinking"):
		anthropic.Thinking(x.Say(out, msg.Reasoning, ""), b)
	case anthropic.IsCall(typ):
		if p := x.Open("whole", msg.ToolCall, ident.Of(b.Get("id"))); p != nil {
			p.Tool, p.Server = ident.Of(b.Get("name")), ident.Of(b.Get("server_name"))
			p.Text = b.Get("input").JSON().Append(nil)
			x.Bytes += len(p.Text)
			x.Close(out, p)
		}
	case b.Get("tool_use_id").Is(jsonv.String): // web_search_tool_result and its like
		id := ident.Of(b.Get("tool_use_id"))
		m := x.Message(out, msg.ToolResult, "result:"+id)
		m.Tool.CallID, m.ParentKey = id, "call:"+id
		anthropic.ServerResult(m, b)
		m.Content = b.Get("content").Text()
	case typ.Equal("compaction"):
		compacted(x, b.Get("content"), out)
	case typ.Equal("fallback"):
		m := x.Message(out, msg.Status, "fallback:"+x.ID)
		m.SetAttr("type", "fallback")
		m.SetAttr("from", ident.Of(b.Path("from", "model")))
		if to := ident.Of(b.Path("to", "model")); to != "" {
			m.SetAttr("to", to)
			x.Model = to
		}
	default:
		x.Unknown(out, "content_block/"+typ.Str(), b.Raw())
	}
}

// compacted emits the summary by which the provider replaced the earlier messages.
func compacted(x *exchange.Exchange, summary jsonv.Value, out *decoder.Output) {
	if !summary.Is(jsonv.String) { // it follows
		return
	}
	m := x.Message(out, msg.Status, "compaction:"+x.ID)
	m.SetAttr("type", "compaction")
	m.Signal, m.Content = msg.Compaction, summary.Text()
}

// stopped emits why the provider refused to go on: {type: refusal, category, explanation}.
func stopped(x *exchange.Exchange, details jsonv.Value, out *decoder.Output) {
	if !details.Is(jsonv.Object) {
		return
	}
	m := x.Message(out, msg.Status, "stop_details:"+x.ID)
	m.SetAttr("type", "stop_details")
	conversation.AttrsAs(m, details, ident.Of, "reason=type", "category")
	m.Content = details.Get("explanation").Text()
}

func end(x *exchange.Exchange, out *decoder.Output) {
	x.End(out)
}

// usage takes running totals. A count of the end of a response replaces the one of its beginning, which a server may have made before it
// knew how much its cache had; one that is sent again is no end. A response of several passes (a summary of the messages before it, an advisor, a
// model that took over) has all of them in the end.
func usage(x *exchange.Exchange, u jsonv.Value, end bool) {
	if !u.Is(jsonv.Object) {
		return
	}
	b, before := anthropic.Bill(u), conversation.CountsOf(x.Usage)
	switch {
	case b.Several:
		x.Passes = b.Passes
	case end:
		b.Counts = b.Counts.Over(before)
	default:
		b.Counts = b.Counts.Max(before)
	}
	x.Count(b.Counts)
	x.Extra = b.Extra.Set(x.Extra)
	exchange.Billed(x, u.Get("service_tier"), "")
	exchange.BilledIn(x, ident.Of(u.Get("speed")), ident.Of(u.Get("inference_geo")))
}

// session is the conversation as the client calls it.
func session(v jsonv.Value) string {
	text := v.PeekStr() // the account, or another name in it, is kept as it is
	if len(text) <= ident.Max {
		if _, after, ok := strings.Cut(text, "_session_"); ok {
			return after
		}
	}
	var named struct {
		Session string `json:"session_id"`
	}
	if json.Unmarshal([]byte(text), &named) == nil && len(named.Session) <= ident.Max {
		return named.Session
	}
	return ""
}
