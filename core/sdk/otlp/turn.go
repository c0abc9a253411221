package otlp

import (
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
)

// maxTurns is the number of sessions whose turn is remembered.
const maxTurns = 512

// turn is the turn of a session that log records are part of.
type turn struct {
	Session string `json:",omitempty"`
	Run     string `json:",omitempty"`
}

// turnOf returns the turn of a session.
func (d *stream) turnOf(session string) *turn {
	for i := len(d.Turns) - 1; i >= 0; i-- {
		if d.Turns[i].Session == session {
			return d.Turns[i]
		}
	}
	t := &turn{Session: session}
	if d.Turns = append(d.Turns, t); len(d.Turns) > maxTurns {
		d.Turns = slices.Delete(d.Turns, 0, 1)
	}
	return t
}

// tell emits a log record as a part of a turn.
func (d *stream) tell(s *Span, out *decoder.Output) {
	session := cmp.Or(s.Session, "unknown")
	d.Named = d.Named || s.Session != ""
	t := d.turnOf(session)
	run := s.Run
	switch {
	case s.Kind == Note && run == "":
		run = t.Run
	case s.Kind == Prompt:
		run = cmp.Or(run, "turn:"+s.hash())
	case run == "":
		run = cmp.Or(t.Run, "turn:"+session)
	}
	e := &emitter{stream: d, complete: msg.Complete, tree: &tree{trace: &trace{}}, seen: make(map[string]bool)}
	p := place{run: run, session: session}
	if run != "" && run != t.Run && s.Kind != Note {
		t.Run = run
		if s.Kind != Prompt {
			k := &known{Run: run, Stub: true, rebuilt: s.Run == ""}
			e.begin(&Span{Start: s.Start, Kind: Other}, k, p)
		}
	}
	switch s.Kind {
	case Prompt:
		e.prompt(s, p)
	case Chat:
		e.chat(s, p)
	case Tool:
		e.tool(s, p)
	default:
		e.step(s, p)
	}
	e.flush(out)
}

// prompt queues what begins a turn.
func (e *emitter) prompt(s *Span, p place) {
	m := e.add(p, msg.User, "prompt:"+p.run, s.Start, msg.Complete)
	if m == nil {
		return
	}
	m.Role, m.Agent.Kind, m.Signal = msg.RoleUser, msg.KindHuman, msg.RunStart
	for _, part := range s.In {
		m.Content = msg.Plain(part.Text)
	}
	m.Attrs = append(m.Attrs, s.Attrs...)
}
