package letta

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	maxRuns  = 32  // in the state at a time; the parts of evicted runs are forgotten
	maxParts = 256 // of one run, to recognize repetitions
	maxSpans = 64  // ranges of frame numbers
)

// run is the state of one run.
type run struct {
	ID    string
	Block *block `json:",omitempty"` // the next frame may continue it
	// Beside are the calls that the model writes at the same time as those of Block, in the
	// order in which they began: their pieces may interleave.
	Beside []*block `json:",omitempty"`
	Parts  []part   `json:",omitempty"` // oldest first

	// Response is the base of its first block where the server names neither steps nor messages;
	// the next result or user message ends it.
	Response string `json:",omitempty"`
	Named    bool   `json:",omitempty"` // a message with the run's correlation id was emitted
	// Last is the latest date of the run's frames, and the time of its undated records.
	Last int64 `json:",omitempty"`

	Heard bool   `json:",omitempty"` // a numbered frame arrived
	Late  bool   `json:",omitempty"` // the first numbered frame was not the run's first
	Begun bool   `json:",omitempty"` // it has content
	Seen  []span `json:",omitempty"` // numbers of frames, in order

	Ended bool   `json:",omitempty"`
	Stop  string `json:",omitempty"` // why
	Usage string `json:",omitempty"` // hash of its usage, once that was emitted
}

// span is a range of numbers of frames, both ends included.
type span struct{ From, To int64 }

// runOf returns the run of a frame with content, and emits the pending messages to the agent
// in it. Where no frame names its run, the run has the id of the first message of the stream,
// or of the first after a message to the agent.
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
	d.emitPending(r)
	return r
}

// dated notes the date of a frame of the run.
func (d *stream) dated(r *run, v jsonv.Value) {
	t, _ := d.date.read(v.Get("date"))
	r.Last = max(r.Last, t)
}

// runOrLast returns the run of a frame that belongs to a run without being its content (an
// end, an error): the one that the frame names, or else the last. It may be nil.
func (d *stream) runOrLast(v jsonv.Value) *run {
	s := ident.Of(v.Get("run_id"))
	if s == "" {
		r := d.find(d.Run)
		if r != nil {
			d.dated(r, v)
		}
		return r
	}
	d.dated(d.open(s), v)
	return d.openNamed(s)
}

// openNamed returns the run with an id that a frame names.
func (d *stream) openNamed(id string) *run {
	d.Run = id
	r := d.open(id)
	d.emitPending(r)
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

// open returns the run with that id, as the most recently used, and creates it if need be.
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
		d.cutRun(d.Runs[0])
		d.Runs = slices.Delete(d.Runs, 0, 1)
	}
	r := &run{ID: id}
	d.Runs = append(d.Runs, r)
	return r
}

// isRepeated reports whether a frame with that number arrived before, as in a resumed stream,
// and records the number otherwise. Streams in the foreground have no numbers.
func (r *run) isRepeated(seq jsonv.Value) bool {
	if !seq.Is(jsonv.Number) {
		return false
	}
	n := seq.Int()
	r.noteNumber(n)
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

// noteNumber records whether the first frame of the run is there: its frames are numbered
// from 1.
func (r *run) noteNumber(n int64) {
	if !r.Heard {
		r.Heard, r.Late = true, n > 1
	}
}

// ping names the run. It repeats the number of the last frame.
func (d *stream) ping(v jsonv.Value) {
	if r := d.runOrLast(v); r != nil {
		if seq := v.Get("seq_id"); seq.Is(jsonv.Number) {
			r.noteNumber(seq.Int())
		}
	}
}

// part is a part of a response that is open or was emitted.
type part struct {
	Base uint64 // hash of the common prefix of a response's parts
	Kind partKind
	Name uint64 // hash that distinguishes it among these
	N    int    // ordinal among those of its kind
	Sum  uint64 `json:",omitempty"` // hash of its content, once that is complete
}

// partKind is the kind of a part.
type partKind string

const (
	thinking  partKind = "thinking"
	text      partKind = "text"
	hidden    partKind = "hidden"
	calling   partKind = "call"
	resulting partKind = "result"
	beginning partKind = "first" // of a response, which has one signal
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

// undatedTime is the time of a message without a date. It stays the same when the message is
// repeated.
func (r *run) undatedTime(key string) int64 {
	p := r.part(0, undated, hash(key))
	if p.Sum == 0 {
		p.Sum = uint64(max(r.Last, 1))
	}
	if p.Sum == 1 {
		return 0
	}
	return int64(p.Sum)
}

// findPart returns the part with that name, or nil.
func (r *run) findPart(base uint64, kind partKind, name uint64) *part {
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Base == base && p.Kind == kind && p.Name == name {
			return p
		}
	}
	return nil
}
