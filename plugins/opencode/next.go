package opencode

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// maxHeld and maxQueued bound the prompts that wait, and the bytes of one.
const maxHeld, maxQueued = 16, 64 << 10

// aborted is the type of the error of a step that a person stopped.
const aborted = "aborted"

// held is a prompt that waits until the run before it is over.
type held struct{ ID, Text string }

// steps decodes the events of the newer family.
type steps struct{ *stream }

// next decodes an event of the newer family, which has a step of the work where the older one has the whole message or part:
// session.next.* of version 1, and from version 2 on session.* with data in the place of properties, except those that the older
// family has too. In a session that has both families it is a copy.
func (d steps) next(s *session, typ string, v, e jsonv.Value) {
	if s.Whole {
		v.MarkRead()
		return
	}
	id := ident.Of(v.Get("id")) // of the event
	if id == "" {
		id = "evt_" + msg.HashKey(s.ID, typ, cmp.Or(string(e.Get("timestamp").Peek()), string(v.Get("created").Peek())))
	}
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimRight(typ, ".0123456789"), "session."), "next.")
	group, action, _ := strings.Cut(name, ".")
	switch {
	case group == "step", group == "text", group == "reasoning", group == "tool":
		response := cmp.Or(ident.Of(e.Get("assistantMessageID")), s.Last)
		if action == "started" && group == "step" && !e.Get("assistantMessageID").Exists() {
			response = "msg_" + strings.TrimPrefix(id, "evt_")
		}
		rec := d.known(response)
		if rec == nil {
			rec = d.remember(message{ID: response, Session: s.ID, Run: s.turn(cmp.Or(s.User, response), false)})
			s.Last = response
		}
		rec.Response.At = d.At.Or(rec.Response.At)
		switch group {
		case "step":
			d.step(s, rec, action, id, e)
		case "tool":
			calls(d).inEvent(rec, action, e)
		default:
			d.text(rec, group, action, e)
		}
	case name == "prompted", name == "prompt.admitted", name == "input.admitted", name == "inbox.enqueued", name == "synthetic":
		d.admitted(s, name, id, e)
	case name == "input.promoted", name == "inbox.delivered":
		input := ident.Of(e.First("inputID", "inboxID"))
		if h, ok := bounded.Take(&s.Held, func(h held) bool { return h.ID == input }); ok {
			d.begins(s, h.ID, false).Content = msg.Plain(h.Text)
		}
	case group == "execution" && action != "started": // it ends
		d.failed(s, e.Get("error"))
		d.stop(s, cmp.Or(reasons[action], "stop"))
	case name == "retried", name == "retry.scheduled":
		m := d.status(s, s.Run.Going(), "retry:"+id, "retry")
		m.Content, m.ResponseID, m.Signal = e.Path("error", "message").Text(), cmp.Or(ident.Of(e.Get("assistantMessageID")), s.Last), msg.Retry
		m.SetAttr("attempt", e.Get("attempt").Digits())
	case name == "usage.updated", group == "execution", action == "delta":
		e.Skip("tokens", "cost", "text") // a sum, or what follows has it
	default: // what a person chose, a command of the person, a compaction
		m := d.status(s, s.Run.Going(), "event:"+id, name)
		if m.Content = e.JSON(); name == "compaction.started" {
			m.Signal = msg.Compaction
		}
	}
}

// admitted decodes a prompt. One that is queued behind a run which goes on begins its own run later.
func (d steps) admitted(s *session, name, event string, e jsonv.Value) {
	item := e.First("input", "item")
	prompt, delivery := jsonv.Or(item.First("data", "payload"), e.Get("prompt")), jsonv.Or(item, e).Get("delivery")
	id := cmp.Or(ident.First(e.Get("messageID"), e.Get("inputID"), e.Get("inboxID")), "msg_"+strings.TrimPrefix(event, "evt_"))
	text := prompt.Get("text")
	switch queued := delivery.In("queue") && s.Run.Active() && s.Parent == ""; {
	case name == "synthetic", item.Get("type").Equal("synthetic"):
		if d.Seen.Add(id, maxSeen) {
			rec := &message{ID: id, Session: s.ID, User: true, Run: s.turn(cmp.Or(s.User, id), true)}
			d.injected(rec, id, jsonv.Or(text, e.Get("text")))
		}
	case d.Seen.Has(id):
		e.MarkRead()
	case queued && name != "prompted" && len(text.Peek()) <= maxQueued:
		s.Held = bounded.Push(s.Held, held{id, text.Str()}, maxHeld)
	default:
		bounded.Take(&s.Held, func(h held) bool { return h.ID == id })
		m := d.begins(s, id, !queued)
		m.Content = text.Text()
		for f := range prompt.Get("files").Elems() {
			m.Attachments = append(m.Attachments, file(f))
		}
	}
}

// begins adds a prompt, which begins a run unless it steers the one that goes on.
func (d steps) begins(s *session, id string, steers bool) *msg.Message {
	d.Seen.Add(id, maxSeen)
	return d.prompt(&message{ID: id, Session: s.ID, User: true, Run: s.turn(id, steers)}, id)
}

// step decodes the beginning or the end of a response of the model.
func (d steps) step(s *session, rec *message, action, event string, e jsonv.Value) {
	switch action {
	case "started":
		rec.Done, rec.Ended, rec.Agent = false, false, ident.Of(e.Get("agent"))
		m := d.begin(rec, s.User, e.Path("model", "id"), e.Path("model", "providerID"))
		conversation.Attrs(m, e, "agent", "snapshot")
		conversation.Attrs(m, e.Get("model"), "variant")
	case "ended", "failed":
		finish := ident.Of(e.Get("finish"))
		if t := e.Get("tokens"); t.Is(jsonv.Object) && d.Seen.Add("end:"+event, maxSeen) {
			m := d.tokens(rec, counts(t, true), msg.Complete, finish)
			m.SetAttr("cost", e.Get("cost").Digits())
			conversation.Attrs(m, e, "snapshot")
		}
		d.finished(rec, cmp.Or(d.failed(s, e.Get("error")), finish, "stop"))
	default:
		d.unknown("step."+action, d.Root)
	}
}

// text decodes the beginning, a piece or the end of a text. Early servers name neither it nor its response: it is the
// last one then.
func (d steps) text(rec *message, group, action string, e jsonv.Value) {
	name := cmp.Or(ident.First(e.Get("textID"), e.Get("reasoningID")), e.Get("ordinal").Digits())
	if name == "" {
		if action == "started" {
			rec.Response.Texts++
		}
		name = conversation.NonZero(rec.Response.Texts)
	}
	id := rec.ID + "/" + group + "/" + name
	switch {
	case d.Seen.Has(id):
		e.MarkRead()
	case action == "ended":
		d.said(rec, kinds[group], id, e.Get("text"))
	default:
		d.piece(rec, kinds[group], id, e.Get("delta"))
	}
}

// reasons are those of the end of a run, by how the work on a prompt ends.
var reasons = map[string]string{"failed": "error", "interrupted": "interrupted"}
