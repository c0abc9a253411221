// Package kimicode decodes the sessions of Kimi Code, which has taken the place of Kimi CLI: a file of lines for each agent of a session, and a document.
//
//	sessions/FOLDER/SESSION/state.json                {title, cwd, forkedFrom, agents, …}
//	sessions/FOLDER/SESSION/agents/main/wire.jsonl    {type, …, time}, after {"type": "metadata", protocol_version, created_at}
//	sessions/FOLDER/SESSION/agents/AGENT/wire.jsonl   of a sub-agent
//
// Facts of the format that are easy to get wrong, from the source of Kimi Code (packages/agent-core-v2, its docs/wire-manifest.d.ts, and
// packages/agent-core, the engine before):
//
//   - A response is a step: step.begin, its tokens (usage.record), its parts, its calls with their results, step.end. Its parts are written when all of it is
//     there, its calls when they begin. step.end has the tokens once more; a step that was interrupted while its calls ran has them in usage.record alone.
//   - The tokens of a compaction, or of a title, are a usage.record with the scope session, and of no step.
//   - inputOther has no cached tokens, output has those of thoughts.
//   - usage.record has the alias of a model; llm.request, between step.begin and it, its provider and its name.
//   - The prompt of a turn is turn.prompt, and once more a message of the context. So is an addition to it, and some reminders are the context's alone.
//   - The engine before writes no turn.ended, and no agentId in a record.
//   - The ids of agents (agent-0) count in their session. task.started names the agent and its call, since version 2.1 subagent.spawned does.
//   - Version 2.1 writes messages and turns once more (agent.message.appended, agent.turn.started, agent.turn.ended), and how long a call took.
//   - A fork begins with copies of the files of its session, with their times, up to the record forked.
//   - A session that was imported from Kimi CLI has messages without a time.
package kimicode

import (
	"cmp"
	_ "embed"
	"regexp"
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
			Name:       "kimi-code",
			Revision:   1,
			Summary:    "Sessions of Kimi Code, with those of its sub-agents.",
			Transports: []frame.Kind{frame.Line, frame.Body},
			Documents:  []string{"state.json"},
		},
		LeavesOut: leavesOut,
		State:     1,
		Open: func(r *record.Current, s *state) record.Reader {
			d := &stream{Current: r, state: s}
			p := ident.PathOf(r.Origin)
			if d.session, d.agent = p.Before("agents"), p.After("agents"); d.session == "" || d.agent == "" {
				d.session, d.agent = p.Dir(), mainAgent
			}
			d.session, d.agent = cmp.Or(ident.Bounded(d.session), "unknown"), ident.Bounded(d.agent)
			return d
		},
	}.Factory()
}

const (
	mainAgent = "main"
	maxInputs = 32
)

// stream decodes one file.
type stream struct {
	*record.Current
	*state

	session, agent string // of the path
	stamp          string // the time of the record, as it is written
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Created  string                 `json:",omitempty"` // when the file was, as the first line has it
	Project  string                 `json:",omitempty"`
	Profile  string                 `json:",omitempty"` // the name of the agent
	Alias    string                 `json:",omitempty"` // of the model that was asked last
	Model    string                 `json:",omitempty"`
	Provider string                 `json:",omitempty"`
	Run      conversation.Run       `json:",omitzero"`
	Turn     string                 `json:",omitempty"`
	Response *conversation.Response `json:",omitempty"` // the last, which may be complete
	Open     bool                   `json:",omitempty"` // it is not
	Called   bool                   `json:",omitempty"` // it has calls
	Last     string                 `json:",omitempty"` // key of the message before
	Before   conversation.Time      `json:",omitzero"`  // of the record before
	Inputs   []string               `json:",omitempty"` // prompts that the context will have, too

	Calls conversation.Calls[*call] `json:",omitzero"`
	Waits conversation.Waits        `json:",omitempty"`
}

// call is a tool call.
type call struct {
	conversation.Delegation
	Run        string   `json:",omitempty"`
	Background string   `json:",omitempty"` // its task in the background
	Agents     []string `json:",omitempty"` // that are known to work on it
}

// In returns the session: that of the path.
func (d *stream) In() (session, run string) { return d.session, "" }

