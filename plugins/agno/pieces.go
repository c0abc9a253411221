package agno

import (
	"iter"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// pieces are the texts of a stored run that are not emitted yet, in order, with the keys of a
// stream.
type pieces struct {
	list []piece
	any  bool
}

type piece struct {
	after  string
	last   string        // the call before it
	before []string      // the calls of the message that has the piece, or the next that has any
	from   []jsonv.Value // messages
}

// maxAhead limits the search for the piece that ends now. It is the next one, unless the
// run's events have gaps.
const maxAhead = 256

// ownMessages yields the messages that belong to a run: not those of its history, nor those
// of the run that it was forked from.
func ownMessages(v jsonv.Value) iter.Seq[jsonv.Value] {
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
	for m := range ownMessages(v) {
		if role := m.Get("role"); !role.Equal("assistant") && !role.Equal("model") {
			continue
		}
		if hasText(m.Get("content")) || !peekText(m.Get("reasoning_content")).IsZero() {
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

// take removes and returns the piece that is over: with that call, or with no more calls.
func (p *pieces) take(r *run, call string) (x piece, ok bool) {
	leg := r.Leg != "" && r.Said.After == r.Leg
	for i := range min(len(p.list), maxAhead) {
		x = p.list[i]
		switch {
		case x.after != r.Said.After && !leg:
		case x.last != "" && !r.knows(x.last): // follows later: the run has paused
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
		return asText(v)
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
		return !peekText(v).IsZero()
	}
	for p := range v.Elems() {
		if p.PeekStr() != "" || p.Get("text").PeekStr() != "" {
			return true
		}
	}
	return false
}

// fillText sets the text of the open piece from the stored messages when a stored run's
// events are replayed: a stream has it in deltas. call is the one that ends the piece.
func (s *stream) fillText(r *run, call string) {
	if s.index.summary || len(r.Said.Text)+len(r.Said.Thinking) > 0 {
		return
	}
	v, ok := s.index.runs[r.ID]
	if !ok {
		return
	}
	p := s.index.pieces[r.ID]
	if p == nil {
		p = r.piecesOf(v)
		s.index.pieces[r.ID] = p
	}
	if x, ok := p.take(r, call); ok {
		for _, m := range x.from {
			s.appendText(r, textOf(m.Get("content")), m.Get("reasoning_content").Text())
		}
	}
}

// splitByCalls reports whether the texts of a stored run were emitted between its calls.
func (s *stream) splitByCalls(r *run) bool {
	p := s.index.pieces[r.ID]
	if p == nil || !p.any {
		return len(r.Over) == 0
	}
	return len(p.list) == 0
}

// emitStoredPrompt emits the prompt of a stored run.
func (s *stream) emitStoredPrompt(r *run, at stamp) {
	v, ok := s.index.runs[r.ID]
	if !ok {
		return
	}
	for m := range ownMessages(v) {
		if role := m.Get("role"); role.Equal("system") || role.Equal("developer") {
			m2 := s.addMessage(r, msg.System, "system", at)
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
	m := s.addInput(r, at, text, by)
	if r.Parent == "" {
		m.Agent.Kind = msg.KindHuman
		m.SetAttr("user_id", ident(v.Get("user_id")))
	}
}

// inputOf returns the prompt of a stored run.
func inputOf(v jsonv.Value) msg.Text {
	if t := v.Get("run_input"); t.Exists() {
		return asText(t)
	}
	if in := v.Get("input"); in.Is(jsonv.Object) && in.Get("input_content").Kind() != jsonv.Missing {
		return asText(in.Get("input_content"))
	}
	return asText(v.Get("input"))
}
