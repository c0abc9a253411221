package agno

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// pending is an item that arrived before its owner: a request before its run, a connection's
// event before its session.
type pending struct {
	Kind    string
	Type    string           `json:",omitempty"`
	Session string           `json:",omitempty"`
	Run     string           `json:",omitempty"`
	User    string           `json:",omitempty"`
	Text    string           `json:",omitempty"`
	Data    string           `json:",omitempty"`
	Files   []msg.Attachment `json:",omitempty"`
	Failed  bool             `json:",omitempty"`
}

// The kinds of pending items.
const (
	pendingRequest  = "request"  // starts a run
	pendingDecision = "decision" // continues one: Data are its tools
	pendingControl  = "control"
)

// maxPending and maxPendingText limit the pending items; beyond them the oldest is emitted
// without its owner.
const (
	maxPending     = 32
	maxPendingText = 64 << 20
)

func (s *stream) addPending(h pending) {
	s.pending = append(s.pending, h)
	size := 0
	for i := range s.pending {
		size += len(s.pending[i].Text) + len(s.pending[i].Data)
	}
	for len(s.pending) > maxPending || size > maxPendingText && len(s.pending) > 1 {
		size -= len(s.pending[0].Text) + len(s.pending[0].Data)
		s.emitPending(&s.pending[0])
		s.pending = slices.Delete(s.pending, 0, 1)
	}
}

// releasePending emits the connection's events, whose session is known now; at the end of the
// stream it emits every item.
func (s *stream) releasePending(all bool) {
	kept := s.pending[:0]
	for i := range s.pending {
		h := &s.pending[i]
		switch {
		case all:
			s.emitPending(h)
		case h.Kind == pendingControl:
			s.emitConnection(h)
		default:
			kept = append(kept, *h)
		}
	}
	clear(s.pending[len(kept):])
	s.pending = kept
}

// emitPending emits an item whose owner did not arrive.
func (s *stream) emitPending(h *pending) {
	if h.Kind == pendingControl {
		s.emitConnection(h)
		return
	}
	m := s.out.Add()
	m.Kind, m.Complete = msg.Status, msg.Complete
	m.Key = h.Kind + ":" + msg.HashKey(h.Session, h.Run, h.User, h.Text, h.Data)
	m.Session = h.Session
	if m.Session == "" {
		m.Session = s.sessionFor(jsonv.Value{})
	}
	m.Hidden = true
	if h.Kind == pendingRequest {
		m.Kind, m.Role, m.Hidden = msg.User, msg.RoleUser, false
		m.Agent.Kind = msg.KindHuman
		m.SetAttr("user_id", h.User)
		m.Attachments = h.Files
	}
	m.Content = msg.Plain(h.Text)
	if h.Kind == pendingDecision {
		m.Content = msg.Plain(h.Data)
	}
	m.SetAttr("type", h.Type)
}

// takeRequest takes the oldest request that has no run yet.
func (s *stream) takeRequest() *pending {
	for i := range s.pending {
		if s.pending[i].Kind == pendingRequest {
			h := s.pending[i]
			s.pending = slices.Delete(s.pending, i, i+1)
			return &h
		}
	}
	return nil
}

// expects reports whether a request has no run yet.
func (s *stream) expects() bool {
	return slices.ContainsFunc(s.pending, func(h pending) bool { return h.Kind == pendingRequest })
}

// emitRequest emits the request that began a top-level run, if the stream has it.
func (s *stream) emitRequest(r *run, at stamp) bool {
	if r.Parent != "" || r.Asked {
		return r.Asked
	}
	h := s.takeRequest()
	if h == nil {
		return false
	}
	s.addRequest(r, h, at)
	return true
}

func (s *stream) addRequest(r *run, h *pending, at stamp) {
	r.Asked = true
	m := s.addInput(r, at, msg.Plain(h.Text), msg.Agent{Kind: msg.KindHuman})
	m.SetAttr("user_id", h.User)
	if h.Session != r.Session {
		m.SetAttr("session_id", h.Session) // the requested one
	}
	m.Attachments = h.Files
}

// decisions returns the decisions of a person about the calls of a paused run: the tools of
// the request that continues it, or of the stored run.
func (s *stream) decisions(r *run) jsonv.Value {
	if s.index != nil {
		return s.index.runs[r.ID].Get("tools")
	}
	for i := range s.pending {
		if h := s.pending[i]; h.Kind == pendingDecision && h.Run == r.ID {
			s.pending = slices.Delete(s.pending, i, i+1)
			if s.inner.Parse([]byte(h.Data)) == nil {
				return s.inner.Root()
			}
			break
		}
	}
	return jsonv.Value{}
}
