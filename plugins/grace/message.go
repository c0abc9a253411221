package grace

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// message is one message of the protocol while it is decoded.
type message struct {
	*stream
	v, meta, content jsonv.Value
	json             jsonv.Value // files, tasks or a tool's result; parsed when it is a string of JSON
	action, status   string
	running, failed  bool   // by the status
	rule             action // of its action
	uuid             string
	task             string // the task it belongs to; empty when it is the run's own
	about            string // the task that a message of the run names
	hash             string // of the fields that are equal on the stream and in the row of a message
}

// message decodes an object that is a message, or keeps one of an unknown shape.
func (d *stream) message(v jsonv.Value) {
	if !isMessage(v) {
		d.Unknown(ident.Of(v.First("type", "event", "action_type", "object")), v).Run = ""
		return
	}
	from := len(d.Out.Messages)
	r := &message{stream: d, v: v, meta: d.docs[0].Inner(v.Get("meta")), content: v.Get("content")}
	r.json = d.docs[1].Inner(r.get("json"))
	r.action, r.status, r.uuid = ident.Of(r.get("action_type")), ident.Peek(v.Get("status")), ident.Of(v.Get("uuid"))
	r.running = r.status == "running" || r.status == "pending"
	r.failed = r.status == "failure" || r.status == "failed" || r.status == "error"
	d.At = conversation.TimeOf(v.First("timestamp", "create_at", "created_at"))
	conversation.TimeOf(v.Get("create_at")) // of a row, later than the message
	conversation.TimeOf(v.Get("update_at"))
	r.enterSession(ident.Of(v.Get("conversation_id")))
	r.belong(r.get("task_id"))
	if r.action == "" && r.get("handledBySpecialist").Bool() {
		r.action = "auto_reply"
	}
	r.hash = msg.HashKey(v.Get("role").PeekStr(), r.action, r.status, r.task, v.Get("timestamp").PeekText().String(), r.uuid, r.content.PeekText().String())
	if v.Get("role").Equal("user") {
		r.question()
	} else {
		r.said()
	}
	for i := range d.docs {
		d.KeepUnread(&d.docs[i], from)
	}
	d.At = conversation.Time{} // messages behind it in the frame have their own
}

// enterSession makes the conversation that a row names the current one.
func (r *message) enterSession(id string) {
	switch {
	case id == "", id == r.Session:
	case r.Session == "":
		r.Session = id
	default:
		next, known := bounded.Take(&r.Others, func(s session) bool { return s.Session == id })
		if !known {
			next = session{Session: id}
		}
		last := r.session
		if len(r.Others) == maxOthers { // the one that is evicted
			r.session = r.Others[0]
			r.addOpen(r.Ask)
		}
		r.session, r.Others = next, bounded.Push(r.Others, last, maxOthers)
	}
}

// belong finds the task of the message. The task_id of a message of the run as a whole is the
// conversation, unless it names a task, and some of these messages name one.
func (r *message) belong(of jsonv.Value) {
	id := ident.PeekOrNumber(of)
	isTask := r.isTask(id)
	r.rule = actions[r.action]
	if r.rule.of != ofTask && !isTask {
		r.Session = cmp.Or(r.Session, id)
	}
	session, _ := r.In()
	if isTask || r.rule.of == ofTask && id != session {
		r.task = id
	}
	if (id == r.task || id == session) && !of.Is(jsonv.Object) && !of.Is(jsonv.Array) {
		of.MarkRead()
	}
	if r.rule.of == ofTurn || r.v.Get("role").Equal("user") || r.between() && r.rule.notice {
		r.about, r.task = r.task, ""
	}
}

// question decodes a user's question, which is on no stream: only the rows of the database have
// it.
func (r *message) question() {
	pid := ident.OrNumber(r.get("pid"))
	r.ask(&question{Key: "asked:" + r.hash, Text: conversation.Cut(r.content.Text().String(), maxText), At: r.At, Files: files(r.json)})
	r.Asked = nil
	if row := ident.OrNumber(r.v.Get("id")); row != "" && (r.action == "chat" || pid != "") {
		r.begin(chatRun(row))
	}
}

// owner is whose a message is: the task's that it names, the run's as a whole unless it names a task, or the turn's even then.
type owner uint8

