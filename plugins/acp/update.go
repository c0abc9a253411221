package acp

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonrpc"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/mcp"
)

// update decodes session/update by its kind.
func (d *connection) update(u jsonv.Value) {
	history := d.s.Loaded && !d.s.Run.Active() || d.Requests.Open(d.s.ID, "session/load", "session/resume")
	switch kind := ident.Of(u.Get("sessionUpdate")); kind {
	case "user_message_chunk", "user_message":
		if d.s.Prompted && d.s.Run.Active() && !history {
			u.MarkRead() // the request has the prompt
			return
		}
		d.chunk(msg.User, u, history)
	case "agent_message_chunk", "agent_message":
		d.chunk(msg.Assistant, u, history)
	case "agent_thought_chunk", "agent_thought":
		d.chunk(msg.Reasoning, u, history)
	case "tool_call", "tool_call_update":
		d.complete()
		d.s.begin(history || !d.s.Run.Active() && d.s.Calls.Get(ident.Peek(u.Get("toolCallId"))) != nil) // work in the background ends after its turn
		d.call(u, history)
	case "tool_call_content_chunk":
		if c := d.tool(u); c != nil && len(c.Output)+len(u.Get("content").Peek()) <= maxText {
			c.output(u.Get("content"))
			u.MarkRead() // the result has it
		}
	case "plan", "plan_update":
		d.add(msg.Plan, "plan:"+d.key(kind)).Content = u.First("entries", "plan").JSON()
	case "usage_update":
		m := d.status("context:"+d.key(kind), kind)
		conversation.AttrsAs(m, u, jsonv.Value.Digits, "used", "size")
		m.SetAttr("cost", u.Path("cost", "amount").Digits())
		m.SetAttr("currency", ident.Of(u.Path("cost", "currency")))
	case "state_update":
		if state := u.Get("state"); state.Equal("idle") && d.s.Run.Active() {
			d.usage(u)
			d.stop(jsonrpc.Request{}, cmp.Or(ident.Of(u.Get("stopReason")), "end_turn"))
			return
		}
		d.s.Loaded = d.s.Loaded && !u.Get("state").Equal("running")
		d.status("state:"+d.key(kind), kind).SetAttr("state", ident.Of(u.Get("state")))
	case "current_mode_update", "current_model_update", "config_option_update", "session_info_update", "available_commands_update",
		"notice", "plan_removed", "terminal_update", "terminal_output_chunk", "compaction_update", "compaction_summary_chunk":
		m := d.status(kind+":"+d.key(kind), kind)
		note(m, u)
		if d.s.model(u); kind == "compaction_update" && u.Get("status").Equal("completed") && d.s.Run.Active() {
			m.Signal = msg.Compaction
		}
	default:
		d.Unknown(cmp.Or(kind, "session/update"), d.Root)
	}
}

// note reads an update that is no part of the conversation.
func note(m *msg.Message, u jsonv.Value) {
	conversation.Attrs(m, u, "currentModeId", "modelId", "title", "updatedAt", "severity", "planId", "terminalId", "command", "cwd", "compactionId", "status", "error")
	if m.Content = u.First("availableCommands", "configOptions", "description", "data", "output").Text(); m.Content.IsZero() {
		mcp.Content(u.First("content", "summary")).Fill(m)
	}
}

// model notes the model of the session, where a value names it.
func (s *session) model(v jsonv.Value) {
	if model := ident.First(v.Path("models", "currentModelId"), v.Get("modelId")); model != "" {
		s.Model = model
	}
	for o := range v.Get("configOptions").Elems() {
		if o.Get("category").Equal("model") || o.Get("id").Equal("model") {
			s.Model = ident.Of(o.Get("currentValue"))
		}
	}
}

// begin begins a turn whose prompt is not recorded.
func (s *session) begin(history bool) {
	if history || s.Run.Active() {
		return
	}
	s.Run.Begin(conversation.Ordinal("turn:"+s.ID, &s.Turns))
	s.Parts, s.Responses, s.Prompted = 0, 0, false
}

