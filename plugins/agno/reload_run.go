package agno

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Limits of the work on a body: how deep runs are nested, and how many children are tried for
// a call.
const (
	maxDepth = 256
	maxTried = 64
)

// reloadRun decodes a stored run from its events, or from its messages when it has no events.
// parent is the run that embeds or called it, if that is known.
func (s *stream) reloadRun(v jsonv.Value, parent *run) {
	id := peekID(v.Get("run_id"))
	if s.index.decoded[id] || s.ended.has(id) || s.runs[id] != nil || s.index.depth > maxDepth {
		return
	}
	s.index.decoded[id] = true
	s.index.depth++
	defer func() { s.index.depth-- }()
	story := s.index.timeline(v, 0)
	for _, t := range story {
		if e := t.event.Get("run_id"); e.Exists() {
			s.index.decoded[peekID(e)] = true
		} else {
			s.index.decoded[peekID(t.run.Get("run_id"))] = true
		}
		s.event(t.event, t.run)
	}
	if len(story) == 0 {
		if e := s.index.embedded[id]; e.Get("messages").Len() >= v.Get("messages").Len() && e.Exists() {
			s.reloadFromMessages(e, parent)
			s.markStored(e)
			s.index.firstEvent[id] = e
		} else {
			s.reloadFromMessages(v, parent)
		}
	}
	if r := s.runs[id]; r != nil {
		s.reloadChildren(r)
	}
	for _, c := range s.index.children[id] {
		if r := s.runs[peekID(c.Get("run_id"))]; r != nil {
			s.finish(r, c)
		} else {
			s.reloadRun(c, s.runs[id])
		}
	}
	if r := s.runs[id]; r != nil {
		s.finish(r, v)
	}
	s.lineage(id, v)
}

// reloadChildren decodes the children of a stored run that match none of its calls, before
// the run ends.
func (s *stream) reloadChildren(r *run) {
	if s.index == nil {
		return
	}
	list := s.index.children[r.ID]
	if len(list) > 1 { // stored in the order of their ends
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b jsonv.Value) int {
			return cmp.Compare(stampOf(a.Get("created_at")).NS, stampOf(b.Get("created_at")).NS)
		})
	}
	for _, c := range list {
		if !s.index.inEvents[peekID(c.Get("run_id"))] {
			s.reloadRun(c, r)
		}
	}
	for x := range s.index.runs[r.ID].Get("step_executor_runs").Elems() { // of a workflow's agents
		if id := peekID(x.Get("run_id")); id != "" && !s.index.inEvents[id] {
			s.reloadRun(x, r)
		}
	}
}

// reloadEmbedded decodes the child runs that a team's last event embeds and whose own events
// are missing: the team does not stream them.
func (s *stream) reloadEmbedded(r *run, list jsonv.Value) {
	for v := range list.Elems() {
		id := peekID(v.Get("run_id"))
		if id == "" || id == r.ID || s.runs[id] != nil || s.ended.has(id) || s.index != nil && s.index.decoded[id] {
			v.MarkRead() // its own events were decoded
			continue
		}
		if s.index != nil {
			s.reloadRun(v, r)
			continue
		}
		s.index = newBodyIndex(v)
		s.reloadRun(v, r)
		s.markStored(v)
		s.index = nil
		s.ended.limit(maxEnded)
	}
}

// reloadFromMessages decodes a run from its messages.
func (s *stream) reloadFromMessages(v jsonv.Value, parent *run) {
	before := s.index.summary
	s.index.summary = true
	defer func() { s.index.summary = before }()

	r := s.addRun(ident(v.Get("run_id")))
	r.Session = s.sessionFor(v.Get("session_id"))
	r.Agent = s.owner(v)
	r.Parent = ident(v.First("parent_run_id", "workflow_run_id"))
	if r.Parent == r.ID {
		r.Parent = ""
	}
	if parent != nil {
		r.Parent = parent.ID
		s.linkStored(parent, r, inputOf(v))
		s.addBelow(parent, r)
		s.inferDelegation(parent, r, parent.Last)
	}
	e := event{v: v, at: stampOf(v.Get("created_at"))}
	s.start(r, &e)
	s.readMessages(r, v)
	if r.Last.NS == 0 { // no message has a time: the end is the start and the duration
		until := e.at
		switch took := measured(v.Get("metrics")); {
		case e.at.NS != 0 && took > 0:
			until.NS += took
		case s.index.latestEnd.NS > e.at.NS:
			until = s.index.latestEnd
		}
		if s.reloadChildren(r); r.Last.NS < until.NS {
			r.Last = until
		}
	}
	s.finish(r, v)
}

// owner returns the agent, team or workflow of a stored run.
func (s *stream) owner(v jsonv.Value) msg.Agent {
	var e event
	e.read(v)
	return s.actor(&e)
}

// readMessages decodes the stored messages of a run.
func (s *stream) readMessages(r *run, v jsonv.Value) {
	byResponse := v.Path("metrics", "details").Exists()
	for m := range ownMessages(v) {
		at := stampOf(m.Get("created_at")).or(r.Last)
		r.Last = at
		switch role := m.Get("role"); {
		case role.Equal("assistant"), role.Equal("model"):
			if byResponse {
				s.flushUsage(r)
				r.Reply = r.response(r.Replies)
				r.Replies++
			}
			s.appendText(r, textOf(m.Get("content")), m.Get("reasoning_content").Text())
			s.readCalls(r, m, at)
			if t := tokens(m.Get("metrics"), r.Provider, r.Model); byResponse && !t.IsZero() {
				r.Counted = true
				r.Cost = &cost{Tokens: t, At: at}
			}
		case role.Equal("tool"), role.Equal("function"), m.Get("tool_call_id").Exists():
			s.readResults(r, m, at)
		}
	}
}

