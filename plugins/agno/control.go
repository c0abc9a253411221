package agno

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// isControl reports whether an event is of the connection and not of a run:
//
//	{"event":"connected","message":"…","requires_auth":true}
//	{"event":"catch_up","run_id":"…","status":"running","missed_events":4,"message":"…"}
func isControl(name []byte) bool {
	switch string(name) {
	case "connected", "authenticated", "auth_required", "auth_error", "catch_up", "replay", "subscribed", "reconnected", "error", "pong":
		return true
	}
	return false
}

// control gives an event of the connection. One that comes before any event that
// names the session waits for that.
func (s *stream) control(e *event) {
	h := held{Kind: heldControl, Type: string(e.name), Data: glance(e.v.Get("status")), Run: ident(e.run)}
	known(e.session, s.session)
	h.Failed = h.Type == "error" || h.Type == "auth_error"
	h.Text = e.v.First("message", "error").Text().String()
	s.heard(h)
}

func (s *stream) connection(h *held) {
	m := s.out.Add()
	m.Kind, m.Hidden, m.Complete = msg.Status, true, msg.Complete
	m.Key = h.Kind + ":" + msg.HashKey(h.Run, h.Type, h.Data, h.Text)
	m.Session = s.sessionFor(jsonv.Value{})
	if r := s.runs[h.Run]; r != nil {
		m.Session, m.Run, m.ParentRun, m.ParentCall, m.Agent = r.Session, r.ID, r.above(), r.Call, r.Agent
	} else {
		if h.Session != "" {
			m.Session = h.Session
		}
		m.SetAttr("run_id", h.Run)
	}
	m.IsError = h.Failed
	m.Content = msg.Plain(h.Text)
	m.SetAttr("type", h.Type)
	m.SetAttr("user_id", h.User)
}

// repeated reports whether an event of a resumable stream was here before. The
// top run's stream numbers the events of all runs below it.
func (s *stream) repeated(r *run, index jsonv.Value) bool {
	if !index.Is(jsonv.Number) || s.book != nil {
		return false
	}
	n := index.Int()
	return n >= 0 && !s.top(r).Index.add(n)
}

// spans is a set of numbers that come almost in order: ranges, from and to.
type spans [][2]int64

// maxSpans is how many ranges are kept apart; gaps below are then taken for seen.
const maxSpans = 64

// add adds a number, and reports whether it is new.
func (p *spans) add(n int64) bool {
	all := *p
	i := len(all)
	for i > 0 && all[i-1][0] > n {
		i--
	}
	switch {
	case i > 0 && n <= all[i-1][1]:
		return false
	case i > 0 && n == all[i-1][1]+1:
		all[i-1][1] = n
		if i < len(all) && all[i][0] == n+1 {
			all[i-1][1] = all[i][1]
			all = slices.Delete(all, i, i+1)
		}
	case i < len(all) && all[i][0] == n+1:
		all[i][0] = n
	default:
		all = slices.Insert(all, i, [2]int64{n, n})
	}
	if len(all) > maxSpans {
		all[1][0] = all[0][0]
		all = all[1:]
	}
	*p = all
	return true
}
