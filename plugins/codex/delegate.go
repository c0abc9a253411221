package codex

import (
	"bytes"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// hands notes whether a call hands work to another agent, and returns the task.
// Nobody waits for it: the answer comes later, in a way of its own.
//
//	spawn_agent    {message, agent_type?}              0.143 and before
//	spawn_agent    {message, task_name, agent_type?}   later; the message is encrypted
//	send_input, send_message, followup_task {target | id, message}
func (d *thread) hands(c *call, arguments jsonv.Value) (task string) {
	switch c.Name {
	case "spawn_agent":
		c.Spawn = true
	case "send_input", "send_message", "followup_task", "assign_task":
	default:
		return ""
	}
	c.Delegation = true
	v := arguments
	if arguments.Is(jsonv.String) {
		if d.inner.Parse([]byte(arguments.Str())) != nil {
			return ""
		}
		v = d.inner.Root()
	}
	if c.Spawn {
		c.To = ident(v.First("task_name", "agent_type", "role"))
	} else {
		c.To = ident(v.First("target", "id", "to"))
	}
	task = v.First("message", "prompt").Str()
	if task == "" {
		var texts []string
		for item := range v.Get("items").Elems() {
			if text := item.Get("text"); text.Is(jsonv.String) {
				texts = append(texts, text.Str())
			}
		}
		task = strings.Join(texts, "\n")
	}
	return task
}

// sealed reports whether a text is encrypted: one long word of base64.
func sealed(s string) bool {
	const short = 64
	if len(s) < short {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '+', c == '/', c == '=':
		default:
			return false
		}
	}
	return true
}

// spawned decodes the output of spawn_agent: who was begun, or why nobody was.
//
//	{"agent_id": "<thread>", "nickname": "Ada"} | {"task_name": "/root/review"}
func (d *thread) spawned(r *record, c *call, output jsonv.Value) {
	v := output
	if output.Is(jsonv.String) {
		if d.inner.Parse([]byte(output.Str())) != nil {
			d.inner.Parse([]byte("null"))
		}
		v = d.inner.Root()
	}
	child, path := ident(v.Get("agent_id")), ident(v.Get("task_name"))
	if child == "" && path == "" {
		d.take(c)
		m := d.about(r, c, msg.DelegationResult, "result:"+c.ID)
		m.Role, m.IsError, m.Tool.ErrorType = msg.RoleTool, true, "tool_error"
		m.Delegation = msg.Delegate{To: c.To, ChildRun: c.Child, Async: true}
		if c.Child != "" {
			m.Delegation.Link = msg.ByNativeID
		}
		m.Content = d.content(output, m)
		return
	}
	nickname := ident(v.Get("nickname"))
	m := d.linked(r, c, child, path, "ack:"+c.ID)
	m.SetAttr("type", "spawned")
	m.SetAttr("nickname", nickname)
	m.Content = d.content(output, m)
}

// linked gives the fact that a call began a thread.
func (d *thread) linked(r *record, c *call, child, path, key string) *msg.Message {
	if c.Child == "" {
		c.Child = child
	}
	if c.Path == "" {
		c.Path = path
	}
	m := d.about(r, c, msg.Status, key)
	m.Hidden, m.Delegation.Async = true, true
	if child != "" {
		m.Signal = msg.Link
		m.Delegation.ChildRun, m.Delegation.Link = child, msg.ByNativeID
	}
	m.SetAttr("agent_path", path)
	return m
}

// activity decodes sub_agent_activity and what other versions say in its place:
// which thread a call began.
func (d *thread) activity(r *record, typ string, id, child jsonv.Value, began bool) {
	c := d.find(ident(id))
	if c == nil {
		c = &call{ID: ident(id), Run: d.Run}
	}
	if c.ID == "" || ident(child) == "" || !began {
		m := d.status(r, r.id(), typ)
		m.Tool.CallID = c.ID
		m.SetAttr("kind", ident(r.p.Get("kind")))
		m.SetAttr("agent_thread_id", ident(child))
		return
	}
	m := d.linked(r, c, ident(child), ident(r.p.Get("agent_path")), r.id())
	m.SetAttr("type", typ)
}

// done gives the answer of the agent that has that thread or path, once, to the
// call that began it. It reports whether there is such a call.
func (d *thread) done(r *record, who string, status, answer string, text msg.Text) bool {
	for _, c := range d.Calls {
		if !c.Spawn || who == "" || c.Child != who && c.Path != who {
			continue
		}
		d.take(c)
		m := d.about(r, c, msg.DelegationResult, "result:"+c.ID)
		m.Role = msg.RoleTool
		m.Delegation = msg.Delegate{To: c.To, ChildRun: c.Child, Async: true}
		if c.Child != "" {
			m.Delegation.Link = msg.ByNativeID
		}
		if m.Content = text; text.IsZero() {
			m.Content = msg.Plain(answer)
		}
		switch status {
		case "completed":
		case "interrupted":
			m.IsError, m.Tool.ErrorType = true, "interrupted"
		case "shutdown":
			m.IsError, m.Tool.ErrorType = true, "cancelled"
		case "not_found":
			m.IsError, m.Tool.ErrorType = true, "not_found"
		default:
			m.IsError, m.Tool.ErrorType = true, "tool_error"
		}
		return true
	}
	return false
}

