// Package cursor decodes the conversations of Cursor, from the rows of its database state.vscdb, from its
// transcripts, and from the output of the program cursor-agent.
//
// Facts of the format that are easy to get wrong:
//
//   - The table cursorDiskKV has a row composerData:<composer> for a conversation and a row
//     bubbleId:<composer>:<bubble> for each message. Both are replaced at each change, a message many
//     times while it is streamed.
//   - fullConversationHeadersOnly of the conversation has the order of the messages. Their rows have
//     that of their last change.
//   - A bubble of type 1 is a prompt. One of type 2 has a text, a thought or a call with its result.
//   - params, rawArgs and result are JSON texts.
//   - tokenCount is 0 in most bubbles: Cursor has the counts on its server.
//   - A command that failed or was not permitted has the status completed.
//   - A sub-agent is a conversation of its own, whose subagentInfo names the call.
//   - A fork has the messages of the other conversation once more, under its own key.
//   - A transcript has no ids, no times but those of prompts, and most have no results. A sub-agent has a file of its own, and
//     nothing but its prompt is in the parent's call.
//   - cursor-agent prints an answer in pieces, if it is asked to, and then once more as a whole. Of its lines, a
//     prompt has neither an id nor a time, and the last text of an answer has none.
package cursor

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

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
			Name:       "cursor",
			Revision:   5,
			Summary:    "Conversations of Cursor: its database, its transcripts, and what cursor-agent prints.",
			Transports: []frame.Kind{frame.Line},
			// A conversation precedes its messages.
			Tables: json.RawMessage(`{"tables":[
			{"table":"cursorDiskKV","key":["key"],"json":["value"],"prefixes":["composerData:"]},
			{"table":"cursorDiskKV","key":["key"],"json":["value"],"prefixes":["bubbleId:"]}]}`),
		},
		LeavesOut: leavesOut,
		State:     1,
		Open:      func(r *record.Current, s *state) record.Reader { return &stream{Current: r, state: s} },
	}.Factory()
}

const (
	maxComposers = 64
	maxHeaders   = 1024
	maxSeen      = 8192
)

// stream decodes the rows of one database.
type stream struct {
	*record.Current
	*state

	s *composer
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Composers []*composer         `json:",omitempty"` // the one used last at the end
	Seen      bounded.Set[string] `json:",omitzero"`  // versions of messages
	Known     bounded.Set[string] `json:",omitzero"`  // messages, and each with its conversation
	Talk      talk                `json:",omitzero"`  // of a stream of lines
}

// composer is one conversation: of a person, or of a sub-agent, which has one run.
type composer struct {
	ID      string
	Root    string              `json:",omitempty"` // the conversation at the top
	Parent  string              `json:",omitempty"` // the conversation that made the agent work
	Call    string              `json:",omitempty"` // its call
	Model   string              `json:",omitempty"`
	Agent   string              `json:",omitempty"`
	Headers []header            `json:",omitempty"` // the last ones
	Runs    bounded.Set[string] `json:",omitzero"`  // that have begun
	Last    string              `json:",omitempty"` // the run of the last message
	Created conversation.Time   `json:",omitzero"`
	Copied  int                 `json:",omitempty"` // messages of another conversation
}

// header is a message in the order of the conversation.
type header struct {
	ID     string
	Prompt bool   `json:",omitempty"`
	Copied bool   `json:",omitempty"`
	Model  string `json:",omitempty"` // that a prompt asks for
}

// Read decodes one row, or one line of a conversation.
func (d *stream) Read() {
	if d.s = nil; d.Root.Get("role").Exists() || d.Root.Get("type").Exists() {
		d.line()
		return
	}
	d.row()
}

// Flush emits the pieces of an answer that goes on.
func (d *stream) Flush() {
	t := &d.Talk
	d.context(msg.Partial)
	if len(t.Text) == 0 || !t.Run.Active() {
		return
	}
	m := d.Add(msg.Assistant, t.key(msg.Assistant))
	m.Role, m.Content, m.Complete, m.Run, m.ParentKey = msg.RoleAssistant, msg.Quoted(slices.Clone(t.Text)), msg.Partial, t.Run.ID, t.Last
	(&conversation.Response{ID: m.Key, Model: t.Model}).Mark(m)
}

