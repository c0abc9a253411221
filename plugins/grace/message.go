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
	"github.com/earshot-dev/earshot/core/sdk/media"
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
	about   string // the task that a message of the run names
	hash    string // of the fields that are equal on the stream and in the row of a message
}

// message decodes an object that is a message, or keeps one of an unknown shape.
func (d *stream) message(v jsonv.Value) {
	if !isMessage(v) {
		d.Unknown(ident.Of(v.First("type", "event", "action_type", "object")), v).Run = ""
		return
	}
	from := len(d.Out.Messages)
	r := &message{stream: d, v: v, meta: unquoted(&d.docs[0], v.Get("meta"))}
	r.json = unquoted(&d.docs[1], r.get("json"))
	r.action, r.status, r.uuid = ident.Of(r.get("action_type")), ident.Peek(v.Get("status")), ident.Of(v.Get("uuid"))
	d.At = conversation.TimeOf(v.First("timestamp", "create_at", "created_at"))
	conversation.TimeOf(v.Get("create_at")) // of a row, later than the message
	conversation.TimeOf(v.Get("update_at"))
	if s := ident.Of(v.Get("conversation_id")); s != "" {
		d.Session = s
	}
	r.belong(r.get("task_id"))
	if r.action == "" && r.get("handledBySpecialist").Bool() {
		r.action = "auto_reply"
	}
	r.hash = msg.HashKey(v.Get("role").PeekStr(), r.action, r.status, r.task, peekText(v.Get("timestamp")), r.uuid, peekText(v.Get("content")))
	if v.Get("role").Equal("user") {
		r.question()
	} else {
		r.said()
	}
	for i := range d.docs {
		d.KeepUnread(&d.docs[i], from)
	}
	d.At = conversation.Time{} // what follows in the frame has its own
}

