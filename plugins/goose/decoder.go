// Package goose decodes the sessions of Goose, from the rows of its database sessions.db.
//
// Facts of the format that are easy to get wrong:
//
//   - The conversation of a session is rewritten when it is compacted or edited: its rows are deleted
//     and inserted with other ids. message_id stays; early versions have none.
//   - A session that is copied has all messages of the other one, with their ids and times, and none of its tokens.
//   - A result is a message of the user. So is a prompt; metadata has which of the messages a
//     person sees.
//   - A message may have several calls. Several messages with the same created_timestamp are one
//     response of the model: created_timestamp is in seconds.
//   - Tokens are counted for a session, and accumulated over compactions; those without the prefix
//     accumulated_ are of the last response. Since version 15 usage_ledger has a row for each response as well, and, in a session that
//     began before, one with the tokens until then (carried_forward).
package goose

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
	"github.com/earshot-dev/earshot/core/sdk/mcp"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name:       "goose",
			Revision:   6,
			Summary:    "Sessions of Goose: its database, its files, exports and what goose run prints.",
			Transports: []frame.Kind{frame.Line, frame.Body},
			Documents:  []string{"*.json"},
			Tables: json.RawMessage(`{"tables":[
			{"table":"sessions","order":"created_at","json":["extension_data","recipe_json","user_recipe_values_json","model_config_json","parent_delegation"]},
			{"table":"messages","order":"created_timestamp","json":["content_json","metadata_json"]},
			{"table":"usage_ledger","order":"created_timestamp"}]}`),
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

	s       *session
	printed bool // the message is a line that goose run prints, perhaps a piece of one
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Sessions conversation.Sessions[*session] `json:",omitempty"`
	Seen     bounded.Set[string]             `json:",omitzero"`  // messages
	Said     bounded.Set[string]             `json:",omitzero"`  // messages, and each with its session
	File     string                          `json:",omitempty"` // the session that a file is of
}

// session is one conversation: of a person, or of a sub-agent, which has one run.
type session struct {
	conversation.Session
	Model    string                    `json:",omitempty"`
	Provider string                    `json:",omitempty"`
	Counts   conversation.Counts       `json:",omitzero"`
	Ledger   conversation.Counts       `json:",omitzero"` // those of Counts that are in usage_ledger
	Rest     conversation.Counts       `json:",omitzero"` // those that are not, as they were emitted
	Created  conversation.Time         `json:",omitzero"`
	Copied   int                       `json:",omitempty"` // messages of another session
	Calls    conversation.Calls[*call] `json:",omitzero"`
}

// call is a tool call.
type call struct {
	conversation.Delegation        // whose run is a session
	Run                     string `json:",omitempty"`
}

// Read decodes one row: {table, row}.
func (d *stream) Read() {
	row, table := d.Root.Get("row"), d.Root.Get("table")
	d.s, d.printed = nil, false
	switch {
	case !table.Exists() && d.inFile():
	case table.Equal("sessions") && ident.Peek(row.Get("id")) != "":
		d.enter(ident.Of(row.Get("id")))
		d.session(row)
	case table.Equal("usage_ledger") && ident.Peek(row.Get("session_id")) != "" && row.Get("id").Digits() != "":
		d.enter(ident.Of(row.Get("session_id")))
		d.ledger(row)
	case table.Equal("messages") && ident.Peek(row.Get("session_id")) != "" && row.Get("content_json").Is(jsonv.Array):
		d.enter(ident.Of(row.Get("session_id")))
		d.message(row)
	default:
		d.Unknown(ident.Of(table), d.Root)
	}
}

// inFile decodes a record that is no row: a line of a session file, whose first one describes the session, a
// session that was exported, or a line of goose run --output-format stream-json. It reports
// whether it is one of them.
func (d *stream) inFile() bool {
	v := d.Root
	message, whole := v, v.First("conversation", "messages")
	if d.printed = v.Get("type").In("message", "notification", "error", "complete"); d.printed {
		message = v.Get("message")
	}
	about := whole.Is(jsonv.Array) || v.Get("working_dir").Exists() || v.Get("message_count").Exists()
	said := message.Get("role").Exists() && message.Get("content").Is(jsonv.Array)
	if !about && !said && message == v {
		return false
	}
	if d.enter(cmp.Or(ident.Of(v.Get("session_id")), d.File, ident.OfFile(d.Origin, ".json"), "unknown")); about {
		if id := ident.Of(v.Get("id")); id != "" && d.File == "" {
			d.File = id
			d.enter(id)
		}
		d.session(v)
	}
	switch {
	case said:
		d.message(message)
	case message != v:
		d.At = conversation.TimeOf(v.Get("timestamp"))
		m := record.Hide(d.add(msg.Status, "line:"+msg.HashKey(d.s.Run.ID, string(v.Get("type").Peek()), string(v.First("error", "data", "total_tokens").Peek()))), v.Get("type").Str())
		m.Content = v.First("error", "data", "message").Text()
		m.SetAttr("total_tokens", v.Get("total_tokens").Digits())
		if v.Get("type").Equal("complete") && d.s.Run.Active() {
			m.Kind, m.FinishReason = msg.Stop, "stop"
			d.s.Run.End(m)
		}
		d.total(v.Get("input_tokens"), v.Get("output_tokens"), jsonv.Value{}, jsonv.Value{}) // of the session, since May 2026
	}
	for m := range whole.Elems() {
		d.message(m)
	}
	return true
}