// Read decodes a record.
func (d *stream) Read() {
	v := d.Root
	typ := v.Get("type")
	switch {
	case d.Frame.Kind == frame.Body:
		d.document(v)
		return
	case typ.Equal("metadata") && v.Get("protocol_version").Is(jsonv.String):
		d.Created = v.Get("created_at").Digits()
		d.At = conversation.TimeOf(v.Get("created_at"))
		conversation.Attrs(record.Hide(d.Add(msg.Status, "wire:"+d.agent), "metadata"), v, "protocol_version", "app_version")
		return
	}
	d.stamp = string(v.Get("time").Peek())
	d.At = conversation.TimeOf(v.Get("time"))
	defer func() { d.Before = d.At.Or(d.Before) }()
	ident.Is(v.Get("agentId"), d.agent)
	switch {
	case typ.Equal("context.append_loop_event") && v.Get("event").Is(jsonv.Object):
		d.step(v.Get("event"))
	case typ.Equal("context.append_message") && v.Get("message").Is(jsonv.Object):
		d.message(v.Get("message"))
	case typ.In("turn.prompt", "turn.steer") && v.Get("input").Exists():
		d.prompt(v, typ.Equal("turn.steer"))
	case typ.Equal("turn.ended") && v.Get("reason").Is(jsonv.String):
		d.ended(v)
	case typ.Equal("usage.record") && v.Get("usage").Is(jsonv.Object):
		d.usage(v)
	case typ.Equal("llm.request") && v.Get("model").Is(jsonv.String):
		d.request(v)
	case typ.In("task.started", "task.terminated") && v.Path("info", "taskId").Is(jsonv.String):
		d.task(v)
	case typ.HasPrefix("subagent.") && ident.Peek(v.Get("subagentId")) != "":
		d.agents(v)
	case typ.Equal("interaction.request") && ident.Peek(v.Get("id")) != "":
		d.asks(v)
	case typ.Equal("interaction.resolved") && ident.Peek(v.Get("id")) != "":
		d.answered(v)
	default:
		d.beside(typ, v)
	}
}

// document decodes the document of the session.
func (d *stream) document(v jsonv.Value) {
	if !v.Get("agents").Is(jsonv.Object) && !v.Get("title").Is(jsonv.String) {
		d.Unknown("document", v)
		return
	}
	m := record.Hide(d.Add(msg.Status, "state"), "session")
	m.Complete, m.Client.Project = msg.Summary, ident.Of(v.Get("cwd"))
	m.Title = conversation.Excerpt(v.Get("title"))
	conversation.Attrs(m, v, "forked_from=forkedFrom", "last_turn=lastTurnReason")
	conversation.Attrs(m, v.Get("custom"), "imported_from=kimi_cli_session_id")
}

// add adds a message of the run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	if d.Run.Active() && d.Run.Mark(m) {
		m.Client.Project = d.Project
	}
	if kind != msg.User {
		m.Agent.Name = d.Profile
	}
	if d.Run.Child && kind != msg.User {
		m.Agent.ID = d.agent
	}
	return m
}

// meeting is the name under which a call and the run of an agent meet: ids of agents count in their session.
func meeting(session, agent string) string { return "kimi-code:" + session + "/" + agent }

// status adds a hidden message. It is named by its time, and by the facts that distinguish it from others of the same.
func (d *stream) status(typ string, facts ...string) *msg.Message {
	return record.Hide(d.add(msg.Status, typ+":"+msg.HashKey(append(facts, d.stamp, d.agent)...)), typ)
}

// begin begins a run. That of a sub-agent is named by the agent, and by the time of its file, which copies have too.
func (d *stream) begin(turn string) {
	if d.Turn = turn; d.agent != mainAgent && d.Run.ID == "" {
		d.Run = conversation.Run{ID: strings.TrimSuffix(d.agent+"@"+d.Created, "@"), Child: true}
		record.Hide(d.add(msg.Status, "agent:"+d.agent), "subagent").Delegation.CorrelationID = meeting(d.session, d.agent)
		return
	}
	d.Run.Begin(turn)
}

