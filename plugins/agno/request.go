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
	fields, files := form(f.Data)
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
	q := pending{Kind: request, Type: strings.Join(parts[max(at-2, 0):], "/"), Text: str(root.First("message", "input")),
		Session: ident.OrNumber(root.Get("session_id")), User: ident.OrNumber(root.Get("user_id")), Files: files}
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

// form returns the fields of a request as a JSON object, and its files; nil for a body that is no form. The content type is
// not in the frame; the first bytes show it.
func form(body []byte) (object []byte, files []msg.Attachment) {
	body = bytes.TrimLeft(body, " \t\r\n")
	fields := make(map[string]string)
	switch {
	case bytes.HasPrefix(body, []byte("{")):
		return body, nil
	case bytes.HasPrefix(body, []byte("--")):
		if files = multipartForm(body, fields); files == nil && len(fields) == 0 {
			return nil, nil
		}
	default:
		values, err := url.ParseQuery(string(body))
		known := func(name string) bool { return values.Get(name) != "" }
		if err != nil || !slices.ContainsFunc([]string{"message", "tools", "stream", "session_id"}, known) {
			return nil, nil
		}
		for name, list := range values {
			fields[valid(name)] = valid(strings.Join(list, "\n"))
		}
	}
	object, err := json.Marshal(fields)
	if err != nil { // strings always have a JSON form
		return nil, nil
	}
	return object, files
}

// maxField limits the kept bytes of a form's field.
const maxField = 8 << 20

