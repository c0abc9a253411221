package llmmessage

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// draft is an answer that is still being written.
type draft struct {
	Key     string `json:",omitempty"`
	Run     string `json:",omitempty"`
	Text    []byte `json:",omitempty"`
	Dropped int    `json:",omitempty"` // bytes beyond the limit
	Lost    int64  `json:",omitempty"` // events of the connection that were missing when it began
	At      at     `json:",omitzero"`
	Count   int    `json:",omitempty"` // of the drafts of the run
}

// thinking decodes the model's text beside its calls. It is a text of the assistant, and the
// next snapshot has it as one; notices of the agent about its own work are in no snapshot.
func (d *stream) thinking(e *event) {
	e.ensureTurn()
	if e.meta.Get("streaming").Bool() || e.text().IsZero() {
		m := e.status()
		m.Content = e.text()
		return
	}
	kind := msg.Assistant
	if e.meta.Get("thinking_type").Is(jsonv.String) {
		kind = msg.Reasoning
	}
	m := d.addAssistantText(e, kind, e.text())
	m.Model = ident.Of(e.meta.Get("model"))
	m.SetAttr("step", ident.OrNumber(e.meta.Get("step")))
}

// addAssistantText emits a text of the assistant. If a snapshot was faster, it keeps that
// text's key.
func (d *stream) addAssistantText(e *event, kind msg.Kind, text msg.Text) *msg.Message {
	key := textKey("assistant", text)
	if t := &e.s.Turn; t.Shown && t.isLastText(key) {
		key, t.Shown = t.Said, false
	} else {
		key += nth(e.s.Given.emit(key))
	}
	m := e.add(kind, key)
	m.Role, m.Content = msg.RoleAssistant, text
	d.setOnlyPhase(e, m)
	if m.Run == e.s.Turn.Run {
		e.s.Turn.Said, e.s.Turn.Shown = key, false
	}
	return m
}

// isLastText reports whether the last text has that key, at any occurrence.
func (t *turn) isLastText(key string) bool {
	base, _, _ := strings.Cut(t.Said, "#")
	return base == key
}

// partial decodes a piece of an answer. Pieces are lost, so the text is a draft until the final
// answer arrives.
func (d *stream) partial(e *event) {
	s, text := e.s, e.text()
	if e.isLate() || !s.Turn.Open && text.IsZero() {
		return // its answer is complete
	}
	e.ensureTurn()
	dr := &s.Draft
	if dr.Key == "" || dr.Run != s.Turn.Run {
		n := 1
		if dr.Run == s.Turn.Run {
			n = dr.Count + 1
		}
		*dr = draft{Key: "draft:" + s.Turn.Run + nth(n), Run: s.Turn.Run, Lost: d.Heard.Lost, At: e.at, Count: n}
		m := e.status()
		m.Signal = msg.FirstToken
	}
	room := max(maxDraft-len(dr.Text), 0)
	part := cut(text.String(), room)
	dr.Text = append(dr.Text, part...)
	dr.Dropped += text.Len() - len(part)
}

// final decodes the final answer, which ends the turn.
func (d *stream) final(e *event) {
	if e.s.Turn.Run == "" {
		e.ensureTurn()
	}
	text := e.text()
	key := textKey("assistant", text)
	if t := &e.s.Turn; !text.IsZero() && (t.Shown || !t.isLastText(key)) {
		d.addAssistantText(e, msg.Assistant, text)
	}
	if !e.endAnswered(d) {
		e.status()
	}
}

// endAnswered ends the turn with its answer, unless it has ended: an event and a snapshot both
// end it.
func (e *event) endAnswered(d *stream) bool {
	d.discardDraft(e, e.s.Turn.Said)
	if !e.s.Turn.Open {
		return false
	}
	m := e.add(msg.Stop, "stop:"+e.s.Turn.Run)
	m.Hidden = true
	e.endTurn(m, "stop", false)
	return true
}

// discardDraft replaces the draft by a hidden status, for the answer is known.
func (d *stream) discardDraft(e *event, answer string) {
	if e.s.Draft.Key == "" {
		return
	}
	m := e.add(msg.Status, e.s.Draft.Key)
	m.Hidden, m.ParentKey = true, answer
	m.SetAttr("type", "agent.partial_answer")
	m.SetAttr("holes", d.missedEvents(&e.s.Draft))
	e.s.Draft = draft{Run: e.s.Draft.Run, Count: e.s.Draft.Count}
}

// missedEvents is the number of events that did not arrive while the draft was written: most
// likely pieces of it.
func (d *stream) missedEvents(dr *draft) string { return nonZero(int(max(d.Heard.Lost-dr.Lost, 0))) }

// emitDraft emits an answer that will never be complete.
func (d *stream) emitDraft(e *event, reason string) {
	dr := &e.s.Draft
	if dr.Key == "" {
		return
	}
	m := e.add(msg.Assistant, dr.Key)
	m.Role, m.Run, m.FinishReason = msg.RoleAssistant, dr.Run, reason
	m.SetAttr(msg.FinishReasonOf, "run")
	m.Content = msg.Plain(string(dr.Text))
	m.SetAttr("incomplete", "true")
	m.SetAttr("holes", d.missedEvents(dr))
	m.SetAttr("truncated_bytes", nonZero(dr.Dropped))
	*dr = draft{Run: dr.Run, Count: dr.Count}
}
