// Package opencode decodes the conversations of OpenCode: the events of its server, the lines that
// opencode run --format json prints, the document of opencode export, the rows of its database, and
// the files of its older storage. All of them have the same sessions, messages and parts.
//
// Facts of the format that are easy to get wrong:
//
//   - An event of a message or of a part has the whole object, which replaces the earlier one of
//     that id; message.part.delta alone appends.
//   - An assistant message is one response of the model. It answers the user message of parentID,
//     which is the same for all responses of a turn. Early versions have several steps in one
//     message, whose tokens are then those of the last step: the step-finish parts have all.
//   - Input excludes the cached tokens. Output includes those of reasoning up to version 1.2 and
//     excludes them later: the equation with the total decides.
//   - The session of a sub-agent names its parent session and never the call. The call names the
//     session in its metadata, once it has begun.
//   - A fork begins with copies of the messages before it, under new ids: they are older than their session, whose id
//     and theirs have the time of the fork. A database may have them before the session.
//   - The call of a command is completed with each exit code, and also if it was stopped.
//   - Compaction, and the result of a task in the background, are synthetic user messages.
//   - Newer servers send each event a second time as sync, and as session.next.*, which is a step of the
//     work: a text, a call, its end. Version 2 has these alone, as session.* with data instead of properties.
package opencode

import (
	"cmp"
	_ "embed"
	"encoding/json"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name:       "opencode",
			Revision:   14,
			Summary:    "OpenCode: events of its server, exports, run --format json, database, storage.",
			Transports: []frame.Kind{frame.Event, frame.Line, frame.Body, frame.Text},
			Documents:  []string{"*.json"},
			Tables: json.RawMessage(`{"tables":[
			{"table":"session","order":"time_created","json":["permission","model","revert"],"columns":["id","project_id","workspace_id","parent_id",
				"slug","directory","path","title","version","share_url","permission","agent","model","revert","time_created"]},
			{"table":"session_v2","order":"time_created","json":["permission","model","revert"],"columns":["id","project_id","workspace_id","parent_id",
				"fork_session_id","slug","directory","path","title","version","share_url","permission","agent","model","revert","time_created","time_idle",
				"cost","tokens_input","tokens_output","tokens_reasoning","tokens_cache_read","tokens_cache_write"]},
			{"table":"message","order":"time_created","json":["data"]},
			{"table":"part","order":"time_created","json":["data"]},
			{"table":"session_message","order":"time_created","json":["data"],"unless":"message"}]}`),
		},
		LeavesOut: leavesOut,
		State:     1,
		Open:      func(r *record.Current, s *state) record.Reader { return &stream{Current: r, state: s} },
	}.Factory()
}

const (
	maxSessions        = 64
	maxMessages        = 256
	maxSeen            = 4096
	maxHeld, maxQueued = 16, 64 << 10 // prompts that wait, and bytes of one
)

// stream decodes one stream, which may have several sessions.
type stream struct {
	*record.Current
	*state

	single bool        // the frame is a document of its own, without the messages around it
	row    jsonv.Value // of the database, in which a message precedes its parts; it has the ids of the message or part in data
	cur    *session
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Sessions conversation.Sessions[*session] `json:",omitempty"`
	Messages []*message                      `json:",omitempty"` // oldest first
	Parts    conversation.Deltas             `json:",omitzero"`  // texts that are not complete; the key is their message
	Calls    conversation.Calls[*call]       `json:",omitzero"`
	Waits    conversation.Waits              `json:",omitempty"`
	Seen     bounded.Set[string]             `json:",omitzero"`  // keys of complete messages
	Lost     int64                           `json:",omitempty"` // when the newest session was made that is no longer remembered
}

// session is one session: of a person, or of a sub-agent, which has one run.
type session struct {
	conversation.Session
	Agent  string     `json:",omitempty"`
	User   string     `json:",omitempty"` // the last user message, which the responses answer
	Last   string     `json:",omitempty"` // the last response
	Client msg.Client `json:",omitzero"`
	Whole  bool       `json:",omitempty"` // events have its messages whole
	Began  int64      `json:",omitempty"` // when it was made
	Held   []held     `json:",omitempty"`

	Compact string `json:",omitempty"` // the compaction that goes on

	// Of version 2:
	Second  bool                `json:",omitempty"` // it is in the table of that version
	Counted bool                `json:",omitempty"` // Sum has all responses
	Sum     conversation.Counts `json:",omitzero"`  // of its responses
	Spent   float64             `json:",omitempty"` // by them
	Total   conversation.Counts `json:",omitzero"`  // as the row of the session has it
	Cost    float64             `json:",omitempty"`
	Rest    conversation.Counts `json:",omitzero"`  // of Total: those of no response
	Idle    int64               `json:",omitempty"` // when it was idle last, by its messages
	Until   int64               `json:",omitempty"` // by its row
}

