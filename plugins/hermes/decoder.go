// Package hermes decodes the sessions of Hermes Agent, from the rows of its database state.db.
//
// Facts of the format that are easy to get wrong:
//
//   - A message is rewritten under another row id when its conversation is compacted or repaired, and
//     its row is updated when it leaves the context. Role, time, content and calls stay.
//   - parent_session_id is that of a sub-agent (model_config has _delegate_from), of a branch
//     (_branched_from), of a new conversation (_reset_from), and of a session that was compacted, whose
//     end_reason is compression: only the last one continues the conversation.
//   - A branch begins with a copy of the messages of the other session, and a session that continues a compacted one with its
//     last messages; before July 2026 copies had the time of the copy.
//   - Tokens are counted for a session; messages have at most an estimate. session_model_usage has them for
//     each model, and those of requests for a summary, a title or an image (task), which the session has not.
//   - Calls are a JSON text in tool_calls, in the form of OpenAI, whose arguments are a text again.
package hermes

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"

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
			Name:       "hermes",
			Revision:   4,
			Summary:    "Sessions of Hermes Agent, in its database, its files and its exports.",
			Transports: []frame.Kind{frame.Line, frame.Body},
			Documents:  []string{"*.json"},
			Tables: json.RawMessage(`{"tables":[
			{"table":"sessions","order":"started_at","json":["model_config"],"columns":["id","source","model","model_config","parent_session_id","started_at","ended_at","end_reason",
				"input_tokens","output_tokens","cache_read_tokens","cache_write_tokens","reasoning_tokens","cwd","git_branch","billing_provider","estimated_cost_usd","actual_cost_usd",
				"title","api_call_count","profile_name"]},
			{"table":"messages","order":"timestamp","json":["tool_calls"],"columns":["id","session_id","role","content","tool_call_id","tool_calls","tool_name","timestamp","finish_reason",
				"reasoning","reasoning_content","_compressed_summary","display_kind"]},
			{"table":"session_model_usage","order":"first_seen","columns":["session_id","model","billing_provider","billing_base_url","billing_mode","task",
				"input_tokens","output_tokens","cache_read_tokens","cache_write_tokens","reasoning_tokens","api_call_count","first_seen"]}]}`),
		},
		LeavesOut: leavesOut,
		State:     1,
		Open:      func(r *record.Current, s *state) record.Reader { return &stream{Current: r, state: s} },
	}.Factory()
}

const (
	maxSessions = 256
	maxParts    = 64 // of a session; the tokens of more are those of the session
	maxSeen     = 8192
	confidence  = 70 // of a link by order
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
	Seen     bounded.Set[string]             `json:",omitzero"`  // messages
	Said     bounded.Set[string]             `json:",omitzero"`  // contents, each with its session
	File     string                          `json:",omitempty"` // the session that a file is of
}

// session is one session: of a person, or of a sub-agent, which has one run.
type session struct {
	conversation.Session
	Model    string                    `json:",omitempty"`
	Provider string                    `json:",omitempty"`
	Counts   conversation.Counts       `json:",omitzero"`
	Rest     conversation.Counts       `json:",omitzero"` // of Counts: those that are of no part
	Parts    []part                    `json:",omitempty"`
	Calls    conversation.Calls[*call] `json:",omitzero"`
	Chain    string                    `json:",omitempty"` // key of the last message that has no time

	Origin  string            `json:",omitempty"` // of a branch, and of a session that continues a compacted one: the session that was copied
	Branch  bool              `json:",omitempty"`
	Line    string            `json:",omitempty"` // the first of the sessions that continue one another
	Started conversation.Time `json:",omitzero"`
	Until   conversation.Time `json:",omitzero"`  // when it was compacted, and another session began to continue it
	Copied  int               `json:",omitempty"` // messages of Origin
	Kept    bool              `json:",omitempty"` // copies have the times of their originals
	Own     bool              `json:",omitempty"` // a message is no copy
}

// part is those of a session's tokens that are of one model.
type part struct {
	Name   string
	Counts conversation.Counts
}

