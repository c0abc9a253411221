package pipeline

import (
	"strings"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/msg"
)

// mark is what a listener knew of a stream when it had come to a position.
type mark struct {
	pos   int64
	facts source.ResponseInfo
}

// Mark implements source.Stream.
func (s *stream) Mark(pos int64, state []byte) {
	facts, ok := source.ParseResponseInfo(state)
	if !ok {
		return // the listener's own memory
	}
	s.feed.p.tell(func() {
		c := &s.feed.p.core
		if c.streams[s.id] != s {
			return
		}
		s.marks = append(s.marks, mark{pos, facts})
		c.reached(s)
	})
}

// reached takes the marks up to which everything is accounted for: then the messages
// are there that they are about.
func (c *core) reached(s *stream) {
	for len(s.marks) > 0 && s.marks[0].pos <= s.record.Pos {
		m := s.marks[0]
		s.marks = s.marks[1:]
		c.heard(s, &m.facts)
	}
}

// heard takes what is known of a response: who asked for it, and, once it has ended,
// how it came.
func (c *core) heard(s *stream, f *source.ResponseInfo) {
	rec := &s.record
	row := msg.Stream{
		Tenant: s.feed.tenant, Source: rec.Source, Format: s.format.name, Stream: rec.Key, Origin: rec.Origin,
		Method: f.Method, Status: f.Status, Session: rec.Session, Run: rec.Run, Chat: s.chat(), RemoteState: f.Tracestate,
	}
	row.RemoteTrace, row.RemoteSpan = f.Remote()
	if f.Timing != nil {
		row.Pace = *f.Timing
	}
	if err := c.assembler.SetResponse(s.name, rec.Anchor, &row); err != nil {
		c.p.log.Error("what was heard of a response has no place", "origin", rec.Origin, "error", err)
	}
	if f.Timing == nil {
		return
	}
	row.Ver = uint64(max(row.Pace.End(), 0))
	if s.last.Pace.Start != row.Pace.Start {
		c.measure(&row)
	}
	s.last = row
	c.give(&row)
}

// heardOut gives the last response of a stream again if its decoder has told only at
// the end which run it was.
func (c *core) heardOut(s *stream) {
	row := s.last
	if row.Ver == 0 || row.Session == s.record.Session && row.Run == s.record.Run && row.Chat == s.chat() {
		return
	}
	row.Session, row.Run, row.Chat = s.record.Session, s.record.Run, s.chat()
	row.Ver++
	if err := c.assembler.SetResponse(s.name, s.record.Anchor, &row); err != nil {
		c.p.log.Error("what was heard of a response has no place", "origin", row.Origin, "error", err)
	}
	c.give(&row)
}

func (c *core) give(row *msg.Stream) {
	c.epoch.add()
	c.epoch.batch.Streams = append(c.epoch.batch.Streams, *row)
}

// measure counts a response.
func (c *core) measure(row *msg.Stream) {
	m, p := c.p.metrics, &row.Pace
	seconds := func(ns int64) float64 { return float64(ns) / 1e9 }
	m.Responses.WithLabelValues(row.Source, row.Format).Inc()
	if p.Buffered {
		m.Buffered.WithLabelValues(row.Source, row.Format).Inc()
	}
	m.FirstByte.WithLabelValues(row.Source, row.Format).Observe(seconds(p.FirstByte))
	if p.Events > 0 {
		m.FirstEvent.WithLabelValues(row.Source, row.Format).Observe(seconds(p.FirstEvent))
	}
	if p.Chunks > 1 {
		m.Gap.WithLabelValues(row.Source, row.Format).Observe(seconds(p.GapP95))
		m.Stall.WithLabelValues(row.Source, row.Format).Observe(seconds(p.LongestStall))
	}
}

// chat is the span of the response that the stream is, if it is one.
func (s *stream) chat() msg.SpanID {
	rec := &s.record
	if rec.Response == "" || rec.Several {
		return msg.SpanID{}
	}
	return msg.NewSpanID(s.feed.tenant, s.format.name, rec.Session, msg.SpanChat, rec.Response)
}

// speaksOf notes the session and the top-level run that a stream speaks of first, and
// the response.
func (s *stream) speaksOf(m *msg.Message) {
	rec := &s.record
	if rec.Session == "" {
		rec.Session = strings.Clone(m.Session)
	}
	if rec.Run == "" && m.Run != "" && m.ParentRun == "" && m.ParentCall == "" && m.Session == rec.Session {
		rec.Run = strings.Clone(m.Run)
	}
	switch {
	case m.ResponseID == "" || m.ResponseID == rec.Response:
	case rec.Response == "" && m.Session == rec.Session:
		rec.Response = strings.Clone(m.ResponseID)
	default:
		rec.Several = true
	}
}