// message is one message: a prompt, or a response of the model.
type message struct {
	ID, Session string
	User        bool   `json:",omitempty"`
	Run         string `json:",omitempty"`
	Agent       string `json:",omitempty"`
	Summary     bool   `json:",omitempty"` // it compacts the context
	Tools       bool   `json:",omitempty"` // it has calls
	Done        bool   `json:",omitempty"` // no part will change
	Copied      bool   `json:",omitempty"` // from the session of which this one is a fork
	Ended       bool   `json:",omitempty"` // its end was decoded
	Response    conversation.Response
	Steps       int `json:",omitempty"`
}

// call is a tool call.
type call struct {
	conversation.Delegation // whose run is a session
	Message                 string
	Prompt                  string           `json:",omitempty"` // hash of the task
	Human                   bool             `json:",omitempty"` // it waits for a person and for no other
	Complete                bool             `json:",omitempty"` // its arguments were emitted
	Input                   conversation.Sum `json:",omitempty"` // of them
}

// held is a prompt that waits until the run before it is over.
type held struct{ ID, Text string }

// Read decodes one event, one record or one document.
func (d *stream) Read() {
	d.cur, d.single, d.row = nil, d.Frame.Kind == frame.Body, d.Root.Get("row")
	v, known := jsonv.Or(d.Root.Get("payload"), d.Root), true // the former of all directories
	d.At = conversation.TimeOf(v.Get("timestamp"))
	switch typ := v.Get("type"); {
	case typ.Equal("sync"):
		v.MarkRead() // a copy
	case v.First("properties", "data").Is(jsonv.Object):
		known = d.event(ident.Of(typ), v)
	case typ.Equal("error") && v.Get("sessionID").Exists():
		d.failed(d.find(ident.Of(v.Get("sessionID"))), v.Get("error"))
	default:
		v.Get("sessionID").Equal(ident.Peek(v.Path("part", "sessionID")))
		known = d.entity(v)
	}
	if !known {
		d.unknown(ident.Peek(d.Root.Get("type")), d.Root)
	}
}

// In returns the session at the top.
func (d *stream) In() (session, run string) {
	if d.cur == nil { // before any is known
		return d.Current.In()
	}
	return d.cur.Root, ""
}

// Flush emits the texts that are not complete.
func (d *stream) Flush() {
	for _, p := range d.Parts.Parts {
		if rec := d.known(p.Key); rec != nil && !p.Empty() && d.Sessions.Find(rec.Session) != nil {
			s := d.find(rec.Session)
			run := s.Run
			d.At = rec.Response.At // when it began: nothing else is known of a text that does not go on
			m := d.partOf(rec, p.Kind, p.Name)
			m.Complete, m.Content, m.Signal = msg.Partial, msg.Plain(string(p.Text)), msg.NoSignal
			s.Run = run // it has not begun by this
		}
	}
}

// entity decodes a session, a message or a part, as each form has it:
//
//	{info, messages: [{info, parts}]}          an export
//	{info} | {part}                            an event, and a line of run --format json
//	{…}                                        a file of the storage
//	{table, row: {…} | {id, data: {…}, …}}     a row, whose data has all but the ids
func (d *stream) entity(v jsonv.Value) bool {
	v = jsonv.Or(d.row.Get("data"), d.row, v)
	info, part := jsonv.Or(v.Get("info"), v), jsonv.Or(v.Get("part"), v)
	switch {
	case d.row.Get("type").Exists() && d.row.Get("session_id").Exists():
		return kept{d}.message(d.find(ident.Of(d.row.Get("session_id"))), d.row, d.row.Get("data"))
	case jsonv.Or(part.Get("messageID"), d.row.Get("message_id")).Exists():
		return d.part(part)
	case info.Get("role").Exists() && (info != v || jsonv.Or(info.Get("sessionID"), d.row.Get("session_id")).Exists()):
		d.whole(info, v.Get("parts"))
	case info.Get("id").HasPrefix("ses_"), info != v && v.Get("messages").Is(jsonv.Array):
		d.session(info)
		s := d.cur
		for m := range v.Get("messages").Elems() {
			if m.Get("info").Exists() || !m.Get("type").Exists() {
				d.whole(m.Get("info"), m.Get("parts"))
			} else if !(kept{d}).message(s, m, m) {
				d.unknown(ident.Peek(m.Get("type")), m)
			}
		}
	default:
		return false
	}
	return true
}