// call is a tool call.
type call struct {
	conversation.Call
	Run   string `json:",omitempty"`
	Task  bool   `json:",omitempty"`
	Child string `json:",omitempty"` // the last session that works for it
	Many  bool   `json:",omitempty"` // several agents work for it
	Left  int    `json:",omitempty"` // agents that have no session so far
}

// Read decodes one row: {table, row}.
func (d *stream) Read() {
	row, table := d.Root.Get("row"), d.Root.Get("table")
	d.s = nil
	switch {
	case !table.Exists() && d.inFile():
	case table.Equal("sessions") && ident.Peek(row.Get("id")) != "":
		d.enter(ident.Of(row.Get("id")))
		d.session(row)
	case table.Equal("session_model_usage") && ident.Peek(row.Get("session_id")) != "":
		d.enter(ident.Of(row.Get("session_id")))
		d.part(row)
	case table.Equal("messages") && ident.Peek(row.Get("session_id")) != "":
		d.enter(ident.Of(row.Get("session_id")))
		d.message(row)
	default:
		d.Unknown(ident.Of(table), d.Root)
	}
}

// inFile decodes a record that is no row: a line of a session file, whose first one has the role session_meta,
// a file that has a whole session, or a session that was exported: its row, with the rows of its messages. It
// reports whether it is one of them.
func (d *stream) inFile() bool {
	v := d.Root
	whole := v.Get("messages").Is(jsonv.Array)
	if whole && v.Get("started_at").Exists() && ident.Peek(v.Get("id")) != "" {
		d.enter(ident.Of(v.Get("id")))
		d.session(v)
		for m := range v.Get("messages").Elems() {
			d.message(m)
		}
		return true
	}
	whole = whole && v.Get("session_id").Is(jsonv.String)
	if !whole && !v.Get("role").Is(jsonv.String) {
		return false
	}
	if d.enter(cmp.Or(ident.Of(v.Get("session_id")), d.File, ident.OfFile(d.Origin, ".json"), "unknown")); d.File == "" {
		d.File = d.s.ID
	}
	if !whole && !v.Get("role").Equal("session_meta") {
		d.message(v)
		return true
	}
	s := d.s
	s.Model = cmp.Or(ident.Of(v.Get("model")), s.Model)
	d.At = conversation.TimeOf(v.First("session_start", "timestamp"))
	m := record.Hide(d.Add(msg.Status, "session:"+s.ID), "session")
	m.Complete, m.Content = msg.Summary, v.Get("system_prompt").Text()
	conversation.Attrs(m, v, "platform", "base_url", "cwd", "last_updated")
	m.SetAttr("model", s.Model)
	m.SetAttr("config", conversation.ShortJSON(v.Get("model_config")))
	if s.Chain = ""; whole {
		for r := range v.Get("messages").Elems() {
			if !r.Get("role").Equal("session_meta") {
				d.message(r)
			}
		}
	}
	return true
}

// In returns the session at the top.
func (d *stream) In() (session, run string) {
	if d.s == nil {
		return "unknown", ""
	}
	return d.s.Root, ""
}

// enter makes a session that of the row.
func (d *stream) enter(id string) {
	d.s = d.Sessions.Enter(id, maxSessions, func(s conversation.Session) *session { return &session{Session: s} })
}

// add adds a message of the session's run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	d.s.Run.Mark(m)
	return m
}

