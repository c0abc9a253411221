package llmmessage

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// wait is a question to the user for which a call, or a plan, waits.
type wait struct {
	Step string
	Call string `json:",omitempty"`
	Run  string `json:",omitempty"`
}

// confirm decodes the question whether a tool may run, or a plan be carried out.
func (d *stream) confirm(e *event) {
	e.ensureTurn()
	s := e.s
	w := wait{Step: e.step, Run: s.Turn.Run}
	m := e.status()
	m.Hidden = false
	m.Signal, m.Content = msg.WaitStart, e.text()
	if tool := ident.Of(e.meta.Get("tool_name")); tool != "" {
		base := d.callSignature(tool, e.meta.Get("tool_args"))
		same := func(c call) bool { return c.Base == base && !c.HasDone }
		i := slices.IndexFunc(s.Calls, same)
		if i < 0 {
			i = slices.IndexFunc(s.Calls, func(c call) bool { return c.Name == tool && !c.HasDone })
		}
		if i >= 0 {
			w.Call, w.Run = s.Calls[i].ID, s.Calls[i].Run
			m.Run, m.ParentRun = s.Calls[i].Run, s.Calls[i].Parent
		}
		m.Tool.CallID, m.Tool.Name = w.Call, tool
	}
	m.SetAttr("step_id", e.step)
	m.SetAttr("tool_description", excerpt(e.meta.Get("tool_description")))
	m.SetAttr("scope", ident.Of(e.meta.Get("scope")))
	if len(s.Waits) == maxWaits {
		s.Waits = slices.Delete(s.Waits, 0, 1)
	}
	s.Waits = append(s.Waits, w)
}

// userResponse decodes the user's answer to such a question.
func (d *stream) userResponse(e *event) {
	i := slices.IndexFunc(e.s.Waits, func(w wait) bool { return w.Step == e.step })
	m := e.status()
	m.Content = e.content.First("feedback", "reason").Text()
	yes := e.content.First("confirmed", "approved")
	if yes.Is(jsonv.True) || yes.Is(jsonv.False) {
		m.SetAttr("confirmed", string(yes.Raw()))
	}
	m.SetAttr("step_id", e.step)
	if i >= 0 {
		e.s.Waits[i].end(m)
		e.s.Waits = slices.Delete(e.s.Waits, i, i+1)
	}
}

// endWaits ends the waits that a call's result, or the next step of a plan, proves to be over:
// on the server's side of the connection alone the user's answer is missing.
func (d *stream) endWaits(e *event, call string) {
	e.s.Waits = slices.DeleteFunc(e.s.Waits, func(w wait) bool {
		if w.Call != call {
			return false
		}
		m := e.add(msg.Status, "waited:"+w.Step)
		m.Hidden = true
		m.SetAttr("type", "agent.user_confirm")
		m.SetAttr("step_id", w.Step)
		w.end(m)
		return true
	})
}

func (w wait) end(m *msg.Message) {
	m.Signal, m.Tool.CallID, m.Run = msg.WaitEnd, w.Call, w.Run
}
