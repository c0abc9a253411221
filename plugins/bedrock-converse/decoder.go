// Package bedrockconverse decodes exchanges with Amazon Bedrock as a tap records them: Converse and
// ConverseStream, and InvokeModel and InvokeModelWithResponseStream with the bodies of the models' makers.
// Streams are binary messages (package core/frame/eventstream), whose names are those of the events.
//
// Facts of the format that are easy to get wrong:
//
//   - The model is in the path of the request, escaped; it may be the ARN of a profile, or of a router of prompts:
//     which model has answered is then in the trace at the end.
//   - A text block has no start. A block of a call has, with the id and the name of the tool.
//   - metadata has the usage and follows messageStop.
//   - inputTokens excludes the cached ones. Where the total is that of input and output alone, it
//     includes them.
//   - Events are padded by a member p of random length.
//   - An exception ends a stream whose status was 200.
//   - A chunk of InvokeModel is Base64 of an event of the model's maker; the last one has
//     amazon-bedrock-invocationMetrics.
package bedrockconverse

import (
	"cmp"
	_ "embed"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/chat"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/messages"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// unread keeps the members that the decoder did not read.
var unread = unknown.NewKeeper(leavesOut)

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return exchange.API{
		Name: "bedrock-converse", Revision: 9, Provider: "aws.bedrock",
		Summary: "Amazon Bedrock: Converse and InvokeModel, their binary streams and whole responses.",
		Request: request, Event: event, Rest: unread, Lines: true,
		Whole: func(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
			if whole(x, v, out) {
				x.End(out) // of a maker who counts no tokens there
			}
		},
	}.Factory()
}

// modelOf is the model in a path: POST /model/ID/converse-stream.
func modelOf(path string) string {
	id := ident.Below(path, "/model/")
	if plain, err := url.PathUnescape(id); err == nil {
		return strings.ToValidUTF8(plain, "\uFFFD")
	}
	return id
}

// event decodes an event of a stream, or a whole response.
func event(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	fault := v.First("message", "Message")
	switch {
	case x.Name == "chunk":
		chunk(x, v, out)
	case x.Name == "initial-response":
	case x.Name == "":
		whole(x, v, out)
	case converse(x, x.Name, v, out):
	case fault.Is(jsonv.String), strings.HasSuffix(x.Name, "Exception"):
		x.Fail(out, ident.Bounded(x.Name), fault.Text())
	default:
		x.Unknown(out, ident.Bounded(x.Name), v.Raw())
	}
}

// converse decodes an event of ConverseStream; false for a name that it does not know.
func converse(x *exchange.Exchange, name string, v jsonv.Value, out *decoder.Output) bool {
	v.Get("p").MarkRead()
	if strings.HasPrefix(name, "contentBlock") && x.ID == "" {
		x.Begin("", x.Model) // the beginning was not seen
	}
	index := string(v.Get("contentBlockIndex").Peek())
	switch name {
	case "messageStart":
		v.Get("role").Equal("assistant")
		x.Begin("", x.Model)
	case "contentBlockStart":
		use, ran := v.Path("start", "toolUse"), v.Path("start", "toolResult")
		x.First(out)
		if ran.Is(jsonv.Object) { // of a tool of the provider's: the result follows
			if p := x.Open(index, msg.Assistant, ""); p != nil {
				p.CallID, p.Tool = ident.Of(ran.Get("toolUseId")), ident.Of(ran.Get("type"))
				x.Texts--
			}
			return true
		}
		if !use.Is(jsonv.Object) { // of a text: Mistral's models begin it
			return v.Get("start").Len() == 0
		}
		if p := x.Open(index, msg.ToolCall, ident.Of(use.Get("toolUseId"))); p != nil {
			p.Tool = ident.Of(use.Get("name"))
			use.Get("type").In("tool_use", "server_tool_use")
		}
	case "contentBlockDelta":
		return delta(x, index, v.Get("delta"), out)
	case "contentBlockStop":
		for p := x.Part(index); p != nil; p = x.Part(index) {
			x.Close(out, p)
		}
	case "messageStop":
		x.Stop = ident.Of(v.Get("stopReason"))
	case "metadata":
		counted(x, v, out)
	default:
		return false
	}
	return true
}

