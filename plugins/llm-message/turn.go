package llmmessage

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// turn is a run of the session's agent: a prompt and all that answers it.
type turn struct {
	Run      string `json:",omitempty"`
	Open     bool   `json:",omitempty"`
	Prompted bool   `json:",omitempty"` // its prompt is known
	Text     string `json:",omitempty"` // key of the last text of the agent
	Shown    bool   `json:",omitempty"` // only a snapshot has had that text
	Conn     string `json:",omitempty"` // connection of the event that ended it
	Seq      int64  `json:",omitempty"` // number of that event

	// Of a turn whose prompt may still be refused:
	Before *turn   `json:",omitempty"`
	Worked bool    `json:",omitempty"` // an event of the agent followed the prompt
	Left   []*call `json:",omitempty"` // its open calls, while it is the turn before such a one
}

// place is where a message belongs: a run, the run that caused it, and the agent of the run.
type place struct {
	Run    string `json:",omitempty"`
	Parent string `json:",omitempty"`
	Agent  string `json:",omitempty"`
}

func (p place) set(m *msg.Message) {
	m.Run, m.ParentRun, m.Agent.Name = p.Run, p.Parent, p.Agent
	if p.Parent != "" {
		m.Delegation.Link = msg.ByParent
	}
}

// turnPlace is the place of the messages of the turn.
func (s *session) turnPlace() place { return place{Run: s.Turn.Run, Agent: s.Agent} }

// isLastText reports whether the last text has that key, at any occurrence.
func (t *turn) isLastText(key string) bool {
	base, _, _ := strings.Cut(t.Text, "#")
	return base == key
}

// startTurn begins a turn, whose run's id is the key of its prompt where that is known.
func (s *session) startTurn(run string, prompted bool) {
	s.Turn = turn{Run: run, Open: true, Prompted: prompted}
	s.Calls.Open = nil
	for _, c := range s.Calls.Ended {
		c.Steps = nil // steps are numbered in each turn
	}
}

// ensureTurn starts a turn with an event if none is open. On the server's side of the
// connection alone the prompt is missing.
func (d *stream) ensureTurn() {
	if !d.s.Turn.Open {
		d.s.startTurn("turn:"+d.id, false)
	}
	d.s.Turn.Worked = true
}

// endTurn ends the turn with the message m, unless it has ended.
func (d *stream) endTurn(m *msg.Message, reason string, failed bool) {
	m.FinishReason = reason
	if t := &d.s.Turn; t.Open {
		m.Signal, m.IsError = msg.RunEnd, failed
		t.Open, t.Conn, t.Seq = false, d.conn, d.seq
	}
}

// overtook reports whether the event was sent before the one that ended the turn: some are
// delayed and overtaken.
func (t *turn) overtook(d *stream) bool {
	return !t.Open && d.seq > 0 && d.seq < t.Seq && d.conn == t.Conn
}

// prompt starts a turn with the text of the user.
func (d *stream) prompt(text msg.Text) {
	d.s.Draft.abandon(d, "")
	key := d.s.Emitted.emit(textKey("user", text))
	before := d.s.Turn
	before.Left = d.s.Calls.Open
	if b := before.Before; b != nil && b.Open && !before.Worked { // its prompt waits as well
		before = *b
	}
	before.Before = nil
	d.s.startTurn(key, true)
	d.s.Turn.Before = &before
	d.addText(msg.User, msg.RoleUser, key, text, d.Root.Get("base64_image"))
}

// textKey is the key of a text: its role and a hash of it.
func textKey(role string, text msg.Text) string { return role + ":" + msg.HashKey(text.String()) }

// thinking decodes the model's text beside its calls. It is a text of the assistant, and the
// next snapshot has it as one; notices of the agent about its own work are in no snapshot.
func thinking(d *stream) {
	d.ensureTurn()
	if d.meta.Get("streaming").Bool() || d.text().IsZero() {
		d.notice(d.text())
		return
	}
	kind := msg.Assistant
	if d.meta.Get("thinking_type").Is(jsonv.String) {
		kind = msg.Reasoning
	}
	m := d.assistant(kind, d.text())
	m.SetAttr("step", ident.OrNumber(d.meta.Get("step")))
}

// assistant emits a text of the model. If a snapshot was faster, it keeps that text's key.
func (d *stream) assistant(kind msg.Kind, text msg.Text) *msg.Message {
	t, key := &d.s.Turn, textKey("assistant", text)
	if t.Shown && t.isLastText(key) {
		key, t.Shown = t.Text, false
	} else {
		key = d.s.Emitted.emit(key)
	}
	m := d.addText(kind, msg.RoleAssistant, key, text, jsonv.Value{})
	m.Model = ident.Of(d.meta.Get("model"))
	return m
}

// addText adds a text of an event, or of a snapshot: then it is a summary, for an event has more. One of the user
// begins the run that it is in.
func (d *stream) addText(kind msg.Kind, role msg.Role, key string, text msg.Text, image jsonv.Value) *msg.Message {
	m := d.addTo(d.place(), kind, key)
	m.Role, m.Content, m.Attachments = role, text, imageOf(image)
	if d.of != nil {
		m.Complete = msg.Summary
	}
	if kind == msg.User {
		m.Agent, m.Signal = msg.Agent{Kind: msg.KindHuman}, msg.RunStart
	}
	if t := &d.s.Turn; role == msg.RoleAssistant && m.Run == t.Run {
		t.Text, t.Shown = key, d.of != nil
	}
	return m
}

