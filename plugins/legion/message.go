package legion

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/pyrepr"
)

// assistant decodes a message of the model. The writer of generation 1 took thoughts, text and
// calls apart.
func (r *entry) assistant() {
	r.wake()
	r.lane.Model = cmp.Or(r.Name(r.msg.model), r.lane.Model)
	r.response = r.StrOf(jsonv.Or(r.msg.turn, r.msg.id))
	if usage := r.msg.usage; usage.Exists() {
		part := r.response
		if part == "" { // then each record is a response of its own
			part = "@" + r.id + string(r.written)
		}
		r.lane.count(part, anthropic.Usage(usage), r.At)
	}
	before := len(r.Out.Messages)
	for v := range r.msg.thoughts.Elems() {
		r.think(v.Get("content"), v.Get("timestamp"))
	}
	all := r.msg.thought
	if r.thoughts == 0 { // else it is the same again
		r.think(all, jsonv.Value{})
	}
	all.MarkRead()
	r.said()
	r.lists()
	r.sdkMessage(before)
}

// user decodes a message to the model: results of tools, or a text. A text beside a result
// is no prompt, and neither is one of generation 2 while a turn is active: the user's prompt is
// still a record of generation 1 in the newest files, so the agent's own machinery put it there.
func (r *entry) user() {
	before, result := len(r.Out.Messages), r.msg.toolResult
	r.launched = result.Get("isAsync").Bool() || result.Get("status").Equal("async_launched")
	result.MarkRead()
	r.prompt = !hasResult(r.msg.toolResults) && !hasResult(r.content) && !(r.stored && r.s.Top.Active())
	r.lists()
	r.said()
	r.sdkMessage(before)
}

// hasResult reports whether a list of blocks has the result of a call.
func hasResult(list jsonv.Value) bool {
	for b := range list.Elems() {
		if b.Get("tool_use_id").Exists() {
			return true
		}
	}
	return false
}

// piece decodes a part of a message for which the writer of generation 1 has a record of its own.
func (r *entry) piece() {
	f, name := r.fields, r.typ
	switch name {
	case "thinking":
		r.typ = "assistant"
		r.wake()
		if r.think(r.content, jsonv.Value{}); r.thoughts == 0 {
			r.think(r.msg.thought, jsonv.Value{})
		} else {
			r.msg.thought.Equal(r.content.PeekStr())
		}
		return
	case "tool_use":
		r.typ = "assistant"
		if c := r.issue(f.First("tool_id", "id", "tool_use_id"), f.First("tool_name", "name"), f.First("tool_input", "input"), jsonv.Value{}); c != nil {
			r.content.Equal("Using tool: " + c.Name)
			return
		}
	default:
		if id := r.StrOf(f.First("tool_use_id", "tool_id")); id != "" {
			r.s.call(r, id).finish(r, outcomeOf(r.content, name == "tool_error" || f.Get("is_error").Bool(), jsonv.Value{}))
			return
		}
	}
	r.unknown(name, r.Root)
}

// said emits the content of a message, which is a text or a list of blocks.
func (r *entry) said() {
	if r.content.Is(jsonv.Array) {
		r.blocks(r.content, "")
	} else {
		r.say(r.text(""))
	}
}

// lists emits the parts that the writer of generation 1 took out of the content.
func (r *entry) lists() {
	r.blocks(r.msg.toolUses, "tool_use")
	r.blocks(r.msg.toolResults, "tool_result")
}

// blocks emits the content blocks of a message. Most have no type: their members distinguish
// them, and so they do where there is one. A list of the writer's own has objects of one type.
func (r *entry) blocks(list jsonv.Value, typ string) {
	for v := range list.Elems() {
		if typ != "" && !v.Is(jsonv.Object) {
			continue
		}
		switch of, id, text := v.Get("tool_use_id"), v.Get("id"), jsonv.Or(v.Get("text"), v); {
		case len(of.Escaped()) > 0:
			r.s.call(r, r.StrOf(of)).finish(r, outcomeOf(v.Get("content"), v.Get("is_error").Bool(), v.Get("timestamp")))
		case text.Is(jsonv.String):
			r.say(text.Text())
		case v.Get("thinking").Is(jsonv.String):
			v.Get("signature").MarkRead()
			r.think(v.Get("thinking"), jsonv.Value{})
		case len(id.Escaped()) > 0 && (v.Get("name").Is(jsonv.String) || typ == "tool_use"):
			r.issue(id, v.Get("name"), v.Get("input"), v.Get("timestamp"))
		default:
			r.file(v, typ)
		}
	}
}

