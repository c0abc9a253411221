package llmmessage

import (
	"cmp"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// A pipeline makes calls of its own, internal ones: of the planner, of a solver for each task of the plan, and
// of the aggregation of the results. All but the last are phases: an agent works on them, in a run of its own,
// which has the id of the call.

// isPhase reports whether an agent works on a call of a pipeline.
func (c *call) isPhase() bool { return c.Task != "" && c.To != "" }

// inPhase reports whether a phase is open.
func (s *session) inPhase() bool { return s.Calls.Oldest((*call).isPhase) != nil }

// child is the place of the messages of a phase.
func (c *call) child() place { return place{Run: c.ID, Parent: c.Run, Agent: c.Worker} }

// place is the place of messages of the agents: of a snapshot, where its memory belongs; of an event, which names no
// agent, the phase that is open, if there is just one.
func (d *stream) place() place {
	s, of := d.s, d.of
	c, isOne := bounded.Only(s.Calls.Open, (*call).isPhase)
	switch {
	case of != nil && of.Phase != "":
		return place{of.Phase, s.Turn.Run, cmp.Or(of.Agent, s.Agent)}
	case of != nil:
		return place{Run: cmp.Or(d.run, s.Turn.Run), Agent: cmp.Or(of.Agent, s.Agent)}
	case isOne:
		return c.child()
	}
	return s.turnPlace()
}

// active is the open call of a task, nil when there is none.
func (s *session) active(task string) *call {
	return s.Calls.Oldest(func(c *call) bool { return c.Task == task })
}

// start opens a call of a pipeline. One that is made again has a number.
func (c *call) start(d *stream) *call {
	c.ID, c.place, c.Begin = d.s.Emitted.emit(d.s.Turn.Run+"/"+c.Task), d.s.turnPlace(), evidence{Event: true, At: d.At}
	d.s.Calls.Add(c)
	return c
}

// end closes the call of the same task. One that is not open has no beginning.
func (c *call) end(d *stream) *call {
	c = cmp.Or(d.s.active(c.Task), c)
	if c.ID == "" {
		c.start(d)
	}
	d.s.Calls.Remove(c)
	c.place, c.Result = d.s.turnPlace(), evidence{Event: true, At: d.At}
	return c
}

// begin opens a phase: it emits the delegation and the beginning of its run. One that is begun again has broken off.
func (c *call) begin(d *stream, task msg.Text) {
	d.ensureTurn()
	d.endWaits("")
	if d.s.active(c.Task) != nil {
		c.end(d).finish(d, msg.Text{}, "cancelled")
	}
	c.start(d).emit(d, msg.Delegate{To: c.To, Task: task}, msg.Text{}).SetAttr("title", c.Title)
	m := record.Hide(d.addTo(c.child(), msg.Status, "start:"+c.ID), d.name)
	m.Signal, m.ParentCall, m.Delegation.Link, m.Agent.Name = msg.RunStart, c.ID, msg.ByNativeID, c.To
}

// finish emits the end of the run of a phase and the result of the delegation. class is that of its error, empty if it
// did not fail.
func (c *call) finish(d *stream, text msg.Text, class string) *msg.Message {
	m := d.addTo(c.child(), msg.Stop, "end:"+c.ID)
	m.Hidden, m.Signal, m.FinishReason, m.IsError = true, msg.RunEnd, cmp.Or(class, "stop"), class != ""
	c.Result.Class = class
	return c.emitResult(d, text)
}

// plan decodes the beginning and the end of the planner's work.
func plan(d *stream) {
	c := &call{Call: conversation.Call{Name: "plan"}, Task: "plan", To: "planner"}
	switch d.action() {
	case "start":
		question := d.content.Get("question")
		if question.Exists() && !d.s.Turn.Open {
			d.prompt(question.Text())
		}
		c.begin(d, question.Text())
	case "completed":
		c = c.end(d)
		d.statistics(c.child(), d.content.Get("statistics"))
		summary := jsonv.Or(d.content.Get("plan_summary"), d.meta.Get("plan_summary"))
		c.finish(d, summary.Text(), "")
		m, tasks := d.add(msg.Plan, d.key()), d.content.Get("tasks")
		m.Content = tasks.JSON()
		m.SetAttr("tasks", conversation.NonZero(tasks.Len()))
		m.SetAttr("plan_summary", conversation.Excerpt(summary))
		m.SetAttr("metrics", conversation.ShortJSON(d.content.Get("metrics")))
	default:
		c.end(d).finish(d, d.reason(), "cancelled")
	}
}

// reason is the event's reason.
func (d *stream) reason() msg.Text {
	for _, v := range [...]jsonv.Value{d.content.Get("reason"), d.meta.Get("reason"), d.content} {
		if v.Is(jsonv.String) {
			return v.Text()
		}
	}
	return msg.Text{}
}

// solver decodes an event of one task of the plan.
func solver(d *stream) {
	t := d.content.Get("task")
	if !t.Exists() { // of all tasks together, as the documents have it
		progress(d)
		return
	}
	id, title := ident.OrNumber(t.Get("id")), t.First("title", "name", "objective", "description")
	c := &call{Call: conversation.Call{Name: "solve"}, Task: "task:" + id, To: "solver", Sum: conversation.SumOf(t.Peek())}
	c.Title = conversation.Cut(title.PeekStr(), ident.Max)
	if id == "" {
		c.Task += msg.HashKey(string(t.Peek()))[:16]
	}
	active := d.s.active(c.Task)
	if active != nil {
		title.Equal(active.Title)
		active.Sum.Repeats(t)
	}
	switch d.action() {
	case "start":
		c.begin(d, t.Text())
	case "completed":
		c = c.end(d)
		r := d.content.Get("result")
		c.Worker = ident.Of(r.Get("agent_name"))
		c.To = cmp.Or(c.Worker, c.To)
		d.statistics(c.child(), r.Get("statistics"))
		text := r
		if r.Is(jsonv.Object) {
			text = r.First("summary", "output")
		}
		m := c.finish(d, text.Text(), "")
		m.Model = ident.Of(r.Get("model"))
		m.SetAttr("output", conversation.ShortJSON(r.Get("output")))
	case "cancelled":
		c.end(d).finish(d, d.reason(), "cancelled")
	default:
		m := progress(d)
		if active != nil {
			active.child().set(m)
		}
		m.SetAttr("task_id", id)
	}
}

// progress emits a pipeline's notice of its progress.
func progress(d *stream) *msg.Message {
	if d.name == "solver.step_failed" {
		return d.addError("agent_error")
	}
	d.statistics(d.s.turnPlace(), d.meta.Get("statistics"))
	m := d.notice(d.content.Text(), "progress_percent")
	if d.name == "solver.retry" || d.name == "solver.restarted" {
		m.Signal = msg.Retry
	}
	m.SetAttr("step_id", d.step)
	return m
}

// aggregation decodes the aggregation of the tasks' results. Its input was emitted before.
func aggregation(d *stream) {
	c := &call{Call: conversation.Call{Name: "aggregate"}, Task: "aggregate"}
	if d.action() == "completed" {
		c.end(d).emitResult(d, d.content.Get("output").Text())
		return
	}
	d.ensureTurn()
	m := c.start(d).emit(d, msg.Delegate{}, d.content.Get("context").JSON())
	m.SetAttr("solver_results", conversation.NonZero(d.content.Get("solver_results").Len()))
}

// statistics emits the tokens of the calls of the model that were not emitted before, in a phase or in the turn:
//
//	[{"id":1,"call_type":"ask","timestamp":"…","input_tokens":352,"output_tokens":210,"origin":"solver","agent":"…","model":"…"}]
//
// Older servers put them into an object with calls, or have nothing but totals. The agents of a
// process share the list: each repeats the calls of all, under its own name, and the end of the
// pipeline repeats all once more.
func (d *stream) statistics(p place, v jsonv.Value) {
	list, model := v, ident.Of(v.Get("model"))
	if calls := v.Get("calls"); calls.Is(jsonv.Array) {
		list = calls
	}
	for u := range jsonv.Each(list) {
		own := ident.Of(u.Get("model"))
		in, out := u.First("input_tokens", "total_input_tokens"), u.First("output_tokens", "total_output_tokens")
		if !in.Exists() && !out.Exists() {
			continue
		}
		response := "llm:" + msg.HashKey(string(u.Get("id").Peek()), string(u.Get("timestamp").Peek()), string(u.Get("call_type").Peek()),
			string(u.Get("total_calls").Peek()), string(in.Peek()), string(out.Peek()))
		agent, callType, origin := ident.Of(u.Get("agent")), ident.Of(u.Get("call_type")), ident.Of(u.Get("origin"))
		at := timeIn(u.Get("timestamp"), time.UTC) // also where the other times are local
		if !d.s.Emitted.once(response) {
			continue
		}
		m := d.addTo(p, msg.Usage, "usage:"+response)
		if p.Run == d.s.Turn.Run {
			m.Agent.Name = cmp.Or(agent, p.Agent)
		}
		m.Hidden, m.Model, m.ResponseID = true, cmp.Or(own, model), response
		at.Or(d.At).Set(m)
		m.Usage = msg.Tokens{Input: in.Uint(), Output: out.Uint(), Provenance: msg.Provider}
		if u.Get("stream").Bool() { // counted by the agent
			m.Usage.Provenance = msg.Estimated
		}
		m.SetAttr("call_type", callType)
		m.SetAttr("origin", origin)
	}
}

// bind finds the phase that the agent of a memory works on: the only one, or the one whose
// title its first prompt has.
func (s *session) bind(l *memory, items []item) {
	if s.Calls.GetOpen(l.Phase) != nil {
		return
	}
	l.Phase = ""
	c, found := bounded.Only(s.Calls.Open, (*call).isPhase)
	if !found && len(items) > 0 {
		prompt := items[0].Get("content").PeekStr()
		c, found = bounded.Only(s.Calls.Open, func(c *call) bool {
			return c.isPhase() && c.Title != "" && strings.Contains(prompt, c.Title) && (c.Worker == "" || c.Worker == l.Agent)
		})
	}
	if found {
		l.Phase, c.Worker = c.ID, l.Agent
	}
}
