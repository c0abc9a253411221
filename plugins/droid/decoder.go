// Package droid decodes the sessions of Factory's Droid: a file of lines, and a document beside it with the settings and the tokens.
//
//	sessions/PROJECT/SESSION.jsonl           session_start, then message: {id, timestamp, message: {role, content: [block]}}, and other records
//	sessions/PROJECT/SESSION.settings.json   {model, providerLock, tokenUsage, …}, which is written again
//
// Droid is not open. The facts below are those on which public readers of its files agree (ccusage, tokscale, CodeBurn, agent-sessions):
//
//   - No record has tokens or a model: the settings have the sum of the tokens, and the model that was chosen last.
//   - inputTokens has no cached tokens. That outputTokens has none of thinkingTokens is how ccusage counts; nobody has it from Factory.
//   - A session that a call of Task made names it in its first line (callingSessionId, callingToolUseId).
//   - Results of calls are user messages, and so are reminders of Droid, whose texts begin with <system-reminder>.
//   - The reason of agent_turn_outcome is known by its name alone: which there are is not public.
package droid

import (
	"cmp"
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
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
			Name:       "droid",
			Revision:   1,
			Summary:    "Sessions of Factory's Droid, with their settings and those of its sub-agents.",
			Transports: []frame.Kind{frame.Line, frame.Body},
			Documents:  []string{"*.settings.json"},
		},
		LeavesOut: leavesOut,
		State:     1,
		Open:      func(r *record.Current, s *state) record.Reader { return &stream{Current: r, state: s} },
	}.Factory()
}

// stream decodes one file.
type stream struct {
	*record.Current
	*state
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	ID      string                    `json:",omitempty"` // of the session
	Project string                    `json:",omitempty"`
	Caller  string                    `json:",omitempty"` // the call that made the session
	Run     conversation.Run          `json:",omitzero"`
	Last    string                    `json:",omitempty"` // key of the message before
	Calls   conversation.Calls[*call] `json:",omitzero"`
}

// call is a tool call.
type call struct {
	conversation.Delegation
	Run string `json:",omitempty"`
}

// In returns the session: that of the first line, else the one that names the file.
func (d *stream) In() (session, run string) {
	return cmp.Or(d.ID, ident.Bounded(ident.OfFile(d.Origin, ".settings.json", ".jsonl")), "unknown"), d.Run.ID
}

// Read decodes a record.
func (d *stream) Read() {
	v := d.Root
	d.At = conversation.TimeOf(v.Get("timestamp"))
	switch typ := v.Get("type"); {
	case typ.Equal("session_start") && ident.Peek(v.Get("id")) != "":
		d.start(v)
	case typ.Equal("message") && ident.Peek(v.Get("id")) != "" && v.Path("message", "role").In("user", "assistant", "system"):
		d.message(v)
	case typ.Equal("agent_turn_outcome") && ident.Peek(v.Get("reason")) != "":
		d.outcome(v)
	case typ.Equal("compaction_state"):
		m := record.Hide(d.add(msg.Status, "compaction:"+d.name(v)), "compaction")
		record.Signal(m, msg.Compaction)
		m.Content = v.First("summaryText", "summary").Text()
	case typ.Equal("todo_state") && v.Get("todos").Exists():
		record.Hide(d.add(msg.Status, "todos:"+d.name(v)), "todo_state").Content = v.Get("todos").JSON()
	case !typ.Exists() && (v.Get("tokenUsage").Is(jsonv.Object) || v.Get("model").Is(jsonv.String)):
		d.settings(v)
	default:
		d.Unknown(ident.Peek(typ), v)
	}
}

// name is that of a record: its id, else a hash of it.
func (d *stream) name(v jsonv.Value) string {
	id := ident.Of(v.Get("id"))
	return cmp.Or(id, msg.HashKey(string(v.Get("timestamp").Peek()), string(v.First("summaryText", "summary").Peek())))
}

