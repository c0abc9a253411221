package agno

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// runText is the text of a run since its last tool call. The text of a run arrives in such
// pieces:
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
type runText struct {
	Text     []byte `json:",omitempty"`
	Thinking []byte `json:",omitempty"`
	Draft    []byte `json:",omitempty"` // the main model's text for the model that words the output
	After    string `json:",omitempty"` // the predecessor of the piece; empty for the first
	Spilled  int    `json:",omitempty"` // parts of the piece that were emitted because they were too long to keep

	// Len and Hash are of the text of all pieces that were emitted in this leg of the run: the
	// last event repeats it.
	Len  int
	Hash hash
}

// addDelta adds a delta. Content that is no string, or of a class, replaces the text.
func (s *stream) addDelta(r *run, e *event) {
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
		p.Text = asText(c).Append(p.Text[:0])
	}
	s.limitText(r, before)
}

// appendText adds the text of a stored message.
func (s *stream) appendText(r *run, text, thinking msg.Text) {
	before := r.Said.size()
	r.Said.Text, r.Said.Thinking = text.Append(r.Said.Text), thinking.Append(r.Said.Thinking)
	s.limitText(r, before)
}

func (p *runText) size() int { return len(p.Text) + len(p.Thinking) + len(p.Draft) }

// limitText accounts for the growth of a run's text, and spills the longest text beyond
// maxText.
func (s *stream) limitText(r *run, before int) {
	s.text += r.Said.size() - before
	if s.text > maxText {
		for _, o := range s.runs {
			if d := cmp.Compare(o.Said.size(), r.Said.size()); d > 0 || d == 0 && o.Seq < r.Seq {
				r = o // the longest
			}
		}
		s.spill(r)
	}
}

// plain reports whether content of that type is text that arrives in deltas.
func plain(contentType jsonv.Value) bool {
	return !contentType.Is(jsonv.String) || contentType.Equal("str")
}

// addDraft adds to the text that another model rewords.
func (s *stream) addDraft(r *run, e *event) {
	if e.content.Exists() {
		before := r.Said.size()
		r.Said.Draft = asText(e.content).Append(r.Said.Draft)
		s.limitText(r, before)
	}
}

// partKey returns the key of a part of the piece within its run.
func (r *run) partKey(suffix string) string {
	switch {
	case r.Said.After != "":
		suffix = r.Said.After + "/" + suffix
	case r.Joined: // its ordinal is unknown
		suffix = "joined/" + suffix
	}
	if r.Said.Spilled > 0 {
		suffix += "/" + strconv.Itoa(r.Said.Spilled)
	}
	return suffix
}

// setAfter sets the predecessor of the next piece.
func (r *run) setAfter(id string) {
	if r.Said.After == "" {
		r.Said.After = id
	}
}

// closePiece emits the open piece, and begins the next. call is the one that ends it, if one
// does.
func (s *stream) closePiece(r *run, call string, at stamp, c msg.Completeness) {
	if s.index != nil {
		s.fillText(r, call)
	}
	s.emitPiece(r, at, c, msg.Plain(string(r.Said.Text)))
}

// emitPiece emits the open piece with that text.
func (s *stream) emitPiece(r *run, at stamp, c msg.Completeness, text msg.Text) *msg.Message {
	p := &r.Said
	if r.Joined && p.After == "" { // its beginning is missing
		c = msg.Partial
	}
	if len(p.Draft) > 0 {
		m := s.addPart(r, msg.Assistant, "draft", at, c)
		m.Content, m.Hidden = msg.Plain(string(p.Draft)), true
		m.SetAttr("type", "draft")
	}
	if len(p.Thinking) > 0 {
		s.addPart(r, msg.Reasoning, "thinking", at, c).Content = msg.Plain(string(p.Thinking))
		r.Thought = true
	}
	var m *msg.Message
	if !text.IsZero() {
		m = s.addPart(r, msg.Assistant, "text", at, c)
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

func (s *stream) addPart(r *run, k msg.Kind, suffix string, at stamp, c msg.Completeness) *msg.Message {
	part := r.partKey(suffix)
	switch {
	case part == "text":
		r.Whole = true
	case part == "thinking":
		r.Mused = true
	case k == msg.Assistant && suffix == "text":
		r.Parted = true
	}
	m := s.addMessage(r, k, part, at)
	m.Role = msg.RoleAssistant
	m.Model, m.Provider, m.ResponseID = r.Model, r.Provider, r.Reply
	m.Complete = min(c, m.Complete)
	return m
}

// spill emits the text of a run so far, because it reached the limit before its end.
func (s *stream) spill(r *run) {
	n, after := r.Said.Spilled, r.Said.After
	s.emitPiece(r, r.Last, msg.Complete, msg.Plain(string(r.Said.Text)))
	r.Said = runText{After: after, Spilled: n + 1, Len: r.Said.Len, Hash: r.Said.Hash}
}

// emitOpen emits the open text and tokens of a run, and changes nothing.
func (s *stream) emitOpen(r *run) {
	c := *r
	size := s.text
	s.emitPiece(&c, r.Last, msg.Partial, msg.Plain(string(r.Said.Text)))
	s.text = size
	if c.Cost != nil {
		s.emitUsage(&c, msg.Partial)
	}
}

// sameText reports whether v is that text.
func sameText(text []byte, v jsonv.Value) bool { return string(text) == peekText(v).String() }

// joinedText returns the text of the last piece of a run that was joined midway. Without
// deltas of that piece it is the whole text of the run, unless that equals the pieces before.
func (s *stream) joinedText(r *run, content jsonv.Value, streamed msg.Text) msg.Text {
	p := &r.Said
	if !streamed.IsZero() {
		return streamed
	}
	s.buf = peekText(content).Append(s.buf[:0])
	if n := len(s.buf) - p.Len; p.Len > 0 && n >= 0 && noText.add(s.buf[n:]) == p.Hash {
		return streamed
	}
	return asText(content)
}

// finalText returns the text of the last piece. The run's last event has it at its end, and
// wins where both differ: deltas may have been lost, repeated, or withdrawn when another
// model took over.
func (s *stream) finalText(r *run, e *event) msg.Text {
	p := &r.Said
	streamed := msg.Plain(string(p.Text))
	switch c := e.content; {
	case !c.Exists():
		return streamed
	case r.Joined && p.After != "":
		return s.joinedText(r, c, streamed)
	case !c.Is(jsonv.String) || !plain(e.contentType):
		return asText(c)
	case p.Len == 0:
		if r.Leg != "" && len(p.Text) > 0 && strings.HasSuffix(c.PeekStr(), string(p.Text)) {
			c.MarkRead()
			return streamed // the event has all legs in one
		}
		if t := c.Text(); !t.IsZero() {
			return t
		}
	default:
		s.buf = peekText(c).Append(s.buf[:0])
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
	return streamed
}
