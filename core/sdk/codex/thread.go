// Package codex reads threads of Codex. A thread is a conversation of one agent; its
// sub-agents are threads of their own. Several formats have the same threads, and each is a
// Framing: the transcripts of the CLI, the events of codex exec --json, the messages of
// codex app-server. A framing reads its records; the common parts are here:
//
//   - Thread adds the messages of a thread, the ends of its runs, its errors and its tokens among them, and keeps its
//     State.
//   - Call is a tool call without a result; the answer of an agent that a call began is
//     the result of that call (Answer), and the states of agents have it (Answers).
//   - Item is an item of a thread, which has the same members in each framing, in other
//     spellings; Thread.Item adds its messages.
//   - End is how a call ended, by an item or by an event of its end.
package codex

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
	"github.com/earshot-dev/earshot/core/sdk/record"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// State is the memory of a thread.
type State struct {
	ID      string `json:",omitempty"` // of the thread
	Session string `json:",omitempty"` // the thread that leads the tree
	Parent  string `json:",omitempty"` // the thread that spawned this one
	Child   bool   `json:",omitempty"`
	Name    string `json:",omitempty"` // of a sub-agent
	Job     string `json:",omitempty"` // for which it works: a table with an agent for each row
	Manual  bool   `json:",omitempty"` // a person began it, at a terminal or in an editor

	Provider string     `json:",omitempty"` // of its model
	Model    string     `json:",omitempty"`
	Dir      string     `json:",omitempty"` // in which it works
	Client   msg.Client `json:",omitzero"`

	Run     string `json:",omitempty"` // the active one
	Started string `json:",omitempty"` // the last run whose start was emitted

	Total conversation.Counts       `json:",omitzero"` // tokens of the thread so far, as Codex counts them
	Outer conversation.Counts       `json:",omitzero"` // Total before it began again from zero
	Calls conversation.Calls[*Call] `json:",omitzero"` // without a result
}

// Below makes the thread that of a sub-agent, which has one run for all its turns. The session is that of its parent
// unless the thread names one.
func (s *State) Below(parent, session string) {
	s.Parent, s.Child, s.Run = parent, true, s.ID
	s.Session = cmp.Or(s.Session, session, parent)
}

// Thread adds the messages of a thread.
type Thread struct {
	*record.Current // Origin names a thread that does not name itself
	*State
}

// SessionID returns the session: the thread that leads the tree.
func (t *Thread) SessionID() string { return cmp.Or(t.Session, t.ID, t.Origin, "unknown") }

// Add adds a message to the active run.
func (t *Thread) Add(kind msg.Kind, key string) *msg.Message { return t.AddTo(t.Run, kind, key) }

