package agno

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// A stored run is decoded as a story: its moments in the order of a stream, which are its events, or its messages
// where it has no events. A run whose events are not among its parent's has a story of its own, which is
// inserted between the call that caused it and that call's result:
//
//	runs: [child {events: c c}, top {events: t call result t}]    told: t call c c result t

// aside is the story of a child within its parent's.
type aside struct {
	st    *storedRun
	input string
	names [2]string // slugs of its agent
	story []moment
	call  int // index of the parent's delegation; -1 when none fits
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
			var e event
			e.read(c) // its agent is read with an event of it
			a := e.actor(b.s.Names)
			children = append(children, &aside{st: child, input: inputOf(c).String(), names: [...]string{slug(a.ID), slug(a.Name)}, story: story, call: -1})
		}
	}
	if len(children) == 0 {
		return own
	}
	b.place(own, children)
	return merge(own, children)
}

// eventsOf returns the events of a stored run, and those of the runs below it that it keeps.
func (b *body) eventsOf(v jsonv.Value) []moment {
	events := make([]moment, 0, v.Get("events").Len())
	for e := range v.Get("events").Elems() {
		if !e.Is(jsonv.Object) {
			continue
		}
		of, name := b.run(cmp.Or(runID(e), runID(v))), eventName(e.Get("event"))
		if !of.told || of.says == nil {
			of.told, of.says = true, b.messagesOf(of.v)
		}
		of.deltas = of.deltas || string(name) == "RunContent" || string(name) == "ReasoningContentDelta"
		events = append(events, moment{of: of, in: v, v: e, rule: b.s.rule(name), at: conversation.TimeOf(e.Get("created_at"))})
	}
	return events
}

// place finds the delegation of each child, and its result: by its task, by the member that is named, and else by order.
func (b *body) place(own []moment, children []*aside) {
	type asked struct {
		at    int
		task  string
		to    string // a slug
		many  bool
		taken bool
	}
	var calls []*asked
	for i := range own {
		if own[i].rule.phase == callStarts {
			u := b.s.use(own[i].tool())
			if is, many := delegates(u.name); is {
				calls = append(calls, &asked{at: i, task: taskOf(u.args).String(), to: slug(u.member()), many: many})
			}
		}
	}
	find := func(by msg.LinkMethod, fits func(c *asked, k *aside) bool) {
		for _, k := range children {
			for _, c := range calls {
				if k.call < 0 && (c.many || !c.taken) && fits(c, k) {
					k.call, c.taken = c.at, true
					k.st.call, k.st.by = &own[c.at], by
				}
			}
		}
	}
	find(msg.ByPrompt, func(c *asked, k *aside) bool { return c.task != "" && k.input == c.task })
	find(msg.ByPrompt, func(c *asked, k *aside) bool { return c.task != "" && strings.Contains(k.input, c.task) })
	find(msg.ByOrder, func(c *asked, k *aside) bool { return c.to != "" && slices.Contains(k.names[:], c.to) })
	find(msg.ByOrder, func(*asked, *aside) bool { return true })
}

// merge puts the moments of children where a stream has them: after their call, before the end of the parent, by time, and at
// the same second after what the parent begins and before what it ends.
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
			for at = max(at, m.at.Nanos); i < len(own) && own[i].precedes(at); {
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
		return m.at.Nanos != 0 && m.at.Nanos < at
	}
	return m.at.Nanos <= at
}

// tell decodes a moment. What a message says is an event of its run.
func (b *body) tell(m *moment) {
	e := event{moment: *m}
	if !m.said {
		e.read(m.v)
	} else {
		e.read(m.in)
		e.typ, e.created, e.content, e.contentType, e.reasoning = jsonv.Value{}, jsonv.Value{}, jsonv.Value{}, jsonv.Value{}, jsonv.Value{}
		if r := b.s.Runs.byID[string(m.in.Get("run_id").Chars())]; r != nil && m.rule.phase >= ends && r.Last.Nanos > e.at.Nanos {
			e.at = r.Last // a child ended later
		}
	}
	b.s.event(&e)
}

// assigned returns the open call of p that has the story of a stored child, and how it was found.
func (b *body) assigned(p, r *run) (*call, msg.LinkMethod) {
	if b == nil || b.run(r.ID).call == nil {
		return nil, 0
	}
	st := b.run(r.ID)
	return p.Calls.of(b.s.use(st.call.tool()), p), st.by
}
