package letta

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// maxRuns limits the runs in the state; the parts of evicted runs are forgotten.
const maxRuns = 32

// run is the state of one run.
type run struct {
	ID string
	// Open are the blocks that the next frame may continue, in the order in which they began:
	// one, or the calls of a response that are written at the same time.
	Open    []*block             `json:",omitempty"`
	Emitted conversation.Emitted `json:",omitempty"`
	Numbers conversation.Numbers `json:",omitempty"` // of frames

	// Response is the base of its first block where the server names neither steps nor messages;
	// the next result or user message ends it.
	Response string `json:",omitempty"`
	Named    bool   `json:",omitempty"` // a message with the run's correlation id was emitted
	// Last is the latest date of the run's frames, and the time of its undated records.
	Last int64 `json:",omitempty"`

	Begun bool `json:",omitempty"` // a numbered frame or content arrived
	Late  bool `json:",omitempty"` // the beginning of its first message is missing

	Ended bool   `json:",omitempty"`
	Fine  bool   `json:",omitempty"` // it ended without a failure
	Stop  string `json:",omitempty"` // why it ended
	Usage string `json:",omitempty"` // hash of its usage, once that was emitted
}

// runOf returns the run of a frame with content, and emits the pending messages to the agent
// in it. Where no frame names its run, the run has the id of the first message of the stream,
// or of the first after a message to the agent.
func (d *stream) runOf(v jsonv.Value) *run {
	if named := v.Get("run_id"); len(named.Escaped()) > 0 {
		if !ident.Is(named, d.Run) {
			d.Run = ident.Of(named)
		}
		return d.enter(d.Run, v)
	}
	if r := d.find(d.Run); r != nil && !r.Ended && len(d.Pending) == 0 {
		r.dated(&d.writer, v)
		return r
	}
	id := ident.Of(v.First("id", "otid"))
	if id == "" {
		id = "run:" + msg.HashKey(string(v.Get("date").Peek()), string(v.Get("message_type").Peek()))
	}
	return d.enter(id, v)
}

// runOrLast returns the run of a frame that belongs to a run without being its content (an
// end, an error): the one that the frame names, or else the last. It may be nil.
func (d *stream) runOrLast(v jsonv.Value) *run {
	if id := ident.Of(v.Get("run_id")); id != "" {
		return d.enter(id, v)
	}
	r := d.find(d.Run)
	if r != nil {
		r.dated(&d.writer, v)
	}
	return r
}

// enter returns the run with that id, which the frame v belongs to.
func (d *stream) enter(id string, v jsonv.Value) *run {
	d.Run = id
	r := d.open(id)
	r.dated(&d.writer, v)
	d.answer(r)
	return r
}

// dated notes the date of a frame of the run.
func (r *run) dated(w *writer, v jsonv.Value) {
	r.Last = max(r.Last, w.date.read(v.Get("date")).Nanos)
}

// find returns the run with that id, or nil.
func (w *writer) find(id string) *run {
	return bounded.Find(w.Runs, func(r *run) bool { return r.ID == id })
}

// open returns the run with that id, as the most recently used, and creates it if need be.
func (w *writer) open(id string) *run {
	if n := len(w.Runs); n == 0 || w.Runs[n-1].ID != id {
		w.Runs = bounded.Use(w.Runs, maxRuns, func(r *run) bool { return r.ID == id }, func() *run {
			if n == maxRuns {
				w.Runs[0].cut(w)
			}
			return &run{ID: id}
		})
	}
	return w.Runs[len(w.Runs)-1]
}

// note decodes a summary of the context, or an event.
func (r *run) note(w *writer, v jsonv.Value, typ string, content jsonv.Value) *msg.Message {
	r.close(w)
	key := ident.Of(v.Get("id"))
	if key == "" {
		key = msg.HashKey(r.ID, typ, string(v.Get("date").Peek()), string(content.Peek()))
	}
	m := w.status(r, key, typ)
	m.Content = content.Text()
	w.stamp(m, v)
	return m
}

// id returns the id of the run; empty without one.
func (r *run) id() string {
	if r == nil {
		return ""
	}
	return r.ID
}

// number notes the number of a frame: the frames of a run are numbered from 1, so that its
// first one may be missing.
func (r *run) number(seq jsonv.Value) {
	if !r.Begun && seq.Is(jsonv.Number) {
		r.Begun, r.Late = true, seq.Int() > 1
	}
}

// undated is the time of a message without a date. It stays the same when the message is
// repeated.
func (r *run) undated(key string) int64 {
	p := r.Emitted.Open(conversation.PartID{Kind: "undated", Name: conversation.SumOf(key)})
	if p.Sum == 0 {
		p.Sum = conversation.Sum(max(r.Last, 1))
	}
	if p.Sum == 1 {
		return 0
	}
	return int64(p.Sum)
}

// repeats reports whether a part was emitted as complete before. A repetition is ignored, and
// a late piece is kept raw.
func (r *run) repeats(w *writer, v jsonv.Value, id conversation.PartID, content func() conversation.Sum) bool {
	if w.whole {
		return false
	}
	is := r.Emitted.Compare(id, content)
	if is == conversation.Late {
		w.raw(v, "late_piece")
	}
	return is != conversation.New
}
