// Package ollama decodes exchanges with Ollama's own API as a tap records them: /api/chat and
// /api/generate, whose responses are lines of JSON or one body.
//
// Facts of the format that are easy to get wrong:
//
//   - A response has no id. Its first line has the time at which it began.
//   - Calls are whole, with arguments that are an object. They have ids since 0.12.10 only;
//     results name the tool, and are in the order of the calls. An id of a server begins with
//     call_: any other is the client's own.
//   - done_reason is stop for calls too.
//   - The counts are on the last line, and none on a line that only loads a model.
//     prompt_eval_count includes the cached tokens; old servers leave it out when all of the
//     prompt is cached. eval_count includes the thoughts.
//   - A request streams unless stream is false.
package ollama

import (
	"cmp"
	_ "embed"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return exchange.API{
		Name: "ollama", Revision: 5, Provider: "ollama", Lines: true,
		Summary: "Ollama's own API: chat and generate, as lines or one body.",
		Request: request, Event: event, Rest: unknown.NewKeeper(leavesOut),
	}.Factory()
}

// event decodes a line of a response, or a whole one.
//
//	{model, created_at, message: {role, content, thinking, tool_calls}, done}  {model, response, thinking, done}
func event(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	if fault := v.Get("error"); fault.Exists() {
		x.Fail(out, "", fault.Text())
		return
	}
	if v.Get("done").Bool() && v.Get("done_reason").In("load", "unload") { // of the model, for no prompt
		v.Get("model").MarkRead()
		return
	}
	m := v.Get("message")
	if !m.Is(jsonv.Object) {
		m = v
	}
	if !v.Get("done").Exists() || !m.First("content", "response", "thinking", "tool_calls").Exists() && !v.Get("done").Bool() {
		pass := v.Get("embeddings").Exists() || v.Get("embedding").Exists() || v.Get("models").Exists() || v.Get("version").Exists()
		if !pass {
			x.Unknown(out, "none", v.Raw())
		}
		v.Skip("model", "models", "version")
		return
	}
	if model := v.Get("model"); x.ID == "" || x.Over {
		began := v.Get("created_at")
		name := "response:" + msg.HashKey(x.Session, x.Run, x.Last, string(model.Peek()), string(began.Peek()))
		unnamed := x.Unnamed
		x.Begin(name, ident.Of(model))
		x.Unnamed = unnamed
	} else {
		model.Equal(x.Model)
	}
	m.Get("role").Equal("assistant")
	say(x, "thinking", msg.Reasoning, m.Get("thinking"), out)
	text := m.First("content", "response")
	if p := x.Part("thinking"); p != nil && text.Is(jsonv.String) && !text.Equal("") {
		x.Close(out, p)
	}
	say(x, "text", msg.Assistant, text, out)
	for c := range m.Get("tool_calls").Elems() {
		call(x, c, out)
	}
	if v.Get("done").Bool() {
		done(x, v, out)
	}
}

func say(x *exchange.Exchange, name string, kind msg.Kind, v jsonv.Value, out *decoder.Output) {
	if v.Is(jsonv.String) && !v.Equal("") {
		x.Piece(out, name, kind, v.Text())
	}
}

// call decodes a call, which ends the text before it.
func call(x *exchange.Exchange, c jsonv.Value, out *decoder.Output) {
	fn := c.Get("function")
	tool := ident.Of(fn.Get("name"))
	if tool == "" {
		x.Unknown(out, "tool_call", c.Raw())
		return
	}
	x.CloseAll(out, "")
	x.First(out)
	own, args := x.Unnamed.Next(tool), fn.Get("arguments")
	text := args.JSON()
	if args.Is(jsonv.String) {
		text = args.Text()
	}
	x.Call(out, cmp.Or(ident.Of(c.Get("id")), own), tool, text)
	x.Waits = true
}

