package llmmessage

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// finish takes what the metadata of a snapshot say beside its messages: the answer, which
// the memory may not have yet, and whether the agent is done. Those of an agent that
// works below the session's turn say nothing about that.
func (d *stream) finish(e *event, l *lane, meta jsonv.Value) {
	s := e.s
	if l.Task != "" || s.handing() > 0 || s.Agent != "" && l.Agent != "" && l.Agent != s.Agent {
		return
	}
	done := strings.EqualFold(meta.Get("agent_state").PeekStr(), "FINISHED")
	if text := meta.Get("final_response"); text.Is(jsonv.String) && len(text.Peek()) > 2 {
		d.response(e, text.Text(), done)
	}
	if done && s.Turn.Open {
		e.stop(d)
	}
}

// response gives the answer, unless it was given. The agent still has that of the turn
// before while it works on the next one.
func (d *stream) response(e *event, text msg.Text, done bool) {
	s, key := e.s, textKey("assistant", text)
	if s.Turn.Run == "" || s.Turn.said(key) || (!done || !s.Turn.Open) && s.Given.entry(key).Given > 0 {
		return
	}
	key += nth(s.Given.give(key))
	m := e.give(msg.Assistant, key)
	m.Role, m.Content, m.Complete = msg.RoleAssistant, text, msg.Summary
	s.Turn.Said, s.Turn.Shown = key, true
}
