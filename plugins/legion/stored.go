package legion

import (
	"bytes"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// stored decodes a record of generation 2 or 3: _type and data.
func (r *record) stored() {
	data := r.head.data
	a := answerOf(data)
	if len(r.id) == 0 {
		r.id = a.uuid.Chars()
	}
	r.lane = r.laneOf(a.parent)
	r.names(&a)
	switch name := read(r.head.stored); string(name) {
	case "AssistantMessage":
		r.typ = "assistant"
		r.storedAssistant(&a)
	case "UserMessage":
		r.typ = "user"
		r.storedUser(&a)
	case "ToolCallUpdate":
		r.typ = "tool_call"
		r.lifecycle(data)
	case "SystemMessage", "HookEventMessage", "TaskStartedMessage", "TaskProgressMessage", "TaskUpdatedMessage", "TaskNotificationMessage":
		r.typ = "system"
		r.system(data, data.Get("data"), a.content)
	case "ResultMessage":
		r.typ = "result"
		r.result(data, data.Get("result"))
	case "PermissionRequestMessage":
		r.typ = "permission_request"
		r.permission(data)
	case "PermissionResponseMessage":
		r.typ = "permission_response"
		r.permission(data)
	default:
		r.unknown(string(name), r.raw)
	}
}

func (r *record) storedAssistant(a *answer) {
	response := r.openResponse(a)
	if a.content.Is(jsonv.String) {
		r.emitText(a.content.Text(), response, a.fault)
	} else {
		r.blocks(a.content, response, a.fault)
	}
}

// names counts the names of the record and the session in each line as read.
func (r *record) names(a *answer) {
	known(a.uuid)
	known(a.session)
}

func (r *record) storedUser(a *answer) {
	content := a.content
	launched := a.toolUseResult.Get("isAsync").Bool() || a.toolUseResult.Get("status").Equal("async_launched")
	if content.Is(jsonv.Array) {
		r.inputBlocks(content, launched, !r.s.Open)
		return
	}
	r.input(content.Text(), r.head.metadata, !r.s.Open)
}

// inputBlocks emits the blocks of a user message, which is no prompt if it has the result of
// a call.
func (r *record) inputBlocks(list jsonv.Value, launched, prompt bool) {
	for b := range list.Elems() {
		prompt = prompt && !b.Get("tool_use_id").Exists()
	}
	for b := range list.Elems() {
		r.block(b, "", jsonv.Value{}, launched, prompt)
	}
}

// blocks emits the content blocks of a message of the model.
func (r *record) blocks(list jsonv.Value, response string, fault jsonv.Value) {
	for b := range list.Elems() {
		r.block(b, response, fault, false, false)
	}
}

// block emits one content block. Most have no type: their members distinguish them, and so
// they do where there is one.
func (r *record) block(v jsonv.Value, response string, fault jsonv.Value, launched, prompt bool) {
	b := blockOf(v)
	switch {
	case v.Is(jsonv.String):
		r.part(v.Text(), response, fault, prompt)
	case len(b.toolUse.Escaped()) > 0:
		r.returned(&b, launched)
	case b.text.Is(jsonv.String):
		r.part(b.text.Text(), response, fault, prompt)
	case b.thinking.Is(jsonv.String):
		r.emitThought(b.thinking, response, r.at)
	case len(b.id.Escaped()) > 0 && b.name.Is(jsonv.String):
		r.issue(b.id, b.name, b.input, stampOf(b.timestamp), response)
	case b.source.Is(jsonv.Object):
		if a, ok := anthropic.File(v); ok {
			m := r.add(msg.File, roleOf(r.typ))
			m.Key = r.key("/file", r.texts, msg.Plain(a.SHA256))
			m.Attachments = []msg.Attachment{a}
			r.texts++
		}
	default:
		typ := strings.Trim("block "+scalar(v.Get("type")), " ")
		r.unknown(typ, v.Raw())
	}
}

// returned emits a call's result, or records that its sub-agent was launched.
func (r *record) returned(b *block, launched bool) {
	o := outcome{failed: b.isError.Bool(), at: stampOf(b.timestamp)}
	o.text, o.files = anthropic.Content(b.content)
	r.finishOrLaunch(read(b.toolUse), o, launched)
}

// part emits a text of either side.
func (r *record) part(text msg.Text, response string, fault jsonv.Value, prompt bool) {
	if r.typ != "user" {
		r.emitText(text, response, fault)
		return
	}
	r.input(text, r.head.metadata, prompt)
}

func roleOf(typ string) msg.Role {
	if typ == "user" {
		return msg.RoleUser
	}
	return msg.RoleAssistant
}

// finishOrLaunch emits a call's result, or, where it only reports that a sub-agent works in
// the background now, records that.
func (r *record) finishOrLaunch(id []byte, o outcome, launched bool) {
	c := r.s.Calls.Get(string(id))
	if c == nil || !c.Delegates || o.failed {
		r.finish(id, o)
		return
	}
	launched = launched || bytes.HasPrefix(opening(o.text), []byte("Async agent launched"))
	switch {
	case !launched:
		r.finish(id, o)
	case !c.Launched && c.Done == ongoing:
		c.Launched = true
		m := r.status(o.text)
		m.Key = "launched:" + c.ID
		c.of(m)
		m.SetAttr("subtype", "launched")
	}
}
