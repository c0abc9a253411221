package grace

import (
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// ofRun reports whether messages of the action belong to the run as a whole, unless they
// name a task: what stands in their task_id is the conversation.
func ofRun(action string) bool {
	return ofTurn(action) || action == "question" || action == "chat" || action == "progress"
}

// ofTurn reports whether messages of the action belong to the run as a whole, whatever
// they name.
func ofTurn(action string) bool {
	switch action {
	case "coding", "coding_complete", "auto_reply", "plan", "continue":
		return true
	}
	return false
}

// act decodes a message by its action.
func (d *stream) act(r *record) {
	role := r.v.Get("role")
	if role.Equal("user") {
		d.asks(r)
		return
	}
	switch r.action {
	case "progress", "coding", "coding_complete", "update_status":
		d.progress(r)
		return
	case "chat":
		if pid := ident.OrNumber(r.get("pid")); pid != "" && r.task == "" {
			d.chatRow(r, pid)
			return
		}
	}
	if r.get("handledBySpecialist").Bool() && r.action == "" {
		r.action = "auto_reply"
	}
	if d.Fresh || d.Turn.Run == "" || d.Turn.Ended && r.action == "auto_reply" {
		d.opens(r)
	}
	switch r.action {
	case "auto_reply":
		d.reply(r)
	case "plan":
		d.plan(r)
	case "task":
		d.closes(r)
	case "finish":
		d.finish(r)
	case "finish_summery":
		d.answer(r)
	case "error":
		d.fails(r)
	case "stop":
		d.stops(r)
	case "continue":
		d.plan(r)
	case "chat":
		m := d.say(r, msg.Assistant, r.id())
		m.Content, m.Attachments = r.content(), d.files(r)
		d.modelText(m)
		if r.task == "" {
			d.end(m, "stop", false)
		}
	case "", "question": // the agent asks
		m := d.say(r, msg.Assistant, r.id())
		m.Content, m.Attachments = r.content(), d.files(r)
		d.modelText(m)
	default:
		d.tool(r)
	}
}

// opens begins a turn with the first message of its answer. Its time is the one
// fact that tells the turn from all others on the stream and in the rows.
func (d *stream) opens(r *record) {
	run := "turn-" + strconv.FormatInt(r.at.Time/1e6, 10)
	if r.at.Time == 0 {
		run = "turn-" + r.hash()
	}
	d.begin(run)
	d.question(r.at, r.out)
}

// begin begins a turn.
func (d *stream) begin(run string) {
	d.Fresh = false
	if run == d.Turn.Run {
		return
	}
	d.Turn = turn{Run: run}
	d.Tasks, d.Intents = nil, nil
	if d.Session == "" && d.origin == "" {
		d.Session = run
	}
}

// end says with m how the turn ended.
func (d *stream) end(m *msg.Message, reason string, failed bool) {
	m.Signal, m.FinishReason, m.IsError = msg.RunEnd, reason, failed
	d.Turn.Ended = true
}

// asks decodes a question, which only the database has.
func (d *stream) asks(r *record) {
	pid := ident.OrNumber(r.get("pid"))
	a := &ask{Hash: r.hash(), Text: keep(r.content()), At: r.at, Files: d.files(r)}
	if key := "asked:" + a.Hash; d.Shown == key || !d.listed {
		a.Key = key // rows are all there is: only the last can be without an answer
	}
	d.waits(r.out)
	d.Ask, d.Asked, d.Fresh = a, nil, true
	if row := ident.OrNumber(r.v.Get("id")); row != "" && (r.action == "chat" || pid != "") {
		d.begin(chatRun(row))
		d.question(r.at, r.out)
	}
}

// chatRow decodes a chat answer as the database has it.
func (d *stream) chatRow(r *record, question string) {
	row := ident.OrNumber(r.v.Get("id"))
	d.begin(chatRun(question))
	d.question(r.at, r.out)
	if found := r.meta.Get("content"); row != "" && peek(found) != "" {
		d.searched(r.out, row, msg.Text{}, found.Text(), short(r.json), r.at)
	}
	key := "message:" + row
	if row == "" {
		key = r.id()
	}
	m := d.say(r, msg.Assistant, key)
	m.Content, m.Attachments = r.content(), d.files(r)
	if active := r.get("is_active"); active.Is(jsonv.False) { // it was written again
		m.Hidden = true
		m.SetAttr("is_active", "false")
	}
	d.modelText(m)
	d.end(m, "stop", false)
}

// progress decodes what only keeps the user waiting.
func (d *stream) progress(r *record) {
	if d.Fresh { // of a turn that has not begun
		r.task = ""
	}
	m := d.say(r, msg.Status, r.id())
	if d.Fresh {
		m.Run = ""
	}
	m.Content, m.Hidden = r.content(), r.action == "update_status"
	m.SetAttr("type", r.action)
	r.states(m)
	m.Attachments = d.files(r)
}

// closed ends the turn with the stream, if nothing else did.
func (d *stream) closed(out *decoder.Output) {
	if d.Turn.Run == "" || d.Turn.Ended || d.Fresh {
		return
	}
	m := d.give(out, msg.Stop, "closed:"+d.Turn.Run)
	m.Hidden = true
	d.end(m, "closed", d.Turn.Failed)
}
