package openaichat

import (
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// request decodes what is sent to the model.
func request(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	if !v.Get("messages").Is(jsonv.Array) {
		x.PassOver(v)
		return
	}
	var items []exchange.Item
	for m := range v.Get("messages").Elems() {
		it := exchange.Item{From: m}
		switch role := m.Get("role"); {
		case role.Equal("assistant"):
			it.Who = exchange.Model
		case role.Equal("function"), !m.Is(jsonv.Object): // before there were tools a call had no id but its function's name
			it.Who = exchange.Other
		case role.In("system", "developer"):
			it.Who = exchange.Instructions
			it.Text, it.Attachments = content(m.Get("content"))
		case role.Equal("tool"):
			it.Who, it.CallID = exchange.Result, exchange.Ident(m.Get("tool_call_id"))
			it.Text, it.Attachments = content(m.Get("content"))
		default:
			it.Who = exchange.Prompt
			it.Text, it.Attachments = content(m.Get("content"))
		}
		items = append(items, it)
	}
	ask := exchange.Ask{Session: session(v), Model: exchange.Ident(v.Get("model")), Items: items}
	params(&ask, v)
	x.Request(out, ask)
}

// params notes what is asked for beyond the words.
func params(ask *exchange.Ask, v jsonv.Value) {
	ask.Is(msg.ParamStream, strconv.FormatBool(v.Get("stream").Bool()))
	limit := v.Get("max_completion_tokens")
	if !limit.Is(jsonv.Number) {
		limit = v.Get("max_tokens") // as it was called before
	}
	ask.Param(msg.ParamMaxTokens, limit)
	for _, p := range [...]struct{ name, member string }{
		{msg.ParamTemperature, "temperature"}, {msg.ParamTopP, "top_p"}, {msg.ParamTopK, "top_k"}, {msg.ParamSeed, "seed"},
		{msg.ParamFrequencyPenalty, "frequency_penalty"}, {msg.ParamPresencePenalty, "presence_penalty"},
		{msg.ParamChoices, "n"}, {msg.ParamReasoning, "reasoning_effort"},
	} {
		ask.Param(p.name, v.Get(p.member))
	}
	ask.Stops(v.Get("stop"))
	ask.Output(v.Path("response_format", "type"))
	for t := range v.Get("tools").Elems() {
		typ := exchange.Ident(t.Get("type"))
		def := t.Get(typ) // function, custom
		ask.Tools.Add(typ, exchange.Ident(def.Get("name")), def.Get("description"), def.Get("parameters"))
	}
}

// session is the conversation as the client calls it.
func session(v jsonv.Value) string {
	for _, name := range [...]string{"session_id", "conversation_id", "thread_id"} {
		if id := exchange.Ident(v.Path("metadata", name)); id != "" {
			return id
		}
	}
	return ""
}

// content is the text of a content, and the files in it.
func content(v jsonv.Value) (text msg.Text, files []msg.Attachment) {
	if !v.Is(jsonv.Array) {
		return v.Text(), nil
	}
	for b := range v.Elems() {
		switch b.Get("type").Str() {
		case "text":
			text = exchange.Join(text, b.Get("text").Text())
		case "image_url":
			files = append(files, exchange.Link(b.Path("image_url", "url")))
		case "input_audio":
			files = append(files, exchange.Base64(b.Path("input_audio", "data"), "audio/"+exchange.Ident(b.Path("input_audio", "format"))))
		case "file":
			a := exchange.Link(b.Path("file", "file_data"))
			a.Name = exchange.Ident(b.Path("file", "filename"))
			files = append(files, a)
		default:
			text = exchange.Join(text, b.JSON())
		}
	}
	return text, files
}
