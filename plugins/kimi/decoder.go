// Package kimi decodes the sessions of Kimi CLI: files of lines, and documents beside them.
//
//	sessions/FOLDER/SESSION/wire.jsonl                     {timestamp, message: {type, payload}}, after a line with the version
//	sessions/FOLDER/SESSION/state.json                     the title, the list of things to do
//	sessions/FOLDER/SESSION/subagents/AGENT/wire.jsonl     of a sub-agent (wire 1.6), with meta.json
//
// Facts of the format that are easy to get wrong, from the source of Kimi CLI (wire/types.py, wire/__init__.py, soul/kimisoul.py,
// subagents/runner.py, session_fork.py):
//
//   - The pieces of a text are merged before they are written: a ContentPart is whole, and so is a ToolCall. Calls run while the response goes on, so
//     that results may be before the StatusUpdate that ends it.
//   - StatusUpdate ends a response, and has its tokens and its message_id, which come after its parts. Other updates (plan_mode, mcp_status) have neither.
//   - input_other has no cached tokens, output has those of thoughts.
//   - The work of a sub-agent in the foreground is in the file of its parent, too (SubagentEvent). Since wire 1.6 it names the agent, whose own file has all of it;
//     before, there was no such file, and task_tool_call_id in place of parent_tool_call_id.
//   - An agent may be resumed by another call, and is asked to go on if its answer was short: each is a TurnBegin in its file.
//   - A flow has turns in its turn: a TurnBegin follows that of the flow, or the TurnEnd of the turn before, at once.
//   - Versions before 2026-03 had no TurnEnd after an interruption.
//   - /fork and /undo copy the lines of a session, with their times and no mark, into the file of a new one.
//   - No record of a response names its model. The folder is the MD5 of the path of the work directory.
package kimi

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
			Name:       "kimi",
			Revision:   1,
			Summary:    "Sessions of Kimi CLI, with those of its sub-agents.",
			Transports: []frame.Kind{frame.Line, frame.Body},
			Documents:  []string{"*.json"},
		},
		LeavesOut: leavesOut,
		State:     1,
		Open: func(r *record.Current, s *state) record.Reader {
			d := &stream{Current: r, state: s}
			p := ident.PathOf(r.Origin)
			if d.session, d.agent = p.Before("subagents"), p.After("subagents"); d.session == "" || d.agent == "" {
				d.session, d.agent = p.Dir(), ""
			}
			d.session, d.agent = cmp.Or(ident.Bounded(d.session), "unknown"), ident.Bounded(d.agent)
			return d
		},
	}.Factory()
}

const maxLanes = 64

// stream decodes one file.
type stream struct {
	*record.Current
	*state

	session, agent string // of the path
	lane           *lane
	stamp          string // the time of the record, as it is written
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Lanes []*lane            `json:",omitempty"` // the one used last at the end
	Waits conversation.Waits `json:",omitempty"`
}

// lane is an agent: that of the file, whose name is empty, or a sub-agent in the file of its parent.
type lane struct {
	Name string           `json:",omitempty"`
	Type string           `json:",omitempty"` // of a sub-agent
	Run  conversation.Run `json:",omitzero"`

	Turn     string                    `json:",omitempty"`
	Depth    int                       `json:",omitempty"` // turns of a flow in the turn
	Edge     int64                     `json:",omitempty"` // when the last turn began or ended, unless there was a step since
	Response *conversation.Response    `json:",omitempty"` // that is not complete
	Last     string                    `json:",omitempty"` // key of the message before
	Called   bool                      `json:",omitempty"` // the last response has calls
	Rejected bool                      `json:",omitempty"` // one of them was rejected by a person
	Before   conversation.Time         `json:",omitzero"`  // of the record before
	Calls    conversation.Calls[*call] `json:",omitzero"`
}

// call is a tool call.
type call struct {
	conversation.Delegation
	Run        string `json:",omitempty"`
	Background string `json:",omitempty"` // its task in the background
}

// In returns the session: that of the path.
func (d *stream) In() (session, run string) { return d.session, "" }