// chunk adds a piece to the message of that kind, or replaces what it has by the whole. A message ends when another one begins.
func (d *connection) chunk(kind msg.Kind, u jsonv.Value, history bool) {
	whole := !strings.HasSuffix(u.Get("sessionUpdate").PeekStr(), "_chunk")
	if whole && u.Get("content").Kind() == jsonv.Missing {
		u.MarkRead() // its content is as it was
		return
	}
	id := ident.Of(u.Get("messageId"))
	var p *conversation.Part
	if len(d.s.Open.Parts) > 0 {
		p = d.s.Open.Parts[0]
	}
	run := d.author(u, history)
	if p == nil || p.Kind != kind || d.s.Message != id || d.s.History != history || d.s.Author != run {
		d.complete()
		d.s.begin(history)
		p = d.s.Open.Open("", kind)
		p.Key = conversation.Ordinal(d.s.Run.ID+"/"+kind.String(), &d.s.Parts)
		d.s.Message, d.s.History, d.s.Author = id, history, run
	}
	d.s.At = d.At
	c := mcp.Content(u.Get("content"))
	if usage := u.Path("_meta", "usage"); usage.Is(jsonv.Object) && c.Joined().IsZero() { // the end of a response, as Qwen Code has it
		if d.complete(); !history {
			m := d.tokens(conversation.Ordinal(d.s.Run.ID+"/response", &d.s.Responses), d.s.Model)
			m.Run, m.Usage = cmp.Or(run, m.Run), tokensOf(usage)
		}
		return
	}
	if whole {
		d.s.Open.Clear(p)
	}
	d.s.Open.Append(p, c.Joined(), maxText)
	if c.Files != nil { // an image is a message
		d.complete()
		d.add(kind, conversation.Ordinal(d.s.Run.ID+"/"+kind.String(), &d.s.Parts)).Attachments = c.Files
	}
}

// complete emits the message whose chunks have come.
func (d *connection) complete() {
	for _, p := range d.s.Open.Parts {
		if !p.Empty() {
			m := d.Out.Add()
			if !d.s.History {
				d.s.Run.Mark(m)
			}
			d.text(m, d.s, p, msg.Complete)
		}
	}
	d.s.Open = conversation.Deltas{}
}

// text writes a message of chunks.
func (d *connection) text(m *msg.Message, s *session, p *conversation.Part, complete msg.Completeness) {
	m.Kind, m.Key, m.Session, m.Run, m.Complete = p.Kind, p.Key, s.ID, s.Run.ID, complete
	m.Role, m.Agent = msg.RoleAssistant, msg.Agent{Name: d.Agent, Kind: msg.KindAgent}
	m.Content = msg.Plain(string(p.Text))
	if p.Kind == msg.User {
		m.Role, m.Agent = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
	}
	m.Run = cmp.Or(s.Author, m.Run)
	d.s.name(m)
	if m.ResponseID = s.Message; m.ResponseID != "" {
		m.Model = s.Model
	}
	if s.History {
		m.Run, m.Key, m.ResponseID = "", "history:"+msg.HashKey(s.ID, p.Kind.String(), string(p.Text)), ""
		m.Complete = min(complete, msg.Summary)
		m.SetAttr("type", msg.History)
		m.SetAttr("message_id", s.Message)
	}
	if p.Cut {
		m.SetAttr("truncated", "true")
	}
	s.At.Set(m)
}

// tool returns the call of an update, with the fields that changed; nil without an id.
func (d *connection) tool(u jsonv.Value) *call {
	id := ident.Of(u.Get("toolCallId"))
	if id == "" {
		d.Unknown("toolCall", d.Root)
		return nil
	}
	c := d.s.Calls.Get(id)
	if c == nil {
		c = &call{Delegation: conversation.Delegation{Call: conversation.Call{ID: id}}, Run: d.s.Run.ID, At: d.At}
		c.Task = u.Path("rawInput", "subagent_type").Exists() || u.Path("_meta", "claudeCode", "toolName").In("Task", "Agent")
		d.s.Calls.Add(c)
	}
	meta := u.Get("_meta")
	if name := ident.First(u.Get("name"), meta.Path("claudeCode", "toolName"), meta.Get("toolName")); name != "" {
		c.Name = name
	}
	if kind := ident.Of(u.Get("kind")); kind != "" {
		c.Kind = kind
	}
	if title := conversation.Excerpt(u.Get("title")); title != "" {
		if c.Title = title; c.Name == "" && len(title) <= 64 && !strings.ContainsAny(title, " `/.") {
			c.Name = title // as OpenCode begins a call
		}
	}
	if input := u.Get("rawInput"); input.Exists() && (input.Len() > 0 || c.Input == "") && len(input.Peek()) <= maxText {
		c.Input = string(input.Raw())
		if to := ident.Of(input.Get("subagent_type")); to != "" {
			c.To = to
		}
	}
	d.s.terminal(c, u)
	return c
}

