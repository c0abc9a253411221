package agno

import (
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
	id := ident(v.Get("run_id"))
	if s.book.placed[id] || s.ended.has(id) || s.runs[id] != nil || s.book.depth > maxDepth {
		return
	}
	s.book.placed[id] = true
	s.book.depth++
	defer func() { s.book.depth-- }()
	events := v.Get("events")
	played := false
	for e := range events.Elems() {
		if e.Is(jsonv.Object) {
			played = true
			s.book.placed[ident(e.Get("run_id"))] = true
			s.event(e)
		}
	}
	if !played {
		s.rebuild(v, parent)
	}
	for _, c := range s.book.children[id] {
		if r := s.runs[ident(c.Get("run_id"))]; r != nil {
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

// members tells the child runs that a team's last event embeds and whose own
// events did not come: the team does not stream them.
func (s *stream) members(r *run, list jsonv.Value) {
	for v := range list.Elems() {
		id := ident(v.Get("run_id"))
		if id == "" || id == r.ID || s.runs[id] != nil || s.ended.has(id) {
			continue
		}
		if s.book != nil {
			s.object(v, r)
			continue
		}
		s.book = newBook(v)
		s.object(v, r)
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
	r.Agent = owner(v)
	r.Parent = ident(first(v, "parent_run_id", "workflow_run_id"))
	if r.Parent == r.ID {
		r.Parent = ""
	}
	if parent != nil {
		r.Parent = parent.ID
		s.match(parent, r, inputOf(v))
	}
	e := event{v: v, at: stampOf(v.Get("created_at"))}
	s.start(r, &e)
	s.messages(r, v)
	r.Last = r.Last.or(e.at)
	s.finish(r, v)
}

// owner returns whose run it is.
func owner(v jsonv.Value) msg.Agent {
	var e event
	e.read(v)
	return e.actor()
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
		u := use{id: t.Get("id"), name: ident(f.Get("name")), args: f.Get("arguments")}
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
		placed := s.book.placed[ident(child.Get("run_id"))]
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
	id := ident(child.Get("run_id"))
	if s.book.placed[id] || s.runs[id] != nil || s.ended.has(id) {
		return false
	}
	input := inputOf(child).String()
	return c.Task != "" && strings.Contains(input, c.Task) || names(c.To, owner(child))
}

// results tells the results that a message has: one, or those of all calls.
func (s *stream) results(r *run, m jsonv.Value, at stamp) {
	give := func(v jsonv.Value) {
		u := use{id: v.Get("tool_call_id"), name: ident(v.Get("tool_name")), args: v.Get("tool_args"), result: textOf(v.Get("content"))}
		u.failed = v.Get("tool_call_error").Bool()
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

// finish ends a run as its stored state says.
func (s *stream) finish(r *run, v jsonv.Value) {
	if s.runs[r.ID] != r {
		return
	}
	before := s.book.summary
	s.book.summary = true
	defer func() { s.book.summary = before }()
	e := event{v: v, at: r.Last}
	e.content, e.reasoning = v.Get("content"), v.Get("reasoning_content")
	if v.Get("run_response_format").Equal("json") || !plain(v.Get("content_type")) {
		e.contentType = v.Get("run_response_format")
		if !e.contentType.Exists() {
			e.contentType = v.Get("content_type")
		}
	}
	switch status := v.Get("status"); {
	case status.Equal("PENDING"), status.Equal("RUNNING"):
	case status.Equal("PAUSED"):
		s.pause(r, &e)
	case status.Equal("CANCELLED"):
		s.cancel(r, &e)
	case status.Equal("ERROR"):
		s.fail(r, &e)
	default:
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
	m.Key, m.Session, m.Agent = id+"/lineage", s.sessionFor(v.Get("session_id")), owner(v)
	m.SetAttr("type", "lineage")
	m.SetAttr("run_id", id)
	m.Attrs = append(m.Attrs, attrs...)
}
