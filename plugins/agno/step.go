package agno

import (
	"bytes"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// A step of a workflow may be done by an agent, which has a run, or by a function, which has
// none; steps may be in loops and in parallel. Each is a run of its own here, below the
// workflow's, so that the duration of each is a span:
//
//	workflow
//	├── Weigh                  StepStarted … StepCompleted
//	├── Prepare                ParallelExecutionStarted … Completed
//	│   ├── Stone
//	│   │   └── the agent's run
//	│   └── Boil jars
//	└── Refine                 LoopExecutionStarted … Completed
//	    └── Refine 1           LoopIterationStarted … Completed
//	        └── Taste

// step is an open step.
type step struct {
	Run    string // the step's own run
	Parent string // run
	Kind   string // the event's name without its ending: Step, LoopIteration
	ID     string `json:",omitempty"`
	Name   string `json:",omitempty"`
	Index  string `json:",omitempty"`
	Turn   string `json:",omitempty"` // of a loop
}

// stepOf returns the kind of step that an event begins or ends.
func stepOf(event string) (kind string, begins, ok bool) {
	for _, kind := range [...]string{"Step", "ParallelExecution", "LoopExecution", "LoopIteration", "ConditionExecution", "RouterExecution", "StepsExecution"} {
		switch rest, has := strings.CutPrefix(event, kind); {
		case !has:
		case rest == "Started":
			return kind, true, true
		case rest == "Completed", rest == "Error":
			return kind, false, true
		}
	}
	return "", false, false
}

// step assigns the message of an event to the step's own run.
func (s *stream) step(r *run, e *event, m *msg.Message) {
	kind, begins, ok := stepOf(string(e.name))
	if !ok {
		return
	}
	x := step{
		Kind: kind, ID: ident(e.v.Get("step_id")), Name: ident(e.v.Get("step_name")),
		Index: asText(e.v.Get("step_index")).String(), Turn: ident(e.v.Get("iteration")),
	}
	at := slices.IndexFunc(r.Open, func(o step) bool { return o.same(&x) })
	switch {
	case begins && at < 0:
		x.Parent = r.ID
		if up := r.enclosing(&x, ident(e.v.Get("parent_step_id"))); up != nil {
			x.Parent = up.Run
		}
		x.Run = x.Parent + "/" + x.name()
		if len(r.Open) >= maxTasks {
			r.Open = r.Open[1:]
		}
		r.Open = append(r.Open, x)
		m.Signal = msg.RunStart
	case begins:
		x = r.Open[at]
	case at < 0: // its start is missing
		return
	default:
		x = r.Open[at]
		r.Open = slices.Delete(r.Open, at, at+1)
		m.Signal, m.FinishReason = msg.RunEnd, "completed"
		if bytes.HasSuffix(e.name, []byte("Error")) {
			m.FinishReason = "error"
		}
	}
	x.assign(m)
}

// name returns the name of a step among its siblings.
func (x *step) name() string {
	switch {
	case x.Kind == "LoopIteration":
		return x.Turn
	case x.ID != "":
		return x.ID
	}
	return x.Kind + ":" + x.Name
}

// assign assigns a message to the step's run.
func (x *step) assign(m *msg.Message) {
	m.Run, m.ParentRun, m.ParentCall = x.Run, x.Parent, ""
	m.Agent = msg.Agent{Name: x.Name, Kind: msg.KindWorkflow}
	if x.Kind == "LoopIteration" {
		m.Agent.Name += " " + x.Turn
	}
}

// same reports whether both are one step.
func (x *step) same(o *step) bool {
	if x.Kind != o.Kind || x.Turn != o.Turn && x.Kind == "LoopIteration" {
		return false
	}
	if x.ID != "" && o.ID != "" {
		return x.ID == o.ID
	}
	return x.Name == o.Name && x.Index == o.Index
}

// enclosing returns the step around another one: the one it names, else the one whose index
// is the prefix of its own, else the innermost that has steps.
func (r *run) enclosing(x *step, parent string) *step {
	for i := len(r.Open) - 1; i >= 0; i-- {
		if parent != "" && r.Open[i].ID == parent {
			return &r.Open[i]
		}
	}
	if outer, _, nested := cutIndex(x.Index); nested {
		for i := len(r.Open) - 1; i >= 0; i-- {
			if o := &r.Open[i]; o.Kind != "Step" && o.Index == outer {
				return o
			}
		}
	}
	for i := len(r.Open) - 1; i >= 0; i-- {
		if o := &r.Open[i]; o.Kind != "Step" && (x.Kind != "LoopIteration" || o.Kind == "LoopExecution") {
			return o
		}
	}
	return nil
}

// cutIndex splits the index of a nested step, [1,0], into that of the enclosing step, which
// is a number unless it is nested itself, and the rest.
func cutIndex(index string) (outer, rest string, nested bool) {
	list, ok := strings.CutPrefix(index, "[")
	i := strings.LastIndexByte(list, ',')
	if !ok || i < 0 {
		return "", "", false
	}
	outer, rest = list[:i], strings.TrimSuffix(list[i+1:], "]")
	if strings.Contains(outer, ",") {
		outer = "[" + outer + "]"
	}
	return outer, rest, true
}

// stepRun returns the run of the step that an agent works in; empty when it is not known.
func (r *run) stepRun(v jsonv.Value) string {
	if len(r.Open) == 0 {
		return ""
	}
	id, name := ident(v.Get("step_id")), ident(v.Get("step_name"))
	for i := len(r.Open) - 1; i >= 0; i-- {
		o := &r.Open[i]
		if o.Kind == "Step" && (id != "" && o.ID == id || id == "" && name != "" && o.Name == name) {
			return o.Run
		}
	}
	return ""
}

// endSteps ends the steps that a workflow leaves open.
func (s *stream) endSteps(r *run, at stamp, reason string) {
	for i := len(r.Open) - 1; i >= 0; i-- {
		m := s.addStatus(r, "", "step_left", at)
		m.Key = r.Open[i].Run + "/end"
		m.Signal, m.FinishReason, m.IsError = msg.RunEnd, reason, reason == "error"
		r.Open[i].assign(m)
	}
	r.Open = nil
}
