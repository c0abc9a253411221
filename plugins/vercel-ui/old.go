package vercelui

import (
	"bytes"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// coded reports whether data are lines of version 4: a code of one letter or digit, a colon, JSON.
func coded(data []byte) bool {
	data = bytes.TrimLeft(data, " \r\n")
	return len(data) > 2 && data[1] == ':' && ('0' <= data[0] && data[0] <= '9' || 'a' <= data[0] && data[0] <= 'k')
}

// lines decodes the lines of a frame, up to one that is none.
func lines(d *stream) {
	for text := range bytes.Lines(d.Frame.Data) {
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if !coded(text) {
			d.Out.Problem(msg.ReasonInvalidJSON, "expected a code, a colon and JSON")
			return
		}
		v, ok := d.Parse(text[2:])
		if !ok {
			return
		}
		line(d, text[0], v)
	}
}

// line decodes a line of version 4, whose message has a step for each response of the model.
//
//	f:{messageId}  0:"text"  g:"thought"  b:{toolCallId, toolName}  c:{toolCallId, argsTextDelta}  9:{toolCallId, toolName, args}
//	a:{toolCallId, result}  e:{finishReason, usage: {promptTokens, completionTokens}, isContinued}  d:{finishReason, usage}  3:"error"
func line(d *stream, code byte, v jsonv.Value) {
	d.typ = "line/" + string(code)
	id := ident.Of(v.Get("toolCallId"))
	switch {
	case code == 'f':
		message := ident.Of(v.Get("messageId"))
		d.begin("", message)
		d.Message, d.Waits = message, false
		d.Step++
	case code == '0' && v.Is(jsonv.String):
		d.finish(d.Parts.Part("g"), msg.Complete) // it speaks: the thought is over
		d.Parts.Append(d.open("0", msg.Assistant, "0"), v.Text(), conversation.MaxBytes)
	case code == 'g' && v.Is(jsonv.String):
		d.Parts.Append(d.open("g", msg.Reasoning, "g"), v.Text(), conversation.MaxBytes)
	case (code == 'b' || code == 'c' || code == '9') && id != "":
		d.finish(d.Parts.Part("0"), msg.Complete)
		p := d.open("call:"+id, msg.ToolCall, id)
		if p == nil {
			return
		}
		if tool := ident.Of(v.Get("toolName")); tool != "" {
			p.Tool = tool
		}
		d.Parts.Append(p, v.Get("argsTextDelta").Text(), conversation.MaxBytes)
		if code == '9' {
			d.Parts.Clear(p)
			d.Parts.Append(p, v.Get("args").JSON(), conversation.MaxBytes)
			d.finish(p, msg.Complete)
		}
	case code == 'a' && id != "":
		d.begin("", id)
		d.result(id, v.Get("result"), "")
	case code == 'e':
		ended(d, v)
	case code == 'd':
		c := counted(v.Get("usage"))
		if d.Steps == (conversation.Counts{}) && c != (conversation.Counts{}) { // else they are those of the steps
			d.Count.Counts, d.Count.Provenance = c, msg.Provider
		}
		reason := ident.Of(v.Get("finishReason"))
		d.Run.Failed = d.Run.Failed || reason == "error"
		d.end(reason, nil)
	case code == '3':
		d.failed(v)
	default: // data, annotations, sources, files, seals
		d.begin("", d.typ)
		if m := d.status(d.typ + ":" + msg.HashKey(d.response(), string(v.Peek()))); m != nil {
			m.Content = v.Text()
		} else {
			v.MarkRead()
		}
	}
}

// ended decodes the end of a step.
func ended(d *stream, v jsonv.Value) {
	d.begin("", "e")
	for i := 0; i < len(d.Parts.Parts); {
		if p := d.Parts.Parts[i]; p.Kind == msg.ToolCall { // it may go on
			i++
		} else {
			d.finish(p, msg.Complete)
		}
	}
	if c := counted(v.Get("usage")); c != (conversation.Counts{}) && !d.Seen.Has("usage:"+d.response()) {
		d.Steps = d.Steps.Add(c)
		d.usage(conversation.Response{ID: d.response(), Run: d.Run.ID, Stop: ident.Of(v.Get("finishReason"))}, c)
	}
}

// counted reads the tokens of a step or a message, which are null where the provider has none.
func counted(u jsonv.Value) conversation.Counts {
	return conversation.Counts{Input: u.Get("promptTokens").Uint(), Output: u.Get("completionTokens").Uint()}
}
