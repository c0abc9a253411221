package codex

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

// turns adds messages to the runs of a thread: a run is a turn, of a sub-agent all its turns.
type turns struct {
	*codex.Thread
	*memory
}

// enter begins the run of the turn that the record names, unless it is active. The run of a prompt that came
// before anything named its turn keeps its id.
func (d *turns) enter(r *record) {
	switch turn := r.turn(); {
	case turn == "" || turn == d.Turn:
	case d.Child, d.Run != "" && d.Turn == "" && d.Prompted && !d.Replied:
		d.Turn = turn
	default:
		d.begin(r, turn)
	}
}

// wake begins a run with the record if none is active.
func (d *turns) wake(r *record) {
	if d.Run == "" {
		d.begin(r, r.turn())
	}
}

// prompt handles a prompt to the agent. A version without records of turns begins a run with
// each prompt.
func (d *turns) prompt(r *record) {
	if !d.Child && (d.Run == "" || !d.Lifecycle && (d.Prompted || d.Replied)) {
		d.begin(r, r.id())
	}
	d.Prompted = true
	d.close()
}

// begin begins a run, and with that ends the one before. Without an id it has the key of the record.
func (d *turns) begin(r *record, id string) {
	d.Run, d.Turn, d.Prompted, d.Replied = r.or(id), r.turn(), false, false
	d.close()
}

// ended decodes task_complete and turn_aborted, which end a turn.
func (d *turns) ended(r *record, reason string) {
	last := r.p.Get("last_agent_message")
	if text := sum(msg.Assistant, last); slices.ContainsFunc(d.Texts, func(t knownText) bool { return t.Sum == text }) {
		last.MarkRead()
	}
	turn, run := ident.Peek(r.p.Get("turn_id")), d.Run
	if !d.Child && turn != "" && (run == "" || d.Turn != "" && turn != d.Turn) {
		run = turn // another than the active one
	}
	key := r.or(turn)
	if run == "" || key == d.Stopped {
		d.Status(r.id(), r.name)
		return
	}
	d.Stopped = key
	fault := r.p.Get("error")
	if fault.Exists() {
		reason = codex.Failed
	}
	conversation.AttrsAs(d.Stop(run, key, reason, fault), r.p, jsonv.Value.Digits, "duration_ms", "time_to_first_token_ms")
	if run != d.Run {
		return
	}
	d.Turn, d.Texts = "", nil
	if !d.Child {
		d.Run = ""
	}
}

// compacted decodes the replacement of the context by a summary. The items of the new
// context are in earlier records and count nowhere.
func (d *turns) compacted(r *record) {
	d.close()
	d.Compacted = true
	m := d.Status(r.id(), "compacted")
	m.Hidden, m.Signal = false, msg.Compaction
	m.Content = r.p.Get("message").Text()
	m.SetAttr("replaced_items", conversation.NonZero(r.p.Get("replacement_history").Len()))
	m.SetAttr("window_number", r.p.Get("window_number").Digits())
}

// response is the output of the model between two inputs. The format has no id for it; the
// key of its first part is used. It is done when its usage was emitted, which may be before
// its response_items are read, as in 0.40.
type response struct {
	conversation.Response
	Closed bool `json:",omitempty"` // the model got another input since
	Items  bool `json:",omitempty"` // response_items of it were read before its usage
}

// has records that a response_item of the response was read.
func (p *response) has() {
	if p != nil && !p.Closed && !p.Done {
		p.Items = true
	}
}

// part adds a part of the open response, or of a new one. id is the key of the item that
// the part belongs to. A response with usage is complete, unless its response_items are still to come.
func (d *turns) part(r *record, kind msg.Kind, id, key string) *msg.Message {
	d.wake(r)
	d.Replied, d.Compacted = true, false
	item := r.family == byItem
	if p := d.Response; p == nil || p.Closed || p.Done && (p.Items || !item) {
		d.Response = &response{Response: conversation.Response{ID: id, Run: d.Run}}
	}
	if item {
		d.Response.has()
	}
	d.Response.Model, d.Response.Provider = d.Model, d.Provider
	return d.Response.Next(d.Add(kind, key))
}

