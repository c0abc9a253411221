package codex

import (
	"bytes"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// delegate reads the arguments of a call that hands work to another agent. The call returns
// at once: the answer is in a record of its own.
//
//	spawn_agent    {message | items: [{text}], agent_type?}   0.143 and before
//	spawn_agent    {message, task_name, agent_type?}          later; the message is encrypted
//	send_input, send_message, followup_task {target | id, message}
func (d *calls) delegate(c *codex.Call, arguments jsonv.Value, m *msg.Message) {
	names := []string{"target", "id", "to"}
	switch c.Name {
	case "spawn_agent":
		c.Spawn, names = true, []string{"task_name", "agent_type", "role"}
	case "send_input", "send_message", "followup_task", "assign_task":
	default:
		return
	}
	v := d.parse(arguments)
	c.Delegation, c.To = true, ident.Of(v.First(names...))
	if task := content(v.First("message", "prompt", "items"), m).String(); encrypted(task) {
		m.SetAttr("task_encrypted", "true")
	} else {
		m.Delegation.Task = msg.Plain(task)
	}
}

// encrypted reports whether a text is encrypted: one long word of base64.
func encrypted(s string) bool {
	const short = 64
	return len(s) >= short && strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+/=") == ""
}

// spawned decodes the output of spawn_agent: the new agent, or an error.
//
//	{"agent_id": "<thread>", "nickname": "Ada"} | {"task_name": "/root/review"}
func (d *calls) spawned(c *codex.Call, output jsonv.Value) {
	v := d.parse(output)
	child, path, nickname := ident.Of(v.Get("agent_id")), ident.Of(v.Get("task_name")), ident.Of(v.Get("nickname"))
	var m *msg.Message
	if child == "" && path == "" {
		d.end(c)
		m = d.Answered(c)
		codex.Fail(m, "tool_error")
	} else {
		m = d.Link(c, child, path, "ack:"+c.ID, "spawned")
		m.SetAttr("nickname", nickname)
	}
	m.Content = content(output, m)
}

// activity decodes sub_agent_activity and the records of other versions that link a call to
// the thread that it began.
func (d *calls) activity(r *record, p jsonv.Value, typ string, id, child jsonv.Value, began bool) {
	c := d.OpenCall(ident.Of(id))
	thread := ident.Of(child)
	if c.ID == "" || thread == "" || !began {
		m := d.Status(r.id(), typ)
		m.Tool.CallID = c.ID
		codex.SetIDs(m, p, "kind")
		m.SetAttr("agent_thread_id", thread)
		return
	}
	d.Link(c, thread, ident.Of(p.Get("agent_path")), r.id(), typ)
}

// collaborated decodes the item of a call to an agent: {tool, receiver_thread_ids, agents_states}.
func (d *calls) collaborated(r *record, item jsonv.Value) {
	if item.Get("sender_thread_id").In(d.ID); d.Calls.GetOpen(ident.Of(item.Get("id"))) != nil {
		item.Get("prompt").MarkRead() // the call has it
	}
	var child jsonv.Value
	for v := range item.First("receiver_thread_ids", "receiverThreadIds").Elems() {
		child = v
		break
	}
	d.activity(r, item, "item_completed/CollabAgentToolCall", item.Get("id"), child, item.Get("tool").In("spawnAgent", "spawn_agent", "SpawnAgent"))
	for who, state := range item.First("agents_states", "agentsStates").Members() {
		if status := codex.Snake(state.Get("status").PeekStr()); status != "running" && status != "pending_init" {
			if c := d.Answer(who.String(), status, state.Get("message").Text()); c != nil {
				d.end(c)
			}
		}
	}
}

// answer adds the answer of an agent, if its state is final and a call began it. The state
// is a string or an object of one member: "running", "shutdown", {"completed": "answer"},
// {"errored": "why"}.
func (d *calls) answer(who string, v jsonv.Value) bool {
	v.In("running", "pending_init") // which end nothing
	state, text := jsonv.Word(v, "shutdown", "not_found"), jsonv.Value{}
	for k, value := range v.Members() {
		if k.Is("completed") || k.Is("errored") {
			state, text = k.String(), value
			break
		}
	}
	if state == "" {
		return false
	}
	c := d.Answer(who, state, msg.Plain(text.PeekStr()))
	if c == nil {
		return false
	}
	d.end(c)
	if text.Is(jsonv.String) {
		text.MarkRead()
	}
	return true
}

// answerOf is answer for an agent whose thread is a value, which then counts as read.
func (d *calls) answerOf(who, state jsonv.Value) {
	if d.answer(ident.Peek(who), state) {
		who.MarkRead()
	}
}

// answers adds the answers in {"<thread>": state}.
func (d *calls) answers(states jsonv.Value) {
	for who, state := range states.Members() {
		d.answer(who.String(), state)
	}
}

// notified decodes the notice that the state of a sub-agent has changed:
//
//	<subagent_notification>
//	{"agent_id": "<thread>", "status": {"completed": "…"}}
//	</subagent_notification>
func (d *calls) notified(text jsonv.Value) {
	_, notice, _ := strings.Cut(text.Str(), "<subagent_notification>")
	if end := strings.LastIndex(notice, "</subagent_notification>"); end >= 0 && d.inner.Parse([]byte(notice[:end])) == nil {
		v := d.inner.Root()
		d.answer(ident.Of(v.First("agent_id", "agent_path")), v.Get("status"))
	}
}

// agentMessage decodes a message of another agent, the answer to a call or a prompt:
//
//	agent_message              {author: "/root/review", recipient: "/root", content: [{type: input_text, text}, {type: encrypted_content, …}]}
//	inter_agent_communication  {author, recipient, content: "…", encrypted_content?, trigger_turn}   in some versions
//
// Its text begins with an envelope, and the payload may be encrypted:
//
//	Message Type: NEW_TASK | MESSAGE | FINAL_ANSWER
//	Task name: /root
//	Sender: /root/review
//	Payload:
//	…
func (d *thread) agentMessage(r *record, typ string) {
	said := r.p.Get("content")
	if d.again(r, fingerprint('l', said), typ) {
		return
	}
	var text []byte
	for p := range parts(said) {
		if text = p.text.Escaped(); text != nil {
			break
		}
	}
	sealed := r.p.Get("encrypted_content").Exists()
	for b := range said.Elems() {
		sealed = sealed || b.Get("type").Equal("encrypted_content")
	}
	author := ident.Of(r.p.Get("author"))
	kind, payload := envelope(text)
	if kind == "FINAL_ANSWER" {
		if c := d.Answer(author, "completed", payload); c != nil {
			d.calls.end(c)
			d.close()
			return
		}
	}
	d.prompt(r)
	d.wake(r)
	m := d.Add(msg.User, r.id())
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Name: author, Kind: msg.KindAgent}
	m.Content = payload
	m.SetAttr("message_type", kind)
	codex.SetIDs(m, r.p, "recipient")
	if sealed {
		m.SetAttr("encrypted", "true")
	}
}

// envelope takes the escaped text of a message out of its envelope.
func envelope(b []byte) (typ string, payload msg.Text) {
	rest, ok := bytes.CutPrefix(b, []byte("Message Type: "))
	word, rest, _ := bytes.Cut(rest, []byte(`\n`))
	if !ok || len(word) > 32 {
		return "", msg.Quoted(b)
	}
	if _, rest, ok = bytes.Cut(rest, []byte("Payload:")); !ok {
		return string(word), msg.Text{}
	}
	rest = bytes.TrimPrefix(rest, []byte(`\n`))
	return string(word), msg.Quoted(bytes.TrimPrefix(rest, []byte(" ")))
}
