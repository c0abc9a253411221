package grace

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// reply decodes the first words of an answer. When a specialist wrote them and is
// named, they are the result of a delegation too.
func (d *stream) reply(r *record) {
	s, text := d.routed(r), r.content()
	if result := s.Get("result"); result.Exists() {
		text = result.Text()
	}
	if to := ident.Of(s.Get("specialist")); to != "" {
		d.delegated(r, s, to, text)
	}
	m := d.say(r, msg.Assistant, r.id())
	m.Content = text
	m.SetAttr("task_type", ident.Of(s.Get("taskType")))
	mark(m, r)
	d.modelText(m)
}

// routed returns what says that a specialist handled the request:
//
//	{"handledBySpecialist":true,"result":"…","specialist":"openrouter/qwen/…","taskType":"general_chat"}
//
// It is the message itself in a log, and stands in content or json where an object
// was published in place of its text.
func (d *stream) routed(r *record) jsonv.Value {
	content := r.v.Get("content")
	for _, v := range [...]jsonv.Value{r.v, content, r.json} {
		if v.Get("handledBySpecialist").Bool() {
			return v
		}
	}
	if v := inside(&d.text, content); v.Get("handledBySpecialist").Bool() {
		return v
	}
	d.text.Root().MarkRead() // as the text that it is
	return jsonv.Value{}
}

// delegated gives the delegation to a specialist and its result: the format tells
// of both at once.
func (d *stream) delegated(r *record, s jsonv.Value, to string, text msg.Text) {
	call := "specialist:" + r.hash()
	m := d.say(r, msg.Delegation, "call:"+call)
	m.Hidden = true
	m.Tool.CallID, m.Tool.Name, m.Delegation.To = call, "specialist", to
	m.Delegation.Task = msg.Plain(d.Turn.Goal)
	m.SetAttr("task_type", ident.Of(s.Get("taskType")))
	m = d.say(r, msg.DelegationResult, "result:"+call)
	m.Hidden, m.Content = true, text
	m.Tool.CallID, m.Tool.Name, m.Delegation.To = call, "specialist", to
	mark(m, r)
}

// mark marks a message whose status says that it failed.
func mark(m *msg.Message, r *record) {
	if failed(r.status) {
		m.IsError = true
		r.states(m)
	}
}

func failed(status string) bool {
	return status == "failure" || status == "failed" || status == "error"
}
