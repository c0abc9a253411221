package truth

import (
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

func sprint(format string, what any) string { return fmt.Sprintf(format, what) }

// Stream is a stream of a conversation.
type Stream struct {
	Origin string
	Live   bool // it was heard on a connection
	Frames []frame.Frame
}

// Rehearse observes a conversation with a decoder and the assembler in this process, at the times of its frames.
func Rehearse(f decoder.Factory, streams []Stream) (*Conversation, error) {
	var heard []app.Heard
	now := Began
	for i, s := range streams {
		for _, fr := range s.Frames {
			if fr.At != 0 {
				now = time.Unix(0, fr.At)
			}
			heard = append(heard, app.Heard{Stream: i, Origin: s.Origin, At: now, Live: s.Live, Frame: fr})
			if fr.At == 0 {
				now = now.Add(time.Millisecond)
			}
		}
	}
	spans, messages := map[spanKey]*msg.Span{}, map[msg.ID]*msg.Message{}
	var order []msg.ID
	last := now
	for _, h := range heard {
		if h.At.After(last) {
			last = h.At
		}
	}
	err := app.Rehearse(f, heard, last.Add(2*time.Hour), app.Rehearsed{
		Span: func(s *msg.Span) {
			if s.Amends {
				return
			}
			key := spanKey{s.TraceID, s.ID}
			if old := spans[key]; s.Tombstone {
				if old != nil && old.Start == s.Start {
					delete(spans, key)
				}
				return
			}
			copied := *s
			spans[key] = &copied
		},
		Message: func(m *msg.Message) {
			old := messages[m.Host.ID]
			switch {
			case m.Host.Tombstone:
				return
			case old == nil:
				order = append(order, m.Host.ID)
			case m.Complete < old.Complete:
				return
			}
			copied := *m
			copied.Content = msg.Plain(m.Content.String())
			messages[m.Host.ID] = &copied
		},
	})
	if err != nil {
		return nil, err
	}
	return observed(spans, messages, order), nil
}

type spanKey struct {
	trace msg.TraceID
	span  msg.SpanID
}

func observed(spans map[spanKey]*msg.Span, messages map[msg.ID]*msg.Message, order []msg.ID) *Conversation {
	c := &Conversation{Calls: []Call{}, Links: []Link{}, Texts: []Text{}, Tokens: &Tokens{}}
	above := func(s *msg.Span) *msg.Span { // the nearest call that handed on this work
		for n := 0; s != nil && n < 100; n++ {
			if s = spans[spanKey{s.TraceID, s.Parent}]; s != nil && (s.Kind == msg.SpanDelegation || s.Kind == msg.SpanTool) {
				return s
			}
		}
		return nil
	}
	for _, s := range spans {
		if s.Kind != msg.SpanTool && s.Kind != msg.SpanDelegation {
			continue
		}
		call := Call{ID: s.Tool.ID(), Name: s.Tool.Name, Failed: s.Outcome == msg.OutcomeError, Start: time.Unix(0, s.Start).UTC()}
		if s.End != 0 {
			call.End = time.Unix(0, s.End).UTC()
		}
		c.Calls = append(c.Calls, call)
		if up := above(s); up != nil {
			c.Links = append(c.Links, Link{up.Tool.ID(), call.ID})
		}
	}
	for _, id := range order {
		m := messages[id]
		c.Tokens.add(Tokens{m.Usage.Input, m.Usage.Output, m.Usage.CacheRead, m.Usage.CacheWrite, m.Usage.Reasoning})
		role := ""
		switch m.Kind {
		case msg.User:
			role = "user"
		case msg.Assistant:
			role = "assistant"
		case msg.ToolResult, msg.DelegationResult:
			role = "tool"
		}
		text := m.Content.String()
		if role == "" || text == "" {
			continue
		}
		c.Texts = append(c.Texts, Text{role, text})
		if role == "assistant" {
			if up := above(spans[spanKey{m.Host.TraceID, m.Host.SpanID}]); up != nil {
				c.Links = append(c.Links, Link{up.Tool.ID(), "text:" + text})
			}
		}
	}
	return c.sorted()
}