// close closes the open response, because the model has a new input.
func (d *turns) close() {
	if d.Response != nil {
		d.Response.Closed = true
	}
}

// tokens decodes token_count:
//
//	{"info": {"total_token_usage": {…}, "last_token_usage": {…}, "model_context_window": n} | null, "rate_limits": {…}}
//
// It is the usage of one response if the total has moved. A version without a total writes
// the record once for each response, one without last_token_usage the total alone. A thread that goes on from a history
// that is not in its file begins with the total of that history, and a last_token_usage without tokens.
func (d *turns) tokens(r *record) {
	info := r.p.Get("info")
	told, none := info.Get("last_token_usage"), conversation.Counts{}
	total, last := openai.Usage(info.Get("total_token_usage")), openai.Usage(told)
	if total != none {
		if grown := d.Grow(total); grown == none || !told.Exists() {
			last = grown
		}
	}
	var m *msg.Message
	if last != none && !d.told(&d.Recorded, &d.Counted, last) {
		m = d.used(r, last)
		m.SetAttr("context_window", info.Get("model_context_window").Digits())
	} else if m = d.Status(r.id(), r.name); info.Is(jsonv.Object) && !info.Get("total_token_usage").Exists() {
		m.Content = info.JSON() // of an unknown form
	}
	limits := r.p.Get("rate_limits") // how much of the account's allowance is used
	m.SetAttr("primary_used_percent", limits.Path("primary", "used_percent").Digits())
	m.SetAttr("secondary_used_percent", limits.Path("secondary", "used_percent").Digits())
	m.SetAttr("rate_limit_reached", ident.Of(limits.Get("rate_limit_reached_type")))
}

// recorded decodes token_usage_record, the usage of one response:
//
//	{"thread_id", "turn_id", "response_id", "usage": {…}, "turn_token_usage": {…}, "thread_token_usage": {…}}
func (d *turns) recorded(r *record) {
	r.name = r.typ.Str()
	thread, none := ident.Peek(r.p.Get("thread_id")), conversation.Counts{}
	response := ident.Of(r.p.Get("response_id"))
	if c := openai.Usage(r.p.Get("usage")); c != none && (thread == "" || thread == d.ID || d.ID == "") && !d.told(&d.Counted, &d.Recorded, c) {
		r.key = r.or(response)
		d.used(r, c).SetAttr("provider_response_id", response)
		return
	}
	d.Status(r.id(), r.name).SetAttr("provider_response_id", response)
}

// maxTold is the number of usages that may wait for the other kind of record.
const maxTold = 8

// told reports whether the other kind of record had the usage, else remembers it for that.
func (d *turns) told(other, own *[]conversation.Counts, c conversation.Counts) bool {
	if _, ok := bounded.Take(other, func(o conversation.Counts) bool { return o == c }); ok {
		return true
	}
	*own = bounded.Push(slices.Grow(*own, max(0, maxTold-len(*own))), c, maxTold)
	return false
}

// used adds the tokens of a response: of the last one, or of one whose parts are still to come.
func (d *turns) used(r *record, c conversation.Counts) *msg.Message {
	run, key, p := d.Run, r.id(), d.Response
	switch {
	case p != nil && !p.Done:
		run, key = p.Run, p.ID
	case run != "" && (p == nil || p.Closed) && !d.Compacted:
		p = &response{Response: conversation.Response{ID: key, Run: run}}
		d.Response = p
	default:
		p = &response{} // a request of the CLI's own, to compact the context
	}
	m := d.Usage(run, key, c, msg.TranscriptFinal)
	p.Done, m.ResponseID, m.ParentKey = true, p.ID, p.Last
	return m
}

// counted decodes the counts of turn.completed: {usage: {input_tokens, …}}. They are those of the turn,
// and count in a thread that has no token_count.
func (d *turns) counted(r *record) {
	if c, none := openai.Usage(r.p.Get("usage")), (conversation.Counts{}); c != none && d.Total == none {
		d.wake(r)
		d.Usage(d.Run, r.id(), c, msg.TranscriptFinal)
	}
}
