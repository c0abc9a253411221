package conversation

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// MaxCalls is the number of open calls that a table keeps, MaxEnded the number of ended
// ones.
const (
	MaxCalls = 1024
	MaxEnded = 32
)

// Call identifies a tool call. A decoder embeds it in the type that has the other
// facts of its format.
type Call struct {
	ID         string // empty where the protocol has none
	Name       string `json:",omitempty"`
	Server     string `json:",omitempty"` // MCP server, where the name has none
	ProtocolID string `json:",omitempty"` // the protocol's id, where ID is another (msg.Tool)
}

func (c *Call) call() *Call { return c }

// On writes the call into a message.
func (c *Call) On(m *msg.Message) {
	m.Tool.CallID, m.Tool.Name, m.Tool.Server, m.Tool.ProtocolID = c.ID, c.Name, cmp.Or(c.Server, ToolServer(c.Name)), c.ProtocolID
}

// Within makes the id of a call unique in the session: a number is unique in its response alone, which is then before it. The
// records that follow name the call by the number (Named).
func (c *Call) Within(response string) {
	if numbered(c.ID) && c.ID != response {
		c.ID, c.ProtocolID = response+"/"+c.ID, c.ID
	}
}

// numbered reports whether an id is a number of one or two digits, alone or after a word (call_0, functions.search:1). Servers
// give such ids that count the calls of each response, so that a later response of the same run has the same.
func numbered(id string) bool {
	const most = 2
	word := strings.TrimRight(id, "0123456789")
	digits := len(id) - len(word)
	return 0 < digits && digits <= most && (word == "" || word == "call_" || strings.HasSuffix(word, ":"))
}

// Entry is a pointer to a type that embeds Call.
type Entry interface {
	comparable
	call() *Call
}

// Calls is a table of tool calls: the open ones, and the last that ended, whose results may
// be repeated. Both lists have the oldest first. The zero value is empty.
type Calls[C Entry] struct {
	Open  []C `json:",omitempty"`
	Ended []C `json:",omitempty"`
	// Evicted is the number of calls that were dropped while they were open.
	Evicted uint64 `json:",omitempty"`
}

// Get returns the call with that id, the open one first; nil when there is none.
func (t *Calls[C]) Get(id string) (found C) {
	if c := t.GetOpen(id); c != found {
		return c
	}
	return last(t.Ended, id)
}

// GetOpen returns the open call with that id, or nil.
func (t *Calls[C]) GetOpen(id string) C { return last(t.Open, id) }

func last[C Entry](list []C, id string) (none C) {
	if id == "" {
		return none
	}
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].call().ID == id {
			return list[i]
		}
	}
	return none
}

// Named returns the newest call that the protocol names id, the open ones first; nil when there is none.
func (t *Calls[C]) Named(id string) (none C) {
	if id == "" {
		return none
	}
	for _, list := range [...][]C{t.Open, t.Ended} {
		for _, c := range slices.Backward(list) {
			if c.call().ID == id || c.call().ProtocolID == id {
				return c
			}
		}
	}
	return none
}

// Add adds an open call. A call whose id is in the table is not added again: added is
// false. Beyond MaxCalls the oldest open call is evicted and returned.
func (t *Calls[C]) Add(c C) (added bool, evicted C) {
	var none C
	if t.Get(c.call().ID) != none {
		return false, none
	}
	if len(t.Open) >= MaxCalls {
		evicted = t.Open[0]
		t.Open = slices.Delete(t.Open, 0, 1)
		t.Evicted++
	}
	t.Open = append(t.Open, c)
	return true, evicted
}

// Take removes the open call with that id and returns it, or nil.
func (t *Calls[C]) Take(id string) (c C) {
	var none C
	if c = t.GetOpen(id); c != none {
		t.Remove(c)
	}
	return c
}

// End moves a call from the open ones to the ended ones, so that its result is known when
// it is repeated, and returns the ended call that was dropped for it, or nil. A result that
// precedes its call ends a call that was never open: Add then reports that it is not new.
func (t *Calls[C]) End(c C) (dropped C) {
	t.Remove(c)
	if len(t.Ended) >= MaxEnded {
		dropped = t.Ended[0]
		t.Ended = slices.Delete(t.Ended, 0, 1)
	}
	t.Ended = append(t.Ended, c)
	return dropped
}

// Remove drops a call from the open ones.
func (t *Calls[C]) Remove(c C) {
	for i := len(t.Open) - 1; i >= 0; i-- {
		if t.Open[i] == c {
			t.Open = slices.Delete(t.Open, i, i+1)
			return
		}
	}
}

// Oldest returns the first open call that fits, or nil.
func (t *Calls[C]) Oldest(fits func(C) bool) (none C) {
	for _, c := range t.Open {
		if fits(c) {
			return c
		}
	}
	return none
}

// Newest returns the last open call that fits, or nil.
func (t *Calls[C]) Newest(fits func(C) bool) (none C) {
	for _, c := range slices.Backward(t.Open) {
		if fits(c) {
			return c
		}
	}
	return none
}

// Find returns the first call that fits, open or ended, or nil.
func (t *Calls[C]) Find(fits func(C) bool) (none C) {
	for c := range t.All() {
		if fits(c) {
			return c
		}
	}
	return none
}

// Next returns the oldest open call of that tool which has no id: results of calls without
// ids come in the order of the calls.
func (t *Calls[C]) Next(name string) C {
	return t.Oldest(func(c C) bool { return c.call().ID == "" && c.call().Name == name })
}

// All yields the calls, the open ones first.
func (t *Calls[C]) All() iter.Seq[C] {
	return func(yield func(C) bool) {
		for _, list := range [...][]C{t.Open, t.Ended} {
			for _, c := range list {
				if !yield(c) {
					return
				}
			}
		}
	}
}