// session decodes the row of a session, which is written again and again: its model, its tokens and
// its end.
func (d *stream) session(v jsonv.Value) {
	s := d.s
	s.Model, s.Provider = cmp.Or(ident.Of(v.Get("model")), s.Model), cmp.Or(ident.Of(v.Get("billing_provider")), s.Provider)
	d.At = conversation.TimeOf(v.Get("started_at"))
	parent, config := ident.Of(v.Get("parent_session_id")), inner(v.Get("model_config"))
	if v.Get("end_reason").Equal("compression") {
		s.Until = conversation.TimeOf(v.Get("ended_at"))
	}
	p := d.Sessions.Find(parent)
	continues := p != nil && p.Until.Nanos != 0 && d.At.Nanos >= p.Until.Nanos // that of an agent has its source, too
	delegated := !continues && v.Get("source").Equal("subagent") || ident.Peek(config.Get("_delegate_from")) == parent
	branch := ident.Peek(config.Get("_branched_from")) == parent
	own := branch || ident.Peek(config.Get("_reset_from")) == parent
	if s.Started = d.At; parent != "" && parent != s.ID && s.Root == s.ID && !own {
		if d.Sessions.Below(&s.Session, parent); delegated && s.Run.ID == "" {
			s.Delegated(parent)
		}
	}
	if parent != "" && parent != s.ID && (branch || !own && !delegated) && s.Origin == "" {
		s.Origin, s.Branch = parent, branch
		if p != nil && !branch {
			s.Line = cmp.Or(p.Line, parent)
		}
	}
	m := record.Hide(d.Add(msg.Status, "session:"+s.ID), "session")
	m.Complete, m.Content = msg.Summary, v.Get("system_prompt").Text()
	conversation.Attrs(m, v, "source", "title", "cwd", "git_branch", "end_reason", "profile_name")
	m.SetAttr("parent_session_id", parent)
	m.SetAttr("model", s.Model)
	m.SetAttr("provider", s.Provider)
	m.SetAttr("config", conversation.ShortJSON(config))
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "ended_at", "estimated_cost_usd", "actual_cost_usd", "api_call_count")
	if s.Counts = s.Counts.Max(counts(v)); s.Counts != (conversation.Counts{}) {
		d.rest()
	}
}

func counts(v jsonv.Value) conversation.Counts {
	return conversation.Counts{
		Input: v.Get("input_tokens").Uint(), Output: v.Get("output_tokens").Uint(), CacheRead: v.Get("cache_read_tokens").Uint(),
		CacheWrite: v.Get("cache_write_tokens").Uint(), Reasoning: v.Get("reasoning_tokens").Uint(),
	}
}

// part decodes the tokens of a session by a model. Those of a task are not among the session's, unless a person
// talks to it.
func (d *stream) part(v jsonv.Value) {
	s, task, c := d.s, ident.Of(v.Get("task")), counts(v)
	model, provider := ident.Of(v.Get("model")), ident.Of(v.Get("billing_provider"))
	if c == (conversation.Counts{}) {
		return
	}
	name := "/" + msg.HashKey(model, provider, string(v.Get("billing_base_url").Peek()), string(v.Get("billing_mode").Peek()), task)
	own := task == "" || task == "voice_chat"
	i := slices.IndexFunc(s.Parts, func(p part) bool { return p.Name == name })
	switch {
	case own && i < 0 && len(s.Parts) == maxParts:
		return
	case own && i < 0:
		s.Parts = append(s.Parts, part{name, c})
	case own:
		s.Parts[i].Counts = c
	}
	d.At = conversation.TimeOf(v.Get("first_seen"))
	d.link()
	m := s.Share(d.Out, name, c, model, provider, d.At)
	m.SetAttr("task", task)
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "api_call_count")
	if own {
		d.rest()
	}
}

// rest emits the tokens of the session that are of no part.
func (d *stream) rest() {
	s := d.s
	var sum, none conversation.Counts
	for _, p := range s.Parts {
		sum = sum.Add(p.Counts)
	}
	before := s.Rest
	if s.Rest, _ = s.Counts.Max(sum).Sub(sum); s.Rest == none && before == none {
		return
	}
	d.link()
	s.Total(d.Out, s.Rest, s.Model, s.Provider, d.At)
}

// link finds the call that made a sub-agent work: of those of its parent session that miss an agent,
// the first.
func (d *stream) link() {
	p := d.Sessions.Find(d.s.Parent)
	if !d.s.Run.Child || d.s.Run.Call != "" || p == nil {
		return
	}
	if c := p.Calls.Oldest(func(c *call) bool { return c.Left > 0 }); c != nil {
		c.Left--
		c.Child = d.s.ID
		d.s.Run.Caused(c.Run, c.ID, msg.ByOrder, confidence)
	}
}

// atOnce is how long after its beginning a session has the copies with which it begins.
const atOnce = 30e9

