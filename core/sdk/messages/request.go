package messages

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Request decodes a request to the model. One to count tokens is passed over.
func Request(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	// count_tokens has messages too, and no answer of the model. max_tokens is required, and who leaves it out is told so; other servers take
	// a limit of their own.
	if !v.Get("messages").Is(jsonv.Array) || v.Get("max_tokens").Kind() == jsonv.Missing && !strings.HasSuffix(x.Path, "/messages") {
		x.PassOver(v)
		return
	}
	model := cmp.Or(ident.Of(v.Get("model")), exchange.ModelIn(x.Path, "models"))
	x.Request(out, Ask(v, model, v.Get("stream").Bool()))
}

// Ask reads a request whose model, and whether it streams, may be in its path.
func Ask(v jsonv.Value, model string, stream bool) exchange.Ask {
	var items []exchange.Item
	if text, files := anthropic.Content(v.Get("system")); !text.IsZero() {
		items = append(items, exchange.Item{Who: exchange.Instructions, Text: text, Attachments: files, From: v.Get("system")})
	}
	items = exchange.Messages(items, v.Get("messages"), "assistant", userItems)
	ask := exchange.Ask{Session: session(v.Path("metadata", "user_id")), Model: model, Items: items, Prompt: prompt(v.Get("system"))}
	ask.Is(msg.ParamStream, strconv.FormatBool(stream))
	params(&ask, v)
	return ask
}

// prompt returns the id of the prompt that Claude Code writes into the first of its instructions,
// beside the session:
//
//	x-anthropic-billing-header: cc_version=…; cc_entrypoint=cli; cc_prompt_id=…;
func prompt(system jsonv.Value) string {
	for b := range system.Elems() {
		text := b.Get("text")
		if !text.HasPrefix("x-anthropic-billing-header:") {
			continue
		}
		for _, part := range strings.Split(string(text.Peek()), ";") {
			if id, ok := strings.CutPrefix(strings.TrimSpace(part), "cc_prompt_id="); ok {
				return ident.Bounded(id)
			}
		}
	}
	return ""
}

// params adds the parameters of the request.
func params(ask *exchange.Ask, v jsonv.Value) {
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

// userItems adds a message that is not the model's: results, and the text beside them, or a prompt; instructions, if it
// is the system's or in a block of it.
//
//	{role: system, content: text | [text | tool_addition | …]}  {type: mid_conv_system, content: [text | …]}
func userItems(items []exchange.Item, from jsonv.Value) []exchange.Item {
	v := from.Get("content")
	if from.Get("role").Equal("system") {
		text, files := anthropic.Content(v)
		return append(items, exchange.Item{Who: exchange.Instructions, Text: text, Attachments: files, From: from})
	}
	var results []exchange.Item
	var own, system anthropic.Blocks
	for b := range v.Elems() {
		switch typ := b.Get("type"); {
		case typ.Equal("tool_result"):
			text, files := anthropic.Content(b.Get("content"))
			results = append(results, exchange.Item{Text: text, Attachments: files, CallID: ident.Of(b.Get("tool_use_id")), Failed: b.Get("is_error").Bool()})
		case typ.PeekStr() == "mid_conv_system":
			system.Add(b)
		default:
			own.Add(b)
		}
	}
	text := own.Text()
	if !v.Is(jsonv.Array) {
		text = v.Text()
	}
	if told := system.Text(); !told.IsZero() {
		if items = append(items, exchange.Item{Who: exchange.Instructions, Text: told, From: from}); len(results) == 0 && text.IsZero() && len(own.Files) == 0 {
			return items
		}
	}
	return exchange.Turn(items, from, results, text, own.Files)
}
