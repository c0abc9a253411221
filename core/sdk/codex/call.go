package codex

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// Call is a tool call whose result has not come.
type Call struct {
	conversation.Call
	Run    string `json:",omitempty"`
	Digest string `json:",omitempty"` // of its arguments, where the end of the call repeats them

	End // as far as events have it before the output

	Human      bool   `json:",omitempty"` // a person answers it
	Delegation bool   `json:",omitempty"`
	Spawn      bool   `json:",omitempty"` // it began an agent
	Waits      bool   `json:",omitempty"` // its result is that of the agents
	To         string `json:",omitempty"`
	Child      string `json:",omitempty"` // the thread that it began
	Path       string `json:",omitempty"` // of that thread in the tree
}

// NewCall returns a call of the active run.
func (t *Thread) NewCall(id, name string) *Call {
	return &Call{Call: conversation.Call{ID: id, Name: name}, Run: t.Run}
}

// OpenCall returns the newest call that the protocol names so, an open one first, or a new one of a tool that is not known.
func (t *Thread) OpenCall(id string) *Call {
	if c := t.Calls.Named(id); c != nil {
		return c
	}
	return t.NewCall(id, "")
}

// On makes the message that of the call itself.
func (c *Call) On(m *msg.Message) {
	m.Role = msg.RoleAssistant
	m.Tool.CallID, m.Tool.Name, m.Tool.Server, m.Tool.ProtocolID = c.ID, c.Name, c.Server, c.ProtocolID
	if c.Delegation {
		m.Kind, m.Delegation.To, m.Delegation.Async = msg.Delegation, c.To, !c.Waits
	}
}

// About adds a message that concerns a call, to the run that made the call.
func (t *Thread) About(c *Call, kind msg.Kind, key string) *msg.Message {
	m := t.AddTo(c.Run, kind, key)
	m.ParentKey = "call:" + c.ID
	m.Tool.CallID, m.Tool.Name, m.Tool.Server, m.Tool.ProtocolID = c.ID, c.Name, c.Server, c.ProtocolID
	return m
}

// Wait adds the start or the end of the time for which a call waits for a person.
func (t *Thread) Wait(c *Call, signal msg.Signal) *msg.Message {
	key := "wait:"
	if signal == msg.WaitEnd {
		key = "waited:"
	}
	m := t.About(c, msg.Status, key+c.ID)
	m.Hidden, m.Signal = true, signal
	m.SetAttr("type", "human_wait")
	return m
}

// Result adds the result of a call.
func (t *Thread) Result(c *Call) *msg.Message {
	m := t.About(c, msg.ToolResult, "result:"+c.ID)
	m.Role = msg.RoleTool
	if c.Delegation {
		m.Kind, m.Delegation.To, m.Delegation.Async = msg.DelegationResult, c.To, !c.Waits
	}
	return m
}

// Answered adds the result of a call that began an agent.
func (t *Thread) Answered(c *Call) *msg.Message {
	m := t.Result(c)
	conversation.Causes(m, c.Child)
	return m
}

// Fail makes a result an error of that class.
func Fail(m *msg.Message, class string) { m.IsError, m.Tool.ErrorType = true, class }

// JobID is the correlation id of a call that runs an agent for each row of a table, and of the runs of those agents.
func JobID(job string) string { return spawn.ID(spawn.Codex, "agent_job:"+job) }

// Link adds the fact that a call began a thread.
func (t *Thread) Link(c *Call, child, path, key, typ string) *msg.Message {
	c.Child, c.Path = cmp.Or(c.Child, child), cmp.Or(c.Path, path)
	m := t.About(c, msg.Status, key)
	m.Hidden, m.Delegation.Async = true, true
	if conversation.Causes(m, child); child != "" {
		m.Signal = msg.Link
	}
	m.SetAttr("type", typ)
	m.SetAttr("agent_path", path)
	return m
}

// Answer adds the answer of the agent that has that thread or path, as the result of the call
// that began it. The call is removed, so that the answer is added once, and returned; nil
// when there is no such call. The states are those of Codex: completed, interrupted,
// shutdown, not_found, errored.
func (t *Thread) Answer(who, state string, answer msg.Text) *Call {
	c := t.Calls.Oldest(func(c *Call) bool { return c.Spawn && who != "" && (c.Child == who || c.Path == who) })
	if c == nil {
		return nil
	}
	t.Calls.Remove(c)
	m := t.Answered(c)
	m.Content = answer
	switch state {
	case "completed":
	case "interrupted", "not_found":
		Fail(m, state)
	case "shutdown":
		Fail(m, "cancelled")
	default:
		Fail(m, "tool_error")
	}
	return c
}

// Answers adds the answers in {"<thread>": state} or [{thread_id, status: state}], and returns the calls whose results they are, nil for
// a state that is none.
func (t *Thread) Answers(states jsonv.Value) (answered []*Call) {
	for who, state := range states.Members() {
		answered = append(answered, t.answer(who.String(), state))
	}
	for s := range states.Elems() {
		answered = append(answered, t.AnswerOf(s.Get("thread_id"), s.Get("status")))
	}
	return answered
}