// multipartForm reads the fields of a multipart form, and returns its files. A truncated body yields the parts before the cut.
func multipartForm(body []byte, fields map[string]string) (files []msg.Attachment) {
	line, _, _ := bytes.Cut(body, []byte("\n"))
	boundary := string(bytes.TrimSpace(line[2:]))
	if boundary == "" || len(boundary) > 200 {
		return nil
	}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for range 1024 {
		p, err := r.NextRawPart()
		if err != nil {
			break
		}
		if name := p.FileName(); name != "" {
			h := sha256.New()
			size, err := io.Copy(h, p)
			a := msg.Attachment{Name: valid(name), MediaType: valid(p.Header.Get("Content-Type")), Size: size}
			if err == nil {
				a.SHA256 = hex.EncodeToString(h.Sum(nil))
			}
			files = append(files, a)
			continue
		}
		value, err := io.ReadAll(io.LimitReader(p, maxField))
		fields[valid(p.FormName())] = valid(string(value))
		if err != nil {
			break
		}
	}
	return files
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
		q.Kind, q.Text = request, str(root.First("message", "input"))
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

// pause: the run waits for a person, or for results from outside. Calls that need permission
// have no start event, so they are emitted here:
//
//	{"event":"RunPaused","tools":[{"tool_call_id":"c1","requires_confirmation":true, …}],
//	 "requirements":[{"member_run_id":"…","tool_execution":{"tool_call_id":"c1", …}}]}
func (r *run) pause(e *event) {
	r.Text.close(r, e.at, msg.Complete)
	waits := waiting(e.v, r.ID)
	outside := len(waits) > 0
	for _, tool := range waits {
		u, reason := r.s.use(tool), reasonOf(tool)
		outside = outside && reason == external
		r.Calls.start(r, u, e.at)
		if c := r.Calls.open(u, r); c != nil && !c.Waits && reason != "" {
			c.Waits = true
			m := c.wait(r, msg.WaitStart, "wait:", e.at)
			m.SetAttr("for", reason)
			markWaitsFor(m, reason == external)
		}
	}
	for q := range e.v.Get("requirements").Elems() { // they repeat the calls of their runs
		of := r
		conversation.TimeOf(q.Get("created_at"))
		if member := r.s.Runs.get(ident.PeekOrNumber(q.Get("member_run_id"))); member != nil {
			of = member
			q.Get("member_run_id").MarkRead()
			ident.Is(q.Get("member_agent_id"), of.Agent.ID)
			ident.Is(q.Get("member_agent_name"), of.Agent.Name)
		}
		u := r.s.use(q.Get("tool_execution"))
		id, _, _ := of.Calls.id(of, u)
		of.Calls.mark(u, id)
	}
	markRepeat(e.content, r.Text.Emitted.Sum)
	r.Usage.flush(r, msg.Complete)
	m := r.status(r.key("pause/"+e.second()), "pause", e.at)
	m.Signal = msg.RunPause
	markWaitsFor(m, outside)
	r.Text.Emitted = conversation.Written{}
}

// waiting returns the calls for which a paused run waits.
func waiting(v jsonv.Value, run string) []jsonv.Value {
	waits := slices.Collect(v.Get("tools").Elems())
	if len(waits) > 0 {
		return waits
	}
	for q := range v.Get("requirements").Elems() {
		member, tool := ident.PeekOrNumber(q.Get("member_run_id")), q.Get("tool_execution")
		if (member == "" || member == run) && tool.Is(jsonv.Object) {
			waits = append(waits, tool)
		}
	}
	return waits
}

// markWaitsFor marks a wait for an external program that runs the call, as opposed to a
// person.
func markWaitsFor(m *msg.Message, outside bool) {
	if outside {
		m.SetAttr(msg.AttrWaitsFor, msg.ForOutside)
	}
}

const external = "external_execution"

// reasonOf returns the reason why a call waits; empty when it does not.
func reasonOf(tool jsonv.Value) string {
	switch {
	case tool.Get("requires_confirmation").Bool():
		return "confirmation"
	case tool.Get("requires_user_input").Bool():
		return "user_input"
	case tool.Get("external_execution_required").Bool():
		return external
	}
	return ""
}

func (c *call) wait(r *run, signal msg.Signal, prefix string, at conversation.Time) *msg.Message {
	m := r.status(prefix+c.ID, "permission", at)
	m.Signal, m.Tool.CallID, m.Tool.Name = signal, c.ID, c.Name
	return m
}

// resume: a paused run continues, perhaps in another stream than the one that it began in.
// The keys of its next messages contain this time, so that both streams produce the same
// keys.
func (r *run) resume(e *event) {
	t, u := &r.Text, &r.Usage
	t.close(r, e.at, msg.Complete)
	r.Started, r.Joined, r.Leg = true, false, e.second()
	t.After, t.Emitted = r.Leg, conversation.Written{}
	u.Replies, u.Reply, u.Waits = 0, "", false
	from := len(r.s.Out.Messages)
	r.status(r.key("resume/"+r.Leg), "resume", e.at).Signal = msg.RunResume
	// The decisions of a person about the calls are in the request that continues the run, or in
	// the stored run.
	decided := r.s.body.stored(r).Get("tools")
	if r.s.body == nil {
		if q := r.s.take(decision, r.ID); q != nil && r.s.inner.Parse([]byte(q.Data)) == nil {
			decided = r.s.inner.Root()
		}
		for d := range decided.Elems() { // the wait began in another stream
			u := r.s.use(d)
			if id, _, _ := r.Calls.id(r, u); ident.OrNumber(u.id) != "" && d.Get("confirmed").Exists() && !r.Calls.knows(id) {
				r.Calls.Open.Add(&call{Call: u.call(id), Waits: true, Args: conversation.SumOf("")})
			}
		}
	}
	for _, c := range slices.Clone(r.Calls.Open.Open) {
		if c.Waits {
			c.decide(r, decided, e.at)
		}
	}
	if r.s.body == nil && decided.Exists() {
		r.s.KeepUnread(&r.s.inner, from)
	}
}

// decide ends the wait of a call, and emits the call's result when the decision contains it.
func (c *call) decide(r *run, decided jsonv.Value, at conversation.Time) {
	c.Waits = false
	var d jsonv.Value
	for x := range decided.Elems() {
		if ident.PeekOrNumber(x.Get("tool_call_id")) == cmp.Or(c.ProtocolID, c.ID) {
			d = x
		}
	}
	u := r.s.use(d)
	r.Calls.mark(u, c.ID)
	m := c.wait(r, msg.WaitEnd, "waited:", at)
	switch {
	case d.Get("confirmed").Bool():
		m.SetAttr("decision", "allow")
	case u.refused:
		m.SetAttr("decision", "deny")
		u.result = d.First("confirmation_note", "result")
		r.Calls.result(r, u, at)
	case d.Get("external_execution_required").Bool() && !blank(u.result):
		r.Calls.result(r, u, at)
	}
}
