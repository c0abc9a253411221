// Package crush decodes the sessions of Crush, from the rows of its database crush.db.
//
// Facts of the format that are easy to get wrong:
//
//   - Times are in seconds, though comments of the schema have milliseconds. A row is written again while its message grows: it is whole when it has a
//     part of the type finish, which an answer has after the calls that it made.
//   - An assistant row is one response of the model. A result is a row of the role tool, and so is each that Crush adds for a call that an error or a
//     person ended.
//   - The session of a sub-agent is named by the message and the call that it works for: MESSAGE$$CALL.
//   - prompt_tokens and completion_tokens of a session are those of its last response, to which the title may be added: they are no sum. cost is one,
//     and includes that of sub-agents.
//   - A conversation that got too long is summarized (is_summary_message), and goes on with a prompt that Crush writes.
package crush

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name:       "crush",
			Revision:   2,
			Summary:    "Sessions of Crush, in its database.",
			Transports: []frame.Kind{frame.Line},
			Tables: json.RawMessage(`{"tables":[
			{"table":"sessions","order":"created_at","json":["todos"]},
			{"table":"messages","order":"created_at","json":["parts"]}]}`),
		},
		LeavesOut: leavesOut,
		State:     1,
		Open:      func(r *record.Current, s *state) record.Reader { return &stream{Current: r, state: s} },
	}.Factory()
}

const (
	maxSessions = 256
	maxSeen     = 8192
)

// stream decodes the rows of one database.
type stream struct {
	*record.Current
	*state

	s *session
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Sessions conversation.Sessions[*session] `json:",omitempty"`
	Seen     bounded.Set[string]             `json:",omitzero"` // messages that are whole
}

// session is one conversation: of a person, or of a sub-agent, which has one run.
type session struct {
	conversation.Session
	Calls conversation.Calls[*call] `json:",omitzero"`
	Runs  []string                  `json:",omitempty"` // the last responses, each followed by its run
}

// call is a tool call.
type call struct {
	conversation.Delegation
	Run  string `json:",omitempty"`
	Made bool   `json:",omitempty"` // else its result came first
}

// Read decodes one row: {table, row}.
func (d *stream) Read() {
	row, table := d.Root.Get("row"), d.Root.Get("table")
	d.s = nil
	switch id, session := ident.Peek(row.Get("id")), ident.Peek(row.Get("session_id")); {
	case table.Equal("sessions") && id != "":
		d.enter(ident.Of(row.Get("id")))
		d.session(row)
	case table.Equal("messages") && id != "" && session != "" && row.Get("parts").Is(jsonv.Array):
		d.enter(ident.Of(row.Get("session_id")))
		d.message(row)
	default:
		d.Unknown(ident.Of(table), d.Root)
	}
}

// enter makes a session that of the row. One that is named by a call is that of a sub-agent.
func (d *stream) enter(id string) {
	d.s = d.Sessions.Enter(id, maxSessions, func(s conversation.Session) *session { return &session{Session: s} })
	if strings.Contains(id, "$$") && !d.s.Run.Child {
		d.s.Delegated("") // its row names the parent
	}
}

// In returns the session at the top.
func (d *stream) In() (session, run string) {
	if d.s == nil {
		return "unknown", ""
	}
	return d.s.Root, ""
}

// add adds a message of the session's run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	d.s.Run.Mark(m)
	return m
}

// session decodes the row of a session, which is written again and again.
func (d *stream) session(v jsonv.Value) {
	s := d.s
	d.At = conversation.TimeOf(v.Get("created_at"))
	parent := ident.Of(v.Get("parent_session_id"))
	if s.Run.Child {
		d.Sessions.Delegate(&s.Session, parent)
	} else if parent != "" { // where the title was made, in early versions
		d.Sessions.Below(&s.Session, parent)
	}
	m := record.Hide(d.Add(msg.Status, "session:"+s.ID), "session")
	if m.Complete = msg.Summary; parent == "" {
		m.Title = conversation.Excerpt(v.Get("title"))
	} else {
		conversation.Attrs(m, v, "title")
	}
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "cost", "last_prompt_tokens=prompt_tokens", "last_completion_tokens=completion_tokens")
	conversation.AttrsAs(m, v, conversation.ShortJSON, "todos")
}

