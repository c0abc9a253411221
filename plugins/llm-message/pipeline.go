package llmmessage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// phase is work of a pipeline: the plan, a task of it, or the aggregation of the results. The
// pipeline delegates all but the last to an agent, whose work is a run of its own.
type phase struct {
	Tool  string // plan, solve or aggregate
	Task  string // its name, unique in the turn
	Call  string // the delegation, and the run
	Title string `json:",omitempty"`
	Sum   uint64 `json:",omitempty"` // hash of the task in its start event
	Agent string `json:",omitempty"`
}

const aggregate = "aggregate" // the tool of the only phase that no agent works on

// phases are the active ones, oldest first.
type phases []*phase

// count is the number of phases that an agent works on.
func (l phases) count() (n int) {
	for _, p := range l {
		if p.Tool != aggregate {
			n++
		}
	}
	return n
}

// only is the phase that an agent works on, if there is just one. Messages of events that name
// no agent belong to it.
func (l phases) only() *phase {
	if l.count() != 1 {
		return nil
	}
	return l[slices.IndexFunc(l, func(p *phase) bool { return p.Tool != aggregate })]
}

// get is the phase with that name, nil when it is not active.
func (l phases) get(task string) *phase {
	if i := slices.IndexFunc(l, func(p *phase) bool { return p.Task == task }); i >= 0 {
		return l[i]
	}
	return nil
}

// start adds a phase. One that is started again has a number.
func (l *phases) start(e *event, p *phase) *phase {
	p.Call = e.s.Emitted.emit(e.s.Turn.Run + "/" + p.Task)
	*l = bounded.Push(*l, p, maxPhases)
	return p
}

// end removes a phase. One that is not active has no beginning.
func (l *phases) end(e *event, tool, task string) *phase {
	p := l.get(task)
	if p == nil {
		p = l.start(e, &phase{Tool: tool, Task: task})
	}
	*l = slices.DeleteFunc(*l, func(other *phase) bool { return other == p })
	return p
}

// add adds a message of the call by which the pipeline begins the phase: no model made it.
func (p *phase) add(e *event, kind msg.Kind, key string) *msg.Message {
	m := e.add(kind, key+p.Call)
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal = p.Call, p.Tool, true
	if p.Tool != aggregate {
		m.Delegation.ChildRun, m.Delegation.Link = p.Call, msg.ByNativeID
	}
	return m
}

// set puts a message into the run of the phase.
func (p *phase) set(e *event, m *msg.Message) {
	m.Run, m.ParentRun, m.Delegation.Link, m.Agent.Name = p.Call, e.s.Turn.Run, msg.ByParent, p.Agent
}

// begin emits the delegation of the phase and the beginning of its run.
func (p *phase) begin(e *event, to string, task msg.Text) {
	m := p.add(e, msg.Delegation, "call:")
	m.Role, m.Delegation.To, m.Delegation.Task = msg.RoleAssistant, to, task
	m.SetAttr("title", p.Title)
	m = e.status("start:" + p.Call)
	p.set(e, m)
	m.Signal, m.ParentCall, m.Delegation.Link, m.Agent.Name = msg.RunStart, p.Call, msg.ByNativeID, to
}

// finish emits the end of the phase's run and the result of the delegation.
func (p *phase) finish(e *event, to string, text msg.Text, reason string) *msg.Message {
	failed := reason != "stop"
	m := e.add(msg.Stop, "end:"+p.Call)
	p.set(e, m)
	m.Hidden, m.Signal, m.FinishReason, m.IsError = true, msg.RunEnd, reason, failed
	m = p.add(e, msg.DelegationResult, "result:")
	m.Role, m.Content, m.IsError, m.Delegation.To = msg.RoleTool, text, failed, to
	if failed {
		m.Tool.ErrorType = reason
	}
	return m
}

