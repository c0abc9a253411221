package inspect

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Hop is the time of a call that another program answered: until its request was on the wire, between the
// programs where both were recorded, in the server (else with the transport) until
// the answer was, and until the caller had it. A part is zero where it is not known.
type Hop struct {
	Session   string        `json:"session_id"` // of the recording
	Agent     string        `json:"agent,omitempty"`
	Link      string        `json:"link"`
	Queue     time.Duration `json:"queue_ns,omitempty"`
	Transport time.Duration `json:"transport_ns,omitempty"`
	Server    time.Duration `json:"server_ns,omitempty"`
	Return    time.Duration `json:"return_ns,omitempty"`
}

// hops reads the hops below the calls of a session, by the span of the call.
func hops(ctx context.Context, q Querier, session string) (map[string]*Hop, error) {
	out := make(map[string]*Hop)
	err := q.Each(ctx, `
		SELECT lower(hex(parent_span_id)), session_id, toString(agent_name), toString(link_method),
			attributes['earshot.hop.queue'], attributes['earshot.hop.transport'], attributes['earshot.hop.server'], attributes['earshot.hop.return']
		FROM spans FINAL
		WHERE lower(hex(trace_id)) IN (SELECT lower(hex(trace_id)) FROM spans WHERE session_id = {id:String})
			AND session_id != {id:String} AND mapContains(attributes, 'earshot.hop.server')
		ORDER BY ts`, map[string]string{"id": session}, func(v []any) error {
		r := reader{values: v}
		call := r.str()
		h := &Hop{Session: r.str(), Agent: r.str(), Link: r.str()}
		for _, part := range [...]*time.Duration{&h.Queue, &h.Transport, &h.Server, &h.Return} {
			if s, err := strconv.ParseFloat(r.str(), 64); err == nil {
				*part = time.Duration(s * float64(time.Second))
			}
		}
		if r.err == nil && (out[call] == nil || out[call].Transport == 0 && h.Transport > 0) { // of two recordings, the one that knows the transport
			out[call] = h
		}
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("hops: %w", err)
	}
	return out, nil
}

// text is the hop as one line.
func (h *Hop) text() string {
	s := "server and transport " + Span(h.Server)
	if h.Transport > 0 {
		s = "transport " + Span(h.Transport) + " · server " + Span(h.Server)
	}
	if h.Queue > 0 {
		s = "queue " + Span(h.Queue) + " · " + s
	}
	if h.Return > 0 {
		s += " · return " + Span(h.Return)
	}
	return s + " · linked by " + h.Link
}