// enter makes a session that of the row.
func (d *stream) enter(id string) {
	d.s = d.Sessions.Enter(id, maxSessions, func(s conversation.Session) *session { return &session{Session: s} })
}

// link finds the call that made a sub-agent work: of those of its parent session that have no agent
// so far, the first.
func (d *stream) link() {
	s := d.s
	p := d.Sessions.Find(s.Parent)
	if !s.Run.Child || s.Run.Call != "" || p == nil {
		return
	}
	if c := p.Calls.Oldest(func(c *call) bool { return c.Task && c.Child == "" }); c != nil {
		c.Child = s.ID
		s.Run.Caused(c.Run, c.ID, msg.ByOrder, 70)
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

// session decodes the row of a session, which is written again and again: its model and its tokens.
func (d *stream) session(v jsonv.Value) {
	s := d.s
	s.Model = cmp.Or(ident.Of(v.First("model_config_json", "model_config").Get("model_name")), s.Model)
	s.Provider = cmp.Or(ident.Of(v.Get("provider_name")), s.Provider)
	d.At = conversation.TimeOf(v.Get("created_at"))
	s.Created = d.At
	if parent := ident.Of(v.Get("parent_session_id")); v.Get("session_type").In("sub_agent", "subagent") && s.Run.ID == "" {
		s.Delegated("") // the parent may not be named
		d.Sessions.Delegate(&s.Session, parent)
	}
	m := record.Hide(d.Add(msg.Status, "session:"+s.ID), "session")
	m.Complete = msg.Summary
	conversation.Attrs(m, v, "name", "description", "working_dir", "session_type", "schedule_id", "goose_mode", "project_id", "thread_id")
	m.SetAttr("model", s.Model)
	m.SetAttr("provider", s.Provider)
	m.SetAttr("cost", v.Get("accumulated_cost").Digits())
	conversation.AttrsAs(m, v, conversation.ShortJSON, "recipe=recipe_json", "recipe_values=user_recipe_values_json", "parent_delegation")
	if !s.Run.Child { // else it is the parent of the run
		conversation.Attrs(m, v, "parent_session_id")
	}
	in, out := v.Get("accumulated_input_tokens"), v.Get("accumulated_output_tokens")
	read, written := v.Get("accumulated_cache_read_tokens"), v.Get("accumulated_cache_write_tokens")
	if u := jsonv.Or(v.Get("accumulated_usage"), v.Get("metadata")); u.Is(jsonv.Object) { // of an export since 1.46, and of goose run --output-format json
		in, out, read, written = u.Get("input_tokens"), u.Get("output_tokens"), u.Get("cache_read_input_tokens"), u.Get("cache_write_input_tokens")
	}
	d.total(in, out, read, written)
}

// total reads the tokens of the session, which grow.
func (d *stream) total(in, out, read, written jsonv.Value) {
	if !in.Exists() && !out.Exists() {
		return
	}
	d.s.Counts = d.s.Counts.Max(counts(in, out, read, written))
	d.rest()
}

// counts are tokens, of which the input contains the cached ones.
func counts(in, out, read, written jsonv.Value) conversation.Counts {
	c := conversation.Counts{Input: in.Uint(), Output: out.Uint()}
	if r, w := read.Uint(), written.Uint(); r+w <= c.Input {
		c.Input, c.CacheRead, c.CacheWrite = c.Input-r-w, r, w
	}
	return c
}

// ledger decodes the tokens of one response: {id, model, input_tokens, …, cost, cost_source, is_compaction}. No row names
// the message: they are of the run that goes on.
func (d *stream) ledger(v jsonv.Value) {
	s, id := d.s, v.Get("id").Digits()
	d.At = conversation.TimeOf(v.Get("created_timestamp"))
	c := counts(v.Get("input_tokens"), v.Get("output_tokens"), v.Get("cache_read_tokens"), v.Get("cache_write_tokens"))
	before := v.Get("cost_source").Equal("carried_forward")
	if d.Seen.Add("ledger "+id, maxSeen) {
		s.Ledger = s.Ledger.Add(c)
	}
	d.link()
	r := conversation.Response{ID: "ledger:" + s.ID + "/" + id, Model: ident.Of(v.Get("model")), Provider: s.Provider, At: d.At}
	r.Count(c, msg.Provider)
	m := r.Usage(d.Out, msg.Complete)
	m.Session, m.Agent.Kind, m.ResponseID = s.Root, msg.KindAgent, ""
	if s.Run.ID != "" && (s.Run.Child || !before) {
		s.Run.Mark(m)
	}
	conversation.Attrs(m, v, "cost_source")
	cost := v.Get("cost").Digits()
	m.SetAttr("cost", cost)
	m.Usage.Stated = msg.Dollars(cost)
	if v.Get("is_compaction").Uint() > 0 {
		m.SetAttr("compaction", "true")
	}
	if s.Rest != (conversation.Counts{}) {
		d.rest()
	}
}

// rest emits the tokens of the session that usage_ledger does not have: one message, which follows both.
func (d *stream) rest() {
	s := d.s
	rest, _ := s.Counts.Max(s.Ledger).Sub(s.Ledger)
	none, before := conversation.Counts{}, s.Rest
	if s.Rest = rest; rest == none && before == none && s.Ledger != none {
		return
	}
	d.link()
	s.Total(d.Out, rest, s.Model, s.Provider, s.Created)
}

// copied reports whether a message is that of another session: a session that is copied, or begins as a copy to go another way, has
// the messages of the first one, with their ids and times. Those without an id are older than the session, too.
func (d *stream) copied(id string, role, created, content jsonv.Value) bool {
	s := d.s
	is := msg.HashKey(id, string(role.Peek()), string(created.Peek()), string(content.Peek()))
	if d.Said.Add(is, 2*maxSeen) || d.Said.Has(is+s.ID) || id == "" && d.At.Nanos >= s.Created.Nanos {
		d.Said.Add(is+s.ID, 2*maxSeen)
		return false
	}
	s.Copied++
	m := record.Hide(d.Add(msg.Status, "history:"+s.ID), "copied_history")
	m.Complete = msg.Summary
	s.Created.Set(m)
	m.SetAttr("messages", conversation.NonZero(s.Copied))
	return true
}

// message decodes the row of a message: {role, content_json, created_timestamp, message_id, metadata_json}.
func (d *stream) message(v jsonv.Value) {
	s, content, role, created := d.s, v.First("content_json", "content"), v.Get("role"), v.First("created_timestamp", "created")
	d.At = conversation.TimeOf(created)
	named := ident.First(v.Get("message_id"), v.Get("id"))
	id := named
	if id == "" {
		id = "message:" + msg.HashKey(s.ID, string(role.Peek()), string(created.Peek()), string(content.Peek()))
	}
	fresh := d.Seen.Add(s.ID+" "+id, maxSeen)
	if d.printed && !fresh { // the next piece of an answer
		id += "/" + msg.HashKey(s.Run.ID, string(content.Peek()))
		fresh = true
	}
	if !fresh {
		v.MarkRead() // the conversation was written again
		return
	}
	if !d.printed && d.copied(named, role, created, content) {
		v.MarkRead()
		return
	}
	d.link()
	user := role.Equal("user")
	hidden := v.First("metadata_json", "metadata").Get("userVisible").Is(jsonv.False)
	prompt, calls := false, false
	for c := range content.Elems() {
		typ := c.Get("type")
		prompt = prompt || user && (typ.Equal("text") || typ.Equal("image"))
		calls = calls || typ.Equal("toolRequest") || typ.Equal("frontendToolRequest")
	}
	switch {
	case prompt && !hidden:
		s.Run.Begin(id)
	case s.Run.ID == "": // the beginning was not recorded
		s.Run.Begin(id)
	default:
		s.Run.Ended = false
	}
	r := conversation.Response{ID: id, Model: s.Model, Provider: s.Provider, Run: s.Run.ID, At: d.At}
	before, n := len(d.Out.Messages), 0
	for c := range content.Elems() {
		d.piece(c, conversation.Ordinal(id, &n), user, hidden, &r)
	}
	if user || calls || d.printed || len(d.Out.Messages) == before || r.Last == "" {
		return
	}
	s.Run.Finish(d.add(msg.Stop, "stop:"+id), "stop", false)
}

// piece decodes a piece of a message.
func (d *stream) piece(c jsonv.Value, key string, user, hidden bool, r *conversation.Response) {
	typ := c.Get("type")
	var m *msg.Message
	switch {
	case typ.Equal("text"):
		if m = d.add(msg.Assistant, key); user {
			m.Kind = msg.User
		}
		m.Content = c.Get("text").Text()
	case typ.Equal("image"):
		if m = d.add(msg.Assistant, key); user {
			m.Kind = msg.User
		}
		if data := c.Get("data"); data.Is(jsonv.String) {
			m.Attachments = []msg.Attachment{media.Base64(data, ident.Of(c.Get("mimeType")))}
		}
	case typ.Equal("thinking"), typ.Equal("reasoning"):
		m = d.add(msg.Reasoning, key)
		m.Content = c.First("thinking", "text").Text()
	case typ.Equal("toolRequest"), typ.Equal("frontendToolRequest"):
		d.call(c, r)
		return
	case typ.Equal("toolResponse"):
		d.result(c, key)
		return
	case typ.In("actionRequired", "toolConfirmationRequest", "systemNotification", "redactedThinking",
		"contextLengthExceeded", "summarizationRequested", "conversationCompacted"): // the last three until 2025
		m = record.Hide(d.add(msg.Status, key), typ.Str())
		m.Content = c.First("msg", "prompt").Text()
		m.SetAttr("data", conversation.ShortJSON(c.Get("data")))
		conversation.Attrs(m, c, "notificationType", "toolName", "id")
		return
	default:
		d.Unknown(ident.Of(typ), c)
		return
	}
	m.Hidden = hidden
	switch {
	case user && hidden: // Goose put it into the context
		m.Kind, m.Role = msg.System, msg.RoleUser
		return
	case user:
		if m.Role = msg.RoleUser; !d.s.Run.Child {
			m.Agent.Kind = msg.KindHuman
		}
		return
	}
	r.Said(m, m.Content)
}

// call decodes a call: {id, toolCall: {status, value: {name, arguments}}}.
func (d *stream) call(v jsonv.Value, r *conversation.Response) {
	id, value := ident.Of(v.Get("id")), v.Path("toolCall", "value")
	name := cmp.Or(ident.Of(value.Get("name")), "unknown")
	c := d.s.made(cmp.Or(id, r.ID), name)
	if c.Task = name == "delegate" || name == "subagent" || name == "summon__delegate"; c.Task {
		c.To = ident.First(value.Path("arguments", "source"), value.Path("arguments", "subrecipe"))
	}
	d.s.Calls.Add(c)
	m := d.add(msg.ToolCall, "call:"+c.ID)
	c.Called(m, value.Get("arguments").JSON(), value.Path("arguments", "instructions"))
	r.Next(m)
	if fault := v.Path("toolCall", "error"); fault.Exists() { // the model wrote no valid call
		m.IsError, m.Content, m.Tool.ErrorType = true, fault.Text(), "invalid_arguments"
	}
	v.Path("toolCall", "status").In("success", "error")
}

// made is a call of the session's run.
func (s *session) made(id, name string) *call {
	c := &call{Run: s.Run.ID}
	c.ID, c.Name = id, name
	return c
}

// result decodes the end of a call: {id, toolResult: {status, value: {content, isError}, error}}.
func (d *stream) result(v jsonv.Value, key string) {
	id, result := ident.Of(v.Get("id")), v.Get("toolResult")
	c := d.s.Calls.Get(id)
	if c == nil {
		c = d.s.made(cmp.Or(id, key), "")
	}
	d.s.Calls.End(c)
	m := c.Result(d.add(msg.ToolResult, "result:"+c.ID))
	if c.Run != "" && m.Signal != msg.RunStart {
		m.Run = c.Run
	}
	value := result.Get("value")
	content := value
	if value.Is(jsonv.Object) {
		content = value.Get("content")
	}
	mcp.Content(content).Fill(m)
	if fault := result.Get("error"); fault.Exists() || value.Get("isError").Bool() {
		if m.IsError, m.Tool.ErrorType = true, "tool_error"; fault.Exists() {
			m.Content = fault.Text()
		}
	}
	if child := ident.First(value.Path("_meta", "subagent_session_id"), value.Path("structuredContent", "subagent_session_id")); child != "" {
		m.Kind, m.Delegation.ChildRun, m.Delegation.Link = msg.DelegationResult, child, msg.ByNativeID
	} else if c.Task && c.Child != "" {
		m.Delegation.Link, m.Delegation.Confidence = msg.ByOrder, 70
	}
}