// plan decodes the beginning and the end of the planner's work.
func (l *phases) plan(e *event, action string) {
	const tool, task, to = "plan", "plan", "planner"
	switch action {
	case "start":
		question := e.content.Get("question")
		if question.Exists() && !e.s.Turn.Open {
			e.prompt(question.Text())
		}
		e.ensureTurn()
		e.s.Waits.end(e, "")
		l.start(e, &phase{Tool: tool, Task: task}).begin(e, to, question.Text())
	case "completed":
		p := l.end(e, tool, task)
		p.statistics(e, e.content.Get("statistics"))
		summary := jsonv.Or(e.content.Get("plan_summary"), e.meta.Get("plan_summary"))
		p.finish(e, to, summary.Text(), "stop")
		m, tasks := e.add(msg.Plan, e.key()), e.content.Get("tasks")
		m.Content = tasks.JSON()
		m.SetAttr("tasks", conversation.NonZero(tasks.Len()))
		m.SetAttr("plan_summary", conversation.Excerpt(summary))
		m.SetAttr("metrics", conversation.ShortJSON(e.content.Get("metrics")))
	default:
		l.end(e, tool, task).finish(e, to, e.reason(), "cancelled")
	}
}

// reason is the event's reason.
func (e *event) reason() msg.Text {
	for _, v := range [...]jsonv.Value{e.content.Get("reason"), e.meta.Get("reason"), e.content} {
		if v.Is(jsonv.String) {
			return v.Text()
		}
	}
	return msg.Text{}
}

// solver decodes an event of one task of the plan.
func (l *phases) solver(e *event, action string) {
	const tool, to = "solve", "solver"
	s, t := e.s, e.content.Get("task")
	if !t.Exists() { // of all tasks together, as the documents have it
		l.progress(e)
		return
	}
	id := ident.OrNumber(t.Get("id"))
	task := "task:" + id
	if id == "" {
		task += msg.HashKey(string(t.Peek()))[:16]
	}
	title, sum := t.First("title", "name", "objective", "description"), e.hash(t.Peek())
	if p := l.get(task); p != nil {
		title.Equal(p.Title)
		if sum == p.Sum {
			t.MarkRead()
		}
	}
	switch action {
	case "start":
		e.ensureTurn()
		s.Waits.end(e, "")
		if l.get(task) != nil { // started again
			l.end(e, tool, task).finish(e, to, msg.Text{}, "cancelled")
		}
		l.start(e, &phase{Tool: tool, Task: task, Title: conversation.Cut(title.PeekStr(), ident.Max), Sum: sum}).begin(e, to, t.Text())
	case "completed":
		p, r := l.end(e, tool, task), e.content.Get("result")
		p.Agent = ident.Of(r.Get("agent_name"))
		p.statistics(e, r.Get("statistics"))
		text := r
		if r.Is(jsonv.Object) {
			text = r.First("summary", "output")
		}
		m := p.finish(e, cmp.Or(p.Agent, to), text.Text(), "stop")
		m.Model = ident.Of(r.Get("model"))
		m.SetAttr("output", conversation.ShortJSON(r.Get("output")))
	case "cancelled":
		l.end(e, tool, task).finish(e, to, e.reason(), "cancelled")
	default:
		m := l.progress(e)
		if p := l.get(task); p != nil {
			p.set(e, m)
		}
		m.SetAttr("task_id", id)
	}
}

// progress emits a pipeline's notice of its progress.
func (l *phases) progress(e *event) *msg.Message {
	if e.name == "solver.step_failed" {
		return e.addError("agent_error")
	}
	m := e.notice(e.content.Text(), "progress_percent")
	if e.name == "solver.retry" || e.name == "solver.restarted" {
		m.Signal = msg.Retry
	}
	m.SetAttr("step_id", e.step)
	(*phase)(nil).statistics(e, e.meta.Get("statistics"))
	return m
}

