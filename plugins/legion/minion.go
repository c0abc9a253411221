package legion

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// The names under which the writer and the user speak, and the writer's reserved ids.
const (
	systemName = "system"
	userName   = "user"
	userID     = "00000000-0000-0000-0000-000000000000"
	systemID   = "ffffffff-ffff-ffff-ffff-ffffffffffff"
)

// delegations are the tools that hand work to another agent, with the arguments that name the
// agent and the task: to a sub-agent, whose answer is the call's result, or to another minion,
// whose answer, if any, arrives as a message of its own (async). A message to a minion begins a
// turn there; one to a channel begins one at each of its members, or at none, and one to the
// user is no work for an agent.
var delegations = conversation.Rules(map[string]struct {
	to, task [2]string // the second name, of those that have two, where the first has no text
	async    bool
}{
	"Task Agent":                        {to: [2]string{"subagent_type"}, task: [2]string{"prompt"}},
	sendComm:                            {[2]string{"to_minion_name"}, [2]string{"content", "summary"}, true},
	"mcp__legion__send_comm_to_channel": {[2]string{"channel_name", "channel"}, [2]string{"content", "summary"}, true},
	"mcp__legion__spawn_minion":         {[2]string{"name"}, [2]string{"initialization_context", "content"}, true},
})

const sendComm = "mcp__legion__send_comm"

// system is the name of the system in which minions write to each other.
const system = "legion"

// delegate makes the message of a call a delegation, if it is one.
func delegate(mem *record.Memory, m *msg.Message, dir string, input jsonv.Value) bool {
	d, ok := delegations[m.Tool.Name]
	to, task := mem.Name(input.First(d.to[:]...)), jsonv.FirstText(input.Get(d.task[0]), input.Get(d.task[1]))
	switch comm := m.Tool.Name == sendComm; {
	case !ok, comm && to == userName:
		s, ok := spawn.Call(m.Tool.Name, dir, input)
		if ok {
			s.On(m)
		}
		return ok
	case comm:
		m.Delegation.CorrelationPrompt = spawn.Sent(system, string(withoutFooter(mem.Plain(task))))
	}
	m.Kind, m.Delegation.To, m.Delegation.Task = msg.Delegation, to, task
	m.Delegation.Async = d.async || input.Get("run_in_background").Bool()
	return true
}

// footers are the texts that the writer adds below a message to a minion.
var footers = [...]string{
	"\n\n---\n**Please respond using the `send_comm", "\n\n---\nAlways send messages to ", "\n\n---\nAttached files (use Read tool",
}

// withoutFooter returns a sent message without the text that the writer put below it.
func withoutFooter(text []byte) []byte {
	for _, f := range footers {
		text, _, _ = bytes.Cut(text, []byte(f))
	}
	return text
}

// sentText returns a received message without the headline, which has a summary of it, and
// the footer.
func sentText(text []byte, headed bool) []byte {
	text = withoutFooter(text)
	if headed {
		_, text, _ = bytes.Cut(text, []byte(":**"))
		text = bytes.TrimSpace(text)
		if _, content, ok := bytes.Cut(text, []byte("\n\n")); ok {
			text = content
		}
	}
	return text
}

// commHead is the headline of a message from minion to minion.
type commHead struct{ kind, from, channel string }

// headline reads "**📋 Task from Minion #ada in channel #docs:** summary" and
// "**🚨 System Error:**".
func headline(text []byte) (h commHead, ok bool) {
	line, begins := bytes.CutPrefix(text, []byte("**"))
	line, _, ends := bytes.Cut(line, []byte(":**"))
	if !begins || !ends || bytes.IndexByte(line, '\n') >= 0 {
		return h, false
	}
	title, from, ok := strings.Cut(string(line), " from Minion #")
	if !ok {
		return commHead{kind: "system", from: systemName}, strings.HasSuffix(title, "System Error")
	}
	h.kind = strings.ToLower(title[strings.LastIndexByte(title, ' ')+1:])
	h.from, h.channel, _ = strings.Cut(from, " in channel #")
	return h, h.from != ""
}

