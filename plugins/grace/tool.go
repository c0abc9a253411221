package grace

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// call is a tool call: two messages.
type call struct {
	conversation.Call
	Task     string `json:",omitempty"`
	Unnamed  bool   `json:",omitempty"` // without a uuid: its result is the next of its kind
	Internal bool   `json:",omitempty"` // it writes the agent's list of things to do
	First    string `json:",omitempty"` // hash of the message that began it
	Last     string `json:",omitempty"` // hash of its result
}

// mark makes the message one of the call.
func (c *call) mark(m *msg.Message) *msg.Message {
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal = c.ID, c.Name, c.Internal
	return m
}

// tools are the actions that are known to be tools, so that a call without a uuid is one.
var tools = map[string]bool{
	"write_code": true, "write_file": true, "patch_code": true, "replace_code_block": true, "read_file": true, "terminal_run": true,
	"browser": true, "web_search": true, "document_query": true, "document_upload": true, "mcp_tool": true, "search": true, "file": true,
	"terminal": true, "todo": true, "evaluation": true,
}

// tool decodes one of the two messages of a tool call, and keeps an object of no known action.
func (r *message) tool() {
	if r.action == "" || r.status == "" || r.uuid == "" && !tools[r.action] {
		m := r.keepRaw(cmp.Or(r.action, "none"), r.v.Raw())
		m.Run = r.Turn.Run
		r.at.Set(m)
		return
	}
	c, h := r.call(), r.hash()
	switch {
	case c == nil:
		c = r.startCall()
	case h == c.First, h == c.Last: // some versions send it twice
		for _, v := range [...]jsonv.Value{r.v, r.meta, r.json} {
			v.MarkRead()
		}
		return
	case c.Last != "", r.running(): // neither its beginning nor its result
		m := record.Hide(r.addFor(msg.Status, r.id()), r.action)
		m.Content, m.Tool.CallID = r.content(), r.uuid
		r.setStatus(m)
		return
	}
	if !r.running() {
		c.Last = h
		r.Calls.End(c)
		r.addResult(c)
	}
}

// call finds the call to which the message belongs.
func (r *message) call() *call {
	if r.uuid != "" {
		return r.Calls.Get(r.uuid)
	}
	h := r.hash()
	if c := r.Calls.Find(func(c *call) bool { return c.First == h || c.Last == h }); c != nil {
		return c
	}
	return r.Calls.Oldest(func(c *call) bool {
		return c.Unnamed && c.Name == r.action && c.Task == r.task && r.status != "running"
	})
}

// startCall emits the call that the message begins or reports as a whole. Its arguments are the
// parameters that the model wrote, if its text was on the stream, and else the message's
// description of them: a path, a command, a query.
func (r *message) startCall() *call {
	c := &call{Call: conversation.Call{ID: r.uuid, Name: r.action}, Task: r.task, Unnamed: r.uuid == "", First: r.hash()}
	path := r.get("filepath")
	c.Internal = r.action == "write_code" && (r.v.Get("content").Equal("todo.md") || bytes.HasSuffix(path.Peek(), []byte(`/todo.md"`)))
	if c.Unnamed {
		c.ID = r.action + ":" + r.hash()
	}
	m := c.add(r, msg.ToolCall, "call:")
	if args, ok := r.Intents.take(r.action); ok {
		m.Tool.Arguments = msg.Plain(args)
	} else if r.running() {
		m.Tool.Arguments = r.v.Get("content").JSON()
	} else if len(path.Peek()) > 2 {
		m.Tool.Arguments = path.JSON()
	}
	r.Calls.Add(c)
	return c
}

// addResult emits the result of a call, and the text of a file that it wrote.
func (r *message) addResult(c *call) {
	m := c.add(r, msg.ToolResult, "result:")
	m.Role = msg.RoleTool
	m.Content = r.content()
	if r.markFailed(m); m.IsError {
		m.Tool.ErrorType = "tool_error"
	}
	path := r.get("filepath")
	m.SetAttr("filepath", brief(path))
	m.SetAttr("url", brief(r.get("url")))
	if r.json.Is(jsonv.Array) || r.json.Is(jsonv.Object) {
		m.SetAttr("json", short(r.json))
		m.SetAttr("results", conversation.NonZero(r.json.Len()))
	}
	if text, name := r.meta.Get("content"), path.PeekStr(); name != "" && len(text.Peek()) > 2 && text.Is(jsonv.String) {
		m := c.add(r, msg.File, "file:")
		m.Content = text.Text()
		m.Attachments = []msg.Attachment{{Name: conversation.Cut(base(name), ident.Max), Size: int64(m.Content.Len()), URL: conversation.Cut(name, maxGoal)}}
	}
}

// add adds a message of the call. The agent's own list of things to do belongs to the turn,
// although it carries the task that was just done.
func (c *call) add(r *message, kind msg.Kind, key string) *msg.Message {
	task := r.task
	if c.Internal {
		r.task = ""
	}
	m := c.mark(r.addFor(kind, key+c.ID))
	if m.Hidden = c.Internal; c.Internal {
		m.SetAttr("task_id", task)
	}
	r.task = task
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

// setTitle adds the title of a task to a message about it.
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
	r.Plan.setTitle(m, r.task)
	switch {
	case r.task == "", r.running():
	case r.status == "pause_for_user_input":
		m.Signal = msg.RunPause
	case r.status == "revise_plan":
		m.SetAttr("mode", ident.Of(r.json.Get("mode")))
		m.SetAttr("reason", brief(r.json.Get("reason")))
		tasks := r.json.Get("tasks")
		if tasks.Is(jsonv.Array) {
			m.SetAttr("tasks", conversation.ShortJSON(tasks))
		}
		r.Plan = r.Plan.with(tasks, nil)
	default:
		m.Signal, m.FinishReason = msg.RunEnd, r.status
		if r.failed() {
			m.IsError, r.Turn.Failed = true, true
		}
		r.endTask(r.failed())
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

// endTask emits the result of the delegation of the task.
func (r *message) endTask(failed bool) {
	t := r.Plan.task(r.task)
	if t == nil || !t.Begun || t.Ended {
		return
	}
	t.Ended = true
	m := t.add(r, msg.DelegationResult, "result:")
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
