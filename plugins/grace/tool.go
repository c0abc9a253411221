package grace

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// call is a tool call: two messages.
type call struct {
	conversation.Call
	Task     string `json:",omitempty"`
	Internal bool   `json:",omitempty"` // it writes the agent's list of things to do
	First    string `json:",omitempty"` // hash of the message that began it
	Last     string `json:",omitempty"` // hash of its result
}

// tool decodes one of the two messages of a tool call, and keeps an object of no known action. The agent's own list of
// things to do belongs to the turn, although it carries the task that was just done.
func (r *message) tool() {
	if r.status == "" || r.uuid == "" && !r.rule.tool {
		r.Unknown(r.action, r.v)
		return
	}
	c := r.call()
	if c.Internal {
		r.about, r.task = r.task, ""
	}
	switch {
	case c.First == "":
		c.First = r.hash
		r.startCall(c)
	case r.hash == c.First, r.hash == c.Last: // some versions send it twice
		for _, v := range [...]jsonv.Value{r.v, r.meta, r.json} {
			v.MarkRead()
		}
		return
	case c.Last != "", r.running: // neither its beginning nor its result
		m := record.Hide(r.addFor(msg.Status, "message:"+r.hash), r.action)
		m.Content, m.Tool.CallID = r.content.Text(), r.uuid
		r.setStatus(m)
		return
	}
	if !r.running {
		c.Last = r.hash
		r.Calls.End(c)
		r.addResult(c)
	}
}

// call finds the call to which the message belongs, or begins one. Without a uuid the result is the next of its kind.
func (r *message) call() *call {
	c := r.Calls.Get(r.uuid)
	if r.uuid == "" {
		c = r.Calls.Find(func(c *call) bool { return c.First == r.hash || c.Last == r.hash })
	}
	if c == nil && r.uuid == "" && r.status != "running" {
		c = r.Calls.Oldest(func(c *call) bool { return c.ID == r.action+":"+c.First && c.Task == r.task })
	}
	if c == nil {
		c = &call{Call: conversation.Call{ID: cmp.Or(r.uuid, r.action+":"+r.hash), Name: r.action}, Task: r.task}
		path := r.get("filepath").Peek()
		c.Internal = r.action == "write_code" && (r.content.Equal("todo.md") || bytes.HasSuffix(path, []byte(`/todo.md"`)))
		r.Calls.Add(c)
	}
	return c
}

// startCall emits the call that the message begins or reports as a whole. Its arguments are the
// parameters that the model wrote, if its text was on the stream, and else the message's
// description of them: a path, a command, a query.
func (r *message) startCall(c *call) {
	m := r.addTool(c, msg.ToolCall, "call:")
	wrote, ok := bounded.Take(&r.Intents, func(a intent) bool { return a.Name == r.action })
	switch path := r.get("filepath"); {
	case ok:
		m.Tool.Arguments = msg.Plain(wrote.Args)
	case r.running:
		m.Tool.Arguments = r.content.JSON()
	case len(path.Peek()) > 2:
		m.Tool.Arguments = path.JSON()
	}
}

// addResult emits the result of a call, and the text of a file that it wrote.
func (r *message) addResult(c *call) {
	m := r.addTool(c, msg.ToolResult, "result:")
	m.Role, m.Content = msg.RoleTool, r.content.Text()
	r.markFailed(m)
	conversation.Failed(m, r.failed)
	path := r.get("filepath")
	m.SetAttr("filepath", brief(path))
	m.SetAttr("url", brief(r.get("url")))
	m.SetAttr("json", short(r.json))
	m.SetAttr("results", conversation.NonZero(r.json.Len()))
	if text, name := r.meta.Get("content"), path.PeekStr(); name != "" && len(text.Peek()) > 2 && text.Is(jsonv.String) {
		m := r.addTool(c, msg.File, "file:")
		file := media.File(conversation.Cut(name, maxGoal))
		m.Content, file.Size = text.Text(), int64(text.Text().Len())
		m.Attachments = []msg.Attachment{file}
	}
}

// addTool adds a message of the call.
func (r *message) addTool(c *call, kind msg.Kind, key string) *msg.Message {
	m := r.addFor(kind, key+c.ID)
	c.On(m)
	m.Hidden, m.Tool.Internal = c.Internal, c.Internal
	return m
}

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

// name is the name of the agent that works on the task.
func (t *task) name() string { return cmp.Or(t.Title, t.ID) }

// task returns the task with that id, or nil.
func (p plan) task(id string) *task {
	for i := range p {
		if id != "" && p[i].ID == id {
			return &p[i]
		}
	}
	return nil
}

