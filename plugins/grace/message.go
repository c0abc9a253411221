package grace

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// message is one message of the protocol while it is decoded.
type message struct {
	*stream
	v, meta jsonv.Value
	json    jsonv.Value // files, tasks or a tool's result; parsed when it is a string of JSON
	action  string
	status  string
	uuid    string
	task    string // the task it belongs to; empty when it is the run's own
	at      conversation.Time
	sum     string // result of hash, computed at its first call
}

// message decodes an object that is a message, or keeps one of an unknown shape.
func (d *stream) message(v jsonv.Value) {
	if !isMessage(v) {
		d.keepRaw(cmp.Or(ident.Of(v.First("type", "event", "action_type", "object")), "none"), v.Raw())
		return
	}
	from := len(d.Out.Messages)
	r := &message{stream: d, v: v, meta: unquoted(&d.inner, v.Get("meta"))}
	r.json = unquoted(&d.other, r.get("json"))
	r.action = ident.Of(r.get("action_type"))
	r.status = ident.Peek(v.Get("status"))
	r.uuid = ident.Of(v.Get("uuid"))
	r.at = conversation.TimeOf(v.First("timestamp", "create_at", "created_at"))
	conversation.TimeOf(v.Get("create_at")) // of a row, later than the message
	conversation.TimeOf(v.Get("update_at"))
	if s := ident.Of(v.Get("conversation_id")); s != "" {
		d.Session = s
	}
	r.belong(r.get("task_id"))
	if v.Get("role").Equal("user") {
		r.question()
	} else {
		r.byAction()
	}
	for _, doc := range [...]*jsonv.Doc{&d.inner, &d.other, &d.text} {
		d.KeepUnread(doc, from)
	}
}

// belong finds the task of the message. The task_id of a message of the run as a whole is the
// conversation, unless it names a task, and some of these messages name one.
func (r *message) belong(of jsonv.Value) {
	id := ident.PeekOrNumber(of)
	ofTurn := slices.Contains([]string{"coding", "coding_complete", "auto_reply", "plan", "continue"}, r.action)
	ofRun := ofTurn || slices.Contains([]string{"question", "chat", "progress"}, r.action)
	switch isTask := r.Plan.isTask(id); {
	case isTask && !ofTurn && !r.v.Get("role").Equal("user"):
		r.task = id
	case isTask:
	case ofRun:
		if r.Session == "" {
			r.setSession(id)
		}
	case id != r.session():
		r.task = id
	}
	if id == r.task || id == r.session() {
		ident.OrNumber(of)
	}
}

// byAction decodes a message of the agent by its action.
func (r *message) byAction() {
	switch r.action {
	case "progress", "coding", "coding_complete", "update_status":
		r.progress()
		return
	case "chat":
		if pid := ident.OrNumber(r.get("pid")); pid != "" && r.task == "" {
			r.chatRow(pid)
			return
		}
	case "":
		if r.get("handledBySpecialist").Bool() {
			r.action = "auto_reply"
		}
	}
	if r.Fresh || r.Turn.Run == "" || r.Turn.Ended && r.action == "auto_reply" {
		// The time of the first message of an answer is the only fact that identifies the turn
		// both on the stream and in the rows.
		run := "turn-" + strconv.FormatInt(r.at.Nanos/1e6, 10)
		if r.at.Nanos == 0 {
			run = "turn-" + r.hash()
		}
		r.setRun(run)
		r.addQuestion(r.at)
	}
	switch r.action {
	case "auto_reply":
		r.autoReply()
	case "plan", "continue":
		r.plan()
	case "task":
		r.taskStatus()
	case "finish":
		r.finish()
	case "finish_summery":
		r.answer()
	case "error":
		r.runError()
	case "stop":
		r.runStop()
	case "", "question", "chat": // the agent asks, or answers
		m := r.addText(msg.Assistant, r.id())
		if r.action == "chat" && r.task == "" {
			r.endRun(m, "stop", false)
		}
	default:
		r.tool()
	}
}

// chatRow decodes the row of a chat answer.
func (r *message) chatRow(question string) {
	row := ident.OrNumber(r.v.Get("id"))
	r.setRun(chatRun(question))
	r.addQuestion(r.at)
	if found := r.meta.Get("content"); row != "" && peekText(found) != "" {
		r.addSearch(row, msg.Text{}, found.Text(), short(r.json), r.at)
	}
	key := "message:" + row
	if row == "" {
		key = r.id()
	}
	m := r.addText(msg.Assistant, key)
	if r.get("is_active").Is(jsonv.False) { // it was written again
		m.Hidden = true
		m.SetAttr("is_active", "false")
	}
	r.endRun(m, "stop", false)
}

