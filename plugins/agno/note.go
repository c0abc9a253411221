package agno

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// note describes how an event that only reports something becomes a message.
type note struct {
	kind    msg.Kind
	shown   bool
	signal  msg.Signal
	content string // the field with the text
	// names are the fields that distinguish such events of one second; they become part of the
	// key, and attributes. attrs only become attributes.
	names string
	attrs string
}

const (
	stepFields = "step_id step_name step_index parent_step_id"
	taskFields = "task_id status"
)

// noteOf returns the note for an event's name.
func noteOf(name []byte) (note, bool) {
	switch string(name) {
	case "RunContentCompleted", "ReasoningStarted", "ReasoningCompleted",
		"MemoryUpdateStarted", "SessionSummaryStarted", "FollowupsStarted", "CompressionStarted",
		"ParserModelResponseStarted", "ParserModelResponseCompleted",
		"OutputModelResponseStarted", "OutputModelResponseCompleted",
		"WorkflowAgentStarted", "WorkflowAgentCompleted":
		return note{}, true
	case "MemoryUpdateCompleted":
		return note{content: "memories"}, true
	case "SessionSummaryCompleted":
		return note{content: "session_summary"}, true
	case "FollowupsCompleted":
		return note{content: "followups"}, true
	case "CompressionCompleted":
		return note{signal: msg.Compaction, attrs: "tool_results_compressed original_size compressed_size"}, true
	case "PreHookStarted", "PreHookCompleted":
		return note{names: "pre_hook_name"}, true
	case "PostHookStarted", "PostHookCompleted":
		return note{names: "post_hook_name"}, true
	case "TaskCreated":
		return note{kind: msg.Task, shown: true, names: taskFields, attrs: "assignee dependencies description"}, true
	case "TaskUpdated":
		return note{kind: msg.Task, shown: true, names: taskFields, attrs: "previous_status assignee"}, true
	case "TaskStateUpdated":
		return note{kind: msg.Plan, shown: true, content: "tasks", attrs: "goal_complete completion_summary"}, true
	case "TaskIterationStarted", "TaskIterationCompleted":
		return note{names: "iteration", attrs: "max_iterations"}, true

	case "StepStarted", "StepContinued":
		return note{kind: msg.Task, shown: true, names: stepFields}, true
	case "StepCompleted":
		return note{kind: msg.Task, shown: true, names: stepFields}, true
	case "StepError":
		return note{kind: msg.Task, shown: true, content: "error", names: stepFields}, true
	case "StepOutput":
		return note{names: stepFields}, true
	case "StepPaused", "StepExecutorPaused", "StepExecutorContinued", "StepOutputReview", "ConditionPaused", "RouterPaused":
		return note{names: stepFields}, true
	case "LoopExecutionStarted", "LoopExecutionCompleted":
		return note{names: stepFields, attrs: "max_iterations total_iterations"}, true
	case "LoopIterationStarted", "LoopIterationCompleted":
		return note{names: stepFields + " iteration", attrs: "max_iterations should_continue"}, true
	case "ParallelExecutionStarted", "ParallelExecutionCompleted":
		return note{names: stepFields, attrs: "parallel_step_count"}, true
	case "ConditionExecutionStarted", "ConditionExecutionCompleted":
		return note{names: stepFields, attrs: "condition_result executed_steps"}, true
	case "RouterExecutionStarted", "RouterExecutionCompleted":
		return note{names: stepFields, attrs: "selected_steps executed_steps"}, true
	case "StepsExecutionStarted", "StepsExecutionCompleted":
		return note{names: stepFields, attrs: "steps_count executed_steps"}, true
	}
	return note{}, false
}

// note emits an event that only reports something.
func (s *stream) note(r *run, e *event) {
	n, _ := noteOf(e.name)
	name := string(e.name)
	if name == "ReasoningCompleted" { // ends the text of a reasoning model
		s.emitPiece(r, e.at, msg.Complete, msg.Plain(string(r.Said.Text)))
		e.markSteps(r)
	}
	var parts []string
	for field := range strings.FieldsSeq(n.names) {
		if v := asText(e.v.Get(field)).String(); v != "" {
			parts = append(parts, field+"="+v)
		}
	}
	key := name + "/" + e.second()
	if len(parts) > 0 {
		key += "/" + msg.HashKey(parts...)[:16]
	}
	m := s.addMessage(r, msg.Status, key, e.at)
	if n.kind != msg.Unknown {
		m.Kind = n.kind
	}
	m.Hidden, m.Signal = !n.shown, n.signal
	m.SetAttr("type", name)
	for field := range strings.FieldsSeq(n.names + " " + n.attrs) {
		m.SetAttr(field, asText(e.v.Get(field)).String())
	}
	if n.content != "" {
		m.Content = summaryText(e.v.Get(n.content))
	}
	s.step(r, e, m)
	switch name {
	case "TaskCreated":
		r.learnTask(e.v)
		m.Content = e.v.First("title", "description").Text()
	case "TaskUpdated":
		m.Content = e.v.Get("title").Text()
	case "StepStarted", "StepContinued":
		m.Content = e.v.Get("step_name").Text()
	case "StepCompleted":
		m.Content = s.stepContent(r, e)
	case "StepError":
		m.IsError = true
	}
}

// stepContent returns the output of a step, unless it repeats the last text of the step's
// agent.
func (s *stream) stepContent(r *run, e *event) msg.Text {
	text := asText(e.content)
	sum := s.hashOf(text)
	for _, h := range r.Steps {
		if h == sum {
			return msg.Text{}
		}
	}
	return text
}

// summaryText returns the text of a session's summary or of memories, and other values
// as JSON.
func summaryText(v jsonv.Value) msg.Text {
	if v.Is(jsonv.Object) {
		if t := v.First("summary", "content", "memory"); t.Is(jsonv.String) {
			return t.Text()
		}
	}
	if v.Is(jsonv.Array) && v.Len() == 0 {
		return msg.Text{}
	}
	return asText(v)
}

// reasoningStep emits a step of reasoning:
//
//	{"event":"ReasoningStep","content":{"title":"…","reasoning":"…","action":"…","result":"…","confidence":0.9},
//	 "content_type":"ReasoningStep","reasoning_content":"all steps so far"}
//
// The run's last event repeats the text of all steps so far.
func (s *stream) reasoningStep(r *run, e *event) {
	var b strings.Builder
	for _, p := range [...]struct{ field, label string }{
		{"title", ""}, {"reasoning", ""}, {"action", "Action: "}, {"result", "Result: "},
	} {
		if t := e.content.Get(p.field).Text(); !t.IsZero() {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(p.label + t.String())
		}
	}
	text := msg.Plain(b.String())
	if text.IsZero() {
		text = asText(e.v.First("content", "reasoning_content"))
	}
	m := s.addMessage(r, msg.Reasoning, "step/"+e.second()+"/"+msg.HashKey(text.String())[:16], e.at)
	m.Role, m.Content = msg.RoleAssistant, text
	m.Model, m.Provider, m.ResponseID = r.Model, r.Provider, r.Reply
	m.SetAttr("type", "ReasoningStep")
	m.SetAttr("confidence", number(e.content.Get("confidence")))
	m.SetAttr("next_action", ident(e.content.Get("next_action")))
	r.Thought = true
	e.reasoning.MarkRead() // all steps so far
}