// AddTo adds a message to a run. The first message of the active run starts it.
func (t *Thread) AddTo(run string, kind msg.Kind, key string) *msg.Message {
	m := t.Out.Add()
	m.Kind, m.Key, m.Complete = kind, key, msg.Complete
	m.Session, m.Run = t.SessionID(), run
	t.At.Set(m)
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
func (s *State) start(m *msg.Message) {
	m.Signal, m.Client = msg.RunStart, s.Client
	switch {
	case s.Child && s.Parent != "" && s.Parent != s.Session:
		m.ParentRun, m.Delegation.Link = s.Parent, msg.ByParent
	case s.Child:
		if m.ParentRun = msg.UnknownRun; s.Job != "" {
			m.Delegation.CorrelationID = JobID(s.Job)
		}
	case !s.Manual:
		m.Delegation.CorrelationID = spawn.ID(spawn.Codex, s.ID)
	}
}

// Prompt adds a message for the words of a person, or of the agent that leads a sub-agent.
func (t *Thread) Prompt(key string) *msg.Message {
	m := t.Add(msg.User, key)
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
	if t.Child {
		m.Agent.Kind = msg.KindAgent
	}
	return m
}

// Asked puts the text of a prompt, with which a run begins, into m.
func (t *Thread) Asked(m *msg.Message, text msg.Text) {
	m.Content = text
	if !t.Child && !t.Manual {
		m.Delegation.CorrelationPrompt = spawn.Prompt(spawn.Codex, t.Dir, text.String())
	}
}

// Fault adds an error: {message, codex_error_info}. One after which Codex tries again is a status.
func (t *Thread) Fault(key string, v jsonv.Value, again bool) *msg.Message {
	m := t.Add(msg.Error, key)
	m.IsError = true
	fault(m, v)
	if again {
		m.Kind, m.IsError, m.Hidden, m.Signal = msg.Status, false, true, msg.Retry
	}
	return m
}

// fault puts the text and the class of an error into m. The class is a string, or an object of one member:
//
//	"usage_limit_exceeded"
//	{"http_connection_failed": {"http_status_code": 502}}
func fault(m *msg.Message, v jsonv.Value) {
	class := v.First("codex_error_info", "codexErrorInfo")
	m.Content, m.Tool.ErrorType = v.Get("message").Text(), ident.Of(class)
	for name := range class.Members() {
		m.Tool.ErrorType = ident.Bounded(name.String())
	}
}

// The reasons for which a run ends. Any other one interrupts it.
const (
	Stopped = "stop"
	Failed  = "error"
)

// Stop adds the end of a run. If it failed, it has the error, and a user sees it.
func (t *Thread) Stop(run, key, reason string, err jsonv.Value) *msg.Message {
	m := t.AddTo(run, msg.Stop, "stop:"+key)
	m.Signal, m.FinishReason = msg.RunEnd, reason
	m.Hidden, m.IsError = reason != Failed, reason != Stopped
	if reason == Failed {
		fault(m, err)
	}
	return m
}

// Usage adds the tokens of a response, or of a turn, as Codex counts them.
func (t *Thread) Usage(run, key string, c conversation.Counts, p msg.Provenance) *msg.Message {
	m := t.AddTo(run, msg.Usage, "usage:"+key)
	m.Hidden, m.Model, m.Provider, m.Usage = true, t.Model, t.Provider, openai.Tokens(c, p)
	return m
}

// Status adds a message that is hidden from users.
func (t *Thread) Status(key, typ string) *msg.Message {
	return record.Hide(t.Add(msg.Status, key), typ)
}

// Unknown keeps a record as it is. It starts no run.
func (t *Thread) Unknown(hash, typ string, root jsonv.Value) {
	started := t.Started
	t.Started = t.Run
	m := t.Add(msg.Unknown, "unknown:"+hash)
	t.Started = started
	m.Hidden, m.Content = true, root.JSON()
	m.SetAttr("type", cmp.Or(typ, "none"))
}

// Grow sets the total of the thread and returns the difference to the one before. A total
// that is lower in a class than the one before has begun again from zero. That of a review
// does so, which is a thread of its own in the records of the one that asked for it; the
// total of that one, as it was before the review, follows with the next compaction or limits
// of the account.
func (t *Thread) Grow(total conversation.Counts) conversation.Counts {
	grown, ok := total.Sub(t.Total)
	if !ok {
		grown = total
	}
	switch _, higher := t.Total.Sub(t.Outer); {
	case total == t.Outer:
		grown = conversation.Counts{}
	case !ok && higher:
		t.Outer = t.Total
	}
	t.Total = total
	return grown
}

// SetIDs sets members that are ids or names as attributes.
func SetIDs(m *msg.Message, v jsonv.Value, names ...string) {
	conversation.AttrsAs(m, v, ident.Of, names...)
}

// Provider is the provider of a thread's model by the name of the GenAI conventions.
func Provider(v jsonv.Value) string {
	switch name := ident.Of(v); name {
	case "azure":
		return "azure.ai.openai"
	case "amazon-bedrock":
		return "aws.bedrock"
	default:
		return name
	}
}