// row decodes one row: {table, row: {key, value}}.
func (d *stream) row() {
	key, value := d.Root.Path("row", "key"), d.Root.Path("row", "value")
	known := d.Root.Get("table").Equal("cursorDiskKV")
	parts := strings.Split(conversation.Cut(key.PeekStr(), 3*ident.Max), ":")
	switch {
	case known && len(parts) == 2 && parts[0] == "composerData" && parts[1] != "" && value.Is(jsonv.Object):
		d.enter(ident.Bounded(parts[1]))
		d.composer(value)
	case known && len(parts) > 1 && parts[1] != "" && value.Is(jsonv.Null): // Cursor has deleted it
		d.enter(ident.Bounded(parts[1]))
	case known && len(parts) == 3 && parts[0] == "bubbleId" && parts[1] != "" && parts[2] != "" && value.Is(jsonv.Object):
		d.enter(ident.Bounded(parts[1]))
		d.bubble(ident.Bounded(parts[2]), value)
	default:
		d.Unknown(ident.Of(d.Root.Get("table")), d.Root)
	}
	if d.s != nil {
		key.MarkRead()
	}
}

// In returns the conversation at the top.
func (d *stream) In() (session, run string) {
	if d.s == nil {
		if d.Root.Get("table").Exists() {
			return "unknown", ""
		}
		return cmp.Or(d.Talk.Session, "unknown"), d.Talk.Run.ID
	}
	return d.s.Root, ""
}

// enter makes a conversation that of the row.
func (d *stream) enter(id string) {
	d.s = bounded.Use(&d.Composers, maxComposers, func(s *composer) bool { return s.ID == id }, func() *composer { return &composer{ID: id, Root: id} }, nil)
}

// find returns a conversation that is remembered, or nil.
func (d *state) find(id string) *composer {
	return bounded.Find(d.Composers, func(s *composer) bool { return s.ID == id })
}

// composer decodes a conversation, whose row is replaced at each change.
func (d *stream) composer(v jsonv.Value) {
	s := d.s
	d.At = conversation.TimeOf(v.Get("createdAt"))
	s.Created = d.At
	v.Get("composerId").Equal(s.ID)
	s.Model = cmp.Or(modelOf(v.Path("modelConfig", "modelName")), s.Model)
	if sub := v.Get("subagentInfo"); sub.Is(jsonv.Object) {
		s.Parent, s.Call, s.Agent = ident.Of(sub.Get("parentComposerId")), ident.Of(sub.Get("toolCallId")), ident.Of(sub.Get("subagentTypeName"))
		s.Root = cmp.Or(ident.Of(sub.Get("rootParentConversationId")), s.Parent, s.Root)
	}
	var copied int64 // at the beginning
	if sub := v.Get("subagentInfo"); sub.Get("forkedFromComposerId").Is(jsonv.String) {
		copied = sub.Get("conversationLengthAtSpawn").Int()
	}
	models := make(map[string]string)
	for _, h := range s.Headers {
		if h.Model != "" {
			models[h.ID] = h.Model
		}
	}
	s.Headers = s.Headers[:0]
	for h := range v.Get("fullConversationHeadersOnly").Elems() {
		if len(s.Headers) == 2*maxHeaders {
			s.Headers = append(s.Headers[:0], s.Headers[maxHeaders:]...)
		}
		id := ident.Peek(h.Get("bubbleId"))
		s.Headers = append(s.Headers, header{ID: id, Prompt: h.Get("type").Int() == 1, Copied: copied > 0, Model: models[id]})
		copied--
	}
	m := record.Hide(d.Add(msg.Status, "composer:"+s.ID), "composer")
	m.Complete = msg.Summary // without the agent: a message of no run names that of the session
	m.SetAttr("agent", s.Agent)
	conversation.Attrs(m, v, "name", "subtitle", "status", "unifiedMode")
	m.SetAttr("composer_id", s.ID)
	m.SetAttr("model", s.Model)
	m.SetAttr("parent", s.Parent)
	m.SetAttr("call", s.Call)
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "contextTokensUsed", "totalLinesAdded", "totalLinesRemoved", "filesChangedCount")
}

// run is the run of a message: that of the prompt before it in the order of the conversation.
func (s *composer) run(id string) string {
	if s.Parent != "" {
		return s.ID
	}
	for i := len(s.Headers) - 1; i >= 0; i-- {
		if s.Headers[i].ID != id {
			continue
		}
		for ; i >= 0; i-- {
			if s.Headers[i].Prompt {
				return s.Headers[i].ID
			}
		}
	}
	return cmp.Or(s.Last, id)
}

// model is the model of a run: that which its prompt asks for, or else the conversation now.
func (s *composer) model(run string) string {
	if i := s.index(run); i >= 0 && s.Headers[i].Model != "" {
		return modelName(s.Headers[i].Model)
	}
	return s.Model
}

