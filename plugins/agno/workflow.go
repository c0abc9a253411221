package agno

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// steps are the open steps of a workflow, the outer ones first. A step may be done by an
// agent, which has a run, or by a function, which has none; steps may be in loops and in
// parallel. Each is a run of its own here, below the workflow's, so that the duration of each
// is a span:
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
type steps struct {
	Open    []*step                       `json:",omitempty"`
	Answers bounded.Set[conversation.Sum] `json:",omitzero"` // of the latest agents
}

// maxAnswers limits the answers that the output of a step is compared with.
const maxAnswers = 16

// step is an open step.
type step struct {
	Run    string // the step's own run
	Parent string // run
	Kind   string // the event's name without its ending: Step, LoopIteration
	ID     string `json:",omitempty"`
	Name   string `json:",omitempty"`
	Index  string `json:",omitempty"`
	Turn   string `json:",omitempty"` // of a LoopIteration
}

// note assigns the message of an event to the step's own run.
func (t *steps) note(r *run, e *event, m *msg.Message) {
	kind, begins := strings.CutSuffix(string(e.name), "Started")
	kind, ended := strings.CutSuffix(strings.TrimSuffix(kind, "Error"), "Completed")
	failing := bytes.HasSuffix(e.name, []byte("Error"))
	if !strings.HasPrefix(e.rule.note.names, stepFields) || !begins && !ended && !failing {
		return
	}
	x := &step{
		Kind: kind, ID: ident.OrNumber(e.v.Get("step_id")), Name: ident.OrNumber(e.v.Get("step_name")),
		Index: str(e.v.Get("step_index")), Parent: r.ID,
	}
	if kind == "LoopIteration" {
		x.Turn = ident.OrNumber(e.v.Get("iteration"))
	}
	at := slices.IndexFunc(t.Open, func(o *step) bool { return o.same(x) })
	switch {
	case at >= 0:
		x = t.Open[at]
	case !begins: // its start is missing
		return
	default:
		if up := t.enclosing(x, ident.OrNumber(e.v.Get("parent_step_id"))); up != nil {
			x.Parent = up.Run
		}
		x.Run = x.Parent + "/" + cmp.Or(x.Turn, x.ID, x.Kind+":"+x.Name)
		t.Open = bounded.Push(t.Open, x, maxTasks)
		m.Signal = msg.RunStart
	}
	if !begins {
		t.Open = slices.Delete(t.Open, at, at+1)
		m.Signal, m.FinishReason = msg.RunEnd, completed
		if failing {
			m.FinishReason = failed
		}
	}
	x.own(m)
}

// own makes the message one of the step's run.
func (x *step) own(m *msg.Message) {
	m.Run, m.ParentRun, m.ParentCall = x.Run, x.Parent, ""
	m.Agent = msg.Agent{Name: strings.TrimSpace(x.Name + " " + x.Turn), Kind: msg.KindWorkflow}
}

// same reports whether both are one step.
func (x *step) same(o *step) bool {
	return x.Kind == o.Kind && x.Turn == o.Turn && x.ID == o.ID && (x.ID != "" || x.Name == o.Name && x.Index == o.Index)
}

// enclosing returns the step around another one: the one it names, else the one whose index
// is the prefix of its own, else the innermost that has steps.
func (t *steps) enclosing(x *step, parent string) *step {
	outer, nested := outerIndex(x.Index)
	for _, fits := range [...]func(o *step) bool{
		func(o *step) bool { return parent != "" && o.ID == parent },
		func(o *step) bool { return nested && o.Kind != "Step" && o.Index == outer },
		func(o *step) bool { return o.Kind != "Step" && (x.Turn == "" || o.Kind == "LoopExecution") },
	} {
		if o := bounded.Find(t.Open, fits); o != nil {
			return o
		}
	}
	return nil
}

// outerIndex returns the index of the step around a nested one, [1,0]: a number unless it is
// nested itself.
func outerIndex(index string) (outer string, nested bool) {
	list, ok := strings.CutPrefix(index, "[")
	i := strings.LastIndexByte(list, ',')
	if !ok || i < 0 {
		return "", false
	}
	if outer = list[:i]; strings.Contains(outer, ",") {
		outer = "[" + outer + "]"
	}
	return outer, true
}

// of returns the step that an agent works in, or nil.
func (t *steps) of(v jsonv.Value) *step {
	if len(t.Open) == 0 {
		return nil
	}
	id, name := ident.OrNumber(v.Get("step_id")), ident.OrNumber(v.Get("step_name"))
	return bounded.Find(t.Open, func(o *step) bool {
		return o.Kind == "Step" && (id != "" && o.ID == id || id == "" && name != "" && o.Name == name)
	})
}

// end ends the steps that a workflow leaves open.
func (t *steps) end(r *run, at conversation.Time, reason string) {
	for _, x := range slices.Backward(t.Open) {
		m := r.status(x.Run+"/end", "step_left", at)
		m.Signal, m.FinishReason, m.IsError = msg.RunEnd, reason, reason == failed
		x.own(m)
	}
	t.Open = nil
}

// note emits an event that only reports something.
func (r *run) note(e *event) {
	n, name := &e.rule.note, string(e.name)
	if name == "ReasoningCompleted" { // ends the text of a reasoning model
		r.Text.close(r, e.at, msg.Complete)
		r.Text.markSteps(e)
	}
	var parts []string
	for field := range strings.FieldsSeq(n.names) {
		if v := str(e.v.Get(field)); v != "" {
			parts = append(parts, field+"="+v)
		}
	}
	key := r.key(name + "/" + e.second())
	if len(parts) > 0 {
		key += "/" + msg.HashKey(parts...)[:16]
	}
	m := r.status(key, name, e.at)
	if n.kind != msg.Unknown {
		m.Kind = n.kind
	}
	m.Hidden, m.Signal = !n.shown, n.signal
	conversation.AttrsAs(m, e.v, str, strings.Fields(n.names+" "+n.attrs)...)
	m.Content = summaryText(e.v.First(strings.Fields(n.content)...))
	r.Steps.note(r, e, m)
	switch name {
	case "TaskCreated":
		r.Calls.learnTask(e.v)
	case "StepCompleted":
		if text := asText(e.content); !r.Steps.Answers.Has(conversation.SumOfText(text)) { // else its agent's last text
			m.Content = text
		}
	case "StepError":
		m.IsError = true
	}
}

// summaryText returns the text of a session's summary or of memories, and other values
// as JSON.
func summaryText(v jsonv.Value) msg.Text {
	if t := v.First("summary", "content", "memory"); t.Is(jsonv.String) {
		return t.Text()
	}
	if v.Is(jsonv.Array) && v.Len() == 0 {
		return msg.Text{}
	}
	return asText(v)
}
