package grace

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// plan is the list of the turn's tasks.
type plan []task

// task is one item of the plan.
type task struct {
	ID    string
	Title string `json:",omitempty"`
	Text  string `json:",omitempty"` // its requirement
	Begun bool   `json:",omitempty"` // it was delegated
	Ended bool   `json:",omitempty"` // its result was emitted
}

// setTitle adds the title of a task.
func (p plan) setTitle(m *msg.Message, id string) {
	if t := p.task(id); t != nil {
		m.SetAttr("title", t.Title)
	}
}

// name is the name of the agent that works on the task.
func (t *task) name() string { return cmp.Or(t.Title, t.ID) }

// childRun is the run of a task: each is worked on in a loop of its own, with a
// memory of its own. Numbers of tasks come again in the next turn.
func childRun(turn, task string) string { return turn + "/" + task }

// task returns the task with that id, or nil.
func (p plan) task(id string) *task {
	for i := range p {
		if id != "" && p[i].ID == id {
			return &p[i]
		}
	}
	return nil
}

// isTask reports whether an id is that of a task. Some messages name a task where others
// name the conversation. A task that no plan names has the form <unix seconds>_<number>.
func (p plan) isTask(id string) bool {
	seconds, number, ok := strings.Cut(id, "_")
	return p.task(id) != nil || ok && len(seconds) == 10 && len(number) >= 4 && strings.Trim(seconds+number, "0123456789") == ""
}

// with returns the plan with the tasks of a list, and their state in an earlier plan.
func (p plan) with(list jsonv.Value, earlier plan) plan {
	for v := range list.Elems() {
		t := task{
			ID: ident.PeekOrNumber(v.Get("id")), Title: conversation.Cut(v.First("title", "requirement", "description").PeekStr(), ident.Max),
			Text: conversation.Cut(v.First("requirement", "description", "title").PeekStr(), maxGoal),
		}
		if t.ID == "" || len(p) == maxTasks || p.task(t.ID) != nil {
			continue
		}
		if known := earlier.task(t.ID); known != nil {
			t.Begun, t.Ended = known.Begun, known.Ended
		}
		p = append(p, t)
	}
	return p
}

// plan decodes a plan, and the plan that is taken up again:
//
//	json: [{"id":"1760985720_0001","title":"…","description":"…","requirement":"…","status":"pending"}]
func (r *message) plan() {
	m := r.addFor(msg.Plan, r.id())
	if r.json.Is(jsonv.Array) {
		m.Content = r.json.JSON()
		m.SetAttr("text", brief(r.v.Get("content")))
	} else {
		m.Content = r.content()
	}
	r.Plan = plan(nil).with(r.json, r.Plan)
	m.SetAttr("tasks", conversation.NonZero(r.json.Len()))
	if r.action == "continue" {
		m.SetAttr("continued", "true")
	}
	r.markFailed(m)
}

// taskStatus decodes the end of a task, or the reason for which it waits.
func (r *message) taskStatus() {
	m := r.addFor(msg.Task, r.id())
	m.Content = r.content()
	r.setStatus(m)
	m.SetAttr("comments", brief(r.json.Get("comments")))
	switch {
	case r.task == "", r.running():
		r.Plan.setTitle(m, r.task)
	case r.status == "pause_for_user_input":
		r.Plan.setTitle(m, r.task)
		m.Signal = msg.RunPause
	case r.status == "revise_plan":
		r.Plan.setTitle(m, r.task)
		m.SetAttr("mode", ident.Of(r.json.Get("mode")))
		m.SetAttr("reason", brief(r.json.Get("reason")))
		tasks := r.json.Get("tasks")
		if raw := tasks.Peek(); tasks.Is(jsonv.Array) && len(raw) <= conversation.MaxAttr {
			tasks.MarkRead()
			m.SetAttr("tasks", string(raw))
		}
		r.Plan = r.Plan.with(tasks, nil)
	default:
		m.Signal, m.FinishReason = msg.RunEnd, r.status
		if r.failed() {
			m.IsError, r.Turn.Failed = true, true
		}
		r.endTask(m, r.failed())
	}
}

// delegate emits the delegation of a task, once: the agent runs each task of its plan in a
// loop of its own, which begins with the first message that names the task.
func (r *message) delegate() {
	if t := r.Plan.task(r.task); t != nil && !t.Begun {
		t.Begun = true
		m := t.add(r, msg.Delegation, "call:")
		m.Delegation.Task = msg.Plain(t.Text)
	}
}

// endTask adds the title of the task to the message m of its end, and emits the result of the
// delegation.
func (r *message) endTask(m *msg.Message, failed bool) {
	r.Plan.setTitle(m, r.task)
	t := r.Plan.task(r.task)
	if t == nil || !t.Begun || t.Ended {
		return
	}
	t.Ended = true
	m = t.add(r, msg.DelegationResult, "result:")
	if m.Content, m.IsError = r.content(), failed; failed {
		m.Tool.ErrorType = "agent_error"
	}
}

// add adds a message of the delegation of the task.
func (t *task) add(r *message, kind msg.Kind, key string) *msg.Message {
	child := childRun(r.Turn.Run, t.ID)
	m := r.addToTurn(kind, key+child)
	r.at.Set(m)
	m.Hidden = true
	m.Tool.CallID, m.Tool.ProtocolID, m.Tool.Name, m.Tool.Internal = child, t.ID, "task", true
	m.Delegation.To, m.Delegation.ChildRun, m.Delegation.Link = t.name(), child, msg.ByParent
	m.SetAttr("task_id", t.ID)
	return m
}
