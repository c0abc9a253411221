// Package codex holds the concepts that the two formats of Codex share: the transcript of a
// thread, which the CLI keeps, and the events of codex exec --json. A thread is a
// conversation of one agent; its sub-agents are threads of their own. A decoder embeds
// Thread, reads the records of its format, and adds messages through it.
package codex

import (
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// State is the part of a decoder's state that both formats have.
type State struct {
	ID      string `json:",omitempty"` // of the thread
	Session string `json:",omitempty"` // the thread that leads the tree
	Parent  string `json:",omitempty"` // the thread that spawned this one
	Child   bool   `json:",omitempty"`
	Name    string `json:",omitempty"` // of a sub-agent
	Manual  bool   `json:",omitempty"` // a person began it, at a terminal or in an editor

	Run     string `json:",omitempty"` // the active one
	Started string `json:",omitempty"` // the last run whose start was emitted

	Total conversation.Counts       `json:",omitzero"` // tokens of the thread so far, as Codex counts them
	Calls conversation.Calls[*Call] `json:",omitzero"` // without a result
}

// Thread adds the messages of a thread.
type Thread struct {
	State
	Origin string // names a thread that does not name itself

	Out *decoder.Output   // of the current record
	At  conversation.Time // of the current record
}

// SessionID returns the session: the thread that leads the tree.
func (t *Thread) SessionID() string {
	for _, id := range [...]string{t.Session, t.ID, t.Origin} {
		if id != "" {
			return id
		}
	}
	return "unknown"
}

// Add adds a message to the active run.
func (t *Thread) Add(kind msg.Kind, key string) *msg.Message { return t.AddTo(t.Run, kind, key) }

// AddTo adds a message to a run. The first message of the active run starts it.
func (t *Thread) AddTo(run string, kind msg.Kind, key string) *msg.Message {
	m := t.Out.Add()
	m.Kind, m.Key = kind, key
	m.Session, m.Run = t.SessionID(), run
	t.At.Set(m)
	m.Complete = msg.Complete
	m.Agent = msg.Agent{Name: "codex", Kind: msg.KindAgent}
	if t.Child {
		m.Agent.ID, m.Agent.Name = t.ID, t.Name
	}
	if run != "" && run == t.Run && run != t.Started {
		t.Started = run
		t.start(m)
	}
	return m
}

// start makes a message the start of a run. The parent of a child is a turn of another
// thread; the id of that thread is a run only if it is a child itself.
func (t *Thread) start(m *msg.Message) {
	m.Signal = msg.RunStart
	switch {
	case t.Child && t.Parent != "" && t.Parent != t.Session:
		m.ParentRun, m.Delegation.Link = t.Parent, msg.ByParent
	case t.Child:
		m.ParentRun = msg.UnknownRun
	case !t.Manual:
		m.Delegation.CorrelationID = spawn.ID(spawn.Codex, t.ID)
	}
}

// Status adds a message that is hidden from users.
func (t *Thread) Status(key, typ string) *msg.Message {
	m := t.Add(msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// Unknown keeps a record as it is. It starts no run.
func (t *Thread) Unknown(hash, typ string, root jsonv.Value) {
	if typ == "" {
		typ = "none"
	}
	started := t.Started
	t.Started = t.Run
	m := t.Add(msg.Unknown, "unknown:"+hash)
	t.Started = started
	m.Hidden, m.Content = true, root.JSON()
	m.SetAttr("type", typ)
}

// File adds a message for a file that a call changed.
func (t *Thread) File(callID, path string, content, change jsonv.Value) *msg.Message {
	key := "file:" + callID + ":" + path
	if len(path) > ident.Max {
		key = "file:" + callID + ":" + msg.HashKey(path)
		path = strings.ToValidUTF8(path[len(path)-ident.Max:], "")
	}
	m := t.Add(msg.File, key)
	m.Tool.CallID = callID
	m.Content = content.Text()
	m.Attachments = append(m.Attachments, msg.Attachment{Name: path[strings.LastIndexAny(path, `/\`)+1:], URL: path})
	m.SetAttr("change", ident.Of(change))
	return m
}

// Call is a tool call whose result has not come.
type Call struct {
	conversation.Call
	Server string `json:",omitempty"`
	Run    string `json:",omitempty"`
	Digest string `json:",omitempty"` // of its arguments, where the end of the call repeats them

	// Facts of its end that events have before its output comes.
	Exit    string `json:",omitempty"`
	Failed  bool   `json:",omitempty"`
	Refused bool   `json:",omitempty"`

	Human      bool   `json:",omitempty"` // a person answers it
	Delegation bool   `json:",omitempty"`
	Spawn      bool   `json:",omitempty"` // it began an agent
	To         string `json:",omitempty"`
	Child      string `json:",omitempty"` // the thread that it began
	Path       string `json:",omitempty"` // of that thread in the tree
}

// NewCall returns a call of the active run.
func (t *Thread) NewCall(id, name string) *Call {
	return &Call{Call: conversation.Call{ID: id, Name: name}, Run: t.Run}
}

// About adds a message that concerns a call, to the run that made the call.
func (t *Thread) About(c *Call, kind msg.Kind, key string) *msg.Message {
	m := t.AddTo(c.Run, kind, key)
	m.ParentKey = "call:" + c.ID
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, c.Name, c.Server
	return m
}

// Result adds the result of a call.
func (t *Thread) Result(c *Call) *msg.Message {
	kind := msg.ToolResult
	if c.Delegation {
		kind = msg.DelegationResult
	}
	m := t.About(c, kind, "result:"+c.ID)
	m.Role = msg.RoleTool
	if c.Delegation {
		m.Delegation.To, m.Delegation.Async = c.To, true
	}
	return m
}

// Fail makes a result an error of that class.
func Fail(m *msg.Message, class string) { m.IsError, m.Tool.ErrorType = true, class }

// Link adds the fact that a call began a thread.
func (t *Thread) Link(c *Call, child, path, key, typ string) *msg.Message {
	if c.Child == "" {
		c.Child = child
	}
	if c.Path == "" {
		c.Path = path
	}
	m := t.About(c, msg.Status, key)
	m.Hidden, m.Delegation.Async = true, true
	if child != "" {
		m.Signal = msg.Link
		m.Delegation.ChildRun, m.Delegation.Link = child, msg.ByNativeID
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

// Answered adds the result of a call that began an agent.
func (t *Thread) Answered(c *Call) *msg.Message {
	m := t.About(c, msg.DelegationResult, "result:"+c.ID)
	m.Role = msg.RoleTool
	m.Delegation = msg.Delegate{To: c.To, ChildRun: c.Child, Async: true}
	if c.Child != "" {
		m.Delegation.Link = msg.ByNativeID
	}
	return m
}

// Grow sets the total of the thread and returns the difference to the one before. A total
// that is lower in a class than the one before has begun again from zero.
func (t *Thread) Grow(total conversation.Counts) conversation.Counts {
	grown, ok := total.Sub(t.Total)
	if !ok {
		grown = total
	}
	t.Total = total
	return grown
}

// Name returns the name of a file without its directories and its ending.
func Name(path, ending string) string {
	path = strings.ToValidUTF8(path, "\uFFFD") // a path need not be text, but an id must be
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if i := strings.Index(name, ending); i > 0 {
		name = name[:i]
	}
	return name
}