// link finds the run whose call made the sub-agent work.
func (d *stream) link() {
	s := d.s
	response, id, _ := strings.Cut(s.ID, "$$")
	if p := d.Sessions.Find(s.Parent); s.Run.Child && p != nil {
		if c := p.Calls.Get(within(response, id)); c != nil {
			s.Run.Caused(c.Run, c.ID, msg.ByNativeID, 0)
			c.Child = s.ID
		}
	}
}

// runOf is the run in which a message is, which may be written again when another one has begun.
func (s *session) runOf(id string) string {
	for i := 0; i+1 < len(s.Runs); i += 2 {
		if s.Runs[i] == id {
			return s.Runs[i+1]
		}
	}
	const remembered = 64
	if s.Runs = append(s.Runs, id, s.Run.ID); len(s.Runs) > remembered {
		s.Runs = s.Runs[2:]
	}
	return s.Run.ID
}

// message decodes the row of a message: {id, role, parts: [{type, data}], model, provider, created_at, is_summary_message}.
func (d *stream) message(v jsonv.Value) {
	d.At = conversation.TimeOf(v.Get("created_at"))
	id := ident.Of(v.Get("id"))
	for p := range v.Get("parts").Elems() { // the reason may become another one: a run is cancelled after a response was whole
		if isEnd(p) && !d.Seen.Add(id+" "+p.Path("data", "reason").PeekStr(), maxSeen) {
			v.MarkRead()
			return
		}
	}
	d.link()
	switch role := v.Get("role"); {
	case v.Get("is_summary_message").Digits() == "1":
		d.summary(v, id)
	case role.Equal("user"):
		d.prompt(v, id)
	case role.Equal("assistant"):
		d.response(v, id)
	case role.Equal("tool"):
		for p := range v.Get("parts").Elems() {
			if typ := p.Get("type"); typ.Equal("tool_result") && ident.Peek(p.Path("data", "tool_call_id")) != "" {
				d.result(p.Get("data"))
			} else if !isEnd(p) || !p.Path("data", "reason").Equal("stop") {
				d.Unknown(ident.Peek(typ), p)
			}
		}
	default:
		d.Unknown("message", v)
	}
}

// isEnd reports whether a part is the end of the message.
func isEnd(p jsonv.Value) bool {
	return p.Get("type").Equal("finish") && ident.Peek(p.Path("data", "reason")) != ""
}

// summary decodes the summary of a conversation that got too long.
func (d *stream) summary(v jsonv.Value, id string) {
	m := record.Hide(d.Add(msg.Status, "summary:"+id), "compaction")
	m.Complete = msg.Partial
	conversation.Attrs(m, v, "model", "provider")
	for p := range v.Get("parts").Elems() {
		switch data := p.Get("data"); {
		case p.Get("type").Equal("text"):
			m.Content = data.Get("text").Text()
		case isEnd(p):
			m.Complete, m.Signal, m.IsError = msg.Complete, msg.Compaction, data.Get("reason").Equal("error")
			conversation.Attrs(m, data, "message", "details")
			conversation.Attrs(m, data, "reason")
		}
	}
}

// goesOn begins the prompt by which Crush itself goes on after a summary.
const goesOn = "The previous session was interrupted because it got too long"