// wake begins a run whose beginning was not recorded.
func (d *stream) wake(fact string) {
	switch {
	case d.Run.Active():
	case d.Run.ID != "" && d.Turn != "": // the turn goes on
		d.Run.Ended = false
	default:
		d.begin(msg.HashKey("turn", fact, d.stamp, d.agent))
	}
}

// prompt decodes the prompt of a turn, or an addition to it.
func (d *stream) prompt(v jsonv.Value, steers bool) {
	var has conversation.Content
	d.content(v.Get("input"), &has)
	text := has.Joined().String()
	d.Inputs = bounded.Push(d.Inputs, msg.HashKey(text), maxInputs)
	if steers {
		d.notified(v.Get("origin"), has.Joined())
		d.wake(text)
		d.say(has, "steer:"+msg.HashKey(d.stamp, d.agent, text), v.Get("origin"))
		return
	}
	if d.Run.Active() && !d.Run.Child { // its end was not recorded
		at := d.At
		d.At = d.Before
		d.finish("interrupted", true)
		d.At = at
	}
	d.notified(v.Get("origin"), has.Joined())
	d.begin(msg.HashKey("turn", d.stamp, d.agent, text))
	d.Open = false
	d.say(has, "user:"+d.Turn, v.Get("origin"))
}

// say adds a prompt: of a person, of the agent above, or of the program.
func (d *stream) say(has conversation.Content, key string, origin jsonv.Value) {
	m := d.add(msg.User, key)
	has.Fill(m)
	m.Role = msg.RoleUser
	switch kind := origin.Get("kind"); {
	case d.Run.Child:
	case !kind.Exists(), kind.In("user", "plugin_command", "shell_command", "skill_activation"):
		m.Agent.Kind = msg.KindHuman
	}
	origins(m, origin)
	d.Last = key
}

// notified ends the call whose work in the background a notice reports: the engine before has no task.terminated.
func (d *stream) notified(origin jsonv.Value, text msg.Text) {
	if !origin.Get("kind").In("task", "background_task") {
		return
	}
	id := ident.Of(origin.Get("taskId"))
	if c := d.Calls.Oldest(func(c *call) bool { return c.Background != "" && c.Background == id }); c != nil {
		d.Calls.End(c)
		m := c.Result(d.add(msg.ToolResult, "result:"+c.ID))
		m.Run, m.Content = cmp.Or(c.Run, m.Run), text
		conversation.Failed(m, !origin.Get("status").In("running", "completed"))
		m.SetAttr("status", origin.Get("status").Str())
	}
}

// origins writes the origin of a prompt into a message.
func origins(m *msg.Message, origin jsonv.Value) {
	m.SetAttr("origin", origin.Get("kind").Str())
	conversation.Attrs(m, origin, "skillName", "commandName", "trigger", "variant", "taskId", "status", "jobId", "cron", "event")
}

// content reads a string, or a list of parts.
func (d *stream) content(v jsonv.Value, has *conversation.Content) {
	for p := range jsonv.Each(v) {
		switch {
		case p.Is(jsonv.String):
			has.Add(p.Text())
		case p.Get("type").Equal("text") && p.Get("text").Is(jsonv.String):
			has.Add(p.Get("text").Text())
		case fileOf(p).Is(jsonv.String):
			has.Attach(media.URL(fileOf(p)))
		default:
			d.Unknown(ident.Peek(p.Get("type")), p)
		}
	}
}

// fileOf is the URL of an image, a sound or a film: {type: image_url, imageUrl: {url}}.
func fileOf(p jsonv.Value) jsonv.Value {
	switch typ := p.Get("type"); {
	case typ.Equal("image_url"):
		return p.First("imageUrl", "image_url").Get("url")
	case typ.Equal("audio_url"):
		return p.First("audioUrl", "audio_url").Get("url")
	case typ.Equal("video_url"):
		return p.First("videoUrl", "video_url").Get("url")
	}
	return jsonv.Value{}
}

