// Package grok decodes the sessions of Grok Build, the coding agent of xAI: the updates of each session, which are those of the Agent
// Client Protocol and more of xAI's, and the document beside them.
//
//	sessions/FOLDER/SESSION/updates.jsonl   {timestamp, method, params: {sessionId, update: {sessionUpdate, …}, _meta: {eventId, agentTimestampMs, promptId, streamStartMs}}}
//	sessions/FOLDER/SESSION/summary.json    the title, the folder, the kind of the session
//
// Facts of the format that are easy to get wrong, from records that Grok Build 1.0.41 made, its own guide and the names in its program:
//
//   - The tokens of a turn are in turn_completed, for each model. Those of sub-agents are in them, while a sub-agent's session has its
//     own turn_completed: adding up counts them twice. A sub-agent's session is known by the ids of its
//     prompts alone: they are UUIDs of version 7, those of a client's prompts of version 4.
//   - inputTokens has the cached tokens, outputTokens those of thoughts.
//   - A /compact that fails has the tokens of the turn before once more.
//   - timestamp is when the line was written, in seconds. agentTimestampMs is when it happened, and may be earlier than that of the line before.
//   - tool_call has the arguments of the model. An update of it without a status has them as the tool reads them.
//   - A command that fails is completed: its exit_code is in rawOutput.
//   - /fork copies the updates of a session under the id of the new one. The eventId still has that of the old one.
//   - subagent_spawned names the session of a sub-agent, but no call. It has the type and the description of the call.
package grok

