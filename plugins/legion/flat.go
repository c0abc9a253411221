package legion

import (
	"bytes"
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// flat decodes a record of generation 1: type, content and metadata.
func (r *record) flat() {
	meta := r.head.metadata
	a := answerOf(meta)
	if !a.parent.Exists() {
		a.parent = r.head.parent
	}
	r.lane = r.laneOf(a.parent)
	r.names(&a)
	switch name := read(r.head.typ); string(name) {
	case "assistant":
		r.typ = "assistant"
		r.flatAssistant(&a)
	case "user":
		r.typ = "user"
		r.flatUser(&a)
	case "system":
		r.typ = "system"
		r.system(meta, meta.Get("init_data"), r.head.content)
	case "result":
		r.typ = "result"
		r.result(meta, r.head.content)
	case "tool_call":
		r.typ = "tool_call"
		r.lifecycle(r.root)
	case "permission_request", "permission_response":
		r.typ = string(name)
		r.permission(meta)
	case "thinking":
		r.typ = "assistant"
		r.wake()
		thought := r.head.content
		if len(thought.Escaped()) == 0 {
			thought = a.thinkingContent
		} else if bytes.Equal(thought.Escaped(), a.thinkingContent.Escaped()) {
			a.thinkingContent.MarkRead()
		}
		r.emitThought(thought, "", r.at)
	case "tool_use":
		r.typ = "assistant"
		if c := r.issue(meta.First("tool_id", "id", "tool_use_id"), meta.First("tool_name", "name"), meta.First("tool_input", "input"), r.at, ""); c == nil {
			r.unknown("tool_use", r.raw)
		} else {
			r.head.content.Equal("Using tool: " + c.Name)
		}
	case "tool_result", "tool_error":
		r.typ = "user"
		id := read(meta.First("tool_use_id", "tool_id"))
		if len(id) == 0 {
			r.unknown(string(name), r.raw)
			break
		}
		o := outcome{failed: meta.Get("is_error").Bool() || string(name) == "tool_error"}
		o.text, o.files = anthropic.Content(r.head.content)
		r.finish(id, o)
	case "error", "exception", "warning":
		r.typ = string(name)
		r.emitError(meta)
	case "comm":
		for _, key := range [...]string{"comm", "data"} {
			if c := r.root.Get(key); c.Get("comm_id").Exists() {
				r.comm(c)
				return
			}
		}
		r.unknown("comm", r.raw)
	case "ping", "pong":
		r.typ = string(name)
		r.status(msg.Text{})
	case "state_change", "status_update", "processing", "session_start", "session_end", "channel_created",
		"project_updated", "sessions_list", "connection_established", "interrupt_response":
		r.typ = string(name)
		text := r.head.content.Text()
		if text.IsZero() {
			text = r.head.data.Text()
		}
		r.status(text)
	default:
		r.unknown(string(name), r.raw)
	}
}

func (r *record) flatAssistant(a *answer) {
	response := r.openResponse(a)
	gave := len(r.out.Messages)

	for v := range a.thinkingBlocks.Elems() {
		b := blockOf(v)
		r.emitThought(b.content, response, stampOf(b.timestamp))
	}
	if len(r.out.Messages) == gave { // else it is the same again
		r.emitThought(a.thinkingContent, response, r.at)
	}
	a.thinkingContent.MarkRead()
	content := r.head.content
	switch {
	case content.Is(jsonv.Array):
		r.blocks(content, response, jsonv.Value{})
	case !content.Equal("Assistant response"):
		r.emitText(content.Text(), response, a.fault)
	}
	r.tools(a, response)
	if len(r.out.Messages) == gave {
		r.sdkMessage(a.sdk, response)
	} else {
		a.sdk.MarkRead()
	}
}

func (r *record) flatUser(a *answer) {
	content := r.head.content
	given := r.tools(a, "")
	switch {
	case content.Is(jsonv.Array):
		r.inputBlocks(content, false, !given)
		a.sdk.MarkRead()
	case countsResults(content.Escaped()) && (given || r.head.metadata.Get("has_tool_results").Bool()):
		content.MarkRead()
		if !given {
			r.sdkMessage(a.sdk, "")
		} else {
			a.sdk.MarkRead()
		}
	default:
		a.sdk.MarkRead()
		r.input(content.Text(), r.head.metadata, !given)
	}
}

// tools emits the calls and results of a record and reports whether it has results.
func (r *record) tools(a *answer, response string) (given bool) {
	for v := range a.toolUses.Elems() {
		b := blockOf(v)
		if r.issue(b.id, b.name, b.input, stampOf(b.timestamp), response) == nil && v.Is(jsonv.Object) {
			r.unknown("tool_use", v.Raw())
		}
	}
	for v := range a.toolResults.Elems() {
		b := blockOf(v)
		if len(read(b.toolUse)) > 0 {
			r.returned(&b, false)
			given = true
		} else if v.Is(jsonv.Object) {
			r.unknown("tool_result", v.Raw())
		}
	}
	return given
}

// countsResults reports whether the text is the writer's "Tool results: N
// results", which replaces a missing text.
func countsResults(b []byte) bool {
	rest, ok := bytes.CutPrefix(b, []byte("Tool results: "))
	if !ok {
		return false
	}
	rest, ok = bytes.CutSuffix(rest, []byte(" results"))
	for _, c := range rest {
		ok = ok && '0' <= c && c <= '9'
	}
	return ok && len(rest) > 0
}

// openResponse reads the model and the usage of a response and returns its id.
func (r *record) openResponse(a *answer) (response string) {
	r.wake()
	if model := r.sc.name(a.model); model != "" {
		r.lane.Model = model
	}
	response = r.lane.responseID(a.response)
	if a.usage.Exists() {
		part := response
		if part == "" { // then each record is a response of its own
			part = "@" + string(r.id) + string(r.at.raw)
		}
		r.lane.Tokens.count(part, anthropic.Usage(a.usage), r.at.Time)
	}
	return response
}

// emitText emits a text of the model, or the error in its place.
func (r *record) emitText(text msg.Text, response string, fault jsonv.Value) {
	if text.IsZero() {
		return
	}
	l := r.lane
	if l == &r.s.Top {
		r.s.Text.Set(text)
	}
	if fault.Exists() || l.Model == "<synthetic>" {
		m := r.add(msg.Error, msg.RoleAssistant)
		m.Key, m.Content, m.IsError = r.key("/error", r.texts, text), text, true
		m.ResponseID = response
		m.Tool.ErrorType = cmp.Or(r.sc.name(fault), "api_error")
		r.texts++
		return
	}
	m := r.add(msg.Assistant, msg.RoleAssistant)
	m.Key, m.Content = r.key("/text", r.texts, text), text
	l.answer(m, response)
	r.texts++
}

// emitThought emits a reasoning text.
func (r *record) emitThought(v jsonv.Value, response string, at stamp) {
	text := v.Text()
	if text.IsZero() {
		return
	}
	m := r.add(msg.Reasoning, msg.RoleAssistant)
	m.Key, m.Content = r.key("/thinking", r.thoughts, text), text
	r.lane.answer(m, response)
	at.or(r.at).Set(m)
	r.thoughts++
}

// emitError emits an error, or a warning, which is an error that ended nothing.
func (r *record) emitError(meta jsonv.Value) {
	text := r.head.content.Text()
	if text.IsZero() {
		text = r.root.First("error_message", "message", "error").Text()
	} else if again := r.root.First("error_message", "message", "error"); bytes.Equal(again.Escaped(), r.head.content.Escaped()) {
		again.MarkRead()
	}
	kind := msg.Error
	if r.typ == "warning" {
		kind = msg.System
	}
	m := r.add(kind, msg.RoleSystem)
	m.Key, m.Content, m.IsError = r.key("", 0, text), text, kind == msg.Error
	m.SetAttr("type", r.typ)
	if t := r.sc.name(meta.Get("error_type")); t != r.typ {
		m.Tool.ErrorType = t
	}
	m.SetAttr("error_code", scalar(meta.Get("error_code")))
}

// scalar returns a string, a number or a boolean as text.
func scalar(v jsonv.Value) string {
	switch v.Kind() {
	case jsonv.String, jsonv.Number, jsonv.True, jsonv.False:
		return v.Text().String()
	}
	return ""
}
