package llmmessage

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// user decodes an event that the client sends.
func (d *stream) user(e *event, action string) {
	switch action {
	case "message":
		d.prompt(e, e.text())
	case "solve_tasks":
		if q := e.content.Get("question"); q.Is(jsonv.String) {
			d.prompt(e, q.Text())
		} else {
			d.prompt(e, e.content.Text())
		}
	case "response":
		d.userResponse(e)
	default:
		m := e.status()
		switch action {
		case "replan":
			m.Content = e.content.Get("question").Text()
		case "cancel":
			m.Content = e.content.Get("reason").Text()
		}
		m.SetAttr("task_id", ident.OrNumber(e.content.Get("task_id")))
		m.SetAttr("last_seq", ident.OrNumber(e.content.First("last_seq", "last_event_id")))
	}
}

// prompt starts a turn with the text of the user.
func (d *stream) prompt(e *event, text msg.Text) {
	d.emitDraft(e, "")
	key := textKey("user", text)
	key += nth(e.s.Given.emit(key))
	e.s.startTurn(key)
	m := e.add(msg.User, key)
	m.Role, m.Agent, m.Signal = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}, msg.RunStart
	m.Content = text
	if image := e.root.Get("base64_image"); image.Is(jsonv.String) {
		m.Attachments = imageOf(image)
	}
}

// textKey is the key of a text: its role and a hash of it.
func textKey(role string, text msg.Text) string { return role + ":" + msg.HashKey(text.String()) }
