package agno

import (
	"cmp"
	"math"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// A team that does not stream its members' events keeps only its own, and each member keeps
// its own:
//
//	runs: [child {events: c c}, top {events: t call result t}]    decoded: t call c c result t
//
// The events are merged into one timeline: a child's events lie between the call that caused
// it and that call's result, by their times.

// storedEvent is an event with the stored run that keeps it.
type storedEvent struct {
	event, run, tool jsonv.Value
	of               *storedRun // the run of the event
	phase            phase
	at               int64
}

// childEvents are the events of a child that are merged into its parent's.
type childEvents struct {
	st      *storedRun
	events  []storedEvent
	call    int // index of the parent's delegation; -1 when none fits
	started bool
}

// timeline returns the events of a stored run with those of the children that keep their
// own; nil when it has none.
func (b *body) timeline(v jsonv.Value, depth int) []storedEvent {
	var own []storedEvent
	id := runID(v)
	for e := range v.Get("events").Elems() {
		if e.Is(jsonv.Object) {
			own = append(own, storedEvent{
				event: e, run: v, tool: e.Get("tool"), of: b.run(cmp.Or(ident.PeekOrNumber(e.Get("run_id")), id)),
				phase: b.s.rule(eventName(e.Get("event"))).phase, at: conversation.TimeOf(e.Get("created_at")).Nanos,
			})
		}
	}
	if len(own) == 0 || depth > maxDepth {
		return own
	}
	var kids []*childEvents
	for _, c := range b.run(id).children {
		if st := b.run(runID(c)); !st.decoded && !st.inEvents && !st.merged && c.Get("events").Len() > 0 {
			st.merged = true
			kids = append(kids, &childEvents{st: st, events: b.timeline(c, depth+1), call: -1})
		}
	}
	if len(kids) == 0 {
		return own
	}
	assign(own, kids)
	return merge(own, kids)
}

// assign finds the delegation of each child: by its task, by the member that is named,
// and else by order.
func assign(own []storedEvent, kids []*childEvents) {
	taken := make(map[int]bool)
	find := func(by msg.LinkMethod, fits func(args, child jsonv.Value) bool) {
		for _, k := range kids {
			for i, t := range own {
				is, many := delegates(ident.PeekOrNumber(t.tool.Get("tool_name")))
				if t.phase == callStarts && is && k.call < 0 && (many || !taken[i]) && fits(t.tool.Get("tool_args"), k.st.v) {
					k.call, taken[i] = i, true
					k.st.call, k.st.by = t.tool, by
				}
			}
		}
	}
	find(msg.ByPrompt, func(args, child jsonv.Value) bool {
		t := taskOf(args).String()
		return t != "" && inputOf(child).String() == t
	})
	find(msg.ByPrompt, func(args, child jsonv.Value) bool {
		t := taskOf(args).String()
		return t != "" && strings.Contains(inputOf(child).String(), t)
	})
	find(msg.ByOrder, func(args, child jsonv.Value) bool {
		var e event
		e.read(child)
		return namesAgent(ident.PeekOrNumber(args.Get("member_id")), e.actor())
	})
	find(msg.ByOrder, func(jsonv.Value, jsonv.Value) bool { return true })
}

// assigned returns the open call of p that was assigned to a stored child, and how.
func (b *body) assigned(p, r *run) (*call, msg.LinkMethod) {
	if b == nil || !b.run(r.ID).call.Exists() {
		return nil, 0
	}
	st := b.run(r.ID)
	return p.Calls.open(useOf(st.call), p), st.by
}

// merge puts the events of children at the place that they have in a stream: after
// their call, before its result, and at the same second after the parent's starts and before
// its ends.
func merge(own []storedEvent, kids []*childEvents) (out []storedEvent) {
	const forever = math.MaxInt64
	begun := make(map[int]bool)
	// take appends the events of the children, or of those of one call, up to a time.
	take := func(until int64, only int) {
		for {
			var k *childEvents
			for _, o := range kids {
				ready := len(o.events) > 0 && (o.started || o.call < 0 || begun[o.call]) && (only < 0 || o.call == only)
				if ready && o.events[0].at <= until && (k == nil || cmp.Or(cmp.Compare(o.events[0].at, k.events[0].at), cmp.Compare(o.call, k.call)) < 0) {
					k = o
				}
			}
			if k == nil {
				return
			}
			k.started = true
			out = append(out, k.events[0])
			k.events = k.events[1:]
		}
	}
	for i, t := range own {
		switch t.phase {
		case callStarts:
			take(t.at-1, -1)
			begun[i] = true
		case callEnds:
			take(t.at, -1)
			if c := callOf(own[:i], t.tool); c >= 0 {
				take(forever, c)
			}
		case ends, fails:
			take(forever, -1)
		default:
			take(t.at-1, -1)
		}
		out = append(out, t)
	}
	for _, k := range kids {
		out = append(out, k.events...)
	}
	return out
}

// callOf returns the index of the start event of the call that a tool object ends, or -1.
func callOf(own []storedEvent, tool jsonv.Value) int {
	id, name, member := ident.PeekOrNumber(tool.Get("tool_call_id")), ident.PeekOrNumber(tool.Get("tool_name")), ident.PeekOrNumber(tool.Path("tool_args", "member_id"))
	found := -1
	for i, t := range own {
		same := id != "" && ident.PeekOrNumber(t.tool.Get("tool_call_id")) == id ||
			id == "" && ident.PeekOrNumber(t.tool.Get("tool_name")) == name && cmp.Or(ident.PeekOrNumber(t.tool.Path("tool_args", "member_id")), member) == member
		if t.phase == callStarts && same && (id == "" || found < 0) {
			found = i
		}
	}
	return found
}
