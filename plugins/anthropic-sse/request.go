package anthropicsse

import (
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// request decodes what is sent to the model.
func request(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	// count_tokens has messages too, and no answer of the model.
	if !v.Get("messages").Is(jsonv.Array) || v.Get("max_tokens").Kind() == jsonv.Missing {
		x.PassOver(v)
		return
	}
	var items []exchange.Item
	if text, files := content(v.Get("system")); !text.IsZero() {
		items = append(items, exchange.Item{Who: exchange.Instructions, Text: text, Attachments: files, From: v.Get("system")})
	}
	for m := range v.Get("messages").Elems() {
		if m.Get("role").Equal("assistant") {
			items = append(items, exchange.Item{Who: exchange.Model, From: m})
			continue
		}
		items = said(items, m)
	}
	ask := exchange.Ask{Session: session(v.Path("metadata", "user_id")), Model: ident.Of(v.Get("model")), Items: items}
	params(&ask, v)
	x.Request(out, ask)
}

// params notes what is asked for beyond the words.
func params(ask *exchange.Ask, v jsonv.Value) {
	ask.Is(msg.ParamStream, strconv.FormatBool(v.Get("stream").Bool()))
	for _, p := range [...]struct{ name, member string }{
		{msg.ParamMaxTokens, "max_tokens"}, {msg.ParamTemperature, "temperature"}, {msg.ParamTopP, "top_p"}, {msg.ParamTopK, "top_k"},
		{msg.ParamStopSequences, "stop_sequences"},
	} {
		ask.Param(p.name, v.Get(p.member))
	}
	ask.Param(msg.ParamReasoning, v.Path("output_config", "effort"))
	for t := range v.Get("tools").Elems() {
		typ := ident.Of(t.Get("type"))
		if typ == "custom" {
			typ = "function"
		}
		ask.Tools.Add(typ, ident.Of(t.Get("name")), t.Get("description"), t.Get("input_schema"))
	}
}

// said adds a user message: results, and what stands beside them, or a prompt.
func said(items []exchange.Item, from jsonv.Value) []exchange.Item {
	v, who, before := from.Get("content"), exchange.Prompt, len(items)
	for b := range v.Elems() {
		if !b.Get("type").Equal("tool_result") {
			continue
		}
		who = exchange.Beside
		text, files := content(b.Get("content"))
		items = append(items, exchange.Item{
			Who: exchange.Result, Text: text, Attachments: files,
			CallID: ident.Of(b.Get("tool_use_id")), Failed: b.Get("is_error").Bool(), From: from,
		})
	}
	if text, files := content(v); !text.IsZero() || len(files) > 0 {
		items = append(items, exchange.Item{Who: who, Text: text, Attachments: files, From: from})
	}
	if len(items) == before {
		items = append(items, exchange.Item{Who: exchange.Other, From: from})
	}
	return items
}

// content is the text of a content, and the files in it. Tool results are not in it.
func content(v jsonv.Value) (text msg.Text, files []msg.Attachment) {
	if !v.Is(jsonv.Array) {
		return v.Text(), nil
	}
	for b := range v.Elems() {
		switch typ := b.Get("type").Str(); typ {
		case "text":
			text = exchange.Join(text, b.Get("text").Text())
		case "tool_result":
		case "image", "document":
			source := b.Get("source")
			switch source.Get("type").Str() {
			case "base64":
				files = append(files, media.Base64(source.Get("data"), ident.Of(source.Get("media_type"))))
			case "url":
				files = append(files, media.URL(source.Get("url")))
			default:
				text = exchange.Join(text, b.JSON())
			}
		default:
			text = exchange.Join(text, b.JSON())
		}
	}
	return text, files
}
