package openairesponses

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

// request decodes a request to the model.
func request(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	input := v.Get("input")
	template := v.Get("prompt")
	if !input.Exists() && !template.Is(jsonv.Object) || strings.HasSuffix(x.Path, "/input_tokens") {
		x.PassOver(v)
		return
	}
	var items []exchange.Item
	if t := v.Get("instructions").Text(); !t.IsZero() {
		items = append(items, exchange.Item{Who: exchange.Instructions, Text: t, From: v.Get("instructions")})
	}
	if template.Is(jsonv.Object) { // the provider has the text, but for its variables
		items = append(items, exchange.Item{Who: exchange.Prompt, Text: template.JSON(), From: template})
	}
	if input.Is(jsonv.String) {
		items = append(items, exchange.Item{Who: exchange.Prompt, Text: input.Text()})
	}
	for it := range input.Elems() {
		item := inputItem(it)
		item.From = it
		items = append(items, item)
	}
	ask := exchange.Ask{Model: ident.Of(v.Get("model")), Items: items}
	ask.Session, ask.From = session(v)
	goesOn(x, v, &ask)
	params(&ask, v)
	x.Request(out, ask)
	if warm := v.Get("generate"); warm.Is(jsonv.False) {
		x.Warm = true
	}
}

// goesOn makes a request that follows a response, and has new items only, one of the same conversation, and of the same run unless
// it has a prompt. The host knows where a response of another stream was.
func goesOn(x *exchange.Exchange, v jsonv.Value, ask *exchange.Ask) {
	before := ident.Of(v.Get("previous_response_id"))
	if before == "" {
		return
	}
	ask.Prompt = before // the run of that response
	if before == x.ID {
		if ask.Prompt = x.Run; ask.Session == "" || ask.From != "" {
			ask.Session, ask.From = x.Session, "previous_response_id"
		}
	}
	for _, it := range ask.Items {
		if it.Who == exchange.Prompt {
			ask.Prompt = "run:" + msg.HashKey(before, it.Text.String())
		}
	}
	if x.Caller.Turn != "" {
		ask.Prompt = ""
	}
}

// params adds the parameters and the tools of a request.
func params(ask *exchange.Ask, v jsonv.Value) {
	ask.Is(msg.ParamStream, strconv.FormatBool(v.Get("stream").Bool()))
	ask.Params(v, msg.ParamMaxTokens, "max_output_tokens", msg.ParamTemperature, "temperature", msg.ParamTopP, "top_p")
	ask.Param(msg.ParamReasoning, v.Path("reasoning", "effort"))
	ask.Output(v.Path("text", "format", "type"))
	v.Path("text", "format").MarkRead()
	for t := range v.Get("tools").Elems() {
		ask.Tools.Add(ident.Of(t.Get("type")), ident.Of(t.Get("name")), t.Get("description"), t.Get("parameters"))
	}
}

// inputItem decodes one item of the input.
func inputItem(v jsonv.Value) (it exchange.Item) {
	typ, role := v.Get("type").PeekStr(), v.Get("role")
	switch {
	case typ == "message" || typ == "" && role.Exists():
		if role.Equal("assistant") {
			return exchange.Item{Who: exchange.Model}
		}
		it.Text, it.Attachments = openai.Content(v.Get("content"))
		it.Who = exchange.Prompt
		if role.In("system", "developer") {
			it.Who = exchange.Instructions
		}
	case typ == "program", typ == "program_output", typ == "mcp_list_tools", typ == "mcp_approval_request": // a client without a store sends the work of the provider back
		return exchange.Item{Who: exchange.Model}
	case strings.HasSuffix(typ, "_output"):
		v.Get("type").MarkRead()
		it.Who, it.CallID = exchange.Result, ident.Of(v.Get("call_id"))
		if it.Text, it.Attachments = openai.Content(v.Get("output")); typ == "tool_search_output" {
			it.Text = v.Get("tools").JSON()
		}
		it.Failed = failed(v)
	case typ == "additional_tools":
		v.MarkRead()
		it.Who = exchange.Instructions
	case typ == "reasoning", typ == "item_reference", typ == "compaction", strings.HasSuffix(typ, "_call"):
		it.Who = exchange.Model
	default:
		it.Who = exchange.Other
	}
	return it
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// session is the client's id of the conversation; from is the field that replaces it.
func session(v jsonv.Value) (id, from string) {
	conversation := v.Get("conversation")
	if conversation.Is(jsonv.Object) {
		conversation = conversation.Get("id")
	}
	if id := ident.Of(conversation); id != "" {
		return id, ""
	}
	if id := openai.Session(v.Get("metadata")); id != "" {
		return id, ""
	}
	if id := v.Get("prompt_cache_key"); uuid.MatchString(id.PeekStr()) {
		return ident.Of(id), "prompt_cache_key"
	}
	if id := ident.Of(v.Get("previous_response_id")); id != "" {
		return id, "previous_response_id"
	}
	return "", ""
}