// delta adds a piece to a block. It opens a block without a start.
func delta(x *exchange.Exchange, index string, v jsonv.Value, out *decoder.Output) bool {
	kind, text := msg.Assistant, v.Get("text")
	switch thought, input := v.Get("reasoningContent"), v.Path("toolUse", "input"); {
	case text.Is(jsonv.String):
	case thought.Get("text").Is(jsonv.String):
		kind, text = msg.Reasoning, thought.Get("text")
	case thought.Is(jsonv.Object), v.Get("citation").Exists(): // no words: a signature, a thought that is encrypted, a citation
		thought.Get("signature").MarkRead()
		return true
	case v.Get("toolResult").Is(jsonv.Array):
		p := x.Part(index)
		if p == nil || p.CallID == "" {
			return false
		}
		ranTo(x, p.CallID, p.Tool, v.Get("toolResult"), out)
		return true
	case input.Is(jsonv.String):
		kind, text = msg.ToolCall, input
	default:
		return false
	}
	if p := x.Part(index); p == nil && kind == msg.ToolCall || p != nil && p.Kind != kind {
		return false
	}
	x.Piece(out, index, kind, text.Text())
	return true
}

// whole decodes a response that came as one body, or an error. It reports whether a maker wrote it.
func whole(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) bool {
	m := v.Path("output", "message")
	switch fault := v.First("message", "Message"); {
	case m.Is(jsonv.Object):
		routed(x, v)
		x.Begin("", x.Model)
		m.Get("role").Equal("assistant")
		for b := range m.Get("content").Elems() {
			answer(x, b, out)
		}
		x.Stop = ident.Of(v.Get("stopReason"))
		counted(x, v, out)
	case fault.Is(jsonv.String) && !v.Get("role").Exists():
		class := ident.Of(v.Get("__type")) // com.amazon.coral.service#ThrottlingException
		x.Fail(out, cmp.Or(class[strings.LastIndexByte(class, '#')+1:], "error"), fault.Text())
	case v.Get("type").Is(jsonv.String) && !v.Get("completion").Exists():
		messages.Event(x, v, out)
	case v.First("embedding", "embeddings").Exists(): // it has no conversation
		v.Skip("texts", "id", "response_type")
	case v.Get("inputTokens").IsCount(): // of CountTokens
	case v.Get("assessments").Is(jsonv.Array): // of ApplyGuardrail, without a model
		v.Skip("action", "actionReason", "assessments", "output")
	default:
		return native(x, v, out)
	}
	return false
}

// answer decodes a block of a whole response.
func answer(x *exchange.Exchange, b jsonv.Value, out *decoder.Output) {
	use, thought := b.Get("toolUse"), b.Path("reasoningContent", "reasoningText")
	switch {
	case b.Get("text").Is(jsonv.String):
		x.Say(out, msg.Assistant, "").Content = b.Get("text").Text()
	case thought.Is(jsonv.Object):
		thought.Get("signature").MarkRead()
		x.Say(out, msg.Reasoning, "").Content = thought.Get("text").Text()
	case use.Is(jsonv.Object):
		x.Call(out, ident.Of(use.Get("toolUseId")), ident.Of(use.Get("name")), use.Get("input").JSON())
	case b.Path("reasoningContent", "redactedContent").Is(jsonv.String): // a thought that is encrypted
	case b.Get("citationsContent").Is(jsonv.Object):
		for c := range b.Path("citationsContent", "content").Elems() {
			x.Say(out, msg.Assistant, "").Content = c.Get("text").Text()
		}
	case b.Get("toolResult").Is(jsonv.Object):
		r := b.Get("toolResult")
		m := ranTo(x, ident.Of(r.Get("toolUseId")), ident.Of(r.Get("type")), r.Get("content"), out)
		conversation.Failed(m, !r.Get("status").Equal("success"))
	default:
		x.Unknown(out, "content", b.Raw())
	}
}

