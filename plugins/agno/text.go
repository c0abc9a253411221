package agno

import (
	"bytes"
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// maxText limits the bytes of text that is not emitted yet, of all runs together.
const maxText = 64 << 20

// text is the text of a run. It arrives in pieces between the run's tool calls:
//
//	TeamRunStarted
//	TeamRunContent "On "
//	TeamRunContent "it."
//	TeamToolCallStarted c1      closes <run>/text
//	TeamToolCallCompleted c1
//	TeamRunContent "Here is "   begins <run>/c1/text
//	TeamRunContent "the …"
//	TeamRunCompleted            closes <run>/c1/text
//
// The key of a piece is its predecessor: the first call since the piece before, or the time
// at which a paused run continued. A reload has calls and texts in the same order, so it
// produces the same keys.
type text struct {
	Text     []byte `json:",omitempty"` // of the open piece
	Thinking []byte `json:",omitempty"`
	Draft    []byte `json:",omitempty"` // the main model's text for the model that words the output
	After    string `json:",omitempty"` // the predecessor of the piece; empty for the first
	Spilled  int    `json:",omitempty"` // parts of the piece that were emitted because they were too long to keep

	Emitted conversation.Written `json:",omitzero"` // in this leg of the run: the last event repeats it

	Thought bool `json:",omitempty"` // reasoning was emitted
	Mused   bool `json:",omitempty"` // reasoning before the first call was emitted
	Parted  bool `json:",omitempty"` // a piece of text after a call was emitted
	Whole   bool `json:",omitempty"` // the text before the first call was emitted
}

func (t *text) size() int { return len(t.Text) + len(t.Thinking) + len(t.Draft) }

// delta adds a delta. Content that is no string, or of a class, replaces the text.
func (t *text) delta(r *run, e *event) {
	var thinking msg.Text
	if e.reasoning.Is(jsonv.String) {
		thinking = e.reasoning.Text()
	}
	if e.content.Exists() && !plain(e) {
		r.s.Runs.text -= len(t.Text)
		t.Text = t.Text[:0]
	}
	t.add(r, asText(e.content), thinking, msg.Text{})
}

// plain reports whether the content is text that arrives in deltas.
func plain(e *event) bool {
	return e.content.Is(jsonv.String) && (!e.contentType.Is(jsonv.String) || e.contentType.Equal("str"))
}

// add adds to the open piece. Beyond maxText the longest text is spilled: what there is of it is emitted before its end.
func (t *text) add(r *run, text, thinking, draft msg.Text) {
	before, all := t.size(), &r.s.Runs
	t.Text, t.Thinking, t.Draft = text.Append(t.Text), thinking.Append(t.Thinking), draft.Append(t.Draft)
	if all.text += t.size() - before; all.text <= maxText {
		return
	}
	for _, o := range all.Open {
		if o.Text.size() > r.Text.size() {
			r = o
		}
	}
	long := &r.Text
	n, after := long.Spilled, long.After
	long.close(r, r.Last, msg.Complete)
	long.Spilled, long.After = n+1, after
}

// follow sets the predecessor of the next piece.
func (t *text) follow(id string) {
	if t.After == "" {
		t.After = id
	}
}

// close emits the open piece, and begins the next.
func (t *text) close(r *run, at conversation.Time, c msg.Completeness) *msg.Message {
	return t.emit(r, at, c, msg.Plain(string(t.Text)))
}

// emit emits the open piece with that text.
func (t *text) emit(r *run, at conversation.Time, c msg.Completeness, text msg.Text) (m *msg.Message) {
	if r.Joined && t.After == "" { // its beginning is missing
		c = msg.Partial
	}
	part := func(k msg.Kind, suffix string, content msg.Text) *msg.Message {
		m := r.answered(k, r.key(t.part(r, suffix)), at)
		m.Content, m.Complete = content, min(c, m.Complete)
		return m
	}
	if len(t.Draft) > 0 {
		record.Hide(part(msg.Assistant, "draft", msg.Plain(string(t.Draft))), "draft")
	}
	first := t.After == "" && !r.Joined && t.Spilled == 0
	if len(t.Thinking) > 0 {
		part(msg.Reasoning, "thinking", msg.Plain(string(t.Thinking)))
		t.Thought, t.Mused = true, t.Mused || first
	}
	if !text.IsZero() {
		m = part(msg.Assistant, "text", text)
		t.Emitted.Add(chars(text))
		t.Whole, t.Parted = t.Whole || first, t.Parted || !first
	}
	if m != nil || len(t.Thinking)+len(t.Draft) > 0 {
		t.After, t.Spilled = "", 0
	}
	r.s.Runs.text -= t.size()
	t.Text, t.Thinking, t.Draft = nil, nil, nil
	return m
}

// part returns the key of a part of the open piece within its run.
func (t *text) part(r *run, suffix string) string {
	switch {
	case t.After != "":
		suffix = t.After + "/" + suffix
	case r.Joined: // its ordinal is unknown
		suffix = "joined/" + suffix
	}
	if t.Spilled > 0 {
		suffix += "/" + strconv.Itoa(t.Spilled)
	}
	return suffix
}

// emitOpen emits the open text and tokens of a run, and changes nothing.
func (r *run) emitOpen() {
	c, size := *r, r.s.Runs.text
	c.Text.close(&c, r.Last, msg.Partial)
	c.Usage.flush(&c, msg.Partial)
	r.s.Runs.text = size
}

// last returns the text of the last piece. The run's last event has it at its end, and
// wins where both differ: deltas may have been lost, repeated, or withdrawn when another
// model took over.
func (t *text) last(r *run, e *event) msg.Text {
	c, streamed := e.content, msg.Plain(string(t.Text))
	if !c.Exists() {
		return streamed
	}
	whole := chars(peekText(c))
	rest, follows := t.Emitted.Rest(whole)
	switch {
	case r.Joined && t.After != "": // the whole text is there twice, unless the pieces before are all of it
		if streamed.IsZero() && !t.Emitted.EndsWith(whole) {
			return asText(c)
		}
	case !plain(e):
		return asText(c)
	case t.Emitted.Len == 0 && r.Leg != "" && len(t.Text) > 0 && bytes.HasSuffix(whole, t.Text):
		c.MarkRead() // all legs in one
	case len(rest) > 0:
		c.MarkRead()
		return msg.Plain(string(rest))
	case len(t.Text) == 0 && !follows:
		return c.Text()
	case len(t.Text) == 0:
		c.MarkRead()
	}
	return streamed
}

// markSteps marks the steps of a thought, when they were emitted one by one.
func (t *text) markSteps(e *event) {
	if t.Thought {
		e.v.Skip("reasoning_steps")
		e.content.Skip("reasoning_steps")
	}
}

// sameText reports whether v is that text.
func sameText(text []byte, v jsonv.Value) bool { return string(text) == peekText(v).String() }

// reasoningStep emits a step of reasoning:
//
//	{"event":"ReasoningStep","content":{"title":"…","reasoning":"…","action":"…","result":"…","confidence":0.9},
//	 "content_type":"ReasoningStep","reasoning_content":"all steps so far"}
//
// The run's last event repeats the text of all steps so far.
func (t *text) reasoningStep(r *run, e *event) {
	var lines conversation.Texts
	for _, p := range [...]struct{ field, label string }{
		{"title", ""}, {"reasoning", ""}, {"action", "Action: "}, {"result", "Result: "},
	} {
		if t := e.content.Get(p.field).Text(); !t.IsZero() {
			lines.Add(msg.Plain(p.label + t.String()))
		}
	}
	text := lines.Joined()
	if text.IsZero() {
		text = asText(e.v.First("content", "reasoning_content"))
	}
	m := r.answered(msg.Reasoning, r.key("step/"+e.second()+"/"+msg.HashKey(text.String())[:16]), e.at)
	m.Content = text
	m.SetAttr("type", "ReasoningStep")
	conversation.AttrsAs(m, e.content, jsonv.Value.Digits, "confidence")
	conversation.AttrsAs(m, e.content, ident.OrNumber, "next_action")
	t.Thought = true
	e.reasoning.MarkRead() // all steps so far
}
