package agno

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// start begins a run.
func (s *stream) start(r *run, e *event) {
	r.setModel(e.v)
	if r.Started {
		return
	}
	r.Joined, r.Announced = false, true
	m := s.emitStart(r, e.at)
	for _, name := range [...]string{"step_id", "step_name", "step_index"} {
		m.SetAttr(name, asText(e.v.Get(name)).String())
	}
	s.emitPrompt(r, e.at)
}

// emitStart emits the start of a run.
func (s *stream) emitStart(r *run, at stamp) *msg.Message {
	r.Started, r.Begun = true, true
	m := s.addStatus(r, "start", "start", at)
	m.Signal, m.Model, m.Provider = msg.RunStart, r.Model, r.Provider
	return m
}

// emitPrompt emits the prompt of a run: of a person for a top-level run, of the parent for a
// child.
func (s *stream) emitPrompt(r *run, at stamp) {
	switch {
	case s.index != nil:
		s.emitStoredPrompt(r, at)
	case r.Parent == "":
		s.emitRequest(r, at)
	case r.Call != "" && !r.Guess:
		p := s.runs[r.Parent]
		if p == nil {
			return
		}
		for _, c := range p.Calls {
			if c.ID == r.Call && c.Task != "" {
				// The team may put more before the task; a reload has all of it.
				s.addInput(r, at, msg.Plain(c.Task), p.Agent).Complete = msg.Summary
			}
		}
	}
}

// addInput adds the message with a run's prompt.
func (s *stream) addInput(r *run, at stamp, text msg.Text, by msg.Agent) *msg.Message {
	m := s.addMessage(r, msg.User, "input", at)
	m.Role, m.Content, m.Agent = msg.RoleUser, text, by
	m.Hidden = r.Parent != "" // the delegation shows it
	return m
}

// complete ends a run that succeeded.
func (s *stream) complete(r *run, e *event) {
	r.setModel(e.v)
	if s.index != nil {
		s.reloadChildren(r)
		s.fillFromStored(r, e)
		s.fillText(r, "")
	}
	if len(r.Said.Thinking) == 0 && !r.Thought {
		s.appendText(r, msg.Text{}, e.reasoning.Text())
	} else {
		e.reasoning.MarkRead()
	}
	e.markSteps(r)
	text := s.finalText(r, e)
	if text.IsZero() {
		text = e.v.Path("response_audio", "transcript").Text()
	}
	whole := e.content.Exists() // the event has the whole text of the run
	if r.Joined && whole && r.Said.After == "" && sameText(r.Said.Text, e.content) && sameText(r.Said.Thinking, e.reasoning) {
		r.Joined = false // no text was missed
	}
	answer := s.hashOf(text)
	if r.Said.Len > 0 && e.content.Is(jsonv.String) {
		answer = s.hashOf(peekText(e.content))
	}
	files := attachments(e.v)
	missed := r.Joined && r.Said.size() == 0
	m := s.emitPiece(r, e.at, msg.Complete, text)
	switch {
	case m != nil:
		m.FinishReason, m.Attachments = "completed", files
		m.SetAttr(msg.FinishReasonOf, "run")
		if whole && (m.Complete == msg.Partial || missed) || s.index != nil && !s.index.summary && !s.splitByCalls(r) {
			m.Complete = msg.Summary // all texts in one
		}
	case len(files) > 0:
		m := s.addMessage(r, msg.File, "files", e.at)
		m.Role, m.Attachments = msg.RoleAssistant, files
	}
	for _, extra := range [...]string{"citations", "references", "followups"} {
		if v := e.v.Get(extra); v.Len() > 0 {
			s.addStatus(r, extra, extra, e.at).Content = compact(v)
		}
	}
	s.reloadEmbedded(r, e.v.Get("member_responses"))
	s.emitPlaceholders(r, e)
	s.emitTotal(r, e)
	s.recordChildEnd(r, answer, e.at)
	s.endRun(r, e, "completed")
}

