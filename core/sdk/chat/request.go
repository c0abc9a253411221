package chat

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

// Request decodes a request to the model.
func Request(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	var items []exchange.Item
	prompt := v.Get("prompt")
	switch old := strings.HasSuffix(x.Path, "/completions") && prompt.Exists(); {
	case old && !v.Get("messages").Exists(): // a completion, as there were before there was chat
		it := exchange.Item{Who: exchange.Prompt, From: prompt}
		it.Text, it.Attachments = openai.Content(prompt)
		items = append(items, it)
	case !v.Get("messages").Is(jsonv.Array):
		x.PassOver(v)
		return
	}
	model := cmp.Or(ident.Of(v.Get("model")), exchange.ModelIn(x.Path, "deployments"))
	x.Request(out, Ask(items, v, model, v.Get("stream").Bool()))
}

// Ask reads a request to a model. It adds its messages to items.
func Ask(items []exchange.Item, v jsonv.Value, model string, stream bool) exchange.Ask {
	for m := range v.Get("messages").Elems() {
		it := exchange.Item{From: m}
		switch role := m.Get("role"); {
		case role.Equal("assistant"):
			it.Who = exchange.Model
		case role.Equal("function"), !m.Is(jsonv.Object): // before there were tools a call had no id but its function's name
			it.Who = exchange.Other
		case role.In("system", "developer"):
			it.Who = exchange.Instructions
			it.Text, it.Attachments = openai.Content(m.Get("content"))
		case role.Equal("tool"):
			it.Who, it.CallID = exchange.Result, ident.Of(m.Get("tool_call_id"))
			it.Text, it.Attachments = openai.Content(m.Get("content"))
		default:
			it.Who = exchange.Prompt
			it.Text, it.Attachments = openai.Content(m.Get("content"))
		}
		items = append(items, it)
	}
	ask := exchange.Ask{Session: openai.Session(v.Get("metadata")), Model: model, Items: items}
	ask.Is(msg.ParamStream, strconv.FormatBool(stream))
	params(&ask, v)
	return ask
}

// params adds the parameters and the tools of a request.
func params(ask *exchange.Ask, v jsonv.Value) {
	limit := v.Get("max_completion_tokens")
	if !limit.Is(jsonv.Number) {
		limit = v.Get("max_tokens") // as it was called before
	}
	ask.Param(msg.ParamMaxTokens, limit)
	ask.Params(v, msg.ParamTemperature, "temperature", msg.ParamTopP, "top_p", msg.ParamTopK, "top_k", msg.ParamSeed, "seed",
		msg.ParamFrequencyPenalty, "frequency_penalty", msg.ParamPresencePenalty, "presence_penalty", msg.ParamChoices, "n", msg.ParamReasoning, "reasoning_effort")
	ask.Stops(v.Get("stop"))
	ask.Output(v.Path("response_format", "type"))
	for t := range v.Get("tools").Elems() {
		typ := ident.Of(t.Get("type"))
		def := t.Get(typ) // function, custom
		ask.Tools.Add(typ, ident.Of(def.Get("name")), def.Get("description"), def.Get("parameters"))
	}
}
