package llmmessage

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// planning decodes what the planner of a pipeline does.
func (d *stream) planning(e *event, what string) {
	const task = "plan"
	switch what {
	case "start":
		if q := e.content.Get("question"); q.Exists() && !e.s.Turn.Open {
			d.prompt(e, q.Text())
		}
		e.wake()
		d.waited(e, "")
		e.hand("plan", "planner", e.begins("plan", task, ""), e.content.Get("question").Text())
	case "completed":
		p, _ := e.take("plan", task)
		d.statistics(e, e.content.Get("statistics"), &p)
		summary := e.content.First("plan_summary")
		if !summary.Exists() {
			summary = e.meta.Get("plan_summary")
		}
		e.back("plan", p, "planner", summary.Text(), "stop", false)
		m := e.give(msg.Plan, e.key())
		tasks := e.content.Get("tasks")
		m.Content = tasks.JSON()
		m.SetAttr("tasks", count(tasks.Len()))
		m.SetAttr("plan_summary", excerpt(summary))
		m.SetAttr("metrics", small(e.content.Get("metrics")))
	case "cancelled":
		p, _ := e.take("plan", task)
		e.back("plan", p, "planner", e.why(), "cancelled", true)
	case "coercion_error", "validation_error":
		d.mistake(e, "validation").SetAttr("error", excerpt(e.content.Get("error")))
	default:
		d.step(e)
	}
}

// why is the reason that an event gives.
func (e *event) why() msg.Text {
	for _, v := range [...]jsonv.Value{e.content.Get("reason"), e.meta.Get("reason"), e.content} {
		if v.Is(jsonv.String) {
			return v.Text()
		}
	}
	return msg.Text{}
}

// solving decodes what becomes of one task of the plan.
func (d *stream) solving(e *event, what string) {
	t := e.content.Get("task")
	if !t.Exists() { // of all tasks together, as the documents have it
		d.step(e)
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
	switch what {
	case "start":
		e.wake()
		d.waited(e, "")
		if e.s.phase(task) != nil { // begun anew
			p, _ := e.take("solve", task)
			e.back("solve", p, "solver", msg.Text{}, "cancelled", true)
		}
		p := e.begins("solve", task, title.PeekStr())
		e.s.phase(task).Sum = d.hash(t.Peek())
		e.hand("solve", "solver", p, t.Text())
	case "completed":
		p, _ := e.take("solve", task)
		r := e.content.Get("result")
		p.Agent = ident.Of(r.Get("agent_name"))
		d.statistics(e, r.Get("statistics"), &p)
		text := r.First("summary", "output")
		if !r.Is(jsonv.Object) {
			text = r
		}
		to := p.Agent
		if to == "" {
			to = "solver"
		}
		m := e.back("solve", p, to, text.Text(), "stop", false)
		m.Model = ident.Of(r.Get("model"))
		m.SetAttr("output", small(r.Get("output")))
	case "cancelled":
		p, _ := e.take("solve", task)
		e.back("solve", p, "solver", e.why(), "cancelled", true)
	default:
		m := d.step(e)
		if p := e.s.phase(task); p != nil {
			e.into(m, p)
		}
		m.SetAttr("task_id", ident.OrNumber(t.Get("id")))
	}
}

// step keeps what a pipeline says of its progress.
func (d *stream) step(e *event) *msg.Message {
	if e.name == "solver.step_failed" {
		return d.mistake(e, "agent_error")
	}
	m := e.status()
	m.Content = e.content.Text()
	if e.name == "solver.retry" || e.name == "solver.restarted" {
		m.Signal = msg.Retry
	}
	m.SetAttr("step_id", e.step)
	m.SetAttr("progress_percent", ident.OrNumber(e.meta.Get("progress_percent")))
	d.statistics(e, e.meta.Get("statistics"), nil)
	return m
}

// aggregating decodes how the results of the tasks are put together: a tool of the
// pipeline itself. What it is given was told before.
func (d *stream) aggregating(e *event, what string) {
	if what == "start" {
		e.wake()
		p := e.begins("aggregate", "aggregate", "")
		m := e.give(msg.ToolCall, "call:"+p.Call)
		m.Role, m.Tool = msg.RoleAssistant, msg.Tool{CallID: p.Call, Name: "aggregate", Internal: true}
		m.Tool.Arguments = e.content.Get("context").JSON()
		m.SetAttr("solver_results", count(e.content.Get("solver_results").Len()))
		return
	}
	p, _ := e.take("aggregate", "aggregate")
	m := e.give(msg.ToolResult, "result:"+p.Call)
	m.Role, m.Tool = msg.RoleTool, msg.Tool{CallID: p.Call, Name: "aggregate", Internal: true}
	m.Content = e.content.Get("output").Text()
}

// piped decodes the end of a pipeline. It repeats what was told of its parts; only
// calls of the model that no part has told of are new.
func (d *stream) piped(e *event) {
	d.statistics(e, e.content.Get("statistics"), nil)
	m := e.status()
	m.SetAttr("solver_results", count(e.content.Get("solver_results").Len()))
	m.SetAttr("metrics", small(e.content.Get("metrics")))
}
