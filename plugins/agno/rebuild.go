package agno

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Limits of the work on a body: how deep runs are told inside one another, and how
// many children are tried for a call.
const (
	maxDepth = 256
	maxTried = 64
)

// object tells a stored run: by its events, or when it has none by its messages.
// parent is the run that embeds it or that it was called by, where that is known.
func (s *stream) object(v jsonv.Value, parent *run) {
	id := glance(v.Get("run_id"))
	if s.book.placed[id] || s.ended.has(id) || s.runs[id] != nil || s.book.depth > maxDepth {
		return
	}
	s.book.placed[id] = true
	s.book.depth++
	defer func() { s.book.depth-- }()
	story := s.book.story(v, 0)
	for _, t := range story {
		if e := t.event.Get("run_id"); e.Exists() {
			s.book.placed[glance(e)] = true
		} else {
			s.book.placed[glance(t.run.Get("run_id"))] = true
		}
		s.event(t.event, t.run)
	}
	if len(story) == 0 {
		if e := s.book.embeds[id]; e.Get("messages").Len() >= v.Get("messages").Len() && e.Exists() {
			s.rebuild(e, parent)
			s.copies(e)
			s.book.says[id] = e
		} else {
			s.rebuild(v, parent)
		}
	}
	if r := s.runs[id]; r != nil {
		s.rest(r)
	}
	for _, c := range s.book.children[id] {
		if r := s.runs[glance(c.Get("run_id"))]; r != nil {
			s.finish(r, c)
		} else {
			s.object(c, s.runs[id])
		}
	}
	if r := s.runs[id]; r != nil {
		s.finish(r, v)
	}
	s.lineage(id, v)
}

// rest tells the children of a stored run that none of its calls was found for, before the
// run ends.
func (s *stream) rest(r *run) {
	if s.book == nil {
		return
	}
	list := s.book.children[r.ID]
	if len(list) > 1 { // they are stored as they end
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b jsonv.Value) int {
			return cmp.Compare(stampOf(a.Get("created_at")).NS, stampOf(b.Get("created_at")).NS)
		})
	}
	for _, c := range list {
		if !s.book.inEvents[glance(c.Get("run_id"))] {
			s.object(c, r)
		}
	}
	for x := range s.book.objects[r.ID].Get("step_executor_runs").Elems() { // of a workflow's agents
		if id := glance(x.Get("run_id")); id != "" && !s.book.inEvents[id] {
			s.object(x, r)
		}
	}
}

// members tells the child runs that a team's last event embeds and whose own
// events did not come: the team does not stream them.
func (s *stream) members(r *run, list jsonv.Value) {
	for v := range list.Elems() {
		id := glance(v.Get("run_id"))
		if id == "" || id == r.ID || s.runs[id] != nil || s.ended.has(id) || s.book != nil && s.book.placed[id] {
			v.MarkRead() // told by its own events
			continue
		}
		if s.book != nil {
			s.object(v, r)
			continue
		}
		s.book = newBook(v)
		s.object(v, r)
		s.copies(v)
		s.book = nil
		s.ended.limit(maxEnded)
	}
}

// rebuild tells a run by its messages.
func (s *stream) rebuild(v jsonv.Value, parent *run) {
	before := s.book.summary
	s.book.summary = true
	defer func() { s.book.summary = before }()

	r := s.begin(ident(v.Get("run_id")))
	r.Session = s.sessionFor(v.Get("session_id"))
	r.Agent = s.owner(v)
	r.Parent = ident(v.First("parent_run_id", "workflow_run_id"))
	if r.Parent == r.ID {
		r.Parent = ""
	}
	if parent != nil {
		r.Parent = parent.ID
		s.match(parent, r, inputOf(v))
		s.below(parent, r)
		s.infer(parent, r, parent.Last)
	}
	e := event{v: v, at: stampOf(v.Get("created_at"))}
	s.start(r, &e)
	s.messages(r, v)
	if r.Last.NS == 0 { // nothing of its own says when it ended but how long it took
		until := e.at
		switch took := measured(v.Get("metrics")); {
		case e.at.NS != 0 && took > 0:
			until.NS += took
		case s.book.until.NS > e.at.NS:
			until = s.book.until
		}
		if s.rest(r); r.Last.NS < until.NS {
			r.Last = until
		}
	}
	s.finish(r, v)
}

// owner returns whose run it is.
func (s *stream) owner(v jsonv.Value) msg.Agent {
	var e event
	e.read(v)
	return s.actor(&e)
}