// AnswerOf is Answers for one agent. Its thread counts as read if it has answered.
func (t *Thread) AnswerOf(who, state jsonv.Value) *Call {
	c := t.answer(ident.Peek(who), state)
	if c != nil {
		who.MarkRead()
	}
	return c
}

// answer adds the answer of an agent, if its state is final and a call began it. A state is one of
//
//	"running", "shutdown"
//	{"completed": "answer"}, {"errored": "why"}
//	{"status": "completed", "message": "answer"}   in an item
func (t *Thread) answer(who string, v jsonv.Value) *Call {
	state, text := jsonv.Word(v, "shutdown", "not_found"), v.Get("message")
	if status := v.Get("status"); status.Exists() {
		state = Snake(status.PeekStr())
	}
	for _, final := range [...]string{"completed", "errored"} {
		if said := v.Get(final); !said.Is(jsonv.Missing) {
			state, text = final, said
		}
	}
	if state == "" || state == "running" || state == "pending_init" {
		return nil
	}
	v.Get("message").Str() // which another record may have
	c := t.Answer(who, state, msg.Plain(text.PeekStr()))
	if c != nil && text.Is(jsonv.String) {
		text.MarkRead()
	}
	return c
}

// Files adds messages for the files that a call changed: [{path, kind: add | {type: add}, diff?}],
// or {"<path>": {type, content | unified_diff, move_path}} in transcripts.
func (t *Thread) Files(callID string, changes jsonv.Value) {
	for f := range changes.Elems() {
		kind := f.Get("kind")
		if kind.Is(jsonv.Object) {
			kind = kind.Get("type")
		}
		t.file(callID, f.Get("path").Str(), f, f.Get("diff"), kind)
	}
	for path, f := range changes.Members() {
		if f.Is(jsonv.Object) {
			t.file(callID, path.String(), f, f.First("unified_diff", "content"), f.Get("type"))
		}
	}
}

func (t *Thread) file(callID, path string, f, content, change jsonv.Value) {
	if path == "" {
		return
	}
	key := "file:" + callID + ":" + path
	if len(path) > ident.Max {
		key = "file:" + callID + ":" + msg.HashKey(path)
		path = strings.ToValidUTF8(path[len(path)-ident.Max:], "")
	}
	m := t.Add(msg.File, key)
	m.Tool.CallID = callID
	m.Content = content.Text()
	m.Attachments = append(m.Attachments, media.File(path))
	m.SetAttr("change", ident.Of(change))
	SetIDs(m, f, "move_path")
}

// Tool returns the name of a tool of an MCP server, as the model calls it.
func Tool(v jsonv.Value) (name, server string) {
	server = ident.Of(v.Get("server"))
	return "mcp__" + server + "__" + ident.Of(v.Get("tool")), server
}

// End is how a call ended, as an item or an event of its end has it.
type End struct {
	Exit    string `json:",omitempty"` // code of a command
	Failed  bool   `json:",omitempty"`
	Refused bool   `json:",omitempty"` // by a person, or by a rule
}

// Add adds the facts of a later record.
func (e *End) Add(o End) {
	e.Exit, e.Failed, e.Refused = cmp.Or(o.Exit, e.Exit), e.Failed || o.Failed, e.Refused || o.Refused
}

// EndOf reads the end of a call and its output. The members, of which each kind of call has some, are
//
//	{status, success, aggregated_output | formatted_output | stdout, exit_code}  a command
//	{status, success, stdout, stderr, changes}                                  a patch
//	{status, result: {content} | {Ok: {content}} | {Err: "…"}, error: {message}} a tool of an MCP server
//	{success, content_items, error: "…"}                                        a tool of the client
func EndOf(v jsonv.Value) (e End, output jsonv.Value) {
	status := v.Get("status")
	output = v.First("aggregated_output", "aggregatedOutput", "formatted_output", "stdout", "result", "content_items", "contentItems")
	e = End{
		Exit:    v.First("exit_code", "exitCode").Digits(),
		Failed:  status.Equal("failed") || v.Get("success").Is(jsonv.False),
		Refused: status.Equal("declined"),
	}
	if e.Failed && v.Get("changes").Exists() && len(v.Get("stderr").Escaped()) > 0 {
		output = v.Get("stderr")
	}
	if ok := output.Get("Ok"); ok.Exists() {
		output = ok
	}
	fault := v.Get("error")
	if fault.Is(jsonv.Object) {
		fault = fault.Get("message")
	}
	for _, why := range [...]jsonv.Value{output.Get("Err"), fault} {
		if why.Exists() {
			e.Failed, output = true, why
			break
		}
	}
	e.Failed = e.Failed || output.First("isError", "is_error").Bool()
	return e, output
}

// On makes a result an error if the call failed.
func (e End) On(m *msg.Message) {
	m.SetAttr("exit_code", e.Exit)
	switch {
	case e.Refused:
		Fail(m, "denied")
	case e.Failed, e.Exit != "" && e.Exit != "0":
		Fail(m, "tool_error")
	}
}
