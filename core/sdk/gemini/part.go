package gemini

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/exchange"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Sources adds what the model has read for its answer, a hidden status each.
func Sources(x *exchange.Exchange, c jsonv.Value, out *decoder.Output) {
	exchange.Notes(x, out, c, "groundingMetadata", "urlContextMetadata", "citationMetadata")
}

// Part decodes a part of the candidate n: the next piece of a text or a thought, or a whole one of
// another kind, which ends the text before it.
func Part(x *exchange.Exchange, n string, p jsonv.Value, out *decoder.Output) {
	text := p.Get("text")
	if text.Is(jsonv.String) {
		kind, name, other := msg.Assistant, n+" text", n+" thought"
		if p.Get("thought").Bool() {
			kind, name, other = msg.Reasoning, other, name
		}
		if t := text.Text(); !t.IsZero() {
			x.Close(out, x.Part(other))
			x.Piece(out, name, kind, t)
		}
		return
	}
	if fc := p.Get("functionCall"); fc.Is(jsonv.Object) {
		Call(x, n, fc, out)
		return
	}
	x.Close(out, x.Part(n+" text"))
	x.Close(out, x.Part(n+" thought"))
	if f, ok := File(p); ok {
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
			if outcome := ran.Get("outcome"); !outcome.Equal("OUTCOME_OK") && outcome.Int() != 1 {
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

// whole emits a call that the provider executes.
func whole(x *exchange.Exchange, id, tool string, args jsonv.Value, out *decoder.Output) {
	x.First(out)
	x.Call(out, id, tool, args.JSON())
}

// Call decodes a call, or a piece of one.
//
//	{name, args, id}  {name, willContinue}  {partialArgs: [{jsonPath, stringValue, …}], willContinue}  {}
func Call(x *exchange.Exchange, n string, fc jsonv.Value, out *decoder.Output) {
	name, more := n+" call", fc.Get("willContinue").Bool()
	p := x.Part(name)
	if tool := ident.Of(fc.Get("name")); tool != "" {
		for _, before := range [...]string{n + " text", n + " thought", name} {
			x.Close(out, x.Part(before))
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
		x.Append(p, args.JSON(), conversation.MaxBytes)
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