// done decodes the last line.
func done(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	x.Stop = ident.Of(v.Get("done_reason"))
	in, n := v.Get("prompt_eval_count"), v.Get("eval_count")
	if in.IsCount() || n.IsCount() {
		c := conversation.Counts{Input: in.Uint(), Output: n.Uint()}
		c.CacheRead = min(c.Input, v.Get("prompt_eval_cached_count").Uint())
		c.Input -= c.CacheRead
		x.Count(c)
	}
	before := len(out.Messages)
	x.End(out)
	if len(out.Messages) == before {
		return
	}
	end := &out.Messages[len(out.Messages)-1]
	conversation.AttrsAs(end, v, jsonv.Value.Digits, "total_duration_ns=total_duration", "load_duration_ns=load_duration",
		"prompt_eval_duration_ns=prompt_eval_duration", "eval_duration_ns=eval_duration")
}

// request decodes a request to the model.
func request(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	var items []exchange.Item
	var h exchange.History
	switch {
	case strings.Contains(x.Path, "/api/embed"):
		v.Get("prompt").MarkRead()
		x.PassOver(v)
		return
	case v.Get("messages").Is(jsonv.Array) && v.Get("messages").Len() == 0, v.Get("prompt").Equal(""): // the model is to be loaded, as ollama run begins, or unloaded
		x.PassOver(v)
		return
	case v.Get("messages").Is(jsonv.Array):
		for m := range v.Get("messages").Elems() {
			items = append(items, item(&h, m))
		}
	case v.Get("prompt").Is(jsonv.String):
		items = exchange.Instruct(items, v.Get("system").Text(), v.Get("system"))
		text := v.Get("prompt").Text()
		h.Prompted(text)
		items = append(items, exchange.Item{Who: exchange.Prompt, Text: text, Attachments: images(v), From: v.Get("prompt")})
	default:
		x.PassOver(v)
		return
	}
	ask := exchange.Ask{Model: ident.Of(v.Get("model")), Items: items}
	params(&ask, v)
	x.Request(out, ask)
	x.Unnamed = h.Unnamed
}

// item decodes a message that a request repeats.
func item(h *exchange.History, m jsonv.Value) exchange.Item {
	it := exchange.Item{From: m}
	switch role := m.Get("role"); {
	case role.Equal("assistant"):
		it.Who = exchange.Model
		for c := range m.Get("tool_calls").Elems() {
			id, own := ident.Peek(c.Get("id")), ""
			if strings.HasPrefix(id, "call_") {
				own = id
			}
			h.Called(own, id, ident.Peek(c.Path("function", "name")))
		}
	case role.Equal("tool"):
		it.Who, it.Text = exchange.Result, m.Get("content").Text()
		it.CallID = h.Result(ident.Of(m.Get("tool_call_id")), ident.First(m.Get("tool_name"), m.Get("name")))
		it.Attachments = images(m)
	case role.Equal("system"):
		it.Who, it.Text = exchange.Instructions, m.Get("content").Text()
	case m.Is(jsonv.Object):
		role.Equal("user")
		it.Who, it.Text, it.Attachments = exchange.Prompt, m.Get("content").Text(), images(m)
		h.Prompted(it.Text)
	default:
		it.Who = exchange.Other
	}
	return it
}

func images(m jsonv.Value) (files []msg.Attachment) {
	for image := range m.Get("images").Elems() {
		if image.Is(jsonv.String) {
			files = append(files, media.Sniffed(image))
		}
	}
	return files
}

// params adds the parameters and the tools of a request.
func params(ask *exchange.Ask, v jsonv.Value) {
	ask.Is(msg.ParamStream, strconv.FormatBool(v.Get("stream").Kind() != jsonv.False))
	o := v.Get("options")
	ask.Params(o, msg.ParamMaxTokens, "num_predict", msg.ParamTemperature, "temperature", msg.ParamTopP, "top_p", msg.ParamTopK, "top_k",
		msg.ParamSeed, "seed", msg.ParamFrequencyPenalty, "frequency_penalty", msg.ParamPresencePenalty, "presence_penalty")
	ask.Stops(o.Get("stop"))
	ask.Param(msg.ParamReasoning, v.Get("think"))
	if f := v.Get("format"); f.Equal("json") || f.Is(jsonv.Object) {
		ask.Is(msg.ParamOutputType, "json")
	}
	for t := range v.Get("tools").Elems() {
		fn := t.Get("function")
		ask.Tools.Add(ident.Of(t.Get("type")), ident.Of(fn.Get("name")), fn.Get("description"), fn.Get("parameters"))
	}
}