// learn adds the tasks of a list that are new.
func (p *plan) learn(list jsonv.Value) {
	for v := range list.Elems() {
		if id := ident.PeekOrNumber(v.Get("id")); id != "" && p.task(id) == nil {
			*p = bounded.Push(*p, task{
				ID: id, Title: conversation.Cut(v.First("title", "requirement", "description").PeekStr(), ident.Max),
				Text: conversation.Cut(v.First("requirement", "description", "title").PeekStr(), maxGoal),
			}, maxTasks)
		}
	}
}

// isTask reports whether an id is that of a task. Some messages name a task where others
// name the conversation. A task that no plan names has the form <unix seconds>_<number>.
func (d *stream) isTask(id string) bool {
	seconds, number, ok := strings.Cut(id, "_")
	return d.Plan.task(id) != nil || ok && len(seconds) == 10 && len(number) >= 4 && strings.Trim(seconds+number, "0123456789") == ""
}

// plan decodes a plan, and the plan that is taken up again:
//
//	json: [{"id":"1760985720_0001","title":"…","description":"…","requirement":"…","status":"pending"}]
func (r *message) plan() {
	m := r.addFor(msg.Plan, "message:"+r.hash)
	if r.json.Is(jsonv.Array) {
		m.Content = r.json.JSON()
		m.SetAttr("text", brief(r.content))
	} else {
		m.Content = r.content.Text()
	}
	r.Plan.learn(r.json)
	m.SetAttr("tasks", conversation.NonZero(r.json.Len()))
	if r.action == "continue" {
		m.SetAttr("continued", "true")
	}
	r.markFailed(m)
}

// taskStatus decodes the end of a task, or the reason for which it waits.
func (r *message) taskStatus(m *msg.Message) {
	r.setTask(m)
	switch {
	case r.task == "", r.running:
	case r.status == "pause_for_user_input":
		m.Signal = msg.RunPause
	case r.status == "revise_plan":
		m.SetAttr("mode", ident.Of(r.json.Get("mode")))
		m.SetAttr("reason", brief(r.json.Get("reason")))
		tasks := r.json.Get("tasks")
		if tasks.Is(jsonv.Array) {
			m.SetAttr("tasks", conversation.ShortJSON(tasks))
		}
		r.Plan.learn(tasks)
	default:
		r.Turn.Failed = r.Turn.Failed || r.failed
		r.endRun(m, r.status, r.failed)
	}
}

// setTask adds to m a record's facts of its task.
func (r *message) setTask(m *msg.Message) {
	r.setStatus(m)
	m.SetAttr("comments", brief(r.json.Get("comments")))
	if t := r.Plan.task(r.task); t != nil {
		m.SetAttr("title", t.Title)
	}
}

// endRun makes m the end of the task, whose delegation then has its result, or of the turn.
func (r *message) endRun(m *msg.Message, reason string, failed bool) {
	if r.task == "" {
		r.end(m, reason, failed)
		return
	}
	m.Signal, m.FinishReason, m.IsError = msg.RunEnd, reason, failed
	if t := r.Plan.task(r.task); t != nil && !t.Ended {
		t.Ended = true
		m := r.addTask(t, msg.DelegationResult, "result:")
		if m.Content, m.IsError = r.content.Text(), failed; failed {
			m.Tool.ErrorType = "agent_error"
		}
	}
}

// endTasks ends the tasks of a turn that ends, of which no message has ended: the answer comes after all of them, and GRACE sends
// no task messages.
func (r *message) endTasks(reason string) {
	failed := reason != "stop"
	for i := range r.Plan {
		t := &r.Plan[i]
		if !t.Begun || t.Ended {
			continue
		}
		t.Ended = true
		m := r.addToTurn(msg.Stop, "ended:"+r.Turn.Run+"/"+t.ID)
		m.Run, m.ParentRun, m.Delegation.Link, m.Agent.Name = r.Turn.Run+"/"+t.ID, r.Turn.Run, msg.ByParent, t.name()
		m.Hidden, m.Signal, m.FinishReason, m.IsError = true, msg.RunEnd, reason, failed
		if m = r.addTask(t, msg.DelegationResult, "result:"); failed {
			m.IsError, m.Tool.ErrorType = true, reason
		}
	}
}

// addTask adds a message of the delegation of a task: the agent runs each task of its plan in a loop of its own, with a
// memory of its own, which begins with the first message that names the task. Numbers of tasks come again in the next turn.
func (r *message) addTask(t *task, kind msg.Kind, key string) *msg.Message {
	child := r.Turn.Run + "/" + t.ID
	m := r.addToTurn(kind, key+child)
	m.Hidden = true
	m.Tool.CallID, m.Tool.ProtocolID, m.Tool.Name, m.Tool.Internal = child, t.ID, "task", true
	m.Delegation.To, m.Delegation.ChildRun, m.Delegation.Link = t.name(), child, msg.ByParent
	m.SetAttr("task_id", t.ID)
	return m
}
