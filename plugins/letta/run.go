package letta

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// maxRuns limits the runs in the state; the parts of evicted runs are forgotten.
const maxRuns = 32

// run is the state of one run. The one without an id is no run: messages outside of all runs
// are put into it, and it is not kept.
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

	// First is the number of the first frame, from 1: above it, the beginning of the first message is
	// missing. It is 1 once there was content.
	First int64 `json:",omitempty"`

	Ended bool   `json:",omitempty"`
	Stop  string `json:",omitempty"` // why it ended
	Usage string `json:",omitempty"` // hash of its usage, once that was emitted
}

// runOf returns the run of a record: the one that it names, or else the last. Where no frame
// names its run, a record with content begins one after an end or a message to the agent, with
// the id of the record.
func (d *stream) runOf(v jsonv.Value, content bool) *run {
	id, named := d.Run, v.Get("run_id")
	switch r := d.find(id); {
	case len(named.Escaped()) > 0:
		if !ident.Is(named, id) {
			id = ident.Of(named)
		}
	case !content || r.ID != "" && !r.Ended && len(d.Pending) == 0:
		r.Last = max(r.Last, d.At.Nanos)
		return r
	default:
		if id = ident.Of(v.First("id", "otid")); id == "" {
			id = "run:" + msg.HashKey(string(v.Get("date").Peek()), string(v.Get("message_type").Peek()))
		}
	}
	return d.enter(id)
}

// enter returns the run with that id, which the record is of, and emits the pending messages
// to the agent in it.
func (d *stream) enter(id string) *run {
	d.Run = id
	r := d.open(id)
	r.Last = max(r.Last, d.At.Nanos)
	d.answer(r)
	return r
}

// find returns the run with that id, or the run that is none.
func (w *writer) find(id string) *run {
	if r := bounded.Find(w.Runs, func(r *run) bool { return r.ID == id }); r != nil {
		return r
	}
	w.none = run{}
	return &w.none
}

// open returns the run with that id, as the most recently used, and creates it if need be.
func (d *stream) open(id string) *run {
	return bounded.Use(&d.Runs, maxRuns, func(r *run) bool { return r.ID == id }, func() *run { return &run{ID: id} }, func(r *run) { r.cut(d) })
}

// number notes the number of a frame.
func (r *run) number(seq jsonv.Value) {
	if r.First == 0 && seq.Is(jsonv.Number) {
		r.First = max(seq.Int(), 1)
	}
}

// undated is the time of a message without a date: the server sends such a record right after
// a dated one. It stays the same when a complete message is repeated.
func (r *run) undated(m *msg.Message) int64 {
	if m.Complete == msg.Partial {
		return r.Last
	}
	p := r.Emitted.Open(conversation.PartID{Kind: "undated", Name: conversation.SumOf(m.Key)})
	if p.Sum == 0 {
		p.Sum = conversation.Sum(r.Last) + 1
	}
	return int64(p.Sum - 1)
}

// repeats reports whether a part was emitted as complete before. A repetition is ignored, and
// a late piece is kept raw.
func (w *writer) repeats(r *run, v jsonv.Value, id conversation.PartID, content func() conversation.Sum) bool {
	if w.whole {
		return false
	}
	is := r.Emitted.Compare(id, content)
	if is == conversation.Late {
		w.raw(v, "late_piece")
	}
	return is != conversation.New
}

// note decodes a summary of the context, or an event.
func (r *run) note(d *stream, v jsonv.Value, typ string, content jsonv.Value) *msg.Message {
	r.close(d)
	key := ident.Of(v.Get("id"))
	if key == "" {
		key = msg.HashKey(r.ID, typ, string(v.Get("date").Peek()), string(content.Peek()))
	}
	m := record.Hide(d.dated(r, msg.Status, key), typ)
	m.Content = content.Text()
	return m
}

// paused is the stop reason of a run that waits for a person.
const paused = "requires_approval"

