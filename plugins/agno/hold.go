package agno

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// held is something that came before what it belongs to: a request before its
// run, a connection's event before its session.
type held struct {
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

// The kinds of what is held.
const (
	heldRequest  = "request"  // starts a run
	heldDecision = "decision" // continues one: Data are its tools
	heldControl  = "control"
)

// maxHeld and maxHeldText are how much is held; the oldest is then given as it is.
const (
	maxHeld     = 32
	maxHeldText = 64 << 20
)

func (s *stream) hold(h held) {
	s.held = append(s.held, h)
	size := 0
	for i := range s.held {
		size += len(s.held[i].Text) + len(s.held[i].Data)
	}
	for len(s.held) > maxHeld || size > maxHeldText && len(s.held) > 1 {
		size -= len(s.held[0].Text) + len(s.held[0].Data)
		s.abandon(&s.held[0])
		s.held = slices.Delete(s.held, 0, 1)
	}
}

// release gives the connection's events, whose session is known now; at the end of
// the stream everything, as it is.
func (s *stream) release(all bool) {
	kept := s.held[:0]
	for i := range s.held {
		h := &s.held[i]
		switch {
		case all:
			s.abandon(h)
		case h.Kind == heldControl:
			s.connection(h)
		default:
			kept = append(kept, *h)
		}
	}
	clear(s.held[len(kept):])
	s.held = kept
}

// abandon gives what found nothing to belong to.
func (s *stream) abandon(h *held) {
	if h.Kind == heldControl {
		s.connection(h)
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
	if h.Kind == heldRequest {
		m.Kind, m.Role, m.Hidden = msg.User, msg.RoleUser, false
		m.Agent.Kind = msg.KindHuman
		m.SetAttr("user_id", h.User)
		m.Attachments = h.Files
	}
	m.Content = msg.Plain(h.Text)
	if h.Kind == heldDecision {
		m.Content = msg.Plain(h.Data)
	}
	m.SetAttr("type", h.Type)
}

// takeRequest takes the oldest request that has no run yet.
func (s *stream) takeRequest() *held {
	for i := range s.held {
		if s.held[i].Kind == heldRequest {
			h := s.held[i]
			s.held = slices.Delete(s.held, i, i+1)
			return &h
		}
	}
	return nil
}

// expects reports whether a request has no run yet.
func (s *stream) expects() bool {
	return slices.ContainsFunc(s.held, func(h held) bool { return h.Kind == heldRequest })
}

// asked gives the request that began a top-level run, if it was heard.
func (s *stream) asked(r *run, at stamp) bool {
	if r.Parent != "" || r.Asked {
		return r.Asked
	}
	h := s.takeRequest()
	if h == nil {
		return false
	}
	s.prompt(r, h, at)
	return true
}

func (s *stream) prompt(r *run, h *held, at stamp) {
	r.Asked = true
	m := s.input(r, at, msg.Plain(h.Text), msg.Agent{Kind: msg.KindHuman})
	m.SetAttr("user_id", h.User)
	if h.Session != r.Session {
		m.SetAttr("session_id", h.Session) // that was asked for
	}
	m.Attachments = h.Files
}

// decisions returns what a person decided about the calls of a paused run: the
// tools of the request that continues it, or of the stored run.
func (s *stream) decisions(r *run) jsonv.Value {
	if s.book != nil {
		return s.book.objects[r.ID].Get("tools")
	}
	for i := range s.held {
		if h := s.held[i]; h.Kind == heldDecision && h.Run == r.ID {
			s.held = slices.Delete(s.held, i, i+1)
			if s.inner.Parse([]byte(h.Data)) == nil {
				return s.inner.Root()
			}
			break
		}
	}
	return jsonv.Value{}
}