// message decodes a message of the context: a prompt that was read before, or a reminder.
func (d *stream) message(v jsonv.Value) {
	origin := v.Get("origin")
	kind := origin.Get("kind")
	var has conversation.Content
	for p := range jsonv.Each(v.Get("content")) {
		if text := jsonv.Or(p.Get("text"), p); text.Is(jsonv.String) {
			has.Add(text.PeekText())
		}
	}
	sum := msg.HashKey(has.Joined().String())
	ours := kind.Exists() && !kind.In("user", "compaction_summary")
	_, again := bounded.Take(&d.Inputs, func(s string) bool { return s == sum })
	if !again && !ours && v.Get("role").Equal("user") { // it has more than the prompt
		_, again = bounded.Take(&d.Inputs, func(string) bool { return true })
	}
	switch {
	case again, d.At.Nanos == 0, !v.Get("role").In("user", "system"), !ours && (d.agent != mainAgent || kind.Equal("compaction_summary")):
		v.MarkRead() // a prompt, an imported message, a part of the conversation that a sub-agent or a summary begins with
		return
	}
	has = conversation.Content{}
	d.content(v.Get("content"), &has)
	d.notified(origin, has.Joined())
	key := "context:" + msg.HashKey(d.stamp, d.agent, sum)
	if !ours {
		d.wake(sum)
		d.say(has, key, origin)
		return
	}
	m := d.add(msg.System, key)
	has.Fill(m)
	m.Hidden = true
	origins(m, origin)
}

// step decodes an event of a response.
func (d *stream) step(e jsonv.Value) {
	typ := e.Get("type")
	e.Skip("turnId", "step", "uuid")
	switch {
	case typ.Equal("step.begin") && ident.Peek(e.Get("uuid")) != "":
		id := ident.Of(e.Get("uuid"))
		d.wake(id)
		d.Response = &conversation.Response{ID: id, Run: d.Run.ID, Last: d.Last, At: d.At}
		d.Open, d.Called = true, false
	case typ.Equal("step.end") && ident.Peek(e.Get("uuid")) != "":
		d.over(e)
	case typ.Equal("content.part") && e.Get("part").Is(jsonv.Object):
		d.part(e)
	case typ.Equal("tool.call") && ident.Peek(e.Get("toolCallId")) != "":
		d.call(e)
	case typ.Equal("tool.result") && ident.Peek(e.Get("toolCallId")) != "":
		d.result(e)
	default:
		d.Unknown(ident.Peek(typ), e)
	}
}

// response returns the response of that step.
func (d *stream) response(step jsonv.Value) *conversation.Response {
	id := ident.Of(step)
	if d.Response == nil || d.Response.ID != id && id != "" {
		d.wake(id)
		d.Response = &conversation.Response{ID: cmp.Or(id, d.Turn), Run: d.Run.ID, Last: d.Last}
		d.Open, d.Called = true, false
	}
	if d.Response.At = d.At; d.Open {
		d.Response.Model, d.Response.Provider = d.Model, d.Provider
	}
	return d.Response
}

// part decodes a part of a response.
func (d *stream) part(e jsonv.Value) {
	r, p := d.response(e.Get("stepUuid")), e.Get("part")
	kind, text := msg.Assistant, p.Get("text")
	if p.Get("type").Equal("think") {
		kind, text = msg.Reasoning, p.Get("think")
	}
	switch {
	case fileOf(p).Is(jsonv.String):
		m := d.add(msg.File, "file:"+r.Key(msg.Assistant))
		m.Attachments = []msg.Attachment{media.URL(fileOf(p))}
		r.Next(m)
	case kind == msg.Assistant && !p.Get("type").Equal("text"), !text.Is(jsonv.String):
		d.Unknown("content.part", p)
	case len(text.Escaped()) == 0: // thoughts that the provider keeps to itself
		text.MarkRead()
	default:
		m := d.add(kind, r.Key(kind))
		m.ParentKey = r.Last
		r.Said(m, text.Text())
	}
	d.Last = r.Last
}

