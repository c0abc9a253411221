package conversation

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// A conversation has several forms: a stream of pieces, the same stream read again from some
// frame on, records with whole parts, and the stored form from which it is loaded again. All
// forms emit under the same keys, and the form that has less yields to the other
// (msg.Summary). The types here reconcile a form with the messages of another:
//
//   - Numbers recognizes a numbered frame of a stream that is read again.
//   - Emitted recognizes a part that is emitted under the name that all forms have for it, and
//     numbers the parts of a kind.
//   - Written finds the new part of a record that has the whole text of a run whose other parts
//     were emitted before.
//   - Lines recognizes a line of a stream that has it twice.
//   - Sum compares contents that are not kept.

// Sum is a checksum of a content, 64 bits of FNV-1a, the same in every process. That of an
// empty content is not 0: the zero value is no content.
type Sum uint64

// SumOf returns the checksum of s.
func SumOf[T string | []byte](s T) Sum { return addTo(0, s) }

// SumOfText returns the checksum of the decoded text.
func SumOfText(t msg.Text) Sum {
	if b, quoted := t.Alias(); b != nil && !quoted {
		return addTo(0, b)
	}
	return addTo(0, t.String())
}

// Add returns the checksum of the content followed by b.
func (s Sum) Add(b []byte) Sum { return addTo(s, b) }

// Repeats reports whether a value has this content, which then counts as read.
func (s Sum) Repeats(v jsonv.Value) bool {
	same := s == SumOf(v.Peek())
	if same {
		v.MarkRead()
	}
	return same
}

func addTo[T string | []byte](s Sum, b T) Sum {
	const offset, prime = 14695981039346656037, 1099511628211
	if s == 0 {
		s = offset
	}
	for i := range len(b) {
		s = (s ^ Sum(b[i])) * prime
	}
	return max(s, 1)
}

// SumOfMembers returns the checksum of some members of a record.
func SumOfMembers(v jsonv.Value, names ...string) (s Sum) {
	for _, name := range names {
		s = s.Add(v.Get(name).Peek()).Add([]byte{0})
	}
	return s
}

// MaxLines is the number of lines that Lines keeps.
const MaxLines = 4096

// Lines are the last lines of a stream whose lines have times, and which may be there twice: a shipper of logs sent them
// again, or a file was appended to itself.
type Lines struct {
	Seen   bounded.Set[Sum] `json:",omitzero"`  // checksums of what makes a line the same, its time among it
	Newest int64            `json:",omitempty"` // time
	Again  bool             `json:",omitempty"` // the last line was repeated
}

// Repeat reports whether a line was read before, and adds it. Two pieces of a text that is open may be alike in the same
// millisecond: such a piece is a repetition if a line after it was read, or if the line before it was repeated.
func (l *Lines) Repeat(line Sum, at Time, piece, open bool) bool {
	seen := !l.Seen.Add(line, MaxLines)
	l.Again = seen && (!piece || !open || at.Nanos < l.Newest || l.Again)
	l.Newest = max(l.Newest, at.Nanos)
	return l.Again
}

// MaxRanges is the number of ranges that Numbers keeps.
const MaxRanges = 64

// Range is a range of numbers, both ends included.
type Range struct{ From, To int64 }

// Numbers is a set of the numbers of frames, which come almost in order: ranges in ascending
// order. Beyond MaxRanges the lowest range is forgotten, so that a frame may be read twice but
// is never lost.
type Numbers []Range

// Add adds a number, and reports whether it is new.
func (p *Numbers) Add(n int64) bool {
	all := *p
	i := len(all) // the ranges before i begin at n or below
	for i > 0 && all[i-1].From > n {
		i--
	}
	switch {
	case i > 0 && n <= all[i-1].To:
		return false
	case i > 0 && n == all[i-1].To+1:
		all[i-1].To = n
		if i < len(all) && all[i].From == n+1 {
			all[i-1].To = all[i].To
			all = slices.Delete(all, i, i+1)
		}
	case i < len(all) && all[i].From == n+1:
		all[i].From = n
	default:
		if all = slices.Insert(all, i, Range{n, n}); len(all) > MaxRanges {
			all = slices.Delete(all, 0, 1)
		}
	}
	*p = all
	return true
}

// MaxEmitted is the number of parts that Emitted keeps.
const MaxEmitted = 256

// PartID names a part of a run by facts that all forms of the conversation have.
type PartID struct {
	Base Sum    // of the id of the response, or another id that its parts share
	Kind string // of the part, a word of the format
	Name Sum    // of an id that distinguishes it from the others of its kind
}

// EmittedPart is a part that was opened or emitted.
type EmittedPart struct {
	PartID
	N   int // ordinal among those of its base and kind
	Sum Sum `json:",omitempty"` // of its content, once it was emitted as complete
}

// Emitted are the last parts of a run that were opened or emitted, the oldest first. Beyond
// MaxEmitted the oldest is forgotten.
type Emitted []EmittedPart

// Find returns the part, or nil.
func (e Emitted) Find(id PartID) *EmittedPart {
	for i := range e {
		if e[i].PartID == id {
			return &e[i]
		}
	}
	return nil
}

// Open returns the part, which it adds if need be. The pointer is valid until the next Open.
func (e *Emitted) Open(id PartID) *EmittedPart {
	n := 0
	for i := range *e {
		if p := &(*e)[i]; p.Base == id.Base && p.Kind == id.Kind {
			if p.Name == id.Name {
				return p
			}
			n = p.N + 1
		}
	}
	if len(*e) >= MaxEmitted {
		*e = slices.Delete(*e, 0, 1)
	}
	*e = append(*e, EmittedPart{PartID: id, N: n})
	return &(*e)[len(*e)-1]
}

// Repetition is the relation of a content to the parts that were emitted.
type Repetition uint8

const (
	New      Repetition = iota // the part was not emitted as complete
	Repeated                   // it was, with an equal content: nothing is new
	Late                       // it was, with another content: a complete part does not change
)

// Compare compares a content with that of the part.
func (e Emitted) Compare(id PartID, content func() Sum) Repetition {
	switch p := e.Find(id); {
	case p == nil || p.Sum == 0:
		return New
	case p.Sum == content():
		return Repeated
	}
	return Late
}

// Complete records that the part was emitted as complete with that content.
func (e *Emitted) Complete(id PartID, content Sum) { e.Open(id).Sum = content }

// Written is the text that a run has emitted in parts, of which a later record has the whole
// without marks between them. The zero value is no text.
type Written struct {
	Len int `json:",omitempty"` // bytes
	Sum Sum `json:",omitempty"`
}

// Add appends a part.
func (w *Written) Add(part []byte) { w.Len, w.Sum = w.Len+len(part), w.Sum.Add(part) }

// Rest returns the text after the parts in the whole text; ok is false when it does not begin
// with them.
func (w Written) Rest(whole []byte) (rest []byte, ok bool) {
	if w.Len == 0 {
		return whole, true
	}
	if len(whole) < w.Len || SumOf(whole[:w.Len]) != w.Sum {
		return nil, false
	}
	return whole[w.Len:], true
}

// EndsWith reports whether the parts are the end of the whole text.
func (w Written) EndsWith(whole []byte) bool {
	return w.Len > 0 && len(whole) >= w.Len && SumOf(whole[len(whole)-w.Len:]) == w.Sum
}
