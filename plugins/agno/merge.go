package agno

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
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
	event, run jsonv.Value
	at         int64
}

// childEvents are the events of a child that are merged into its parent's.
type childEvents struct {
	id      string
	events  []storedEvent
	call    int // index of the parent's delegation; -1 when none fits
	started bool
}

// assigned is the call of a stored child.
type assigned struct {
	tool jsonv.Value
	by   msg.LinkMethod
}

// timeline returns the events of a stored run with those of the children that keep their
// own; nil when it has none.
func (b *bodyIndex) timeline(v jsonv.Value, depth int) []storedEvent {
	var own []storedEvent
	for e := range v.Get("events").Elems() {
		if e.Is(jsonv.Object) {
			own = append(own, storedEvent{e, v, stampOf(e.Get("created_at")).NS})
		}
	}
	if len(own) == 0 || depth > maxDepth {
		return own
	}
	var kids []*childEvents
	for _, c := range b.children[peekID(v.Get("run_id"))] {
		id := peekID(c.Get("run_id"))
		if b.decoded[id] || b.inEvents[id] || b.merged[id] || c.Get("events").Len() == 0 {
			continue
		}
		b.merged[id] = true
		kids = append(kids, &childEvents{id: id, events: b.timeline(c, depth+1), call: -1})
	}
	if len(kids) == 0 {
		return own
	}
	b.assign(own, kids)
	return mergeEvents(own, kids)
}

// assign finds the delegation of each child: by its task, by the member that is named,
// and else by order.
func (b *bodyIndex) assign(own []storedEvent, kids []*childEvents) {
	var calls []int // of own
	for i, t := range own {
		if kindOf(nameOf(t.event)) == isToolStarted && delegates(peekID(t.event.Path("tool", "tool_name"))) != toNone {
			calls = append(calls, i)
		}
	}
	taken := make(map[int]bool)
	find := func(by msg.LinkMethod, fits func(args jsonv.Value, child jsonv.Value) bool) {
		for _, k := range kids {
			for _, i := range calls {
				tool := own[i].event.Get("tool")
				many := delegates(peekID(tool.Get("tool_name"))) == toMany
				if k.call < 0 && (many || !taken[i]) && fits(tool.Get("tool_args"), b.runs[k.id]) {
					k.call, taken[i] = i, true
					b.calls[k.id] = assigned{tool, by}
				}
			}
		}
	}
	task := func(args jsonv.Value) string {
		return peekText(args.First("task", "task_description", "expected_output")).String()
	}
	find(msg.ByPrompt, func(args, child jsonv.Value) bool { t := task(args); return t != "" && inputOf(child).String() == t })
	find(msg.ByPrompt, func(args, child jsonv.Value) bool {
		t := task(args)
		return t != "" && strings.Contains(inputOf(child).String(), t)
	})
	find(msg.ByOrder, func(args, child jsonv.Value) bool {
		var e event
		e.read(child)
		return namesAgent(peekID(args.Get("member_id")), e.actor())
	})
	find(msg.ByOrder, func(jsonv.Value, jsonv.Value) bool { return true })
}

// mergeEvents puts the events of children at the place that they have in a stream: after
// their call, before its result, and at the same second after the parent's starts and before
// its ends.
func mergeEvents(own []storedEvent, kids []*childEvents) []storedEvent {
	var out []storedEvent
	begun := make(map[int]bool)
	next := func(until int64, only int) bool { // appends the earliest event of a child
		var k *childEvents
		for _, o := range kids {
			ready := len(o.events) > 0 && (o.started || o.call < 0 || begun[o.call]) && (only < 0 || o.call == only)
			if ready && o.events[0].at <= until && (k == nil || cmp.Or(cmp.Compare(o.events[0].at, k.events[0].at), cmp.Compare(o.call, k.call)) < 0) {
				k = o
			}
		}
		if k == nil {
			return false
		}
		k.started = true
		out = append(out, k.events[0])
		k.events = k.events[1:]
		return true
	}
	for i, t := range own {
		switch kind := kindOf(nameOf(t.event)); kind {
		case isToolStarted:
			for next(t.at-1, -1) {
			}
			begun[i] = true
		case isToolCompleted, isToolError:
			for next(t.at, -1) {
			}
			if c := callOf(own[:i], t.event.Get("tool")); c >= 0 {
				for next(forever, c) {
				}
			}
		case isCompleted, isError, isCancelled:
			for next(forever, -1) {
			}
		default:
			for next(t.at-1, -1) {
			}
		}
		out = append(out, t)
	}
	rest := slices.Clone(out)
	for _, k := range kids {
		rest = append(rest, k.events...)
	}
	return rest
}

const forever = int64(1<<63 - 1)

// callOf returns the index of the start event of the call that a tool object ends, or -1.
func callOf(own []storedEvent, tool jsonv.Value) int {
	id, name, member := peekID(tool.Get("tool_call_id")), peekID(tool.Get("tool_name")), peekID(tool.Path("tool_args", "member_id"))
	found := -1
	for i, t := range own {
		if kindOf(nameOf(t.event)) != isToolStarted {
			continue
		}
		of := t.event.Get("tool")
		switch {
		case id != "":
			if peekID(of.Get("tool_call_id")) == id {
				return i
			}
		case peekID(of.Get("tool_name")) == name && cmp.Or(peekID(of.Path("tool_args", "member_id")), member) == member:
			found = i
		}
	}
	return found
}

// nameOf is an event's name without Team.
func nameOf(e jsonv.Value) []byte { return eventName(e.Get("event")) }
