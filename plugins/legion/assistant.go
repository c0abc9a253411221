package legion

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/pyrepr"
)

// assistant decodes a message of the model. The writer of generation 1 took thoughts, text and
// calls apart.
func (r *entry) assistant() {
	r.openResponse()
	before := len(r.Out.Messages)
	for v := range r.msg.thoughts.Elems() {
		b := blockOf(v)
		r.emitThought(b.content, b.timestamp)
	}
	if len(r.Out.Messages) == before { // else it is the same again
		r.emitThought(r.msg.thought, r.head.timestamp)
	}
	r.msg.thought.MarkRead()
	switch {
	case r.content.Is(jsonv.Array):
		r.blocks(r.content, "")
	case !r.content.Equal("Assistant response"):
		r.emitText(r.content.Text())
	}
	r.blocks(r.msg.toolUses, "tool_use")
	r.blocks(r.msg.toolResults, "tool_result")
	r.sdkMessage(before)
}

// piece decodes a thought or a call for which the writer of generation 1 has a record of its own.
func (r *entry) piece() {
	name := r.typ
	r.typ = "assistant"
	if name == "thinking" {
		r.wake()
		thought, again := r.content, r.msg.thought
		if len(thought.Escaped()) == 0 {
			thought = again
		} else {
			again.Equal(thought.PeekStr())
		}
		r.emitThought(thought, r.head.timestamp)
		return
	}
	f := r.fields
	if c := r.issue(&block{id: f.First("tool_id", "id", "tool_use_id"), name: f.First("tool_name", "name"), input: f.First("tool_input", "input")}); c == nil {
		r.unknown("tool_use", r.Frame.Data)
	} else {
		r.content.Equal("Using tool: " + c.Name)
	}
}

// openResponse reads the model, the id and the usage of a response.
func (r *entry) openResponse() {
	r.wake()
	if model := r.sc.name(r.msg.model); model != "" {
		r.lane.Model = model
	}
	id := r.msg.id
	if r.msg.turn != (jsonv.Value{}) {
		id = r.msg.turn
	}
	r.response = r.lane.responseID(id)
	if r.msg.usage.Exists() {
		part := r.response
		if part == "" { // then each record is a response of its own
			part = "@" + string(r.id) + string(r.at.raw)
		}
		r.lane.Tokens.count(part, anthropic.Usage(r.msg.usage), r.at.Time)
	}
}

// emitText emits a text of the model, or the error in its place.
func (r *entry) emitText(text msg.Text) {
	if text.IsZero() {
		return
	}
	if r.lane == &r.s.Top {
		r.s.Text.Set(text)
	}
	m := r.add(msg.Assistant, msg.RoleAssistant)
	m.Content = text
	if fault := r.msg.fault; fault.Exists() || r.lane.Model == "<synthetic>" {
		m.Kind, m.IsError, m.ResponseID = msg.Error, true, r.response
		m.Key = r.key("/error", r.texts, text)
		m.Tool.ErrorType = cmp.Or(r.sc.name(fault), "api_error")
	} else {
		m.Key = r.key("/text", r.texts, text)
		r.lane.answer(m, r.response)
	}
	r.texts++
}

// emitThought emits a reasoning text.
func (r *entry) emitThought(v, at jsonv.Value) {
	text := v.Text()
	if text.IsZero() {
		return
	}
	m := r.add(msg.Reasoning, msg.RoleAssistant)
	m.Key, m.Content = r.key("/thinking", r.thoughts, text), text
	r.lane.answer(m, r.response)
	r.at.or(at).Set(m)
	r.thoughts++
}

// block has the members of a content block, or of an entry of tool_uses or tool_results.
type block struct {
	text, thinking, id, name, input, toolUse, content, isError, source, timestamp, signature jsonv.Value
}

var blockNames = jsonv.NamesOf("text", "thinking", "id", "name", "input", "tool_use_id", "content", "is_error", "source", "timestamp", "signature")

func blockOf(v jsonv.Value) (b block) {
	blockNames.Read(v, &b.text, &b.thinking, &b.id, &b.name, &b.input, &b.toolUse, &b.content, &b.isError, &b.source, &b.timestamp, &b.signature)
	b.signature.MarkRead()
	return b
}

// blocks emits the content blocks of a message. Most have no type: their members distinguish
// them, and so they do where there is one. A list of the writer's own has objects of one type.
func (r *entry) blocks(list jsonv.Value, typ string) {
	for v := range list.Elems() {
		if typ != "" && !v.Is(jsonv.Object) {
			continue
		}
		b, text := blockOf(v), v
		if v.Is(jsonv.Object) {
			text = b.text
		}
		switch {
		case len(b.toolUse.Escaped()) > 0:
			r.s.call(r, read(b.toolUse)).finish(r, b.outcome(r.launched))
		case text.Is(jsonv.String) && r.typ == "user":
			r.input(text.Text())
		case text.Is(jsonv.String):
			r.emitText(text.Text())
		case b.thinking.Is(jsonv.String):
			r.emitThought(b.thinking, r.head.timestamp)
		case len(b.id.Escaped()) > 0 && (b.name.Is(jsonv.String) || typ == "tool_use"):
			r.issue(&b)
		default:
			r.file(v, typ)
		}
	}
}

// file emits a block that is an image or a document, and keeps any other.
func (r *entry) file(v jsonv.Value, typ string) {
	a, ok := anthropic.File(v)
	if !ok {
		r.unknown(cmp.Or(typ, strings.Trim("block "+r.sc.scalar(v.Get("type")), " ")), v.Raw())
		return
	}
	role := msg.RoleAssistant
	if r.typ == "user" {
		role = msg.RoleUser
	}
	m := r.add(msg.File, role)
	m.Key = r.key("/file", r.texts, msg.Plain(a.SHA256))
	m.Attachments = []msg.Attachment{a}
	r.texts++
}

// sdkMessage decodes raw_sdk_message of a record from which the writer took nothing else, so
// that no message was added since before. It is the agent's own message as JSON, or as Python
// prints it; any other text is left alone.
func (r *entry) sdkMessage(before int) {
	raw := r.msg.sdk
	if len(r.Out.Messages) > before {
		raw.MarkRead()
		return
	}
	if !raw.Exists() {
		raw = r.root.Get("raw_sdk_message")
	}
	data := raw.Peek()
	if raw.Is(jsonv.String) {
		data = []byte(raw.PeekStr())
	}
	var doc jsonv.Doc
	if !pyrepr.Parse(&doc, data) {
		return
	}
	raw.MarkRead()
	v := doc.Root()
	if m := v.Get("message"); m.Is(jsonv.Object) {
		v = m
	}
	if c := v.Get("content"); c.Is(jsonv.Array) {
		v = c
	}
	r.blocks(v, "")
}
