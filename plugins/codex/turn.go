package codex

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// enter begins the run of a turn that is named, unless it goes on already. The
// run of a prompt that came before anything named its turn keeps its id. A
// sub-agent has one run, whatever its turns.
func (d *thread) enter(turn string) {
	switch {
	case turn == "" || turn == d.Turn:
	case d.Child:
		d.Turn = turn
	case d.Run != "" && d.Turn == "" && d.Prompted && !d.Answered:
		d.Turn = turn
	default:
		d.begin(turn)
		d.Turn = turn
	}
}

// begin begins a run of the thread, and with that ends the one before.
func (d *thread) begin(id string) {
	d.Run, d.Turn, d.Prompted, d.Answered = id, "", false, false
	d.close()
}

// prompt notes that the record asks something of the agent. Where turns are not
// told of, a prompt begins one.
func (d *thread) prompt(r *record) {
	if !d.Child && (d.Run == "" || !d.Lifecycle && (d.Prompted || d.Answered)) {
		d.begin(r.id())
		d.Turn = r.turn()
	}
	d.Prompted = true
	d.close()
}

// wake begins a run with the record if none goes on.
func (d *thread) wake(r *record) {
	if d.Run != "" {
		return
	}
	turn := r.turn()
	if turn == "" {
		turn = r.id()
	}
	d.begin(turn)
	d.Turn = r.turn()
}

// introduce completes the first message of a run. A child's parent is a turn of
// another thread, which the thread's id names only if it is a child itself.
func (d *thread) introduce(m *msg.Message) {
	if m.Run == "" || m.Run != d.Run || m.Run == d.Last {
		return
	}
	d.Last = m.Run
	m.Signal = msg.RunStart
	if !d.Child {
		if !d.Manual {
			m.Delegation.CorrelationID = spawn.ID(spawn.Codex, d.Thread)
		}
		return
	}
	m.ParentRun = msg.UnknownRun
	if d.Parent != "" && d.Parent != d.Session {
		m.ParentRun, m.Delegation.Link = d.Parent, msg.ByParent
	}
}

// started decodes task_started.
func (d *thread) started(r *record) {
	d.Lifecycle = true
	d.enter(peek(r.p.Get("turn_id")))
	m := d.status(r, r.id(), "task_started")
	m.SetAttr("context_window", number(r.p.Get("model_context_window")))
}

// ended decodes task_complete and turn_aborted, which end a turn.
func (d *thread) ended(r *record, typ, reason string) {
	if last := r.p.Get("last_agent_message"); d.heardBefore(fingerprint('a', last)) {
		last.MarkRead()
	}
	turn, run := peek(r.p.Get("turn_id")), d.Run
	other := !d.Child && turn != "" && (d.Run == "" || d.Turn != "" && turn != d.Turn)
	if other { // not the one that goes on
		run = turn
	}
	key := turn
	if key == "" {
		key = r.id()
	}
	if run == "" || key == d.Ended {
		d.status(r, r.id(), typ)
		return
	}
	d.Ended = key
	m := d.giveIn(r, run, msg.Stop, "stop:"+key)
	m.Hidden, m.FinishReason, m.Signal = true, reason, msg.RunEnd
	if fault := r.p.Get("error"); fault.Exists() {
		m.IsError, m.FinishReason, m.Hidden = true, "error", false
		m.Content = fault.First("message").Text()
		m.Tool.ErrorType = errorInfo(fault.Get("codex_error_info"))
	} else {
		m.IsError = reason != stopped
	}
	m.SetAttr("duration_ms", number(r.p.Get("duration_ms")))
	m.SetAttr("time_to_first_token_ms", number(r.p.Get("time_to_first_token_ms")))
	if other {
		return
	}
	d.Turn, d.Prompted, d.Answered, d.Twins = "", false, false, nil
	if !d.Child {
		d.Run = ""
	}
}

// stopped is the finish reason of a turn that came to its end.
const stopped = "stop"

// errorInfo is the class of an error: a string, or an object of one member.
//
//	"usage_limit_exceeded"
//	{"http_connection_failed": {"http_status_code": 502}}
func errorInfo(v jsonv.Value) string {
	for name := range v.Members() {
		if s := name.String(); len(s) <= maxIdent {
			return s
		}
	}
	return ident(v)
}

// compacted notes that the context was replaced by a summary. What it was
// replaced with has been said before and counts nowhere.
func (d *thread) compacted(r *record) {
	d.close()
	d.Compacted = true
	m := d.status(r, r.id(), "compacted")
	m.Hidden, m.Signal = false, msg.Compaction
	m.Content = r.p.Get("message").Text()
	m.SetAttr("replaced_items", count(r.p.Get("replacement_history").Len()))
	m.SetAttr("window_number", number(r.p.Get("window_number")))
}