// unknown keeps a value that the decoder does not understand. Its time is not that of what came before it.
func (d *stream) unknown(typ string, v jsonv.Value) { conversation.Time{}.Set(d.Unknown(typ, v)) }

// whole decodes a message with its parts. Those of a row follow it, in rows of their own.
func (d *stream) whole(info, parts jsonv.Value) {
	before := d.known(ident.Peek(d.row.Get("id")))
	rec := d.message(info)
	for p := range parts.Elems() {
		if !d.part(p) {
			d.unknown(ident.Peek(p.Get("type")), p)
		}
	}
	if !d.row.Exists() || before != nil || info.Get("error").Exists() {
		d.end(rec, info)
	}
}

// id reads an id of a message or a part: its member, or the column of its row.
func (d *stream) id(v jsonv.Value, member, column string) string {
	return ident.First(v.Get(member), d.row.Get(column))
}

// find returns a session, or remembers it.
func (d *stream) find(id string) *session {
	id = cmp.Or(id, d.Origin, "unknown")
	if len(d.Sessions) >= maxSessions && d.Sessions.Find(id) == nil {
		d.Lost = max(d.Lost, d.Sessions[0].Began)
	}
	d.cur = d.Sessions.Enter(id, maxSessions, func(s conversation.Session) *session { return &session{Session: s} })
	return d.cur
}

// known returns a message that is remembered, or nil.
func (d *state) known(id string) *message {
	return bounded.Find(d.Messages, func(m *message) bool { return m.ID == id })
}

// remember keeps a message, which is of the time at which it was seen first unless its record has another.
func (d *stream) remember(m message) *message {
	m.Response, m.Copied = conversation.Response{ID: m.ID, At: d.At}, d.Seen.Has("copied:"+m.ID)
	d.Messages = bounded.Push(d.Messages, &m, maxMessages)
	return &m
}

// add adds a message to the run of that id, or to none.
func (d *stream) add(s *session, run string, kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	m.Session, m.Run = s.Root, run
	if run != "" && run == s.Run.ID && s.Run.Mark(m) {
		m.Client = s.Client
	}
	return m
}

// status adds a message that a user would not see.
func (d *stream) status(s *session, run, key, typ string) *msg.Message {
	return record.Hide(d.add(s, run, msg.Status, key), typ)
}

// beside adds a status that is a part of a message.
func (d *stream) beside(rec *message, key, typ string, signal msg.Signal) *msg.Message {
	m := record.Hide(d.partOf(rec, msg.Status, key), typ)
	m.Role = msg.NoRole
	record.Signal(m, signal)
	return m
}

// begin adds the beginning of a response to the user message of that id.
func (d *stream) begin(rec *message, user string, model, provider jsonv.Value) *msg.Message {
	s := d.find(rec.Session)
	s.Agent, s.Last = rec.Agent, rec.ID
	rec.Response.Model, rec.Response.Provider = ident.Of(model), ident.Of(provider)
	m := d.beside(rec, "message:"+rec.ID, "response", msg.ModelStart)
	m.ParentKey = "message:" + user
	return m
}

// partOf adds a message that is a part of another.
func (d *stream) partOf(rec *message, kind msg.Kind, key string) *msg.Message {
	m := d.add(d.find(rec.Session), rec.Run, kind, key)
	if rec.User {
		m.Role, m.ParentKey = msg.RoleUser, "message:"+rec.ID
		return m
	}
	m.Role, m.Agent.Name, m.Hidden = msg.RoleAssistant, rec.Agent, rec.Summary
	rec.Response.Mark(m)
	return m
}