// draft is an answer of the turn that is still being written.
type draft struct {
	Key     string            `json:",omitempty"`
	Text    []byte            `json:",omitempty"`
	Cut     int               `json:",omitempty"` // bytes beyond the limit
	Missing int64             `json:",omitempty"` // events of the connection that were missing when it began
	At      conversation.Time `json:",omitzero"`
}

// partialAnswer decodes a piece of an answer. Pieces are lost, so the text is a draft until the
// final answer arrives.
func partialAnswer(d *stream) {
	text, dr := d.text(), &d.s.Draft
	if d.s.Turn.overtook(d) || !d.s.Turn.Open && text.IsZero() {
		return // its answer is complete
	}
	d.ensureTurn()
	if dr.Key == "" {
		*dr = draft{Key: d.s.Emitted.emit("draft:" + d.s.Turn.Run), Missing: d.Numbers.Missing, At: d.At}
		d.status(d.key()).Signal = msg.FirstToken
	}
	part := conversation.Cut(text.String(), max(maxDraft-len(dr.Text), 0))
	dr.Text = append(dr.Text, part...)
	dr.Cut += text.Len() - len(part)
}

// add adds a message of the draft, with the number of the events that did not arrive while it was written: most likely
// they are pieces of it.
func (dr *draft) add(d *stream, kind msg.Kind) *msg.Message {
	m := d.add(kind, dr.Key)
	m.SetAttr("holes", conversation.NonZero(int(max(d.Numbers.Missing-dr.Missing, 0))))
	return m
}

// emit emits the draft as it is.
func (dr *draft) emit(d *stream) *msg.Message {
	m := dr.add(d, msg.Assistant)
	m.Role, m.Content, m.Complete = msg.RoleAssistant, msg.Plain(string(dr.Text)), msg.Partial
	dr.At.Set(m)
	return m
}

// abandon emits an answer that will never be complete.
func (dr *draft) abandon(d *stream, reason string) {
	if dr.Key == "" {
		return
	}
	m := dr.emit(d)
	d.At.Set(m)
	m.Complete, m.FinishReason = msg.Complete, reason
	m.SetAttr(msg.FinishReasonOf, "run")
	m.SetAttr("incomplete", "true")
	m.SetAttr("truncated_bytes", conversation.NonZero(dr.Cut))
	*dr = draft{}
}

// finalAnswer decodes the final answer, which ends the turn.
func finalAnswer(d *stream) {
	t := &d.s.Turn
	if t.Run == "" {
		d.ensureTurn()
	}
	if text := d.text(); !text.IsZero() && (t.Shown || !t.isLastText(textKey("assistant", text))) {
		d.assistant(msg.Assistant, text)
	}
	if !d.endAnswered() {
		d.status(d.key())
	}
}

// endAnswered ends the turn with its answer, unless it has ended: an event and a snapshot both
// end it.
func (d *stream) endAnswered() bool {
	if dr := &d.s.Draft; dr.Key != "" { // the answer replaces it
		record.Hide(dr.add(d, msg.Status), "agent.partial_answer").ParentKey = d.s.Turn.Text
		*dr = draft{}
	}
	if !d.s.Turn.Open {
		return false
	}
	m := d.add(msg.Stop, "stop:"+d.s.Turn.Run)
	m.Hidden = true
	d.endTurn(m, "stop", false)
	return true
}

// refusals are the beginnings of the errors that refuse a prompt, in the languages of two versions.
// Nothing else shows that an error is one.
var refusals = []string{
	"Session not found", "Session is closed", "Message content cannot be empty", "Missing step_id in user response",
	"会话不存在", "会话已关闭", "消息内容不能为空",
}

// busy are those of an agent that works on another prompt.
var busy = []string{"Agent is currently running", "Agent 正在运行中"}

// agentError decodes the error that ends a run, or the refusal of a prompt: its turn ends, and that of a busy agent goes
// on. Without the prompt a refusal concerns no run: the agent may work on another one.
func agentError(d *stream) {
	text := d.text().String()
	begins := func(words string) bool { return strings.HasPrefix(text, words) }
	isBusy := slices.ContainsFunc(busy, begins)
	if !isBusy && !slices.ContainsFunc(refusals, begins) {
		d.ensureTurn()
		d.fail("agent_error", "error")
		return
	}
	refused, m := d.s.Turn, d.addError("refused")
	goesOn := isBusy && refused.Before != nil && refused.Before.Open
	if !goesOn && (refused.Before == nil || refused.Worked) {
		m.Run = ""
		return
	}
	d.endTurn(m, "refused", true)
	if goesOn {
		d.s.Turn, d.s.Calls.Open = *refused.Before, append(refused.Before.Left, d.s.Calls.Open...)
		d.s.Turn.Left = nil
	}
}

// fail ends the turn with an error.
func (d *stream) fail(class, reason string) {
	d.s.Draft.abandon(d, reason)
	d.endTurn(d.addError(class), reason, true)
}

// interrupted decodes the end of a turn by the user. It arrives twice: from the canceller and
// from the cancelled work.
func interrupted(d *stream) {
	d.s.Draft.abandon(d, "interrupted")
	if !d.s.Turn.Open {
		d.notice(d.text())
		return
	}
	m := d.add(msg.Stop, d.key())
	m.Content = d.text()
	d.endTurn(m, "interrupted", true)
}
