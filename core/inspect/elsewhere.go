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

// elsewhere reads the runs of other sessions below the calls of a session, by the span of the call: of several the first.
func elsewhere(ctx context.Context, q Querier, session string) (map[string]*Elsewhere, error) {
	out := make(map[string]*Elsewhere)
	err := q.Each(ctx, `
		SELECT lower(hex(parent_span_id)), session_id, toString(agent_name),
			if(state = 'open', greatest(dateDiff('millisecond', ts, now64(9, 'UTC')), 0) * 1000000, toInt64(duration_ns)), toString(state), toString(outcome), toString(link_method)
		FROM spans FINAL
		WHERE trace_id IN (SELECT trace_id FROM spans WHERE session_id = {id:String})
			AND session_id != {id:String} AND kind = 'run' AND NOT mapContains(attributes, 'earshot.hop.server') AND NOT empty(parent_span_id)
		ORDER BY ts`, map[string]string{"id": session}, func(v []any) error {
		r := reader{values: v}
		call := r.str()
		w := &Elsewhere{Session: r.str(), Agent: r.str()}
		w.Duration = time.Duration(r.signed())
		state, outcome := r.str(), r.str()
		w.Link = r.str()
		switch {
		case state == "open":
			w.Status = "running"
		case outcome == "error" || outcome == "cancelled":
			w.Status = outcome
		}
		if r.err == nil && out[call] == nil {
			out[call] = w
		}
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("runs of other sessions: %w", err)
	}
	return out, nil
}

// text is the run as one line.
func (w *Elsewhere) text() string {
	s := Agent(w.Agent, "") + " " + Span(w.Duration)
	if w.Status != "" {
		s += " · " + w.Status
	}
	return s + " · session " + w.Session + " · linked by " + w.Link
}