// The stop reasons of a run that failed, in the middle of a message or after it.
var (
	midway = []string{"error", "llm_api_error", "invalid_llm_response", "incomplete_run", "cancelled"}
	after  = []string{"invalid_tool_call", "no_tool_call", "max_tokens_exceeded", "insufficient_credits", "context_window_overflow_in_system_prompt"}
)

func failed(reason string) bool {
	return slices.Contains(midway, reason) || slices.Contains(after, reason)
}

// stop decodes a stop reason, which an answer has in a record. Before any frame has named its run,
// the next one may.
func (d *stream) stop(v jsonv.Value) {
	stop := v.Get("stop_reason")
	reason := cmp.Or(ident.First(stop, stop.Get("stop_reason")), "unknown")
	d.take(d.runOf(v, false), msg.Message{Kind: msg.Stop, FinishReason: reason, Run: "stop:" + reason})
}

// end ends a run, once; an error in its cleanup sends a second stop reason.
func (r *run) end(d *stream, reason string) {
	if slices.Contains(midway, reason) {
		r.cut(d)
	}
	r.close(d)
	if r.Ended {
		if r.Stop != reason {
			record.Hide(d.add(r, msg.Status, "stop:"+r.ID+"/"+reason), "stop_reason").FinishReason = reason
		}
		return
	}
	r.Ended, r.Stop = true, reason
	m := d.add(r, msg.Stop, "stop:"+r.ID)
	m.FinishReason, m.Signal = reason, msg.RunEnd
	switch {
	case reason == paused:
		m.Signal = msg.RunPause
	case failed(reason):
		m.IsError, m.Tool.ErrorType = true, reason
	}
}

// done ends a stream. The run of a server without stop reasons ends with it.
func (d *stream) done() {
	d.unanswered()
	r := d.find(d.Run)
	r.close(d)
	if r.ID != "" && !r.Ended {
		r.end(d, "")
	}
}

// counts are the classes of tokens, and where a server writes them: in one place, or else in
// another, within an object.
var counts = [...]struct{ class, name, within, nested string }{
	{class: "input", name: "prompt_tokens"},
	{class: "output", name: "completion_tokens"},
	{"cache_read", "cached_input_tokens", "prompt_tokens_details", "cached_tokens"},
	{"cache_write", "cache_write_tokens", "prompt_tokens_details", "cache_creation_tokens"},
	{"reasoning", "reasoning_tokens", "completion_tokens_details", "reasoning_tokens"},
}

// usage decodes the token usage of a run, over all its responses. The classes of the protocol
// contain each other, and one that is null is unknown.
func (d *stream) usage(v jsonv.Value) {
	v.Get("message_type").Equal("usage_statistics")
	if !v.Get("prompt_tokens").IsCount() && !v.Get("completion_tokens").IsCount() {
		d.unknown(v, "usage_statistics")
		return
	}
	var c conversation.Counts
	var facts, unreported []string
	for i, count := range [...]*uint64{&c.Input, &c.Output, &c.CacheRead, &c.CacheWrite, &c.Reasoning} {
		n := jsonv.Or(v.Get(counts[i].name), v.Path(counts[i].within, counts[i].nested))
		if *count, facts = n.Uint(), append(facts, string(n.Peek())); !n.IsCount() {
			unreported = append(unreported, counts[i].class)
		}
	}
	r, count := d.runOfUsage(v.Get("run_ids")), msg.HashKey(facts...)
	r.close(d)
	switch r.Usage {
	case "":
	case count:
		return // a repetition
	default: // the first count is final
		record.Hide(d.add(r, msg.Status, "usage:"+r.ID+"/"+count), "usage_statistics").Content = v.JSON()
		return
	}
	r.Usage = count
	m := d.add(r, msg.Usage, "usage:"+cmp.Or(r.ID, count))
	m.Hidden = true
	m.Usage = openai.Tokens(c, msg.Provider)
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "step_count", "context_tokens")
	m.SetAttr("unreported", strings.Join(unreported, " "))
	d.sleeptimeRuns(r, v.Get("run_ids"))
}