// Read decodes a record.
func (d *stream) Read() {
	v := d.Root
	message := v.Get("message")
	switch {
	case d.Frame.Kind == frame.Body:
		d.document(v)
	case v.Get("type").Equal("metadata") && ident.Peek(v.Get("protocol_version")) != "":
		m := record.Hide(d.Add(msg.Status, "wire:"+d.agent), "metadata")
		conversation.Attrs(m, v, "protocol_version")
	case message.Is(jsonv.Object):
		d.stamp = string(v.Get("timestamp").Peek())
		d.At = conversation.TimeOf(v.Get("timestamp"))
		d.enter("", nil)
		d.event(message)
	default:
		d.Unknown(ident.Peek(v.Get("type")), v)
	}
}

// document decodes a file beside the lines.
func (d *stream) document(v jsonv.Value) {
	switch spec := v.Get("launch_spec"); {
	case d.agent == "" && v.Get("approval").Is(jsonv.Object):
		m := record.Hide(d.Add(msg.Status, "state"), "session")
		m.Complete, m.Title = msg.Summary, conversation.Excerpt(v.Get("custom_title"))
		conversation.AttrsAs(m, v, conversation.ShortJSON, "todos")
	case d.agent != "" && spec.Is(jsonv.Object):
		m := record.Hide(d.Add(msg.Status, "agent:"+d.agent), "subagent")
		m.Complete, m.Content = msg.Summary, v.Get("description").Text()
		m.Delegation.To, m.Delegation.ChildRun, m.Delegation.Link = ident.Of(v.Get("subagent_type")), d.agent, msg.ByNativeID
		conversation.TimeOf(v.Get("updated_at")).Set(m)
		conversation.Attrs(m, v, "status", "last_task_id")
		conversation.Attrs(m, spec, "model=effective_model")
	default:
		d.Unknown("document", v)
	}
}

// enter makes a lane that of the record: of a sub-agent that c made, unless c is nil.
func (d *stream) enter(name string, c *call) {
	d.lane = bounded.Use(&d.Lanes, maxLanes, func(l *lane) bool { return l.Name == name }, func() *lane {
		l := &lane{Name: name}
		switch {
		case name != "":
			l.Run = conversation.Run{ID: name, Child: true}
		case d.agent != "":
			l.Run = conversation.Run{ID: d.agent, Child: true}
		}
		if c != nil {
			l.Type = c.To
			l.Run.Caused(c.Run, c.ID, msg.ByNativeID, 0)
		}
		return l
	}, nil)
}

// add adds a message of the lane's run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	m.Agent.Name = d.lane.Type
	if d.lane.Run.Active() {
		d.lane.Run.Mark(m)
	}
	return m
}

// status adds a hidden message. It is named by its time, and by the facts that distinguish it from others of the same.
func (d *stream) status(typ string, facts ...string) *msg.Message {
	return record.Hide(d.add(msg.Status, typ+":"+msg.HashKey(append(facts, d.stamp, d.lane.Name, d.agent)...)), typ)
}

// event decodes a message of the wire: {type, payload}.
func (d *stream) event(v jsonv.Value) {
	p, typ := v.Get("payload"), v.Get("type")
	l := d.lane
	defer func() { l.Before = d.At.Or(l.Before) }()
	switch {
	case typ.Equal("TurnBegin") && p.Get("user_input").Exists():
		d.turn(p.Get("user_input"))
	case typ.Equal("SteerInput") && p.Get("user_input").Exists():
		d.prompt(p.Get("user_input"), "steer:")
	case typ.Equal("TurnEnd"):
		d.end()
	case typ.Equal("StepBegin") && p.Get("n").IsCount():
		l.Edge, l.Called, l.Rejected = 0, false, false
		d.begin()
		l.Response = &conversation.Response{ID: l.Turn + "/" + p.Get("n").Digits(), Run: l.Run.ID, Last: l.Last, At: d.At}
	case typ.Equal("StepInterrupted") && l.Run.Active(): // by an error, which is not there; some versions write no TurnEnd after it
		d.finish("error", true)
	case typ.Equal("StepRetry") && l.Response != nil:
		m := d.status("retry", p.Get("next_attempt").Digits())
		conversation.Attrs(m, p, "error_type")
		conversation.AttrsAs(m, p, jsonv.Value.Digits, "next_attempt", "max_attempts", "status_code")
		m.SetAttr("wait_s", string(p.Get("wait_s").Raw()))
		step := l.Turn + "/" + p.Get("n").Digits()
		l.Response = &conversation.Response{ID: step + "/" + p.Get("next_attempt").Digits(), Run: l.Run.ID, Last: l.Last, At: d.At}
	case typ.Equal("ContentPart"):
		d.part(p)
	case typ.Equal("ToolCall") && ident.Peek(p.Get("id")) != "":
		d.call(p)
	case typ.Equal("ToolResult") && ident.Peek(p.Get("tool_call_id")) != "":
		d.result(p)
	case typ.Equal("StatusUpdate"):
		d.update(p)
	case typ.Equal("SubagentEvent") && p.Path("event", "payload").Is(jsonv.Object):
		d.subagent(p)
	case typ.Equal("Notification") && ident.Peek(p.Get("id")) != "":
		d.notification(p)
	case typ.Equal("ApprovalRequest") && ident.Peek(p.Get("id")) != "":
		d.asks(p, "approval")
	case typ.Equal("QuestionRequest") && ident.Peek(p.Get("id")) != "":
		d.asks(p, "question")
	case typ.In("ApprovalResponse", "ApprovalRequestResolved") && ident.Peek(p.Get("request_id")) != "":
		d.answered(p)
	default:
		d.beside(typ, p, v)
	}
}

