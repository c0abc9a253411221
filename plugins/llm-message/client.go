package llmmessage

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// user decodes what the client sends.
func (d *stream) user(e *event, what string) {
	switch what {
	case "message":
		d.prompt(e, e.text())
	case "solve_tasks":
		if q := e.content.Get("question"); q.Is(jsonv.String) {
			d.prompt(e, q.Text())
		} else {
			d.prompt(e, e.content.Text())
		}
	case "response":
		d.answered(e)
	default:
		m := e.status()
		switch what {
		case "replan":
			m.Content = e.content.Get("question").Text()
		case "cancel":
			m.Content = e.content.Get("reason").Text()
		}
		m.SetAttr("task_id", ident.OrNumber(e.content.Get("task_id")))
		m.SetAttr("last_seq", ident.OrNumber(e.content.First("last_seq", "last_event_id")))
	}
}

// prompt begins a turn with what the user says.
func (d *stream) prompt(e *event, text msg.Text) {
	d.closeDraft(e, "")
	key := textKey("user", text)
	key += nth(e.s.Given.give(key))
	e.s.begin(key)
	m := e.give(msg.User, key)
	m.Role, m.Agent, m.Signal = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}, msg.RunStart
	m.Content = text
	if image := e.root.Get("base64_image"); image.Is(jsonv.String) {
		m.Attachments = attach(image)
	}
}

// textKey is the key of a text: a hash of who says it and what.
func textKey(role string, text msg.Text) string { return role + ":" + msg.HashKey(text.String()) }
