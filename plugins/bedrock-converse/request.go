package bedrockconverse

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/chat"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/messages"
)

// request decodes a request to a model.
func request(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	model, stream := modelOf(x.Path), strings.Contains(x.Path, "-stream")
	switch {
	case strings.HasSuffix(x.Path, "/count-tokens"), strings.Contains(x.Path, "/guardrail/"): // it asks no model
		x.PassOver(v)
		v.Skip("source", "content")
	case v.Get("anthropic_version").Exists():
		v.Get("anthropic_version").MarkRead()
		x.Request(out, messages.Ask(v, model, stream))
	case chats(v.Get("messages")):
		x.Request(out, chat.Ask(nil, v, model, stream))
	case v.Get("messages").Is(jsonv.Array):
		x.Request(out, ask(v, model, stream))
		if strings.Contains(model, "prompt-router/") { // it is none that answers
			x.Model = ""
		}
	case v.First("embeddingTypes", "input_type", "singleEmbeddingParams", "dimensions", "normalize").Exists(), v.Get("documents").Exists() && v.Get("query").Exists():
		x.PassOver(v) // it has no conversation
		v.Skip("texts", "query", "documents", "inputText", "singleEmbeddingParams", "input_type", "taskType")
	case v.First("prompt", "inputText", "message").Is(jsonv.String):
		text := v.First("prompt", "inputText", "message")
		v.Get("chat_history").MarkRead()
		x.Request(out, exchange.Ask{Model: model, Items: []exchange.Item{{Who: exchange.Prompt, Text: text.Text(), From: text}}})
	default:
		x.PassOver(v)
	}
}

// chats reports whether messages are those of Chat Completions, as OpenAI's models on Bedrock and many others have them: contents are texts, or
// lists of parts that have a type.
func chats(list jsonv.Value) bool {
	for m := range list.Elems() {
		if m.Get("content").Is(jsonv.String) {
			return true
		}
		for p := range m.Get("content").Elems() {
			return p.Get("type").Is(jsonv.String)
		}
	}
	return false
}

// ask reads a request of Converse; Nova's own is alike.
func ask(v jsonv.Value, model string, stream bool) exchange.Ask {
	var items []exchange.Item
	for s := range v.Get("system").Elems() {
		items = exchange.Instruct(items, s.Get("text").Text(), s)
	}
	items = exchange.Messages(items, v.Get("messages"), "assistant", userItems)
	a := exchange.Ask{Model: model, Items: items, Session: ident.Of(v.Path("requestMetadata", "session_id"))}
	a.Is(msg.ParamStream, strconv.FormatBool(stream))
	a.Params(v.Get("inferenceConfig"), msg.ParamMaxTokens, "maxTokens", msg.ParamTemperature, "temperature", msg.ParamTopP, "topP", msg.ParamStopSequences, "stopSequences")
	a.Param(msg.ParamTopK, v.Path("additionalModelRequestFields", "top_k"))
	for t := range v.Path("toolConfig", "tools").Elems() {
		spec := t.Get("toolSpec")
		if name := ident.Of(spec.Get("name")); name != "" {
			a.Tools.Add("function", name, spec.Get("description"), spec.Path("inputSchema", "json"))
		} else if name := ident.Of(t.Path("systemTool", "name")); name != "" {
			a.Tools.Add("systemTool", name, jsonv.Value{}, jsonv.Value{})
		}
	}
	return a
}

// userItems adds a user message: results, and the text beside them, or a prompt.
func userItems(items []exchange.Item, from jsonv.Value) []exchange.Item {
	var own conversation.Content
	var results []exchange.Item
	from.Get("role").Equal("user")
	for b := range from.Get("content").Elems() {
		r := b.Get("toolResult")
		if !r.Is(jsonv.Object) {
			block(b, &own)
			continue
		}
		c := contentOf(r.Get("content"))
		results = append(results, exchange.Item{CallID: ident.Of(r.Get("toolUseId")), Failed: r.Get("status").Equal("error"), Text: c.Joined(), Attachments: c.Files})
		r.Get("status").Equal("success")
	}
	return exchange.Turn(items, from, results, own.Joined(), own.Files)
}

// contentOf reads a list of blocks.
func contentOf(list jsonv.Value) (c conversation.Content) {
	for b := range list.Elems() {
		block(b, &c)
	}
	return c
}

// block reads a block: text, json, or {image | document | video: {format, name, source: {bytes | s3Location | text}}}.
func block(b jsonv.Value, to *conversation.Content) {
	switch {
	case b.Get("text").Is(jsonv.String):
		to.Add(b.Get("text").Text())
		return
	case b.Get("json").Kind() != jsonv.Missing:
		to.Add(b.Get("json").JSON())
		return
	case b.Get("cachePoint").Exists():
		return
	}
	for _, kind := range [...]string{"image", "document", "video"} {
		f := b.Get(kind)
		if !f.Is(jsonv.Object) {
			continue
		}
		source, mediaType := f.Get("source"), ident.Of(f.Get("format"))
		if kind != "document" {
			mediaType = kind + "/" + mediaType
		}
		if text := source.Get("text"); text.Is(jsonv.String) { // of a document, which may have it in place of the bytes
			to.Add(text.Text())
		}
		a := media.Of(source.Get("bytes"), source.Path("s3Location", "uri"), mediaType)
		a.Name = ident.Of(f.Get("name"))
		to.Attach(a)
		return
	}
	to.Add(b.JSON())
}
