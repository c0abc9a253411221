// Package chat decodes exchanges with the Chat Completions API: OpenAI's own, those of the servers that implement it, and those of
// services that carry its bodies in theirs. Requests and chunks enter, messages leave by the exchange.
package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

// Event decodes a chunk of a response, or a response that came as one body.
func Event(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	if request, body, fault, ok := openai.Batched(v); ok {
		exchange.Batched(x, request)
		if fault.Is(jsonv.Object) {
			class, text := exchange.Fault(fault)
			exchange.Rejected(x, out, class, text)
			return
		}
		Event(x, body, out)
		x.End(out)
		return
	}
	if fault := v.Get("error"); fault.Exists() {
		class, text := exchange.Fault(fault)
		if text.IsZero() {
			text = fault.Text()
		}
		x.Fail(out, class, text)
		if v.Get("choices").Len() == 0 {
			return
		}
	}
	if v.Get("object").Equal("error") { // Mistral
		class, text := exchange.Fault(v)
		x.Fail(out, class, text)
		return
	}
	if detail := v.Get("detail"); detail.Exists() && !v.Get("choices").Exists() { // of a server on FastAPI
		x.Fail(out, "", detail.Text())
		return
	}
	if v.Get("object").Equal("list") { // of models, of embeddings
		v.Get("model").MarkRead()
		return
	}
	if !v.Get("choices").Is(jsonv.Array) {
		x.Unknown(out, ident.Of(v.Get("object")), v.Raw())
		return
	}
	if v.Get("choices").Len() == 0 && v.Get("id").Equal("") && !v.Get("usage").Is(jsonv.Object) { // Azure's judgement of the prompt
		return
	}
	v.Get("object").In("chat.completion.chunk", "chat.completion", "chat.completion.done", "text_completion")
	switch id := v.Get("id"); {
	case x.ID != "" && !x.Over && (x.Stop == "" || v.Get("choices").Len() == 0):
		id.MarkRead() // Snowflake has none, llama.cpp had another in each chunk
	default:
		if x.ID != "" && !id.Equal(x.ID) {
			x.End(out) // it has its reason
		}
		x.Answer(out, id, v.Get("model"))
	}
	v.Get("model").Equal(x.Model)
	exchange.Notes(x, out, v, "moderation")
	found := v.First("search_results", "citations")
	sources(x, found, out)
	if found.Exists() {
		v.Get("citations").MarkRead() // the addresses of the results
	}
	var u jsonv.Value
	for c := range v.Get("choices").Elems() {
		n := c.Get("index").Int()
		if of := c.Get("usage"); of.Is(jsonv.Object) {
			u = of
		}
		switch delta := c.Get("delta"); {
		case delta.Is(jsonv.Object):
			pieces(x, n, delta, out)
			c.Get("message").MarkRead() // Perplexity repeats in it the answer so far
		case c.Get("text").Is(jsonv.String): // of a completion, as there were before there was chat
			say(x, n, c.Get("text").Text(), out)
		default:
			message(x, n, c.Get("message"), out)
		}
		if fault := c.Get("error"); fault.Is(jsonv.Object) { // OpenRouter
			class, text := exchange.Fault(fault)
			x.Fail(out, class, text)
		}
		if stop := c.First("finish_reason", "stop_reason"); stop.Is(jsonv.String) { // the latter of Mistral on Bedrock
			if n == 0 && x.Once("stop") || x.Stop == "" {
				x.Stop = ident.Of(stop)
			}
			finish(x, n, out)
		}
	}
	if why := v.Path("x_groq", "error"); why.Is(jsonv.String) { // why Groq has broken the stream off
		x.Fail(out, "", why.Text())
	}
	for _, other := range [...]jsonv.Value{v.Path("x_groq", "usage"), v.Get("usage")} {
		if other.Is(jsonv.Object) {
			u.MarkRead() // the same
			u = other
		}
	}
	if u.Is(jsonv.Object) { // the counts of later chunks include the earlier ones
		x.Counted, x.Usage = true, openai.Tokens(openai.Usage(u), msg.NoProvenance)
		exchange.Billed(x, v.Get("service_tier"), openai.Cost(u))
	}
}

// sources emits where an answer is from, once: every chunk may repeat it.
func sources(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	if v.Len() == 0 {
		v.MarkRead()
		return
	}
	key := "sources:" + msg.HashKey(x.ID, string(v.Peek()))
	if !x.Once(key) {
		v.MarkRead()
		return
	}
	x.Status(out, key, "sources").Content = v.JSON()
}

