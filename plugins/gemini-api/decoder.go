// Package geminiapi decodes exchanges with the API of the Gemini models as a tap records them:
// generateContent and streamGenerateContent of Google AI, of Vertex AI and of Gemini Code
// Assist, and the Interactions API.
//
// Facts of the format that are easy to get wrong:
//
//   - The model of a request is in its path. Code Assist has it in the body, around the
//     request, as it has the response in {response}.
//   - usageMetadata of a later chunk replaces the earlier one: the counts of the prompt may
//     fall. It counts the thoughts apart from the candidates, and the results of the
//     provider's tools apart from the prompt.
//   - Calls have no ids, as a rule. Results name the tool, and are in the order of the calls;
//     an id that begins with the tool's name is the client's own.
//   - finishReason is STOP for calls too.
//   - Vertex AI may send a call in pieces: its name, then values with a JSONPath each, then {}.
//   - A stream without alt=sse is a list of chunks.
//   - The Interactions API has steps with ids. previous_interaction_id names the interaction that
//     a request goes on from, and the request has the new input only.
package geminiapi

import (
	"cmp"
	_ "embed"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/gemini"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return exchange.API{
		Name: "gemini-api", Revision: 3, Provider: "gcp.gen_ai", Many: true, Lines: true,
		Summary: "Gemini API: generateContent, its streams, and interactions.",
		Request: request, Event: event, Rest: unknown.NewKeeper(leavesOut),
	}.Factory()
}

// event decodes a chunk or a whole response of either API.
func event(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	if resources(x, v, out) {
		return
	}
	if inner := v.Get("response"); inner.Is(jsonv.Object) && !v.Get("candidates").Exists() {
		v = inner
	}
	typ := v.Get("event_type")
	switch fault := v.Get("error"); {
	case fault.Is(jsonv.Object):
		typ.Equal("error")
		class := ident.Of(fault.Get("status"))
		if class == "" {
			class = ident.OrNumber(fault.Get("code"))
		}
		x.Fail(out, class, fault.Get("message").Text())
	case typ.Is(jsonv.String):
		interactionEvent(x, typ, v, out)
	case v.Get("object").Equal("interaction") || v.Get("steps").Is(jsonv.Array) || v.Get("outputs").Is(jsonv.Array):
		interaction(x, v, out)
	case v.Get("candidates").Is(jsonv.Array), v.Get("usageMetadata").Is(jsonv.Object), v.Get("promptFeedback").Is(jsonv.Object):
		chunk(x, v, out)
	case v.Get("totalTokens").Is(jsonv.Number): // the answer of countTokens
	default:
		x.Unknown(out, "none", v.Raw())
	}
}

// chunk decodes a GenerateContentResponse.
func chunk(x *exchange.Exchange, v jsonv.Value, out *decoder.Output) {
	id := v.Get("responseId")
	if x.Over && id.Equal(x.ID) {
		v.Get("modelVersion").Equal(x.Model)
		if v.Get("candidates").Len() > 0 {
			x.Unknown(out, "after_end", v.Raw())
		}
		return
	}
	if id.Is(jsonv.String) || x.ID == "" || x.Over {
		x.Answer(out, id, v.Get("modelVersion"))
	}
	v.Get("modelVersion").Equal(x.Model)
	for c := range v.Get("candidates").Elems() {
		candidate(x, c, out)
	}
	if b := v.Get("promptFeedback"); b.Get("blockReason").Is(jsonv.String) {
		x.Stop = ident.Of(b.Get("blockReason"))
		x.Fail(out, x.Stop, b.Get("blockReasonMessage").Text())
	}
	if u := gemini.UsageOf(v.Get("usageMetadata")); u != (gemini.Usage{}) {
		x.Count(u.Counts())
	}
	if x.Stop != "" && x.Counted {
		x.End(out, x.Waits)
	}
}

func candidate(x *exchange.Exchange, c jsonv.Value, out *decoder.Output) {
	n := strconv.FormatInt(c.Get("index").Int(), 10)
	for p := range c.Path("content", "parts").Elems() {
		part(x, n, p, out)
	}
	for _, name := range [...]string{"groundingMetadata", "urlContextMetadata", "citationMetadata"} {
		if meta := c.Get(name); meta.Len() > 0 {
			m := x.Status(out, name+":"+msg.HashKey(x.ID, string(meta.Peek())), name)
			m.Content, m.Model, m.Provider, m.ResponseID = meta.JSON(), x.Model, x.Provider, x.ID
		}
	}
	if stop := c.Get("finishReason"); stop.Is(jsonv.String) {
		x.Stop = ident.Of(stop)
		x.CloseAll(out, n+" ")
		if why := c.Get("finishMessage"); why.Is(jsonv.String) {
			x.Fail(out, x.Stop, why.Text())
			x.Stop = ident.Of(stop)
		}
	}
}