// prompt decodes a prompt, or a command of a person.
func (d *stream) prompt(v jsonv.Value, id string) {
	var has conversation.Content
	ours := false
	for p := range v.Get("parts").Elems() {
		switch data, typ := p.Get("data"), p.Get("type"); {
		case typ.Equal("text"):
			ours = ours || data.Get("text").HasPrefix(goesOn)
			has.Add(data.Get("text").Text())
		case typ.Equal("binary") && data.Get("Data").Is(jsonv.String), typ.Equal("image_url"):
			has.Attach(file(data))
		case typ.Equal("shell_command"):
			m := record.Hide(d.Add(msg.Status, "shell:"+id), "shell_command")
			m.Content = data.Get("output").Text()
			conversation.Attrs(m, data, "command")
			conversation.AttrsAs(m, data, jsonv.Value.Digits, "exit_code")
		case isEnd(p) && data.Get("reason").Equal("stop"):
		default:
			d.Unknown(ident.Peek(typ), p)
		}
	}
	if has.N == 0 && len(has.Files) == 0 {
		return
	}
	s := d.s
	ours = ours && s.Run.ID != "" && !s.Run.Ended
	switch {
	case s.Run.Child && s.Run.ID == "":
		s.Run.ID = s.ID
	case !ours && s.Run.ID != id:
		s.Run.Begin(id)
	}
	m := d.add(msg.User, "user:"+id)
	has.Fill(m)
	switch m.Role = msg.RoleUser; {
	case ours:
		m.Kind, m.Hidden = msg.System, true
	case !s.Run.Child:
		m.Agent.Kind = msg.KindHuman
	}
}

// file reads a file of a prompt.
func file(data jsonv.Value) msg.Attachment {
	if url := data.Get("url"); url.Exists() {
		return media.URL(url)
	}
	f := media.Base64(data.Get("Data"), ident.Of(data.Get("MIMEType")))
	f.Name = data.Get("Path").Str()
	return f
}

// response decodes a response of the model with its calls, perhaps in the middle of it.
func (d *stream) response(v jsonv.Value, id string) {
	s := d.s
	if s.Run.Child && s.Run.ID == "" { // its prompt was not recorded
		s.Run.ID = s.ID
	}
	if s.Run.ID == "" {
		s.Run.Begin(id)
	}
	r := conversation.Response{ID: id, Model: ident.Of(v.Get("model")), Provider: ident.Of(v.Get("provider")), Run: s.runOf(id), At: d.At}
	complete, calls, began := msg.Partial, false, d.At
	var end jsonv.Value
	for p := range v.Get("parts").Elems() {
		switch data := p.Get("data"); {
		case isEnd(p):
			complete, end = msg.Complete, data
		case p.Get("type").Equal("tool_call"):
			calls = true
		case p.Get("type").Equal("reasoning"):
			if done := conversation.TimeOf(data.Get("finished_at")); done.Nanos > began.Nanos {
				began = done
			}
		}
	}
	over := conversation.TimeOf(end.Get("time")).Or(d.At)
	if d.At = began; !calls && end.Exists() {
		d.At = over
	}
	part := func(kind msg.Kind) *msg.Message {
		m := d.add(kind, r.Key(kind))
		m.Run, m.Complete = r.Run, complete
		return m
	}
	for p := range v.Get("parts").Elems() {
		switch data, typ := p.Get("data"), p.Get("type"); {
		case typ.Equal("text"):
			r.Said(part(msg.Assistant), data.Get("text").Text())
		case typ.Equal("reasoning"):
			if data.Get("thinking").PeekStr() == "" { // the provider keeps it to itself
				break
			}
			m := r.Said(part(msg.Reasoning), data.Get("thinking").Text())
			began.Set(m)
			if data.Get("finished_at").Exists() {
				m.Complete = msg.Complete
			}
		case typ.Equal("tool_call") && ident.Peek(data.Get("id")) != "":
			if data.Get("finished").Is(jsonv.False) {
				data.Skip("id", "name", "input") // it is there again when it is whole
				break
			}
			d.call(data, &r)
		case isEnd(p):
		default:
			d.Unknown(ident.Peek(typ), p)
		}
	}
	d.At = over
	d.end(&r, end, calls)
}

// end ends the run, if the response does.
func (d *stream) end(r *conversation.Response, end jsonv.Value, calls bool) {
	reason := ident.Of(end.Get("reason"))
	failed := reason == "error" || reason == "canceled" || reason == "content_filter"
	if !end.Exists() || reason == "tool_use" || reason == "unknown" && calls {
		return
	}
	if reason == "error" {
		m := d.add(msg.Error, "error:"+r.ID)
		m.Run, m.IsError, m.Content = r.Run, true, jsonv.FirstText(end.Get("details"), end.Get("message"))
		m.ResponseID, m.Model, m.Provider = r.ID, r.Model, r.Provider
	}
	m := d.add(msg.Stop, "stop:"+r.ID)
	conversation.Attrs(m, end, "message", "details")
	d.s.Run.Finish(m, strings.Replace(reason, "canceled", "cancelled", 1), failed)
	if m.Run != r.Run { // it ended before the run that is going on
		m.Run, d.s.Run.Ended = r.Run, false
	}
}