// pieces adds those of a chunk to the parts of the n-th answer.
func pieces(x *exchange.Exchange, n int64, delta jsonv.Value, out *decoder.Output) {
	thought := delta.Get("reasoning_content")
	if !thought.Is(jsonv.String) {
		thought = delta.Get("reasoning")
	}
	if thought.Is(jsonv.String) {
		think(x, n, thought.Text(), out)
		delta.Get("reasoning").Equal(thought.PeekStr())
		delta.Get("reasoning_details").MarkRead() // repeats it
	} else {
		for d := range delta.Get("reasoning_details").Elems() {
			think(x, n, d.First("text", "summary").Text(), out)
			d.MarkRead() // else it is encrypted
		}
	}
	sources(x, delta.Get("annotations"), out)
	if ran := delta.Get("executed_tools"); ran.Len() > 0 { // Groq's own
		x.Status(out, "executed_tools:"+msg.HashKey(x.ID, string(ran.Peek())), "executed_tools").Content = ran.JSON()
	}
	switch content := delta.Get("content"); content.Kind() {
	case jsonv.String:
		say(x, n, content.Text(), out)
	case jsonv.Array:
		for p := range content.Elems() {
			partOf(x, n, p, out)
		}
	}
	for _, t := range [...]jsonv.Value{delta.Get("refusal"), delta.Path("audio", "transcript")} {
		if t.Is(jsonv.String) {
			say(x, n, t.Text(), out)
		}
	}
	if c := delta.Get("function_call"); c.Is(jsonv.Object) {
		call(x, n, "function", c, out)
	}
	for c := range delta.Get("tool_calls").Elems() {
		name := "call " + string(c.Get("index").Peek())
		if c.Get("index").Kind() == jsonv.Missing {
			name = "call " + ident.Of(c.Get("id"))
		}
		call(x, n, name, c, out)
	}
}

// partOf adds a part of a content that is a list.
func partOf(x *exchange.Exchange, n int64, p jsonv.Value, out *decoder.Output) {
	switch typ := p.Get("type").Str(); {
	case typ == "text" && p.Get("text").Is(jsonv.String):
		say(x, n, p.Get("text").Text(), out)
	case typ == "thinking" && p.Get("thinking").Is(jsonv.String):
		think(x, n, p.Get("thinking").Text(), out)
	case typ == "thinking" && p.Get("thinking").Is(jsonv.Array):
		for t := range p.Get("thinking").Elems() {
			if t.Get("text").Is(jsonv.String) {
				think(x, n, t.Get("text").Text(), out)
			} else {
				x.Unknown(out, "content/thinking", t.Raw())
			}
		}
	default:
		x.Unknown(out, "content/"+typ, p.Raw())
	}
}

func think(x *exchange.Exchange, n int64, t msg.Text, out *decoder.Output) {
	if !t.IsZero() {
		x.Piece(out, named(n, "reasoning"), msg.Reasoning, t)
	}
}

func say(x *exchange.Exchange, n int64, t msg.Text, out *decoder.Output) {
	if t.IsZero() {
		return
	}
	if p := x.Part(named(n, "reasoning")); p != nil {
		x.Close(out, p) // it speaks: the thought is over
	}
	x.Piece(out, named(n, "text"), msg.Assistant, t)
}

// call adds a piece of a call.
func call(x *exchange.Exchange, n int64, name string, c jsonv.Value, out *decoder.Output) {
	fn := c.Get("function")
	if !fn.Is(jsonv.Object) {
		if fn = c.Get("custom"); !fn.Is(jsonv.Object) {
			fn = c // function_call, as it was before there were tools
		}
	}
	p := x.Part(named(n, name))
	if p != nil && p.Tool != "" && another(x, p, c, fn) {
		p.Name += " " + p.CallID
		p = nil
	}
	if p == nil {
		id := ident.Of(c.Get("id"))
		if id == "" && fn.Get("name").Equal("") { // Snowflake
			return
		}
		if id == "" || !x.Once("call "+id) { // another answer of several may repeat it
			own := x.ID + "/" + named(n, name)
			id = own
			for i := 1; !x.Once("call " + id); i++ {
				id = own + "/" + strconv.Itoa(i)
			}
		}
		if p = x.Open(named(n, name), msg.ToolCall, id); p == nil {
			return
		}
		x.Waits = true
	}
	c.Get("id").Equal(p.CallID)
	if p.Tool == "" {
		p.Tool = ident.Of(fn.Get("name"))
	} else {
		fn.Get("name").Equal(p.Tool)
	}
	x.Add(out, p, fn.First("arguments", "input").Text())
}

// another reports whether a piece begins a call beside the one whose index it has, as where Google's servers, and gateways
// before them, give each call the index 0. A name alone, or an id alone, is no other call: some servers repeat the one, some
// make up the other for each piece. Without ids, a name and an object behind one that is whole are another call.
func another(x *exchange.Exchange, p *exchange.Part, c, fn jsonv.Value) bool {
	id := ident.Bounded(c.Get("id").PeekStr())
	switch {
	case fn.Get("name").PeekStr() == "":
		return false
	case id == "" && len(p.Text) > 0:
		begins := bytes.HasPrefix(bytes.TrimSpace([]byte(fn.First("arguments", "input").PeekStr())), []byte("{"))
		return begins && json.Valid(p.Text)
	}
	return id != "" && id != p.CallID && !slices.Contains(x.Given, "call "+id)
}

func named(n int64, name string) string { return strconv.FormatInt(n, 10) + " " + name }

// finish emits the parts of the n-th answer, which has ended.
func finish(x *exchange.Exchange, n int64, out *decoder.Output) { x.CloseAll(out, named(n, "")) }

// message emits an answer that arrives whole.
func message(x *exchange.Exchange, n int64, m jsonv.Value, out *decoder.Output) {
	pieces(x, n, m, out)
	finish(x, n, out)
}