// request decodes a request to the model.
func (d *stream) request(v jsonv.Value) {
	loop := !v.Get("kind").Equal("compaction")
	d.Alias, d.Model, d.Provider = ident.Peek(v.Get("modelAlias")), ident.Of(v.Get("model")), ident.Of(v.Get("provider"))
	attempt := v.Get("attempt").Str()
	if loop && (attempt == "" || strings.HasPrefix(attempt, "1/")) {
		v.Skip("modelAlias", "thinkingEffort", "thinkingKeep", "projection", "turnStep", "kind")
		return
	}
	m := d.status("llm_request", attempt, v.Get("kind").Str(), v.Get("turnStep").Str())
	m.SetAttr("attempt", attempt)
	m.SetAttr("kind", v.Get("kind").Str())
	m.SetAttr("model", d.Model)
	m.SetAttr("provider", d.Provider)
	conversation.Attrs(m, v, "modelAlias", "thinkingEffort", "thinkingKeep", "projection", "turnStep")
}

// counts reads tokens.
func counts(u jsonv.Value) conversation.Counts {
	return conversation.Counts{
		Input: u.Get("inputOther").Uint(), Output: u.Get("output").Uint(), CacheRead: u.Get("inputCacheRead").Uint(), CacheWrite: u.Get("inputCacheCreation").Uint(),
	}
}

// usage decodes the tokens of a response, or of a compaction.
func (d *stream) usage(v jsonv.Value) {
	c, alias := counts(v.Get("usage")), ident.Of(v.Get("model"))
	r := d.Response
	if r == nil || !d.Open || v.Get("usageScope").Equal("session") {
		r = &conversation.Response{ID: "usage:" + msg.HashKey(d.stamp, d.agent, alias), Run: d.Run.Going(), Last: d.Last}
	} else {
		r = d.response(jsonv.Value{})
	}
	if r.Model, r.Provider = d.Model, d.Provider; d.Alias != alias && d.Model != alias || r.Model == "" {
		r.Model, r.Provider = alias, ""
	}
	r.At = d.At
	d.count(r, c, alias)
}

// count emits the tokens of a response, unless the provider counts none.
func (d *stream) count(r *conversation.Response, c conversation.Counts, alias string) *msg.Message {
	if c == (conversation.Counts{}) {
		return nil
	}
	r.Count(c, msg.Provider)
	m := r.Usage(d.Out, msg.Complete)
	if m == nil {
		return nil
	}
	m.Session, m.Agent.Kind = d.session, msg.KindAgent
	if alias != r.Model {
		m.SetAttr("model_alias", alias)
	}
	return m
}

// over decodes the end of a response.
func (d *stream) over(e jsonv.Value) {
	r := d.response(e.Get("uuid"))
	d.count(r, counts(e.Get("usage")), "") // the same as before
	d.Open = false
	reason := e.Get("finishReason").Str()
	m := d.status("step_end", r.ID)
	m.ResponseID, m.FinishReason = r.ID, reason
	conversation.Attrs(m, e, "message_id=messageId", "raw_finish_reason=rawFinishReason", "provider_finish_reason=providerFinishReason")
	conversation.AttrsAs(m, e, jsonv.Value.Digits, "first_token_ms=llmFirstTokenLatencyMs", "stream_ms=llmStreamDurationMs")
	switch {
	case d.Root.Get("agentId").Exists(), d.Called && reason == "tool_use", !d.Run.Active(): // its turn.ended follows, or another step
	case reason == "interrupted":
		d.finish("cancelled", true)
	case reason == "error":
		d.finish(reason, true)
	default:
		d.finish("stop", false)
	}
}

// call decodes a call: {toolCallId, name, args}.
func (d *stream) call(e jsonv.Value) {
	r := d.response(e.Get("stepUuid"))
	c := &call{Run: d.Run.ID}
	c.ID, c.Name = ident.Of(e.Get("toolCallId")), cmp.Or(ident.Of(e.Get("name")), "unknown")
	c.Within(r.ID)
	args := e.Get("args")
	switch c.Name {
	case "Agent":
		c.Task, c.Async, c.To = true, args.Get("run_in_background").Bool(), cmp.Or(ident.Of(args.Get("subagent_type")), "coder") // the default
	case "AgentSwarm":
		c.Task, c.To = true, cmp.Or(ident.Of(args.Get("subagent_type")), "coder")
	}
	d.Calls.Add(c)
	d.Called = true
	m := d.add(msg.ToolCall, "call:"+c.ID)
	c.Called(m, jsonv.Or(args, e.Get("arguments")).JSON(), jsonv.Or(args.Get("prompt"), args.Get("prompt_template")))
	if resumed := ident.Of(args.Get("resume")); resumed != "" {
		d.meets(m, c, resumed)
	}
	r.Next(m)
	d.Last = r.Last
}

