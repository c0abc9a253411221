package agno

import (
	"bytes"
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// event is the envelope that all events share:
//
//	{"created_at":1770000000,"event":"TeamRunContent","team_id":"…","team_name":"…",
//	 "run_id":"…","parent_run_id":"…","session_id":"…","content":"…","content_type":"str"}
//
// An agent's event has agent_id instead of team_id and no Team in its name; a workflow's has
// workflow_id. Null fields are omitted. A stored run has the same fields. Before 2.0 (from 1.6) the names of content
// have Response in them, and the reasoning of a model is thinking.
//
// A part of a stored run that has the meaning of an event is one too, and has the fields of the run.
type event struct {
	v    jsonv.Value // the event; a message, a call of one, or the run itself
	rule *rule
	at   conversation.Time

	in    jsonv.Value // the stored run that keeps it
	of    *storedRun  // whose it is; nil in a stream
	said  bool        // it is a part of a stored run
	place int64       // its time in the story of the runs above, Unix ns

	typ  jsonv.Value
	name []byte // without Team

	run, parent, session            jsonv.Value
	created, index                  jsonv.Value
	content, contentType, reasoning jsonv.Value
	messages                        jsonv.Value // of a stored run
	agent, team, workflow           jsonv.Value // ids
	label                           jsonv.Value // agent_name, team_name
	workflowName, workflowRun       jsonv.Value // workflowRun: the workflow that an agent's event belongs to
}

var eventNames = jsonv.NamesOf("event", "run_id", "parent_run_id", "session_id", "created_at", "event_index", "content", "content_type", "thinking", "reasoning_content",
	"messages", "agent_id", "team_id", "workflow_id", "agent_name", "team_name", "workflow_name", "workflow_run_id")

// tool returns the object that has the call of the event.
func (e *event) tool() jsonv.Value {
	if e.said {
		return e.v
	}
	return e.v.Get("tool")
}

// read reads the envelope of an event, or of a stored run.
func (e *event) read(v jsonv.Value) {
	eventNames.Read(v, &e.typ, &e.run, &e.parent, &e.session, &e.created, &e.index, &e.content, &e.contentType, &e.reasoning, &e.reasoning,
		&e.messages, &e.agent, &e.team, &e.workflow, &e.label, &e.label, &e.workflowName, &e.workflowRun)
	e.name = bytes.TrimPrefix(e.typ.Chars(), []byte("Team"))
}

// inherit sets the fields that an event without a run id lacks from the stored run that keeps it.
func (e *event) inherit(of *event) {
	if len(e.run.Chars()) > 0 {
		return
	}
	e.run, e.parent, e.workflowRun = of.run, of.parent, of.workflowRun
	if !e.agent.Exists() && !e.team.Exists() && !e.workflow.Exists() {
		e.agent, e.team, e.workflow, e.label, e.workflowName = of.agent, of.team, of.workflow, of.label, of.workflowName
	}
}

// actor returns the agent, team or workflow of an event. One with an id and no name has the name of an earlier event, else its
// id as a name.
func (e *event) actor(known names) msg.Agent {
	a := msg.Agent{Name: ident.PeekOrNumber(e.label)}
	switch {
	case e.agent.Is(jsonv.String):
		a.ID, a.Kind = ident.Peek(e.agent), msg.KindAgent
	case e.team.Is(jsonv.String):
		a.ID, a.Kind = ident.Peek(e.team), msg.KindTeam
	case e.workflow.Is(jsonv.String), e.workflowName.Is(jsonv.String):
		a = msg.Agent{ID: ident.PeekOrNumber(e.workflow), Name: ident.PeekOrNumber(e.workflowName), Kind: msg.KindWorkflow}
	}
	if a.Name == "" {
		a.Name, _ = known.of(a.ID)
	}
	return a
}

// markActor marks the fields of which an agent is made.
func (e *event) markActor(a msg.Agent) {
	for _, v := range [...]jsonv.Value{e.agent, e.team, e.label} {
		ident.Is(v, a.ID)
		ident.Is(v, a.Name)
	}
	if a.Kind == msg.KindWorkflow {
		ident.Is(e.workflow, a.ID)
		ident.Is(e.workflowName, a.Name)
	}
}

// second is the event's time as a part of a key.
func (e *event) second() string { return strconv.FormatInt(e.at.Nanos/1e9, 10) }

// rule is the meaning of an event.
type rule struct {
	do      func(*run, *event)
	phase   phase
	control bool // it is of the connection and not of a run
	note    note
}

// phase is the place of an event in its run.
type phase uint8

const (
	none phase = iota
	starts
	continues
	reports // at any time, before the start too
	within
	pauses
	callStarts
	callEnds
	ends
	fails
)

// note describes how an event that only reports something becomes a message.
type note struct {
	kind    msg.Kind
	shown   bool
	signal  msg.Signal
	content string // the fields of which the first has the text
	// names are the fields that distinguish such events of one second; they become part of the
	// key, and attributes. attrs only become attributes.
	names string
	attrs string
}

const (
	stepFields = "step_id step_name step_index parent_step_id"
	taskFields = "task_id status"
)

// rules returns the meanings of events by their names without Team: events of agents, teams and workflows with
// the same role have the same one. An event without a rule is unknown.
func rules() map[string]*rule {
	rules := conversation.Rules(map[string]*rule{
		"RunStarted WorkflowStarted": {do: (*run).start, phase: starts},
		"RunContinued":               {do: (*run).resume, phase: continues},
		"RunContent RunResponseContent ReasoningContentDelta":   {do: func(r *run, e *event) { r.Text.delta(r, e) }, phase: within},
		"RunIntermediateContent RunIntermediateResponseContent": {do: func(r *run, e *event) { r.Text.add(r, msg.Text{}, msg.Text{}, asText(e.content)) }, phase: within},
		"RunPaused WorkflowPaused":                              {do: (*run).pause, phase: pauses},
		"RunCompleted WorkflowCompleted":                        {do: (*run).complete, phase: ends},
		"RunError WorkflowError":                                {do: func(r *run, e *event) { r.abort(e, failed) }, phase: fails},
		"RunCancelled WorkflowCancelled":                        {do: func(r *run, e *event) { r.abort(e, cancelled) }, phase: ends},
		"ToolCallStarted":                                       {do: func(r *run, e *event) { r.Calls.start(r, r.s.use(e.tool()), e.at) }, phase: callStarts},
		"ToolCallCompleted ToolCallError":                       {do: func(r *run, e *event) { r.Calls.completed(r, e) }, phase: callEnds},
		"ToolCallArgsDelta":                                     {do: func(*run, *event) {}, phase: within}, // ToolCallStarted has all arguments
		"ModelRequestStarted":                                   {do: func(r *run, e *event) { r.Usage.request(r, e) }, phase: within},
		"ModelRequestCompleted":                                 {do: func(r *run, e *event) { r.Usage.respond(r, e) }, phase: within},
		"ReasoningStep":                                         {do: func(r *run, e *event) { r.Text.reasoningStep(r, e) }, phase: within},

		"RunContentCompleted ReasoningStarted ReasoningCompleted MemoryUpdateStarted SessionSummaryStarted FollowupsStarted CompressionStarted": {},
		"ParserModelResponseStarted ParserModelResponseCompleted OutputModelResponseStarted OutputModelResponseCompleted":                       {},
		"WorkflowAgentStarted WorkflowAgentCompleted":                       {},
		"MemoryUpdateCompleted SessionSummaryCompleted FollowupsCompleted":  {note: note{content: "memories session_summary followups"}},
		"CompressionCompleted":                                              {note: note{signal: msg.Compaction, attrs: "tool_results_compressed original_size compressed_size"}},
		"PreHookStarted PreHookCompleted PostHookStarted PostHookCompleted": {note: note{names: "pre_hook_name post_hook_name"}},
		"TaskCreated":      {note: note{kind: msg.Task, shown: true, content: "title description", names: taskFields, attrs: "assignee dependencies description"}},
		"TaskUpdated":      {note: note{kind: msg.Task, shown: true, content: "title", names: taskFields, attrs: "previous_status assignee"}},
		"TaskStateUpdated": {note: note{kind: msg.Plan, shown: true, content: "tasks", attrs: "goal_complete completion_summary"}},
		"TaskIterationStarted TaskIterationCompleted": {note: note{names: "iteration", attrs: "max_iterations"}},

		"StepStarted StepContinued": {note: note{kind: msg.Task, shown: true, content: "step_name", names: stepFields}},
		"StepCompleted":             {note: note{kind: msg.Task, shown: true, names: stepFields}},
		"StepError":                 {note: note{kind: msg.Task, shown: true, content: "error", names: stepFields}},
		"StepOutput StepPaused StepExecutorPaused StepExecutorContinued StepOutputReview ConditionPaused RouterPaused": {note: note{names: stepFields}},
		"LoopIterationStarted LoopIterationCompleted":                                                                  {note: note{names: stepFields + " iteration", attrs: "max_iterations should_continue"}},
		"LoopExecutionStarted LoopExecutionCompleted ParallelExecutionStarted ParallelExecutionCompleted ConditionExecutionStarted " +
			"ConditionExecutionCompleted RouterExecutionStarted RouterExecutionCompleted StepsExecutionStarted StepsExecutionCompleted": {note: note{names: stepFields,
			attrs: "max_iterations total_iterations parallel_step_count condition_result selected_steps steps_count executed_steps"}},

		"connected authenticated auth_required auth_error catch_up replay subscribed reconnected error pong": {control: true},
	})
	for _, r := range rules {
		if r.do == nil && !r.control {
			r.do, r.phase = (*run).note, reports
		}
	}
	return rules
}

// rule returns the rule of an event; one that does nothing for an unknown event.
func (s *stream) rule(name []byte) *rule {
	if r := s.rules[string(name)]; r != nil {
		return r
	}
	return &rule{}
}

// event decodes one event.
func (s *stream) event(e *event) {
	defer func(before bool) { s.summary = before }(s.summary)
	s.summary = e.said
	v := e.v
	if e.rule == nil {
		e.rule = s.rule(e.name)
	}
	if b := e.session.Chars(); len(b) > 0 && string(b) != s.Session { // pending items may have waited for it
		s.Session = ident.Peek(e.session)
		s.releasePending(false)
	}
	switch {
	case e.rule.control && e.created.Kind() == jsonv.Missing:
		q := pendingOf(control, string(e.name), v)
		q.Data = ident.PeekOrNumber(v.Get("status"))
		s.connection(q)
		return
	case len(e.run.Chars()) == 0 && e.rule.phase == fails:
		s.refuse(e)
		return
	case len(e.run.Chars()) == 0, e.rule.do == nil:
		s.stray("", v)
		return
	}
	e.typ.MarkRead()
	r := s.runOf(e)
	// The top run's stream numbers the events of all runs below it.
	if r == nil || s.body == nil && e.index.Is(jsonv.Number) && e.index.Int() >= 0 && !s.Runs.top(r).Index.Add(e.index.Int()) {
		v.MarkRead() // a repetition
		return
	}
	e.markCopies(r)
	if e.of != nil {
		e.of.say(r, e.of.before(e))
	}
	e.at = e.at.Or(conversation.TimeOf(e.created)).Or(r.Last)
	if e.said && e.rule.phase >= ends && r.Last.Nanos > e.at.Nanos {
		e.at = r.Last // a child ended later
	}
	r.Last = e.at
	if e.rule.phase > reports {
		r.startUnannounced(e.at)
	}
	e.rule.do(r, e)
}

// sessionFor returns the session in v, else the last one, else that of the stream's origin.
func (s *stream) sessionFor(v jsonv.Value) string {
	switch b := v.Chars(); {
	case len(b) > 0 && string(b) != s.Session:
		return ident.Of(v)
	case s.Session != "":
		return s.Session
	}
	return s.origin
}

// markCopies marks the fields of an event that the messages of its run have already.
func (e *event) markCopies(r *run) {
	e.run.MarkRead()
	ident.Is(e.session, r.Session)
	ident.Is(e.parent, r.Parent)
	e.markActor(r.Agent)
	if r.Agent.Kind != msg.KindWorkflow && (e.workflowRun.Exists() || e.workflow.Exists()) {
		ident.Is(e.workflowRun, r.Parent)
		ident.Is(e.workflowRun, r.s.Runs.top(r).ID)
		e.v.Skip("workflow_id", "workflow_name", "step_id", "step_name")
	}
}