const (
	ofTask owner = iota
	ofRun
	ofTurn
)

// action is the rule for the messages of one action.
type action struct {
	of     owner
	notice bool // the user reads it while the agent works; it may be of a turn that has not begun
	tool   bool // it is a tool, also without a uuid
}

var actions = conversation.Rules(map[string]action{
	"auto_reply plan continue finish_summery stop": {of: ofTurn},
	"question chat error":                          {of: ofRun},
	"progress":                                     {of: ofRun, notice: true},
	"coding coding_complete":                       {of: ofTurn, notice: true},
	"update_status":                                {notice: true},
	"write_code write_file patch_code replace_code_block read_file terminal_run browser web_search document_query document_upload " +
		"mcp_tool search file terminal todo evaluation": {tool: true},
})

// said decodes a message of the agent by its action.
func (r *message) said() {
	if r.action == "finish" && r.task == "" { // there is no task message to repeat it
		r.action = "finish_summery"
	}
	row := r.enter()
	switch r.action {
	case "", "question":
		r.say(msg.Assistant, r.hash, r.content)
	case "auto_reply":
		specialist := r.specialist()
		m := r.say(msg.Assistant, r.hash, jsonv.Or(specialist.Get("result"), r.content))
		m.SetAttr("task_type", ident.Of(specialist.Get("taskType")))
		r.markFailed(m)
	case "chat":
		if found := r.meta.Get("content"); row != "" && !found.PeekText().IsZero() {
			r.addSearch(row, "", found.Text(), short(r.json))
		}
		m := r.say(msg.Assistant, cmp.Or(row, r.hash), r.content)
		if r.get("is_active").Is(jsonv.False) { // it was written again
			m.Hidden = true
			m.SetAttr("is_active", "false")
		}
		if r.task == "" {
			r.end(m, "stop", false)
		}
	case "plan", "continue":
		r.plan()
	case "task":
		r.taskStatus(r.say(msg.Task, r.hash, r.content))
	case "error": // its status is success and does not help
		if r.task == "" {
			r.endTasks("interrupted")
		}
		m := r.say(msg.Error, r.hash, r.content)
		m.SetAttr("error_type", "agent_error")
		r.setTask(m)
		r.Turn.Failed = true
		r.endRun(m, "error", true)
	case "finish": // the model's own report; the task message that follows repeats it
		record.Hide(r.say(msg.Status, r.hash, r.content), "finish").SetAttr("comments", brief(r.v.Get("comments")))
	case "finish_summery": // the final answer of a turn, with the files that it made; where its text is empty, a specialist wrote it
		kind := msg.Assistant
		if r.content.PeekText().IsZero() {
			kind = msg.Stop
		}
		if r.about == "" {
			r.endTasks("stop")
		}
		m := r.say(kind, cmp.Or(r.uuid, r.hash), r.content)
		if r.about == "" { // GRACE also sends one for a single task, and then the turn goes on
			r.end(m, "stop", r.Turn.Failed)
		}
	case "stop": // by the user, or after a failed task
		reason := "interrupted"
		if r.Turn.Failed {
			reason = "error"
		}
		r.endTasks("interrupted")
		r.end(r.say(msg.Stop, r.hash, r.content), reason, true)
	case "progress", "coding", "coding_complete", "update_status":
		m := r.say(msg.Status, r.hash, r.content)
		if r.between() {
			m.Run = ""
		}
		m.Hidden = r.action == "update_status"
		m.SetAttr("type", r.action)
		r.setStatus(m)
	default:
		r.tool()
	}
}

// say adds a message of the agent with its text and its files.
func (r *message) say(kind msg.Kind, name string, text jsonv.Value) *msg.Message {
	m := r.addFor(kind, "message:"+name)
	m.Content, m.Attachments = text.Text(), files(r.json)
	if kind == msg.Assistant {
		r.readIntents(m)
	}
	return m
}

// enter begins the turn of the message, unless that goes on. An answer of a chat in the database names the row of its question,
// and has a row of its own.
func (r *message) enter() (row string) {
	asked := ""
	if r.action == "chat" && r.task == "" {
		asked = ident.OrNumber(r.get("pid"))
	}
	switch {
	case r.rule.notice:
	case asked != "":
		r.begin(chatRun(asked))
		return ident.OrNumber(r.v.Get("id"))
	case r.between(), r.Turn.Ended && (r.action == "auto_reply" || r.action == "plan"):
		// The time of the first message of an answer is the only fact that identifies the turn
		// both on the stream and in the rows.
		r.begin("turn-" + cmp.Or(conversation.NonZero(int(r.At.Nanos/1e6)), r.hash))
	}
	return ""
}

