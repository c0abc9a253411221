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
// An agent's event has agent_id instead of team_id and no Team in its name; a workflow's has
// workflow_id. Null fields are omitted.
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
func eventName(v jsonv.Value) []byte { return bytes.TrimPrefix(rawString(v), []byte("Team")) }

// event decodes one event. in is the stored run that keeps it, if any: an event without a run
// id belongs to that run.
func (s *stream) event(v, in jsonv.Value) {
	var e event
	e.read(v)
	e.inherit(in)
	s.setSession(&e)
	if isControl(e.name) && e.created.Kind() == jsonv.Missing {
		s.control(&e)
		return
	}
	if len(rawString(e.run)) == 0 {
		if kindOf(e.name) == isError {
			s.requestError(&e)
		} else {
			s.unknown("", v)
		}
		return
	}
	kind := kindOf(e.name)
	if kind == isUnknown {
		s.unknown("", v)
		return
	}
	v.Get("event").MarkRead()
	r := s.runOf(&e, kind)
	if r == nil || s.repeated(r, e.index) {
		v.MarkRead() // a repetition
		return
	}
	s.markEnvelope(r, &e)
	e.at = stampOf(e.created).or(r.Last)
	r.Last = e.at
	if !r.Started && !r.Met && !kind.begins() {
		s.startUnannounced(r, e.at)
	}
	if kind == isContent { // the most frequent event, which emits no message
		s.addDelta(r, &e)
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
		s.addDraft(r, e)
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
		s.reasoningStep(r, e)
	case isNote:
		s.note(r, e)
	}
}

// kind is the meaning of an event to the decoder.
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
	isDelta // another event has the whole value
)

// begins reports whether such an event is, or may precede, its run's start.
func (k kind) begins() bool { return k == isStarted || k == isContinued || k == isNote }

// kindOf returns the kind of an event by its name. An event of a workflow has the kind of the
// agent's event with the same role.
func kindOf(name []byte) kind {
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

// setSession notes the session of an event, and releases the pending items that waited for
// it.
func (s *stream) setSession(e *event) {
	b := rawString(e.session)
	if len(b) == 0 || string(b) == s.session {
		return
	}
	s.session = peekID(e.session)
	s.releasePending(false)
}

// sessionFor returns the session in v, else the last one, else that of the stream's origin.
func (s *stream) sessionFor(v jsonv.Value) string {
	switch b := rawString(v); {
	case len(b) > 0 && string(b) != s.session:
		return ident(v)
	case s.session != "":
		return s.session
	}
	return s.origin
}

// inherit sets the fields that the event lacks from the stored run that keeps it.
func (e *event) inherit(run jsonv.Value) {
	if len(rawString(e.run)) > 0 || !run.Exists() {
		return
	}
	var of event
	of.read(run)
	e.run, e.parent, e.workflowRun = of.run, of.parent, of.workflowRun
	if !e.agent.Exists() && !e.team.Exists() && !e.workflow.Exists() {
		e.agent, e.team, e.workflow, e.label, e.workflowName = of.agent, of.team, of.workflow, of.label, of.workflowName
	}
}

// actor returns the agent, team or workflow of an event.
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