// beside decodes an event beside the conversation.
func (d *stream) beside(typ, p, v jsonv.Value) {
	switch {
	case typ.Equal("CompactionBegin"):
		d.status("compaction_begin")
	case typ.Equal("CompactionEnd"):
		record.Signal(d.status("compaction"), msg.Compaction)
	case typ.Equal("PlanDisplay"):
		m := d.status("plan", ident.Peek(p.Get("file_path")))
		m.Content = p.Get("content").Text()
		conversation.Attrs(m, p, "file_path")
	case typ.Equal("BtwBegin"):
		m := d.status("btw", ident.Peek(p.Get("id")))
		conversation.Attrs(m, p, "id")
		m.Content = p.Get("question").Text()
	case typ.Equal("BtwEnd"):
		m := d.status("btw_end", ident.Peek(p.Get("id")))
		conversation.Attrs(m, p, "id")
		m.Content, m.IsError = jsonv.FirstText(p.Get("response"), p.Get("error")), p.Get("error").Exists()
	case typ.In("HookTriggered", "HookResolved"):
		m := d.status("hook", typ.Str(), ident.Peek(p.Get("event")), ident.Peek(p.Get("target")))
		conversation.Attrs(m, p, "event", "target", "action", "reason")
		conversation.AttrsAs(m, p, jsonv.Value.Digits, "hook_count", "duration_ms")
	case typ.In("MCPLoadingBegin", "MCPLoadingEnd"):
		d.status("mcp", typ.Str())
	default:
		d.Unknown(ident.Peek(typ), v)
	}
}

// atOnce is the time within which the turn of a flow follows.
const atOnce = int64(time.Second)

// turn decodes the beginning of a turn.
func (d *stream) turn(input jsonv.Value) {
	l := d.lane
	var has conversation.Content
	d.content(input, &has)
	turn := msg.HashKey("turn", d.stamp, l.Name, d.agent, has.Joined().String())
	if l.Run.Active() && l.Edge > 0 && d.At.Nanos-l.Edge <= atOnce && !l.Run.Child {
		l.Depth++
	} else {
		if l.Run.Active() && !l.Run.Child { // of a version without an end
			at := d.At
			d.At = l.Before
			d.finish("cancelled", true)
			d.At = at
		}
		l.Depth = 0
		l.Run.Begin(turn)
	}
	l.Turn, l.Edge, l.Response, l.Called, l.Rejected = turn, d.At.Nanos, nil, false, false
	d.say(has, "user:"+turn)
}

// prompt decodes an addition to a turn.
func (d *stream) prompt(input jsonv.Value, key string) {
	var has conversation.Content
	d.content(input, &has)
	d.begin()
	d.say(has, key+msg.HashKey(d.stamp, d.lane.Turn, has.Joined().String()))
}

// say adds a prompt.
func (d *stream) say(has conversation.Content, key string) {
	m := d.add(msg.User, key)
	has.Fill(m)
	if m.Role = msg.RoleUser; !d.lane.Run.Child {
		m.Agent = msg.Agent{Kind: msg.KindHuman}
	}
	d.lane.Last = key
}