// call decodes tool_call and tool_call_update.
func (d *connection) call(u jsonv.Value, history bool) {
	c := d.tool(u)
	if c == nil {
		return
	}
	if c.History = history; history {
		c.Run = ""
	} else if run := d.author(u, history); run != "" {
		c.Run = run
	} else if parent := ident.Of(parentOf(u)); parent != "" {
		c.Parent = parent
	}
	first := d.s.Calls.GetOpen(c.ID) != nil
	status := u.Get("status")
	ends := status.In("completed", "failed", "cancelled")
	switch output := u.Get("content"); {
	case ends, u.Get("sessionUpdate").PeekStr() == "tool_call_update" && !u.Get("rawInput").Exists():
		if output.Len() > 0 && len(output.Peek()) <= maxText {
			c.Output, c.Files = "", nil
			for v := range output.Elems() {
				c.output(v)
			}
		}
	default:
		d.shown(c, output)
	}
	if response := u.Path("_meta", "claudeCode", "toolResponse"); response.Exists() && len(response.Peek()) <= maxText {
		c.Response = response.Text().String()
	}
	if !ends {
		if first {
			m := d.emit(c, msg.Partial)
			m.SetAttr("locations", conversation.ShortJSON(u.Get("locations")))
		}
		status.In("pending", "in_progress")
		return
	}
	if !first { // it is sent again
		u.MarkRead()
		return
	}
	d.emit(c, msg.Complete).SetAttr("locations", conversation.ShortJSON(u.Get("locations")))
	m := d.result(c)
	m.Attachments = c.Files
	m.SetAttr("terminalId", c.Terminal)
	text := d.s.output(c)
	switch raw := u.Get("rawOutput"); {
	case len(c.Files) > 0: // it has them, too
		m.Content = msg.Plain(text)
		raw.MarkRead()
	case text != "":
		m.Content = msg.Plain(text)
		m.SetAttr("raw_output", conversation.ShortJSON(raw))
	case raw.Exists():
		if raw.Is(jsonv.Array) { // blocks, as the adapter of Claude Code has them
			mcp.Content(raw).Fill(m)
		}
		if m.Content.IsZero() {
			m.Content = raw.Text()
		}
	default:
		m.Content = msg.Plain(c.Response)
	}
	switch {
	case status.Equal("cancelled"):
		m.IsError, m.Tool.ErrorType = true, "cancelled"
	case status.Equal("failed") && (c.Denied || c.Left):
		m.IsError, m.Tool.ErrorType = true, c.refusal()
	default:
		conversation.Failed(m, status.Equal("failed"))
	}
	d.end(c, m.IsError)
}

// result adds the result of a call.
func (d *connection) result(c *call) *msg.Message {
	m := d.add(msg.ToolResult, "result:"+c.ID)
	if d.s.of(m, c); c.Task {
		m.Kind = msg.DelegationResult
		conversation.Causes(m, c.Child)
	}
	m.Role, m.Tool.Arguments = msg.RoleTool, msg.Text{}
	return m
}

// end ends a call, and the run of the sub-agent that it began.
func (d *connection) end(c *call, failed bool) {
	if c.Child != "" {
		m := d.status("ended:"+c.Child, "agent")
		m.Run, m.Agent.Name, m.Signal, m.IsError = c.Child, c.To, msg.RunEnd, failed
	}
	bounded.Take(&d.s.Screens, func(p *screen) bool { return p.Terminal == c.Terminal })
	c.Input, c.Output, c.Response, c.Shown, c.Title, c.Files = "", "", "", "", "", nil
	d.s.Calls.End(c)
}

// name names the sub-agent of whose run a message is.
func (s *session) name(m *msg.Message) {
	if id, ok := strings.CutPrefix(m.Run, "agent:"); ok {
		m.Agent.Name = ""
		if c := s.Calls.Get(id); c != nil {
			m.Agent.Name = c.To
		}
	}
}

// parentOf is the id of the call that began the sub-agent of an update, as the adapters of Claude Code and Qwen Code have it.
func parentOf(u jsonv.Value) jsonv.Value {
	meta := u.Get("_meta")
	return cmp.Or(meta.Path("claudeCode", "parentToolUseId"), meta.Get("parentToolCallId"))
}

