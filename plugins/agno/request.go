package agno

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/sse"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// request decodes the body of a request:
//
//	POST /teams/{id}/runs, …/run           message, session_id, user_id, files
//	POST /agents/{id}/runs/{run}/continue  tools: the decisions on the calls that wait
//	POST /…/runs/{run}/cancel
//
// A request starts no run by itself: its id is in the events of the answer.
func (s *stream) request(f *frame.Frame) {
	method, path, _ := strings.Cut(strings.ToValidUTF8(f.Name, "\uFFFD"), " ")
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at := -1
	for i, p := range parts {
		if p == "runs" || p == "run" && i == len(parts)-1 && i > 1 { // a proxy before AgentOS may use this path
			at = i
		}
	}
	if method != "POST" || at < 0 {
		return // a read; its response is decoded
	}
	fields, files := bytes.TrimLeft(f.Data, " \t\r\n"), []msg.Attachment(nil)
	if !bytes.HasPrefix(fields, []byte("{")) {
		fields, files = media.Form(fields, "message", "tools", "stream", "session_id")
	}
	if fields == nil {
		if len(bytes.TrimSpace(f.Data)) > 0 {
			s.Out.Problem(msg.ReasonInvalid, "a request body that is no form and no JSON object")
		}
		return
	}
	root, ok := s.Parse(fields)
	if !ok {
		return
	}
	q := pendingOf(request, strings.Join(parts[max(at-2, 0):], "/"), root)
	q.Files = files
	tools := str(root.Get("tools"))
	s.Keep() // the messages that follow may be of earlier requests
	switch rest := parts[at+1:]; {
	case len(rest) == 0:
		s.wait(q)
	case len(rest) == 2 && rest[1] == "continue":
		q.Kind, q.Run, q.Data = decision, rest[0], tools
		s.wait(q)
	default: // cancel, resume
		q.Kind, q.Run, q.Type = control, rest[0], rest[len(rest)-1]
		s.connection(q)
	}
}

// socket decodes a WebSocket message. The server sends the text of SSE events, and
// plain JSON about the connection; the client sends plain JSON.
func (s *stream) socket(f *frame.Frame) {
	body := bytes.TrimLeft(f.Data, " \t\r\n")
	field, _, isSSE := bytes.Cut(body[:min(len(body), 8)], []byte(":"))
	if !isSSE || !slices.Contains([]string{"event", "data", "id", "retry", ""}, string(field)) {
		if !f.FromClient {
			s.document(f.Kind, f.Name, f.Data)
		} else if root, ok := s.Parse(f.Data); ok && root.Is(jsonv.Object) {
			s.command(root)
		} else if ok {
			s.stray(f.Name, root)
		}
		return
	}
	var events frame.Batch
	p := sse.New(0, 0)
	p.Feed(&events, body, 0)
	p.Finish(&events, 0)
	for _, e := range events.Frames {
		s.document(frame.Event, "", e.Data)
	}
}

// command decodes a message of a WebSocket client:
//
//	{"action":"authenticate","token":"…"}
//	{"action":"start-workflow","workflow_id":"…","message":"…","session_id":"…","user_id":"…"}
//	{"action":"reconnect","run_id":"…","last_event_index":41}
//
// A token is no part of the conversation.
func (s *stream) command(root jsonv.Value) {
	q := pendingOf(control, ident.OrNumber(root.Get("action")), root)
	q.Data = root.Get("last_event_index").Digits()
	switch q.Type {
	case "start-workflow", "start-agent", "start-team":
		q.Kind = request
		s.wait(q)
	case "authenticate", "reconnect", "ping", "cancel":
		s.connection(q)
	default:
		s.stray("", root)
	}
}

// pending is an item that arrived before its owner: a request before its run, a connection's
// event before its session.
type pending struct {
	Kind    string
	Type    string           `json:",omitempty"`
	Session string           `json:",omitempty"`
	Run     string           `json:",omitempty"`
	User    string           `json:",omitempty"`
	Text    string           `json:",omitempty"`
	Data    string           `json:",omitempty"`
	Files   []msg.Attachment `json:",omitempty"`
}

