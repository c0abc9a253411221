package agno

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// pause: the run waits for a person, or for results from outside. Calls that need permission
// have no start event, so they are emitted here.
func (s *stream) pause(r *run, e *event) {
	s.closePiece(r, "", e.at, msg.Complete)
	tools := e.v.Get("tools")
	var waits []jsonv.Value
	for t := range tools.Elems() {
		waits = append(waits, t)
	}
	if len(waits) == 0 {
		for q := range e.v.Get("requirements").Elems() {
			if member := peekID(q.Get("member_run_id")); member == "" || member == r.ID {
				if t := q.Get("tool_execution"); t.Is(jsonv.Object) {
					waits = append(waits, t)
				}
			}
		}
	}
	outside := len(waits) > 0
	for _, t := range waits {
		outside = outside && reasonOf(t) == "external_execution"
		u := useOf(t)
		s.startCall(r, u, e.at)
		c := s.openCall(r, u)
		if c == nil || c.Waits || !needsDecision(t) {
			continue
		}
		c.Waits = true
		m := s.addWait(r, c, msg.WaitStart, "wait:", e.at)
		m.SetAttr("for", reasonOf(t))
		markWaitsFor(m, reasonOf(t) == "external_execution")
	}
	for q := range e.v.Get("requirements").Elems() {
		s.requirement(r, q)
	}
	s.markRepeat(e.content, r.Said.Hash)
	s.flushUsage(r)
	m := s.addStatus(r, "pause/"+e.second(), "pause", e.at)
	m.Signal = msg.RunPause
	markWaitsFor(m, outside)
	r.Said.Len, r.Said.Hash = 0, noText
}

// requirement marks the fields of a requirement that repeat a call of its run as read.
func (s *stream) requirement(r *run, q jsonv.Value) {
	stampOf(q.Get("created_at"))
	if of := s.runs[peekID(q.Get("member_run_id"))]; of != nil {
		r = of
		q.Get("member_run_id").MarkRead()
		markKnown(q.Get("member_agent_id"), r.Agent.ID)
		markKnown(q.Get("member_agent_name"), r.Agent.Name)
	}
	u := useOf(q.Get("tool_execution"))
	id, _ := r.callID(u)
	s.markCall(r, u, id)
}

// markWaitsFor marks a wait for an external program that runs the call, as opposed to a
// person.
func markWaitsFor(m *msg.Message, outside bool) {
	if outside {
		m.SetAttr(msg.AttrWaitsFor, msg.ForOutside)
	}
}

// needsDecision reports whether a call waits for a person or for an external result.
func needsDecision(tool jsonv.Value) bool { return reasonOf(tool) != "" }

func reasonOf(tool jsonv.Value) string {
	switch {
	case tool.Get("requires_confirmation").Bool():
		return "confirmation"
	case tool.Get("requires_user_input").Bool():
		return "user_input"
	case tool.Get("external_execution_required").Bool():
		return "external_execution"
	}
	return ""
}

func (s *stream) addWait(r *run, c *call, signal msg.Signal, prefix string, at stamp) *msg.Message {
	m := s.addStatus(r, "", "permission", at)
	m.Key = prefix + c.ID
	m.Signal = signal
	m.Tool.CallID, m.Tool.Name = c.ID, c.Name
	return m
}

// resume: a paused run continues, perhaps in another stream than the one that it began in.
// The keys of its next messages contain this time, so that both streams produce the same
// keys.
func (s *stream) resume(r *run, e *event) {
	s.emitPiece(r, e.at, msg.Complete, msg.Plain(string(r.Said.Text)))
	r.Started, r.Joined = true, false
	r.Leg = e.second()
	r.Said.Len, r.Said.Hash = 0, noText
	r.Replies, r.Reply, r.Waits = 0, "", false
	r.Said.After = r.Leg
	from := len(s.out.Messages)
	m := s.addStatus(r, "resume/"+r.Leg, "resume", e.at)
	m.Signal = msg.RunResume
	decided := s.decisions(r)
	for _, c := range slices.Clone(r.Calls) {
		if c.Waits {
			s.endWait(r, c, decided, e.at)
		}
	}
	if s.index != nil {
		return
	}
	defer s.keepDecisions(r, decided, from)
	for d := range decided.Elems() { // the wait began in another stream
		id := ident(d.Get("tool_call_id"))
		if id != "" && d.Get("confirmed").Exists() && !r.knows(r.unique(id)) {
			c := &call{ID: r.unique(id), Name: useOf(d).name, Args: noText}
			r.Calls = append(r.Calls, c)
			s.endWait(r, c, decided, e.at)
		}
	}
}

// endWait ends the wait of a call, and emits the call's result when the decision contains it.
func (s *stream) endWait(r *run, c *call, decided jsonv.Value, at stamp) {
	c.Waits = false
	var t jsonv.Value
	for d := range decided.Elems() {
		if r.unique(peekID(d.Get("tool_call_id"))) == c.ID {
			t = d
		}
	}
	u := useOf(t)
	s.markCall(r, u, c.ID)
	m := s.addWait(r, c, msg.WaitEnd, "waited:", at)
	switch {
	case u.confirmed.Is(jsonv.True):
		m.SetAttr("decision", "allow")
	case u.refused:
		m.SetAttr("decision", "deny")
		u.result = t.First("confirmation_note", "result")
		s.emitResult(r, u, at)
	case t.Get("external_execution_required").Bool() && !blank(u.result):
		s.emitResult(r, u, at)
	}
}

// keepDecisions keeps the unread fields of the decisions in a request.
func (s *stream) keepDecisions(r *run, decided jsonv.Value, from int) {
	if decided.Exists() {
		rest.Keep(&s.inner, s.out, from, func(m *msg.Message) { m.Session, m.Run = r.Session, r.ID })
	}
}
