package llmmessage

import "slices"

// ledger counts how often each text and each call was emitted, and how often snapshots have
// shown it: the nth occurrence in a snapshot is new if fewer than n were emitted.
type ledger struct {
	Entries []entry `json:",omitempty"` // oldest first
	at      map[string]int
}

type entry struct {
	Key   string
	Given int `json:",omitempty"`
	Shown int `json:",omitempty"`
}

func (l *ledger) index() {
	l.at = make(map[string]int, len(l.Entries))
	for i, e := range l.Entries {
		l.at[e.Key] = i
	}
}

// entry returns the entry of a key, which is valid until the next one is added.
func (l *ledger) entry(key string) *entry {
	if l.at == nil {
		l.index()
	}
	i, ok := l.at[key]
	if !ok {
		if len(l.Entries) >= maxGiven {
			l.Entries = slices.Delete(l.Entries, 0, maxGiven/4)
			l.index()
		}
		i = len(l.Entries)
		l.at[key] = i
		l.Entries = append(l.Entries, entry{Key: key})
	}
	return &l.Entries[i]
}

// emit counts an emitted message, and returns the number of its occurrence.
func (l *ledger) emit(key string) (nth int) {
	e := l.entry(key)
	e.Given++
	return e.Given
}

// hasUnshown reports whether a key was emitted more often than snapshots have shown it.
func (l *ledger) hasUnshown(key string) bool {
	e := l.entry(key)
	return e.Given > e.Shown
}

// show counts an occurrence that a snapshot did not show before, and returns its number, and
// whether it was emitted already.
func (l *ledger) show(key string) (nth int, emitted bool) {
	e := l.entry(key)
	e.Shown++
	if e.Shown <= e.Given {
		return e.Shown, true
	}
	e.Given = e.Shown
	return e.Shown, false
}

// ring remembers the last of many hashes.
type ring struct {
	Sums []uint64 `json:",omitempty"` // in the order of their arrival, from Next on
	Next int      `json:",omitempty"`
	set  map[uint64]struct{}
}

func (r *ring) has(h uint64) bool {
	if r.set == nil {
		r.set = make(map[uint64]struct{}, len(r.Sums))
		for _, s := range r.Sums {
			r.set[s] = struct{}{}
		}
	}
	_, ok := r.set[h]
	return ok
}

// add remembers a hash that is not there yet.
func (r *ring) add(h uint64, most int) {
	if r.has(h) {
		return
	}
	r.set[h] = struct{}{}
	if len(r.Sums) < most {
		r.Sums = append(r.Sums, h)
		return
	}
	r.Next %= len(r.Sums)
	delete(r.set, r.Sums[r.Next])
	r.Sums[r.Next] = h
	r.Next++
}
