package llmmessage

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// phase is work that the pipeline has handed to an agent: the plan, or one task of
// it. The work is a delegation, and what the agent does a run of its own.
type phase struct {
	Task  string // what tells it from the others of the turn
	Call  string // the delegation, and the run
	Title string `json:",omitempty"`
	Sum   uint64 `json:",omitempty"` // of the task, as its beginning told it
	Agent string `json:",omitempty"`
	Tool  bool   `json:",omitempty"` // no agent does it
}

// try counts how often a piece of work was begun in a turn.
type try struct {
	Task string
	N    int
}

// handing is how much is handed on at the moment.
func (s *session) handing() int {
	n := 0
	for i := range s.Phases {
		if !s.Phases[i].Tool {
			n++
		}
	}
	return n
}

// only is the piece of work that everything belongs to, if there is just one.
func (s *session) only() *phase {
	if s.handing() != 1 {
		return nil
	}
	return &s.Phases[slices.IndexFunc(s.Phases, func(p phase) bool { return !p.Tool })]
}

// phase is the piece of work with that name, nil when it has not begun or is over.
func (s *session) phase(task string) *phase {
	for i := range s.Phases {
		if s.Phases[i].Task == task {
			return &s.Phases[i]
		}
	}
	return nil
}

// begins begins a piece of work.
func (e *event) begins(name, task, title string) phase {
	s := e.s
	p := phase{Task: task, Title: cut(title, ident.Max), Tool: name == "aggregate"}
	key := s.Turn.Run + "/" + task
	i := slices.IndexFunc(s.Tries, func(t try) bool { return t.Task == key })
	if i < 0 {
		if len(s.Tries) == maxPhases {
			s.Tries = slices.Delete(s.Tries, 0, 1)
		}
		s.Tries = append(s.Tries, try{Task: key})
		i = len(s.Tries) - 1
	}
	s.Tries[i].N++
	p.Call = key + nth(s.Tries[i].N)
	if len(s.Phases) == maxPhases {
		s.Phases = slices.Delete(s.Phases, 0, 1)
	}
	s.Phases = append(s.Phases, p)
	return p
}

// take ends a piece of work that was begun; one that was not is made up.
func (e *event) take(name, task string) (p phase, known bool) {
	s := e.s
	if open := s.phase(task); open != nil {
		p = *open
		s.Phases = slices.DeleteFunc(s.Phases, func(other phase) bool { return other.Task == task })
		return p, true
	}
	p = e.begins(name, task, "")
	s.Phases = s.Phases[:len(s.Phases)-1]
	return p, false
}

// hand gives the delegation of a piece of work, and the beginning of its run.
func (e *event) hand(name, to string, p phase, task msg.Text) {
	m := e.give(msg.Delegation, "call:"+p.Call)
	m.Role = msg.RoleAssistant
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal = p.Call, name, true // the pipeline does, no model
	m.Delegation = msg.Delegate{To: to, Task: task, ChildRun: p.Call, Link: msg.ByNativeID}
	m.SetAttr("title", p.Title)
	m = e.below(msg.Status, "start:"+p.Call, p)
	m.Hidden, m.Signal, m.ParentCall = true, msg.RunStart, p.Call
	m.Delegation.Link = msg.ByNativeID
	m.Agent.Name = to
	m.SetAttr("type", e.name)
}

// below adds a message of the run of a piece of work.
func (e *event) below(kind msg.Kind, key string, p phase) *msg.Message {
	m := e.give(kind, key)
	e.into(m, &p)
	return m
}

// back gives the end of a run, and the result of the delegation.
func (e *event) back(name string, p phase, to string, text msg.Text, reason string, failed bool) *msg.Message {
	m := e.below(msg.Stop, "end:"+p.Call, p)
	m.Hidden, m.Signal, m.FinishReason, m.IsError = true, msg.RunEnd, reason, failed
	m = e.give(msg.DelegationResult, "result:"+p.Call)
	m.Role, m.Content, m.IsError = msg.RoleTool, text, failed
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal, m.Delegation.To = p.Call, name, true, to
	m.Delegation.ChildRun, m.Delegation.Link = p.Call, msg.ByNativeID
	if failed {
		m.Tool.ErrorType = reason
	}
	return m
}

// place puts a message of an event that names no agent where it must belong: to the
// work that is handed on, if there is just one piece of it.
func (d *stream) place(e *event, m *msg.Message) {
	if p := e.s.only(); p != nil {
		e.into(m, p)
	}
}

// into puts a message into the run of a piece of work.
func (e *event) into(m *msg.Message, p *phase) {
	m.Run, m.ParentRun, m.Delegation.Link, m.Agent.Name = p.Call, e.s.Turn.Run, msg.ByParent, p.Agent
}

// bind finds the work that the agent of a memory does: the only one, or the one whose
// title its first prompt has.
func (d *stream) bind(e *event, l *lane, items []jsonv.Value) {
	s := e.s
	at := func(task string) int {
		return slices.IndexFunc(s.Phases, func(p phase) bool { return p.Call == task && !p.Tool })
	}
	if l.Task != "" && at(l.Task) >= 0 {
		return
	}
	found := -1
	if p := s.only(); p != nil {
		found = at(p.Call)
	} else if len(items) > 0 {
		prompt := items[0].Get("content").Str()
		for i, p := range s.Phases {
			if p.Tool || p.Title == "" || p.Agent != "" && p.Agent != l.Agent || !strings.Contains(prompt, p.Title) {
				continue
			}
			if found >= 0 { // two would do
				found = -1
				break
			}
			found = i
		}
	}
	l.Task = ""
	if found >= 0 {
		l.Task, s.Phases[found].Agent = s.Phases[found].Call, l.Agent
	}
}

// run is where the messages of the memory belong.
func (g *giving) run() (run, parent string) {
	if g.lane.Task != "" {
		return g.lane.Task, g.e.s.Turn.Run
	}
	if g.turn != "" {
		return g.turn, ""
	}
	return g.e.s.Turn.Run, ""
}