// meets writes the agent that works on a call into a message about it.
func (d *stream) meets(m *msg.Message, c *call, agent string) {
	m.Delegation.CorrelationID = meeting(d.session, agent)
	c.Agents = bounded.Push(c.Agents, agent, conversation.MaxEnded)
}

// linked adds a message for an agent that works on a call, unless there is one.
func (d *stream) linked(c *call, agent, typ string) {
	for _, a := range c.Agents {
		if a == agent {
			return
		}
	}
	c.To = cmp.Or(typ, c.To)
	m := record.Hide(c.About(d.add(msg.Status, "agent:"+c.ID+"/"+agent)), "subagent")
	record.Signal(m, msg.Link)
	d.meets(m, c, agent)
	m.SetAttr("agent", agent)
	if c.Run != "" && m.Signal != msg.RunStart {
		m.Run = c.Run
	}
}

var (
	agentOf = regexp.MustCompile(`(?m)^agent_id: ([0-9a-zA-Z._-]{1,64})$`)
	swarmOf = regexp.MustCompile(`<subagent[^>]* agent_id="([0-9a-zA-Z._-]{1,64})"`)
	taskOf  = regexp.MustCompile(`(?m)\Atask_id: ([0-9a-zA-Z._-]{1,64})\nstatus: running$`)
)

// result decodes the result of a call: {toolCallId, result: {output, isError, note}}.
func (d *stream) result(e jsonv.Value) {
	id, v := ident.Of(e.Get("toolCallId")), e.Get("result")
	c := d.Calls.Named(id)
	if c == nil {
		c = &call{Run: d.Run.ID}
		c.ID, c.Name = id, "unknown"
	}
	e.Skip("parentUuid")
	var has conversation.Content
	d.content(v.Get("output"), &has)
	failed := v.Get("isError").Bool()
	if c.Task {
		text := has.Joined().String()
		for _, found := range [][][]string{agentOf.FindAllStringSubmatch(text, 1), swarmOf.FindAllStringSubmatch(text, -1)} {
			for _, f := range found {
				d.linked(c, f[1], "")
			}
		}
		if f := taskOf.FindStringSubmatch(text); f != nil && !failed {
			c.Background, c.Async = f[1], true
		}
	}
	var m *msg.Message
	if c.Background != "" { // the end of the task is its result
		m = record.Hide(c.About(d.add(msg.Status, "ack:"+c.ID)), "async_launched")
	} else {
		d.Calls.End(c)
		m = c.Result(d.add(msg.ToolResult, "result:"+c.ID))
	}
	if c.Run != "" && m.Signal != msg.RunStart {
		m.Run = c.Run
	}
	if has.Fill(m); v.Get("durationMs").IsCount() {
		m.Tool.Duration = v.Get("durationMs").Int() * int64(time.Millisecond)
	}
	conversation.Attrs(m, v, "note")
	if failed {
		m.IsError = true
		text := strings.ToLower(conversation.Cut(m.Content.String(), ident.Max))
		m.Tool.ErrorType = conversation.ErrorClass(text, "rejected", "denied", "denied", "denied", "timed out", "timeout", "interrupted", "interrupted", "aborted", "interrupted", "cancelled", "interrupted")
	}
}

// task decodes the beginning or the end of work beside the turn: of a sub-agent, or of a command.
func (d *stream) task(v jsonv.Value) {
	info, ends := v.Get("info"), v.Get("type").Equal("task.terminated")
	id, agent := ident.Of(info.Get("taskId")), ident.Of(info.Get("agentId"))
	c := d.Calls.Named(ident.Of(info.Get("parentToolCallId")))
	if ends {
		if of := d.Calls.Oldest(func(c *call) bool { return c.Background == id }); of != nil {
			d.Calls.End(of)
			m := of.Result(d.add(msg.ToolResult, "result:"+of.ID))
			m.Run = cmp.Or(of.Run, m.Run)
			terminated(m, info, v.Get("outputTail"))
			return
		}
	} else if c != nil && agent != "" {
		d.linked(c, agent, ident.Of(info.Get("subagentType")))
	}
	m := d.status("task", id, v.Get("type").Str())
	terminated(m, info, v.Get("outputTail"))
	if c != nil {
		c.About(m)
	}
}

