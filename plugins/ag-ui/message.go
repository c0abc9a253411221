package agui

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// kindOf is the kind of a message of that role.
func kindOf(role jsonv.Value) msg.Kind {
	switch {
	case role.Equal("user"):
		return msg.User
	case role.In("system", "developer"):
		return msg.System
	case role.Equal("reasoning"):
		return msg.Reasoning
	}
	role.Equal("assistant")
	return msg.Assistant
}

// request decodes the request of a run, RunAgentInput: its prompt, or the results of tools that
// the user interface executed. The messages before them are of earlier runs.
func (d *stream) request() {
	d.start()
	d.messages(d.Root.Get("messages"), msg.Complete, "assistant", false)
	m := d.status("request:" + d.Run.ID)
	m.SetAttr("parent_run_id", d.id("parentRunId", "parent_run_id"))
	if resume := d.Root.Get("resume"); resume.Exists() {
		m.Signal = msg.RunResume
		m.SetAttr("resume", conversation.ShortJSON(resume))
	}
}

// messages decodes a list that repeats the conversation: those behind the last message of that
// role, and that one too if it is included.
func (d *stream) messages(list jsonv.Value, complete msg.Completeness, role string, included bool) {
	all := slices.Collect(list.Elems())
	from := len(all)
	for from > 0 && !all[from-1].Get("role").Equal(role) {
		from--
	}
	if from > 0 && included {
		from--
	}
	for i, v := range all {
		if i < from && !v.Get("role").In("system", "developer") {
			v.MarkRead() // a copy
		} else {
			d.message(v, complete)
		}
	}
}

// message decodes a message of a list.
func (d *stream) message(v jsonv.Value, complete msg.Completeness) {
	id, role, content := ident.Of(v.Get("id")), v.Get("role"), v.Get("content")
	switch {
	case role.Equal("tool"):
		d.result(ident.Of(v.First("toolCallId", "tool_call_id")), content, id)
		return
	case role.Equal("activity"):
		d.notice("ACTIVITY_SNAPSHOT", v)
		return
	}
	var has conversation.Content
	for part := range jsonv.Each(content) {
		file := part.Get("source")
		if !file.Exists() { // before version 0.1
			file = part
		}
		data, url := file.First("value", "data"), file.Get("url")
		if file.Get("type").Equal("url") {
			data, url = jsonv.Value{}, file.First("value", "url")
		}
		switch {
		case part.Is(jsonv.String):
			has.Add(part.Text())
		case part.Get("text").Is(jsonv.String):
			has.Add(part.Get("text").Text())
		case data.Exists() || url.Exists():
			has.Attach(media.Of(data, url, ident.Of(file.Get("mimeType"))))
		}
	}
	kind := kindOf(role)
	key := d.keyOf(kind, id)
	if id == "" {
		key = "message:" + msg.HashKey(d.Run.ID, string(role.Peek()), has.Joined().String())
	}
	p := &conversation.Part{Kind: kind, Key: key, Text: has.Joined().Append(nil)}
	if !p.Empty() || has.Files != nil {
		if m := d.emit(p, complete); m != nil {
			m.Attachments = has.Files
		}
	}
	for c := range v.First("toolCalls", "tool_calls").Elems() {
		function := c.Get("function")
		call := &conversation.Part{Kind: msg.ToolCall, Key: key, CallID: d.unique(ident.Of(c.Get("id"))), Tool: ident.Of(function.Get("name"))}
		if call.Text = function.Get("arguments").Text().Append(nil); call.CallID != "" {
			d.emit(call, complete)
		}
	}
}