// index is the place of a message among those that are remembered, or -1.
func (s *composer) index(id string) int {
	return slices.IndexFunc(s.Headers, func(h header) bool { return h.ID == id })
}

// copied reports whether a message is that of another conversation, with a copy of which a fork begins.
func (d *stream) copied(id string) bool {
	s := d.s
	own := s.ID + "/" + id
	if d.Known.Has(own) {
		return false
	}
	if i := s.index(id); i >= 0 && s.Headers[i].Copied || d.Known.Has(id) {
		s.Copied++
		m := record.Hide(d.Add(msg.Status, "history:"+s.ID), "copied_history")
		m.Complete = msg.Summary
		s.Created.Set(m)
		m.SetAttr("composer_id", s.ID)
		m.SetAttr("messages", conversation.NonZero(s.Copied))
		return true
	}
	d.Known.Add(id, 2*maxSeen)
	d.Known.Add(own, 2*maxSeen)
	return false
}

// add adds a message of a run. The first one begins the run.
func (d *stream) add(kind msg.Kind, run, key string, complete msg.Completeness) *msg.Message {
	s, m := d.s, d.Add(kind, key)
	m.Run, m.Complete, m.Agent.Name = run, complete, s.Agent
	if s.Runs.Add(run, maxHeaders) {
		if m.Signal = msg.RunStart; s.Parent != "" {
			m.ParentRun = msg.UnknownRun
			if p := d.find(s.Parent); p != nil && p.Last != "" && s.Call != "" {
				m.ParentRun, m.ParentCall, m.Delegation.Link = p.Last, s.Call, msg.ByNativeID
			}
		}
	}
	return m
}

// fresh reports whether this version of a part of a message was not emitted before.
func (d *stream) fresh(key string, content ...string) bool {
	return d.Seen.Add(msg.HashKey(append(content, d.s.ID, key)...), maxSeen)
}

// bubble decodes a message, whose row is replaced while it is streamed.
func (d *stream) bubble(id string, v jsonv.Value) {
	s := d.s
	d.At = conversation.TimeOf(v.Get("createdAt"))
	v.Get("bubbleId").Equal(id)
	if d.copied(id) {
		v.MarkRead()
		return
	}
	text, thought, tool := v.Get("text"), v.Path("thinking", "text"), v.Get("toolFormerData")
	run := s.run(id)
	if v.Get("type").Int() == 1 {
		if s.Parent == "" {
			run = id
		}
		s.Last = run
		if i := s.index(id); i >= 0 {
			s.Headers[i].Model = ident.Peek(v.Path("modelInfo", "modelName"))
		}
		if len(text.Escaped()) == 0 || !d.fresh(id, string(text.Peek())) {
			if text.Is(jsonv.String) {
				text.MarkRead()
			}
			return
		}
		m := d.add(msg.User, run, id, msg.Summary)
		if m.Role, m.Content = msg.RoleUser, text.Text(); s.Parent == "" {
			m.Agent = msg.Agent{Kind: msg.KindHuman}
		}
		m.SetAttr("request_id", ident.Of(v.Get("requestId")))
		return
	}
	s.Last = run
	r := conversation.Response{ID: id, Model: cmp.Or(modelOf(v.Path("modelInfo", "modelName")), s.model(run)), Run: run, At: d.At}
	for _, part := range [...]struct {
		kind msg.Kind
		key  string
		text jsonv.Value
	}{{msg.Reasoning, id + "/thinking", thought}, {msg.Assistant, id, text}} {
		switch {
		case len(part.text.Escaped()) == 0:
		case !d.fresh(part.key, string(part.text.Peek())):
			part.text.MarkRead()
			r.Last = part.key
		default:
			r.Said(d.add(part.kind, run, part.key, msg.Summary), part.text.Text()).SetAttr("request_id", ident.Of(v.Get("requestId")))
		}
	}
	if tool.Get("name").Exists() {
		d.tool(id, tool, &r)
	}
	tokens := v.Get("tokenCount")
	if c := (conversation.Counts{Input: tokens.Get("inputTokens").Uint(), Output: tokens.Get("outputTokens").Uint()}); c != (conversation.Counts{}) {
		r.Count(c, msg.Provider)
		m := r.Usage(d.Out, msg.Summary)
		m.Session, m.Agent = s.Root, msg.Agent{Name: s.Agent, Kind: msg.KindAgent}
	}
}