// file emits a block that is an image or a document, and keeps any other.
func (r *entry) file(v jsonv.Value, typ string) {
	a, ok := anthropic.File(v)
	if !ok {
		r.unknown(cmp.Or(typ, strings.Trim("block "+r.Scalar(v.Get("type")), " ")), v)
		return
	}
	role := msg.RoleAssistant
	if r.typ == "user" {
		role = msg.RoleUser
	}
	m := r.part(msg.File, role, "/file", msg.Plain(a.SHA256))
	m.Content, m.Attachments = msg.Text{}, []msg.Attachment{a}
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
	raw = jsonv.Or(raw, r.head.sdk)
	data := raw.Chars()
	if data == nil {
		data = raw.Peek()
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

// part adds a message that is a part of the record.
func (r *entry) part(k msg.Kind, role msg.Role, name string, text msg.Text) *msg.Message {
	n := &r.texts
	if k == msg.Reasoning {
		n = &r.thoughts
	}
	m := r.add(k, role)
	m.Key, m.Content = conversation.Ordinal(r.key(name, text), n), text
	return m
}

// say emits a text of the message: input, the words of the model, or the error in their place.
func (r *entry) say(text msg.Text) {
	switch fault := r.msg.fault; {
	case text.IsZero():
		return
	case r.typ == "user":
		r.input(text)
		return
	case fault.Exists(), r.lane.Model == "<synthetic>":
		m := r.part(msg.Error, msg.RoleAssistant, "/error", text)
		m.IsError, m.ResponseID = true, r.response
		m.Tool.ErrorType = cmp.Or(r.Name(fault), "api_error")
	default:
		r.lane.answer(r.part(msg.Assistant, msg.RoleAssistant, "/text", text), r.response)
	}
	if r.lane == &r.s.Top {
		r.s.Text.Set(text)
	}
}

// think emits a reasoning text.
func (r *entry) think(v, at jsonv.Value) {
	if text := v.Text(); !text.IsZero() {
		m := r.part(msg.Reasoning, msg.RoleAssistant, "/thinking", text)
		r.lane.answer(m, r.response)
		r.time(at).Set(m)
	}
}

// time is that of a part, which may have one of its own.
func (r *entry) time(at jsonv.Value) conversation.Time { return conversation.TimeOf(at).Or(r.At) }

// input emits a text with the role user: a prompt, which begins a turn, a message of another
// minion, which does too, or a text that the agent's own machinery put there.
func (r *entry) input(text msg.Text) {
	head, meta := r.Plain(text), r.head.metadata
	switch {
	case bytes.HasPrefix(head, []byte("[Request interrupted by user")):
		r.s.Top.Stop = interrupted
		r.status("interrupt", text).Hidden = false
		return
	case bytes.HasPrefix(head, []byte("<task-notification>")):
		r.status("task_notification", text)
		r.s.notified()
		return
	case meta.Get("subtype").Equal(localCommand), meta.Get("is_" + localCommand).Bool(), bytes.HasPrefix(head, []byte("<local-command-stdout>")):
		m := r.status(localCommand, text)
		m.Kind, m.Role, m.Hidden = msg.System, msg.RoleUser, false
		return
	}
	prompt, top := r.prompt && r.texts == 0, r.lane == &r.s.Top
	key := conversation.Ordinal(r.key("", text), &r.texts)
	if prompt && top {
		r.begin(key)
	}
	m := r.add(msg.User, msg.RoleUser)
	m.Key, m.Content = key, text
	switch {
	case !top: // the agent that delegated wrote it
		m.Agent = msg.Agent{Kind: msg.KindAgent}
	case prompt:
		m.Signal = msg.RunStart
		m.Agent = msg.Agent{Name: userName, Kind: msg.KindHuman}
		sender(r.Memory, m, meta.Get("comm"))
	}
}

const localCommand = "local_command_response"
