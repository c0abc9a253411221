package agno

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// A stored run is decoded as a story: its moments in the order of a stream, which are its events, or what its
// messages say where it has no events. A run whose events are not among its parent's has a story of its own, which is
// told between the call that caused it and that call's result:
//
//	runs: [child {events: c c}, top {events: t call result t}]    told: t call c c result t

// moment is an event of a stored run, or what one of its messages says.
type moment struct {
	of    *storedRun
	in, v jsonv.Value // the stored run; the event, or the message
	rule  *rule
	at    conversation.Time
	said  bool // by a message, or by the run itself

	calls []string    // ids of the calls that begin or end, or for which the run waits
	to    string      // the member that a call names
	asks  *delegation // what the start of a call delegates
}

// aside is the story of a child that is told within its parent's.
type aside struct {
	st     *storedRun
	input  string
	agent  msg.Agent
	story  []moment
	call   int // index of the parent's delegation; -1 when none fits
	result int // index of that call's result
}

// storyOf returns the story of a stored run, with those of the children that have their own.
func (b *body) storyOf(v jsonv.Value, depth int) []moment {
	id := runID(v)
	st := b.run(id)
	st.told = true
	own := b.eventsOf(v)
	if len(own) == 0 {
		if e := st.embedded; e.Exists() && e.Get("messages").Len() >= v.Get("messages").Len() {
			v, st.first = e, e
		}
		own = b.messagesOf(v)
	}
	var children []*aside
	for _, c := range st.children {
		if child := b.run(runID(c)); !b.known(runID(c)) && !child.inEvents && depth < maxDepth {
			child.under = id
			story := b.storyOf(c, depth+1)
			children = append(children, &aside{st: child, input: inputOf(c).String(), agent: b.s.owner(c), story: story, call: -1, result: -1})
		}
	}
	if len(children) == 0 {
		return own
	}
	place(own, children)
	return merge(own, children)
}

// eventsOf returns the events of a stored run, and those of the runs below it that it keeps. Their texts, which only the
// messages have, precede the call that follows them, or the end of the run.
func (b *body) eventsOf(v jsonv.Value) (out []moment) {
	var events []moment
	for e := range v.Get("events").Elems() {
		if !e.Is(jsonv.Object) {
			continue
		}
		id, name := cmp.Or(ident.PeekOrNumber(e.Get("run_id")), runID(v)), eventName(e.Get("event"))
		m := moment{of: b.run(id), in: v, v: e, rule: b.s.rule(name), at: conversation.TimeOf(e.Get("created_at"))}
		if !m.of.told || m.of.says == nil {
			m.of.told, m.of.says = true, b.messagesOf(m.of.v)
		}
		m.of.deltas = m.of.deltas || string(name) == "RunContent" || string(name) == "ReasoningContentDelta"
		switch m.rule.phase {
		case callStarts, callEnds:
			m.about(useOf(e.Get("tool")))
		case within:
			for _, t := range waiting(e, id) {
				m.calls = append(m.calls, ident.PeekOrNumber(t.Get("tool_call_id")))
			}
		}
		events = append(events, m)
	}
	for _, m := range events {
		out = append(append(out, b.textsBefore(&m)...), m)
	}
	return out
}

// about notes the call that begins or ends.
func (m *moment) about(u use) {
	m.calls, m.to = []string{ident.PeekOrNumber(u.id)}, u.member()
	if is, many := delegates(u.name); is && m.rule.phase == callStarts {
		m.asks = &delegation{Many: many, Task: taskOf(u.args).String()}
	}
}

// maxAhead limits the search for the call that a message makes. It is the next one, unless the events have gaps.
const maxAhead = 256

// textsBefore takes the texts before an event, if that begins a call or ends the run.
func (b *body) textsBefore(m *moment) (texts []moment) {
	st := m.of
	until := 1 + slices.IndexFunc(st.says[:min(len(st.says), maxAhead)], func(x moment) bool {
		return x.rule.phase == callStarts && x.calls[0] != "" && m.rule.phase != callEnds && slices.Contains(m.calls, x.calls[0])
	})
	if m.rule.phase == ends || m.rule.phase == fails {
		until = len(st.says)
	}
	called := false
	for _, x := range st.says[:until] {
		switch {
		case x.rule.phase == callStarts:
			called = x.calls[0] != ""
		case st.deltas:
			x.v.Skip("content", "reasoning_content")
		case byModel(x.v) && hasText(x.v):
			x.rule = b.said.text
			st.gaps = st.gaps || called && len(texts) > 0 // between them is a call that no event has
			texts = append(texts, x)
			st.texts++
		}
	}
	st.says = st.says[until:]
	return texts
}

