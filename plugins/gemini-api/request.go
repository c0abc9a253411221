package geminiapi

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/gemini"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// request decodes a request to the model.
func request(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	if resourceRequest(x, v, out) {
		return
	}
	path, model, prompt := x.Path, v.Get("model"), ident.Of(v.Get("user_prompt_id"))
	if agent, _, one := strings.Cut(prompt, "#"); one && strings.Count(prompt, "#") == 1 {
		prompt = agent // whose turns are one run
	}
	if inner := v.Get("request"); inner.Is(jsonv.Object) { // Code Assist
		v = inner
	}
	switch {
	case strings.Contains(path, ":countTokens"), strings.Contains(path, ":embed"):
	case v.Get("contents").Is(jsonv.Array):
		contents(x, v, prompt, cmp.Or(ident.Of(model), modelOf(path)), strings.Contains(path, ":stream"), out)
		return
	case v.Get("input").Exists():
		interactionRequest(x, v, out)
		return
	}
	x.PassOver(v)
	v.Skip("contents", "content", "requests", "systemInstruction", "generateContentRequest")
}

// modelOf is the model in the path of a request: …/models/<model>:generateContent.
func modelOf(path string) string {
	_, model, _ := strings.Cut(path, "/models/")
	model, _, _ = strings.Cut(model, ":")
	return ident.Bounded(model)
}

func contents(x *exchange.Exchange, v jsonv.Value, prompt, model string, stream bool, out *decoder.Output) {
	var items []exchange.Item
	var h exchange.History
	if system := v.First("systemInstruction", "system_instruction"); system.Exists() {
		it := exchange.Item{Who: exchange.Instructions, From: system}
		if it.Text, it.Attachments = gemini.Content(parts(system)); !it.Text.IsZero() {
			items = append(items, it)
		}
	}
	for c := range v.Get("contents").Elems() {
		if c.Get("role").Equal("model") {
			items = append(items, exchange.Item{Who: exchange.Model, From: c})
			for p := range parts(c).Elems() {
				if fc := p.Get("functionCall"); fc.Is(jsonv.Object) {
					repeated(&h, fc)
				}
				if p.Get("executableCode").Is(jsonv.Object) {
					h.Next("code_execution")
				}
			}
			continue
		}
		items = user(items, &h, c)
	}
	ask := exchange.Ask{Session: ident.Of(v.Get("session_id")), Prompt: prompt, Model: model, Items: items}
	if stream {
		ask.Is(msg.ParamStream, "true")
	}
	gemini.Params(&ask, v.First("generationConfig", "generation_config"))
	gemini.Tools(&ask, v.Get("tools"))
	x.Request(out, ask)
	x.Unnamed = h.Unnamed
}

// repeated adds a call of the model that a request repeats. An id that begins with the name of
// the tool is the client's own: the response had none.
func repeated(h *exchange.History, fc jsonv.Value) {
	id, tool := ident.Peek(fc.Get("id")), ident.Peek(fc.Get("name"))
	if strings.HasPrefix(id, tool) {
		h.Called("", id, tool)
	} else {
		h.Called(id, id, tool)
	}
}

// parts are those of a content, or the content itself where it is none.
func parts(c jsonv.Value) jsonv.Value {
	if p := c.Get("parts"); p.Exists() {
		return p
	}
	return c
}

// user adds a content that is not the model's: results, and the text beside them, or a prompt.
func user(items []exchange.Item, h *exchange.History, from jsonv.Value) []exchange.Item {
	var results []exchange.Item
	for p := range parts(from).Elems() {
		if fr := p.Get("functionResponse"); fr.Is(jsonv.Object) {
			it := exchange.Item{CallID: h.Result(ident.Of(fr.Get("id")), ident.Of(fr.Get("name")))}
			it.Text, it.Attachments, it.Failed = gemini.Result(fr)
			results = append(results, it)
		}
	}
	text, files := gemini.Content(parts(from))
	items = exchange.Turn(items, from, results, text, files)
	if items[len(items)-1].Who == exchange.Prompt {
		h.Prompted(text)
	}
	return items
}