// specialist returns the object that marks a reply as a specialist's, and emits the delegation of which the reply is
// the result, if it names the specialist: the format reports it at once.
//
//	{"handledBySpecialist":true,"result":"…","specialist":"openrouter/qwen/…","taskType":"general_chat"}
//
// In a log it is the message itself; where an object was published in place of its text, it is
// in content or json.
func (r *message) specialist() (s jsonv.Value) {
	for _, v := range [...]jsonv.Value{r.v, r.content, r.json, r.docs[2].Inner(r.content)} {
		if v.Get("handledBySpecialist").Bool() {
			s = v
			break
		}
	}
	if !s.Exists() {
		r.docs[2].Root().MarkRead() // as the text that it is
	}
	if to := ident.Of(s.Get("specialist")); to != "" {
		c := conversation.Call{ID: "specialist:" + r.hash, Name: "specialist"}
		m := r.addFor(msg.Delegation, "call:"+c.ID)
		c.On(m)
		m.Hidden, m.Delegation.To, m.Delegation.Task = true, to, msg.Plain(r.Turn.Goal)
		m.SetAttr("task_type", ident.Of(s.Get("taskType")))
		m = r.addFor(msg.DelegationResult, "result:"+c.ID)
		c.On(m)
		m.Hidden, m.Delegation.To, m.Content = true, to, jsonv.Or(s.Get("result"), r.content).Text()
		r.markFailed(m)
	}
	return s
}

// get is a member of the message's meta, or of the message itself where it has
// none.
func (r *message) get(name string) jsonv.Value { return jsonv.Or(r.meta.Get(name), r.v.Get(name)) }

// setStatus adds the record's status to m.
func (r *message) setStatus(m *msg.Message) { m.SetAttr("status", ident.Of(r.v.Get("status"))) }

// markFailed marks a message of a record with a failed status as an error.
func (r *message) markFailed(m *msg.Message) {
	if r.failed {
		m.IsError = true
		r.setStatus(m)
	}
}

// addFor adds a message of the record, in the run of its task or of the turn.
func (r *message) addFor(kind msg.Kind, key string) *msg.Message {
	t := r.Plan.task(r.task)
	if t != nil && !t.Begun {
		t.Begun = true
		r.addTask(t, msg.Delegation, "call:").Delegation.Task = msg.Plain(t.Text)
	}
	m := r.addToTurn(kind, key)
	m.Role, _ = msg.ParseRole(jsonv.Word(r.v.Get("role"), "assistant", "user", "system", "tool", "developer", "function"))
	if r.task != "" {
		m.Run, m.ParentRun, m.Delegation.Link = r.Turn.Run+"/"+r.task, r.Turn.Run, msg.ByParent
	}
	if t != nil {
		m.Agent.Name = t.name()
	}
	m.SetAttr("task_id", cmp.Or(r.task, r.about))
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
		a := media.File(conversation.Cut(path.PeekStr(), maxGoal))
		a.Name, a.URL, a.Size = cmp.Or(brief(name), a.Name), brief(v.Get("url")), max(v.First("filesize", "size").Int(), 0)
		if strings.HasSuffix(path.PeekStr(), a.URL) { // none, or relative
			a.URL = brief(path)
		}
		out = append(out, a)
	}
	return out
}

// brief is the text of v, or the JSON of another value, as an attribute: the beginning of
// it where it is long, which does not count as read.
func brief(v jsonv.Value) string {
	s := v.PeekText().String()
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

// sessionOfOrigin is the conversation of a stream that does not name it: the one
// that the URL names, or the name of the file. It is empty when there is neither.
func sessionOfOrigin(origin string) string {
	if u, err := url.Parse(origin); err == nil && u.Host != "" {
		return strings.ToValidUTF8(u.Query().Get("conversation_id"), "\uFFFD")
	}
	return ident.OfFile(strings.TrimRight(origin, `/\`), ".")
}
