package grace

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// task is one item of the plan.
type task struct {
	ID    string
	Title string `json:",omitempty"`
}

// childRun is the run of a task: each is worked on in a loop of its own, with a
// memory of its own. Numbers of tasks come again in the next turn.
func childRun(turn, task string) string { return turn + "/" + task }

// plan decodes a plan, and the plan that is taken up again:
//
//	json: [{"id":"1760985720_0001","title":"…","description":"…","requirement":"…","status":"pending"}]
func (d *stream) plan(r *record) {
	list := inside(&d.other, r.get("json"))
	m := d.say(r, msg.Plan, r.id())
	switch {
	case list.Is(jsonv.Array):
		m.Content = list.JSON()
	default:
		m.Content = r.content()
	}
	n := 0
	d.Tasks = nil
	for v := range list.Elems() {
		n++
		if t := (task{id(v.Get("id")), cut(first(v, "title", "requirement", "description").Str(), maxIdent)}); t.ID != "" && len(d.Tasks) < maxTasks {
			d.Tasks = append(d.Tasks, t)
		}
	}
	m.SetAttr("tasks", count(n))
	if r.action == "continue" {
		m.SetAttr("continued", "true")
	}
	mark(m, r)
}

// closes decodes the end of a task, or why it waits.
func (d *stream) closes(r *record) {
	m := d.say(r, msg.Task, r.id())
	m.Content = r.content()
	m.SetAttr("status", r.status)
	json := inside(&d.other, r.get("json"))
	m.SetAttr("comments", cut(first(json, "comments").Text().String(), maxGoal))
	if r.task == "" {
		return
	}
	d.describe(m, r.task)
	switch r.status {
	case "pause_for_user_input":
		m.Signal = msg.RunPause
	case "revise_plan":
		m.SetAttr("mode", ident(json.Get("mode")))
		m.SetAttr("reason", cut(json.Get("reason").Str(), maxGoal))
		m.Attrs = appendPlan(m.Attrs, json.Get("tasks"))
	case "running", "pending":
	default:
		m.Signal, m.FinishReason = msg.RunEnd, r.status
		if failed(r.status) {
			m.IsError, d.Turn.Failed = true, true
		}
	}
}

// appendPlan adds the tasks of a revised plan, if they are few.
func appendPlan(attrs []msg.Attr, tasks jsonv.Value) []msg.Attr {
	if raw := tasks.Raw(); tasks.Is(jsonv.Array) && len(raw) <= maxAttr {
		attrs = append(attrs, msg.Attr{Key: "tasks", Value: string(raw)})
	}
	return attrs
}

// describe adds what the plan says of a task.
func (d *stream) describe(m *msg.Message, id string) {
	for _, t := range d.Tasks {
		if t.ID == id {
			m.SetAttr("title", t.Title)
			return
		}
	}
}
