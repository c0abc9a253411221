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
	r.Joined, r.Announced = false, true
	m := s.started(r, e.at)
	for _, name := range [...]string{"step_id", "step_name", "step_index"} {
		m.SetAttr(name, written(e.v.Get(name)).String())
	}
	s.prompted(r, e.at)
}

// started gives the beginning of a run.
func (s *stream) started(r *run, at stamp) *msg.Message {
	r.Started, r.Begun = true, true
	m := s.status(r, "start", "start", at)
	m.Signal, m.Model, m.Provider = msg.RunStart, r.Model, r.Provider
	return m
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
		s.rest(r)
		s.stored(r, e)
		s.fill(r, "")
	}
	if len(r.Said.Thinking) == 0 && !r.Thought {
		s.hear(r, msg.Text{}, e.reasoning.Text())
	} else {
		e.reasoning.MarkRead()
	}
	e.stepsTold(r)
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
		answer = s.hashOf(glimpse(e.content))
	}
	files := attachments(e.v)
	missed := r.Joined && r.Said.size() == 0
	m := s.give(r, e.at, msg.Complete, text)
	switch {
	case m != nil:
		m.FinishReason, m.Attachments = "completed", files
		m.SetAttr(msg.FinishReasonOf, "run")
		if whole && (m.Complete == msg.Partial || missed) || s.book != nil && !s.book.summary && !s.apart(r) {
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
	s.apiece(r, e)
	s.total(r, e)
	s.childOver(r, answer, e.at)
	s.end(r, e, "completed")
}

// apiece takes the names under which a form that has neither events nor messages tells
// all that a run said in one piece, as if nothing had parted it. Where the pieces are told
// and none has the name, that piece says nothing new, whichever form is heard first.
func (s *stream) apiece(r *run, e *event) {
	all := r.Begun || r.Leg == "" && e.content.Is(jsonv.String) && s.hashOf(glimpse(e.content)) == r.Said.Hash // else another stream may tell some
	if all && r.Parted && !r.Whole {
		s.stand(r, r.ID+"/text", "text_in_pieces", e.at)
	}
	if r.Begun && r.Thought && !r.Mused {
		s.stand(r, r.ID+"/thinking", "thinking_in_pieces", e.at)
	}
}

// stand adds a hidden message in the place of one that another form would have.
func (s *stream) stand(r *run, key, typ string, at stamp) {
	m := s.status(r, "", typ, at)
	m.Key, m.Complete = key, msg.Complete
}

// stored takes what the last event of a stored run does not say from the run.
func (s *stream) stored(r *run, e *event) {
	v, ok := s.book.objects[r.ID]
	if !ok || e.content.Exists() {
		return
	}
	e.content, e.contentType = v.Get("content"), v.Get("content_type")
	if f := v.Get("run_response_format"); f.Equal("json") || !e.contentType.Exists() && !f.Equal("text") {
		e.contentType = f
	}
	if !e.reasoning.Exists() {
		e.reasoning = v.Get("reasoning_content")
	}
}

// fail ends a run that went wrong.
func (s *stream) fail(r *run, e *event) {
	s.rest(r)
	s.close(r, "", e.at, msg.Partial)
	s.wrong(r, e, e.at)
	s.end(r, e, "error")
}

// wrong gives what went wrong.
func (s *stream) wrong(r *run, e *event, at stamp) {
	m := s.add(r, msg.Error, "error", at)
	m.IsError = true
	m.Content = written(e.v.First("content", "error"))
	m.Tool.ErrorType = ident(e.v.Get("error_type"))
	m.SetAttr("error_id", ident(e.v.Get("error_id")))
}

// cancel ends a run that somebody stopped.
func (s *stream) cancel(r *run, e *event) {
	s.rest(r)
	s.close(r, "", e.at, msg.Partial)
	if m := s.end(r, e, "cancelled"); m != nil {
		m.SetAttr("reason", written(e.v.First("reason", "content")).String())
	}
}

// end ends a run. It returns the message that says so; nil when one was given before.
func (s *stream) end(r *run, e *event, reason string) *msg.Message {
	s.counted(r)
	for _, c := range r.Calls {
		s.delegation(r, c, true)
	}
	if reason == "completed" {
		s.leave(r)
	}
	s.unstep(r, e.at, reason)
	if p := s.runs[r.Parent]; s.book != nil && p != nil && p.Last.NS < e.at.NS {
		p.Last = e.at // which may have nothing else that says when it ended
	}
	s.inferred(r, reason == "error", e.at)
	var m *msg.Message
	if !r.Ceased {
		m = s.stop(r, e, reason)
	}
	s.forget(r)
	return m
}

// stop gives the end of a run.
func (s *stream) stop(r *run, e *event, reason string) *msg.Message {
	m := s.add(r, msg.Stop, "end", e.at)
	m.Hidden, m.Signal, m.FinishReason = true, msg.RunEnd, reason
	m.Model, m.Provider = r.Model, r.Provider
	m.IsError = reason == "error" // one that a person stopped did not fail
	if reason == "error" {
		m.Tool.ErrorType = ident(e.v.Get("error_type"))
	}
	for _, name := range [...]string{"duration", "time_to_first_token"} {
		if v := e.v.Path("metrics", name); v.Is(jsonv.Number) {
			m.SetAttr(name, string(v.Raw()))
		}
	}
	return m
}

// leave lets go of the runs below one that went well: they are over, also when no event
// says so.
func (s *stream) leave(r *run) {
	list := r.Below
	r.Below = nil // parents may go in a circle
	for _, id := range list {
		child := s.runs[id]
		if child == nil || child == r {
			continue
		}
		if s.over(child, stamp{}); s.runs[id] == child {
			s.leave(child)
			s.close(child, "", child.Last, msg.Complete)
			s.counted(child)
			s.forget(child)
		}
	}
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
	why := []string{"refused", asked, string(e.created.Peek()), ident(e.v.Get("error_id")), written(e.content).String()}
	r := &run{ID: msg.HashKey(why...), Session: s.sessionFor(e.session), Agent: s.actor(e)}
	if h != nil {
		if h.Session != "" {
			r.Session = h.Session
		}
		s.prompt(r, h, e.at)
	}
	s.wrong(r, e, e.at)
	s.end(r, e, "error")
}
