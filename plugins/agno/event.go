package agno

import (
	"bytes"
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// event is the envelope that all events share:
//
//	{"created_at":1770000000,"event":"TeamRunContent","team_id":"…","team_name":"…",
//	 "run_id":"…","parent_run_id":"…","session_id":"…","content":"…","content_type":"str"}
//
// An agent's event has agent_id instead of team_id and no Team in its name; a
// workflow's has workflow_id. Of the fields that are null none is sent.
type event struct {
	v    jsonv.Value
	name []byte // without Team

	run, parent, session  jsonv.Value
	created, index        jsonv.Value
	content, contentType  jsonv.Value
	reasoning, tool       jsonv.Value
	agent, team, workflow jsonv.Value // ids
	label                 jsonv.Value // agent_name, team_name
	step, stepName        jsonv.Value // of a workflow
	workflowName          jsonv.Value
	workflowRun           jsonv.Value // the workflow that an agent's event belongs to

	at stamp
}

func (e *event) read(v jsonv.Value) {
	*e = event{v: v}
	for k, x := range v.Members() {
		switch {
		case k.Is("event"):
			e.name = eventName(x)
		case k.Is("run_id"):
			e.run = x
		case k.Is("content"):
			e.content = x
		case k.Is("content_type"):
			e.contentType = x
		case k.Is("reasoning_content"):
			e.reasoning = x
		case k.Is("session_id"):
			e.session = x
		case k.Is("created_at"):
			e.created = x
		case k.Is("parent_run_id"):
			e.parent = x
		case k.Is("agent_id"):
			e.agent = x
		case k.Is("team_id"):
			e.team = x
		case k.Is("agent_name"), k.Is("team_name"):
			e.label = x
		case k.Is("workflow_id"):
			e.workflow = x
		case k.Is("workflow_name"):
			e.workflowName = x
		case k.Is("workflow_run_id"):
			e.workflowRun = x
		case k.Is("step_id"):
			e.step = x
		case k.Is("step_name"):
			e.stepName = x
		case k.Is("event_index"):
			e.index = x
		case k.Is("tool"):
			e.tool = x
		}
	}
}

// eventName returns the name of an event without Team.
func eventName(v jsonv.Value) []byte { return bytes.TrimPrefix(chars(v), []byte("Team")) }

// event decodes one event. in is the stored run that keeps it, where one does: an event
// that names no run is of that one.
func (s *stream) event(v, in jsonv.Value) {
	var e event
	e.read(v)
	e.within(in)
	s.learn(&e)
	if isControl(e.name) && e.created.Kind() == jsonv.Missing {
		s.control(&e)
		return
	}
	if len(chars(e.run)) == 0 {
		if what(e.name) == isError {
			s.refused(&e)
		} else {
			s.unknown("", v)
		}
		return
	}
	kind := what(e.name)
	if kind == isUnknown {
		s.unknown("", v)
		return
	}
	v.Get("event").MarkRead()
	r := s.runOf(&e, kind)
	if r == nil || s.repeated(r, e.index) {
		v.MarkRead() // told before
		return
	}
	s.envelope(r, &e)
	e.at = stampOf(e.created).or(r.Last)
	r.Last = e.at
	if !r.Started && !r.Met && !kind.begins() {
		s.unannounced(r, e.at)
	}
	if kind == isContent { // the one that comes most often, and gives nothing yet
		s.say(r, &e)
		return
	}
	s.handle(r, &e, kind)
}

func (s *stream) handle(r *run, e *event, kind kind) {
	switch kind {
	case isStarted:
		s.start(r, e)
	case isContinued:
		s.resume(r, e)
	case isDraft:
		s.draft(r, e)
	case isCompleted:
		s.complete(r, e)
	case isError:
		s.fail(r, e)
	case isCancelled:
		s.cancel(r, e)
	case isPaused:
		s.pause(r, e)
	case isToolStarted:
		s.toolStarted(r, e)
	case isToolCompleted, isToolError:
		s.toolCompleted(r, e, kind == isToolError)
	case isRequest:
		s.modelRequest(r, e)
	case isResponse:
		s.modelResponse(r, e)
	case isStep:
		s.thought(r, e)
	case isNote:
		s.note(r, e)
	}
}

// kind is what an event means to the decoder.
type kind uint8

const (
	isUnknown kind = iota
	isStarted
	isContinued
	isContent
	isDraft
	isCompleted
	isError
	isCancelled
	isPaused
	isToolStarted
	isToolCompleted
	isToolError
	isRequest
	isResponse
	isStep
	isNote
	isDelta // of something that another event has whole
)

// begins reports whether such an event may come before its run's start, or is that.
func (k kind) begins() bool { return k == isStarted || k == isContinued || k == isNote }

// what returns the meaning of an event's name. Those of workflows mean the same
// as those of agents where they have the same part.
func what(name []byte) kind {
	switch string(name) {
	case "RunContent", "ReasoningContentDelta":
		return isContent
	case "RunStarted", "WorkflowStarted":
		return isStarted
	case "RunContinued":
		return isContinued
	case "RunIntermediateContent":
		return isDraft
	case "RunCompleted", "WorkflowCompleted":
		return isCompleted
	case "RunError", "WorkflowError":
		return isError
	case "RunCancelled", "WorkflowCancelled":
		return isCancelled
	case "RunPaused", "WorkflowPaused":
		return isPaused
	case "ToolCallStarted":
		return isToolStarted
	case "ToolCallCompleted":
		return isToolCompleted
	case "ToolCallError":
		return isToolError
	case "ModelRequestStarted":
		return isRequest
	case "ModelRequestCompleted":
		return isResponse
	case "ReasoningStep":
		return isStep
	case "ToolCallArgsDelta":
		return isDelta
	}
	if _, ok := noteOf(name); ok {
		return isNote
	}
	return isUnknown
}

// learn notes the session that an event names, and lets go what waited for it.
func (s *stream) learn(e *event) {
	b := chars(e.session)
	if len(b) == 0 || string(b) == s.session {
		return
	}
	s.session = glance(e.session)
	s.release(false)
}

// sessionFor returns the session that a value names, else the last one, else that
// of the stream's origin.
func (s *stream) sessionFor(v jsonv.Value) string {
	switch b := chars(v); {
	case len(b) > 0 && string(b) != s.session:
		return ident(v)
	case s.session != "":
		return s.session
	}
	return s.origin
}

// within takes over from the stored run that keeps the event what the event does not say.
func (e *event) within(run jsonv.Value) {
	if len(chars(e.run)) > 0 || !run.Exists() {
		return
	}
	var of event
	of.read(run)
	e.run, e.parent, e.workflowRun = of.run, of.parent, of.workflowRun
	if !e.agent.Exists() && !e.team.Exists() && !e.workflow.Exists() {
		e.agent, e.team, e.workflow, e.label, e.workflowName = of.agent, of.team, of.workflow, of.label, of.workflowName
	}
}

// actor returns who an event is of.
func (e *event) actor() msg.Agent {
	switch {
	case e.agent.Is(jsonv.String):
		return msg.Agent{ID: ident(e.agent), Name: ident(e.label), Kind: msg.KindAgent}
	case e.team.Is(jsonv.String):
		return msg.Agent{ID: ident(e.team), Name: ident(e.label), Kind: msg.KindTeam}
	case e.workflow.Is(jsonv.String), e.workflowName.Is(jsonv.String):
		return msg.Agent{ID: ident(e.workflow), Name: ident(e.workflowName), Kind: msg.KindWorkflow}
	}
	return msg.Agent{Name: ident(e.label)}
}

// second is the event's time as a part of a key.
func (e *event) second() string { return strconv.FormatInt(e.at.NS/1e9, 10) }