// part decodes a part of a candidate: the next piece of a text or a thought, or a whole one of
// another kind, which ends the text before it.
func part(x *exchange.Exchange, n string, p jsonv.Value, out *decoder.Output) {
	text := p.Get("text")
	if text.Is(jsonv.String) {
		kind, name, other := msg.Assistant, n+" text", n+" thought"
		if p.Get("thought").Bool() {
			kind, name, other = msg.Reasoning, other, name
		}
		if t := text.Text(); !t.IsZero() {
			closePart(x, other, out)
			x.Piece(out, name, kind, t)
		}
		return
	}
	if fc := p.Get("functionCall"); fc.Is(jsonv.Object) {
		call(x, n, fc, out)
		return
	}
	closePart(x, n+" text", out)
	closePart(x, n+" thought", out)
	if f, ok := gemini.File(p); ok {
		x.First(out)
		x.Say(out, msg.Assistant, "").Attachments = []msg.Attachment{f}
		return
	}
	code, ran := p.Get("executableCode"), p.Get("codeExecutionResult")
	switch own, answer := p.Get("toolCall"), p.Get("toolResponse"); {
	case own.Is(jsonv.Object): // of a tool of the provider's: {id, toolType, args}
		tool := ident.Of(own.Get("toolType"))
		whole(x, cmp.Or(ident.Of(own.Get("id")), x.Unnamed.Next(tool)), tool, own.Get("args"), out)
	case answer.Is(jsonv.Object):
		id := cmp.Or(ident.Of(answer.Get("id")), strings.TrimPrefix(x.Last, "call:"))
		x.Ran(out, id, ident.Of(answer.Get("toolType"))).Content = answer.Get("response").Text()
	case code.Is(jsonv.Object):
		id := cmp.Or(ident.Of(code.Get("id")), x.Unnamed.Next("code_execution"))
		whole(x, id, "code_execution", code, out)
	case ran.Is(jsonv.Object):
		last, _ := strings.CutPrefix(x.Last, "call:")
		if id := cmp.Or(ident.Of(ran.Get("id")), last); id != "" {
			m := x.Ran(out, id, "")
			m.Content = ran.Get("output").Text()
			if outcome := ran.Get("outcome"); !outcome.Equal("OUTCOME_OK") {
				m.IsError, m.Tool.ErrorType = true, ident.Of(outcome)
			}
			return
		}
		x.Unknown(out, "codeExecutionResult", p.Raw())
	default:
		if p.Len() > 1 || !p.Get("thoughtSignature").Exists() {
			x.Unknown(out, "part", p.Raw())
		}
	}
}

func closePart(x *exchange.Exchange, name string, out *decoder.Output) {
	if p := x.Part(name); p != nil {
		x.Close(out, p)
	}
}

// whole emits a call that the provider executes.
func whole(x *exchange.Exchange, id, tool string, args jsonv.Value, out *decoder.Output) {
	x.First(out)
	x.Call(out, id, tool, args.JSON())
}

// call decodes a call, or a piece of one.
//
//	{name, args, id}  {name, willContinue}  {partialArgs: [{jsonPath, stringValue, …}], willContinue}  {}
func call(x *exchange.Exchange, n string, fc jsonv.Value, out *decoder.Output) {
	name, more := n+" call", fc.Get("willContinue").Bool()
	p := x.Part(name)
	if tool := ident.Of(fc.Get("name")); tool != "" {
		for _, before := range [...]string{n + " text", n + " thought", name} {
			closePart(x, before, out)
		}
		x.First(out)
		own := x.Unnamed.Next(tool)
		if p = x.Open(name, msg.ToolCall, cmp.Or(ident.Of(fc.Get("id")), own)); p == nil {
			return
		}
		p.Tool, x.Waits = tool, true
	}
	if p == nil {
		if fc.Len() > 0 {
			x.Unknown(out, "functionCall", fc.Raw())
		}
		return
	}
	if args := fc.Get("args"); args.Is(jsonv.Object) {
		x.Append(p, args.JSON(), maxArguments)
	}
	for piece := range fc.Get("partialArgs").Elems() {
		before := len(p.Text)
		if !set(p, piece) {
			p.Cut = true
			x.Unknown(out, "partialArgs", piece.Raw())
		}
		x.Bytes += len(p.Text) - before
	}
	if !more {
		x.Close(out, p)
	}
}
