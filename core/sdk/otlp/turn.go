package otlp

import (
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
)

// maxTurns is the number of sessions whose turn is remembered.
const maxTurns = 512

// turn is the turn of a session that log records are part of.
type turn struct {
	Session string `json:",omitempty"`
	Run     string `json:",omitempty"`
	From    string `json:",omitempty"` // the source of its responses, span or log; see Profile.OneSource
}

// logged is a response or a call that a log record has.
type logged struct{ Name, Run string }

// maxLogged is the number of them that are remembered.
const maxLogged = 1024

// turn returns the turn of a session; nil if there is none.
func (d *stream) turn(session string) *turn {
	for i := len(d.Turns) - 1; i >= 0; i-- {
		if d.Turns[i].Session == session {
			return d.Turns[i]
		}
	}
	return nil
}

// turnOf returns the turn of a session.
func (d *stream) turnOf(session string) *turn {
	if t := d.turn(session); t != nil {
		return t
	}
	t := &turn{Session: session}
	if d.Turns = append(d.Turns, t); len(d.Turns) > maxTurns {
		d.Turns = slices.Delete(d.Turns, 0, 1)
	}
	return t
}

// record emits a log record as a part of a turn.
func (d *stream) record(s *Span, out *decoder.Output) {
	session := cmp.Or(s.Session, "unknown")
	e := &emitter{stream: d, complete: msg.Complete, tree: &tree{trace: &trace{}}, seen: make(map[string]bool), from: make(map[string]string)}
	if e.one(s, session, "log"); s.Kind == Step {
		s.Kind = Note
	}
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
	p := place{run: run, session: session}
	if run != "" && run != t.Run && (s.Kind != Note || s.Above != "") {
		if s.Above == "" {
			t.Run = run
		}
		if s.Kind != Prompt {
			k := &known{Run: run, Stub: true, rebuilt: s.Run == ""}
			e.begin(&Span{Start: s.Start, Kind: Other, Above: s.Above, Agent: s.Agent, AgentID: s.AgentID}, k, p)
		}
	}
	for _, name := range [...]string{s.Response, s.Call} {
		if name != "" && s.Kind != Note {
			d.Logged = bounded.Push(d.Logged, logged{name, run}, maxLogged)
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

// prompt queues the beginning of a turn.
func (e *emitter) prompt(s *Span, p place) {
	key := "prompt:" + p.run
	for _, part := range s.In {
		key = "prompt:" + msg.HashKey(p.run, part.Text)
	}
	m := e.add(p, msg.User, key, s.Start, msg.Complete)
	if m == nil {
		return
	}
	m.Role, m.Agent.Kind, m.Signal = msg.RoleUser, msg.KindHuman, msg.RunStart
	for _, part := range s.In {
		m.Content = msg.Plain(part.Text)
	}
	m.Attrs = append(m.Attrs, s.Attrs...)
}
