package assemble

import (
	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// exchange is the request that began a run, and the pace of its response.
type exchange struct {
	Stream uint64        `json:"stream"`
	At     int64         `json:"at"` // of the request; Unix ns
	Remote *msg.SpanLink `json:"remote,omitempty"`
	Pace   msg.Pace      `json:"pace,omitzero"`
}

// SetResponse records the response that a stream is: before its first message, the sender of
// the request, and at its end, the pace. at is the time of the
// request, and s is not kept.
//
// Of all requests that may have begun a run and whose streams have it at the top level, the
// earliest counts, in any order of their streams. The run gets a link to the
// sender of the request and, unless many runs share one connection, the pace. A response
// that ends after its run changes the run's span, which is emitted again under a higher
// version.
func (a *Assembler) SetResponse(stream uint64, at int64, s *msg.Stream) error {
	if !s.Starts() {
		return nil
	}
	x := exchange{Stream: stream, At: at}
	if l, ok := s.Remote(); ok {
		x.Remote = &l
	}
	if !s.Socket() {
		x.Pace = s.Pace
	}
	a.exchanges[stream] = x
	if s.Session == "" || x.Pace.Start == 0 {
		return nil
	}
	g, err := a.group(link.Key{Tenant: s.Tenant, Format: s.Format, Session: s.Session})
	if err != nil {
		return err
	}
	for _, r := range g.Runs {
		if r.Exchange != nil && r.Exchange.Stream == stream && r.Exchange.Pace != x.Pace {
			r.Exchange.Pace, g.dirty = x.Pace, true
			r.touch()
		}
	}
	return nil
}

// Chat is the id of the span of a response of the session.
func (a *Assembler) Chat(session RunRef, response string) (msg.SpanID, error) {
	g, err := a.group(session.key())
	if err != nil {
		return msg.SpanID{}, err
	}
	return g.ids.of(msg.SpanChat, response), nil
}

// ForgetResponse drops the response of a stream that is read no more.
func (a *Assembler) ForgetResponse(stream uint64) { delete(a.exchanges, stream) }

// setExchange records which request began the message's run.
func (a *Assembler) setExchange(g *group, m *msg.Message, stream uint64) {
	if m.Run == "" || m.ParentRun != "" || m.ParentCall != "" {
		return
	}
	x, ok := a.exchanges[stream]
	if !ok {
		return
	}
	r := g.Runs[m.Run]
	if r == nil || r.Parent != "" || r.Exchange != nil && (r.Exchange.At < x.At || r.Exchange.Stream == stream) {
		return
	}
	kept := x // on the heap, where those that are only compared are not
	r.Exchange = &kept
}
