package agno

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// said is what a run has said since its last tool call. A run's text comes in
// such pieces:
//
//	TeamRunStarted
//	TeamRunContent "On "
//	TeamRunContent "it."
//	TeamToolCallStarted c1      closes <run>/text
//	TeamToolCallCompleted c1
//	TeamRunContent "Here is "   begins <run>/c1/text
//	TeamRunContent "what …"
//	TeamRunCompleted            closes <run>/c1/text
//
// A piece is named by what came before it: the first call since the piece before,
// or the time at which a paused run went on. A reload has calls and texts in the
// same order, so it finds the same names.
type said struct {
	Text     []byte `json:",omitempty"`
	Thinking []byte `json:",omitempty"`
	Draft    []byte `json:",omitempty"` // what the main model said to the one that words the output
	After    string `json:",omitempty"` // what the piece comes after; empty for the first
	Spilled  int    `json:",omitempty"` // parts of the piece that were given because they were too long to keep

	// Len and Hash are of the text of all pieces that were given in this leg of the
	// run: the last event repeats it.
	Len  int
	Hash hash
}

// say adds a delta. Content that is no string, or of a class, is whole.
func (s *stream) say(r *run, e *event) {
	p := &r.Said
	before := p.size()
	if e.reasoning.Is(jsonv.String) {
		p.Thinking = e.reasoning.Text().Append(p.Thinking)
	}
	switch c := e.content; {
	case !c.Exists():
	case c.Is(jsonv.String) && plain(e.contentType):
		p.Text = c.Text().Append(p.Text)
	default:
		p.Text = written(c).Append(p.Text[:0])
	}
	s.grown(r, before)
}

// hear adds what a stored message says.
func (s *stream) hear(r *run, text, thinking msg.Text) {
	before := r.Said.size()
	r.Said.Text, r.Said.Thinking = text.Append(r.Said.Text), thinking.Append(r.Said.Thinking)
	s.grown(r, before)
}

func (p *said) size() int { return len(p.Text) + len(p.Thinking) + len(p.Draft) }

// grown accounts for what a run says.
func (s *stream) grown(r *run, before int) {
	s.text += r.Said.size() - before
	if s.text > maxText {
		for _, o := range s.runs {
			if d := cmp.Compare(o.Said.size(), r.Said.size()); d > 0 || d == 0 && o.Seq < r.Seq {
				r = o // that said most
			}
		}
		s.spill(r)
	}
}

// plain reports whether content of that type is text that comes in deltas.
func plain(contentType jsonv.Value) bool {
	return !contentType.Is(jsonv.String) || contentType.Equal("str")
}

// draft adds to the text that another model puts into its final words.
func (s *stream) draft(r *run, e *event) {
	if e.content.Exists() {
		before := r.Said.size()
		r.Said.Draft = written(e.content).Append(r.Said.Draft)
		s.grown(r, before)
	}
}

// part names a part of the piece.
func (r *run) part(what string) string {
	switch {
	case r.Said.After != "":
		what = r.Said.After + "/" + what
	case r.Joined: // which piece it is was not heard
		what = "joined/" + what
	}
	if r.Said.Spilled > 0 {
		what += "/" + strconv.Itoa(r.Said.Spilled)
	}
	return what
}

// after notes that what is said next comes after the given thing.
func (r *run) after(id string) {
	if r.Said.After == "" {
		r.Said.After = id
	}
}

// close gives the piece that was being said, and begins the next. call is the one
// that ends it, if one does.
func (s *stream) close(r *run, call string, at stamp, c msg.Completeness) {
	if s.book != nil {
		s.fill(r, call)
	}
	s.give(r, at, c, msg.Plain(string(r.Said.Text)))
}

