package llmmessage

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// phase is work that the pipeline delegates to an agent: the plan, or one task of it. The
// agent's work is a run of its own.
type phase struct {
	Task  string // its name, unique in the turn
	Call  string // the delegation, and the run
	Title string `json:",omitempty"`
	Sum   uint64 `json:",omitempty"` // hash of the task in its start event
	Agent string `json:",omitempty"`
	Tool  bool   `json:",omitempty"` // a step of the pipeline itself, without an agent
}

// attempt counts how often a phase was started in a turn.
type attempt struct {
	Task string
	N    int
}

// activePhases is the number of active phases that an agent works on.
func (s *session) activePhases() int {
	n := 0
	for i := range s.Phases {
		if !s.Phases[i].Tool {
			n++
		}
	}
	return n
}

// onlyPhase is the active phase, if there is just one.
func (s *session) onlyPhase() *phase {
	if s.activePhases() != 1 {
		return nil
	}
	return &s.Phases[slices.IndexFunc(s.Phases, func(p phase) bool { return !p.Tool })]
}

// phase is the phase with that name, nil when it is not active.
func (s *session) phase(task string) *phase {
	for i := range s.Phases {
		if s.Phases[i].Task == task {
			return &s.Phases[i]
		}
	}
	return nil
}

// startPhase starts a phase.
func (e *event) startPhase(name, task, title string) phase {
	s := e.s
	p := phase{Task: task, Title: cut(title, ident.Max), Tool: name == "aggregate"}
	key := s.Turn.Run + "/" + task
	i := slices.IndexFunc(s.Tries, func(t attempt) bool { return t.Task == key })
	if i < 0 {
		if len(s.Tries) == maxPhases {
			s.Tries = slices.Delete(s.Tries, 0, 1)
		}
		s.Tries = append(s.Tries, attempt{Task: key})
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

// endPhase ends an active phase; without one it makes the phase up.
func (e *event) endPhase(name, task string) (p phase, known bool) {
	s := e.s
	if open := s.phase(task); open != nil {
		p = *open
		s.Phases = slices.DeleteFunc(s.Phases, func(other phase) bool { return other.Task == task })
		return p, true
	}
	p = e.startPhase(name, task, "")
	s.Phases = s.Phases[:len(s.Phases)-1]
	return p, false
}

// addDelegation emits the delegation of a phase, and the beginning of its run.
func (e *event) addDelegation(name, to string, p phase, task msg.Text) {
	m := e.add(msg.Delegation, "call:"+p.Call)
	m.Role = msg.RoleAssistant
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal = p.Call, name, true // the pipeline delegates, no model
	m.Delegation = msg.Delegate{To: to, Task: task, ChildRun: p.Call, Link: msg.ByNativeID}
	m.SetAttr("title", p.Title)
	m = e.addForPhase(msg.Status, "start:"+p.Call, p)
	m.Hidden, m.Signal, m.ParentCall = true, msg.RunStart, p.Call
	m.Delegation.Link = msg.ByNativeID
	m.Agent.Name = to
	m.SetAttr("type", e.name)
}

// addForPhase adds a message of the run of a phase.
func (e *event) addForPhase(kind msg.Kind, key string, p phase) *msg.Message {
	m := e.add(kind, key)
	e.setPhase(m, &p)
	return m
}

// addDelegationResult emits the end of a phase's run, and the result of the delegation.
func (e *event) addDelegationResult(name string, p phase, to string, text msg.Text, reason string, failed bool) *msg.Message {
	m := e.addForPhase(msg.Stop, "end:"+p.Call, p)
	m.Hidden, m.Signal, m.FinishReason, m.IsError = true, msg.RunEnd, reason, failed
	m = e.add(msg.DelegationResult, "result:"+p.Call)
	m.Role, m.Content, m.IsError = msg.RoleTool, text, failed
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal, m.Delegation.To = p.Call, name, true, to
	m.Delegation.ChildRun, m.Delegation.Link = p.Call, msg.ByNativeID
	if failed {
		m.Tool.ErrorType = reason
	}
	return m
}

// setOnlyPhase puts a message of an event that names no agent into the run of the active phase,
// if there is just one.
func (d *stream) setOnlyPhase(e *event, m *msg.Message) {
	if p := e.s.onlyPhase(); p != nil {
		e.setPhase(m, p)
	}
}

// setPhase puts a message into the run of a phase.
func (e *event) setPhase(m *msg.Message, p *phase) {
	m.Run, m.ParentRun, m.Delegation.Link, m.Agent.Name = p.Call, e.s.Turn.Run, msg.ByParent, p.Agent
}

// bindMemory finds the phase that the agent of a memory works on: the only one, or the one
// whose title its first prompt has.
func (d *stream) bindMemory(e *event, l *agentMemory, items []jsonv.Value) {
	s := e.s
	at := func(task string) int {
		return slices.IndexFunc(s.Phases, func(p phase) bool { return p.Call == task && !p.Tool })
	}
	if l.Task != "" && at(l.Task) >= 0 {
		return
	}
	found := -1
	if p := s.onlyPhase(); p != nil {
		found = at(p.Call)
	} else if len(items) > 0 {
		prompt := items[0].Get("content").Str()
		for i, p := range s.Phases {
			if p.Tool || p.Title == "" || p.Agent != "" && p.Agent != l.Agent || !strings.Contains(prompt, p.Title) {
				continue
			}
			if found >= 0 { // ambiguous
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

// runs returns the run of the memory's messages, and its parent.
func (g *snapshotReader) runs() (run, parent string) {
	if g.memory.Task != "" {
		return g.memory.Task, g.e.s.Turn.Run
	}
	if g.turn != "" {
		return g.turn, ""
	}
	return g.e.s.Turn.Run, ""
}
