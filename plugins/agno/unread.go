package agno

import (
	_ "embed"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// The protocol has most values more than once. A value counts as read where a message has it,
// where it equals a value of a message, and where its place makes it a copy; every other
// value is kept as an unknown field when its frame is decoded.

// rest keeps the unread values.
var rest = unknown.NewKeeper(leavesOut)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// read decodes a document, and keeps its unread values.
func (s *stream) read(data []byte, decode func(root jsonv.Value)) {
	root, ok := s.parse(data)
	if !ok {
		return
	}
	before := len(s.out.Messages)
	decode(root)
	rest.Keep(&s.doc, s.out, before, func(m *msg.Message) {
		m.Session, m.Run = s.sessionFor(root.Get("session_id")), ident(root.Get("run_id"))
	})
}

// markEnvelope marks the fields of an event that the messages of its run have already.
func (s *stream) markEnvelope(r *run, e *event) {
	e.run.MarkRead()
	markKnown(e.session, r.Session)
	markKnown(e.parent, r.Parent)
	markKnown(e.label, r.Agent.Name)
	e.agent.Equal(r.Agent.ID)
	e.team.Equal(r.Agent.ID)
	if r.Agent.Kind == msg.KindWorkflow {
		e.workflow.Equal(r.Agent.ID)
		e.workflowName.Equal(r.Agent.Name)
		return
	}
	if !e.workflowRun.Exists() && !e.workflow.Exists() {
		return
	}
	for p, n := r, 0; p != nil && n < maxTasks; p, n = s.runs[p.Parent], n+1 {
		markKnown(e.workflowRun, p.ID)
	}
	markKnown(e.workflowRun, r.Parent)
	e.workflow.MarkRead()
	e.workflowName.MarkRead()
	e.step.MarkRead()
	e.stepName.MarkRead()
}

// markKnown marks an id or a name that equals the known one.
func markKnown(v jsonv.Value, id string) {
	if !v.Equal(id) && len(id) == len(msg.HashKey("")) && peekID(v) == id { // a long one, replaced by its hash
		v.MarkRead()
	}
}

// markRepeat marks a value that repeats an emitted text.
func (s *stream) markRepeat(v jsonv.Value, text hash) {
	if v.Is(jsonv.String) && s.hashOf(peekText(v)) == text {
		v.MarkRead()
	}
}

// markSteps marks the steps of a thought, when they were emitted one by one.
func (e *event) markSteps(r *run) {
	if r.Thought {
		markCopies(e.v, "reasoning_steps")
		markCopies(e.content, "reasoning_steps")
	}
}

// markCopies marks the members of that name, which are copies.
func markCopies(v jsonv.Value, names ...string) {
	for _, name := range names {
		v.Get(name).MarkRead()
	}
}

// markStored marks the values of a stored run that repeat its decoded tree.
func (s *stream) markStored(v jsonv.Value) {
	b := s.index
	markKnown(v.Get("session_id"), s.session)
	for x := range v.Get("step_executor_runs").Elems() {
		s.markStored(x)
	}
	id := peekID(v.Get("run_id"))
	if b.inEvents[id] {
		markCopies(v, "events")
	}
	stampOf(v.Get("created_at"))
	first := b.firstEvent[id]
	for k, x := range first.Members() {
		if m := v.Get(k.String()); m.Is(jsonv.String) && m.PeekStr() == x.PeekStr() {
			m.MarkRead()
		}
	}
	if !first.Exists() && v.Get("messages").Len() == 0 {
		return
	}
	markCopies(v, "content", "reasoning_content", "reasoning_steps", "reasoning_messages")
	textOnly := make(map[jsonv.Value]bool) // messages whose text is in no event
	if p := b.pieces[id]; p != nil {
		for _, x := range p.list {
			for _, m := range x.from {
				textOnly[m] = true
			}
		}
	}
	skip, input := v.Get("forked_from_message_index").Int(), inputOf(v).String()
	for m := range v.Get("messages").Elems() {
		if skip > 0 || m.Get("from_history").Bool() || first.Exists() && m.Get("role").In("assistant", "model", "tool", "function") {
			markCopies(m, "tool_calls", "tool_call_id", "tool_name", "tool_args")
			if !textOnly[m] {
				markCopies(m, "content", "reasoning_content")
			}
		}
		skip--
		markCopies(m, "tool_name", "tool_args")
		if c := m.Get("content"); c.PeekStr() == input {
			c.MarkRead()
		}
	}
	for t := range v.Get("tools").Elems() {
		markCopies(t, "tool_call_id", "tool_name", "tool_args", "result")
	}
}
