package llmmessage

import (
	"slices"
	"strconv"

	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
)

// memory is the memory of one agent, as its last snapshot showed it.
type memory struct {
	Agent string             `json:",omitempty"`
	Size  int                // messages
	Items []conversation.Sum // hashes of the messages and of their calls
	Was   []conversation.Sum `json:",omitempty"` // Items before it last lost some: they may reappear
	Cut   bool               `json:",omitempty"` // there were more at the front
	Conn  string             `json:",omitempty"` // connection of the last snapshot
	Seq   int64              `json:",omitempty"` // its number there
	Time  int64              `json:",omitempty"` // its time; an older snapshot is ignored
	Phase string             `json:",omitempty"` // that the agent works on
}

// memory finds the memory that the snapshot continues: of the same agent, with the same
// beginning or with many common messages. Several agents of a session may have one name.
func (s *session) memory(agent string, sums []conversation.Sum) *memory {
	best, most := &memory{Agent: agent}, 0
	for _, l := range s.Memories {
		if l.Agent == agent {
			if n := l.similarity(sums); n > most {
				best, most = l, n
			}
		}
	}
	return bounded.Use(&s.Memories, maxMemories, func(l *memory) bool { return l == best }, func() *memory { return best }, nil)
}

// similarity is the number of messages that a memory and a snapshot have in common; 0 when they
// are not of one agent.
func (l *memory) similarity(sums []conversation.Sum) int {
	n := len(sums) - len(newItems(l.Items, sums, false))
	if n > 0 && !l.Cut && sums[0] == l.Items[0] {
		return n + len(sums) + len(l.Items) // the same beginning outranks any other
	}
	if 2*n < min(len(sums), len(l.Items)) {
		return 0
	}
	return n
}

// isOlder reports whether the snapshot is not newer than the last one of the memory.
func (l *memory) isOlder(d *stream) bool {
	if d.conn != "" && d.conn == l.Conn && d.seq > 0 {
		return d.seq <= l.Seq
	}
	return d.At.Nanos != 0 && d.At.Nanos < l.Time
}

// update takes a newer snapshot, and returns the indices of its items that are new: the memory has had them neither now nor
// before it lost some.
func (l *memory) update(d *stream, size int, sums []conversation.Sum) (added []int) {
	before := newItems(l.Was, sums, false)
	added = slices.DeleteFunc(newItems(l.Items, sums, l.Cut), func(i int) bool {
		_, isNew := slices.BinarySearch(before, i)
		return !isNew
	})
	l.Conn, l.Seq, l.Time, l.Size = d.conn, d.seq, max(d.At.Nanos, l.Time), size
	if l.Cut = len(sums) > maxItems; l.Cut {
		sums = sums[len(sums)-maxItems:]
	}
	if !l.Cut && len(newItems(sums, l.Items, false)) > 0 {
		l.Was = l.Items
	}
	l.Items = sums
	return added
}

// newItems returns the indices of the items in now that were not in was. A memory gains items at
// its end and mostly loses them at its front and in its middle; an item that changed in between
// is new. With cutFront the memory was longer than the state keeps: its front is not new.
func newItems[T comparable](was, now []T, cutFront bool) (added []int) {
	end := seam(was, now)
	left := make(map[T]int, len(was))
	for _, sum := range was {
		left[sum]++
	}
	for i, sum := range now {
		switch {
		case i < end && left[sum] > 0:
			left[sum]--
			cutFront = false
		case i < end && cutFront:
		default:
			added = append(added, i)
		}
	}
	return added
}

// seam returns the index in now at which the items of was end: behind the last item of was that
// is still there, where the longest run before it is in both.
func seam[T comparable](was, now []T) (end int) {
	for last := len(was) - 1; last >= 0 && end == 0; last-- {
		longest := 0
		for i, sum := range now {
			if sum != was[last] {
				continue
			}
			run := 1
			for run <= i && run <= last && now[i-run] == was[last-run] {
				run++
			}
			if run > longest {
				longest, end = run, i+1
			}
		}
	}
	return end
}

// ledger counts how often each text and each call was emitted, and how often snapshots have
// shown it: the nth occurrence in a snapshot is new if fewer than n were emitted.
type ledger struct {
	Entries []*entry `json:",omitempty"` // oldest first
	byKey   map[string]*entry
}

type entry struct {
	Key     string
	Emitted int `json:",omitempty"`
	Shown   int `json:",omitempty"`
}

func (l *ledger) entry(key string) *entry {
	if l.byKey == nil {
		l.byKey = make(map[string]*entry, len(l.Entries))
		for _, e := range l.Entries {
			l.byKey[e.Key] = e
		}
	}
	e := l.byKey[key]
	if e == nil {
		e = &entry{Key: key}
		if len(l.Entries) >= maxEmitted {
			delete(l.byKey, l.Entries[0].Key)
		}
		l.Entries, l.byKey[key] = bounded.Push(l.Entries, e, maxEmitted), e
	}
	return e
}

// emit counts an emitted message, and returns the key of this occurrence.
func (l *ledger) emit(key string) string {
	e := l.entry(key)
	e.Emitted++
	return key + nth(e.Emitted)
}

// once is emit for what occurs once, and reports whether it is the first time.
func (l *ledger) once(key string) bool { return l.emit(key) == key }

// show counts an occurrence that a snapshot did not show before, and returns its key, and
// whether it was emitted already.
func (l *ledger) show(key string) (occurrence string, emitted bool) {
	e := l.entry(key)
	e.Shown++
	emitted = e.Shown <= e.Emitted
	e.Emitted = max(e.Emitted, e.Shown)
	return key + nth(e.Shown), emitted
}

// nth is the suffix of the nth occurrence.
func nth(n int) string {
	if n <= 1 {
		return ""
	}
	return "#" + strconv.Itoa(n)
}
