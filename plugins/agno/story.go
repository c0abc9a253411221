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

// A stored run is decoded as a story: its events in the order of a stream, or its messages where it has no events. A run whose events are not among its parent's has a story of its own, which is
// inserted between the call that caused it and that call's result:
//
//	runs: [child {events: c c}, top {events: t call result t}]    told: t call c c result t

// aside is the story of a child within its parent's.
type aside struct {
	st    *storedRun
	input string
	names [2]string // slugs of its agent
	story []*event
	call  int // index of the parent's delegation; -1 when none fits
}

// storyOf returns the story of a stored run, with those of the children that have their own.
func (b *body) storyOf(v jsonv.Value, depth int) []*event {
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
		if child := b.run(runID(c)); !b.s.known(runID(c)) && !child.inEvents && depth < maxDepth {
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
func (b *body) eventsOf(v jsonv.Value) []*event {
	var keeper event
	keeper.read(v)
	events, all := make([]*event, 0, v.Get("events").Len()), make([]event, v.Get("events").Len())
	for x := range v.Get("events").Elems() {
		if !x.Is(jsonv.Object) {
			continue
		}
		e := &all[len(events)]
		e.v, e.in = x, v
		e.read(x)
		e.inherit(&keeper)
		e.of, e.rule, e.at = b.run(ident.Peek(e.run)), b.s.rule(e.name), conversation.TimeOf(e.created)
		if !e.of.told || e.of.says == nil {
			e.of.told, e.of.says = true, b.messagesOf(e.of.v)
		}
		e.of.deltas = e.of.deltas || string(e.name) == "RunContent" || string(e.name) == "ReasoningContentDelta"
		events = append(events, e)
	}
	return events
}

// place finds the delegation of each child, and its result: by its task, by the member that is named, and else by order.
func (b *body) place(own []*event, children []*aside) {
	type asked struct {
		at    int
		task  string
		to    string // a slug
		many  bool
		taken bool
	}
	var calls []*asked
	for i, e := range own {
		if e.rule.phase == callStarts {
			if u := b.s.use(e.tool()); machinery[u.name] > 0 {
				calls = append(calls, &asked{at: i, task: taskOf(u.args).String(), to: slug(u.member()), many: machinery[u.name] == many})
			}
		}
	}
	find := func(by msg.LinkMethod, fits func(c *asked, k *aside) bool) {
		for _, k := range children {
			for _, c := range calls {
				if k.call < 0 && (c.many || !c.taken) && fits(c, k) {
					k.call, c.taken = c.at, true
					k.st.call, k.st.by = own[c.at], by
				}
			}
		}
	}
	find(msg.ByPrompt, func(c *asked, k *aside) bool { return c.task != "" && k.input == c.task })
	find(msg.ByPrompt, func(c *asked, k *aside) bool { return c.task != "" && strings.Contains(k.input, c.task) })
	find(msg.ByOrder, func(c *asked, k *aside) bool { return c.to != "" && slices.Contains(k.names[:], c.to) })
	find(msg.ByOrder, func(*asked, *aside) bool { return true })
}

// merge puts the events of children where a stream has them: after their call, before the end of the parent, by time, and at
// the same second after those that the parent begins and before those that it ends.
func merge(own []*event, children []*aside) (out []*event) {
	before := make([][]*event, len(own)+1)
	slices.SortStableFunc(children, func(x, y *aside) int { return cmp.Compare(x.call, y.call) })
	for _, k := range children {
		i, at := k.call+1, own[max(k.call, 0)].at.Nanos
		for _, e := range k.story {
			for at = max(at, e.at.Nanos); i < len(own) && own[i].precedes(at); {
				i++
			}
			e.place = at
			before[i] = append(before[i], e)
		}
	}
	for i, list := range before {
		slices.SortStableFunc(list, func(x, y *event) int { return cmp.Compare(x.place, y.place) })
		out = append(out, list...)
		if i < len(own) {
			out = append(out, own[i])
		}
	}
	return out
}

// precedes reports whether the event is before those of a child at that time.
func (e *event) precedes(at int64) bool {
	switch e.rule.phase {
	case ends, fails:
		return false
	case callEnds:
		return e.at.Nanos != 0 && e.at.Nanos < at
	}
	return e.at.Nanos <= at
}

// assigned returns the open call of p that has the story of a stored child, and how it was found.
func (b *body) assigned(p, r *run) (*call, msg.LinkMethod) {
	if b == nil || b.run(r.ID).call == nil {
		return nil, 0
	}
	st := b.run(r.ID)
	return p.Calls.of(b.s.use(st.call.tool()), p), st.by
}
