package agui

import (
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
func (r *record) request() {
	r.start()
	r.messages(r.root.Get("messages"), msg.Complete, "assistant", false)
	m := r.status("request:" + r.Run.ID)
	m.SetAttr("parent_run_id", r.id("parentRunId", "parent_run_id"))
	m.SetAttr("resume", conversation.ShortJSON(r.root.Get("resume")))
}

// messages decodes a list that repeats the conversation: those behind the last message of that
// role, and that one too if it is included.
func (r *record) messages(list jsonv.Value, complete msg.Completeness, role string, included bool) {
	from, n := 0, 0
	for v := range list.Elems() {
		n++
		if v.Get("role").Equal(role) {
			if from = n; included {
				from--
			}
		}
	}
	n = 0
	for v := range list.Elems() {
		if n++; n <= from && !v.Get("role").In("system", "developer") {
			v.MarkRead() // a copy
			continue
		}
		r.message(v, complete)
	}
}

// message decodes a message of a list.
func (r *record) message(v jsonv.Value, complete msg.Completeness) {
	id, role, content := ident.Of(v.Get("id")), v.Get("role"), v.Get("content")
	if role.Equal("tool") {
		r.result(ident.Of(v.First("toolCallId", "tool_call_id")), content, id)
		return
	}
	if role.Equal("activity") {
		m := r.status("ACTIVITY_SNAPSHOT:" + msg.HashKey(r.Run.ID, id, string(content.Peek())))
		m.Content = content.Text()
		m.SetAttr("name", ident.Of(v.Get("activityType")))
		m.SetAttr("message_id", id)
		return
	}
	var texts conversation.Texts
	var attachments []msg.Attachment
	if !content.Is(jsonv.Array) {
		texts.Add(content.Text())
	}
	for part := range content.Elems() {
		source := part.Get("source")
		switch data, url := part.Get("data"), part.Get("url"); {
		case part.Get("text").Is(jsonv.String):
			texts.Add(part.Get("text").Text())
		case data.Is(jsonv.String):
			attachments = append(attachments, media.Base64(data, ident.Of(part.Get("mimeType"))))
		case url.Is(jsonv.String):
			attachments = append(attachments, media.URL(url))
		case source.Get("type").Equal("url"):
			attachments = append(attachments, media.URL(source.Get("value")))
		case source.Get("value").Is(jsonv.String):
			attachments = append(attachments, media.Base64(source.Get("value"), ident.Of(source.Get("mimeType"))))
		}
	}
	key := r.unique(id)
	if id == "" {
		key = "message:" + msg.HashKey(r.Run.ID, string(role.Peek()), texts.Joined().String())
	}
	p := &conversation.Part{Kind: kindOf(role), Key: key, Text: texts.Joined().Append(nil)}
	if !p.Empty() || attachments != nil {
		if m := r.emit(p, complete); m != nil {
			m.Attachments = attachments
		}
	}
	for c := range v.First("toolCalls", "tool_calls").Elems() {
		function := c.Get("function")
		call := &conversation.Part{Kind: msg.ToolCall, Key: key, CallID: r.unique(ident.Of(c.Get("id"))), Tool: ident.Of(function.Get("name"))}
		if call.Text = function.Get("arguments").Text().Append(nil); call.CallID != "" {
			r.emit(call, complete)
		}
	}
}
