package legion

import (
	"bytes"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// delegation returns the delegation in a call, if it is one: to a sub-agent, whose
// answer is the call's result, or to another minion, whose answer, if any, arrives
// as a message of its own (async). A message to a minion begins a turn there; one to a
// channel begins one at each of its members, or at none, and one to the user is no work
// for an agent.
func (sc *scratch) delegation(tool string, input jsonv.Value) (d msg.Delegate, ok bool) {
	switch tool {
	case "Task", "Agent":
		return msg.Delegate{To: sc.name(input.Get("subagent_type")), Task: input.Get("prompt").Text(), Async: input.Get("run_in_background").Bool()}, true
	case "mcp__legion__send_comm":
		d = msg.Delegate{To: sc.name(input.Get("to_minion_name")), Task: taskOf(input, "content", "summary"), Async: true}
		d.CorrelationPrompt = spawn.Sent(system, string(withoutFooter(sc.plain(d.Task))))
		return d, d.To != userName
	case "mcp__legion__send_comm_to_channel":
		to := sc.name(input.Get("channel_name"))
		if to == "" {
			to = sc.name(input.Get("channel"))
		}
		return msg.Delegate{To: to, Task: taskOf(input, "content", "summary"), Async: true}, true
	case "mcp__legion__spawn_minion":
		return msg.Delegate{To: sc.name(input.Get("name")), Task: taskOf(input, "initialization_context", "content"), Async: true}, true
	}
	return msg.Delegate{}, false
}

// system is the name of the system in which minions write to each other.
const system = "legion"

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
func taskOf(input jsonv.Value, keys ...string) msg.Text {
	for _, k := range keys {
		if t := input.Get(k).Text(); !t.IsZero() {
			return t
		}
	}
	return msg.Text{}
}
