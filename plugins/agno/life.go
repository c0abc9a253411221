package agno

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// start begins a run.
func (s *stream) start(r *run, e *event) {
	r.uses(e.v)
	if r.Started {
		return
	}
	r.Started, r.Joined = true, false
	m := s.status(r, "start", "start", e.at)
	m.Signal, m.Model, m.Provider = msg.RunStart, r.Model, r.Provider
	for _, name := range [...]string{"step_id", "step_name", "step_index"} {
		m.SetAttr(name, written(e.v.Get(name)).String())
	}
	s.prompted(r, e.at)
}

// prompted gives what the run was asked: by a person at the top, by the parent in
// a child.
func (s *stream) prompted(r *run, at stamp) {
	switch {
	case s.book != nil:
		s.bookPrompt(r, at)
	case r.Parent == "":
		s.asked(r, at)
	case r.Call != "" && !r.Guess:
		p := s.runs[r.Parent]
		if p == nil {
			return
		}
		for _, c := range p.Calls {
			if c.ID == r.Call && c.Task != "" {
				// The team may put more before the task; a reload has all of it.
				s.input(r, at, msg.Plain(c.Task), p.Agent).Complete = msg.Summary
			}
		}
	}
}

// input adds what a run was asked.
func (s *stream) input(r *run, at stamp, text msg.Text, by msg.Agent) *msg.Message {
	m := s.add(r, msg.User, "input", at)
	m.Role, m.Content, m.Agent = msg.RoleUser, text, by
	m.Hidden = r.Parent != "" // the delegation shows it
	return m
}

// complete ends a run that went well.
func (s *stream) complete(r *run, e *event) {
	r.uses(e.v)
	if s.book != nil {
		s.fill(r, "")
	}
	if len(r.Said.Thinking) == 0 && !r.Thought {
		s.hear(r, msg.Text{}, e.reasoning.Text())
	}
	text := s.final(r, e)
	if text.IsZero() {
		text = e.v.Path("response_audio", "transcript").Text()
	}
	whole := e.content.Exists() // the event has all that the run said
	if r.Joined && whole && r.Said.After == "" && is(r.Said.Text, e.content) && is(r.Said.Thinking, e.reasoning) {
		r.Joined = false // nothing that was said was missed
	}
	answer := s.hashOf(text)
	if r.Said.Len > 0 && e.content.Is(jsonv.String) {
		answer = s.hashOf(e.content.Text())
	}
	files := attachments(e.v)
	m := s.give(r, e.at, msg.Complete, text)
	switch {
	case m != nil:
		m.FinishReason, m.Attachments = "completed", files
		m.SetAttr(msg.FinishReasonOf, "run")
		if whole && m.Complete == msg.Partial || s.book != nil && !s.book.summary && !s.apart(r) {
			m.Complete = msg.Summary // all texts in one
		}
	case len(files) > 0:
		m := s.add(r, msg.File, "files", e.at)
		m.Role, m.Attachments = msg.RoleAssistant, files
	}
	for _, extra := range [...]string{"citations", "references", "followups"} {
		if v := e.v.Get(extra); v.Len() > 0 {
			s.status(r, extra, extra, e.at).Content = compact(v)
		}
	}
	s.members(r, e.v.Get("member_responses"))
	s.total(r, e)
	s.childOver(r, answer)
	s.end(r, e, "completed")
}

// fail ends a run that went wrong.
func (s *stream) fail(r *run, e *event) {
	s.close(r, "", e.at, msg.Partial)
	s.wrong(r, e, e.at)
	s.end(r, e, "error")
}

// wrong gives what went wrong.
func (s *stream) wrong(r *run, e *event, at stamp) {
	m := s.add(r, msg.Error, "error", at)
	m.IsError = true
	m.Content = written(first(e.v, "content", "error"))
	m.Tool.ErrorType = ident(e.v.Get("error_type"))
	m.SetAttr("error_id", ident(e.v.Get("error_id")))
}

// cancel ends a run that somebody stopped.
func (s *stream) cancel(r *run, e *event) {
	s.close(r, "", e.at, msg.Partial)
	s.end(r, e, "cancelled").SetAttr("reason", written(first(e.v, "reason", "content")).String())
}

// end ends a run.
func (s *stream) end(r *run, e *event, reason string) *msg.Message {
	s.counted(r)
	m := s.add(r, msg.Stop, "end", e.at)
	m.Hidden, m.Signal, m.FinishReason = true, msg.RunEnd, reason
	m.Model, m.Provider = r.Model, r.Provider
	m.IsError = reason != "completed"
	if reason == "error" {
		m.Tool.ErrorType = ident(e.v.Get("error_type"))
	}
	for _, name := range [...]string{"duration", "time_to_first_token"} {
		if v := e.v.Path("metrics", name); v.Is(jsonv.Number) {
			m.SetAttr(name, string(v.Raw()))
		}
	}
	s.forget(r)
	return m
}

// refused is an error that names no run: AgentOS 2.2 reports so what a model or a
// guard raised. It ends the top run that began last, or a request that has none.
func (s *stream) refused(e *event) {
	e.at = stampOf(e.created)
	var last *run
	for _, r := range s.inOrder() {
		if p := s.runs[r.Parent]; p == nil && (e.session.Kind() == jsonv.Missing || r.Session == s.session) {
			last = r
		}
	}
	if last != nil {
		e.at = e.at.or(last.Last)
		s.fail(last, e)
		return
	}
	var asked string
	h := s.takeRequest()
	if h != nil {
		asked = h.Text
	}
	why := []string{"refused", asked, string(e.created.Raw()), ident(e.v.Get("error_id")), written(e.content).String()}
	r := &run{ID: msg.HashKey(why...), Session: s.sessionFor(e.session), Agent: e.actor()}
	if h != nil {
		if h.Session != "" {
			r.Session = h.Session
		}
		s.prompt(r, h, e.at)
	}
	s.wrong(r, e, e.at)
	s.end(r, e, "error")
}
