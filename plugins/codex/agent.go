package codex

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// delegate reads the arguments of a call that hands work to another agent. The call returns
// at once: the answer is in a record of its own.
//
//	spawn_agent    {message | items: [{text}], agent_type?}   0.143 and before
//	spawn_agent    {message, task_name, agent_type?}          later; the message is encrypted
//	send_input, send_message, followup_task {target | id, message}
//	spawn_agents_on_csv {csv_path, instruction}   until 2026; an agent for each row, and the call waits for all
func (d *calls) delegate(c *codex.Call, arguments jsonv.Value, m *msg.Message) {
	switch c.Name {
	case "spawn_agent", "send_input", "send_message", "followup_task", "assign_task":
		c.Delegation, c.Spawn = true, c.Name == "spawn_agent"
	case "spawn_agents_on_csv":
		c.Delegation, c.Waits, c.To = true, true, agentJob
		m.Delegation.Task = d.parse(arguments).Get("instruction").Text()
		return
	default:
		return
	}
	v := d.parse(arguments)
	c.To = ident.Of(v.First("target", "id", "to", "task_name", "agent_type", "role"))
	const base64, short = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+/=", 64
	if task := content(v.First("message", "prompt", "items"), m).String(); len(task) >= short && strings.TrimLeft(task, base64) == "" {
		m.SetAttr("task_encrypted", "true") // it is one long word
	} else {
		m.Delegation.Task = msg.Plain(task)
	}
}

// agentJob is the name of the agents that work for a table, one for each row. The source of their threads is agent_job:<job>.
const agentJob = "agent_job"

// job reads the end of a table, whose agents name the job: {job_id, status, total_items, completed_items, failed_items, job_error}.
func (d *calls) job(m *msg.Message, output jsonv.Value) {
	v := d.parse(output)
	if job := ident.Of(v.Get("job_id")); job != "" {
		m.Delegation.CorrelationID = codex.JobID(job)
		m.SetAttr("job_id", job)
	}
	if !v.Get("job_id").Exists() || v.Get("status").In("failed", "cancelled") {
		codex.Fail(m, "tool_error")
	}
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "total_items", "completed_items", "failed_items")
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

// agents decodes an event about agents. It may link a call to the thread that the call began, and have the states of agents:
//
//	sub_agent_activity, item SubAgentActivity  {event_id | id, agent_thread_id, agent_path, kind: started | …}
//	collab_agent_spawn_end                     {call_id, new_thread_id}
//	collab_waiting_end, collab_close_end       {call_id, statuses | agent_statuses | receiver_thread_id, status}
//	item CollabAgentToolCall                   {id, tool, prompt, receiver_thread_ids, agents_states}
func (d *calls) agents(r *record) {
	p, c := r.p, d.OpenCall(ident.Of(r.p.First("event_id", "call_id", "id")))
	child := ident.First(p.Get("agent_thread_id"), p.Get("new_thread_id"))
	child = cmp.Or(child, codex.FirstID(p.First("receiver_thread_ids", "receiverThreadIds")))
	began := r.name == "collab_agent_spawn_end" || p.Get("kind").Equal("started") || p.Get("tool").In("spawnAgent", "spawn_agent", "SpawnAgent")
	if r.family == byDone && c.Name != "" {
		p.Skip("prompt") // the call has it
	}
	if began && c.ID != "" && child != "" {
		d.Link(c, child, ident.Of(p.Get("agent_path")), r.id(), r.name)
	} else {
		m := d.Status(r.id(), r.name)
		m.Tool.CallID = c.ID
		codex.SetIDs(m, p, "kind")
		m.SetAttr("agent_thread_id", child)
	}
	for _, states := range [...]jsonv.Value{p.Get("statuses"), p.Get("agent_statuses"), p.First("agents_states", "agentsStates")} {
		d.end(d.Answers(states)...)
	}
	d.end(d.AnswerOf(p.Get("receiver_thread_id"), p.Get("status")))
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
		d.end(d.AnswerOf(v.First("agent_id", "agent_path"), v.Get("status")))
	}
}

// letter decodes a message of another agent, the answer to a call or a prompt:
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
func (d *calls) letter(r *record) {
	said := r.p.Get("content")
	if d.again(r, sum(msg.Delegation, said), r.name) != nil {
		return
	}
	sealed := r.p.Get("encrypted_content").Exists()
	for b := range said.Elems() {
		sealed = sealed || b.Get("type").Equal("encrypted_content")
	}
	author := ident.Of(r.p.Get("author"))
	kind, payload := envelope(first(said).Escaped())
	if kind == "FINAL_ANSWER" {
		if c := d.Answer(author, "completed", payload); c != nil {
			d.end(c)
			d.close()
			return
		}
	}
	d.prompt(r)
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