// within is the id of a call of a response.
func within(response, id string) string {
	c := conversation.Call{ID: id}
	c.Within(response)
	return c.ID
}

// call decodes a call: {id, name, input, finished}, whose input is JSON.
func (d *stream) call(data jsonv.Value, r *conversation.Response) {
	id := ident.Of(data.Get("id"))
	c := d.s.Calls.Get(within(r.ID, id))
	if c != nil && c.Made { // the row is written again
		data.MarkRead()
		r.Last = "call:" + c.ID
		return
	}
	if c == nil {
		c = new(call)
	}
	c.Run, c.Made, c.ID, c.Name = r.Run, true, id, cmp.Or(ident.Of(data.Get("name")), "unknown")
	c.Within(r.ID)
	c.Task = c.Name == "agent" || c.Name == "agentic_fetch"
	d.s.Calls.Add(c)
	m := d.add(msg.ToolCall, "call:"+c.ID)
	m.Run = r.Run
	var inner jsonv.Doc
	input := data.Get("input")
	task := jsonv.Value{}
	if c.Task && inner.Parse(input.Chars()) == nil {
		task = inner.Root().Get("prompt")
	}
	if c.Called(m, input.Text(), task); c.Task {
		conversation.Causes(m, r.ID+"$$"+id)
	}
	r.Next(m)
}

// result decodes the result of a call: {tool_call_id, name, content, data, mime_type, metadata, is_error}.
func (d *stream) result(v jsonv.Value) {
	s, id := d.s, ident.Of(v.Get("tool_call_id"))
	c := s.Calls.Named(id)
	if c == nil {
		c = &call{Run: s.Run.ID}
		c.ID, c.Name = id, cmp.Or(ident.Peek(v.Get("name")), "unknown")
	}
	v.Get("name").Equal(c.Name)
	s.Calls.End(c)
	m := c.Result(d.add(msg.ToolResult, "result:"+c.ID))
	if c.Run != "" {
		m.Run = c.Run
	}
	m.Content = v.Get("content").Text()
	if data := v.Get("data"); len(data.Escaped()) > 0 {
		m.Attachments = []msg.Attachment{media.Base64(data, ident.Of(v.Get("mime_type")))}
	}
	var inner jsonv.Doc
	if about := v.Get("metadata"); inner.Parse(about.Chars()) == nil { // of bash, in milliseconds
		if from, to := inner.Root().Get("start_time").Int(), inner.Root().Get("end_time").Int(); 0 < from && from <= to {
			m.Tool.Duration = (to - from) * int64(time.Millisecond)
		}
	}
	if m.IsError = v.Get("is_error").Bool(); m.IsError {
		m.Tool.ErrorType = conversation.ErrorClass(conversation.Cut(m.Content.String(), ident.Max), "denied", "denied", "cancelled", "interrupted", "", "tool_error")
		return
	}
	if c.Name == "bash" || c.Name == "job_output" {
		command(m)
	}
}

// command reads how a command ended, whose result is no error, from its last line before <cwd>: Exit code 1, or that it was aborted.
func command(m *msg.Message) {
	text := m.Content.String()
	if strings.HasSuffix(text, "</cwd>") {
		text = text[:max(0, strings.LastIndex(text, "\n\n<cwd>"))]
	}
	line := text[strings.LastIndexByte(text, '\n')+1:]
	if code, ok := strings.CutPrefix(line, "Exit code "); ok && code != "" && strings.Trim(code, "-0123456789") == "" {
		m.IsError, m.Tool.ErrorType = true, "tool_error"
		m.SetAttr("exit_code", code)
	} else if line == "Command was aborted before completion" {
		m.IsError, m.Tool.ErrorType = true, "interrupted"
	}
}
