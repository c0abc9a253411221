package codex

import (
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

// turn is the state of the active turn.
type turn struct {
	Turn      string    `json:",omitempty"` // the protocol's id of the turn, which is the run's unless a prompt came first
	Stopped   string    `json:",omitempty"` // the last turn whose end was read
	Lifecycle bool      `json:",omitempty"` // the format version has records of turns (task_started)
	Prompted  bool      `json:",omitempty"` // the run has a prompt
	Replied   bool      `json:",omitempty"` // the model has answered in the run
	Response  *response `json:",omitempty"`
	Compacted bool      `json:",omitempty"` // and the model has not answered since
}

// turns adds messages to the runs of a thread: a run is a turn, of a sub-agent all its turns.
type turns struct {
	*codex.Thread
	*turn
	texts *texts
}

// enter begins the run of a named turn, unless it is active. The run of a prompt that came
// before anything named its turn keeps its id. A sub-agent has one run for all its turns.
func (d *turns) enter(turn string) {
	switch {
	case turn == "" || turn == d.Turn:
	case d.Child, d.Run != "" && d.Turn == "" && d.Prompted && !d.Replied:
		d.Turn = turn
	default:
		d.begin(turn, turn)
	}
}

// begin begins a run of the thread, and with that ends the one before.
func (d *turns) begin(id, turn string) {
	d.Run, d.Turn, d.Prompted, d.Replied = id, turn, false, false
	d.close()
}

// prompt handles a prompt to the agent. A version without records of turns begins one with
// each prompt.
func (d *turns) prompt(r *record) {
	if !d.Child && (d.Run == "" || !d.Lifecycle && (d.Prompted || d.Replied)) {
		d.begin(r.id(), r.turn())
	}
	d.Prompted = true
	d.close()
}

// wake begins a run with the record if none is active.
func (d *turns) wake(r *record) {
	if d.Run == "" {
		turn := r.turn()
		id := turn
		if id == "" {
			id = r.id()
		}
		d.begin(id, turn)
	}
}

// started decodes task_started.
func (d *turns) started(r *record) {
	d.Lifecycle = true
	d.enter(ident.Peek(r.p.Get("turn_id")))
	d.Status(r.id(), "task_started").SetAttr("context_window", r.p.Get("model_context_window").Digits())
}

// ended decodes task_complete and turn_aborted, which end a turn.
func (d *turns) ended(r *record, typ, reason string) {
	if last := r.p.Get("last_agent_message"); d.texts.has(fingerprint('a', last)) {
		last.MarkRead()
	}
	turn, run := ident.Peek(r.p.Get("turn_id")), d.Run
	other := !d.Child && turn != "" && (d.Run == "" || d.Turn != "" && turn != d.Turn)
	if other { // than the active one
		run = turn
	}
	key := turn
	if key == "" {
		key = r.id()
	}
	if run == "" || key == d.Stopped {
		d.Status(r.id(), typ)
		return
	}
	d.Stopped = key
	fault := r.p.Get("error")
	if fault.Exists() {
		reason = codex.Failed
	}
	m := d.Stop(run, key, reason, fault)
	conversation.AttrsAs(m, r.p, jsonv.Value.Digits, "duration_ms", "time_to_first_token_ms")
	if other {
		return
	}
	d.Turn, d.Prompted, d.Replied, *d.texts = "", false, false, nil
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
	if n := r.p.Get("replacement_history").Len(); n > 0 {
		m.SetAttr("replaced_items", strconv.Itoa(n))
	}
	m.SetAttr("window_number", r.p.Get("window_number").Digits())
}

// response is the output of the model between two inputs. The format has no id for it; the
// key of its first part is used.
type response struct {
	ID      string
	Run     string
	Last    string `json:",omitempty"` // key of its last part
	Closed  bool   `json:",omitempty"` // the model got another input since
	Counted bool   `json:",omitempty"` // its usage was emitted
	Items   bool   `json:",omitempty"` // response_items of it were read
	Early   bool   `json:",omitempty"` // its usage came before its response_items, as in 0.40
}

// part adds a part of the open response, or of a new one. id is the key of the item that
// the part belongs to.
func (d *turns) part(r *record, kind msg.Kind, id, key string) *msg.Message {
	d.wake(r)
	d.Replied, d.Compacted = true, false
	item := r.family == byItem
	if !d.Response.takes(item) {
		d.Response = &response{ID: id, Run: d.Run}
	}
	d.Response.Items = d.Response.Items || item
	m := d.Add(kind, key)
	m.Role = msg.RoleAssistant
	m.Model, m.Provider, m.ResponseID = d.Model, d.Provider, d.Response.ID
	m.ParentKey, d.Response.Last = d.Response.Last, key
	return m
}

// takes reports whether a part belongs to the response. A response with usage is complete,
// unless its response_items are still to come.
func (p *response) takes(item bool) bool {
	return p != nil && !p.Closed && (!p.Counted || p.Early && item)
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
// the record once for each response.
func (d *turns) tokens(r *record) {
	info := r.p.Get("info")
	total, last := openai.Usage(info.Get("total_token_usage")), openai.Usage(info.Get("last_token_usage"))
	none := conversation.Counts{}
	moved := total != d.Total
	if total == none {
		moved = last != none
	} else if grown := d.Grow(total); last == none {
		last = grown
	}
	if !moved || last == none {
		m := d.Status(r.id(), "token_count")
		d.limits(m, r)
		if info.Is(jsonv.Object) && !info.Get("total_token_usage").Exists() {
			m.Content = info.JSON() // of an unknown form
		}
		return
	}
	run, key, p := d.Run, r.id(), d.Response
	switch {
	case p != nil && !p.Counted:
		run, key = p.Run, p.ID
		p.Early = !p.Items && !p.Closed
	case run != "" && (p == nil || p.Closed) && !d.Compacted: // a response whose parts are still to come
		p = &response{ID: key, Run: run, Early: true}
		d.Response = p
	default:
		p = nil // a request of the CLI's own, to compact the context
	}
	m := d.Usage(run, key, last, msg.TranscriptFinal)
	if p != nil {
		p.Counted = true
		m.ResponseID, m.ParentKey = p.ID, p.Last
	}
	m.SetAttr("context_window", info.Get("model_context_window").Digits())
	d.limits(m, r)
}

// counted decodes the counts of turn.completed: {usage: {input_tokens, …}}. They are those of the turn,
// and count in a thread that has no token_count.
func (d *turns) counted(r *record) {
	c := openai.Usage(r.p.Get("usage"))
	if c == (conversation.Counts{}) || d.Total != (conversation.Counts{}) {
		return
	}
	d.wake(r)
	d.Usage(d.Run, r.id(), c, msg.TranscriptFinal)
}

// limits adds the used part of the account's allowance.
func (d *turns) limits(m *msg.Message, r *record) {
	v := r.p.Get("rate_limits")
	m.SetAttr("primary_used_percent", v.Path("primary", "used_percent").Digits())
	m.SetAttr("secondary_used_percent", v.Path("secondary", "used_percent").Digits())
	m.SetAttr("rate_limit_reached", ident.Of(v.Get("rate_limit_reached_type")))
}

// repeated adds a hidden message for a record whose facts are in other messages.
func (d *turns) repeated(r *record, key, typ string, facts ...jsonv.Value) {
	for _, v := range facts {
		v.MarkRead()
	}
	d.Status(key, typ)
}

// again reports whether another family of records had the text before. The record is then a
// hidden message.
func (d *turns) again(r *record, text uint64, typ string, facts ...jsonv.Value) bool {
	if !d.texts.repeats(text, r.family) {
		return false
	}
	key := r.id()
	if r.family == byItem {
		key = "item:" + key
	}
	d.repeated(r, key, typ, facts...)
	return true
}

func (d *turns) unknown(r *record, typ string) {
	d.Unknown(msg.HashKey(string(r.root.Peek())), typ, r.root)
}

// aside adds a message for a text that is injected into a prompt.
func (d *turns) aside(key, tag string, text msg.Text) {
	m := d.Add(msg.System, key)
	m.Role, m.Hidden, m.Content = msg.RoleUser, true, text
	m.SetAttr("injected", tag)
}