// runOfUsage returns the run of a count: the last run, unless the count names other runs
// only, of which one is known; before any run, the first that it names.
func (d *stream) runOfUsage(ids jsonv.Value) *run {
	named := d.Run
	for v := range ids.Elems() {
		switch id := ident.Of(v); {
		case id == "":
		case d.Run == "":
			return d.enter(id)
		case id == d.Run:
			return d.find(id)
		case d.find(id).ID != "":
			named = id
		}
	}
	if named == "" {
		return d.unanswered()
	}
	return d.find(named)
}

// failure decodes an error. An error in the cleanup of a run that succeeded is not the run's
// error.
func (d *stream) failure(v jsonv.Value) {
	r := d.runOf(v, false)
	if r.ID == "" { // the stop reason may follow
		r = d.unanswered()
		d.Run = r.ID
	}
	r.cut(d)
	typ := cmp.Or(ident.Of(v.First("error_type", "code")), "error")
	content := v.First("message", "error", "detail")
	m := d.add(r, msg.Error, "error:"+msg.HashKey(r.ID, typ, string(content.Peek())))
	m.Content = content.Text()
	if typ == "cleanup_error" && r.Ended && !failed(r.Stop) && r.Stop != paused {
		m.Kind = msg.Status
		record.Hide(m, typ)
		return
	}
	m.IsError, m.Tool.ErrorType = true, typ
	if detail := v.Get("detail"); detail.Exists() && string(detail.Peek()) != string(content.Peek()) {
		m.SetAttr("detail", detail.Text().String())
	}
}

// put adds a message of a run, which completes it.
func (w *writer) put(r *run, m msg.Message) *msg.Message {
	m.Run, m.Session = r.ID, w.session(r.ID)
	if m.Agent == (msg.Agent{}) {
		m.Agent = w.agent(w.scope().Agent, "")
	}
	if m.Time == 0 {
		m.Time = r.undated(&m)
	}
	w.Out.Emit(m)
	return &w.Out.Messages[len(w.Out.Messages)-1]
}

// add adds a message without a date of its own.
func (w *writer) add(r *run, kind msg.Kind, key string) *msg.Message {
	return w.put(r, msg.Message{Kind: kind, Key: key, Complete: w.level})
}

// dated adds a message with the date of the record.
func (w *writer) dated(r *run, kind msg.Kind, key string) *msg.Message {
	return w.put(r, msg.Message{Kind: kind, Key: key, Complete: w.level, Time: w.At.Nanos, Precision: w.At.Precision})
}

// unknown keeps a record of unknown type; event is the name of its frame.
func (w *writer) unknown(v jsonv.Value, event string) {
	w.raw(v, cmp.Or(ident.Of(v.First("message_type", "type")), event, "none"))
}

// raw keeps v raw.
func (w *writer) raw(v jsonv.Value, typ string) {
	if m := w.Unknown(typ, v); m.Time == 0 || !v.Get("date").Exists() { // a call in a record has none
		m.Time, m.Precision = w.find(w.Run).undated(m), msg.Inferred
	}
}

// maxNames limits the agents whose names are in the state.
const maxNames = 64

// agentName is the display name of an agent in an earlier message.
type agentName struct{ ID, Name string }

// agent returns the agent with that id. Its name is the display name of this or an earlier
// message, else its id: dashboards group by the name, so it is empty only without an id.
func (w *writer) agent(id, name string) msg.Agent {
	known, _ := bounded.Take(&w.Names, func(n agentName) bool { return n.ID == id })
	if name = cmp.Or(name, known.Name); name != "" && id != "" {
		w.Names = bounded.Push(w.Names, agentName{id, name}, maxNames)
	}
	return msg.Agent{ID: id, Name: cmp.Or(name, id), Kind: msg.KindAgent}
}