// copied reports whether a message is one of the session from which this one branched off, or which it continues. Copies have the
// times of their originals, or in versions before July 2026 that of the copy; then their contents tell.
func (d *stream) copied(v jsonv.Value) bool {
	s := d.s
	facts := []string{string(v.Get("role").Peek()), string(v.Get("tool_call_id").Peek()), string(v.Get("content").Peek()), string(v.Get("tool_calls").Peek())}
	d.Said.Add(msg.HashKey(append(facts, s.ID)...), maxSeen)
	switch after := d.At.Nanos - s.Started.Nanos; {
	case s.Origin == "" || d.At.Nanos == 0 || s.Started.Nanos == 0:
		return false
	case after < 0 && s.Branch:
		s.Kept = true
	case s.Own || s.Kept || v.Get("_compressed_summary").Int() > 0:
		return false
	case after > atOnce || !d.Said.Has(msg.HashKey(append(facts, s.Origin)...)):
		s.Own = true
		return false
	}
	s.Copied++
	m := record.Hide(d.Add(msg.Status, "history:"+s.ID), "copied_history")
	m.Complete = msg.Summary
	s.Started.Set(m)
	m.SetAttr("from", s.Origin)
	m.SetAttr("messages", conversation.NonZero(s.Copied))
	return true
}

// message decodes the row of a message.
func (d *stream) message(v jsonv.Value) {
	s, role, content, calls := d.s, v.Get("role"), v.Get("content"), v.Get("tool_calls")
	d.At = conversation.TimeOf(v.Get("timestamp"))
	key := msg.HashKey(cmp.Or(s.Line, s.ID), string(role.Peek()), string(v.Get("timestamp").Peek()), string(v.Get("tool_call_id").Peek()), string(content.Peek()), string(calls.Peek()))
	if !v.Get("timestamp").Exists() { // of a file: the messages before distinguish equal ones
		key = msg.HashKey(s.Chain, key)
		s.Chain = key
	}
	if !d.Seen.Add(key, maxSeen) {
		v.MarkRead() // the row was written again
		return
	}
	if d.copied(v) {
		v.MarkRead()
		return
	}
	if p := d.Sessions.Find(s.Origin); p != nil && !s.Branch && s.Run.ID == "" {
		s.Run = p.Run // it goes on in this session
	}
	d.link()
	key = "message:" + key
	summary := v.Get("_compressed_summary").Int() > 0
	injected := summary || v.Get("display_kind").Equal("hidden")
	if !injected && (role.Equal("user") || s.Run.ID == "") {
		s.Run.Begin(key)
	} else {
		s.Run.Ended = false
	}
	switch {
	case role.Equal("tool"):
		d.result(v, key)
	case role.Equal("assistant"):
		d.answer(v, key)
	default:
		m := d.add(msg.User, key)
		switch m.Role = msg.RoleUser; {
		case injected || !role.Equal("user"):
			m.Kind, m.Role, m.Hidden = msg.System, msg.RoleSystem, true
			m.SetAttr("role", ident.Of(role))
			if summary && m.Run != "" && m.Signal == msg.NoSignal {
				m.Signal = msg.Compaction
			}
		case !s.Run.Child:
			m.Agent.Kind = msg.KindHuman
		}
		m.Content = text(content)
	}
}

// text is a content, which is a text in the database.
func text(v jsonv.Value) msg.Text {
	if v.Is(jsonv.Object) || v.Is(jsonv.Array) {
		return v.JSON()
	}
	return v.Text()
}

// inner returns the value of a JSON text: an export has columns as texts, and rows that older versions of
// Hermes wrote again have their calls encoded twice.
func inner(v jsonv.Value) jsonv.Value {
	if in := new(jsonv.Doc).Inner(v); in.Len() > 0 {
		return in
	}
	return v
}

func empty(v jsonv.Value) bool { return len(v.Escaped()) == 0 && v.Len() == 0 }