// ranTo adds the result of a tool that the provider has run.
func ranTo(x *exchange.Exchange, id, typ string, list jsonv.Value, out *decoder.Output) *msg.Message {
	m := x.Ran(out, id, "")
	m.SetAttr("block", typ)
	contentOf(list).Fill(m)
	return m
}

// routed reads which model has answered behind a router of prompts.
func routed(x *exchange.Exchange, v jsonv.Value) {
	x.Model = cmp.Or(ident.Of(v.Path("trace", "promptRouter", "invokedModelId")), x.Model)
}

// counted decodes the end of a response: {usage, metrics, serviceTier, trace}.
func counted(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	routed(x, v)
	exchange.Billed(x, v.Path("serviceTier", "type"), "")
	if u := v.Get("usage"); u.Is(jsonv.Object) {
		c := conversation.Counts{
			Input: u.Get("inputTokens").Uint(), Output: u.Get("outputTokens").Uint(),
			CacheRead: u.First("cacheReadInputTokens", "cacheReadInputTokenCount").Uint(), CacheWrite: u.First("cacheWriteInputTokens", "cacheWriteInputTokenCount").Uint(),
		}
		for d := range u.Get("cacheDetails").Elems() {
			if d.Get("ttl").Equal("1h") {
				c.CacheWrite1h += d.Get("inputTokens").Uint()
			}
		}
		if cached := c.CacheRead + c.CacheWrite; cached > 0 && u.Get("totalTokens").Uint() == c.Input+c.Output && cached <= c.Input {
			c.Input -= cached
		}
		x.Count(c)
	}
	x.End(out)
	latency(out, v.Get("metrics"))
}

// latency adds the provider's own measure to the end of a response.
func latency(out *decoder.Output, metrics jsonv.Value) {
	if n := len(out.Messages); n > 0 && metrics.Is(jsonv.Object) {
		out.Messages[n-1].SetAttr("latency_ms", metrics.First("latencyMs", "invocationLatency").Digits())
		out.Messages[n-1].SetAttr("first_byte_ms", metrics.Get("firstByteLatency").Digits())
	}
}

// chunk decodes {bytes}: an event of the model's maker.
func chunk(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	data, err := base64.StdEncoding.DecodeString(v.Get("bytes").PeekStr())
	var doc jsonv.Doc
	if err != nil || len(data) == 0 || doc.Parse(data) != nil || !doc.Root().Is(jsonv.Object) {
		x.Unknown(out, "chunk", v.Raw())
		return
	}
	v.Skip("bytes", "p")
	before, inner := len(out.Messages), doc.Root()
	metrics := inner.Get("amazon-bedrock-invocationMetrics")
	if inner.Get("type").Is(jsonv.String) {
		messages.Event(x, inner, out)
		metrics.Skip("inputTokenCount", "outputTokenCount") // the event has them too
		latency(out, metrics)
	} else {
		native(x, inner, out)
	}
	unread.Keep(&doc, out, before, func(m *msg.Message) { m.Session, m.Run = cmp.Or(x.Session, "unknown"), x.Run })
}