// aggregate decodes the aggregation of the tasks' results. Its input was emitted before.
func (l *phases) aggregate(e *event, action string) {
	if action != "start" {
		m := l.end(e, aggregate, aggregate).add(e, msg.ToolResult, "result:")
		m.Role, m.Content = msg.RoleTool, e.content.Get("output").Text()
		return
	}
	e.ensureTurn()
	m := l.start(e, &phase{Tool: aggregate, Task: aggregate}).add(e, msg.ToolCall, "call:")
	m.Role, m.Tool.Arguments = msg.RoleAssistant, e.content.Get("context").JSON()
	m.SetAttr("solver_results", conversation.NonZero(e.content.Get("solver_results").Len()))
}

// completed decodes the end of a pipeline. It repeats the results of its parts; only
// calls of the model that no part had are new.
func (l *phases) completed(e *event) {
	(*phase)(nil).statistics(e, e.content.Get("statistics"))
	m := e.notice(msg.Text{})
	m.SetAttr("solver_results", conversation.NonZero(e.content.Get("solver_results").Len()))
	m.SetAttr("metrics", conversation.ShortJSON(e.content.Get("metrics")))
}

// statistics emits the tokens of calls of the model, in a phase or, if p is nil, in the turn:
//
//	[{"id":1,"call_type":"ask","timestamp":"…","input_tokens":352,"output_tokens":210,"origin":"solver","agent":"…","model":"…"}]
//
// Older servers put them into an object with calls, or have nothing but totals. The agents of a
// process share the list: each repeats the calls of all, under its own name, and the end of the
// pipeline repeats all once more.
func (p *phase) statistics(e *event, v jsonv.Value) {
	list, model := v, ident.Of(v.Get("model"))
	if v.Is(jsonv.Object) {
		if list = v.Get("calls"); !list.Is(jsonv.Array) {
			p.usage(e, v, model)
		}
	}
	for c := range list.Elems() {
		p.usage(e, c, cmp.Or(ident.Of(c.Get("model")), model))
	}
}

// usage emits the tokens of one call, unless they were emitted.
func (p *phase) usage(e *event, c jsonv.Value, model string) {
	in, out := c.First("input_tokens", "total_input_tokens"), c.First("output_tokens", "total_output_tokens")
	if !in.Exists() && !out.Exists() {
		return
	}
	response := "llm:" + msg.HashKey(string(c.Get("id").Peek()), string(c.Get("timestamp").Peek()), string(c.Get("call_type").Peek()),
		string(c.Get("total_calls").Peek()), string(in.Peek()), string(out.Peek()))
	agent, callType, origin := ident.Of(c.Get("agent")), ident.Of(c.Get("call_type")), ident.Of(c.Get("origin"))
	at := timeIn(c.Get("timestamp"), time.UTC) // also where the other times are local
	if !e.s.Done.Add(e.hash([]byte(response)), maxDone) {
		return
	}
	m := e.add(msg.Usage, "usage:"+response)
	m.Hidden, m.Model, m.ResponseID = true, model, response
	if p != nil {
		p.set(e, m)
	} else {
		m.Agent.Name = cmp.Or(agent, m.Agent.Name)
	}
	at.Or(e.at).Set(m)
	m.Usage = msg.Tokens{Input: in.Uint(), Output: out.Uint(), Provenance: msg.Provider}
	if c.Get("stream").Bool() { // counted by the agent
		m.Usage.Provenance = msg.Estimated
	}
	m.SetAttr("call_type", callType)
	m.SetAttr("origin", origin)
}

// bind finds the phase that the agent of a memory works on: the only one, or the one whose
// title its first prompt has.
func (l phases) bind(m *memory, prompt string) {
	only := l.only()
	var found []*phase
	for _, p := range l {
		titled := p.Title != "" && strings.Contains(prompt, p.Title) && (p.Agent == "" || p.Agent == m.Agent)
		switch {
		case p.Tool == aggregate:
		case p.Call == m.Phase:
			return
		case p == only || only == nil && titled:
			found = append(found, p)
		}
	}
	if m.Phase = ""; len(found) == 1 {
		m.Phase, found[0].Agent = found[0].Call, m.Agent
	}
}
