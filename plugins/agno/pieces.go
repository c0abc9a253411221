package agno

import (
	"iter"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// pieces are the texts of a stored run, in order, named as in a stream. What was
// used is taken out.
type pieces struct {
	list []piece
	any  bool
}

type piece struct {
	after  string
	last   string        // call before it
	before []string      // the calls of the message that has the piece, or the next that has any
	from   []jsonv.Value // messages
}

// maxAhead is how many pieces are looked at for the one that is over. The next one
// is, unless the run was told with gaps.
const maxAhead = 256

// own yields the messages that belong to a run: not those of its history, nor those
// of the run that it was forked from.
func own(v jsonv.Value) iter.Seq[jsonv.Value] {
	return func(yield func(jsonv.Value) bool) {
		skip := v.Get("forked_from_message_index").Int()
		for m := range v.Get("messages").Elems() {
			if skip > 0 {
				skip--
				continue
			}
			if !m.Get("from_history").Bool() && !yield(m) {
				return
			}
		}
	}
}

// piecesOf finds the texts of a run. Two messages without a call between them are
// one piece, as they are in the deltas.
func (r *run) piecesOf(v jsonv.Value) *pieces {
	p := &pieces{}
	after, latest, open := "", "", false
	for m := range own(v) {
		if role := m.Get("role"); !role.Equal("assistant") && !role.Equal("model") {
			continue
		}
		if hasText(m.Get("content")) || !glimpse(m.Get("reasoning_content")).IsZero() {
			if !open {
				p.list = append(p.list, piece{after: after, last: latest})
				after, open = "", true
			}
			last := &p.list[len(p.list)-1]
			last.from = append(last.from, m)
		}
		for t := range m.Get("tool_calls").Elems() {
			id := ident(t.Get("id"))
			if id == "" {
				continue
			}
			id = r.unique(id)
			if open {
				last := &p.list[len(p.list)-1]
				last.before = append(last.before, id)
			}
			if latest = id; after == "" {
				after = id
			}
		}
		open = open && after == ""
	}
	p.any = len(p.list) > 0
	return p
}

// take takes out the piece that is over: with that call, or with no more calls.
func (p *pieces) take(r *run, call string) (x piece, ok bool) {
	leg := r.Leg != "" && r.Said.After == r.Leg
	for i := range min(len(p.list), maxAhead) {
		x = p.list[i]
		switch {
		case x.after != r.Said.After && !leg:
		case x.last != "" && !r.knows(x.last): // comes later: the run has paused
		case call != "" && !slices.Contains(x.before, call):
		case call == "" && slices.ContainsFunc(x.before, r.knows):
		default:
			p.list = without(p.list, i)
			return x, true
		}
	}
	return piece{}, false
}

// textOf returns a message's text: a string, or the text parts of a list.
func textOf(v jsonv.Value) msg.Text {
	if !v.Is(jsonv.Array) {
		return written(v)
	}
	var all []byte
	for p := range v.Elems() {
		if t := p.Get("text"); t.Is(jsonv.String) {
			all = t.Text().Append(all)
		} else if p.Is(jsonv.String) {
			all = p.Text().Append(all)
		}
	}
	return msg.Plain(string(all))
}

// hasText reports whether a message's content has text.
func hasText(v jsonv.Value) bool {
	if !v.Is(jsonv.Array) {
		return !glimpse(v).IsZero()
	}
	for p := range v.Elems() {
		if p.PeekStr() != "" || p.Get("text").PeekStr() != "" {
			return true
		}
	}
	return false
}

// fill puts in what the deltas would have brought, when a stored run's events are
// played. call is the one that ends the piece.
func (s *stream) fill(r *run, call string) {
	if s.book.summary || len(r.Said.Text)+len(r.Said.Thinking) > 0 {
		return
	}
	v, ok := s.book.objects[r.ID]
	if !ok {
		return
	}
	p := s.book.pieces[r.ID]
	if p == nil {
		p = r.piecesOf(v)
		s.book.pieces[r.ID] = p
	}
	if x, ok := p.take(r, call); ok {
		for _, m := range x.from {
			s.hear(r, textOf(m.Get("content")), m.Get("reasoning_content").Text())
		}
	}
}

// apart reports whether the texts of a stored run are told as they came between its
// calls.
func (s *stream) apart(r *run) bool {
	p := s.book.pieces[r.ID]
	if p == nil || !p.any {
		return len(r.Over) == 0
	}
	return len(p.list) == 0
}

// bookPrompt gives what a stored run was asked.
func (s *stream) bookPrompt(r *run, at stamp) {
	v, ok := s.book.objects[r.ID]
	if !ok {
		return
	}
	for m := range own(v) {
		if role := m.Get("role"); role.Equal("system") || role.Equal("developer") {
			m2 := s.add(r, msg.System, "system", at)
			m2.Role, m2.Hidden, m2.Content = msg.RoleSystem, true, textOf(m.Get("content"))
			break
		}
	}
	text := inputOf(v)
	if text.IsZero() {
		return
	}
	var by msg.Agent
	if p := s.runs[r.Parent]; p != nil {
		by = p.Agent
	}
	m := s.input(r, at, text, by)
	if r.Parent == "" {
		m.Agent.Kind = msg.KindHuman
		m.SetAttr("user_id", ident(v.Get("user_id")))
	}
}

// inputOf returns what a stored run was asked.
func inputOf(v jsonv.Value) msg.Text {
	if t := v.Get("run_input"); t.Exists() {
		return written(t)
	}
	if in := v.Get("input"); in.Is(jsonv.Object) && in.Get("input_content").Kind() != jsonv.Missing {
		return written(in.Get("input_content"))
	}
	return written(v.Get("input"))
}
