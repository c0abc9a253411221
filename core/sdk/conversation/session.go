package conversation

import (
	"slices"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
)

// Session is a conversation of an agent that keeps several in one store: of a person, or of a sub-agent, which
// has one run. A decoder embeds it in the type that has the other facts of its format.
type Session struct {
	ID     string
	Root   string `json:",omitempty"` // the session at the top
	Parent string `json:",omitempty"` // the session whose call made the agent work
	Run    Run
}

func (s *Session) session() *Session { return s }

// Delegated makes the session that of a sub-agent.
func (s *Session) Delegated(parent string) {
	s.Parent, s.Run = parent, Run{ID: s.ID, Child: true}
}

// Total emits the tokens of a session whose store has only their sum: one message, which a later sum replaces. It
// may be the first message of a sub-agent's run.
func (s *Session) Total(out *decoder.Output, c Counts, model, provider string, at Time) {
	s.Share(out, "", c, model, provider, at)
}

// Share emits a part of the tokens of a session, under a name of its own, as Total emits their sum.
func (s *Session) Share(out *decoder.Output, name string, c Counts, model, provider string, at Time) *msg.Message {
	r := Response{ID: "session:" + s.ID + name, Model: model, Provider: provider, At: at}
	if s.Run.Child {
		r.Run = s.Run.ID
	}
	r.Count(c, msg.Provider)
	m := r.Usage(out, msg.Summary)
	m.Session, m.Agent.Kind, m.ResponseID = s.Root, msg.KindAgent, ""
	m.SetAttr(msg.TotalOf, msg.OfSession)
	if s.Run.Child {
		m.ParentRun = msg.UnknownRun
	}
	if s.Run.Child && s.Run.Call != "" {
		s.Run.Below(m)
	}
	return m
}

// Kept is a pointer to a type that embeds Session.
type Kept interface {
	comparable
	session() *Session
}

// Sessions are the sessions of a store that are remembered, the one used last at the end. Beyond their limit the one
// that was used longest ago is forgotten.
type Sessions[S Kept] []S

// Find returns the session of that id, or nil.
func (t Sessions[S]) Find(id string) (none S) {
	for _, s := range slices.Backward(t) {
		if s.session().ID == id {
			return s
		}
	}
	return none
}

// Enter returns the session of that id, which add makes if need be.
func (t *Sessions[S]) Enter(id string, limit int, add func(Session) S) S {
	last, s := len(*t)-1, t.Find(id)
	switch i := slices.Index(*t, s); {
	case i >= 0 && i == last:
		return s
	case i >= 0:
		*t = slices.Delete(*t, i, i+1)
	default:
		if s = add(Session{ID: id, Root: id}); last+1 >= limit {
			*t = slices.Delete(*t, 0, last+2-limit)
		}
	}
	*t = append(*t, s)
	return s
}

// Delegate makes a session that of a sub-agent of another one, unless it has a parent or the other is itself or none.
func (t Sessions[S]) Delegate(s *Session, parent string) {
	if s.Parent == "" && parent != "" && parent != s.ID {
		s.Delegated(parent)
		t.Below(s, parent)
	}
}

// Below puts a session below another one, which may not be known.
func (t Sessions[S]) Below(s *Session, parent string) {
	s.Root = parent
	if i := slices.Index(t, t.Find(parent)); i >= 0 {
		s.Root = t[i].session().Root
	}
}
