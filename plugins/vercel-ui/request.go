package vercelui

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// request decodes the request of a chat: its prompt, or the answers to the calls of its last
// message. The messages before them are of earlier runs.
//
//	{"id":"<chat>","messages":[{"id":"…","role":"user","parts":[…]}],"trigger":"submit-message"}
func (d *stream) request(v jsonv.Value) {
	d.typ, d.Waits = "", false
	d.Session = cmp.Or(ident.First(v.Get("id"), v.Get("chatId")), d.Session)
	list := v.Get("messages")
	var prompt, last jsonv.Value
	for m := range list.Elems() {
		m.MarkRead() // a copy, unless it is one of the two
		if last = m; m.Get("role").Equal("user") {
			prompt = m
		}
	}
	if one := v.Get("message"); one.Is(jsonv.Object) {
		if last = one; one.Get("role").Equal("user") {
			prompt = one
		}
	}
	if !last.Exists() {
		d.unknown(v)
		return
	}
	if id := ident.Of(prompt.Get("id")); id != "" {
		d.begin(id+again(v, last), "")
	} else {
		d.begin("", string(last.Get("id").Peek()))
	}
	if last.Get("role").Equal("assistant") {
		d.answers(last)
	} else {
		d.Message, d.Step = "", 0
		d.prompt(last)
	}
	if m := d.status("request:" + msg.HashKey(d.Run.ID, string(last.Peek()))); m != nil {
		conversation.AttrsAs(m, v, ident.Of, "trigger", "message_id=messageId")
		if last.Get("role").Equal("assistant") { // the run that paused goes on
			m.Signal = msg.RunResume
		}
	}
}

// again is the end of the id of a run that works on a prompt once more: the chat has its answer written again, or the user
// has edited it. Then the request names that message. It is empty for any other run.
func again(v, last jsonv.Value) string {
	trigger, message := v.Get("trigger"), ident.Peek(v.Get("messageId"))
	if last.Get("role").Equal("user") && (trigger.Equal("regenerate-message") || message != "") {
		facts := []string{trigger.PeekStr(), message}
		for p := range last.Get("parts").Elems() {
			facts = append(facts, p.Get("text").PeekStr())
		}
		return "/" + msg.HashKey(facts...)[:8]
	}
	return ""
}

func (d *stream) prompt(v jsonv.Value) {
	var texts conversation.Texts
	var files []msg.Attachment
	for p := range v.Get("parts").Elems() {
		switch {
		case p.Get("text").Is(jsonv.String):
			p.Get("type").Equal("text")
			texts.Add(p.Get("text").Text())
		case p.Get("type").Equal("file") && p.Get("url").Is(jsonv.String):
			f := media.URL(p.Get("url"))
			f.MediaType, f.Name = cmp.Or(ident.Of(p.Get("mediaType")), f.MediaType), ident.Of(p.Get("filename"))
			files = append(files, f)
		default:
			texts.Add(p.JSON())
		}
	}
	if content := v.Get("content"); texts.N == 0 && content.Is(jsonv.String) { // before version 5
		texts.Add(content.Text())
	}
	key := d.Run.ID // made of its id
	if ident.Of(v.Get("id")) == "" {
		key = "prompt:" + msg.HashKey(d.Run.ID, texts.Joined().String())
	}
	m := d.add(msg.User, key)
	m.Role, m.Content, m.Attachments, m.Agent.Kind = msg.RoleUser, texts.Joined(), files, msg.KindHuman
}

// answers decodes the results and approvals in the last step of the assistant's message.
func (d *stream) answers(v jsonv.Value) {
	d.Message, d.Step = ident.Of(v.Get("id")), 0
	for p := range v.Get("parts").Elems() {
		if p.Get("type").Equal("step-start") {
			d.Step++
		}
	}
	step := 0
	for p := range v.Get("parts").Elems() {
		if p.Get("type").Equal("step-start") {
			step++
		}
		id, state := ident.Of(p.Get("toolCallId")), p.Get("state")
		if step < d.Step || id == "" {
			continue
		}
		before := len(d.Out.Messages)
		switch approval := p.Get("approval"); {
		case state.Equal("output-available"):
			d.result(id, p.Get("output"), "")
		case state.Equal("output-error"):
			d.result(id, p.Get("errorText"), "tool_error")
		case state.Equal("output-denied"):
			d.result(id, approval.Get("reason"), "denied")
		case approval.Exists() && state.Equal("approval-responded"):
			given := ident.Of(approval.Get("id"))
			d.Calls.Add(&call{Call: conversation.Call{ID: d.unique(id), Name: toolOf(p)}, Approval: given})
			d.answered(given, approval.Get("approved").Bool(), approval.Get("reason"))
		}
		for i := before; i < len(d.Out.Messages); i++ {
			m := &d.Out.Messages[i]
			if m.Tool.Name = toolOf(p); m.Kind == msg.ToolResult {
				m.Complete = msg.Summary // of a tool of the server the stream had it
			}
		}
	}
}

// toolOf is the tool in a part of a message: tool-<name>, or dynamic-tool with its name.
func toolOf(p jsonv.Value) string {
	name, _ := strings.CutPrefix(ident.Peek(p.Get("type")), "tool-")
	return cmp.Or(ident.Of(p.Get("toolName")), name)
}
