package letta

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
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

// paused is the stop reason of a run that waits for a person.
const paused = "requires_approval"

// failed reports whether a run failed by its stop reason, and whether that was in the middle of
// a message.
func failed(reason string) (failed, midway bool) {
	switch reason {
	case "error", "llm_api_error", "invalid_llm_response", "incomplete_run", "cancelled":
		return true, true
	case "invalid_tool_call", "no_tool_call", "max_tokens_exceeded", "insufficient_credits",
		"context_window_overflow_in_system_prompt":
		return true, false
	}
	return false, false
}

// stop decodes a stop reason. Before any frame has named its run, the next one may.
func (d *stream) stop(v jsonv.Value) {
	reason := cmp.Or(ident.Of(v.Get("stop_reason")), "unknown")
	if r := d.runOrLast(v); r != nil {
		r.stop(&d.writer, reason)
	} else {
		d.wait(&pending{Stop: reason, Own: "stop:" + reason})
	}
}

// stop ends a run, once; an error in its cleanup sends a second stop reason.
func (r *run) stop(w *writer, reason string) {
	failed, midway := failed(reason)
	if midway {
		r.cut(w)
	}
	r.close(w)
	if r.Ended {
		if r.Stop != reason {
			m := w.status(r, "stop:"+r.ID+"/"+reason, "stop_reason")
			m.FinishReason, m.Time = reason, r.undated(m.Key)
		}
		return
	}
	r.Ended, r.Stop, r.Fine = true, reason, !failed && reason != paused
	m := w.message(r, msg.Stop, "stop:"+r.ID)
	m.FinishReason, m.Signal, m.IsError = reason, msg.RunEnd, failed
	if failed {
		m.Tool.ErrorType = reason
	}
	if reason == paused {
		m.Signal = msg.RunPause
	}
}

// done ends a stream. The run of a server without stop reasons ends with it.
func (d *stream) done() {
	d.unanswered()
	if r := d.find(d.Run); r != nil {
		r.close(&d.writer)
		if !r.Ended {
			r.stop(&d.writer, "")
		}
	}
}

// usage decodes the token usage of a run, over all its responses. The classes of the protocol
// contain each other, and one that is null is unknown.
func (d *stream) usage(v jsonv.Value) {
	v.Get("message_type").Equal("usage_statistics")
	prompt, completion := v.Get("prompt_tokens"), v.Get("completion_tokens")
	if !prompt.IsCount() && !completion.IsCount() {
		d.unknown(v, "usage_statistics")
		return
	}
	r := d.runOfUsage(v.Get("run_ids"))
	if r == nil {
		r = d.unanswered()
	}
	if r != nil {
		r.close(&d.writer)
	}
	class := func(name, within, nested string) jsonv.Value {
		if n := v.Get(name); n.IsCount() {
			return n
		}
		return v.Path(within, nested)
	}
	read := class("cached_input_tokens", "prompt_tokens_details", "cached_tokens")
	write := class("cache_write_tokens", "prompt_tokens_details", "cache_creation_tokens")
	reasoning := class("reasoning_tokens", "completion_tokens_details", "reasoning_tokens")
	var unreported, counts []string
	names := [...]string{"input", "output", "cache_read", "cache_write", "reasoning"}
	for i, n := range [...]jsonv.Value{prompt, completion, read, write, reasoning} {
		counts = append(counts, string(n.Peek()))
		if !n.IsCount() {
			unreported = append(unreported, names[i])
		}
	}
	facts := msg.HashKey(counts...)
	key := facts
	if r != nil {
		key = r.ID
		switch r.Usage {
		case "":
			r.Usage = facts
		case facts:
			return // a repetition
		default: // the first count is final
			m := d.status(r, "usage:"+r.ID+"/"+facts, "usage_statistics")
			m.Content, m.Time = v.JSON(), r.undated(m.Key)
			return
		}
	}
	m := d.message(r, msg.Usage, "usage:"+key)
	m.Hidden = true
	c := conversation.Counts{Input: prompt.Uint(), Output: completion.Uint(), CacheRead: read.Uint(), CacheWrite: write.Uint(), Reasoning: reasoning.Uint()}
	m.Usage = openai.Tokens(c, msg.Provider)
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "step_count", "context_tokens")
	m.SetAttr("unreported", strings.Join(unreported, " "))
	if r != nil {
		d.sleeptimeRuns(r, v.Get("run_ids"))
	}
}

// runOfUsage returns the run of a count: the last run, unless the count names other runs
// only, of which one is known. It may be nil.
func (d *stream) runOfUsage(ids jsonv.Value) *run {
	last := d.find(d.Run)
	named := last
	for id := range ids.Elems() {
		if last == nil {
			if ident.Of(id) == "" {
				return nil
			}
			return d.enter(ident.Of(id), jsonv.Value{})
		}
		if ident.Is(id, last.ID) {
			return last
		}
		if r := d.find(ident.Of(id)); r != nil {
			named = r
		}
	}
	return named
}

// failure decodes an error. An error in the cleanup of a run that succeeded is not the run's
// error.
func (d *stream) failure(v jsonv.Value) {
	r := d.runOrLast(v)
	if r == nil {
		r = d.unanswered()
	}
	if r != nil {
		r.cut(&d.writer)
	}
	typ := cmp.Or(ident.Of(v.First("error_type", "code")), "error")
	content := v.First("message", "error", "detail")
	key := "error:" + msg.HashKey(r.id(), typ, string(content.Peek()))
	if typ == "cleanup_error" && r != nil && r.Fine {
		m := d.status(r, key, typ)
		m.Content, m.Time = content.Text(), r.undated(key)
		return
	}
	m := d.message(r, msg.Error, key)
	if r != nil {
		m.Time = r.undated(key)
	}
	m.IsError, m.Tool.ErrorType, m.Content = true, typ, content.Text()
	if detail := v.Get("detail"); detail.Exists() && string(detail.Peek()) != string(content.Peek()) {
		m.SetAttr("detail", detail.Text().String())
	}
}
