package grace

import (
	"bytes"
	"cmp"
	"net/url"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// question is a question whose run is not known yet: its answer has not begun.
type question struct {
	Hash  string
	Key   string           `json:",omitempty"` // under which it is shown while it waits; empty when it is not
	Text  string           `json:",omitempty"`
	Mode  string           `json:",omitempty"`
	Model string           `json:",omitempty"`
	Agent string           `json:",omitempty"`
	At    at               `json:",omitzero"`
	Files []msg.Attachment `json:",omitempty"`
}

// request decodes the request that is answered by the stream:
//
//	POST /api/agent/run {"question":"…","conversation_id":"…","mode":"auto","model_id":3,"agent_id":7}
//	GET /api/message/list?conversation_id=…
//
// The documents write goal where the routes read question.
func (d *stream) request(f *frame.Frame, out *decoder.Output) {
	_, path, _ := strings.Cut(f.Name, " ")
	path, query, _ := strings.Cut(path, "?")
	if values, err := url.ParseQuery(query); err == nil {
		d.setSession(values.Get("conversation_id"))
	}
	data := bytes.TrimSpace(f.Data)
	if len(data) == 0 {
		return
	}
	if data[0] != '{' {
		m := out.Unknown("request", f.Data)
		m.Session, m.Key = d.session(), "unknown:"+msg.HashKey(f.Name, string(f.Data))
		return
	}
	root, ok := d.parse(f.Data, out)
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
		m := d.status(out, "request:"+hash, "request")
		m.Run = d.Turn.Run
		m.SetAttr("path", path)
		return
	}
	d.addUnanswered(out)
	d.Ask = &question{
		Hash: hash, Key: "request:" + hash, Text: limitText(text.Text()),
		Mode: ident.Of(root.Get("mode")), Model: ident.OrNumber(root.Get("model_id")), Agent: ident.OrNumber(root.Get("agent_id")),
	}
	d.Asked, d.Fresh = d.Ask, true
}

// addQuestion emits the user's question, now that its run is known. The request has no time;
// the question was asked at by at the latest.
func (d *stream) addQuestion(by at, out *decoder.Output) {
	a := d.Ask
	if a == nil {
		return
	}
	d.Ask = nil
	if a.Key != "" {
		m := d.status(out, a.Key, "request")
		m.Time, m.Precision = a.At.Time, a.At.Precision
		m.SetAttr("mode", a.Mode)
		m.SetAttr("model_id", a.Model)
		m.SetAttr("agent_id", a.Agent)
	}
	d.Turn.Goal = cut(a.Text, maxGoal)
	if a.Text == "" && len(a.Files) == 0 { // an answer is written again
		return
	}
	m := d.addMessage(out, msg.User, "question:"+d.Turn.Run)
	m.Role, m.Agent, m.Signal = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}, msg.RunStart
	m.Content, m.Attachments = msg.Plain(a.Text), a.Files
	if m.Time, m.Precision = a.At.Time, a.At.Precision; m.Time == 0 && by.Time != 0 {
		m.Time, m.Precision = by.Time, by.Precision
		m.SetAttr("time_of", "answer")
	}
}

// reopenQuestion opens the request's question again: in the mode twins the work of the agent
// follows a chat answer, and the database has it under a question of its own.
func (d *stream) reopenQuestion() {
	if d.Ask == nil && d.Asked != nil && strings.HasPrefix(d.Turn.Run, chatRun("")) {
		a := *d.Asked
		a.Key = ""
		d.Ask = &a
	}
}

// addUnanswered emits a question that was not answered before the next one was asked.
func (d *stream) addUnanswered(out *decoder.Output) {
	if a := d.Ask; a != nil && (a.Text != "" || len(a.Files) > 0) {
		a.Key = cmp.Or(a.Key, "asked:"+a.Hash)
		d.addDraftQuestion(out)
	}
}

// addDraftQuestion emits a question that has no answer yet.
func (d *stream) addDraftQuestion(out *decoder.Output) {
	a := d.Ask
	m := out.Add()
	m.Kind, m.Role, m.Key, m.Session = msg.User, msg.RoleUser, a.Key, d.session()
	m.Agent = msg.Agent{Kind: msg.KindHuman}
	m.Content, m.Attachments = msg.Plain(a.Text), a.Files
	m.Time, m.Precision = a.At.Time, a.At.Precision
	m.SetAttr("mode", a.Mode)
}
