package llmmessage

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// plan decodes an event of a pipeline's planner.
func (d *stream) plan(e *event, action string) {
	const task = "plan"
	switch action {
	case "start":
		if q := e.content.Get("question"); q.Exists() && !e.s.Turn.Open {
			d.prompt(e, q.Text())
		}
		e.ensureTurn()
		d.endWaits(e, "")
		e.addDelegation("plan", "planner", e.startPhase("plan", task, ""), e.content.Get("question").Text())
	case "completed":
		p, _ := e.endPhase("plan", task)
		d.addStatistics(e, e.content.Get("statistics"), &p)
		summary := e.content.First("plan_summary")
		if !summary.Exists() {
			summary = e.meta.Get("plan_summary")
		}
		e.addDelegationResult("plan", p, "planner", summary.Text(), "stop", false)
		m := e.add(msg.Plan, e.key())
		tasks := e.content.Get("tasks")
		m.Content = tasks.JSON()
		m.SetAttr("tasks", nonZero(tasks.Len()))
		m.SetAttr("plan_summary", excerpt(summary))
		m.SetAttr("metrics", shortJSON(e.content.Get("metrics")))
	case "cancelled":
		p, _ := e.endPhase("plan", task)
		e.addDelegationResult("plan", p, "planner", e.reason(), "cancelled", true)
	case "coercion_error", "validation_error":
		d.addError(e, "validation").SetAttr("error", excerpt(e.content.Get("error")))
	default:
		d.addProgress(e)
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
func (d *stream) solver(e *event, action string) {
	t := e.content.Get("task")
	if !t.Exists() { // of all tasks together, as the documents have it
		d.addProgress(e)
		return
	}
	task := "task:" + ident.OrNumber(t.Get("id"))
	if task == "task:" {
		task += msg.HashKey(string(t.Peek()))[:16]
	}
	title := t.First("title", "name", "objective", "description")
	if p := e.s.phase(task); p != nil {
		title.Equal(p.Title)
		if d.hash(t.Peek()) == p.Sum {
			t.MarkRead()
		}
	}
	switch action {
	case "start":
		e.ensureTurn()
		d.endWaits(e, "")
		if e.s.phase(task) != nil { // started again
			p, _ := e.endPhase("solve", task)
			e.addDelegationResult("solve", p, "solver", msg.Text{}, "cancelled", true)
		}
		p := e.startPhase("solve", task, title.PeekStr())
		e.s.phase(task).Sum = d.hash(t.Peek())
		e.addDelegation("solve", "solver", p, t.Text())
	case "completed":
		p, _ := e.endPhase("solve", task)
		r := e.content.Get("result")
		p.Agent = ident.Of(r.Get("agent_name"))
		d.addStatistics(e, r.Get("statistics"), &p)
		text := r.First("summary", "output")
		if !r.Is(jsonv.Object) {
			text = r
		}
		to := p.Agent
		if to == "" {
			to = "solver"
		}
		m := e.addDelegationResult("solve", p, to, text.Text(), "stop", false)
		m.Model = ident.Of(r.Get("model"))
		m.SetAttr("output", shortJSON(r.Get("output")))
	case "cancelled":
		p, _ := e.endPhase("solve", task)
		e.addDelegationResult("solve", p, "solver", e.reason(), "cancelled", true)
	default:
		m := d.addProgress(e)
		if p := e.s.phase(task); p != nil {
			e.setPhase(m, p)
		}
		m.SetAttr("task_id", ident.OrNumber(t.Get("id")))
	}
}

// addProgress emits a pipeline's notice of its progress.
func (d *stream) addProgress(e *event) *msg.Message {
	if e.name == "solver.step_failed" {
		return d.addError(e, "agent_error")
	}
	m := e.status()
	m.Content = e.content.Text()
	if e.name == "solver.retry" || e.name == "solver.restarted" {
		m.Signal = msg.Retry
	}
	m.SetAttr("step_id", e.step)
	m.SetAttr("progress_percent", ident.OrNumber(e.meta.Get("progress_percent")))
	d.addStatistics(e, e.meta.Get("statistics"), nil)
	return m
}

// aggregate decodes the aggregation of the tasks' results, a tool of the pipeline itself. Its
// input was emitted before.
func (d *stream) aggregate(e *event, action string) {
	if action == "start" {
		e.ensureTurn()
		p := e.startPhase("aggregate", "aggregate", "")
		m := e.add(msg.ToolCall, "call:"+p.Call)
		m.Role, m.Tool = msg.RoleAssistant, msg.Tool{CallID: p.Call, Name: "aggregate", Internal: true}
		m.Tool.Arguments = e.content.Get("context").JSON()
		m.SetAttr("solver_results", nonZero(e.content.Get("solver_results").Len()))
		return
	}
	p, _ := e.endPhase("aggregate", "aggregate")
	m := e.add(msg.ToolResult, "result:"+p.Call)
	m.Role, m.Tool = msg.RoleTool, msg.Tool{CallID: p.Call, Name: "aggregate", Internal: true}
	m.Content = e.content.Get("output").Text()
}

// pipelineCompleted decodes the end of a pipeline. It repeats the results of its parts; only
// calls of the model that no part had are new.
func (d *stream) pipelineCompleted(e *event) {
	d.addStatistics(e, e.content.Get("statistics"), nil)
	m := e.status()
	m.SetAttr("solver_results", nonZero(e.content.Get("solver_results").Len()))
	m.SetAttr("metrics", shortJSON(e.content.Get("metrics")))
}
