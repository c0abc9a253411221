package letta

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	maxRuns  = 32  // that are remembered at a time; of the others it is forgotten what they said
	maxParts = 256 // of one run, by which what is said again is recognized
	maxSpans = 64  // of numbers of frames
)

// run is what is remembered of one run.
type run struct {
	ID    string
	Block *block `json:",omitempty"` // which the next frame may continue
	// Beside are the calls that the model writes at the same time as those of Block, in
	// the order in which they began: their pieces may come in turns.
	Beside []*block `json:",omitempty"`
	Parts  []part   `json:",omitempty"` // oldest first

	// Response goes by its first block where the server names neither steps nor
	// messages; what is said to the model next ends it.
	Response string `json:",omitempty"`
	Named    bool   `json:",omitempty"` // a message with the name of the run was given
	// Last is the latest date of the run's frames. What has none was sent right after.
	Last int64 `json:",omitempty"`

	Heard bool   `json:",omitempty"` // a frame with a number has come
	Late  bool   `json:",omitempty"` // the first of them was not the run's first
	Begun bool   `json:",omitempty"` // it has said something
	Seen  []span `json:",omitempty"` // numbers of frames, in order

	Ended bool   `json:",omitempty"`
	Stop  string `json:",omitempty"` // why
	Usage string `json:",omitempty"` // hash of what it took, once that was given
}

// span is a range of numbers of frames, both ends included.
type span struct{ From, To int64 }

// runOf returns the run of a frame that says something, and hands it what was said
// to the agent before. Where no frame names its run, it goes by the first message
// of the stream, or after what was said.
func (d *stream) runOf(v jsonv.Value) *run {
	id := v.Get("run_id")
	switch {
	case !id.Is(jsonv.String) || len(id.Peek()) == 2:
		if r := d.find(d.Run); r != nil && !r.Ended && len(d.Pending) == 0 {
			return r
		}
		d.Run = ident.Of(v.First("id", "otid"))
		if d.Run == "" {
			d.Run = "run:" + msg.HashKey(string(v.Get("date").Peek()), string(v.Get("message_type").Peek()))
		}
	case !ident.Is(id, d.Run):
		d.Run = ident.Of(id)
	}
	r := d.open(d.Run)
	d.dated(r, v)
	d.placed(r)
	return r
}

// dated notes the date of a frame of the run.
func (d *stream) dated(r *run, v jsonv.Value) {
	t, _ := d.date.read(v.Get("date"))
	r.Last = max(r.Last, t)
}

// mentioned returns the run of a frame that has no place of its own in it (the end
// of it, an error): the one that the frame names, or else the last. It may be nil.
func (d *stream) mentioned(v jsonv.Value) *run {
	s := ident.Of(v.Get("run_id"))
	if s == "" {
		r := d.find(d.Run)
		if r != nil {
			d.dated(r, v)
		}
		return r
	}
	d.dated(d.open(s), v)
	return d.named(s)
}

// named returns the run with that id, which a frame has named.
func (d *stream) named(id string) *run {
	d.Run = id
	r := d.open(id)
	d.placed(r)
	return r
}

func (d *stream) find(id string) *run {
	for i := len(d.Runs) - 1; i >= 0; i-- {
		if d.Runs[i].ID == id {
			return d.Runs[i]
		}
	}
	return nil
}

// open returns the run with that id, begun if need be, as the last heard of.
func (d *stream) open(id string) *run {
	for i := len(d.Runs) - 1; i >= 0; i-- {
		if r := d.Runs[i]; r.ID == id {
			if i < len(d.Runs)-1 {
				d.Runs = append(slices.Delete(d.Runs, i, i+1), r)
			}
			return r
		}
	}
	if len(d.Runs) == maxRuns {
		d.cut(d.Runs[0])
		d.Runs = slices.Delete(d.Runs, 0, 1)
	}
	r := &run{ID: id}
	d.Runs = append(d.Runs, r)
	return r
}

// again reports whether the frame with that number has come before, as it does when
// a stream is resumed, and notes it otherwise. Streams in the foreground number
// nothing.
func (r *run) again(seq jsonv.Value) bool {
	if !seq.Is(jsonv.Number) {
		return false
	}
	n := seq.Int()
	r.hear(n)
	at, found := slices.BinarySearchFunc(r.Seen, n, func(s span, n int64) int {
		switch {
		case s.To < n:
			return -1
		case s.From > n:
			return 1
		}
		return 0
	})
	switch {
	case found:
		return true
	case at > 0 && r.Seen[at-1].To == n-1:
		r.Seen[at-1].To = n
		if at < len(r.Seen) && r.Seen[at].From == n+1 {
			r.Seen[at-1].To = r.Seen[at].To
			r.Seen = slices.Delete(r.Seen, at, at+1)
		}
	case at < len(r.Seen) && r.Seen[at].From == n+1:
		r.Seen[at].From = n
	default:
		if r.Seen = slices.Insert(r.Seen, at, span{n, n}); len(r.Seen) > maxSpans {
			r.Seen = slices.Delete(r.Seen, 0, 1)
		}
	}
	return false
}

// hear notes whether the run is heard from its beginning: its frames are numbered
// from 1.
func (r *run) hear(n int64) {
	if !r.Heard {
		r.Heard, r.Late = true, n > 1
	}
}

// ping names the run. It repeats the number of the last frame.
func (d *stream) ping(v jsonv.Value) {
	if r := d.mentioned(v); r != nil {
		if seq := v.Get("seq_id"); seq.Is(jsonv.Number) {
			r.hear(seq.Int())
		}
	}
}

// part is a part of a response that was given, or is being said.
type part struct {
	Base uint64 // hash of what the parts of a response have in common
	Kind partKind
	Name uint64 // hash of what names it among these
	N    int    // ordinal among those of its kind
	Sum  uint64 `json:",omitempty"` // hash of what it says, once that is complete
}

// partKind is the kind of a part.
type partKind string

const (
	thinking  partKind = "thinking"
	text      partKind = "text"
	hidden    partKind = "hidden"
	calling   partKind = "call"
	resulting partKind = "result"
	beginning partKind = "first" // of a response, which is signalled once
	undated   partKind = "undated"
)

// part returns the part with that name, or a new one.
func (r *run) part(base uint64, kind partKind, name uint64) *part {
	n := 0
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Base == base && p.Kind == kind {
			if p.Name == name {
				return p
			}
			n = p.N + 1
		}
	}
	if len(r.Parts) == maxParts {
		r.Parts = slices.Delete(r.Parts, 0, 1)
	}
	r.Parts = append(r.Parts, part{Base: base, Kind: kind, Name: name, N: n})
	return &r.Parts[len(r.Parts)-1]
}

// first is the time of a message without a date, which keeps it however often the message
// comes again.
func (r *run) first(key string) int64 {
	p := r.part(0, undated, hash(key))
	if p.Sum == 0 {
		p.Sum = uint64(max(r.Last, 1))
	}
	if p.Sum == 1 {
		return 0
	}
	return int64(p.Sum)
}

// known returns the part with that name, or nil.
func (r *run) known(base uint64, kind partKind, name uint64) *part {
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Base == base && p.Kind == kind && p.Name == name {
			return p
		}
	}
	return nil
}