// taken notes that an outcome went into a message.
func taken(status jsonv.Value) {
	for _, v := range [...]jsonv.Value{status, status.Get("completed"), status.Get("errored")} {
		if v.Is(jsonv.String) {
			v.MarkRead()
		}
	}
}

// outcomeOf reads the status of an agent: "running", "shutdown", {"completed":
// "answer"}, {"errored": "why"}. final is false while it may go on.
func outcomeOf(v jsonv.Value) (status, text string, final bool) {
	if v.Is(jsonv.String) {
		status = v.PeekStr()
		v.In("shutdown", "not_found", "running", "pending_init")
		return status, "", status == "shutdown" || status == "not_found"
	}
	for name, value := range v.Members() {
		if name.Is("completed") || name.Is("errored") {
			return name.String(), value.PeekStr(), true
		}
	}
	return "", "", false
}

// notified decodes the notice that a sub-agent's status has changed:
//
//	<subagent_notification>
//	{"agent_id": "<thread>", "status": {"completed": "…"}}
//	</subagent_notification>
func (d *thread) notified(r *record, text jsonv.Value, key string) {
	body := strings.TrimSpace(tagged(text.Str(), "subagent_notification"))
	if d.inner.Parse([]byte(body)) == nil {
		v := d.inner.Root()
		if status, answer, final := outcomeOf(v.Get("status")); final {
			d.done(r, ident(v.First("agent_id", "agent_path")), status, answer, msg.Text{})
		}
	}
	d.aside(r, key, "<subagent_notification>").Content = text.Text()
}

// waited takes the answers out of the output of wait_agent:
//
//	{"status": {"<thread>": {"completed": "…"}}, "timed_out": false}
func (d *thread) waited(r *record, output jsonv.Value) {
	v := output
	if output.Is(jsonv.String) {
		if d.inner.Parse([]byte(output.Str())) != nil {
			return
		}
		v = d.inner.Root()
	}
	d.statuses(r, v.Get("status"))
}

// statuses takes the answers out of {"<thread>": status}.
func (d *thread) statuses(r *record, v jsonv.Value) {
	for who, status := range v.Members() {
		if s, answer, final := outcomeOf(status); final {
			if d.done(r, who.String(), s, answer, msg.Text{}) {
				taken(status)
			}
		}
	}
}

// agentMessage decodes a letter of another agent:
//
//	{author: "/root/review", recipient: "/root", content: [{type: input_text, text}, {type: encrypted_content, …}]}
//
// Its text begins with an envelope, and what follows may be encrypted:
//
//	Message Type: NEW_TASK | MESSAGE | FINAL_ANSWER
//	Task name: /root
//	Sender: /root/review
//	Payload:
//	…
func (d *thread) agentMessage(r *record) {
	content := r.p.Get("content")
	if d.told(fingerprint('l', content), byItem) {
		d.status(r, "item:"+r.id(), "agent_message")
		return
	}
	var text jsonv.Value
	for p := range parts(content) {
		if text = p.text; text.Exists() {
			break
		}
	}
	encrypted := false
	for b := range content.Elems() {
		encrypted = encrypted || b.Get("type").Equal("encrypted_content")
	}
	d.letter(r, r.id(), text, encrypted)
}

// communication decodes inter_agent_communication, in which some versions keep the
// same letters: {author, recipient, content, encrypted_content?, trigger_turn}.
func (d *thread) communication(r *record) {
	text := r.p.Get("content")
	if d.told(fingerprint('l', text), byEvent) {
		d.status(r, r.id(), "inter_agent_communication")
		return
	}
	d.letter(r, r.id(), text, r.p.Get("encrypted_content").Exists())
}

func (d *thread) letter(r *record, key string, text jsonv.Value, encrypted bool) {
	author := ident(r.p.Get("author"))
	kind, payload := envelope(body(text))
	if kind == "FINAL_ANSWER" && d.done(r, author, "completed", "", payload) {
		d.close()
		return
	}
	d.prompt(r)
	d.wake(r)
	m := d.give(r, msg.User, key)
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Name: author, Kind: msg.KindAgent}
	m.Content = payload
	m.SetAttr("message_type", kind)
	m.SetAttr("recipient", ident(r.p.Get("recipient")))
	if encrypted {
		m.SetAttr("encrypted", "true")
	}
}

// envelope takes a letter's text, as it stands in the line, out of its envelope.
func envelope(b []byte) (kind string, payload msg.Text) {
	rest, ok := bytes.CutPrefix(b, []byte("Message Type: "))
	if !ok {
		return "", msg.Quoted(b)
	}
	word, rest, _ := bytes.Cut(rest, []byte(`\n`))
	if len(word) > 32 {
		return "", msg.Quoted(b)
	}
	_, rest, ok = bytes.Cut(rest, []byte("Payload:"))
	if !ok {
		return string(word), msg.Text{}
	}
	rest = bytes.TrimPrefix(rest, []byte(`\n`))
	return string(word), msg.Quoted(bytes.TrimPrefix(rest, []byte(" ")))
}
