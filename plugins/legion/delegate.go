package legion

import (
	"bytes"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// delegations are the tools that hand work to another agent, with the arguments that name the
// agent and the task: to a sub-agent, whose answer is the call's result, or to another minion,
// whose answer, if any, arrives as a message of its own (async). A message to a minion begins a
// turn there; one to a channel begins one at each of its members, or at none, and one to the
// user is no work for an agent.
var delegations = map[string]struct {
	to, task []string
	async    bool
}{
	"Task":                              {[]string{"subagent_type"}, []string{"prompt"}, false},
	"Agent":                             {[]string{"subagent_type"}, []string{"prompt"}, false},
	sendComm:                            {[]string{"to_minion_name"}, []string{"content", "summary"}, true},
	"mcp__legion__send_comm_to_channel": {[]string{"channel_name", "channel"}, []string{"content", "summary"}, true},
	"mcp__legion__spawn_minion":         {[]string{"name"}, []string{"initialization_context", "content"}, true},
}

const sendComm = "mcp__legion__send_comm"

// system is the name of the system in which minions write to each other.
const system = "legion"

// delegate makes the message of a call a delegation, if it is one.
func (sc *scratch) delegate(m *msg.Message, dir string, input jsonv.Value) bool {
	d, ok := delegations[m.Tool.Name]
	to, task := sc.name(input.First(d.to...)), taskOf(input, d.task...)
	switch comm := m.Tool.Name == sendComm; {
	case !ok, comm && to == userName:
		s, ok := spawn.Call(m.Tool.Name, dir, input)
		if ok {
			s.On(m)
		}
		return ok
	case comm:
		m.Delegation.CorrelationPrompt = spawn.Sent(system, string(withoutFooter(sc.plain(task))))
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
	if !headed {
		return text
	}
	if _, rest, ok := bytes.Cut(text, []byte(":**")); ok {
		text = bytes.TrimSpace(rest)
	}
	if _, content, ok := bytes.Cut(text, []byte("\n\n")); ok {
		text = content
	}
	return text
}

// taskOf returns the first of the texts that is there.
func taskOf(input jsonv.Value, keys ...string) (t msg.Text) {
	for _, k := range keys {
		if t = input.Get(k).Text(); !t.IsZero() {
			break
		}
	}
	return t
}