// start decodes the first line, which is written again with another title.
func (d *stream) start(v jsonv.Value) {
	d.ID, d.Project = ident.Of(v.Get("id")), ident.Of(v.Get("cwd"))
	d.Caller = ident.Of(v.Get("callingToolUseId"))
	m := record.Hide(d.Add(msg.Status, "session"), "session")
	m.Complete, m.Client.Project = msg.Summary, d.Project
	m.Title = conversation.Excerpt(v.First("sessionTitle", "title"))
	conversation.Attrs(m, v, "owner", "calling_session=callingSessionId", "calling_tool_use=callingToolUseId", "parent", "decompSessionType", "decompMissionId")
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "version")
}

// settings decodes the document of the session: its model, and the sum of its tokens.
func (d *stream) settings(v jsonv.Value) {
	id, _ := d.In()
	d.At = conversation.TimeOf(v.Get("providerLockTimestamp"))
	m := record.Hide(d.Add(msg.Status, "settings"), "settings")
	m.Complete = msg.Summary
	conversation.Attrs(m, v, "model", "provider=providerLock", "reasoningEffort", "autonomyLevel", "autonomyMode", "interactionMode")
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "assistantActiveTimeMs")
	u := v.Get("tokenUsage")
	c := conversation.Counts{Input: u.Get("inputTokens").Uint(), Output: u.Get("outputTokens").Uint(), CacheRead: u.Get("cacheReadTokens").Uint(), CacheWrite: u.Get("cacheCreationTokens").Uint()}
	c.Reasoning = u.Get("thinkingTokens").Uint()
	if c.Output += c.Reasoning; c == (conversation.Counts{}) {
		return
	}
	s := conversation.Session{ID: id, Root: id}
	s.Total(d.Out, c, ident.Of(v.Get("model")), ident.Of(v.Get("providerLock")), d.At)
}

// add adds a message of the run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	if d.Run.Mark(m) {
		m.Client.Project = d.Project
		if d.Caller != "" && m.Run == d.ID {
			m.Delegation.CorrelationID = called(d.Caller)
		}
	}
	return m
}

// called is the name under which a call and the session that it made meet.
func called(id string) string { return "droid:" + id }

// begin begins a run. That of a sub-agent is its session.
func (d *stream) begin(id string) {
	switch {
	case d.Caller == "" || d.ID == "":
		d.Run.Begin(id)
	case d.Run.ID == "":
		d.Run.Begin(d.ID)
	default:
		d.Run.Ended = false
	}
}

// message decodes a message: {id, timestamp, parentId, message: {role, content}}.
func (d *stream) message(v jsonv.Value) {
	id, content := ident.Of(v.Get("id")), v.Path("message", "content")
	if v.Path("message", "role").Equal("assistant") {
		d.response(id, content)
		return
	}
	var has, reminders conversation.Content
	results := false
	for b := range jsonv.Each(content) {
		switch typ, text := b.Get("type"), jsonv.Or(b.Get("text"), b); {
		case (b.Is(jsonv.String) || typ.Equal("text")) && text.HasPrefix("<system-reminder>"), text.Is(jsonv.String) && v.Path("message", "role").Equal("system"):
			reminders.Add(text.Text())
		case b.Is(jsonv.String), typ.Equal("text") && text.Is(jsonv.String):
			has.Add(text.Text())
		case typ.Equal("tool_result") && ident.Peek(b.Get("tool_use_id")) != "":
			d.result(b)
			results = true
		case isFile(b):
			has.Attach(file(b))
		default:
			d.Unknown(ident.Peek(typ), b)
		}
	}
	prompt := has.N > 0 || len(has.Files) > 0
	if prompt && (!results || d.Run.ID == "" || d.Run.Ended) {
		d.begin(id)
	}
	if prompt {
		m := d.add(msg.User, "user:"+id)
		has.Fill(m)
		if m.Role = msg.RoleUser; d.Caller == "" {
			m.Agent.Kind = msg.KindHuman
		}
		d.Last = m.Key
	}
	if reminders.N > 0 {
		m := d.add(msg.System, "system:"+id)
		reminders.Fill(m)
		m.Hidden = true
	}
}

// isFile reports whether a block is a file, whose bytes are in it.
func isFile(b jsonv.Value) bool {
	return b.Get("type").In("image", "document") && b.Path("source", "data").Is(jsonv.String)
}

// file reads an image or a document.
func file(b jsonv.Value) msg.Attachment {
	b.Path("source", "type").Equal("base64")
	return media.Base64(b.Path("source", "data"), ident.First(b.Path("source", "media_type"), b.Path("source", "mediaType")))
}

