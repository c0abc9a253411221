package langchain

import (
	"slices"

	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	maxReplies = 64
	maxSeen    = 4096
)

// Transcript has the messages of a thread, each of which is emitted once although chunks, updates and the state of
// the thread all have it:
//
//   - What was complete before is not new (Once, Repeats). Skip passes over the messages of earlier runs.
//   - Replies of a task at a time mix their pieces. One that the model has stopped is complete when the task
//     makes another one (Before), and one of a call whose result has come (Of).
//   - A reply that was complete does not open again (Going).
//
// Its JSON is state of a decoder.
type Transcript struct {
	Seen    bounded.Set[string] `json:",omitzero"` // messages that were complete, and other keys
	Replies []*Reply            `json:",omitempty"`
}

// Once reports whether a key is new, and remembers it.
func (t *Transcript) Once(key string) bool { return t.Seen.Add(key, maxSeen) }

// Repeats reports whether a message that came whole was complete before, and remembers it. r is its open reply, if
// it has one.
func (t *Transcript) Repeats(m jsonv.Value) (r *Reply, repeats bool) {
	r = t.Reply(ID(m))
	return r, !t.Once(ID(m)) && r == nil
}

// Reply returns the open reply of that id, or nil.
func (t *Transcript) Reply(id string) *Reply {
	return bounded.Find(t.Replies, func(r *Reply) bool { return r.ID == id })
}

// Going reports whether a reply is open, or may be opened.
func (t *Transcript) Going(id string) bool { return t.Reply(id) != nil || !t.Seen.Has(id) }

// Of returns the open replies that fit: those of a task, or those that made a call.
func (t *Transcript) Of(task, call string) (list []*Reply) {
	for _, r := range t.Replies {
		if task != "" && r.Path == task || call != "" && r.Has(call) {
			list = append(list, r)
		}
	}
	return list
}

// Before returns the replies that are complete when the task makes another one.
func (t *Transcript) Before(task string) []*Reply {
	list := bounded.All(t.Of(task, ""), func(r *Reply) bool { return r.Stop != "" })
	if len(list) > 0 || len(t.Replies) < maxReplies {
		return list
	}
	return t.Replies[:1:1]
}

// Open opens a reply of a task, in a graph.
func (t *Transcript) Open(id, graph, task string) *Reply {
	r := &Reply{Path: task, Graph: graph}
	r.ID = id
	t.Replies = append(t.Replies, r)
	return r
}

// Drop closes a reply, and reports whether it was open.
func (t *Transcript) Drop(r *Reply) bool {
	_, open := bounded.Take(&t.Replies, func(o *Reply) bool { return o == r })
	return open
}

// Skip remembers the messages of a list that are of earlier runs: those up to the last reply, and in a response that
// is whole, with the replies of the run, those before the last prompt.
func (t *Transcript) Skip(list jsonv.Value, whole bool) {
	all, old := slices.Collect(list.Elems()), 0
	for i, m := range all {
		switch _, typ := Message(m); {
		case whole && typ == "human":
			old = i
		case !whole && (typ == "ai" || typ == "tool"):
			old = i + 1
		}
	}
	for _, v := range all[:old] {
		if m, _ := Message(v); t.Reply(ID(m)) == nil {
			t.Once(ID(m))
		}
	}
}
