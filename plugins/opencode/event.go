package opencode

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// aside are the groups of events that are of the server and of no conversation.
var aside = strings.Fields(`server installation lsp file tui pty vcs project mcp ide agent command config skill integration
	reference form shell worktree workspace global storage account plugin catalog models-dev`)

// event decodes an event of the server: {id?, type, properties}, from version 2 on {id, created, type, data}.
func (d *stream) event(typ string, v jsonv.Value) bool {
	p := v.First("properties", "data")
	info, part, status := p.Get("info"), p.Get("part"), p.Get("status")
	typ = strings.Replace(typ, ".v2.", ".", 1)
	d.At = conversation.TimeOf(p.First("time", "timestamp")).Or(conversation.TimeOf(v.Get("created")))
	v.Skip("id", "durable", "location")
	s := d.find(ident.First(p.Get("sessionID"), info.Get("sessionID"), part.Get("sessionID"), info.Get("id")))
	s.Whole = s.Whole || strings.HasPrefix(typ, "message.")
	switch typ {
	case "message.updated", "message.part.updated":
		p.Get("delta").MarkRead() // the part has it
		return d.entity(p)
	case "message.part.delta":
		id, rec := ident.Of(p.Get("partID")), d.messageOf(p, "")
		if id == "" || !p.Get("field").Equal("text") || d.Seen.Has(id) {
			return id != ""
		}
		d.piece(rec, msg.Assistant, id, p.Get("delta")) // if it began before the recording, its kind is not known
	case "message.removed", "message.part.removed", "command.executed":
		d.Parts.Drop(d.Parts.Part(ident.Peek(p.Get("partID"))))
		m := d.status(s, "", typ+":"+msg.HashKey(string(p.First("partID", "messageID").Peek()), string(p.Get("name").Peek())), typ)
		conversation.Attrs(m, p, "name", "arguments", "messageID", "partID")
	case "session.created", "session.updated", "session.deleted":
		d.session(jsonv.Or(info, p)) // the latter from version 2 on
	case "session.idle", "session.status":
		switch {
		case status.Get("type").Equal("retry"):
			m := d.status(s, s.Run.Going(), "retry:"+msg.HashKey(s.ID, s.Last, status.Get("attempt").Digits(), string(status.Get("message").Peek())), "retry")
			m.Content, m.ResponseID, m.Signal = status.Get("message").Text(), s.Last, msg.Retry
			m.SetAttr("attempt", status.Get("attempt").Digits())
		case !status.Get("type").Equal("busy"): // idle
			d.stop(s, "stop")
		}
	case "session.error":
		d.failed(s, p.Get("error"))
	case "session.compacted":
		d.status(s, "", "compacted:"+msg.HashKey(s.ID, s.User, s.Last), typ)
	case "session.diff":
	case "permission.asked", "permission.updated", "permission.replied", "question.asked", "question.replied", "question.rejected":
		d.asked(s, typ, p)
	case "todo.updated":
		m := d.add(s, s.Run.Going(), msg.Plan, typ+":"+msg.HashKey(s.ID, string(p.Get("todos").Peek())))
		m.Content = p.Get("todos").JSON()
	default:
		switch group, _, _ := strings.Cut(typ, "."); {
		case strings.HasPrefix(typ, "session.next."), group == "session" && v.Path("data", "sessionID").Exists():
			steps{d}.next(s, typ, v, p)
		case slices.Contains(aside, group):
			p.MarkRead()
		default:
			return false
		}
	}
	return true
}

// session decodes a session, whose record is repeated at each change.
func (d *stream) session(v jsonv.Value) {
	s := d.find(ident.First(v.Get("id"), v.Get("sessionID")))
	parent, title := ident.First(v.Get("parentID"), v.Get("parent_id")), ident.Of(v.Get("title"))
	d.Sessions.Delegate(&s.Session, parent)
	key := "session:" + msg.HashKey(s.ID, title)
	if !d.Seen.Add(key, maxSeen) {
		v.MarkRead()
		return
	}
	d.At = conversation.TimeOf(v.Path("time", "created")).Or(conversation.TimeOf(v.Get("time_created")))
	s.Client = msg.Client{Project: ident.First(v.Get("directory"), v.Path("location", "directory")), Version: ident.Of(v.Get("version"))}
	m := d.status(s, "", key, "session")
	if m.Client = s.Client; parent == "" {
		m.Title = conversation.Excerpt(v.Get("title"))
	}
	m.SetAttr("session_id", s.ID)
	m.SetAttr("parent_id", parent)
	conversation.Attrs(m, v, "title", "projectID", "agent", "slug", "path", "workspaceID", "projectID=project_id", "workspaceID=workspace_id")
	conversation.Attrs(m, v.Get("share"), "url")
	conversation.Attrs(m, v.Get("model"), "id", "providerID")
	m.SetAttr("permission", conversation.ShortJSON(v.Get("permission")))
}

// turn begins the run of a user message, unless it continues the one that is going on.
func (s *session) turn(user string, continues bool) string {
	if s.User == user && s.Run.ID != "" || continues && s.Run.Active() {
		s.Run.Ended = false
	} else {
		s.Run.Begin(user)
	}
	s.User = user
	return s.Run.ID
}