// sender records which minion wrote a message to another, and the name under which its call
// is found.
func sender(mem *record.Memory, m *msg.Message, c jsonv.Value) {
	h, headed := headline(mem.Plain(m.Content))
	if from := c.First("from_display_name", "from_name"); headed {
		from.Equal(h.from)
	} else {
		h = commHead{from: mem.Scalar(from)}
	}
	h.kind = cmp.Or(mem.Name(c.Get("comm_type")), h.kind)
	switch h.from {
	case userName, "":
	case systemName:
		m.Agent = msg.Agent{Name: systemName}
	default:
		m.Agent = msg.Agent{ID: mem.Scalar(c.Get("from_minion_id")), Name: h.from, Kind: msg.KindAgent}
		if h.channel == "" {
			m.Delegation.CorrelationPrompt = spawn.Sent(system, string(sentText(mem.Plain(m.Content), headed)))
		}
	}
	m.SetAttr("comm_type", h.kind)
	m.SetAttr("from", h.from)
	m.SetAttr("channel", h.channel)
}

// comm decodes a record of comms.jsonl, or of the WebSocket: a message of one minion to another, to a
// channel or to the user. The writer keeps up to three copies (the sender's, the
// receiver's, the channel's); they have one id and belong to the legion, so they
// are one message. The same text is in the sender's session as a delegation
// and in the receiver's as a user message, and no id joins them.
func (d *stream) comm(c, legion jsonv.Value) {
	get := func(keys ...string) string { return d.Scalar(c.First(keys...)) }
	d.s = &session{ID: cmp.Or(d.Scalar(legion), d.origin.legion)}
	d.At = conversation.TimeOf(c.Get("timestamp")).Or(d.At)
	m := d.Add(msg.User, "comm:"+get("comm_id"))
	m.Role, m.Content = msg.RoleUser, jsonv.FirstText(c.Get("content"), c.Get("summary"))
	m.Hidden = c.Get("visible_to_user").Is(jsonv.False)

	from := get("from_minion_id")
	switch {
	case from == systemID || from == "LEGION_SYSTEM":
		m.Kind, m.Role = msg.System, msg.RoleSystem
		m.Agent = msg.Agent{ID: from, Name: systemName}
	case c.Get("from_user").Bool() || from == userID:
		m.Agent = msg.Agent{ID: from, Name: userName, Kind: msg.KindHuman}
	default:
		m.Agent = msg.Agent{ID: from, Name: get("from_minion_name"), Kind: msg.KindAgent}
	}
	if reply := get("in_reply_to"); reply != "" {
		m.ParentKey = "comm:" + reply
	}
	to := get("to_minion_name", "to_channel_name", "to_minion_id", "to_channel_id")
	if to == "" && c.Get("to_user").Bool() {
		to = userName
	}
	m.SetAttr("type", "comm")
	kind := get("comm_type")
	if kind == strings.ToUpper(kind) { // in capitals
		kind = strings.ToLower(kind)
	}
	m.SetAttr("comm_type", kind)
	m.SetAttr("from", m.Agent.Name)
	m.SetAttr("to", to)
	conversation.AttrsAs(m, c, d.Scalar, "to_minion_id", "to_channel_id", "summary", "related_task_id")
	if p := get("interrupt_priority"); p != "none" && p != "routine" {
		m.SetAttr("interrupt_priority", p)
	}
}

// metadata decodes state.json, which the writer keeps beside messages.jsonl:
//
//	{"session_id":"…","name":"heron","created_at":"2026-03-02T09:00:00+00:00","is_minion":true,…}
//
// It is rewritten with every change of the session's state and holds tokens and
// prompts; only who the minion is and since when is taken from it. The message belongs
// to no run: it names the minion of the session.
func (d *stream) metadata() {
	root := d.Root
	root.MarkRead()
	id, name := root.Get("session_id"), d.Scalar(root.Get("name"))
	d.s = &session{ID: cmp.Or(string(id.Chars()), d.origin.session)}
	switch {
	case !id.Is(jsonv.String):
		d.Unknown("companion", root)
	case name != "" && !root.Get("is_minion").Is(jsonv.False): // else the name is a title
		d.At = conversation.TimeOf(root.Get("created_at"))
		m := record.Hide(d.Add(msg.Status, "minion:"+d.s.ID), "minion")
		m.Agent.ID, m.Agent.Name = d.s.ID, name
		m.SetAttr("parent_minion_id", d.Scalar(root.Get("parent_overseer_id")))
	}
}
