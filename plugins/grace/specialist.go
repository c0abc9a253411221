package grace

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// autoReply decodes the first reply to a question. When a named specialist wrote it, it is the
// result of a delegation too.
func (d *stream) autoReply(r *record) {
	s, text := d.specialistReply(r), r.content()
	if result := s.Get("result"); result.Exists() {
		text = result.Text()
	}
	if to := ident.Of(s.Get("specialist")); to != "" {
		d.addSpecialist(r, s, to, text)
	}
	m := d.addFor(r, msg.Assistant, r.id())
	m.Content = text
	m.SetAttr("task_type", ident.Of(s.Get("taskType")))
	markFailed(m, r)
	d.modelText(m)
}

// specialistReply returns the object that marks a reply as a specialist's:
//
//	{"handledBySpecialist":true,"result":"…","specialist":"openrouter/qwen/…","taskType":"general_chat"}
//
// In a log it is the message itself; where an object was published in place of its text, it is
// in content or json.
func (d *stream) specialistReply(r *record) jsonv.Value {
	content := r.v.Get("content")
	for _, v := range [...]jsonv.Value{r.v, content, r.json} {
		if v.Get("handledBySpecialist").Bool() {
			return v
		}
	}
	if v := unquoted(&d.text, content); v.Get("handledBySpecialist").Bool() {
		return v
	}
	d.text.Root().MarkRead() // as the text that it is
	return jsonv.Value{}
}

// addSpecialist emits the delegation to a specialist and its result: the format reports both at
// once.
func (d *stream) addSpecialist(r *record, s jsonv.Value, to string, text msg.Text) {
	call := "specialist:" + r.hash()
	m := d.addFor(r, msg.Delegation, "call:"+call)
	m.Hidden = true
	m.Tool.CallID, m.Tool.Name, m.Delegation.To = call, "specialist", to
	m.Delegation.Task = msg.Plain(d.Turn.Goal)
	m.SetAttr("task_type", ident.Of(s.Get("taskType")))
	m = d.addFor(r, msg.DelegationResult, "result:"+call)
	m.Hidden, m.Content = true, text
	m.Tool.CallID, m.Tool.Name, m.Delegation.To = call, "specialist", to
	markFailed(m, r)
}

// markFailed marks a message of a record with a failed status as an error.
func markFailed(m *msg.Message, r *record) {
	if failed(r.status) {
		m.IsError = true
		r.setStatus(m)
	}
}

func failed(status string) bool {
	return status == "failure" || status == "failed" || status == "error"
}
