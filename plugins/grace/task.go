package grace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// task is one item of the plan.
type task struct {
	ID    string
	Title string `json:",omitempty"`
	Text  string `json:",omitempty"` // its requirement
	Begun bool   `json:",omitempty"` // it was delegated
	Ended bool   `json:",omitempty"` // its result was emitted
}

// name is the name of the agent that works on the task.
func (t *task) name() string { return cmp.Or(t.Title, t.ID) }

// childRun is the run of a task: each is worked on in a loop of its own, with a
// memory of its own. Numbers of tasks come again in the next turn.
func childRun(turn, task string) string { return turn + "/" + task }

// plan decodes a plan, and the plan that is taken up again:
//
//	json: [{"id":"1760985720_0001","title":"…","description":"…","requirement":"…","status":"pending"}]
func (d *stream) plan(r *record) {
	list := r.json
	m := d.addFor(r, msg.Plan, r.id())
	switch {
	case list.Is(jsonv.Array):
		m.Content = list.JSON()
		m.SetAttr("text", brief(r.v.Get("content")))
	default:
		m.Content = r.content()
	}
	known := d.Tasks
	d.Tasks = nil
	d.tasks(list, known)
	m.SetAttr("tasks", nonZero(list.Len()))
	if r.action == "continue" {
		m.SetAttr("continued", "true")
	}
	markFailed(m, r)
}

// tasks adds the tasks of a list to the plan, with the state of those that the earlier plan
// had.
func (d *stream) tasks(list jsonv.Value, known []task) {
	of := func(tasks []task, id string) int {
		return slices.IndexFunc(tasks, func(t task) bool { return t.ID == id })
	}
	for v := range list.Elems() {
		t := task{
			ID: ident.PeekOrNumber(v.Get("id")), Title: cut(v.First("title", "requirement", "description").PeekStr(), ident.Max),
			Text: cut(v.First("requirement", "description", "title").PeekStr(), maxGoal),
		}
		if t.ID == "" || len(d.Tasks) == maxTasks || of(d.Tasks, t.ID) >= 0 {
			continue
		}
		if at := of(known, t.ID); at >= 0 {
			t.Begun, t.Ended = known[at].Begun, known[at].Ended
		}
		d.Tasks = append(d.Tasks, t)
	}
}

// task returns the task of the plan with that id, or nil.
func (d *stream) task(id string) *task {
	for i := range d.Tasks {
		if id != "" && d.Tasks[i].ID == id {
			return &d.Tasks[i]
		}
	}
	return nil
}

// isTask reports whether an id is that of a task. Some messages name a task where others
// name the conversation. A task that no plan names has the form <unix seconds>_<number>.
func (d *stream) isTask(id string) bool {
	if d.task(id) != nil {
		return true
	}
	seconds, number, ok := strings.Cut(id, "_")
	return ok && len(seconds) == 10 && len(number) >= 4 && digits(seconds) && digits(number)
}

func digits(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' }) < 0
}

// addDelegation emits the delegation of a task, once: the agent runs each task of its plan in a
// loop of its own, which begins with the first message that names the task.
func (d *stream) addDelegation(r *record) {
	t := d.task(r.task)
	if t == nil || t.Begun {
		return
	}
	t.Begun = true
	m := d.addToDelegation(r, t, msg.Delegation, "call:")
	m.Delegation.Task = msg.Plain(t.Text)
}

// addDelegationResult emits the result of a delegated task.
func (d *stream) addDelegationResult(r *record, failed bool) {
	t := d.task(r.task)
	if t == nil || !t.Begun || t.Ended {
		return
	}
	t.Ended = true
	m := d.addToDelegation(r, t, msg.DelegationResult, "result:")
	m.Content, m.IsError = r.content(), failed
	if failed {
		m.Tool.ErrorType = "agent_error"
	}
}

func (d *stream) addToDelegation(r *record, t *task, kind msg.Kind, key string) *msg.Message {
	child := childRun(d.Turn.Run, t.ID)
	m := d.addMessage(r.out, kind, key+child)
	m.Hidden = true
	m.Time, m.Precision = r.at.Time, r.at.Precision
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal = child, "task", true
	m.Delegation.To, m.Delegation.ChildRun, m.Delegation.Link = t.name(), child, msg.ByParent
	m.SetAttr("task_id", t.ID)
	return m
}

// taskStatus decodes the end of a task, or the reason for which it waits.
func (d *stream) taskStatus(r *record) {
	m := d.addFor(r, msg.Task, r.id())
	m.Content = r.content()
	r.setStatus(m)
	json := r.json
	m.SetAttr("comments", brief(json.Get("comments")))
	if r.task == "" {
		return
	}
	d.setTitle(m, r.task)
	switch r.status {
	case "pause_for_user_input":
		m.Signal = msg.RunPause
	case "revise_plan":
		m.SetAttr("mode", ident.Of(json.Get("mode")))
		m.SetAttr("reason", brief(json.Get("reason")))
		m.Attrs = appendPlan(m.Attrs, json.Get("tasks"))
		d.tasks(json.Get("tasks"), nil)
	case "running", "pending":
	default:
		m.Signal, m.FinishReason = msg.RunEnd, r.status
		if failed(r.status) {
			m.IsError, d.Turn.Failed = true, true
		}
		d.addDelegationResult(r, failed(r.status))
	}
}

// appendPlan adds the tasks of a revised plan, if they are few.
func appendPlan(attrs []msg.Attr, tasks jsonv.Value) []msg.Attr {
	if raw := tasks.Peek(); tasks.Is(jsonv.Array) && len(raw) <= maxAttr {
		tasks.MarkRead()
		attrs = append(attrs, msg.Attr{Key: "tasks", Value: string(raw)})
	}
	return attrs
}

// setTitle adds the task's title from the plan.
func (d *stream) setTitle(m *msg.Message, id string) {
	if t := d.task(id); t != nil {
		m.SetAttr("title", t.Title)
	}
}