// messages tells what the stored messages of a run say.
func (s *stream) messages(r *run, v jsonv.Value) {
	byResponse := v.Path("metrics", "details").Exists()
	for m := range own(v) {
		at := stampOf(m.Get("created_at")).or(r.Last)
		r.Last = at
		switch role := m.Get("role"); {
		case role.Equal("assistant"), role.Equal("model"):
			if byResponse {
				s.counted(r)
				r.Reply = r.response(r.Replies)
				r.Replies++
			}
			s.hear(r, textOf(m.Get("content")), m.Get("reasoning_content").Text())
			s.calls(r, m, at)
			if t := tokens(m.Get("metrics"), r.Provider, r.Model); byResponse && !t.IsZero() {
				r.Counted = true
				r.Cost = &cost{Tokens: t, At: at}
			}
		case role.Equal("tool"), role.Equal("function"), m.Get("tool_call_id").Exists():
			s.results(r, m, at)
		}
	}
}

// calls tells the calls of a message, and the children that they caused.
func (s *stream) calls(r *run, m jsonv.Value, at stamp) {
	var made []*call
	for t := range m.Get("tool_calls").Elems() {
		f := t.Get("function")
		u := use{id: t.Get("id"), name: glance(f.Get("name")), named: f.Get("name"), args: f.Get("arguments"), text: written}
		if u.args.Is(jsonv.String) {
			if s.inner.Parse([]byte(u.args.Str())) == nil {
				u.args = s.inner.Root()
			}
		}
		if u.name == "" {
			u.name = "unknown"
		}
		if c := s.issue(r, u, at); c != nil && c.Delegates {
			made = append(made, c)
		}
	}
	for _, c := range made {
		s.caused(r, c)
	}
}

// caused tells the children that a call caused, as far as they can be told from
// those of other calls.
func (s *stream) caused(r *run, c *call) {
	rest, ok := s.book.untold[r.ID]
	if !ok {
		rest = slices.Clone(s.book.children[r.ID])
	}
	for i := 0; i < min(len(rest), maxTried); {
		child := rest[i]
		placed := s.book.placed[glance(child.Get("run_id"))]
		if !placed && !s.answers(child, c) {
			i++
			continue
		}
		rest = without(rest, i)
		if placed {
			continue
		}
		s.book.untold[r.ID] = rest
		s.object(child, r)
		if !c.Many {
			return
		}
	}
	s.book.untold[r.ID] = rest
}

// without takes one of the first elements out of a list, at a cost that does not
// depend on how long it is.
func without[T any](list []T, i int) []T {
	copy(list[1:i+1], list[:i])
	return list[1:]
}

// answers reports whether a stored run may be the child of a call.
func (s *stream) answers(child jsonv.Value, c *call) bool {
	id := glance(child.Get("run_id"))
	if s.book.placed[id] || s.runs[id] != nil || s.ended.has(id) || s.book.inEvents[id] && !s.book.summary {
		return false // told already, or by events that are still to come
	}
	input := inputOf(child).String()
	return c.Task != "" && strings.Contains(input, c.Task) || names(c.To, s.owner(child))
}

// results tells the results that a message has: one, or those of all calls.
func (s *stream) results(r *run, m jsonv.Value, at stamp) {
	give := func(v jsonv.Value) {
		u := use{
			id: v.Get("tool_call_id"), name: glance(v.Get("tool_name")), named: v.Get("tool_name"),
			args: v.Get("tool_args"), result: v.Get("content"), text: textOf,
		}
		u.failed = v.Get("tool_call_error").Bool()
		if u.metrics = v.Get("metrics"); measured(u.metrics) == 0 {
			u.metrics = s.book.metricsOf(r.ID, glance(u.id))
		}
		if u.name == "" {
			u.name = "unknown"
		}
		s.result(r, u, at)
	}
	if list := m.Get("tool_calls"); list.Len() > 0 {
		for v := range list.Elems() {
			give(v)
		}
		return
	}
	give(m)
}

// metricsOf returns what the list of a stored run's tools measured of a call.
func (b *book) metricsOf(run, call string) jsonv.Value {
	list, ok := b.metrics[run]
	if !ok {
		list = make(map[string]jsonv.Value)
		for _, v := range [...]jsonv.Value{b.objects[run], b.embeds[run]} {
			for t := range v.Get("tools").Elems() {
				if id, m := glance(t.Get("tool_call_id")), t.Get("metrics"); measured(m) != 0 {
					list[id] = m
				}
			}
		}
		b.metrics[run] = list
	}
	return list[call]
}

// finish ends a run as its stored state says.
func (s *stream) finish(r *run, v jsonv.Value) {
	if s.runs[r.ID] != r {
		return
	}
	before := s.book.summary
	s.book.summary = true
	defer func() { s.book.summary = before }()
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

// lineage gives where a run comes from, and that another took its place.
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