import (
	"cmp"
	_ "embed"
	"net/url"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/mcp"
	"github.com/earshot-dev/earshot/core/sdk/record"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name:       "grok",
			Revision:   1,
			Summary:    "Sessions of Grok Build, with those of its sub-agents.",
			Transports: []frame.Kind{frame.Line, frame.Body},
			Documents:  []string{"summary.json"},
		},
		LeavesOut: leavesOut,
		State:     1,
		Open: func(r *record.Current, s *state) record.Reader {
			d := &stream{Current: r, state: s}
			p := ident.PathOf(r.Origin)
			d.of = cmp.Or(ident.Bounded(p.Dir()), "unknown")
			if dir, err := url.PathUnescape(p.Before(p.Dir())); err == nil && strings.ContainsAny(dir, `/\`) {
				d.dir = ident.Bounded(dir)
			}
			return d
		},
	}.Factory()
}

// stream decodes one file.
type stream struct {
	*record.Current
	*state

	of, dir string // the session and the folder, of the path
	into    string // the session that has a copy of the record; empty: it is none
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Session  string                    `json:",omitempty"` // of the last record
	Below    bool                      `json:",omitempty"` // the session is a sub-agent's
	Known    bool                      `json:",omitempty"` // whether it is
	Named    bool                      `json:",omitempty"` // its first run has the name by which the call of another session knows it
	Run      conversation.Run          `json:",omitzero"`
	Prompt   string                    `json:",omitempty"` // the number of the run's prompt
	Prompts  int                       `json:",omitempty"` // messages of it
	Model    string                    `json:",omitempty"`
	Response *conversation.Response    `json:",omitempty"` // the one that goes on
	Open     conversation.Deltas       `json:",omitzero"`  // its text, of which chunks have come
	Calls    conversation.Calls[*call] `json:",omitzero"`
	Before   conversation.Time         `json:",omitzero"`  // of the record before
	Tokens   string                    `json:",omitempty"` // of the turn before
}

// call is a tool call.
type call struct {
	conversation.Delegation
	Run  string `json:",omitempty"`
	Work string `json:",omitempty"` // its description, by which the sub-agent is found
	By   string `json:",omitempty"` // the session of the sub-agent
}

// In returns the session: that of the record, else that of the path.
func (d *stream) In() (session, run string) { return cmp.Or(d.Session, d.of), "" }

// Read decodes a record.
func (d *stream) Read() {
	params := d.Root.Get("params")
	update, meta := params.Get("update"), params.Get("_meta")
	switch {
	case d.Frame.Kind == frame.Body:
		d.document(d.Root)
	case update.Is(jsonv.Object) && ident.Peek(update.Get("sessionUpdate")) != "":
		d.At = conversation.TimeOf(meta.Get("agentTimestampMs")).Or(conversation.TimeOf(d.Root.Get("timestamp")))
		d.enter(ident.Of(params.Get("sessionId")), ident.Of(meta.Get("eventId")))
		d.update(update, meta)
		d.Before = d.At.Or(d.Before)
	default:
		d.Unknown(ident.Peek(d.Root.Get("method")), d.Root)
	}
}

// enter finds the session of a record. A fork has those of the session that it goes on from, with their events' ids.
func (d *stream) enter(session, event string) {
	at := strings.LastIndexByte(event, '-')
	if at < 0 {
		at = len(event)
	}
	if d.Session, d.into = cmp.Or(event[:at], session), ""; d.Session != session {
		d.into = session
	}
}

// document decodes summary.json, which is written again.
func (d *stream) document(v jsonv.Value) {
	info := v.Get("info")
	if !info.Is(jsonv.Object) {
		d.Unknown("document", v)
		return
	}
	d.Session = cmp.Or(ident.Of(info.Get("id")), d.of)
	m := record.Hide(d.Add(msg.Status, "summary"), "session")
	m.Complete, m.Title, m.Client.Project = msg.Summary, conversation.Excerpt(v.Get("generated_title")), ident.Of(info.Get("cwd"))
	m.Content = v.Get("session_summary").Text()
	conversation.TimeOf(v.Get("created_at")).Set(m)
	conversation.Attrs(m, v, "session_kind", "agent_name", "parent_session_id", "forked_at", "reasoning_effort", "sandbox_profile", "model=current_model_id")
}

// add adds a message of the run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	if d.Below {
		m.Agent = msg.Agent{Kind: msg.KindAgent}
	} else {
		m.Agent = msg.Agent{Name: "grok", Kind: msg.KindAgent}
	}
	if d.Run.Active() && d.Run.Mark(m) {
		m.Client.Project = d.dir
	}
	if d.into != "" {
		m.Complete = msg.Summary // the original replaces it
		m.SetAttr("copied_by", d.into)
	} else if d.Run.Active() && !d.Named {
		d.Named = true
		m.Delegation.CorrelationID = spawn.ID("grok", d.Session)
	}
	return m
}

// stamp is the time of the record, as it is written.
func (d *stream) stamp() string {
	return string(d.Root.Path("params", "_meta", "agentTimestampMs").Peek())
}

// status adds a hidden message. It is named by its time, and by the facts that distinguish it from others of the same.
func (d *stream) status(typ string, facts ...string) *msg.Message {
	return record.Hide(d.add(msg.Status, typ+":"+msg.HashKey(append(facts, d.stamp())...)), typ)
}

// update decodes an update by its kind.
func (d *stream) update(u, meta jsonv.Value) {
	kind := u.Get("sessionUpdate")
	d.knows(meta.Get("promptId"))
	d.knows(u.Get("prompt_id"))
	if !kind.In("agent_message_chunk", "agent_thought_chunk") {
		d.complete(msg.Complete)
	}
	switch {
	case kind.Equal("user_message_chunk"):
		d.prompt(u)
	case kind.Equal("agent_message_chunk"):
		d.chunk(msg.Assistant, u, meta)
	case kind.Equal("agent_thought_chunk"):
		d.chunk(msg.Reasoning, u, meta)
	case kind.Equal("tool_call") && ident.Peek(u.Get("toolCallId")) != "":
		d.call(u, meta)
	case kind.Equal("tool_call_update") && ident.Peek(u.Get("toolCallId")) != "":
		d.called(u)
	case kind.Equal("turn_completed"):
		d.end(u)
	case kind.Equal("subagent_spawned"):
		d.spawned(u)
	case kind.Equal("subagent_finished"):
		d.finished(u)
	case kind.Equal("plan"):
		d.add(msg.Plan, "plan:"+msg.HashKey(string(meta.Get("eventId").Peek()))).Content = u.Get("entries").JSON()
	case kind.In("model_changed", "model_auto_switched"):
		d.Model = cmp.Or(ident.Of(u.Get("new_model_id")), d.Model)
		conversation.Attrs(d.status(kind.Str()), u, "previous_model_id", "reason")
	case kind.Equal("retry_state"):
		m := d.status(kind.Str(), ident.Peek(u.Get("type")))
		m.Content, m.IsError = u.First("reason", "message").Text(), !u.Get("type").Equal("retrying") // failed, or exhausted
		conversation.Attrs(m, u, "state=type", "error_type")
		conversation.AttrsAs(m, u, jsonv.Value.Digits, "attempt", "max_retries")
		if !m.IsError {
			record.Signal(m, msg.Retry)
		}
	case kind.Equal("auto_compact_completed"):
		m := d.status(kind.Str())
		record.Signal(m, msg.Compaction)
		conversation.AttrsAs(m, u, jsonv.Value.Digits, "tokens_before", "tokens_after")
		m.Content = u.Get("summary_preview").Text()
	default: // the set grows with each version
		typ := ident.Of(kind)
		d.status(typ, msg.HashKey(string(u.Peek()))).Content = u.JSON()
	}
}

// delegated reports whether a prompt is that of an agent above, by its id: a UUID of version 7.
func delegated(prompt string) bool {
	const version = 14 // its place in a UUID
	return len(prompt) > version && prompt[version] == '7'
}

// knows notes whether the session is a sub-agent's, by its first prompt.
func (d *stream) knows(prompt jsonv.Value) {
	if id := ident.Peek(prompt); !d.Known && d.into == "" && id != "" {
		d.Known, d.Below = true, delegated(id)
	}
	if prompt.Is(jsonv.String) {
		prompt.MarkRead()
	}
}

// prompt decodes a prompt, or another part of it. An addition while the agent works has the number of the prompt.
func (d *stream) prompt(u jsonv.Value) {
	d.Model = cmp.Or(ident.Of(u.Path("_meta", "modelId")), d.Model)
	number := u.Path("_meta", "promptIndex").Digits()
	if !d.Run.Active() || number != d.Prompt && number != "" {
		if d.Run.Active() { // its process ended before it did
			d.Before.Set(d.finish("cancelled", true))
		}
		d.Run.Begin("turn:" + msg.HashKey(number, d.stamp()))
		d.Prompt, d.Prompts, d.Response = number, 0, nil
	}
	m := d.add(msg.User, conversation.Ordinal("user:"+d.Run.ID, &d.Prompts))
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
	has := mcp.Content(u.Get("content"))
	has.Fill(m)
}

// response returns the response of an update: that of the time at which its stream began.
func (d *stream) response(meta jsonv.Value) *conversation.Response {
	if !d.Run.Active() { // its beginning was not recorded
		d.Run.Begin("turn:" + msg.HashKey(string(meta.Get("turnStartMs").Peek())))
	}
	id := d.Run.ID + "/" + meta.Get("streamStartMs").Digits()
	if d.Response == nil || d.Response.ID != id {
		d.complete(msg.Complete)
		d.Response = &conversation.Response{ID: id, Run: d.Run.ID, Model: d.Model}
	}
	d.Response.At = d.At
	return d.Response
}

// maxText is the size of a text that is kept while its chunks come.
const maxText = 1 << 20

// chunk adds a chunk to a text or a thought of the response.
func (d *stream) chunk(kind msg.Kind, u, meta jsonv.Value) {
	r := d.response(meta)
	if p := d.Open.Part(""); p != nil && p.Kind != kind {
		d.complete(msg.Complete)
	}
	p := d.Open.Part("")
	if p == nil {
		p = d.Open.Open("", kind)
		p.Key = r.Key(kind)
	}
	has := mcp.Content(u.Get("content"))
	d.Open.Append(p, has.Joined(), maxText)
	meta.Skip("chunkId", "updateParams", "updateType", "totalTokens")
}

// complete emits the text whose chunks have come.
func (d *stream) complete(how msg.Completeness) {
	if p := d.Open.Part(""); p != nil && !p.Empty() && d.Response != nil {
		r := *d.Response
		m := d.add(p.Kind, p.Key)
		r.At.Set(m)
		m.ParentKey = r.Last
		r.Said(m, msg.Plain(string(p.Text)))
		m.Complete = min(m.Complete, how)
		if p.Cut {
			m.SetAttr("cut", "true")
		}
		if how == msg.Complete {
			*d.Response = r
		}
	}
	if how == msg.Complete {
		d.Open = conversation.Deltas{}
	}
}

// Flush emits the text whose chunks have come so far.
func (d *stream) Flush() { d.complete(msg.Partial) }

// call decodes the beginning of a call. Its title is the name of the tool.
func (d *stream) call(u, meta jsonv.Value) {
	r := d.response(meta)
	tool, input := u.Path("_meta", "x.ai/tool"), u.Get("rawInput")
	c := &call{Run: d.Run.ID}
	c.ID, c.Name = ident.Of(u.Get("toolCallId")), cmp.Or(ident.Of(tool.Get("name")), ident.Of(u.Get("title")), "tool")
	if c.Within(r.ID); c.Name == "spawn_subagent" {
		c.Task, c.To = true, cmp.Or(ident.Of(input.Get("subagent_type")), "general-purpose")
		c.Work, c.Async = ident.Of(input.Get("description")), input.Get("background").Bool()
	}
	d.Calls.Add(c)
	m := d.add(msg.ToolCall, "call:"+c.ID)
	r.Next(m)
	c.Called(m, input.JSON(), input.Get("prompt"))
	m.SetAttr("tool_kind", ident.Of(tool.Get("kind")))
	tool.MarkRead()
}

// called decodes an update of a call, which may be its end.
func (d *stream) called(u jsonv.Value) {
	id, status := ident.Peek(u.Get("toolCallId")), u.Get("status")
	c := d.Calls.Named(id)
	if c != nil {
		ident.Is(u.Get("toolCallId"), id)
	}
	if !status.In("completed", "failed", "cancelled") || c != nil && d.Calls.GetOpen(c.ID) != c { // it runs, or its end is there again
		u.Skip("title", "kind", "locations", "rawInput", "content", "rawOutput", "status", "_meta")
		return
	}
	ident.Of(u.Get("toolCallId"))
	if c == nil { // its beginning was not recorded
		c = &call{Run: d.Run.ID}
		c.ID, c.Name = id, "unknown"
	}
	raw := u.Get("rawOutput")
	texts, failed := d.output(u, raw), !status.Equal("completed")
	defer raw.MarkRead() // it has the result once more
	if c.Async && !failed {
		record.Hide(c.About(d.about(c, msg.Status, "ack:"+c.ID)), "async_launched").Content = texts
		return
	}
	d.Calls.End(c)
	m := c.Result(d.about(c, msg.ToolResult, "result:"+c.ID))
	m.Content = texts
	failed = conversation.Exited(m, raw.Get("exit_code")) || failed
	switch {
	case status.Equal("cancelled"):
		m.IsError, m.Tool.ErrorType = true, "cancelled"
	case raw.Get("timed_out").Bool():
		m.IsError, m.Tool.ErrorType = true, "timeout"
	default:
		conversation.Failed(m, failed)
	}
}

// output is the result of a call: its content, or that of the tool.
func (d *stream) output(u, raw jsonv.Value) msg.Text {
	if answer := raw.Get("output"); raw.Get("type").Equal("SubagentCompleted") && answer.Is(jsonv.String) {
		u.Get("content").MarkRead()
		return answer.Text()
	}
	var texts conversation.Texts
	for b := range u.Get("content").Elems() {
		if text := b.Path("content", "text"); text.Is(jsonv.String) {
			texts.Add(text.Text())
		} else {
			texts.Add(b.JSON())
		}
	}
	if all := texts.Joined(); !all.IsZero() {
		return all
	}
	if text := raw.First("output_for_prompt", "text"); text.Is(jsonv.String) {
		return text.Text()
	}
	return raw.JSON()
}

// about adds a message about a call, in the run that made it.
func (d *stream) about(c *call, kind msg.Kind, key string) *msg.Message {
	m := d.add(kind, key)
	if m.Signal != msg.RunStart {
		m.Run = cmp.Or(c.Run, m.Run)
	}
	return m
}

// spawned decodes the beginning of a sub-agent: of the oldest call that has its type and its description, and no agent. It works in a session of its own.
func (d *stream) spawned(u jsonv.Value) {
	child, to, about := ident.First(u.Get("child_session_id"), u.Get("subagent_id")), ident.Of(u.Get("subagent_type")), ident.Of(u.Get("description"))
	c := d.Calls.Oldest(func(c *call) bool { return c.Task && c.By == "" && c.To == to && c.Work == about })
	if c == nil {
		m := d.status("subagent_spawned", child)
		m.Delegation.To = to
		m.SetAttr("child_session_id", child)
		m.SetAttr("description", about)
		return
	}
	c.By = child
	u.Skip("subagent_id", "parent_session_id")
	m := record.Hide(c.About(d.about(c, msg.Status, "spawned:"+c.ID)), "subagent_spawned")
	record.Signal(m, msg.Link)
	m.Delegation.CorrelationID = spawn.ID("grok", child)
	conversation.Attrs(m, u, "resumed_from", "effective_context_source")
}

// finished decodes the end of a sub-agent. Of one in the background it is the result of the call.
func (d *stream) finished(u jsonv.Value) {
	child := ident.First(u.Get("child_session_id"), u.Get("subagent_id"))
	c := d.Calls.Oldest(func(c *call) bool { return c.Task && c.Async && c.By == child })
	var m *msg.Message
	if c == nil {
		m = d.status("subagent_finished", child)
		m.SetAttr("child_session_id", child)
		u.Skip("output", "error") // the result of the call has it
	} else {
		d.Calls.End(c)
		m = c.Result(d.about(c, msg.ToolResult, "result:"+c.ID))
		m.Content = u.First("output", "error").Text()
		switch status := u.Get("status"); {
		case status.Equal("cancelled"):
			m.IsError, m.Tool.ErrorType = true, "cancelled"
		default:
			conversation.Failed(m, !status.Equal("completed"))
		}
	}
	conversation.Attrs(m, u, "status")
	u.Skip("subagent_id", "child_session_id")
	conversation.AttrsAs(m, u, jsonv.Value.Digits, "child_duration_ms=duration_ms", "child_tool_uses=tool_calls")
}

// good are the reasons of a turn that ended as it should: those of the Agent Client Protocol.
var good = []string{"end_turn", "max_tokens", "max_turn_requests"}

// end decodes the end of a turn, with its tokens.
func (d *stream) end(u jsonv.Value) {
	id, reason := ident.Of(u.Get("prompt_id")), cmp.Or(ident.Of(u.Get("stop_reason")), "end_turn")
	usage, failed := u.Get("usage"), !slices.Contains(good, reason)
	tokens := msg.HashKey(string(usage.Get("inputTokens").Peek()), string(usage.Get("outputTokens").Peek()), string(usage.Get("modelCalls").Peek()))
	switch {
	case !usage.Is(jsonv.Object), d.Below && delegated(id), failed && tokens == d.Tokens: // those of the session above, or of the turn before
		usage.MarkRead()
	default:
		d.Tokens = tokens
		d.usage(id, usage)
	}
	if !d.Run.Active() {
		d.status("turn_completed", id)
		return
	}
	m := d.finish(reason, failed)
	m.Content = u.Get("agent_result").Text()
	m.Hidden = m.Content.IsZero()
	m.SetAttr("prompt_id", id)
	conversation.AttrsAs(m, u, jsonv.Value.Digits, "elapsed_ms")
}

// finish ends the run.
func (d *stream) finish(reason string, failed bool) *msg.Message {
	m := d.add(msg.Stop, "stop:"+d.Run.ID)
	d.Run.Finish(m, reason, failed)
	d.Response = nil
	return m
}

// ticks is how many of costUsdTicks are a dollar's.
const ticks = 1e10

// usage decodes the tokens of a turn: those of each model, or the sum.
func (d *stream) usage(turn string, v jsonv.Value) {
	models := v.Get("modelUsage")
	if models.Len() == 0 {
		d.tokens("usage:"+turn, d.Model, v)
		return
	}
	for name, of := range models.Members() {
		model := ident.Bounded(name.String())
		d.tokens("usage:"+turn+"/"+model, model, of)
	}
	v.MarkRead() // the sum of them
}

func (d *stream) tokens(key, model string, v jsonv.Value) {
	read, input := v.Get("cachedReadTokens").Uint(), v.Get("inputTokens").Uint()
	c := conversation.Counts{
		CacheRead: read, CacheWrite: v.Get("cacheCreationTokens").Uint(), Output: v.Get("outputTokens").Uint(), Reasoning: v.Get("reasoningTokens").Uint(),
	}
	c.Input = input - min(input, c.CacheRead+c.CacheWrite)
	if c == (conversation.Counts{}) {
		return
	}
	m := d.add(msg.Usage, key)
	m.Hidden, m.Model, m.Usage = true, model, c.Tokens(msg.TranscriptFinal)
	if !v.Get("costIsPartial").Bool() {
		m.Usage.Stated = v.Get("costUsdTicks").Uint() * (1e12 / ticks)
	}
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "model_calls=modelCalls", "api_duration_ms=apiDurationMs")
}
