package agno

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/sse"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// request decodes the body of a request:
//
//	POST /teams/{id}/runs, …/run           message, session_id, user_id, files
//	POST /agents/{id}/runs/{run}/continue  tools: the decisions on the calls that wait
//	POST /…/runs/{run}/cancel
//
// A request starts no run by itself: its id is in the events of the answer.
func (s *stream) request(f *frame.Frame) {
	method, path, _ := strings.Cut(valid(f.Name), " ")
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
	b := form{pending{Kind: request, Type: strings.Join(parts[max(at-2, 0):], "/")}, make(map[string]string)}
	if !s.form(f.Data, &b) {
		if len(bytes.TrimSpace(f.Data)) > 0 {
			s.Out.Problem(msg.ReasonInvalid, "a request body that is no form and no JSON object")
		}
		return
	}
	q := b.pending
	if raw, err := json.Marshal(b.more); err == nil && len(b.more) > 0 { // the unknown fields
		m := s.Out.Unknown(unknown.Attr, raw)
		m.Session = cmp.Or(q.Session, s.sessionFor(jsonv.Value{}))
		m.Key = unknown.Attr + ":" + msg.HashKey(m.Session, string(raw))
	}
	switch rest := parts[at+1:]; {
	case len(rest) == 0:
		q.Data = ""
		s.wait(q)
	case len(rest) == 2 && rest[1] == "continue":
		q.Kind, q.Run = decision, rest[0]
		s.wait(q)
	default: // cancel, resume
		q.Kind, q.Run, q.Type, q.Data = control, rest[0], rest[len(rest)-1], ""
		s.connection(q)
	}
}

// form has the fields of a request.
type form struct {
	pending
	more map[string]string // unknown fields
}

// form reads a body, and reports whether it is one. The content type is not in the frame; the
// first bytes show it.
func (s *stream) form(body []byte, b *form) (ok bool) {
	body = bytes.TrimLeft(body, " \t\r\n")
	switch {
	case len(body) == 0:
		return false
	case body[0] == '{':
		root, ok := s.Parse(body)
		if ok {
			b.Text = asText(root.First("message", "input")).String()
			b.Session, b.User = ident.OrNumber(root.Get("session_id")), ident.OrNumber(root.Get("user_id"))
			if b.Data = root.Get("tools").Str(); b.Data == "" {
				b.Data = string(root.Get("tools").Raw())
			}
			s.Keep()
		}
		return ok
	case bytes.HasPrefix(body, []byte("--")):
		return b.parts(body)
	}
	values, err := url.ParseQuery(string(body))
	known := func(name string) bool { return values.Get(name) != "" }
	if err != nil || !slices.ContainsFunc([]string{"message", "tools", "stream", "session_id"}, known) {
		return false
	}
	for name, list := range values {
		b.set(name, strings.Join(list, "\n"))
	}
	return true
}

// set sets a field.
func (b *form) set(name, value string) {
	switch value = valid(value); name {
	case "message":
		b.Text = value
	case "session_id":
		b.Session = ident.Bounded(value)
	case "user_id":
		b.User = ident.Bounded(value)
	case "tools":
		b.Data = value
	default:
		if len(value) >= unknown.MinSize {
			b.more[valid(name)] = value
		}
	}
}

// maxField limits the kept bytes of a form's field.
const maxField = 8 << 20

// parts reads a multipart form. A truncated body yields the parts before the cut.
func (b *form) parts(body []byte) (ok bool) {
	line, _, _ := bytes.Cut(body, []byte("\n"))
	boundary := string(bytes.TrimSpace(line[2:]))
	if boundary == "" || len(boundary) > 200 {
		return false
	}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for range 1024 {
		p, err := r.NextRawPart()
		if err != nil {
			break
		}
		ok = true
		if name := p.FileName(); name != "" {
			h := sha256.New()
			size, err := io.Copy(h, p)
			a := msg.Attachment{Name: valid(name), MediaType: valid(p.Header.Get("Content-Type")), Size: size}
			if err == nil {
				a.SHA256 = hex.EncodeToString(h.Sum(nil))
			}
			b.Files = append(b.Files, a)
			continue
		}
		value, err := io.ReadAll(io.LimitReader(p, maxField))
		b.set(p.FormName(), string(value))
		if err != nil {
			break
		}
	}
	return ok
}

// valid returns typed text as UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

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
	q := pending{
		Kind: control, Type: ident.OrNumber(root.Get("action")), Session: ident.OrNumber(root.Get("session_id")),
		Run: ident.OrNumber(root.Get("run_id")), User: ident.OrNumber(root.Get("user_id")), Data: root.Get("last_event_index").Digits(),
	}
	switch q.Type {
	case "start-workflow", "start-agent", "start-team":
		q.Kind, q.Text = request, asText(root.First("message", "input")).String()
		s.wait(q)
	case "authenticate", "reconnect", "ping", "cancel":
		s.connection(q)
	default:
		s.stray("", root)
	}
}

// control emits an event of the connection. One that precedes the first event with a session
// waits for that session:
//
//	{"event":"connected","message":"…","requires_auth":true}
//	{"event":"catch_up","run_id":"…","status":"running","missed_events":4,"message":"…"}
func (s *stream) control(e *event) {
	ident.Is(e.session, s.Session)
	s.connection(pending{
		Kind: control, Type: string(e.name), Data: ident.PeekOrNumber(e.v.Get("status")), Run: ident.OrNumber(e.run),
		Text: e.v.First("message", "error").Text().String(),
	})
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

// connection emits an event of the connection now, or when its session is known.
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

// pending returns the index of the oldest pending item of a kind for a run, or -1. A request
// does not know its run.
func (s *stream) pending(kind, run string) int {
	return slices.IndexFunc(s.Pending, func(q pending) bool { return q.Kind == kind && (kind == request || q.Run == run) })
}

// take takes the oldest pending item of a kind for a run, or nil.
func (s *stream) take(kind, run string) *pending {
	i := s.pending(kind, run)
	if i < 0 {
		return nil
	}
	q := s.Pending[i]
	s.Pending = slices.Delete(s.Pending, i, i+1)
	return &q
}

// asked emits the request that began a run.
func (r *run) asked(q *pending, at conversation.Time) {
	m := r.input(at, msg.Plain(q.Text), msg.Agent{Kind: msg.KindHuman})
	m.SetAttr("user_id", q.User)
	if q.Session != r.Session {
		m.SetAttr("session_id", q.Session) // the requested one
	}
	m.Attachments = q.Files
}
