package opencode

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// aside are the groups of events that are of the server and of no conversation.
var aside = strings.Fields(`server installation lsp file tui pty vcs project mcp ide agent command config skill integration
	reference shell worktree workspace global storage account plugin catalog models-dev`)

// event decodes an event of the server: {id?, type, properties}, from version 2 on {id, created, type, data}.
func (d *stream) event(typ string, v jsonv.Value) bool {
	p := v.First("properties", "data")
	info, part, status, form := p.Get("info"), p.Get("part"), p.Get("status"), p.Get("form")
	typ = strings.Replace(typ, ".v2.", ".", 1)
	d.At = conversation.TimeOf(p.First("time", "timestamp")).Or(conversation.TimeOf(v.Get("created")))
	v.Skip("id", "durable", "location")
	s := d.find(ident.First(p.Get("sessionID"), info.Get("sessionID"), part.Get("sessionID"), form.Get("sessionID"), info.Get("id")))
	s.Whole = s.Whole || strings.HasPrefix(typ, "message.")
	switch typ {
	case "message.updated", "message.part.updated":
		p.Get("delta").MarkRead() // the part has it
		return d.entity(p)
	case "message.part.delta":
		id, rec := ident.Of(p.Get("partID")), d.messageOf(p, "")
		if id != "" && p.Get("field").Equal("text") {
			d.piece(rec, msg.Assistant, id, p.Get("delta")) // if it began before the recording, its kind is not known
		}
		return id != ""
	case "message.removed", "message.part.removed", "command.executed":
		d.Parts.Drop(d.Parts.Part(ident.Peek(p.Get("partID"))))
		m := d.status(s, "", typ+":"+msg.HashKey(string(p.First("partID", "messageID").Peek()), string(p.Get("name").Peek())), typ)
		conversation.Attrs(m, p, "name", "arguments", "messageID", "partID")
	case "session.created", "session.updated", "session.deleted":
		d.session(jsonv.Or(info, p)) // the latter from version 2 on
	case "session.idle", "session.status":
		switch {
		case status.Get("type").Equal("retry"):
			d.retried(s, s.Last, status.Get("attempt"), status.Get("message"))
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
	case "form.created":
		d.asked(s, typ, form)
	case "form.replied", "form.cancelled":
		d.asked(s, typ, p)
	case "todo.updated":
		d.add(s, s.Run.Going(), msg.Plan, typ+":"+msg.HashKey(s.ID, string(p.Get("todos").Peek()))).Content = p.Get("todos").JSON()
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
	began := conversation.TimeOf(v.Path("time", "created")).Or(conversation.TimeOf(v.Get("time_created")))
	s.Counted = s.Counted || s.Began == 0 && s.Last == "" && s.User == "" && began.Nanos > d.Lost
	s.Began = began.Nanos
	if d.Root.Get("table").Equal("session_v2") || v.Get("location").Exists() {
		s.Second = true
		kept{d}.sum(s, v)
	}
	if r := v.Get("revert"); r.Is(jsonv.Object) {
		kept{d}.reverted(s, r)
	}
	key := "session:" + msg.HashKey(s.ID, title)
	if !d.Seen.Add(key, maxSeen) {
		v.MarkRead()
		return
	}
	d.At = began
	s.Client = msg.Client{Project: ident.First(v.Get("directory"), v.Path("location", "directory")), Version: ident.Of(v.Get("version"))}
	m := d.status(s, "", key, "session")
	if m.Client = s.Client; parent == "" {
		m.Title = conversation.Excerpt(v.Get("title"))
	}
	m.SetAttr("session_id", s.ID)
	m.SetAttr("parent_id", parent)
	conversation.Attrs(m, v, "title", "projectID", "agent", "slug", "path", "workspaceID", "projectID=project_id", "workspaceID=workspace_id",
		"share.url", "model.id", "model.providerID")
	m.SetAttr("permission", conversation.ShortJSON(v.Get("permission")))
}

// reverted decodes that a person took messages back, once.
func (d kept) reverted(s *session, v jsonv.Value) {
	to := ident.Of(v.Get("messageID"))
	switch {
	case to == "":
		d.unknown("revert", v)
	case d.Seen.Add("revert:"+s.ID+to, maxSeen):
		conversation.Attrs(d.status(s, "", "revert:"+msg.HashKey(s.ID, to), "revert"), v, "messageID", "partID")
	}
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
	s.Whole = s.Whole || d.row.Exists()
	rec.Summary, rec.Done = rec.Summary || v.Get("summary").Is(jsonv.True), v.Path("time", "completed").Exists()
	if !d.Seen.Add("message:"+id, maxSeen) {
		v.Skip("role", "parentID", "modelID", "providerID", "mode", "agent", "variant", "path", "model", "system", "tools") // as before
		return rec
	}
	d.At = conversation.TimeOf(v.Path("time", "created"))
	rec.Response.At = d.At
	if rec.older(s) || !rec.User && copies(rec.Session, id, d.At.Nanos) {
		d.forked(rec)
		if asked := d.known(ident.Peek(v.Get("parentID"))); asked != nil {
			d.forked(asked)
		}
		v.MarkRead()
		return rec
	}
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
	conversation.Attrs(m, v, "agent", "mode", "variant", "path.cwd", "path.root", "model.modelID", "model.providerID", "model.variant")
	m.SetAttr("tools", conversation.ShortJSON(v.Get("tools")))
	return rec
}

// older reports whether a message is older than its session: a fork has copied it.
func (m *message) older(s *session) bool {
	return 0 < m.Response.At.Nanos && m.Response.At.Nanos < s.Began
}

// copies reports whether a fork copied a message of that time, by the ids alone: a database has the copies before the session. The
// session was made after the message, and the copy's id within minutes of it.
func copies(session, id string, at int64) bool {
	const most, year, wrap = 10 * 60 * 1000, 365 * 24 * 3600 * 1000, 1 << 36
	made, known := madeAt(session)
	own, ok := madeAt(id)
	made = wrap - 1 - made // newer sessions are before older ones
	age := (made - uint64(at/1e6)) % wrap
	return ok && known && at > 0 && 0 < age && age < year && (own-made)%wrap < most
}

// madeAt are the lower 36 bits of the milliseconds at which an id was made.
func madeAt(id string) (ms uint64, ok bool) {
	const digits = 9
	_, made, _ := strings.Cut(id, "_")
	ms, err := strconv.ParseUint(made[:min(len(made), digits)], 16, 64)
	return ms, err == nil && len(made) > digits
}

// forked remembers that a fork has copied a message, for its parts.
func (d *state) forked(rec *message) {
	rec.Copied = true
	d.Seen.Add("copied:"+rec.ID, maxSeen)
}

// end decodes the end of a response: its tokens, where no step has them, its error, and that of
// the run.
func (d *stream) end(rec *message, v jsonv.Value) {
	fault := v.Get("error")
	if rec == nil || rec.User || rec.Copied || !rec.Done && !fault.Exists() {
		return
	}
	rec.Ended = true
	d.At = conversation.TimeOf(v.Path("time", "completed")).Or(d.At)
	finish := v.Get("finish").PeekStr()
	if c := counts(v.Get("tokens"), false); rec.Steps == 0 && c != (conversation.Counts{}) {
		d.tokens(rec, c, v, msg.Summary, finish)
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
	if typ == "aborted" || typ == "MessageAbortedError" {
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
	conversation.Attrs(m, v, "data.providerID", "data.responseBody")
	return reason
}

// asked decodes a question to a person, who allows a call or answers it, and the answer.
func (d *stream) asked(s *session, typ string, p jsonv.Value) {
	tool := jsonv.Or(p.First("tool", "source"), p.Path("metadata", "tool"))
	call := ident.First(tool.Get("callID"), tool.Get("id"))
	if !tool.Exists() { // of an early version
		tool, call = p, ident.Of(p.Get("callID"))
	}
	answered := !strings.HasSuffix(typ, ".asked") && !strings.HasSuffix(typ, ".updated") && !strings.HasSuffix(typ, ".created")
	w := conversation.Wait{ID: ident.First(p.First("requestID", "permissionID"), p.Get("id")), Run: s.Run.Going(), Call: ident.Within(ident.Of(tool.Get("messageID")), call)}
	key := "wait:" + w.ID
	if answered {
		key = "waited:" + w.ID
		if before, ok := d.Waits.Answer(w.ID); ok {
			w = before
		}
	} else {
		d.Waits.Ask(w)
	}
	if !d.Seen.Add(key, maxSeen) {
		p.MarkRead()
		return
	}
	m := d.status(s, w.Run, key, typ)
	m.Signal, m.Tool.CallID, m.Content = w.Signal(answered), w.Call, p.First("questions", "fields", "title", "answers", "answer").Text()
	if c := d.Calls.Get(w.Call); c != nil && c.Human { // the call itself is the wait
		m.Signal = msg.NoSignal
	}
	conversation.Attrs(m, p, "permission", "action", "reply", "response", "message", "tool.messageID", "source.messageID", "messageID", "title", "mode", "url", "reason")
	conversation.AttrsAs(m, p, conversation.ShortJSON, "save", "always", "patterns", "patterns=pattern", "patterns=resources")
}

// retried decodes another attempt at a response. A server that repeats it still waits for the next.
func (d *stream) retried(s *session, response string, attempt, fault jsonv.Value) {
	m := d.status(s, s.Run.Going(), "retry:"+msg.HashKey(s.ID, response, attempt.Digits(), string(fault.Peek())), "retry")
	m.Content, m.ResponseID, m.Signal = fault.Text(), response, msg.Retry
	m.SetAttr("attempt", attempt.Digits())
}

// steps decodes the events of the newer family.
type steps struct{ *stream }

// next decodes an event of the newer family, which has a step of the work where the older one has the whole message or part:
// session.next.* of version 1, and from version 2 on session.* with data in the place of properties, except those that the older
// family has too. In a session that has both families it is a copy.
func (d steps) next(s *session, typ string, v, e jsonv.Value) {
	if s.Whole {
		v.MarkRead()
		return
	}
	id := ident.Of(v.Get("id")) // of the event
	if id == "" {
		id = "evt_" + msg.HashKey(s.ID, typ, cmp.Or(string(e.Get("timestamp").Peek()), string(v.Get("created").Peek())))
	}
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimRight(typ, ".0123456789"), "session."), "next.")
	group, action, _ := strings.Cut(name, ".")
	switch {
	case group == "step", group == "tool", kinds[group] != 0:
		d.step(s, group, action, id, e)
	case name == "prompted", name == "prompt.admitted", name == "input.admitted", name == "inbox.enqueued", name == "synthetic":
		d.admitted(s, name, id, e)
	case name == "input.promoted", name == "inbox.delivered":
		input := ident.Of(e.First("inputID", "inboxID"))
		if h, ok := bounded.Take(&s.Held, func(h held) bool { return h.ID == input }); ok {
			d.prompt(d.begins(s, h.ID, h.ID, false), h.ID).Content = msg.Plain(h.Text)
		}
	case group == "execution" && action != "started": // it ends
		d.failed(s, e.Get("error"))
		d.stop(s, cmp.Or(outcomes[action], "stop"))
	case name == "retried", name == "retry.scheduled":
		d.retried(s, cmp.Or(ident.Of(e.Get("assistantMessageID")), s.Last), e.Get("attempt"), e.Path("error", "message"))
	case group == "compaction" && (action == "started" || action == "ended" || action == "failed"):
		at := cmp.Or(s.Compact, ident.Of(e.Get("inputID")), "msg_"+strings.TrimPrefix(id, "evt_"))
		if s.Compact = ""; !kept(d).compacts(s, at, action == "started", e.Get("text"), e) {
			s.Compact = at
		}
	case name == "usage.updated", group == "execution", action == "delta":
		e.Skip("tokens", "cost", "text") // a sum, or the next event has it
	default: // a choice of a person, a command of the person
		d.status(s, s.Run.Going(), "event:"+id, name).Content = e.JSON()
	}
}

// admitted decodes a prompt. One that is queued behind a run which goes on begins its own run later.
func (d steps) admitted(s *session, name, event string, e jsonv.Value) {
	item := e.First("input", "item")
	prompt, delivery := jsonv.Or(item.First("data", "payload"), e.Get("prompt")), jsonv.Or(item, e).Get("delivery")
	id := cmp.Or(ident.First(e.Get("messageID"), e.Get("inputID"), e.Get("inboxID")), "msg_"+strings.TrimPrefix(event, "evt_"))
	text := prompt.Get("text")
	switch queued := delivery.In("queue") && s.Run.Active() && s.Parent == ""; {
	case d.Seen.Has(id):
		e.MarkRead()
	case name == "synthetic", item.Get("type").Equal("synthetic"):
		d.injected(d.begins(s, id, cmp.Or(s.User, id), true), id, jsonv.Or(text, e.Get("text")))
	case queued && name != "prompted" && len(text.Peek()) <= maxQueued:
		s.Held = bounded.Push(s.Held, held{id, text.Str()}, maxHeld)
	default:
		bounded.Take(&s.Held, func(h held) bool { return h.ID == id })
		m := d.prompt(d.begins(s, id, id, !queued), id)
		m.Content, m.Attachments = text.Text(), content(prompt.Get("files")).Files
	}
}

// begins returns a prompt, which begins the run of that user message unless it steers the one that goes on.
func (d steps) begins(s *session, id, user string, steers bool) *message {
	d.Seen.Add(id, maxSeen)
	return &message{ID: id, Session: s.ID, User: true, Run: s.turn(user, steers)}
}

// step decodes a step of a response of the model: its beginning and its end, a text, a call. Early servers name neither the response
// nor the text: it is the last one then.
func (d steps) step(s *session, group, action, event string, e jsonv.Value) {
	response := cmp.Or(ident.Of(e.Get("assistantMessageID")), s.Last)
	if group == "step" && action == "started" && !e.Get("assistantMessageID").Exists() {
		response = "msg_" + strings.TrimPrefix(event, "evt_")
	}
	rec := d.known(response)
	if rec == nil {
		rec = d.remember(message{ID: response, Session: s.ID, Run: s.turn(cmp.Or(s.User, response), false)})
		s.Last = response
	}
	rec.Response.At = d.At.Or(rec.Response.At)
	switch call, state := e.First("callID", "id"), states[action]; {
	case group == "step" && action == "started":
		rec.Agent = ident.Of(e.Get("agent"))
		m := d.begin(rec, s.User, e.Path("model", "id"), e.Path("model", "providerID"))
		conversation.Attrs(m, e, "agent", "snapshot", "model.variant")
	case group == "step" && (action == "ended" || action == "failed"):
		finish := ident.Of(e.Get("finish"))
		if t := e.Get("tokens"); t.Is(jsonv.Object) && d.Seen.Add("end:"+event, maxSeen) {
			d.tokens(rec, counts(t, true), e, msg.Complete, finish)
		}
		d.finished(rec, cmp.Or(d.failed(s, e.Get("error")), finish, "stop"))
	case group == "step", group == "tool" && ident.Of(call) == "":
		d.unknown(group+"."+action, d.Root)
	case group == "tool" && state == "":
		e.Get("delta").MarkRead() // the end has it
	case group == "tool":
		calls(d).tool(rec, "", call, e.First("tool", "name"), state, e, conversation.Time{})
	default:
		name := cmp.Or(ident.First(e.Get("textID"), e.Get("reasoningID")), e.Get("ordinal").Digits())
		if name == "" && action == "started" {
			rec.Response.Texts++
		}
		if id := rec.ID + "/" + group + "/" + cmp.Or(name, conversation.NonZero(rec.Response.Texts)); action == "ended" {
			d.said(rec, kinds[group], id, e.Get("text"))
		} else {
			d.piece(rec, kinds[group], id, e.Get("delta"))
		}
	}
}
