package claudecode

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// The files of a team of agents, which are rewritten when it changes. They name no session but
// the lead's, so that a team is a session of its own, with its name:
//
//	teams/<team>/config.json            {"name":…,"leadAgentId":…,"leadSessionId":…,"members":[{"agentId":"<name>@<team>","model":…}]}
//	teams/<team>/inboxes/<name>.json    [{"from":…,"text":…,"summary":…,"timestamp":…,"color":…,"read":false}]
//	tasks/<team>/<number>.json          {"id":…,"subject":…,"description":…,"activeForm":…,"owner":…,"status":…,"blocks":[…],"blockedBy":[…]}
//
// Without a team the tasks are those of a session, whose id the folder has.

// team decodes config.json: who is in the team.
func (d *transcript) team(ln *claude.Line) {
	root := ln.Root
	ln.Name = cmp.Or(ident.Of(root.Get("name")), d.file.team, d.file.session, "unknown")
	ln.Time = conversation.TimeOf(root.Get("createdAt"))
	m := ln.Status("team", "team")
	m.Title = ln.Name
	m.Content = root.Get("description").Text()
	conversation.AttrsAs(m, root, ident.Of, "lead_agent=leadAgentId", "lead_session=leadSessionId")
	for v := range root.Get("members").Elems() {
		name := ident.Of(v.Get("name"))
		id := cmp.Or(ident.Of(v.Get("agentId")), member(name, ln.Name))
		ln.Time = conversation.TimeOf(v.Get("joinedAt"))
		m := ln.Status("member:"+id, "team_member")
		m.Agent = msg.Agent{ID: id, Name: name, Kind: msg.KindAgent}
		m.Content = v.Get("prompt").Text()
		conversation.Attrs(m, v, "agentType", "model", "color", "cwd", "backendType")
	}
}

// inbox decodes the messages that other members sent to one. Its key does not depend on whether
// the message was read.
func (d *transcript) inbox(ln *claude.Line) {
	team := d.file.team
	ln.Name = cmp.Or(team, d.file.session, "unknown")
	for v := range ln.Root.Elems() {
		from, text := ident.Of(v.Get("from")), v.Get("text")
		if from == "" || !text.Is(jsonv.String) {
			ln.Unknown("inbox", v)
			continue
		}
		ln.Time = conversation.TimeOf(v.Get("timestamp"))
		key := "inbox:" + msg.HashKey(d.file.session, from, string(v.Get("timestamp").Peek()), string(text.Peek()))
		m := sent(ln, key, text)
		m.Role, m.Agent = msg.RoleUser, msg.Agent{ID: member(from, team), Name: from, Kind: msg.KindAgent}
		m.SetAttr("to", d.file.session)
		conversation.Attrs(m, v, "summary", "color")
	}
}

// task decodes a task: each state of it is a message, whose time is that of the file.
func (d *transcript) task(ln *claude.Line) {
	root, team := ln.Root, d.file.team
	ln.Name = cmp.Or(team, d.file.session, "unknown")
	subject, text := root.Get("subject"), root.Get("description")
	id, owner, status := ident.Of(root.Get("id")), ident.Of(root.Get("owner")), ident.Of(root.Get("status"))
	m := ln.Emit(msg.Task, "task:"+msg.HashKey(id, owner, status, string(subject.Peek()), string(text.Peek())))
	if m.Content = text.Text(); m.Content.IsZero() {
		m.Content = subject.Text()
	} else {
		m.SetAttr("subject", conversation.Excerpt(subject))
	}
	if owner != "" {
		m.Agent = msg.Agent{ID: member(owner, team), Name: owner, Kind: msg.KindAgent}
	}
	m.SetAttr("task", id)
	m.SetAttr("status", status)
	conversation.Attrs(m, root, "activeForm")
	m.SetAttr("blocks", ident.Join(root.Get("blocks"), " "))
	m.SetAttr("blocked_by", ident.Join(root.Get("blockedBy"), " "))
}

// sent adds the message of that text. One of the CLI's own is JSON with a type: that a member is
// idle, shall shut down, or has a task.
func sent(ln *claude.Line, key string, text jsonv.Value) *msg.Message {
	var notice jsonv.Doc
	kind, typ := msg.User, ""
	if text.HasPrefix("{") && notice.Parse([]byte(text.PeekStr())) == nil {
		typ = ident.Of(notice.Root().Get("type"))
	}
	switch typ {
	case "":
	case "task_assignment":
		kind = msg.Task
	default:
		kind = msg.Status
	}
	m := ln.Emit(kind, key)
	m.Content, m.Hidden = text.Text(), kind == msg.Status
	if typ != "" {
		m.SetAttr("type", typ)
		conversation.Attrs(m, notice.Root(), "idleReason", "requestId", "reason", "taskId", "subject")
	}
	return m
}

// member is the id of a member of a team, by which the call that spawned it names it too.
func member(name, team string) string {
	if name == "" || team == "" {
		return ""
	}
	return name + "@" + team
}
