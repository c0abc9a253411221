package agno

import (
	"iter"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// A stored run has its messages as they were sent to the model. They have the texts, which its
// events lack, and all of a run that was stored without events:
//
//	{"role":"user","content":"…","created_at":1770000000}
//	{"role":"assistant","content":"…","reasoning_content":"…","tool_calls":[{"id":"c1","function":{"name":"…","arguments":"{…}"}}],"metrics":{…}}
//	{"role":"tool","tool_call_id":"c1","tool_name":"…","tool_args":{…},"content":"…","tool_call_error":false}

// ownMessages yields the messages that belong to a run: not those of its history, nor those
// of the run that it was forked from.
func ownMessages(v jsonv.Value) iter.Seq[jsonv.Value] {
	return func(yield func(jsonv.Value) bool) {
		skip := v.Get("forked_from_message_index").Int()
		for m := range v.Get("messages").Elems() {
			if skip--; skip < 0 && !m.Get("from_history").Bool() && !yield(m) {
				return
			}
		}
	}
}

// textOf returns a message's text: a string, or the text parts of a list.
func textOf(v jsonv.Value) msg.Text {
	if !v.Is(jsonv.Array) {
		return asText(v)
	}
	var all []byte
	for p := range v.Elems() {
		for _, t := range [...]jsonv.Value{p, p.Get("text")} {
			all = append(all, t.Str()...)
		}
	}
	return msg.Plain(string(all))
}

// inputOf returns the prompt of a stored run.
func inputOf(v jsonv.Value) msg.Text {
	if t := v.Get("run_input"); t.Exists() {
		return asText(t)
	}
	if in := v.Get("input"); in.Get("input_content").Kind() != jsonv.Missing {
		return asText(in.Get("input_content"))
	}
	return asText(v.Get("input"))
}

// emitPrompt emits the prompt of a stored run.
func (b *body) emitPrompt(r *run, at conversation.Time) {
	v := b.stored(r)
	for m := range ownMessages(v) {
		if m.Get("role").In("system", "developer") {
			x := r.add(msg.System, r.key("system"), at)
			x.Role, x.Hidden, x.Content = msg.RoleSystem, true, textOf(m.Get("content"))
			break
		}
	}
	text := inputOf(v)
	if text.IsZero() {
		return
	}
	m := r.input(at, text, msg.Agent{})
	if p := r.parent(); p != nil {
		m.Agent = p.Agent
	}
	if r.Parent == "" {
		m.Agent.Kind = msg.KindHuman
		conversation.AttrsAs(m, v, ident.OrNumber, "user_id")
	}
}

// decodeMessages decodes a run from its messages.
func (b *body) decodeMessages(v jsonv.Value, parent *run) {
	b.summary++
	defer func() { b.summary-- }()
	r := &run{s: b.s, Session: b.s.sessionFor(v.Get("session_id")), Agent: b.s.owner(v)}
	r.ID = ident.Of(v.Get("run_id"))
	b.s.Runs.add(r)
	if r.Parent = ident.OrNumber(v.First("parent_run_id", "workflow_run_id")); r.Parent == r.ID {
		r.Parent = ""
	}
	if parent != nil {
		r.Parent = parent.ID
		parent.Calls.linkStored(parent, r, inputOf(v))
		parent.addBelow(r)
		parent.Calls.infer(parent, r, parent.Last)
	}
	e := event{v: v, at: conversation.TimeOf(v.Get("created_at"))}
	r.start(&e)
	b.readMessages(r, v)
	if r.Last.Nanos == 0 { // no message has a time: the end is the start and the duration
		until := e.at
		if took := measured(v.Get("metrics")); e.at.Nanos != 0 && took > 0 {
			until.Nanos += took
		} else if b.latestEnd.Nanos > e.at.Nanos {
			until = b.latestEnd
		}
		if b.reloadChildren(r); r.Last.Nanos < until.Nanos {
			r.Last = until
		}
	}
	b.finish(r, v)
}

func (b *body) readMessages(r *run, v jsonv.Value) {
	byResponse := v.Path("metrics", "details").Exists()
	for m := range ownMessages(v) {
		at := conversation.TimeOf(m.Get("created_at")).Or(r.Last)
		r.Last = at
		switch {
		case byModel(m):
			if byResponse {
				r.Usage.flush(r, msg.Complete)
				r.Usage.name(r)
				r.Usage.Replies++
			}
			r.Text.add(r, textOf(m.Get("content")), m.Get("reasoning_content").Text(), msg.Text{})
			b.readCalls(r, m, at)
			if t := tokens(m.Get("metrics"), r.Provider, r.Model); byResponse && !t.IsZero() {
				r.Usage.count(t, at)
			}
		case m.Get("role").In("tool", "function"), m.Get("tool_call_id").Exists():
			if m.Get("tool_calls").Len() == 0 {
				b.readResult(r, m, at)
			}
			for x := range m.Get("tool_calls").Elems() { // those of all calls
				b.readResult(r, x, at)
			}
		}
	}
}

// readCalls decodes the calls of a message, and the children that they caused.
func (b *body) readCalls(r *run, m jsonv.Value, at conversation.Time) {
	var made []*call
	for t := range m.Get("tool_calls").Elems() {
		f := t.Get("function")
		u := use{id: t.Get("id"), args: f.Get("arguments")}.of(f.Get("name"))
		if u.args.Is(jsonv.String) && b.s.inner.Parse([]byte(u.args.Str())) == nil {
			u.args = b.s.inner.Root()
		}
		if c := r.Calls.start(r, u, at); c != nil && c.Delegates {
			made = append(made, c)
		}
	}
	for _, c := range made {
		b.called(r, c)
	}
}

func (b *body) readResult(r *run, v jsonv.Value, at conversation.Time) {
	u := use{
		id: v.Get("tool_call_id"), args: v.Get("tool_args"), result: v.Get("content"), metrics: v.Get("metrics"),
		text: textOf, failed: v.Get("tool_call_error").Bool(),
	}
	if measured(u.metrics) == 0 {
		u.metrics = b.metricsOf(r.ID, ident.PeekOrNumber(u.id))
	}
	r.Calls.result(r, u.of(v.Get("tool_name")), at)
}

// metricsOf returns the metrics of a call in the tools of a stored run.
func (b *body) metricsOf(run, call string) jsonv.Value {
	st := b.run(run)
	if st.metrics == nil {
		st.metrics = make(map[string]jsonv.Value)
		for _, v := range [...]jsonv.Value{st.v, st.embedded} {
			for t := range v.Get("tools").Elems() {
				if m := t.Get("metrics"); measured(m) != 0 {
					st.metrics[ident.PeekOrNumber(t.Get("tool_call_id"))] = m
				}
			}
		}
	}
	return st.metrics[call]
}

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

// piecesOf finds the texts of a run. Two messages without a call between them are
// one piece, as they are in the deltas.
func piecesOf(r *run, v jsonv.Value) *pieces {
	p := &pieces{}
	after, latest, open := "", "", false
	for m := range ownMessages(v) {
		if !byModel(m) {
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
			id := ident.OrNumber(t.Get("id"))
			if id == "" {
				continue
			}
			latest = unique(r, id)
			if open {
				last := &p.list[len(p.list)-1]
				last.before = append(last.before, latest)
			}
			if after == "" {
				after = latest
			}
		}
		open = open && after == ""
	}
	p.any = len(p.list) > 0
	return p
}

// hasText reports whether a message's content has text.
func hasText(v jsonv.Value) bool {
	for p := range v.Elems() {
		if p.PeekStr() != "" || p.Get("text").PeekStr() != "" {
			return true
		}
	}
	return !v.Is(jsonv.Array) && !peekText(v).IsZero()
}

// take removes and returns the piece that is over: with that call, or with no more calls.
func (p *pieces) take(r *run, call string) (x piece) {
	resumed := r.Leg != "" && r.Text.After == r.Leg
	for i := range min(len(p.list), maxAhead) {
		x := p.list[i]
		switch {
		case x.after != r.Text.After && !resumed:
		case x.last != "" && !r.Calls.knows(x.last): // follows later: the run has paused
		case call != "" && !slices.Contains(x.before, call):
		case call == "" && slices.ContainsFunc(x.before, r.Calls.knows):
		default:
			p.list = without(p.list, i)
			return x
		}
	}
	return piece{}
}

// fillText sets the text of the open piece from the stored messages when a stored run's
// events are replayed: a stream has it in deltas. call is the one that ends the piece.
func (b *body) fillText(r *run, call string) {
	if b == nil || b.summary > 0 || len(r.Text.Text)+len(r.Text.Thinking) > 0 {
		return
	}
	st := b.run(r.ID)
	if st.pieces == nil {
		st.pieces = piecesOf(r, st.v)
	}
	for _, m := range st.pieces.take(r, call).from {
		r.Text.add(r, textOf(m.Get("content")), m.Get("reasoning_content").Text(), msg.Text{})
	}
}

// splitByCalls reports whether the texts of a stored run were emitted between its calls.
func (b *body) splitByCalls(r *run) bool {
	p := b.run(r.ID).pieces
	if p == nil || !p.any {
		return r.Calls.Over.Len() == 0
	}
	return len(p.list) == 0
}