// message decodes the record of a message, and returns its memory; nil if it has
// no id or none is new.
func (d *stream) message(v jsonv.Value) *message {
	id, s := d.id(v, "id", "id"), d.find(d.id(v, "sessionID", "session_id"))
	rec := d.known(id)
	switch {
	case rec == nil:
		rec = d.remember(message{ID: id, Session: s.ID, User: v.Get("role").Equal("user")})
	case rec.Ended:
		v.MarkRead()
		return nil
	}
	rec.Summary, rec.Done = rec.Summary || v.Get("summary").Is(jsonv.True), v.Path("time", "completed").Exists()
	if !d.Seen.Add("message:"+id, maxSeen) {
		v.Skip("role", "parentID", "modelID", "providerID", "mode", "agent", "variant", "path", "model", "system", "tools") // as before
		return rec
	}
	d.At = conversation.TimeOf(v.Path("time", "created"))
	rec.Agent, rec.Response = ident.Peek(v.First("agent", "mode")), conversation.Response{ID: id, At: d.At}
	var m *msg.Message
	if rec.User {
		m = d.status(s, "", "message:"+id, "prompt")
	} else {
		parent := ident.Of(v.Get("parentID"))
		if rec.Run == "" && d.single && d.known(parent) == nil && s.Run.ID == "" {
			rec.Run = parent // of the storage: the user message is in another file
		} else if rec.Run == "" {
			rec.Run = s.turn(cmp.Or(parent, id), false)
		}
		m = d.begin(rec, parent, v.Get("modelID"), v.Get("providerID"))
	}
	m.Content = v.Get("system").Text()
	conversation.Attrs(m, v, "agent", "mode", "variant")
	conversation.Attrs(m, v.Get("path"), "cwd", "root")
	conversation.Attrs(m, v.Get("model"), "modelID", "providerID", "variant")
	m.SetAttr("tools", conversation.ShortJSON(v.Get("tools")))
	return rec
}

// end decodes the end of a response: its tokens, where no step has them, its error, and that of
// the run.
func (d *stream) end(rec *message, v jsonv.Value) {
	fault := v.Get("error")
	if rec == nil || rec.User || !rec.Done && !fault.Exists() {
		return
	}
	rec.Ended = true
	d.At = conversation.TimeOf(v.Path("time", "completed")).Or(d.At)
	finish := v.Get("finish").PeekStr()
	if c := counts(v.Get("tokens"), false); rec.Steps == 0 && c != (conversation.Counts{}) {
		d.tokens(rec, c, msg.Summary, finish)
	}
	d.finished(rec, cmp.Or(d.failed(d.find(rec.Session), fault), finish, "interrupted"))
}

// finished ends the run of a response that ends a turn.
func (d *stream) finished(rec *message, finish string) {
	s, failed := d.find(rec.Session), finish == "error" || finish == "interrupted"
	if rec.Run != "" && rec.Run == s.Run.Going() && (failed || finish != "tool-calls" && finish != "unknown" && !rec.Tools && !rec.Summary) {
		d.stop(s, finish)
	}
}

// stop ends the run of a session that goes on.
func (d *stream) stop(s *session, reason string) {
	if s.Run.Active() {
		s.Run.Finish(d.add(s, s.Run.ID, msg.Stop, "stop:"+cmp.Or(s.Last, s.Run.ID)), reason, reason == "error" || reason == "interrupted")
	}
}

// failed decodes an error once, which an event, a message, a step and an execution have: {name, data: {message}}, in the newer family
// {type, message}. It returns the reason for which the work ends; none where there is no error.
func (d *stream) failed(s *session, v jsonv.Value) (reason string) {
	if !v.Exists() {
		return ""
	}
	typ, text := ident.Of(v.First("name", "type")), jsonv.Or(v.Path("data", "message"), v.Get("message"))
	reason = "error"
	if typ == aborted || typ == "MessageAbortedError" {
		reason = "interrupted"
	}
	key := "error:" + msg.HashKey(s.ID, s.Last, cmp.Or(string(v.Get("name").Peek()), typ), string(text.Peek()))
	if !d.Seen.Add(key, maxSeen) {
		v.Skip("message")
		v.Get("data").Skip("message", "providerID", "responseBody")
		return reason
	}
	m := d.add(s, s.Run.Going(), msg.Error, key)
	m.IsError, m.Content, m.Tool.ErrorType = true, text.Text(), typ
	if reason == "interrupted" {
		m.Kind, m.IsError, m.Hidden, m.Tool.ErrorType = msg.Status, false, true, reason
	}
	m.SetAttr("statusCode", v.Path("data", "statusCode").Digits())
	conversation.Attrs(m, v.Get("data"), "providerID", "responseBody")
	return reason
}

// asked decodes a question to a person, who allows a call or answers it, and the answer.
func (d *stream) asked(s *session, typ string, p jsonv.Value) {
	id := ident.First(p.Get("requestID"), p.Get("permissionID"), p.Get("id"))
	tool := jsonv.Or(p.First("tool", "source"), p) // the last of an early version
	w := wait{ID: id, Run: s.Run.Going(), Call: unique(ident.Of(tool.Get("messageID")), tool.Get("callID"))}
	key, signal := "wait:", msg.WaitStart
	if p.First("requestID", "permissionID").Exists() {
		key, signal = "waited:", msg.WaitEnd
		if before, ok := bounded.Take(&d.Waits, func(w wait) bool { return w.ID == id }); ok {
			w = before
		}
	} else {
		d.Waits = bounded.Push(d.Waits, w, maxWaits)
	}
	if !d.Seen.Add(key+id, maxSeen) {
		p.MarkRead()
		return
	}
	m := d.status(s, w.Run, key+id, typ)
	if m.Tool.CallID = w.Call; w.Call == "" { // the run waits
		signal -= msg.WaitStart - msg.RunPause
	}
	m.Signal = signal
	m.Content = p.First("questions", "title", "answers").Text()
	conversation.Attrs(m, p, "permission", "action", "reply", "response", "message")
	m.SetAttr("always", conversation.ShortJSON(p.Get("always")))
	m.SetAttr("patterns", conversation.ShortJSON(p.First("patterns", "pattern", "resources")))
	conversation.Attrs(m, tool, "messageID")
}