// begin begins a run whose beginning was not recorded.
func (d *stream) begin() {
	l := d.lane
	if l.Turn == "" || !l.Run.Active() {
		l.Turn = msg.HashKey("turn", d.stamp, l.Name, d.agent)
	}
	if !l.Run.Active() {
		l.Run.Begin(l.Turn)
	}
}

// end decodes the end of a turn.
func (d *stream) end() {
	l := d.lane
	switch l.Edge = d.At.Nanos; {
	case !l.Run.Active():
		d.status("turn_end")
		return
	case l.Depth > 0:
		l.Depth--
		d.status("turn_end", l.Turn)
		return
	}
	switch {
	case l.Response != nil, l.waits():
		d.finish("cancelled", true)
	case l.Rejected:
		d.finish("tool_rejected", false)
	case l.Called: // too many steps, or a call too often
		d.finish("limit", true)
	default:
		d.finish("stop", false)
	}
}

// finish ends the run.
func (d *stream) finish(reason string, failed bool) {
	l := d.lane
	l.Run.Finish(d.add(msg.Stop, "stop:"+l.Turn), reason, failed)
	l.Depth, l.Response = 0, nil
}

// waits reports whether a call of the run has no result. One in the background needs none.
func (l *lane) waits() bool {
	for _, c := range l.Calls.Open {
		if c.Run == l.Run.ID && c.Background == "" {
			return true
		}
	}
	return false
}

// content reads a string, or a list of parts.
func (d *stream) content(v jsonv.Value, has *conversation.Content) {
	for p := range jsonv.Each(v) {
		switch typ := p.Get("type"); {
		case p.Is(jsonv.String):
			has.Add(p.Text())
		case typ.Equal("text") && p.Get("text").Is(jsonv.String):
			has.Add(p.Get("text").Text())
		case fileOf(p).Is(jsonv.String):
			has.Attach(media.URL(fileOf(p)))
		default:
			d.Unknown(ident.Peek(typ), p)
		}
	}
}

// fileOf is the URL of an image, a sound or a film.
func fileOf(p jsonv.Value) jsonv.Value {
	if typ := p.Get("type"); typ.In("image_url", "audio_url", "video_url") {
		return p.Path(typ.PeekStr(), "url")
	}
	return jsonv.Value{}
}

// part decodes a part of a response, or a text of the program in a turn without a step.
func (d *stream) part(p jsonv.Value) {
	l := d.lane
	kind, text := msg.Assistant, p.Get("text")
	if p.Get("type").Equal("think") {
		kind, text = msg.Reasoning, p.Get("think")
	}
	if file := fileOf(p); file.Is(jsonv.String) {
		m := d.add(msg.File, "file:"+msg.HashKey(d.stamp, l.Turn, l.Name))
		m.Role, m.Attachments = msg.RoleAssistant, []msg.Attachment{media.URL(file)}
		return
	}
	if !text.Is(jsonv.String) || kind == msg.Assistant && !p.Get("type").Equal("text") {
		d.Unknown("ContentPart", p)
		return
	}
	if len(text.Escaped()) == 0 { // thoughts that the provider keeps to itself
		text.MarkRead()
		return
	}
	if r := l.Response; r != nil {
		r.At = d.At
		m := d.add(kind, r.Key(kind))
		m.ParentKey = r.Last
		r.Said(m, text.Text())
		l.Last = r.Last
		return
	}
	m := d.add(kind, "text:"+msg.HashKey(d.stamp, l.Turn, l.Name))
	m.Role, m.Content = msg.RoleAssistant, text.Text()
}

// call decodes a call: {id, function: {name, arguments}}, whose arguments are JSON.
func (d *stream) call(p jsonv.Value) {
	l := d.lane
	d.begin()
	r := l.Response
	if r == nil { // its step was not recorded
		r = &conversation.Response{ID: l.Turn, Run: l.Run.ID, Last: l.Last, At: d.At}
	}
	c := &call{Run: l.Run.ID}
	f := p.Get("function")
	c.ID, c.Name = ident.Of(p.Get("id")), cmp.Or(ident.Of(f.Get("name")), "unknown")
	c.Within(r.ID)
	arguments, task := f.Get("arguments"), jsonv.Value{}
	var inner jsonv.Doc
	if c.Task = c.Name == "Agent" || c.Name == "Task"; c.Task && inner.Parse(arguments.Chars()) == nil {
		in := inner.Root()
		task, c.Async = in.Get("prompt"), in.Get("run_in_background").Bool()
		if c.To = ident.First(in.Get("subagent_type"), in.Get("subagent_name")); c.Name == "Agent" {
			c.To = cmp.Or(c.To, "coder") // the default
			c.Child = ident.Of(in.Get("resume"))
		}
	}
	l.Calls.Add(c)
	l.Called = true
	m := d.add(msg.ToolCall, "call:"+c.ID)
	c.Called(m, arguments.Text(), task)
	if r.At = d.At; c.Task {
		conversation.Causes(m, c.Child)
	}
	r.Next(m)
	l.Last = r.Last
}

