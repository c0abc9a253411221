package openairesponses

import (
	"regexp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// request decodes what is sent to the model.
func request(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	input := v.Get("input")
	if !input.Exists() {
		x.PassOver()
		return
	}
	var items []exchange.Item
	if t := v.Get("instructions").Text(); !t.IsZero() {
		items = append(items, exchange.Item{Who: exchange.Instructions, Text: t})
	}
	if input.Is(jsonv.String) {
		items = append(items, exchange.Item{Who: exchange.Prompt, Text: input.Text()})
	}
	for it := range input.Elems() {
		items = append(items, said(it))
	}
	x.Request(out, session(v), exchange.Ident(v.Get("model")), items)
}

// said is one item of the input.
func said(v jsonv.Value) (it exchange.Item) {
	typ, role := v.Get("type").Str(), v.Get("role").Str()
	switch {
	case typ == "message" || typ == "" && role != "":
		it.Text, it.Attachments = content(v.Get("content"))
		switch role {
		case "assistant":
			return exchange.Item{Who: exchange.Model}
		case "system", "developer":
			it.Who = exchange.Instructions
		default:
			it.Who = exchange.Prompt
		}
	case output(typ):
		it.Who, it.CallID = exchange.Result, exchange.Ident(v.Get("call_id"))
		it.Text, it.Attachments = content(v.Get("output"))
		it.Failed = v.Get("status").Equal("failed") || v.Get("status").Equal("incomplete")
	}
	return it // reasoning, calls and references are the model's
}

func output(typ string) bool {
	const end = "_output"
	return len(typ) > len(end) && typ[len(typ)-len(end):] == end
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// session is the conversation as the client calls it.
func session(v jsonv.Value) string {
	conversation := v.Get("conversation")
	if conversation.Is(jsonv.Object) {
		conversation = conversation.Get("id")
	}
	if id := exchange.Ident(conversation); id != "" {
		return id
	}
	for _, name := range [...]string{"session_id", "conversation_id", "thread_id"} {
		if id := exchange.Ident(v.Path("metadata", name)); id != "" {
			return id
		}
	}
	if id := exchange.Ident(v.Get("prompt_cache_key")); uuid.MatchString(id) {
		return id
	}
	return exchange.Ident(v.Get("previous_response_id"))
}

// content is the text of a content, and the files in it.
func content(v jsonv.Value) (text msg.Text, files []msg.Attachment) {
	if !v.Is(jsonv.Array) {
		return v.Text(), nil
	}
	for p := range v.Elems() {
		switch typ := p.Get("type").Str(); typ {
		case "input_text", "output_text", "text":
			text = exchange.Join(text, p.Get("text").Text())
		case "input_image", "computer_screenshot":
			files = append(files, exchange.Link(p.Get("image_url")))
		case "input_file":
			a := exchange.Link(first(p, "file_data", "file_url"))
			a.Name = exchange.Ident(p.Get("filename"))
			files = append(files, a)
		default:
			text = exchange.Join(text, p.JSON())
		}
	}
	return text, files
}
