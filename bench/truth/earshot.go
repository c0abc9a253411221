package truth

import (
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// Stream is a stream of a conversation.
type Stream struct {
	Origin string
	Live   bool // read from a connection
	Frames []frame.Frame
}

// Rehearse observes a conversation with a decoder and the assembler in this process, at the times of its frames.
func Rehearse(f decoder.Factory, streams []Stream) (*Conversation, error) {
	var heard []app.Heard
	now := Began
	for i, s := range streams {
		for _, fr := range s.Frames {
			if now = now.Add(time.Millisecond); fr.At != 0 {
				now = time.Unix(0, fr.At)
			}
			heard = append(heard, app.Heard{Stream: i, Origin: s.Origin, At: now, Live: s.Live, Frame: fr})
		}
	}
	last := slices.MaxFunc(heard, func(a, b app.Heard) int { return a.At.Compare(b.At) }).At
	type key struct {
		trace msg.TraceID
		span  msg.SpanID
	}
	spans, messages := map[key]spanRow{}, map[msg.ID]messageRow{}
	var order []msg.ID
	err := app.Rehearse(f, heard, last.Add(2*time.Hour), app.Rehearsed{
		Span: func(s *msg.Span) {
			k := key{s.TraceID, s.ID}
			if s.Tombstone {
				if spans[k].Start == s.Start {
					delete(spans, k)
				}
				return
			}
			spans[k] = spanRow{Trace: s.TraceID.String(), ID: s.ID.String(), Parent: s.Parent.String(), Kind: s.Kind.String(), Tool: s.Tool.Name, Call: s.Tool.ID(),
				Outcome: s.Outcome.String(), Start: s.Start, Duration: max(s.End-s.Start, 0), Open: s.End == 0}
		},
		Message: func(m *msg.Message) {
			old, known := messages[m.Host.ID]
			if m.Host.Tombstone || known && m.Complete < old.complete {
				return
			}
			if !known {
				order = append(order, m.Host.ID)
			}
			messages[m.Host.ID] = messageRow{Trace: m.Host.TraceID.String(), Span: m.Host.SpanID.String(), Kind: m.Kind.String(), Content: m.Content.String(), complete: m.Complete,
				Input: m.Usage.Input, Output: m.Usage.Output, CacheRead: m.Usage.CacheRead, CacheWrite: m.Usage.CacheWrite, Reasoning: m.Usage.Reasoning}
		},
	})
	if err != nil {
		return nil, err
	}
	var seen observation
	for _, s := range spans {
		seen.spans = append(seen.spans, s)
	}
	for _, id := range order {
		seen.messages = append(seen.messages, messages[id])
	}
	return seen.conversation(), nil
}

// spanRow and messageRow are the rows of a conversation in the tables.
type spanRow struct {
	Trace, ID, Parent, Kind, Tool, Call, Outcome string
	Start, Duration                              int64 `json:",string"`
	Open                                         bool
}

type messageRow struct {
	Trace, Span, Kind, Content                      string
	Input, Output, CacheRead, CacheWrite, Reasoning uint64 `json:",string"`
	complete                                        msg.Completeness
}

type observation struct {
	spans    []spanRow
	messages []messageRow
}

// conversation is the neutral form of rows.
func (o *observation) conversation() *Conversation {
	c := &Conversation{Calls: []Call{}, Links: []Link{}, Texts: []Text{}, Tokens: &Tokens{}}
	spans := make(map[[2]string]*spanRow, len(o.spans))
	for i := range o.spans {
		spans[[2]string{o.spans[i].Trace, o.spans[i].ID}] = &o.spans[i]
	}
	above := func(s *spanRow) *spanRow { // the nearest call that handed on this work
		for n := 0; s != nil && n < 100; n++ {
			if s = spans[[2]string{s.Trace, s.Parent}]; s != nil && s.isCall() {
				return s
			}
		}
		return nil
	}
	for i := range o.spans {
		s := &o.spans[i]
		if !s.isCall() {
			continue
		}
		call := Call{ID: s.Call, Name: s.Tool, Failed: s.Outcome == "error", Start: time.Unix(0, s.Start).UTC()}
		if !s.Open {
			call.End = call.Start.Add(time.Duration(s.Duration))
		}
		c.Calls = append(c.Calls, call)
		if up := above(s); up != nil {
			c.Links = append(c.Links, Link{up.Call, call.ID})
		}
	}
	for _, m := range o.messages {
		c.Tokens.add(Tokens{m.Input, m.Output, m.CacheRead, m.CacheWrite, m.Reasoning})
		role := map[string]string{"user": "user", "assistant": "assistant", "tool_result": "tool", "delegation_result": "tool"}[m.Kind]
		if role == "" || m.Content == "" {
			continue
		}
		c.Texts = append(c.Texts, Text{role, m.Content})
		if up := above(spans[[2]string{m.Trace, m.Span}]); up != nil && role == "assistant" {
			c.Links = append(c.Links, Link{up.Call, "text:" + m.Content})
		}
	}
	return c
}

func (s *spanRow) isCall() bool { return s.Kind == "tool" || s.Kind == "delegation" }