// named finds a call of any lane, of this one first.
func (d *stream) named(id string) *call {
	if c := d.lane.Calls.Named(id); c != nil {
		return c
	}
	for _, l := range d.Lanes {
		if c := l.Calls.Named(id); c != nil {
			return c
		}
	}
	return nil
}

var (
	agentOf = regexp.MustCompile(`(?m)^agent_id: ([0-9a-zA-Z_-]{1,64})$`)
	taskOf  = regexp.MustCompile(`(?m)^task_id: ([0-9a-zA-Z_-]{1,64})$`)
)

// match returns the first group of an expression.
func match(e *regexp.Regexp, text string) string {
	if m := e.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// result decodes the result of a call: {tool_call_id, return_value: {is_error, output, message}}.
func (d *stream) result(p jsonv.Value) {
	l, v := d.lane, p.Get("return_value")
	id := ident.Of(p.Get("tool_call_id"))
	c := l.Calls.Named(id)
	if c == nil {
		c = &call{Run: l.Run.ID}
		c.ID, c.Name = id, "unknown"
	}
	if w, asked := bounded.Take((*[]conversation.Wait)(&d.Waits), func(w conversation.Wait) bool { return w.Call == c.ID && w.Run == c.Run }); asked {
		m := record.Hide(c.About(d.add(msg.Status, "wait:"+w.ID+"/end")), "question")
		record.Signal(m, msg.WaitEnd)
	}
	var has conversation.Content
	if output := v.Get("output"); !output.Is(jsonv.String) || len(output.Escaped()) > 0 {
		d.content(output, &has)
	}
	note := v.Get("message")
	if len(note.Escaped()) > 0 && has.N == 0 && len(has.Files) == 0 {
		has.Add(note.Text())
	}
	failed := v.Get("is_error").Bool()
	if c.Task && d.lane.Name == "" {
		text := has.Joined().String()
		c.Child = cmp.Or(c.Child, match(agentOf, text))
		if c.Async && !failed {
			c.Background = cmp.Or(match(taskOf, text), c.ID)
		}
	}
	var m *msg.Message
	if c.Background != "" { // its result is a notification
		m = record.Hide(c.About(d.add(msg.Status, "ack:"+c.ID)), "async_launched")
		conversation.Causes(m, c.Child)
		record.Signal(m, msg.Link)
	} else {
		l.Calls.End(c)
		m = c.Result(d.add(msg.ToolResult, "result:"+c.ID))
	}
	if c.Run != "" && m.Signal != msg.RunStart {
		m.Run = c.Run
	}
	has.Fill(m)
	conversation.Attrs(m, v, "message")
	if failed {
		m.IsError = true
		text := strings.ToLower(conversation.Cut(m.Content.String()+" "+note.PeekStr(), ident.Max))
		m.Tool.ErrorType = conversation.ErrorClass(text, "rejected by the user", "denied", "timed out", "timeout", "timeout", "timeout", "interrupted", "interrupted", "cancelled", "interrupted")
		l.Rejected = l.Rejected || m.Tool.ErrorType == "denied"
	}
}

// update decodes how far the agent is; after a response, its tokens.
func (d *stream) update(p jsonv.Value) {
	l, u := d.lane, p.Get("token_usage")
	r := l.Response
	if r == nil || p.Get("mcp_status").Exists() {
		m := d.status("status", string(p.Get("context_usage").Peek()), string(p.Get("plan_mode").Peek()))
		m.SetAttr("plan_mode", string(p.Get("plan_mode").Raw()))
		conversation.AttrsAs(m, p, conversation.ShortJSON, "mcp_status")
		return
	}
	l.Response, r.At = nil, d.At
	id := ident.Of(p.Get("message_id"))
	if u.Is(jsonv.Object) {
		r.Count(conversation.Counts{
			Input: u.Get("input_other").Uint(), Output: u.Get("output").Uint(), CacheRead: u.Get("input_cache_read").Uint(), CacheWrite: u.Get("input_cache_creation").Uint(),
		}, msg.Provider)
	}
	m := r.Usage(d.Out, msg.Complete)
	if m == nil { // the provider counts none
		m = d.status("status", id)
	}
	m.Session, m.Agent.Kind, m.Agent.Name = d.session, msg.KindAgent, l.Type
	m.SetAttr("message_id", id)
	conversation.AttrsAs(m, p, jsonv.Value.Digits, "context_tokens", "max_context_tokens")
}

// subagent decodes an event of a sub-agent: {parent_tool_call_id, agent_id, subagent_type, event}.
func (d *stream) subagent(p jsonv.Value) {
	id, parent := p.First("parent_tool_call_id", "task_tool_call_id"), d.lane
	c := parent.Calls.Named(ident.Of(id))
	if agent := ident.Of(p.Get("agent_id")); agent != "" { // its own file has the event
		typ := ident.Of(p.Get("subagent_type"))
		p.Get("event").MarkRead()
		if c == nil || c.Child == agent && c.Name != "Agent" {
			return
		}
		fresh := c.Child != agent || c.To != typ
		if c.Child, c.To = agent, cmp.Or(typ, c.To); fresh {
			m := record.Hide(c.About(d.add(msg.Status, "agent:"+c.ID)), "subagent")
			conversation.Causes(m, agent)
			record.Signal(m, msg.Link)
		}
		return
	}
	name := parent.Turn + "/" + ident.Of(id)
	if c != nil {
		name = msg.HashKey(c.Run, c.ID)
		c.Child = name
	}
	d.enter(name, c)
	d.event(p.Get("event"))
	d.lane = parent
}

// notification decodes a notice: of the end of work in the background, or another one.
func (d *stream) notification(p jsonv.Value) {
	task, id := ident.Of(p.Path("payload", "task_id")), ident.Of(p.Get("id"))
	var c *call
	for _, l := range d.Lanes {
		if c = l.Calls.Oldest(func(c *call) bool { return c.Background != "" && c.Background == task }); c != nil {
			l.Calls.End(c)
			break
		}
	}
	var m *msg.Message
	status := p.Path("payload", "status")
	if c != nil {
		m = c.Result(d.add(msg.ToolResult, "result:"+c.ID))
		m.Run, m.IsError = c.Run, !status.Equal("completed")
		conversation.Failed(m, m.IsError)
	} else {
		m = record.Hide(d.add(msg.Status, "notification:"+id), "notification")
	}
	m.Content = p.Get("body").Text()
	m.SetAttr("notification", id)
	conversation.Attrs(m, p, "title", "severity", "notice=type", "source_kind", "source_id")
	conversation.Attrs(m, p.Get("payload"), "status", "terminal_reason", "failure_reason")
}

// asks decodes a question to a person: whether a call may be made, or one that a call asks.
func (d *stream) asks(p jsonv.Value, typ string) {
	id := ident.Of(p.Get("id"))
	of := ident.Of(p.Get("tool_call_id"))
	c := d.named(of)
	m := record.Hide(d.add(msg.Status, "wait:"+id), typ)
	if c != nil {
		w := conversation.Wait{ID: id, Run: c.Run, Call: c.ID}
		d.Waits.Ask(w)
		c.About(m).Run = c.Run
		record.Signal(m, w.Signal(false))
	} else { // of a sub-agent with a file of its own
		m.SetAttr("tool_call", of)
	}
	conversation.Attrs(m, p, "action", "sender", "agent_id", "subagent_type", "source_kind", "source_description")
	if m.Content = p.Get("description").Text(); typ == "question" {
		m.Content = p.Get("questions").JSON()
	}
}

// answered decodes the answer.
func (d *stream) answered(p jsonv.Value) {
	id := ident.Of(p.Get("request_id"))
	m := record.Hide(d.add(msg.Status, "wait:"+id+"/end"), "approval")
	if w, asked := d.Waits.Answer(id); asked {
		if c := d.named(w.Call); c != nil {
			c.About(m)
		}
		m.Run = w.Run
		record.Signal(m, w.Signal(true))
	}
	conversation.Attrs(m, p, "response", "feedback")
}
