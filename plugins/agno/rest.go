package agno

import (
	_ "embed"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// The protocol says most things more than once. A value counts as read where it is given,
// where it equals what was given, and where it is a copy by its place; everything else is
// kept when its frame is decoded.

// rest keeps what was not read.
var rest = unknown.NewKeeper(leavesOut)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// read decodes a document, and keeps what was not read of it.
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

// envelope marks what an event says of its run and the run's messages say already.
func (s *stream) envelope(r *run, e *event) {
	e.run.MarkRead()
	known(e.session, r.Session)
	known(e.parent, r.Parent)
	known(e.label, r.Agent.Name)
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
		known(e.workflowRun, p.ID)
	}
	known(e.workflowRun, r.Parent)
	e.workflow.MarkRead()
	e.workflowName.MarkRead()
	e.step.MarkRead()
	e.stepName.MarkRead()
}

// known marks an id or a name that is the one that is known.
func known(v jsonv.Value, id string) {
	if !v.Equal(id) && len(id) == len(msg.HashKey("")) && glance(v) == id { // a long one, replaced by its hash
		v.MarkRead()
	}
}

// repeats marks a value whose text was told.
func (s *stream) repeats(v jsonv.Value, told hash) {
	if v.Is(jsonv.String) && s.hashOf(glimpse(v)) == told {
		v.MarkRead()
	}
}

// stepsTold marks the steps of a thought, when they were told one by one.
func (e *event) stepsTold(r *run) {
	if r.Thought {
		leave(e.v, "reasoning_steps")
		leave(e.content, "reasoning_steps")
	}
}

// leave marks the members of that name, which are copies.
func leave(v jsonv.Value, names ...string) {
	for _, name := range names {
		v.Get(name).MarkRead()
	}
}

// copies marks what a stored run says once more, now that its tree is told.
func (s *stream) copies(v jsonv.Value) {
	b := s.book
	known(v.Get("session_id"), s.session)
	for x := range v.Get("step_executor_runs").Elems() {
		s.copies(x)
	}
	id := glance(v.Get("run_id"))
	if b.inEvents[id] {
		leave(v, "events")
	}
	stampOf(v.Get("created_at"))
	says := b.says[id]
	for k, x := range says.Members() {
		if m := v.Get(k.String()); m.Is(jsonv.String) && m.PeekStr() == x.PeekStr() {
			m.MarkRead()
		}
	}
	if !says.Exists() && v.Get("messages").Len() == 0 {
		return
	}
	leave(v, "content", "reasoning_content", "reasoning_steps", "reasoning_messages")
	untold := make(map[jsonv.Value]bool) // messages whose text no event has a place for
	if p := b.pieces[id]; p != nil {
		for _, x := range p.list {
			for _, m := range x.from {
				untold[m] = true
			}
		}
	}
	skip, input := v.Get("forked_from_message_index").Int(), inputOf(v).String()
	for m := range v.Get("messages").Elems() {
		if skip > 0 || m.Get("from_history").Bool() || says.Exists() && m.Get("role").In("assistant", "model", "tool", "function") {
			leave(m, "tool_calls", "tool_call_id", "tool_name", "tool_args")
			if !untold[m] {
				leave(m, "content", "reasoning_content")
			}
		}
		skip--
		leave(m, "tool_name", "tool_args")
		if c := m.Get("content"); c.PeekStr() == input {
			c.MarkRead()
		}
	}
	for t := range v.Get("tools").Elems() {
		leave(t, "tool_call_id", "tool_name", "tool_args", "result")
	}
}
