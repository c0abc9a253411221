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

// control emits an event of the connection. One that precedes the first event with a session
// waits for that session.
func (s *stream) control(e *event) {
	h := pending{Kind: pendingControl, Type: string(e.name), Data: peekID(e.v.Get("status")), Run: ident(e.run)}
	markKnown(e.session, s.session)
	h.Failed = h.Type == "error" || h.Type == "auth_error"
	h.Text = e.v.First("message", "error").Text().String()
	s.emitControl(h)
}

func (s *stream) emitConnection(h *pending) {
	m := s.out.Add()
	m.Kind, m.Hidden, m.Complete = msg.Status, true, msg.Complete
	m.Key = h.Kind + ":" + msg.HashKey(h.Run, h.Type, h.Data, h.Text)
	m.Session = s.sessionFor(jsonv.Value{})
	if r := s.runs[h.Run]; r != nil {
		m.Session, m.Run, m.ParentRun, m.ParentCall, m.Agent = r.Session, r.ID, r.parentRun(), r.Call, r.Agent
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

// repeated reports whether an event of a resumable stream arrived before. The top run's
// stream numbers the events of all runs below it.
func (s *stream) repeated(r *run, index jsonv.Value) bool {
	if !index.Is(jsonv.Number) || s.index != nil {
		return false
	}
	n := index.Int()
	return n >= 0 && !s.top(r).Index.add(n)
}

// spans is a set of numbers that arrive almost in order: ranges, both ends included.
type spans [][2]int64

// maxSpans limits the ranges; beyond it the lowest gap counts as seen.
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