// progress decodes a notice that the user reads while the agent works.
func (r *message) progress() {
	if r.Fresh { // of a turn that has not begun
		r.task = ""
	}
	m := r.addText(msg.Status, r.id())
	if r.Fresh {
		m.Run = ""
	}
	m.Hidden = r.action == "update_status"
	m.SetAttr("type", r.action)
	r.setStatus(m)
}

// autoReply decodes the first reply to a question. When a named specialist wrote it, it is the
// result of a delegation too, which the format reports at once.
func (r *message) autoReply() {
	s, text := r.specialistReply(), r.content()
	if result := s.Get("result"); result.Exists() {
		text = result.Text()
	}
	if to := ident.Of(s.Get("specialist")); to != "" {
		c := call{Call: conversation.Call{ID: "specialist:" + r.hash(), Name: "specialist"}}
		m := c.mark(r.addFor(msg.Delegation, "call:"+c.ID))
		m.Hidden, m.Delegation.To, m.Delegation.Task = true, to, msg.Plain(r.Turn.Goal)
		m.SetAttr("task_type", ident.Of(s.Get("taskType")))
		m = c.mark(r.addFor(msg.DelegationResult, "result:"+c.ID))
		m.Hidden, m.Delegation.To, m.Content = true, to, text
		r.markFailed(m)
	}
	m := r.addFor(msg.Assistant, r.id())
	m.Content = text
	m.SetAttr("task_type", ident.Of(s.Get("taskType")))
	r.markFailed(m)
	r.Intents.read(m)
}

// specialistReply returns the object that marks a reply as a specialist's:
//
//	{"handledBySpecialist":true,"result":"…","specialist":"openrouter/qwen/…","taskType":"general_chat"}
//
// In a log it is the message itself; where an object was published in place of its text, it is
// in content or json.
func (r *message) specialistReply() jsonv.Value {
	content := r.v.Get("content")
	for _, v := range [...]jsonv.Value{r.v, content, r.json, unquoted(&r.text, content)} {
		if v.Get("handledBySpecialist").Bool() {
			return v
		}
	}
	r.text.Root().MarkRead() // as the text that it is
	return jsonv.Value{}
}

// finish decodes the model's own report that a task is done; the task message that follows
// repeats it. Without a task it is the answer.
func (r *message) finish() {
	if r.task == "" {
		r.answer()
		return
	}
	m := record.Hide(r.addFor(msg.Status, r.id()), "finish")
	m.Content = r.content()
	m.SetAttr("comments", brief(r.v.Get("comments")))
}

// answer decodes the final answer of a turn, with the files that it made. GRACE also sends one
// for a single task, and then the turn goes on.
func (r *message) answer() {
	kind := msg.Assistant
	if r.v.Get("content").Text().IsZero() {
		kind = msg.Stop
	}
	m := r.addToRun(kind)
	if r.uuid != "" {
		m.Key = "message:" + r.uuid
	}
	if m.Attr("task_id") == "" {
		r.endRun(m, "stop", r.Turn.Failed)
	}
}

// runError decodes an error of a task or of the whole run. Its status is success and does not
// help.
func (r *message) runError() {
	m := r.addText(msg.Error, r.id())
	m.SetAttr("error_type", "agent_error")
	r.setStatus(m)
	m.SetAttr("comments", brief(r.json.Get("comments")))
	ended := r.Turn.Ended
	r.Turn.Failed = true
	if r.endRun(m, "error", true); r.task != "" {
		r.Turn.Ended = ended
		r.Plan.setTitle(m, r.task)
		r.endTask(true)
	}
}

// runStop decodes the stop of a run, by the user or after a failed task.
func (r *message) runStop() {
	reason := "interrupted"
	if r.Turn.Failed {
		reason = "error"
	}
	r.endRun(r.addToRun(msg.Stop), reason, true)
}

// addToRun adds a message of the turn, which may name a task of it.
func (r *message) addToRun(kind msg.Kind) *msg.Message {
	of := r.task
	r.task = ""
	m := r.addText(kind, r.id())
	m.SetAttr("task_id", of)
	return m
}

// get is a member of the message's meta, or of the message itself where it has
// none.
func (r *message) get(name string) jsonv.Value {
	if v := r.meta.Get(name); v.Exists() {
		return v
	}
	return r.v.Get(name)
}

// content is the message's text. An object in its place is kept as JSON.
func (r *message) content() msg.Text { return r.v.Get("content").Text() }

// setStatus adds the record's status to m.
func (r *message) setStatus(m *msg.Message) { m.SetAttr("status", ident.Of(r.v.Get("status"))) }

// running reports whether a call or a task goes on.
func (r *message) running() bool { return r.status == "running" || r.status == "pending" }

func (r *message) failed() bool {
	return r.status == "failure" || r.status == "failed" || r.status == "error"
}

// markFailed marks a message of a record with a failed status as an error.
func (r *message) markFailed(m *msg.Message) {
	if r.failed() {
		m.IsError = true
		r.setStatus(m)
	}
}