// belong finds the task of the message. The task_id of a message of the run as a whole is the
// conversation, unless it names a task, and some of these messages name one.
func (r *message) belong(of jsonv.Value) {
	id := ident.PeekOrNumber(of)
	ofTurn := slices.Contains([]string{"coding", "coding_complete", "auto_reply", "plan", "continue"}, r.action)
	ofRun := ofTurn || slices.Contains([]string{"question", "chat", "progress"}, r.action)
	switch isTask := r.isTask(id); {
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
	switch r.action {
	case "finish_summery", "stop":
		r.about, r.task = r.task, ""
	case "progress", "update_status":
		if r.between() {
			r.task = ""
		}
	}
}

// between reports whether the next turn has not begun.
func (r *message) between() bool { return r.Fresh || r.Turn.Run == "" }

// question decodes a user's question, which is on no stream: only the rows of the database have
// it.
func (r *message) question() {
	pid := ident.OrNumber(r.get("pid"))
	q := &question{Hash: r.hash, Text: conversation.Cut(r.content().String(), maxText), At: r.At, Files: files(r.json)}
	if key := "asked:" + q.Hash; r.Shown == key || !r.listed {
		q.Key = key // rows are all there is: only the last can be without an answer
	}
	r.ask(q)
	r.Asked = nil
	if row := ident.OrNumber(r.v.Get("id")); row != "" && (r.action == "chat" || pid != "") {
		r.begin(chatRun(row))
	}
}

// said decodes a message of the agent by its action.
func (r *message) said() {
	question, row := "", "" // of a chat answer in the database
	if r.action == "chat" && r.task == "" {
		if question = ident.OrNumber(r.get("pid")); question != "" {
			row = ident.OrNumber(r.v.Get("id"))
		}
	}
	notice := slices.Contains([]string{"progress", "coding", "coding_complete", "update_status"}, r.action)
	switch {
	case notice: // it may be of a turn that has not begun
	case question != "":
		r.begin(chatRun(question))
	case r.between(), r.Turn.Ended && r.action == "auto_reply":
		// The time of the first message of an answer is the only fact that identifies the turn
		// both on the stream and in the rows.
		run := "turn-" + r.hash
		if r.At.Nanos != 0 {
			run = "turn-" + strconv.FormatInt(r.At.Nanos/1e6, 10)
		}
		r.begin(run)
	}
	switch r.action {
	case "auto_reply":
		r.autoReply()
	case "plan", "continue":
		r.plan()
	case "task":
		r.taskStatus()
	case "error": // its status is success and does not help
		m := r.addText(msg.Error, r.id())
		m.SetAttr("error_type", "agent_error")
		r.setTask(m)
		r.Turn.Failed = true
		r.endRun(m, "error", true)
	case "finish": // the model's own report; the task message that follows repeats it
		if r.task == "" {
			r.answer()
			return
		}
		m := record.Hide(r.addFor(msg.Status, r.id()), "finish")
		m.Content = r.content()
		m.SetAttr("comments", brief(r.v.Get("comments")))
	case "finish_summery":
		r.answer()
	case "stop": // by the user, or after a failed task
		reason := "interrupted"
		if r.Turn.Failed {
			reason = "error"
		}
		r.end(r.addText(msg.Stop, r.id()), reason, true)
	case "", "question", "chat": // the agent asks, or answers
		key := r.id()
		if row != "" {
			key = "message:" + row
			if found := r.meta.Get("content"); peekText(found) != "" {
				r.addSearch(row, "", found.Text(), short(r.json))
			}
		}
		m := r.addText(msg.Assistant, key)
		if question != "" && r.get("is_active").Is(jsonv.False) { // it was written again
			m.Hidden = true
			m.SetAttr("is_active", "false")
		}
		if r.action == "chat" && r.task == "" {
			r.end(m, "stop", false)
		}
	default:
		if !notice {
			r.tool()
			return
		}
		m := r.addText(msg.Status, r.id()) // the user reads it while the agent works
		if r.between() {
			m.Run = ""
		}
		m.Hidden = r.action == "update_status"
		m.SetAttr("type", r.action)
		r.setStatus(m)
	}
}

// answer decodes the final answer of a turn, with the files that it made. GRACE also sends one
// for a single task, and then the turn goes on.
func (r *message) answer() {
	kind, key := msg.Assistant, r.id()
	if r.v.Get("content").Text().IsZero() {
		kind = msg.Stop
	}
	if r.uuid != "" {
		key = "message:" + r.uuid
	}
	if m := r.addText(kind, key); r.about == "" {
		r.end(m, "stop", r.Turn.Failed)
	}
}

// autoReply decodes the first reply to a question. When a named specialist wrote it, it is the
// result of a delegation too, which the format reports at once.
func (r *message) autoReply() {
	s, text := r.specialistReply(), r.content()
	if result := s.Get("result"); result.Exists() {
		text = result.Text()
	}
	typ := ident.Of(s.Get("taskType"))
	if to := ident.Of(s.Get("specialist")); to != "" {
		c := conversation.Call{ID: "specialist:" + r.hash, Name: "specialist"}
		m := r.addFor(msg.Delegation, "call:"+c.ID)
		c.On(m)
		m.Hidden, m.Delegation.To, m.Delegation.Task = true, to, msg.Plain(r.Turn.Goal)
		m.SetAttr("task_type", typ)
		m = r.addFor(msg.DelegationResult, "result:"+c.ID)
		c.On(m)
		m.Hidden, m.Delegation.To, m.Content = true, to, text
		r.markFailed(m)
	}
	m := r.addFor(msg.Assistant, r.id())
	m.Content = text
	m.SetAttr("task_type", typ)
	r.markFailed(m)
	r.readIntents(m)
}

// specialistReply returns the object that marks a reply as a specialist's:
//
//	{"handledBySpecialist":true,"result":"…","specialist":"openrouter/qwen/…","taskType":"general_chat"}
//
// In a log it is the message itself; where an object was published in place of its text, it is
// in content or json.
func (r *message) specialistReply() jsonv.Value {
	content := r.v.Get("content")
	for _, v := range [...]jsonv.Value{r.v, content, r.json, unquoted(&r.docs[2], content)} {
		if v.Get("handledBySpecialist").Bool() {
			return v
		}
	}
	r.docs[2].Root().MarkRead() // as the text that it is
	return jsonv.Value{}
}

// get is a member of the message's meta, or of the message itself where it has
// none.
func (r *message) get(name string) jsonv.Value { return jsonv.Or(r.meta.Get(name), r.v.Get(name)) }

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
func (r *message) id() string { return "message:" + r.hash }

// addFor adds a message of the record, in the run of its task or of the turn.
func (r *message) addFor(kind msg.Kind, key string) *msg.Message {
	t := r.Plan.task(r.task)
	if t != nil && !t.Begun {
		t.Begun = true
		r.addTask(t, msg.Delegation, "call:").Delegation.Task = msg.Plain(t.Text)
	}
	m := r.addToTurn(kind, key)
	said := r.v.Get("role")
	if role, err := msg.ParseRole(said.PeekStr()); err == nil && said.Is(jsonv.String) {
		said.MarkRead()
		m.Role = role
	}
	if r.task != "" {
		m.Run, m.ParentRun, m.Delegation.Link = r.childRun(r.task), r.Turn.Run, msg.ByParent
	}
	if t != nil {
		m.Agent.Name = t.name()
	}
	m.SetAttr("task_id", cmp.Or(r.task, r.about))
	return m
}

// addText is addFor for a message with the record's text and files.
func (r *message) addText(kind msg.Kind, key string) *msg.Message {
	m := r.addFor(kind, key)
	m.Content, m.Attachments = r.content(), files(r.json)
	if kind == msg.Assistant {
		r.readIntents(m)
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
		a := file(path.PeekStr(), max(v.First("filesize", "size").Int(), 0))
		a.Name = cmp.Or(brief(name), a.Name)
		if url := brief(v.Get("url")); strings.HasSuffix(path.PeekStr(), url) { // none, or relative
			a.URL = brief(path)
		} else {
			a.URL = url
		}
		out = append(out, a)
	}
	return out
}

// file is the file at a path of any system.
func file(path string, size int64) msg.Attachment {
	return msg.Attachment{Name: conversation.Cut(media.File(path).Name, ident.Max), URL: conversation.Cut(path, maxGoal), Size: size}
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

// brief is the text of v, or the JSON of another value, as an attribute: the beginning of
// it where it is long, which does not count as read.
func brief(v jsonv.Value) string {
	s := peekText(v)
	if len(s) <= maxGoal {
		v.MarkRead()
	}
	return conversation.Cut(s, maxGoal)
}

// short is the JSON of a list or an object as an attribute; nothing, and not read, where
// there is none or too much of it.
func short(v jsonv.Value) string {
	if v.Len() == 0 {
		return ""
	}
	return conversation.ShortJSON(v)
}

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
	return ident.OfFile(strings.TrimRight(origin, `/\`), ".")
}
