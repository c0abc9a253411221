package gen

import "time"

// call is a tool call while it is generated.
type call struct {
	*session
	id, tool string
	delegate bool // it delegates
	sub      bool // to a sub-agent, whose run it causes
	async    bool
	parent   *call // the sub-agent that made it
	args     func(l *line)

	born    int64
	waits   bool // for a permission
	granted bool
	text    []byte // the result
	failed  bool
	hasRun  bool   // its sub-agent has a run
	tokens  tokens // of its sub-agent
}

func (c *call) kind() string {
	if c.delegate {
		return "delegation"
	}
	return "tool"
}

// call generates a call.
func (s *session) call() *call {
	c := &call{session: s, id: s.name("toolu_"), failed: s.chance(0.06)}
	arg := func(pairs ...any) func(l *line) {
		return func(l *line) {
			for i := 0; i < len(pairs); i += 2 {
				l.str(pairs[i].(string), pairs[i+1].([]byte))
			}
		}
	}
	path := []byte([]string{"/srv/harbour/log.txt", "/srv/orchard/größe.md", "C:\\tide\\table.csv"}[s.rng.IntN(3)])
	switch n := s.rng.IntN(100); {
	case n < 30:
		c.tool, c.args = "Bash", arg("command", s.text(60, true), "description", []byte("Looks after the lamps"))
	case n < 55:
		c.tool, c.args = "Read", arg("file_path", path)
	case n < 65:
		c.tool, c.args = "Grep", arg("pattern", []byte("lamp\\s+\"(.*)\""), "path", path)
	case n < 75:
		c.tool, c.args = "Edit", arg("file_path", path, "old_string", s.text(200, true), "new_string", s.text(220, true))
	case n < 83:
		c.tool, c.args = "Write", arg("file_path", path, "content", s.text(900, true))
	case n < 88:
		c.tool, c.args = "mcp__garden__water", func(l *line) { l.raw("beds", "[1, 2, 3]").raw("litres", "4.5") }
	case n < 94:
		c.tool, c.delegate = "mcp__legion__send_comm", true
		to := []byte(minions[s.rng.IntN(len(minions))])
		c.args = arg("to_minion_name", to, "summary", []byte("in short"), "content", s.text(300, false), "comm_type", []byte("question"))
	case n < 95:
		c.tool, c.delegate = "mcp__legion__send_comm_to_channel", true
		c.args = arg("channel_name", []byte("pond"), "summary", []byte("in short"), "content", s.text(200, false))
	case n < 96:
		c.tool, c.delegate = "mcp__legion__spawn_minion", true
		c.args = arg("name", []byte("bittern"), "initialization_context", s.text(250, false))
	default:
		c.tool, c.delegate, c.sub = "Task", true, true
		task := arg("subagent_type", []byte("botanist"), "description", []byte("Counts species"), "prompt", s.text(400, false))
		c.args = task
		if s.stored() && s.chance(0.4) {
			c.tool = "Agent"
			if c.async = s.chance(0.5); c.async {
				c.args = func(l *line) { task(l); l.raw("run_in_background", "true") }
			}
		}
	}
	return c
}

// fields writes id, name and input.
func (c *call) fields(l *line, id string) {
	l.str(id, []byte(c.id)).str("name", []byte(c.tool)).key("input").open('{')
	c.args(l)
	l.close('}')
}

// countCall counts the call when the first line has it.
func (c *call) countCall() {
	c.born = c.now
	kind := "tool_call"
	if c.delegate {
		kind = "delegation"
		c.account.Delegations++
	}
	c.account.ToolCalls++
	c.account.Message(kind, nil)
}

// update starts a line of generation 3.
func (c *call) update(status string) *line {
	l := c.store("ToolCallUpdate")
	l.str("session_id", []byte(c.session.id))
	c.fields(l, "tool_use_id")
	l.str("status", []byte(status)).time("created_at", c.born).raw("requires_permission", boolString(c.waits))
	if c.parent != nil {
		l.str("parent_tool_use_id", []byte(c.parent.id))
	}
	return l
}

// writeStates writes the states of a call before it runs.
func (c *call) writeStates() {
	if !c.stored() || !c.lifecycle {
		return
	}
	c.update("pending").close('}')
	c.end()
	if !c.delegate && c.chance(0.08) {
		c.waits, c.granted = true, c.chance(0.8)
		l := c.update("awaiting_permission")
		l.key("permission").open('{').str("message", []byte("Allow "+c.tool+"?")).raw("suggestions", "[]").str("risk_level", []byte("medium")).close('}').close('}')
		c.end()
		c.account.Message("status", nil)
	}
}

// endWait ends the wait for a permission, if there is one.
func (c *call) endWait() {
	if !c.waits {
		return
	}
	c.waits = false
	c.advance(5 * time.Second)
	if c.granted {
		l := c.update("running")
		l.raw("permission_granted", "true").time("started_at", c.now).close('}')
		c.end()
	} else {
		l := c.update("denied")
		l.raw("permission_granted", "false").time("completed_at", c.now).close('}')
		c.end()
		c.failed = true
	}
	c.account.Message("status", nil)
}

