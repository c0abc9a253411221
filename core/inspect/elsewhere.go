package inspect

import (
	"context"
	"fmt"
	"time"
)

// Elsewhere is the run of a delegate that has a session of its own, as one that was sent a message has.
type Elsewhere struct {
	Session  string        `json:"session_id"`
	Agent    string        `json:"agent,omitempty"`
	Duration time.Duration `json:"duration_ns"`
	Status   string        `json:"status,omitempty"` // error, cancelled, running; empty when all is well
	Link     string        `json:"link"`
}

// otherSessions has what spans of other sessions are below the calls of a session, by the span of the call.
type otherSessions struct {
	hops map[string]*Hop
	runs map[string][]Elsewhere // in the order of their starts
}

// readOthers reads them. The trace is compared in hex because the index of traces is.
func readOthers(ctx context.Context, q Querier, session Ref) (otherSessions, error) {
	out := otherSessions{make(map[string]*Hop), make(map[string][]Elsewhere)}
	err := q.Each(ctx, `
		SELECT lower(hex(parent_span_id)), session_id, toString(agent_name), toString(link_method),
			toUInt8(mapContains(attributes, 'earshot.hop.server')) AS hop,
			attributes['earshot.hop.queue'], attributes['earshot.hop.transport'], attributes['earshot.hop.server'], attributes['earshot.hop.return'],
			if(state = 'open', greatest(dateDiff('millisecond', ts, now64(9, 'UTC')), 0) * 1000000, toInt64(duration_ns)), toString(state), toString(outcome)
		FROM spans FINAL
		WHERE lower(hex(trace_id)) IN (SELECT lower(hex(trace_id)) FROM spans WHERE `+ofSession+`)
			AND session_id != {id:String} AND (hop = 1 OR kind = 'run' AND NOT empty(parent_span_id))
		ORDER BY ts`, session.params(), func(v []any) error {
		r := reader{values: v}
		call, in, agent, link, isHop := r.str(), r.str(), r.str(), r.str(), r.small() != 0
		h := &Hop{Session: in, Agent: agent, Link: link}
		for _, part := range [...]*time.Duration{&h.Queue, &h.Transport, &h.Server, &h.Return} {
			*part = seconds(r.str())
		}
		w := Elsewhere{Session: in, Agent: agent, Link: link, Duration: time.Duration(r.signed())}
		state, outcome := r.str(), r.str()
		switch {
		case state == "open":
			w.Status = "running"
		case outcome == "error" || outcome == "cancelled":
			w.Status = outcome
		}
		switch {
		case r.err != nil:
		case !isHop:
			out.runs[call] = append(out.runs[call], w)
		case out.hops[call] == nil || out.hops[call].Transport == 0 && h.Transport > 0: // of two recordings, the one that knows the transport
			out.hops[call] = h
		}
		return r.err
	})
	if err != nil {
		return out, fmt.Errorf("spans of other sessions: %w", err)
	}
	return out, nil
}

// text is the run as one line.
func (w *Elsewhere) text() string {
	s := Delegate(w.Agent) + " " + Span(w.Duration)
	if w.Status != "" {
		s += " · " + w.Status
	}
	return s + " · session " + w.Session + " · linked by " + w.Link
}