// place finds the delegation of each child, and its result: by its task, by the member that is named, and else by order.
func place(own []moment, children []*aside) {
	taken := make(map[int]bool)
	find := func(by msg.LinkMethod, fits func(c *moment, k *aside) bool) {
		for _, k := range children {
			for i := range own {
				if c := &own[i]; c.asks != nil && k.call < 0 && (c.asks.Many || !taken[i]) && fits(c, k) {
					k.call, taken[i] = i, true
					k.st.call, k.st.by = c, by
					k.result = i + 1 + slices.IndexFunc(own[i+1:], c.endedBy)
				}
			}
		}
	}
	find(msg.ByPrompt, func(c *moment, k *aside) bool { return c.asks.Task != "" && k.input == c.asks.Task })
	find(msg.ByPrompt, func(c *moment, k *aside) bool { return c.asks.Task != "" && strings.Contains(k.input, c.asks.Task) })
	find(msg.ByOrder, func(c *moment, k *aside) bool { return namesAgent(c.to, k.agent) })
	find(msg.ByOrder, func(*moment, *aside) bool { return true })
}

// endedBy reports whether a later moment is the result of the call.
func (m *moment) endedBy(end moment) bool {
	return end.rule.phase == callEnds && end.calls[0] == m.calls[0] && (m.calls[0] != "" || end.to == "" || end.to == m.to)
}

// merge puts the moments of children where a stream has them: after their call, before its result and the end of the
// parent, and at the same second after what the parent begins and before what it ends.
func merge(own []moment, children []*aside) (out []moment) {
	type placed struct {
		at int64
		moment
	}
	before := make([][]placed, len(own)+1)
	slices.SortStableFunc(children, func(x, y *aside) int { return cmp.Compare(x.call, y.call) })
	for _, k := range children {
		i, at := k.call+1, own[max(k.call, 0)].at.Nanos
		for _, m := range k.story {
			for at = max(at, m.at.Nanos); i < len(own) && i != k.result && own[i].precedes(at); {
				i++
			}
			before[i] = append(before[i], placed{at, m})
		}
	}
	for i, list := range before {
		slices.SortStableFunc(list, func(x, y placed) int { return cmp.Compare(x.at, y.at) })
		for _, m := range list {
			out = append(out, m.moment)
		}
		if i < len(own) {
			out = append(out, own[i])
		}
	}
	return out
}

// precedes reports whether the moment is before those of a child at that time.
func (m *moment) precedes(at int64) bool {
	switch m.rule.phase {
	case ends, fails:
		return false
	case callEnds:
		return m.at.Nanos < at
	}
	return m.at.Nanos <= at
}

// tell decodes a moment. What a message says is an event of its run.
func (b *body) tell(m *moment) {
	e := b.s.read(m.v)
	if e.at = m.at; m.said {
		e.read(m.in)
		e.v, e.at, e.rule, e.summary, e.under = m.v, m.at, m.rule, m.rule != b.said.text, m.of.under
		e.typ, e.created, e.content, e.contentType, e.reasoning = jsonv.Value{}, jsonv.Value{}, jsonv.Value{}, jsonv.Value{}, jsonv.Value{}
		if r := b.s.Runs.get(runID(m.in)); r != nil && m.rule.phase >= ends && r.Last.Nanos > e.at.Nanos {
			e.at = r.Last // a child ended later
		}
	}
	e.in = m.in
	b.s.event(e)
}

// assigned returns the id of the call of p that has the story of a stored child, and how it was found.
func (b *body) assigned(p, r *run) (call string, by msg.LinkMethod) {
	if b == nil || b.run(r.ID).call == nil {
		return "", 0
	}
	st := b.run(r.ID)
	if id := st.call.calls[0]; id != "" {
		return unique(p, id), st.by
	}
	if c := p.Calls.open(useOf(st.call.v.Get("tool")), p); c != nil {
		return c.ID, st.by
	}
	return "", 0
}