// give gives the piece with that text.
func (s *stream) give(r *run, at stamp, c msg.Completeness, text msg.Text) *msg.Message {
	p := &r.Said
	if r.Joined && p.After == "" { // its beginning was not heard
		c = msg.Partial
	}
	if len(p.Draft) > 0 {
		m := s.words(r, msg.Assistant, "draft", at, c)
		m.Content, m.Hidden = msg.Plain(string(p.Draft)), true
		m.SetAttr("type", "draft")
	}
	if len(p.Thinking) > 0 {
		s.words(r, msg.Reasoning, "thinking", at, c).Content = msg.Plain(string(p.Thinking))
		r.Thought = true
	}
	var m *msg.Message
	if !text.IsZero() {
		m = s.words(r, msg.Assistant, "text", at, c)
		m.Content = text
		s.buf = text.Append(s.buf[:0])
		p.Len, p.Hash = p.Len+len(s.buf), p.Hash.add(s.buf)
	}
	if m != nil || len(p.Thinking)+len(p.Draft) > 0 {
		p.After, p.Spilled = "", 0
	}
	s.text -= p.size()
	p.Text, p.Thinking, p.Draft = reuse(p.Text), reuse(p.Thinking), reuse(p.Draft)
	return m
}

// reuse empties a buffer, and drops one that is larger than most pieces.
func reuse(b []byte) []byte {
	if cap(b) > 16<<10 {
		return nil
	}
	return b[:0]
}

func (s *stream) words(r *run, k msg.Kind, what string, at stamp, c msg.Completeness) *msg.Message {
	part := r.part(what)
	switch {
	case part == "text":
		r.Whole = true
	case part == "thinking":
		r.Mused = true
	case k == msg.Assistant && what == "text":
		r.Parted = true
	}
	m := s.add(r, k, part, at)
	m.Role = msg.RoleAssistant
	m.Model, m.Provider, m.ResponseID = r.Model, r.Provider, r.Reply
	m.Complete = min(c, m.Complete)
	return m
}

// spill gives what a run has said so far, because there is no more room to wait
// for the rest.
func (s *stream) spill(r *run) {
	n, after := r.Said.Spilled, r.Said.After
	s.give(r, r.Last, msg.Complete, msg.Plain(string(r.Said.Text)))
	r.Said = said{After: after, Spilled: n + 1, Len: r.Said.Len, Hash: r.Said.Hash}
}

// unfinished gives what is open of a run, and changes nothing.
func (s *stream) unfinished(r *run) {
	c := *r
	size := s.text
	s.give(&c, r.Last, msg.Partial, msg.Plain(string(r.Said.Text)))
	s.text = size
	if c.Cost != nil {
		s.tokens(&c, msg.Partial)
	}
}

// is reports whether that is what was said.
func is(said []byte, v jsonv.Value) bool { return string(said) == glimpse(v).String() }

// missed returns the text of the last piece of a run that was joined midway. When none of
// it was heard it is all that the run said, unless that is what was heard before.
func (s *stream) missed(r *run, content jsonv.Value, heard msg.Text) msg.Text {
	p := &r.Said
	if !heard.IsZero() {
		return heard
	}
	s.buf = glimpse(content).Append(s.buf[:0])
	if n := len(s.buf) - p.Len; p.Len > 0 && n >= 0 && noText.add(s.buf[n:]) == p.Hash {
		return heard
	}
	return written(content)
}

// final returns the text of the last piece. The run's last event has it at its
// end, and is right where both differ: deltas may have been lost, repeated, or
// withdrawn when another model took over.
func (s *stream) final(r *run, e *event) msg.Text {
	p := &r.Said
	heard := msg.Plain(string(p.Text))
	switch c := e.content; {
	case !c.Exists():
		return heard
	case r.Joined && p.After != "":
		return s.missed(r, c, heard)
	case !c.Is(jsonv.String) || !plain(e.contentType):
		return written(c)
	case p.Len == 0:
		if r.Leg != "" && len(p.Text) > 0 && strings.HasSuffix(c.PeekStr(), string(p.Text)) {
			c.MarkRead()
			return heard // all legs in one
		}
		if t := c.Text(); !t.IsZero() {
			return t
		}
	default:
		s.buf = glimpse(c).Append(s.buf[:0])
		if len(s.buf) > p.Len && noText.add(s.buf[:p.Len]) == p.Hash {
			c.MarkRead()
			return msg.Plain(string(s.buf[p.Len:]))
		}
		if len(p.Text) == 0 {
			c.MarkRead()
			if noText.add(s.buf) != p.Hash {
				return c.Text()
			}
		}
	}
	return heard
}
