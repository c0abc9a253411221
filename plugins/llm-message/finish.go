package llmmessage

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// readMetadata reads the metadata of a snapshot: the answer, which the memory may not have yet,
// and whether the agent is done. The metadata of an agent below the session's turn do not
// decide that.
func (d *stream) readMetadata(e *event, l *agentMemory, meta jsonv.Value) {
	s := e.s
	if l.Task != "" || s.activePhases() > 0 || s.Agent != "" && l.Agent != "" && l.Agent != s.Agent {
		return
	}
	done := strings.EqualFold(meta.Get("agent_state").PeekStr(), "FINISHED")
	if text := meta.Get("final_response"); text.Is(jsonv.String) && len(text.Peek()) > 2 {
		d.addFinalResponse(e, text.Text(), done)
	}
	if done && s.Turn.Open {
		e.endAnswered(d)
	}
}

// addFinalResponse emits the answer, unless it was emitted. The agent keeps the answer of the
// previous turn while it works on the next one.
func (d *stream) addFinalResponse(e *event, text msg.Text, done bool) {
	s, key := e.s, textKey("assistant", text)
	if s.Turn.Run == "" || s.Turn.isLastText(key) || (!done || !s.Turn.Open) && s.Given.entry(key).Given > 0 {
		return
	}
	key += nth(s.Given.emit(key))
	m := e.add(msg.Assistant, key)
	m.Role, m.Content, m.Complete = msg.RoleAssistant, text, msg.Summary
	s.Turn.Said, s.Turn.Shown = key, true
}