// emitPlaceholders takes the keys of the one text that a stored run without events and
// messages has. When the text was emitted in pieces under other keys, a hidden message under
// that key prevents that a reload adds the text again, whichever form is decoded first.
func (s *stream) emitPlaceholders(r *run, e *event) {
	all := r.Begun || r.Leg == "" && e.content.Is(jsonv.String) && s.hashOf(peekText(e.content)) == r.Said.Hash // else another stream may have some of the pieces
	if all && r.Parted && !r.Whole {
		s.addPlaceholder(r, r.ID+"/text", "text_in_pieces", e.at)
	}
	if r.Begun && r.Thought && !r.Mused {
		s.addPlaceholder(r, r.ID+"/thinking", "thinking_in_pieces", e.at)
	}
}

// addPlaceholder adds a hidden message in the place of one that another form would have.
func (s *stream) addPlaceholder(r *run, key, typ string, at stamp) {
	m := s.addStatus(r, "", typ, at)
	m.Key, m.Complete = key, msg.Complete
}

// fillFromStored sets the fields that the last event of a stored run lacks from the run's
// object.
func (s *stream) fillFromStored(r *run, e *event) {
	v, ok := s.index.runs[r.ID]
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

// fail ends a run that failed.
func (s *stream) fail(r *run, e *event) {
	s.reloadChildren(r)
	s.closePiece(r, "", e.at, msg.Partial)
	s.emitError(r, e, e.at)
	s.endRun(r, e, "error")
}

// emitError emits the error of a run.
func (s *stream) emitError(r *run, e *event, at stamp) {
	m := s.addMessage(r, msg.Error, "error", at)
	m.IsError = true
	m.Content = asText(e.v.First("content", "error"))
	m.Tool.ErrorType = ident(e.v.Get("error_type"))
	m.SetAttr("error_id", ident(e.v.Get("error_id")))
}

// cancel ends a run that a person stopped.
func (s *stream) cancel(r *run, e *event) {
	s.reloadChildren(r)
	s.closePiece(r, "", e.at, msg.Partial)
	if m := s.endRun(r, e, "cancelled"); m != nil {
		m.SetAttr("reason", asText(e.v.First("reason", "content")).String())
	}
}

// endRun ends a run. It returns the message of the end; nil when that was emitted before.
func (s *stream) endRun(r *run, e *event, reason string) *msg.Message {
	s.flushUsage(r)
	for _, c := range r.Calls {
		s.emitDelegation(r, c, true)
	}
	if reason == "completed" {
		s.closeBelow(r)
	}
	s.endSteps(r, e.at, reason)
	if p := s.runs[r.Parent]; s.index != nil && p != nil && p.Last.NS < e.at.NS {
		p.Last = e.at // the parent may have no later time of its own
	}
	s.emitInferredResult(r, reason == "error", e.at)
	var m *msg.Message
	if !r.Ceased {
		m = s.emitStop(r, e, reason)
	}
	s.forget(r)
	return m
}

// emitStop emits the end of a run.
func (s *stream) emitStop(r *run, e *event, reason string) *msg.Message {
	m := s.addMessage(r, msg.Stop, "end", e.at)
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

// closeBelow ends and drops the runs below a completed run, which may have no end event.
func (s *stream) closeBelow(r *run) {
	list := r.Below
	r.Below = nil // parents may form a cycle
	for _, id := range list {
		child := s.runs[id]
		if child == nil || child == r {
			continue
		}
		if s.endUnannounced(child, stamp{}); s.runs[id] == child {
			s.closeBelow(child)
			s.closePiece(child, "", child.Last, msg.Complete)
			s.flushUsage(child)
			s.forget(child)
		}
	}
}

// requestError is an error event without a run: AgentOS 2.2 reports the exception of a model
// or a guard so. It ends the newest top-level run, or a pending request.
func (s *stream) requestError(e *event) {
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
	why := []string{"refused", asked, string(e.created.Peek()), ident(e.v.Get("error_id")), asText(e.content).String()}
	r := &run{ID: msg.HashKey(why...), Session: s.sessionFor(e.session), Agent: s.actor(e)}
	if h != nil {
		if h.Session != "" {
			r.Session = h.Session
		}
		s.addRequest(r, h, e.at)
	}
	s.emitError(r, e, e.at)
	s.endRun(r, e, "error")
}
