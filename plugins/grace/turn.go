package grace

import (
	"bytes"
	"cmp"
	"net/url"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// turn is one run: a question and all that answers it.
type turn struct {
	Run    string `json:",omitempty"`
	Ended  bool   `json:",omitempty"`
	Failed bool   `json:",omitempty"` // one of its tasks has
	Goal   string `json:",omitempty"` // the beginning of the question
}

// setRun makes run the current turn.
func (d *dialogue) setRun(run string) {
	d.Fresh = false
	if run == d.Turn.Run {
		return
	}
	d.Turn = turn{Run: run}
	d.Plan, d.Intents = nil, nil
	if d.Session == "" && d.origin == "" {
		d.Session = run
	}
}

// endRun makes m the end of the run.
func (d *dialogue) endRun(m *msg.Message, reason string, failed bool) {
	m.Signal, m.FinishReason, m.IsError = msg.RunEnd, reason, failed
	d.Turn.Ended = true
}

// streamClosed ends the turn with the stream, if nothing else did.
func (d *dialogue) streamClosed() {
	if d.Turn.Run == "" || d.Turn.Ended || d.Fresh {
		return
	}
	m := d.addToTurn(msg.Stop, "closed:"+d.Turn.Run)
	m.Hidden = true
	d.endRun(m, "closed", d.Turn.Failed)
}

// question is a question whose run is not known yet: its answer has not begun.
type question struct {
	Hash  string
	Key   string            `json:",omitempty"` // under which it is shown while it waits; empty when it is not
	Text  string            `json:",omitempty"`
	Mode  string            `json:",omitempty"`
	Model string            `json:",omitempty"`
	Agent string            `json:",omitempty"`
	At    conversation.Time `json:",omitzero"`
	Files []msg.Attachment  `json:",omitempty"`
}

// empty reports whether nothing was asked: an answer is written again.
func (q *question) empty() bool { return q.Text == "" && len(q.Files) == 0 }

// request decodes the request that is answered by the stream:
//
//	POST /api/agent/run {"question":"…","conversation_id":"…","mode":"auto","model_id":3,"agent_id":7}
//	GET /api/message/list?conversation_id=…
//
// The documents write goal where the routes read question.
func (d *stream) request(f *frame.Frame) {
	_, path, _ := strings.Cut(f.Name, " ")
	path, query, _ := strings.Cut(path, "?")
	if values, err := url.ParseQuery(query); err == nil {
		d.setSession(values.Get("conversation_id"))
	}
	switch data := bytes.TrimSpace(f.Data); {
	case len(data) == 0:
		return
	case data[0] != '{':
		d.keepRaw("request", f.Data, f.Name)
		return
	}
	root, ok := d.Parse(f.Data)
	if !ok {
		return
	}
	d.setSession(ident.Of(root.Get("conversation_id")))
	text := root.First("question", "goal", "message", "content")
	facts := []string{path, peekText(text)}
	for _, name := range [...]string{"conversation_id", "mode", "pid", "model_id", "agent_id", "fileIds"} {
		facts = append(facts, string(root.Get(name).Peek()))
	}
	hash := msg.HashKey(facts...)
	if !text.Is(jsonv.String) && !strings.HasSuffix(path, "/run") && !strings.HasSuffix(path, "/chat") {
		m := d.addStatus("request:"+hash, "request")
		m.Run = d.Turn.Run
		m.SetAttr("path", path)
		return
	}
	d.addUnanswered()
	d.Ask = &question{
		Hash: hash, Key: "request:" + hash, Text: conversation.Cut(text.Text().String(), maxText),
		Mode: ident.Of(root.Get("mode")), Model: ident.OrNumber(root.Get("model_id")), Agent: ident.OrNumber(root.Get("agent_id")),
	}
	d.Asked, d.Fresh = d.Ask, true
}

// question decodes a user's question, which is on no stream: only the rows of the database have
// it.
func (r *message) question() {
	pid := ident.OrNumber(r.get("pid"))
	a := &question{Hash: r.hash(), Text: conversation.Cut(r.content().String(), maxText), At: r.at, Files: files(r.json)}
	if key := "asked:" + a.Hash; r.Shown == key || !r.listed {
		a.Key = key // rows are all there is: only the last can be without an answer
	}
	r.addUnanswered()
	r.Ask, r.Asked, r.Fresh = a, nil, true
	if row := ident.OrNumber(r.v.Get("id")); row != "" && (r.action == "chat" || pid != "") {
		r.setRun(chatRun(row))
		r.addQuestion(r.at)
	}
}

// addQuestion emits the user's question, now that its run is known. The request has no time;
// the question was asked at by at the latest.
func (d *dialogue) addQuestion(by conversation.Time) {
	a := d.Ask
	if a == nil {
		return
	}
	d.Ask = nil
	if a.Key != "" {
		m := d.addStatus(a.Key, "request")
		a.At.Set(m)
		m.SetAttr("mode", a.Mode)
		m.SetAttr("model_id", a.Model)
		m.SetAttr("agent_id", a.Agent)
	}
	if d.Turn.Goal = conversation.Cut(a.Text, maxGoal); a.empty() {
		return
	}
	m := a.mark(d.addToTurn(msg.User, "question:"+d.Turn.Run))
	m.Signal = msg.RunStart
	if a.At.Nanos == 0 && by.Nanos != 0 {
		by.Set(m)
		m.SetAttr("time_of", "answer")
	}
}

// mark makes the message the question.
func (q *question) mark(m *msg.Message) *msg.Message {
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
	m.Content, m.Attachments = msg.Plain(q.Text), q.Files
	q.At.Set(m)
	return m
}

// addUnanswered emits a question that was not answered before the next one was asked.
func (d *dialogue) addUnanswered() {
	if a := d.Ask; a != nil && !a.empty() {
		a.Key = cmp.Or(a.Key, "asked:"+a.Hash)
		d.addDrafts(a, nil)
	}
}

// addDrafts emits a question without an answer, and an answer that is still being written.
func (d *dialogue) addDrafts(a *question, c *chat) {
	if a != nil && a.Key != "" {
		m := a.mark(d.add(msg.User, a.Key))
		m.Complete = msg.Partial
		m.SetAttr("mode", a.Mode)
	}
	if c != nil && len(c.Text) > 0 {
		m := d.add(msg.Assistant, d.draftKey())
		m.Role, m.Agent, m.Complete = msg.RoleAssistant, agent, msg.Partial
		m.Content = msg.Plain(string(c.Text))
	}
}