// tool decodes a call with its result: {toolCallId, name, status, params, rawArgs, result}.
func (d *stream) tool(id string, v jsonv.Value, r *conversation.Response) {
	name, status := cmp.Or(ident.Of(v.Get("name")), "unknown"), v.Get("status")
	callID := cmp.Or(ident.Of(v.Get("toolCallId")), id)
	args := v.Get("rawArgs")
	if params := v.Get("params"); len(params.Escaped()) > 0 {
		args = params
	}
	task := name == "task_v2" || name == "task"
	var result struct{ AgentID string }
	if task {
		_ = json.Unmarshal([]byte(v.Get("result").PeekStr()), &result) // another result names no agent
	}
	on := func(m *msg.Message) {
		m.Tool.CallID, m.Tool.Name, m.Tool.Server = callID, name, conversation.ToolServer(name)
	}
	if d.fresh("call:"+callID, string(args.Peek())) {
		kind := msg.ToolCall
		if task {
			kind = msg.Delegation
		}
		m := d.add(kind, r.Run, "call:"+callID, msg.Summary)
		m.Role, m.Tool.Arguments, m.ParentKey = msg.RoleAssistant, args.Text(), r.Last
		on(m)
		r.Mark(m)
		if task {
			var of struct{ Prompt, SubagentType string }
			if json.Unmarshal([]byte(args.PeekStr()), &of) == nil {
				m.Delegation.Task, m.Delegation.To = msg.Plain(of.Prompt), ident.Bounded(of.SubagentType)
			}
		}
	} else {
		args.MarkRead()
	}
	if result.AgentID != "" && d.fresh("link:"+callID, result.AgentID) {
		m := d.add(msg.Status, r.Run, "link:"+callID, msg.Complete)
		m.Hidden, m.ParentKey, m.Delegation.ChildRun, m.Delegation.Link = true, "call:"+callID, ident.Bounded(result.AgentID), msg.ByNativeID
		on(m)
		m.SetAttr("type", "task")
		if m.Signal == msg.NoSignal {
			m.Signal = msg.Link
		}
	}
	if !status.In("completed", "error", "cancelled", "rejected", "skipped") {
		return
	}
	output, fault := v.Get("result"), v.Get("error")
	if fault.Exists() && !output.Exists() {
		output = fault
	}
	if !d.fresh("result:"+callID, status.PeekStr(), string(output.Peek())) {
		output.MarkRead()
		return
	}
	m := d.add(msg.ToolResult, r.Run, "result:"+callID, msg.Summary)
	m.Role, m.ParentKey = msg.RoleTool, "call:"+callID
	on(m)
	if m.Content = output.Text(); output.Is(jsonv.Object) {
		m.Content = output.JSON()
	}
	if task {
		m.Kind = msg.DelegationResult
		conversation.Causes(m, ident.Bounded(result.AgentID))
	}
	switch {
	case status.Equal("completed"):
		m.Tool.ErrorType = ended(m, v.Get("result"))
	case status.Equal("error"):
		m.Tool.ErrorType = conversation.ErrorClass(cmp.Or(fault, output).PeekStr(), "timed out", "timeout", "ermission denied", "denied")
	case !status.Equal("cancelled"), v.Get("userDecision").Equal("rejected"), strings.Contains(fault.PeekStr(), "rejected"):
		m.Tool.ErrorType = "denied"
	default:
		m.Tool.ErrorType = "interrupted"
	}
	m.IsError = m.Tool.ErrorType != ""
	m.SetAttr("decision", ident.Of(v.Get("userDecision")))
}

// ended reads how a call ended that is completed: a command that failed, was stopped, or was not permitted is, too.
//
//	{"output":"…","exitCodeV2":1,"rejected":true,"endedReason":"RUN_TERMINAL_COMMAND_ENDED_REASON_EXECUTION_ABORTED"}
func ended(m *msg.Message, result jsonv.Value) (class string) {
	if raw := result.Peek(); !bytes.Contains(raw, []byte("exitCode")) && !bytes.Contains(raw, []byte("rejected")) && !bytes.Contains(raw, []byte("endedReason")) {
		return ""
	}
	var of struct {
		ExitCodeV2, ExitCode int
		Rejected             bool
		EndedReason          string
	}
	if json.Unmarshal([]byte(result.PeekStr()), &of) != nil {
		return ""
	}
	code := cmp.Or(of.ExitCodeV2, of.ExitCode)
	switch m.SetAttr("exit_code", conversation.NonZero(code)); {
	case of.Rejected:
		return "denied"
	case strings.HasSuffix(of.EndedReason, "_ABORTED"):
		return "interrupted"
	case code != 0:
		return "tool_error"
	}
	return ""
}
