package llmmessage

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// draft is an answer in the making.
type draft struct {
	Key     string `json:",omitempty"`
	Run     string `json:",omitempty"`
	Text    []byte `json:",omitempty"`
	Dropped int    `json:",omitempty"` // bytes beyond the limit
	Lost    int64  `json:",omitempty"` // events of the connection that were not heard, when it began
	At      at     `json:",omitzero"`
	Count   int    `json:",omitempty"` // of the drafts of the run
}

// thinking decodes what the model says beside its calls. It is a text of the
// assistant, and stands as one in the next snapshot; what the agent says of itself
// while it works does not.
func (d *stream) thinking(e *event) {
	e.wake()
	if e.meta.Get("streaming").Bool() || e.text().IsZero() {
		m := e.status()
		m.Content = e.text()
		return
	}
	kind := msg.Assistant
	if e.meta.Get("thinking_type").Is(jsonv.String) {
		kind = msg.Reasoning
	}
	m := d.speak(e, kind, e.text())
	m.Model = ident.Of(e.meta.Get("model"))
	m.SetAttr("step", ident.OrNumber(e.meta.Get("step")))
}

// speak gives a text of the assistant. If a snapshot was faster, it is the same one.
func (d *stream) speak(e *event, kind msg.Kind, text msg.Text) *msg.Message {
	key := textKey("assistant", text)
	if t := &e.s.Turn; t.Shown && t.said(key) {
		key, t.Shown = t.Said, false
	} else {
		key += nth(e.s.Given.give(key))
	}
	m := e.give(kind, key)
	m.Role, m.Content = msg.RoleAssistant, text
	d.place(e, m)
	if m.Run == e.s.Turn.Run {
		e.s.Turn.Said, e.s.Turn.Shown = key, false
	}
	return m
}

// said reports whether the last text has that key, whichever time it was said.
func (t *turn) said(key string) bool {
	base, _, _ := strings.Cut(t.Said, "#")
	return base == key
}

// partial decodes a piece of an answer. Pieces are lost, so the text is a draft
// until the final answer comes.
func (d *stream) partial(e *event) {
	s, text := e.s, e.text()
	if e.late() || !s.Turn.Open && text.IsZero() {
		return // its answer is complete
	}
	e.wake()
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
		e.wake()
	}
	text := e.text()
	key := textKey("assistant", text)
	if t := &e.s.Turn; !text.IsZero() && (t.Shown || !t.said(key)) {
		d.speak(e, msg.Assistant, text)
	}
	if !e.stop(d) {
		e.status()
	}
}

// stop ends the turn with its answer, unless it is over: an event says so, and so does a
// snapshot.
func (e *event) stop(d *stream) bool {
	d.settle(e, e.s.Turn.Said)
	if !e.s.Turn.Open {
		return false
	}
	m := e.give(msg.Stop, "stop:"+e.s.Turn.Run)
	m.Hidden = true
	e.end(m, "stop", false)
	return true
}

// settle takes a draft back, for the answer is known.
func (d *stream) settle(e *event, answer string) {
	if e.s.Draft.Key == "" {
		return
	}
	m := e.give(msg.Status, e.s.Draft.Key)
	m.Hidden, m.ParentKey = true, answer
	m.SetAttr("type", "agent.partial_answer")
	m.SetAttr("holes", d.holes(&e.s.Draft))
	e.s.Draft = draft{Run: e.s.Draft.Run, Count: e.s.Draft.Count}
}

// holes is how many events were not heard while the draft was written: pieces of it,
// most likely.
func (d *stream) holes(dr *draft) string { return count(int(max(d.Heard.Lost-dr.Lost, 0))) }

// closeDraft gives an answer that will never be complete.
func (d *stream) closeDraft(e *event, reason string) {
	dr := &e.s.Draft
	if dr.Key == "" {
		return
	}
	m := e.give(msg.Assistant, dr.Key)
	m.Role, m.Run, m.FinishReason = msg.RoleAssistant, dr.Run, reason
	m.SetAttr(msg.FinishReasonOf, "run")
	m.Content = msg.Plain(string(dr.Text))
	m.SetAttr("incomplete", "true")
	m.SetAttr("holes", d.holes(dr))
	m.SetAttr("truncated_bytes", count(dr.Dropped))
	*dr = draft{Run: dr.Run, Count: dr.Count}
}