// pendingOf reads the fields that requests, commands and events of the connection share.
func pendingOf(kind, typ string, v jsonv.Value) pending {
	return pending{
		Kind: kind, Type: typ, Session: ident.OrNumber(v.Get("session_id")), Run: ident.OrNumber(v.Get("run_id")),
		User: ident.OrNumber(v.Get("user_id")), Text: str(v.First("message", "input", "error")),
	}
}

// The kinds of pending items.
const (
	request  = "request"  // starts a run
	decision = "decision" // continues one: Data are its tools
	control  = "control"
)

// maxPending and maxPendingText limit the pending items; beyond them the oldest is emitted
// without its owner.
const (
	maxPending     = 32
	maxPendingText = 64 << 20
)

// wait adds a pending item.
func (s *stream) wait(q pending) {
	s.Pending = append(s.Pending, q)
	size := 0
	for i, p := range slices.Backward(s.Pending) { // the newest item stays
		if size += len(p.Text) + len(p.Data); size > maxPendingText && i < len(s.Pending)-1 || len(s.Pending)-i > maxPending {
			for k := range i + 1 {
				s.emitPending(&s.Pending[k])
			}
			s.Pending = slices.Delete(s.Pending, 0, i+1)
			break
		}
	}
}

// connection emits an event of the connection now, or when its session is known, if it precedes the first event with one:
//
//	{"event":"connected","message":"…","requires_auth":true}
//	{"event":"catch_up","run_id":"…","status":"running","missed_events":4,"message":"…"}
func (s *stream) connection(q pending) {
	if s.Runs.get(q.Run) == nil && q.Session == "" && s.Session == "" {
		s.wait(q)
	} else {
		s.emitPending(&q)
	}
}

// releasePending emits the connection's events, whose session is known now; at the end of the
// stream it emits every item.
func (s *stream) releasePending(all bool) {
	s.Pending = slices.DeleteFunc(s.Pending, func(q pending) bool {
		if all || q.Kind == control {
			s.emitPending(&q)
			return true
		}
		return false
	})
}

// emitPending emits an event of the connection, or an item whose owner did not arrive.
func (s *stream) emitPending(q *pending) {
	m := s.Out.Add()
	m.Kind, m.Hidden, m.Complete = msg.Status, true, msg.Complete
	m.Session = cmp.Or(q.Session, s.sessionFor(jsonv.Value{}))
	m.Content = msg.Plain(q.Text)
	m.Key = q.Kind + ":" + msg.HashKey(q.Session, q.Run, q.User, q.Text, q.Data)
	switch q.Kind {
	case control:
		m.Key = q.Kind + ":" + msg.HashKey(q.Run, q.Type, q.Data, q.Text)
		m.IsError = q.Type == "error" || q.Type == "auth_error"
		if r := s.Runs.get(q.Run); r != nil {
			r.own(m)
		} else {
			m.SetAttr("run_id", q.Run)
		}
		m.SetAttr("user_id", q.User)
	case request:
		m.Kind, m.Role, m.Hidden = msg.User, msg.RoleUser, false
		m.Agent.Kind = msg.KindHuman
		m.SetAttr("user_id", q.User)
		m.Attachments = q.Files
	case decision:
		m.Content = msg.Plain(q.Data)
	}
	m.SetAttr("type", q.Type)
}

// take takes the oldest request, or the oldest decision about a run.
func (s *stream) take(kind, run string) (q pending, ok bool) {
	return bounded.Take(&s.Pending, func(q pending) bool { return q.Kind == kind && (kind == request || q.Run == run) })
}

// asked emits the request that began a run.
func (r *run) asked(q pending, at conversation.Time) {
	m := r.input(at, msg.Plain(q.Text), msg.Agent{Kind: msg.KindHuman})
	m.SetAttr("user_id", q.User)
	if q.Session != r.Session {
		m.SetAttr("session_id", q.Session) // the requested one
	}
	m.Attachments = q.Files
}
