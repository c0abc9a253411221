package grace

import (
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// ofRun reports whether messages of the action belong to the run as a whole, unless they name a
// task: the task_id of such a message is the conversation.
func ofRun(action string) bool {
	return ofTurn(action) || action == "question" || action == "chat" || action == "progress"
}

// ofTurn reports whether messages of the action belong to the run as a whole even when they
// name a task.
func ofTurn(action string) bool {
	switch action {
	case "coding", "coding_complete", "auto_reply", "plan", "continue":
		return true
	}
	return false
}

// byAction decodes a message by its action.
func (d *stream) byAction(r *record) {
	role := r.v.Get("role")
	if role.Equal("user") {
		d.userRow(r)
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
		d.startTurn(r)
	}
	switch r.action {
	case "auto_reply":
		d.autoReply(r)
	case "plan":
		d.plan(r)
	case "task":
		d.taskStatus(r)
	case "finish":
		d.finish(r)
	case "finish_summery":
		d.answer(r)
	case "error":
		d.runError(r)
	case "stop":
		d.runStop(r)
	case "continue":
		d.plan(r)
	case "chat":
		m := d.addFor(r, msg.Assistant, r.id())
		m.Content, m.Attachments = r.content(), d.files(r)
		d.modelText(m)
		if r.task == "" {
			d.endRun(m, "stop", false)
		}
	case "", "question": // the agent asks
		m := d.addFor(r, msg.Assistant, r.id())
		m.Content, m.Attachments = r.content(), d.files(r)
		d.modelText(m)
	default:
		d.tool(r)
	}
}

// startTurn starts a turn with the first message of its answer. The time of that message is the
// only fact that identifies the turn both on the stream and in the rows.
func (d *stream) startTurn(r *record) {
	run := "turn-" + strconv.FormatInt(r.at.Time/1e6, 10)
	if r.at.Time == 0 {
		run = "turn-" + r.hash()
	}
	d.setRun(run)
	d.addQuestion(r.at, r.out)
}

// setRun makes run the current turn.
func (d *stream) setRun(run string) {
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

// endRun makes m the end of the run.
func (d *stream) endRun(m *msg.Message, reason string, failed bool) {
	m.Signal, m.FinishReason, m.IsError = msg.RunEnd, reason, failed
	d.Turn.Ended = true
}

// userRow decodes a user's question, which is on no stream: only the rows of the database have
// it.
func (d *stream) userRow(r *record) {
	pid := ident.OrNumber(r.get("pid"))
	a := &question{Hash: r.hash(), Text: limitText(r.content()), At: r.at, Files: d.files(r)}
	if key := "asked:" + a.Hash; d.Shown == key || !d.listed {
		a.Key = key // rows are all there is: only the last can be without an answer
	}
	d.addUnanswered(r.out)
	d.Ask, d.Asked, d.Fresh = a, nil, true
	if row := ident.OrNumber(r.v.Get("id")); row != "" && (r.action == "chat" || pid != "") {
		d.setRun(chatRun(row))
		d.addQuestion(r.at, r.out)
	}
}

// chatRow decodes the row of a chat answer.
func (d *stream) chatRow(r *record, question string) {
	row := ident.OrNumber(r.v.Get("id"))
	d.setRun(chatRun(question))
	d.addQuestion(r.at, r.out)
	if found := r.meta.Get("content"); row != "" && peekText(found) != "" {
		d.addSearch(r.out, row, msg.Text{}, found.Text(), short(r.json), r.at)
	}
	key := "message:" + row
	if row == "" {
		key = r.id()
	}
	m := d.addFor(r, msg.Assistant, key)
	m.Content, m.Attachments = r.content(), d.files(r)
	if active := r.get("is_active"); active.Is(jsonv.False) { // it was written again
		m.Hidden = true
		m.SetAttr("is_active", "false")
	}
	d.modelText(m)
	d.endRun(m, "stop", false)
}

// progress decodes a notice that the user reads while the agent works.
func (d *stream) progress(r *record) {
	if d.Fresh { // of a turn that has not begun
		r.task = ""
	}
	m := d.addFor(r, msg.Status, r.id())
	if d.Fresh {
		m.Run = ""
	}
	m.Content, m.Hidden = r.content(), r.action == "update_status"
	m.SetAttr("type", r.action)
	r.setStatus(m)
	m.Attachments = d.files(r)
}

// streamClosed ends the turn with the stream, if nothing else did.
func (d *stream) streamClosed(out *decoder.Output) {
	if d.Turn.Run == "" || d.Turn.Ended || d.Fresh {
		return
	}
	m := d.addMessage(out, msg.Stop, "closed:"+d.Turn.Run)
	m.Hidden = true
	d.endRun(m, "closed", d.Turn.Failed)
}