// native decodes an event or a response of a maker other than Anthropic: Chat Completions (OpenAI and many others), events of Converse under
// their name (Nova, and recordings by clients), or text with a reason.
func native(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) bool {
	metrics, known := v.Get("amazon-bedrock-invocationMetrics"), completion(v)
	if known {
		chat.Event(x, v, out)
		if metrics.Is(jsonv.Object) {
			measured(x, metrics, metrics.Get("inputTokenCount"), metrics.Get("outputTokenCount"))
			x.End(out)
			latency(out, metrics)
		}
		return true
	}
	for name, e := range v.Members() {
		if e.Is(jsonv.Object) && converse(x, name.String(), e, out) {
			known = true
		}
	}
	in, n := v.First("prompt_token_count", "inputTextTokenCount"), v.First("generation_token_count", "tokenCount")
	if u := v.Get("usage"); u.Is(jsonv.Object) {
		in, n = u.Get("prompt_tokens"), u.Get("completion_tokens")
	}
	for _, list := range [...]string{"results", "generations", "outputs", "completions", "choices"} {
		i := 0
		for r := range v.Get(list).Elems() {
			known = said(x, list+" "+strconv.Itoa(i), r, out) || known
			if c := r.Get("tokenCount"); c.Exists() {
				n = c
			}
			i++
		}
	}
	known = said(x, "text "+string(v.Get("index").Peek()), v, out) || known
	if metrics.Is(jsonv.Object) {
		in, n = metrics.Get("inputTokenCount"), metrics.Get("outputTokenCount")
	}
	if x.ID != "" && !x.Over && (n.IsCount() && x.Stop != "" || metrics.Is(jsonv.Object)) {
		measured(x, metrics, in, n)
		known = true
		x.End(out)
		latency(out, metrics)
	} else if x.Over && known { // of Nova, beside its own metadata
		latency(out, metrics)
	}
	if !known && !metrics.Exists() {
		x.Unknown(out, "none", v.Raw())
	}
	return known
}

// completion reports whether a response is one of Chat Completions, which not all of them are marked as: Mistral's models have calls in their choices.
func completion(v jsonv.Value) bool {
	for c := range v.Get("choices").Elems() {
		if c.Get("delta").Is(jsonv.Object) || c.Path("message", "tool_calls").Len() > 0 {
			return true
		}
	}
	return v.Get("object").In("chat.completion", "chat.completion.chunk")
}

// measured counts the tokens of a response, of which Bedrock itself counts those of the cache.
func measured(x *exchange.Exchange, metrics, in, n jsonv.Value) {
	x.Count(conversation.Counts{
		Input: in.Uint(), Output: n.Uint(), CacheRead: metrics.Get("cacheReadInputTokenCount").Uint(), CacheWrite: metrics.Get("cacheWriteInputTokenCount").Uint(),
	})
}

// said adds a piece of a text, or a whole one, as the makers write it. It reports whether it is that.
//
//	Llama {generation, stop_reason}  Titan {outputText, completionReason}  Claude 2 {completion, stop_reason}  Mistral {text, stop_reason}
//	Cohere {text, finish_reason}  AI21 {data: {text}, finishReason: {reason}}  others {message: {content}, finish_reason}
func said(x *exchange.Exchange, name string, v jsonv.Value, out *decoder.Output) bool {
	text := v.First("generation", "outputText", "completion", "text")
	for _, inner := range [...]jsonv.Value{v.Path("data", "text"), v.Path("message", "content")} {
		if inner.Is(jsonv.String) {
			text = inner
		}
	}
	ended := v.Get("is_finished").Exists() && x.ID != ""
	if !text.Is(jsonv.String) && !ended {
		return v.Get("relevance_score").Exists() // of a document, and no words of the model's
	}
	if x.ID == "" || x.Over {
		x.Begin("", x.Model)
	}
	if x.Stop == "" { // else that of another text is kept
		x.Stop = ident.First(v.First("stop_reason", "completionReason", "finish_reason"), v.Path("finishReason", "reason"))
	}
	if text.Is(jsonv.String) && x.Part(name) == nil {
		x.Open(name, msg.Assistant, "")
	}
	if text.Is(jsonv.String) && !text.Equal("") {
		x.Piece(out, name, msg.Assistant, text.Text())
	}
	return true
}