// author returns the run of the sub-agent that an update names by the call that began it; empty if it names none.
func (d *connection) author(u jsonv.Value, history bool) string {
	parent := parentOf(u)
	c := d.s.Calls.Get(ident.Peek(parent))
	if c == nil || history {
		return ""
	}
	parent.MarkRead()
	if c.Child == "" {
		c.Child = "agent:" + c.ID
		m := d.status("began:"+c.Child, "agent")
		m.Run, m.Agent.Name, m.Signal = c.Child, c.To, msg.RunStart
		m.ParentRun, m.ParentCall = c.Run, c.ID
		m.Delegation.Link, m.Delegation.Confidence = msg.ByNativeID, 100
	}
	return c.Child
}

// shown keeps the content of a call that has no result yet: its input as people see it, which some agents have nowhere
// else.
func (d *connection) shown(c *call, content jsonv.Value) {
	switch {
	case c.Input != "" && c.Input != "{}":
		c.Shown = ""
		if content.Is(jsonv.Array) {
			content.MarkRead()
		}
	case content.Len() > 0:
		if c.Shown = conversation.ShortJSON(content); c.Shown == "" {
			m := d.status("shown:"+c.ID+":"+msg.HashKey(string(content.Peek())), "content")
			m.Run, m.Tool.CallID, m.Content = c.Run, c.ID, content.JSON()
		}
	}
}

// output adds a part of the output: {type: content, content}, {type: diff, path, newText} or {type: terminal, terminalId}.
func (c *call) output(v jsonv.Value) {
	var text string
	switch typ := v.Get("type"); {
	case typ.Equal("content"):
		part := mcp.Content(v.Get("content"))
		c.Files = append(c.Files, part.Files...)
		t := part.Joined()
		text = t.String()
	case typ.Equal("terminal"):
		c.Terminal = ident.Of(v.Get("terminalId"))
	default:
		text = v.JSON().String()
	}
	if c.Output != "" && text != "" {
		c.Output += "\n"
	}
	c.Output += text
}

// terminal notes the terminal of a call, and the output that an update of the call has of it.
func (s *session) terminal(c *call, u jsonv.Value) {
	for v := range u.Get("content").Elems() {
		if v.Get("type").Equal("terminal") {
			c.Terminal = ident.Of(v.Get("terminalId"))
		}
	}
	if piece := u.Path("_meta", "terminal_output"); piece.Is(jsonv.Object) {
		c.Terminal = ident.Of(piece.Get("terminal_id"))
		p := s.screen(c.Terminal)
		p.show(p.Text + piece.Get("data").Text().String())
	}
}

// screen returns the output of a terminal.
func (s *session) screen(id string) *screen {
	return bounded.Use(&s.Screens, maxScreens, func(p *screen) bool { return p.Terminal == id }, func() *screen { return &screen{Terminal: id} }, nil)
}

// show sets the output so far, of which the end is kept.
func (p *screen) show(text string) {
	p.Text = strings.ToValidUTF8(text[max(0, len(text)-maxText):], "")
}

// output is what a call returned: its content, and what its terminal shows.
func (s *session) output(c *call) string {
	p := bounded.Find(s.Screens, func(p *screen) bool { return p.Terminal == c.Terminal })
	switch {
	case p == nil || p.Text == "":
		return c.Output
	case c.Output == "":
		return p.Text
	}
	return c.Output + "\n" + p.Text
}

// emit adds the call as it is known.
func (d *connection) emit(c *call, complete msg.Completeness) *msg.Message {
	m := d.add(msg.ToolCall, "call:"+c.ID)
	if d.s.of(m, c); c.Task {
		m.Kind, m.Delegation.To = msg.Delegation, c.To
	}
	m.Complete = complete
	if c.History {
		m.Complete = min(complete, msg.Summary)
	}
	m.SetAttr("title", c.Title)
	m.SetAttr("tool_kind", c.Kind)
	m.SetAttr("content", c.Shown)
	m.SetAttr("parent_tool_call", c.Parent)
	c.At.Or(d.At).Set(m)
	return m
}

// of makes a message one of a call.
func (s *session) of(m *msg.Message, c *call) {
	m.Run = c.Run
	s.name(m)
	m.Tool = msg.Tool{CallID: c.ID, Name: cmp.Or(c.Name, c.Kind, "tool"), Arguments: msg.Plain(cmp.Or(c.Input, "{}")), Server: conversation.ToolServer(c.Name)}
	if c.History {
		m.SetAttr("type", msg.History)
		if m.Complete == msg.Complete {
			m.Complete = msg.Summary
		}
	}
}