// response decodes a response of the model with its calls.
func (d *stream) response(id string, content jsonv.Value) {
	if d.Run.ID == "" || d.Run.Ended {
		d.begin(id)
	}
	r := conversation.Response{ID: id, Run: d.Run.ID, Last: d.Last, At: d.At}
	calls := false
	for b := range jsonv.Each(content) {
		switch typ := b.Get("type"); {
		case b.Is(jsonv.String), typ.Equal("text") && b.Get("text").Is(jsonv.String):
			r.Said(d.add(msg.Assistant, r.Key(msg.Assistant)), jsonv.Or(b.Get("text"), b).Text())
		case typ.Equal("thinking") && b.Get("thinking").Is(jsonv.String):
			r.Said(d.add(msg.Reasoning, r.Key(msg.Reasoning)), b.Get("thinking").Text())
		case typ.Equal("redacted_thinking"):
		case typ.Equal("tool_use") && ident.Peek(b.Get("id")) != "":
			calls = true
			d.call(b, &r)
		case isFile(b):
			d.add(msg.File, "file:"+r.Key(msg.Assistant)).Attachments = []msg.Attachment{file(b)}
		default:
			d.Unknown(ident.Peek(typ), b)
		}
	}
	said := d.Last != r.Last
	if d.Last = r.Last; said && !calls {
		d.Run.Finish(d.add(msg.Stop, "stop:"+id), "stop", false)
	}
}

// call decodes a call: {id, name, input}.
func (d *stream) call(b jsonv.Value, r *conversation.Response) {
	c := &call{Run: r.Run}
	c.ID, c.Name = ident.Of(b.Get("id")), cmp.Or(ident.Of(b.Get("name")), "unknown")
	c.Within(r.ID)
	if c.Task = c.Name == "Task"; c.Task {
		c.To = ident.Of(b.Path("input", "subagent_type"))
	}
	d.Calls.Add(c)
	m := d.add(msg.ToolCall, "call:"+c.ID)
	c.Called(m, b.Get("input").JSON(), b.Path("input", "prompt"))
	if c.Task {
		m.Delegation.CorrelationID = called(ident.Peek(b.Get("id")))
	}
	r.Next(m)
}

// result decodes the result of a call: {tool_use_id, content, is_error}.
func (d *stream) result(b jsonv.Value) {
	id := ident.Of(b.Get("tool_use_id"))
	c := d.Calls.Named(id)
	if c == nil {
		c = &call{Run: d.Run.ID}
		c.ID, c.Name = id, "unknown"
	}
	d.Calls.End(c)
	m := c.Result(d.add(msg.ToolResult, "result:"+c.ID))
	if c.Run != "" && m.Signal != msg.RunStart {
		m.Run = c.Run
	}
	var has conversation.Content
	for x := range jsonv.Each(b.Get("content")) {
		switch text := jsonv.Or(x.Get("text"), x); {
		case isFile(x):
			has.Attach(file(x))
		case text.Is(jsonv.String):
			x.Get("type").Equal("text")
			has.Add(text.Text())
		default:
			has.Add(x.JSON())
		}
	}
	if has.Fill(m); b.First("is_error", "isError").Bool() {
		m.IsError = true
		m.Tool.ErrorType = conversation.ErrorClass(conversation.Cut(m.Content.String(), ident.Max), "rejected", "denied", "denied", "denied", "cancelled", "interrupted", "interrupted", "interrupted", "", "tool_error")
	}
}

// outcome decodes how a turn ended: {turnId, reason}. A response without calls has ended it before.
func (d *stream) outcome(v jsonv.Value) {
	reason := ident.Of(v.Get("reason"))
	key := "outcome:" + cmp.Or(ident.Of(v.Get("turnId")), msg.HashKey(d.Last, reason))
	failed := reason != "completed" && reason != "success" && reason != "end_turn"
	if d.Run.Active() {
		d.Run.Finish(d.add(msg.Stop, key), reason, failed)
		return
	}
	m := record.Hide(d.add(msg.Status, key), "agent_turn_outcome")
	m.SetAttr("reason", reason)
}