// id is the message's key.
func (r *message) id() string { return "message:" + r.hash() }

// hash is a hash of the fields that are equal on the stream and in the row of a message.
func (r *message) hash() string {
	if r.sum == "" {
		r.sum = msg.HashKey(r.v.Get("role").PeekStr(), r.action, r.status, r.task, peekText(r.v.Get("timestamp")), r.uuid, peekText(r.v.Get("content")))
	}
	return r.sum
}

// addFor adds a message of the record, in the run of its task or of the turn.
func (r *message) addFor(kind msg.Kind, key string) *msg.Message {
	inTask := r.task != "" && r.Turn.Run != ""
	if inTask {
		r.delegate()
	}
	m := r.addToTurn(kind, key)
	r.at.Set(m)
	said := r.v.Get("role")
	if role, err := msg.ParseRole(said.PeekStr()); err == nil && said.Is(jsonv.String) {
		said.MarkRead()
		m.Role = role
	}
	if inTask {
		if t := r.Plan.task(r.task); t != nil {
			m.Agent.Name = t.name()
		}
		m.Run, m.ParentRun = childRun(r.Turn.Run, r.task), r.Turn.Run
		m.Delegation.Link = msg.ByParent
		m.SetAttr("task_id", r.task)
	}
	return m
}

// addText is addFor for a message with the record's text and files.
func (r *message) addText(kind msg.Kind, key string) *msg.Message {
	m := r.addFor(kind, key)
	m.Content, m.Attachments = r.content(), files(r.json)
	if kind == msg.Assistant {
		r.Intents.read(m)
	}
	return m
}

// files are the files of a list:
//
//	[{"filepath":"/w/report.md","filename":"report.md","url":"…","filesize":1234}]
func files(list jsonv.Value) []msg.Attachment {
	const most = 256
	var out []msg.Attachment
	for v := range list.Elems() {
		path, name := v.Get("filepath"), v.First("filename", "name")
		if path.PeekStr() == "" && name.PeekStr() == "" || len(out) == most {
			continue
		}
		a := msg.Attachment{Size: max(v.First("filesize", "size").Int(), 0)}
		if a.URL = brief(stringOnly(v.Get("url"))); strings.HasSuffix(path.PeekStr(), a.URL) { // none, or relative
			a.URL = brief(stringOnly(path))
		}
		if a.Name = limited(stringOnly(name), ident.Max); a.Name == "" {
			a.Name = conversation.Cut(base(path.PeekStr()), ident.Max)
		}
		out = append(out, a)
	}
	return out
}

// peekText is the text of v, or the JSON of another value, for comparisons: it does not count
// as read.
func peekText(v jsonv.Value) string {
	switch {
	case v.Is(jsonv.String):
		return v.PeekStr()
	case v.Exists():
		return string(v.Peek())
	}
	return ""
}

// stringOnly is v where it is a string.
func stringOnly(v jsonv.Value) jsonv.Value {
	if v.Is(jsonv.String) {
		return v
	}
	return jsonv.Value{}
}

// brief is the text of v, or the JSON of another value, as an attribute: the beginning of
// it where it is long, which does not count as read.
func brief(v jsonv.Value) string { return limited(v, maxGoal) }

// limited is brief for a length in bytes.
func limited(v jsonv.Value, most int) string {
	s := peekText(v)
	if len(s) <= most {
		v.MarkRead()
	}
	return conversation.Cut(s, most)
}

// short is the JSON of a list or an object as an attribute; nothing, and not read, where
// there is none or too much of it.
func short(v jsonv.Value) string {
	raw := v.Peek()
	if !v.Is(jsonv.Array) && !v.Is(jsonv.Object) || len(raw) <= 2 || len(raw) > conversation.MaxAttr {
		return ""
	}
	return string(v.Raw())
}

// base is the name of the file at a path of any system.
func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// unquoted is the value of JSON in a string, and v itself when it is none: meta is an object on
// the stream and a string in a row. The texts of the result lie in memory of their own; the
// value is valid until doc is used again.
func unquoted(doc *jsonv.Doc, v jsonv.Value) jsonv.Value {
	if !v.Is(jsonv.String) {
		return v
	}
	raw := v.Peek()
	if len(raw) < 4 || raw[1] != '{' && raw[1] != '[' || doc.Parse([]byte(v.PeekStr())) != nil {
		return v
	}
	v.MarkRead()
	return doc.Root()
}

// sessionOfOrigin is the conversation of a stream that does not name it: the one
// that the URL names, or the name of the file. It is empty when there is neither.
func sessionOfOrigin(origin string) string {
	if u, err := url.Parse(origin); err == nil && u.Host != "" {
		return strings.ToValidUTF8(u.Query().Get("conversation_id"), "\uFFFD")
	}
	name, _, _ := strings.Cut(base(strings.TrimRight(origin, `/\`)), ".")
	return name
}