// answer decodes a response of the model: its thought, its text and its calls.
func (d *stream) answer(v jsonv.Value, key string) {
	s, finish := d.s, ident.Of(v.Get("finish_reason"))
	r := conversation.Response{ID: key, Model: s.Model, Provider: s.Provider, Run: s.Run.ID, At: d.At, Stop: finish}
	thought := v.Get("reasoning")
	if again := v.Get("reasoning_content"); len(thought.Escaped()) == 0 {
		thought = again
	} else if string(again.Peek()) == string(thought.Peek()) {
		again.MarkRead()
	}
	if !empty(thought) {
		r.Said(d.add(msg.Reasoning, key+"/thinking"), text(thought)).FinishReason = finish
	}
	if content := v.Get("content"); !empty(content) {
		r.Said(d.add(msg.Assistant, key), text(content)).FinishReason = finish
	}
	n := 0
	for c := range inner(v.Get("tool_calls")).Elems() {
		d.call(c, conversation.Ordinal(key+"/call", &n), &r)
	}
	if n > 0 {
		return
	}
	s.Run.Finish(d.add(msg.Stop, "stop:"+key), cmp.Or(finish, "stop"), false)
}

// call decodes a call: {id, function: {name, arguments}}.
func (d *stream) call(v jsonv.Value, key string, r *conversation.Response) {
	name, args := cmp.Or(ident.Of(v.Path("function", "name")), "unknown"), v.Path("function", "arguments")
	c := &call{Call: conversation.Call{ID: cmp.Or(ident.First(v.Get("id"), v.Get("call_id")), key), Name: name}, Run: d.s.Run.ID}
	kind := msg.ToolCall
	if c.Task = name == "delegate_task"; c.Task {
		kind, c.Left = msg.Delegation, 1
	}
	d.s.Calls.Add(c)
	m := d.add(kind, "call:"+c.ID)
	m.Role, m.Tool.Arguments = msg.RoleAssistant, args.Text()
	if args.Is(jsonv.Object) {
		m.Tool.Arguments = args.JSON()
	}
	c.On(m)
	if c.Task {
		var task struct {
			Goal  string
			Tasks []struct{ Goal string }
		}
		if json.Unmarshal([]byte(args.PeekStr()), &task) == nil {
			for _, t := range task.Tasks {
				task.Goal = cmp.Or(task.Goal, t.Goal)
			}
			m.Delegation.Task, c.Left, c.Many = msg.Plain(task.Goal), max(1, len(task.Tasks)), len(task.Tasks) > 1
		}
	}
	r.Mark(m)
	m.ParentKey, m.FinishReason, r.Last = r.Last, r.Stop, m.Key
	m.SetAttr("item_id", ident.Of(v.Get("response_item_id")))
	v.Get("call_id").Equal(c.ID)
	v.Get("type").Equal("function")
}

// result decodes the message of a tool.
func (d *stream) result(v jsonv.Value, key string) {
	c := d.s.Calls.Get(ident.Of(v.Get("tool_call_id")))
	if c == nil {
		c = &call{Call: conversation.Call{ID: cmp.Or(ident.Of(v.Get("tool_call_id")), key), Name: ident.Of(v.Get("tool_name"))}, Run: d.s.Run.ID}
	}
	v.Get("tool_name").Equal(c.Name)
	c.Left = 0
	d.s.Calls.End(c)
	m := d.add(msg.ToolResult, "result:"+c.ID)
	m.Role, m.ParentKey = msg.RoleTool, "call:"+c.ID
	if m.Signal != msg.RunStart {
		m.Run = c.Run
	}
	c.On(m)
	m.Content = text(v.Get("content"))
	if content := v.Get("content"); content.HasPrefix("{") {
		failed(m, inner(content))
	}
	if c.Task {
		if m.Kind = msg.DelegationResult; c.Child != "" && !c.Many {
			m.Delegation.ChildRun = c.Child
			m.Delegation.Link, m.Delegation.Confidence = msg.ByOrder, confidence
		}
	}
}

// failed makes a result that of a tool that failed, if the tool says so: {"output": "…", "exit_code": 1} of a command, and of others
// {"success": false} or {"error": "…"}.
func failed(m *msg.Message, v jsonv.Value) {
	code, ok, fault := v.Get("exit_code"), v.Get("success"), v.Get("error")
	if exit := code.Digits(); exit != "" && exit != "0" {
		m.SetAttr("exit_code", exit)
	}
	conversation.Failed(m, code.Is(jsonv.Number) && code.Int() != 0 || ok.Is(jsonv.False) || !ok.Exists() && !code.Exists() && len(fault.Escaped()) > 0)
}