// answer writes the results of the calls, in one line of the user's.
func (t *turn) answer(calls ...*call) {
	for _, c := range calls {
		c.endWait()
		c.text = t.text(900, !c.delegate)
		if t.chance(0.02) {
			c.text = nil // a tool may return nothing
		}
	}
	t.advance(400 * time.Millisecond)
	t.answerLine(calls)
	for _, c := range calls {
		c.endRun()
		t.account.Message(c.kind()+"_result", c.text)
		if c.failed {
			t.account.Errors++
		}
		if t.stored() && t.lifecycle {
			c.repeatEnd()
		}
	}
}

func (t *turn) answerLine(calls []*call) {
	if t.stored() {
		l := t.store("UserMessage").key("content").open('[')
		for _, c := range calls {
			c.resultFields(t.tag(l.open('{'), "tool_result"))
			l.close('}')
		}
		l.close(']')
		if p := calls[0].parent; p != nil {
			l.str("parent_tool_use_id", []byte(p.id))
		} else {
			l.raw("parent_tool_use_id", "null")
		}
		l.raw("tool_use_result", "null").close('}')
		t.end()
		return
	}
	l := t.begin("user", t.chance(0.1))
	orphan := t.chance(0.004)
	n := len(calls)
	if orphan {
		n++
	}
	l.str("content", []byte("Tool results: "+string(rune('0'+n))+" results")).key("metadata").open('{')
	l.raw("tool_uses", "[]").key("tool_results").open('[')
	for _, c := range calls {
		c.resultFields(l.open('{'))
		l.time("timestamp", t.now).close('}')
	}
	if orphan {
		lost := &call{session: t.session, id: t.name("toolu_"), text: t.text(100, true)}
		lost.resultFields(l.open('{'))
		l.time("timestamp", t.now).close('}')
		t.account.Message("tool_result", lost.text)
	}
	l.close(']').raw("has_tool_uses", "false").raw("has_tool_results", "true").close('}')
	t.end()
}

// resultFields writes a result; is_error is false or null if the call did not fail.
func (c *call) resultFields(l *line) {
	l.str("tool_use_id", []byte(c.id))
	if c.stored() && c.chance(0.2) && c.text != nil {
		l.key("content").open('[').open('{').str("type", []byte("text")).str("text", c.text).close('}').close(']')
	} else {
		l.str("content", c.text)
	}
	switch {
	case c.failed:
		l.raw("is_error", "true")
	case c.chance(0.5):
		l.raw("is_error", "null")
	default:
		l.raw("is_error", "false")
	}
}

// repeatEnd repeats the end of the call as an update.
func (c *call) repeatEnd() {
	status := "completed"
	key := "result"
	if c.failed {
		status, key = "failed", "error"
	}
	l := c.update(status)
	l.time("completed_at", c.now).str(key, c.text).close('}')
	c.end()
}

// endRun ends the run of the call's sub-agent.
func (c *call) endRun() {
	c.count(c.tokens)
	c.tokens = tokens{}
}

// startBackground answers a call whose sub-agent works in the background.
func (c *call) startBackground() {
	l := c.store("TaskStartedMessage")
	l.str("subtype", []byte("task_started")).str("task_id", []byte("a"+c.id[6:16])).str("description", []byte("Counts species")).str("tool_use_id", []byte(c.id)).close('}')
	c.end()
	c.account.Message("status", []byte("Counts species"))

	text := []byte("Async agent launched successfully.\nagentId: a" + c.id[6:16])
	c.text = text
	failed := c.failed
	c.failed = false
	l = c.store("UserMessage").key("content").open('[')
	c.resultFields(c.tag(l.open('{'), "tool_result"))
	l.close('}').close(']').raw("parent_tool_use_id", "null").key("tool_use_result").open('{').raw("isAsync", "true").close('}').close('}')
	c.end()
	c.account.Message("status", text)
	if c.lifecycle {
		c.repeatEnd()
	}
	c.failed = failed
}

// notify writes the answer of a sub-agent in the background.
func (c *call) notify() {
	c.advance(time.Minute)
	text := c.session.text(400, false)
	status := "completed"
	if c.failed {
		status = "failed"
		c.account.Errors++
	}
	l := c.store("TaskNotificationMessage")
	l.str("subtype", []byte("task_notification")).str("task_id", []byte("a"+c.id[6:16])).str("status", []byte(status))
	l.str("summary", text).str("tool_use_id", []byte(c.id)).close('}')
	c.end()
	c.endRun()
	c.account.Message("delegation_result", text)
}

// runSubAgent writes responses of the call's sub-agent.
func (c *call) runSubAgent(steps int) {
	if !c.hasRun {
		c.hasRun = true
		c.account.Runs++
	}
	t := &turn{session: c.session}
	for range steps {
		c.advance(2 * time.Second)
		r := response{session: c.session, parent: c, text: c.session.text(250, false)}
		if c.chance(0.6) {
			sub := c.session.call()
			for sub.async || sub.sub {
				sub = c.session.call()
			}
			sub.parent = c
			r.calls = append(r.calls, sub)
		}
		r.write()
		c.tokens.add(r.reported)
		t.run(r.calls)
	}
}
