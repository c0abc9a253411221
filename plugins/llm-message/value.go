package llmmessage

import (
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

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

// imageOf describes an image by its bytes: the protocol names no type, and its documents
// guess JPEG for all.
func imageOf(v jsonv.Value) []msg.Attachment {
	if len(v.Escaped()) == 0 {
		return nil
	}
	return []msg.Attachment{media.Sniffed(v)}
}