// readCalls decodes the calls of a message, and the children that they caused.
func (s *stream) readCalls(r *run, m jsonv.Value, at stamp) {
	var made []*call
	for t := range m.Get("tool_calls").Elems() {
		f := t.Get("function")
		u := use{id: t.Get("id"), name: peekID(f.Get("name")), named: f.Get("name"), args: f.Get("arguments"), text: asText}
		if u.args.Is(jsonv.String) {
			if s.inner.Parse([]byte(u.args.Str())) == nil {
				u.args = s.inner.Root()
			}
		}
		if u.name == "" {
			u.name = "unknown"
		}
		if c := s.startCall(r, u, at); c != nil && c.Delegates {
			made = append(made, c)
		}
	}
	for _, c := range made {
		s.reloadCalled(r, c)
	}
}

// reloadCalled decodes the children of a call, as far as their task or member distinguishes
// them from the children of other calls.
func (s *stream) reloadCalled(r *run, c *call) {
	rest, ok := s.index.unmatched[r.ID]
	if !ok {
		rest = slices.Clone(s.index.children[r.ID])
	}
	for i := 0; i < min(len(rest), maxTried); {
		child := rest[i]
		placed := s.index.decoded[peekID(child.Get("run_id"))]
		if !placed && !s.answers(child, c) {
			i++
			continue
		}
		rest = without(rest, i)
		if placed {
			continue
		}
		s.index.unmatched[r.ID] = rest
		s.reloadRun(child, r)
		if !c.Many {
			return
		}
	}
	s.index.unmatched[r.ID] = rest
}

// without removes one of the first elements of a list, at a cost that does not depend on the
// list's length.
func without[T any](list []T, i int) []T {
	copy(list[1:i+1], list[:i])
	return list[1:]
}

// answers reports whether a stored run may be the child of a call.
func (s *stream) answers(child jsonv.Value, c *call) bool {
	id := peekID(child.Get("run_id"))
	if s.index.decoded[id] || s.runs[id] != nil || s.ended.has(id) || s.index.inEvents[id] && !s.index.summary {
		return false // decoded already, or by later events
	}
	input := inputOf(child).String()
	return c.Task != "" && strings.Contains(input, c.Task) || namesAgent(c.To, s.owner(child))
}

// readResults decodes the results in a message: one, or those of all calls.
func (s *stream) readResults(r *run, m jsonv.Value, at stamp) {
	emit := func(v jsonv.Value) {
		u := use{
			id: v.Get("tool_call_id"), name: peekID(v.Get("tool_name")), named: v.Get("tool_name"),
			args: v.Get("tool_args"), result: v.Get("content"), text: textOf,
		}
		u.failed = v.Get("tool_call_error").Bool()
		if u.metrics = v.Get("metrics"); measured(u.metrics) == 0 {
			u.metrics = s.index.metricsOf(r.ID, peekID(u.id))
		}
		if u.name == "" {
			u.name = "unknown"
		}
		s.emitResult(r, u, at)
	}
	if list := m.Get("tool_calls"); list.Len() > 0 {
		for v := range list.Elems() {
			emit(v)
		}
		return
	}
	emit(m)
}

// metricsOf returns the metrics of a call in the tools of a stored run.
func (b *bodyIndex) metricsOf(run, call string) jsonv.Value {
	list, ok := b.metrics[run]
	if !ok {
		list = make(map[string]jsonv.Value)
		for _, v := range [...]jsonv.Value{b.runs[run], b.embedded[run]} {
			for t := range v.Get("tools").Elems() {
				if id, m := peekID(t.Get("tool_call_id")), t.Get("metrics"); measured(m) != 0 {
					list[id] = m
				}
			}
		}
		b.metrics[run] = list
	}
	return list[call]
}

// finish ends a run by its stored status.
func (s *stream) finish(r *run, v jsonv.Value) {
	if s.runs[r.ID] != r {
		return
	}
	before := s.index.summary
	s.index.summary = true
	defer func() { s.index.summary = before }()
	e := event{v: v, at: r.Last}
	switch status := v.Get("status"); {
	case status.In("PENDING", "RUNNING"):
	case status.Equal("PAUSED"):
		s.pause(r, &e)
	case status.Equal("CANCELLED"):
		e.content = v.Get("content")
		s.cancel(r, &e)
	case status.Equal("ERROR"):
		e.content = v.Get("content")
		s.fail(r, &e)
	default:
		status.In("COMPLETED", "REGENERATED")
		s.complete(r, &e)
	}
}

// lineage emits the origin of a forked or regenerated run, and that another run replaced it.
func (s *stream) lineage(id string, v jsonv.Value) {
	var attrs []msg.Attr
	for _, field := range [...]string{"regenerated_from", "forked_from_run_id", "forked_from_session_id", "fork_id"} {
		if from := ident(v.Get(field)); from != "" {
			attrs = append(attrs, msg.Attr{Key: field, Value: from})
		}
	}
	if v.Get("status").Equal("REGENERATED") {
		attrs = append(attrs, msg.Attr{Key: "superseded", Value: "true"})
	}
	if len(attrs) == 0 {
		return
	}
	m := s.out.Add()
	m.Kind, m.Hidden, m.Complete = msg.Status, true, msg.Complete
	m.Key, m.Session, m.Agent = id+"/lineage", s.sessionFor(v.Get("session_id")), s.owner(v)
	m.SetAttr("type", "lineage")
	m.SetAttr("run_id", id)
	m.Attrs = append(m.Attrs, attrs...)
}