// agents decodes how far a sub-agent is; its own file has more. The first of the records names its call.
func (d *stream) agents(v jsonv.Value) {
	agent, name := ident.Of(v.Get("subagentId")), ident.Of(v.Get("subagentName"))
	if c := d.Calls.Named(ident.Of(v.Get("parentToolCallId"))); c != nil {
		d.linked(c, agent, name)
	}
	m := d.status("subagent_event", v.Get("type").Str(), agent)
	m.SetAttr("event", v.Get("type").Str())
	m.SetAttr("agent", agent)
	m.SetAttr("agent_type", name)
	conversation.Attrs(m, v, "call=parentToolCallId", "task=taskId", "description", "model", "reason", "error")
	m.Content = v.Get("resultSummary").Text()
}

// terminated writes the state of a task into a message, or its end.
func terminated(m *msg.Message, info, tail jsonv.Value) {
	status := info.Get("status")
	m.Content = tail.Text()
	conversation.Attrs(m, info, "task=taskId", "agent=agentId", "kind", "status", "description", "stopReason", "command", "model", "subagentType")
	if status.Exists() && !status.In("running", "completed") {
		m.IsError = true
		m.Tool.ErrorType = conversation.ErrorClass(status.PeekStr(), "timed_out", "timeout", "killed", "interrupted", "lost", "interrupted")
	}
}

// ended decodes the end of a turn.
func (d *stream) ended(v jsonv.Value) {
	reason := jsonv.Word(v.Get("reason"), "completed", "cancelled", "failed", "blocked")
	if !d.Run.Active() {
		conversation.Attrs(d.status("turn_ended", reason), v, "reason")
		return
	}
	if fault := v.Get("error"); fault.Get("message").Is(jsonv.String) {
		m := d.add(msg.Error, "error:"+msg.HashKey(d.Turn, d.stamp))
		m.IsError, m.Content = true, fault.Get("message").Text()
		conversation.Attrs(m, fault, "code", "name")
	}
	switch failed := reason != "completed"; reason {
	case "completed":
		d.finish("stop", failed)
	case "failed":
		d.finish("error", failed)
	default:
		d.finish(cmp.Or(reason, v.Get("reason").Str()), failed)
	}
}

// finish ends the run.
func (d *stream) finish(reason string, failed bool) {
	d.Run.Finish(d.add(msg.Stop, "stop:"+msg.HashKey(d.Turn, d.agent, d.stamp)), reason, failed)
	d.Open = false
}

// asks decodes a question to a person: {id, kind, toolCallId, request}.
func (d *stream) asks(v jsonv.Value) {
	id, of := ident.Of(v.Get("id")), ident.Of(v.Get("toolCallId"))
	kind := jsonv.Word(v.Get("kind"), "approval", "question", "user_tool")
	m := record.Hide(d.add(msg.Status, "wait:"+id), cmp.Or(kind, "approval"))
	c := d.Calls.Named(of)
	w := conversation.Wait{ID: id, Run: d.Run.ID}
	if c != nil {
		w.Run, w.Call = c.Run, c.ID
		c.About(m).Run = c.Run
	} else { // that has not begun: it is asked before
		m.SetAttr("tool_call", of)
	}
	if w.Run != "" && kind != "user_tool" {
		d.Waits.Ask(w)
		record.Signal(m, w.Signal(false))
	}
	m.Content = v.Get("request").JSON()
}

// answered decodes the answer.
func (d *stream) answered(v jsonv.Value) {
	id := ident.Of(v.Get("id"))
	m := record.Hide(d.add(msg.Status, "wait:"+id+"/end"), "answer")
	if w, asked := d.Waits.Answer(id); asked {
		if c := d.Calls.Get(w.Call); c != nil {
			c.About(m)
		}
		m.Run = w.Run
		record.Signal(m, w.Signal(true))
	}
	m.Content = v.Get("response").JSON()
}

