package legion

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// delegation says to whom a call hands work, if it does: to a sub-agent, whose
// answer is the call's result, or to another minion, whose answer, if any, comes
// as a message of its own (async).
func (sc *scratch) delegation(tool string, input jsonv.Value) (to string, task msg.Text, async, ok bool) {
	switch tool {
	case "Task", "Agent":
		return sc.name(input.Get("subagent_type")), input.Get("prompt").Text(), input.Get("run_in_background").Bool(), true
	case "mcp__legion__send_comm":
		return sc.name(input.Get("to_minion_name")), taskOf(input, "content", "summary"), true, true
	case "mcp__legion__send_comm_to_channel":
		to = sc.name(input.Get("channel_name"))
		if to == "" {
			to = sc.name(input.Get("channel"))
		}
		return to, taskOf(input, "content", "summary"), true, true
	case "mcp__legion__spawn_minion":
		return sc.name(input.Get("name")), taskOf(input, "initialization_context", "content"), true, true
	}
	return "", msg.Text{}, false, false
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
