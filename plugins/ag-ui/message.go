package agui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
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

// requested decodes a request. CopilotKit sends those of all agents to one address, in an object with the method.
func (d *stream) requested() bool {
	path, _, _ := strings.Cut(d.Frame.Name, "?")
	connects := strings.Contains(path, "/agent/") && strings.HasSuffix(path, "/connect")
	agent := ident.Below(path, "/agent/")
	if body := d.Root.Get("body"); body.Get("messages").Is(jsonv.Array) {
		connects, agent = d.Root.Get("method").Equal("agent/connect"), ident.Of(d.Root.Path("params", "agentId"))
		d.Root.Get("method").Equal("agent/run")
		d.Root = body
	}
	if !d.Root.Get("messages").Is(jsonv.Array) {
		return false
	}
	if d.Past = connects; !connects {
		d.request().SetAttr("agent_id", agent)
		return true
	}
	// A user interface shows a thread again. No run begins: the response has the events of its runs once more.
	d.Session = cmp.Or(d.id("threadId", "thread_id"), d.Session)
	d.Root.Get("messages").MarkRead() // those that the user interface has
	d.Run = conversation.Run{}
	d.status("connect:"+d.id("runId", "run_id")).SetAttr("agent_id", agent)
	return true
}

// past makes the messages of an event that is sent once more those of a history, from the first on. They have no time, so
// a run that they belonged to would last until now.
func past(out *decoder.Output, first int) {
	for i := range out.Messages[first:] {
		m := &out.Messages[first+i]
		if m.Kind == msg.ToolCall {
			m.SetAttr("message_id", m.ResponseID)
		}
		m.Key, m.Run, m.Signal, m.ResponseID, m.Usage = "history:"+m.Key, "", msg.NoSignal, "", msg.Tokens{}
		m.Complete = min(m.Complete, msg.Summary)
		switch m.Kind {
		case msg.Stop, msg.Usage:
			m.Kind, m.FinishReason = msg.Status, ""
		case msg.Status, msg.Unknown:
		default:
			m.SetAttr("type", msg.History)
		}
	}
}

// request decodes the request of a run, RunAgentInput: its prompt, or the results of tools that
// the user interface executed. The messages before them are of earlier runs.
func (d *stream) request() *msg.Message {
	before := d.Run.ID
	d.start()
	d.asked(before, d.Root)
	m := d.status("request:" + d.Run.ID)
	m.SetAttr("parent_run_id", d.id("parentRunId", "parent_run_id"))
	if resume := jsonv.Or(d.Root.Get("resume"), d.Root.Path("forwardedProps", "command", "resume")); resume.Exists() { // the latter by clients of LangGraph
		m.Signal = msg.RunResume
		m.SetAttr("resume", conversation.ShortJSON(resume))
	}
	return m
}

// asked decodes the messages of a request. The results in it are of calls of the run before.
func (d *stream) asked(before string, v jsonv.Value) {
	d.asks = cmp.Or(before, d.id("parentRunId", "parent_run_id"))
	d.messages(v.Get("messages"), msg.Complete, "assistant", false)
	d.asks = ""
}

// messages decodes a list that repeats the conversation: those behind the last message of that
// role, and that one too if it is included.
func (d *stream) messages(list jsonv.Value, complete msg.Completeness, role string, included bool) {
	d.ids, d.had = make(map[string]string), make(map[conversation.Sum]int)
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
		call := ident.Of(v.First("toolCallId", "tool_call_id"))
		d.result(cmp.Or(d.ids[call], call), content, v.Get("error"), id)
		return
	case role.Equal("activity"):
		d.notice("ACTIVITY_SNAPSHOT", v)
		return
	}
	var has conversation.Content
	for part := range jsonv.Each(content) {
		file := jsonv.Or(part.Get("source"), part) // the latter before version 0.1
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
		own := ident.Of(c.Get("id"))
		call := &conversation.Part{Kind: msg.ToolCall, Key: key, CallID: d.unique(own), Tool: ident.Of(function.Get("name"))}
		call.Text = function.Get("arguments").Text().Append(nil)
		if d.ids[own] = d.known(call); d.ids[own] == "" && own != "" {
			d.emit(call, complete)
		}
	}
}

// known returns the id that the run has for a call of a list: that of the n-th call with the name and the arguments.
func (d *stream) known(p *conversation.Part) string {
	sum := sumOf(p)
	n := d.had[sum]
	d.had[sum]++
	for _, a := range d.Asked {
		if a.Sum == sum {
			if n == 0 {
				return a.ID
			}
			n--
		}
	}
	return ""
}

// sumOf is that of a call's name and arguments, however they are spaced.
func sumOf(p *conversation.Part) conversation.Sum {
	return conversation.SumOf(p.Tool + " " + strings.Join(strings.Fields(p.Arguments().String()), ""))
}