// beside decodes a record beside the conversation.
func (d *stream) beside(typ, v jsonv.Value) {
	name := ident.Of(typ)
	switch {
	case typ.In("profile.bind", "config.update"):
		d.Project = cmp.Or(ident.Of(v.Path("environmentDisclosure", "cwd")), d.Project)
		d.Profile = cmp.Or(ident.Peek(v.Get("profileName")), d.Profile)
		m := d.add(msg.System, name+":"+msg.HashKey(d.stamp, d.agent))
		m.Hidden, m.Content = true, v.Get("systemPrompt").Text()
		m.SetAttr("type", name)
		conversation.Attrs(m, v, "model=modelAlias", "profile=profileName", "thinkingEffort", "thinkingLevel")
	case typ.Equal("context.apply_compaction"):
		m := d.status("compaction", name)
		record.Signal(m, msg.Compaction)
		m.Content = jsonv.FirstText(v.Get("summary"), v.Get("contextSummary"))
		v.Get("contextSummary").MarkRead()
		conversation.AttrsAs(m, v, jsonv.Value.Digits, "tokensBefore", "tokensAfter", "compactedCount")
	case typ.Equal("permission.record_approval_result"):
		m := d.status("approval", ident.Peek(v.Get("toolCallId")))
		conversation.Attrs(m, v, "tool_call=toolCallId", "tool=toolName", "action", "sessionApprovalRule")
		conversation.Attrs(m, v.Get("result"), "decision", "feedback", "scope", "selectedLabel")
	case typ.Equal("plugin.session_start"):
		d.status("plugin", name).Content = v.Get("content").Text()
	case typ.Equal("turn.cancel"): // the engine before writes no other end of the turn
		conversation.Attrs(d.status("turn_cancel", ident.Peek(v.Get("target"))), v, "reason", "target")
		if !v.Get("agentId").Exists() && d.Run.Active() {
			d.finish("cancelled", true)
		}
	case typ.Equal("turn.step.interrupted"):
		m := d.status("step_interrupted", ident.Peek(v.Get("reason")))
		m.Content = v.Get("message").Text()
		conversation.Attrs(m, v, "reason")
	case typ.Equal("forked"):
		d.status("forked")
	case typ.In("context.clear", "context.undo", "full_compaction.begin", "full_compaction.cancel", "full_compaction.complete", "goal.create", "goal.update", "goal.clear", "goal.account_usage",
		"goal.continuation", "plan_mode.enter", "plan_mode.exit", "plan_mode.cancel", "plan.revision", "swarm_mode.enter", "swarm_mode.exit", "tower_mode.enter", "tower_mode.exit",
		"cron.add", "cron.delete", "permission.set_mode", "micro_compaction.apply", "tools.update_store"):
		m := d.status(name)
		conversation.Attrs(m, v, "mode", "instruction", "source", "goalId", "objective", "completionCriterion", "status", "reason", "actor", "id", "path", "sha256", "trigger", "sessionId", "key")
		conversation.AttrsAs(m, v, jsonv.Value.Digits, "count", "turnsUsed", "tokensUsed", "wallClockMs", "version", "bytes", "cutoff")
		conversation.AttrsAs(m, v, conversation.ShortJSON, "value", "task", "ids", "budgetLimits")
	case typ.In("token_counting.measured", "token_counting.rebased", "token_counting.truncated", "token_counting.turn_recorded", "context.update_token_count", "staleGuard.recorded", "staleGuard.cleared",
		"prompt.accepted", "runtime.set_binding", "llm.tools_snapshot", "mcp.tools_discovered", "tools.register_user_tool", "tools.unregister_user_tool", "tools.set_active_tools",
		"tools.reset_active_tools", "task.waitDelivered", "interruptionReminder.recorded", "cron.cursor", "agent.message.appended", "agent.turn.started", "agent.turn.ended", "prompt.completed"):
		v.MarkRead() // the program's own, or repeated by other records
	default:
		d.Unknown(name, v)
	}
}
