// Package copilot decodes the event log of GitHub Copilot CLI, session-state/<id>/events.jsonl.
//
// Facts of the format that are easy to get wrong:
//
//   - parentId is the record before: a chain, not a tree.
//   - A turn of the protocol is one response of the model; a turn of the person is an
//     interaction, whose id all of its records have. turnId begins at 0 in each.
//   - The records of a sub-agent have its agentId, or parentToolCallId, the id of the call that began
//     it. Both were the same once. Its prompt is a user.message of the source agent-<id>.
//   - A message has its output tokens only. The other classes are in session.shutdown,
//     cumulative for each model over all agents, and in newer versions over resumed runs; a
//     block of records may be written twice. inputTokens has the cached ones. Versions of autumn 2026 have
//     session.usage_record before each message, with all classes, and no tokens in the message.
//   - A command that has run is a success to the program, with each exit code.
//   - tool.execution_start repeats the call of the message, hooks repeat prompts, calls and
//     results, and promptRequest the permissionRequest.
package copilot

import (
	"cmp"
	_ "embed"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name:       "copilot",
			Revision:   8,
			Summary:    "Event logs of GitHub Copilot CLI.",
			Transports: []frame.Kind{frame.Line},
		},
		LeavesOut: leavesOut,
		State:     1,
		Open: func(r *record.Current, s *state) record.Reader {
			r.Origin = sessionOf(r.Origin)
			return &stream{Current: r, state: s}
		},
	}.Factory()
}

// sessionOf returns the session that a path names: <session>/events.jsonl, or <session>.jsonl.
func sessionOf(path string) string {
	p := ident.PathOf(path)
	if dir := p.Dir(); dir != "" && strings.HasPrefix(p.File, "events.") {
		return dir
	}
	return p.Name(".")
}

const (
	maxLanes  = 64
	maxModels = 64
	maxSeen   = 4096
)

// stream decodes the log of one session.
type stream struct {
	*record.Current
	*state

	data    jsonv.Value
	typ, id string
	lane    *lane
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Session string                    `json:",omitempty"`
	Client  msg.Client                `json:",omitzero"`
	Lanes   []*lane                   `json:",omitempty"` // the one used last at the end
	Calls   conversation.Calls[*call] `json:",omitzero"`
	Waits   conversation.Waits        `json:",omitempty"`
	Seen    bounded.Set[string]       `json:",omitzero"`  // records
	Counted []counted                 `json:",omitempty"` // the tokens of usage messages
	Totals  conversation.Counts       `json:",omitzero"`  // of all models, of the last record that has them
	Before  conversation.Counts       `json:",omitzero"`  // the same, when the program was resumed
	Turns   int                       `json:",omitempty"` // interactions since the last totals
	Turn    string                    `json:",omitempty"` // the last of them
}

// lane is an agent: the main one, whose id is empty, or a sub-agent.
type lane struct {
	ID    string `json:",omitempty"`
	Name  string `json:",omitempty"`
	Model string `json:",omitempty"`
	Last  string `json:",omitempty"` // the last message of the model
	Calls bool   `json:",omitempty"` // it has calls
	Ahead int64  `json:",omitempty"` // output tokens of messages that assistant.usage has not had yet
	// Thought is the thought of the last message, Early one that came before its message.
	Thought conversation.Sum `json:",omitempty"`
	Early   conversation.Sum `json:",omitempty"`
	// Response is the last response of the model, and Output its output tokens so far.
	Response string `json:",omitempty"`
	Output   int64  `json:",omitempty"`
	Run      conversation.Run

	Counted []counted `json:",omitempty"` // its tokens that usage messages have
}

// call is a tool call.
type call struct {
	conversation.Delegation
	Lane  string           `json:",omitempty"`
	Run   string           `json:",omitempty"`
	Input conversation.Sum `json:",omitempty"`
}

// counted are the tokens of a model that usage messages have.
type counted struct {
	Model string `json:",omitempty"`
	conversation.Counts
	Leg conversation.Counts `json:",omitzero"` // those since the program was resumed
}

// Read decodes one record: {type, data, id, timestamp, parentId, agentId?}.
func (d *stream) Read() {
	d.data = d.Root.Get("data")
	d.typ, d.id, d.At = d.Root.Get("type").Str(), ident.Of(d.Root.Get("id")), conversation.TimeOf(d.Root.Get("timestamp"))
	if d.id == "" {
		d.id = "record:" + msg.HashKey(d.typ, string(d.Root.Get("timestamp").Peek()), string(d.data.Peek()))
	}
	switch {
	case d.typ == "result" && !d.data.Exists():
		d.enter("")
		d.printed()
	case !d.data.Is(jsonv.Object) || d.typ == "":
		d.unknown()
	case !d.Seen.Add(d.id, maxSeen):
		d.Root.MarkRead() // written twice
	default:
		if d.typ == "session.start" {
			d.Session = cmp.Or(d.Session, ident.Peek(d.data.Get("sessionId")))
		}
		parent := d.data.Get("parentToolCallId")
		d.enter(ident.First(d.Root.Get("agentId"), parent))
		if !ident.Is(parent, d.lane.ID) { // newer agents have ids of their own
			d.caused(parent)
		}
		if !d.record() {
			d.unknown()
		}
	}
}

// caused puts the lane below the call that caused it, if it is known.
func (d *stream) caused(call jsonv.Value) {
	if c := d.Calls.Get(ident.Peek(call)); c != nil {
		call.MarkRead()
		d.lane.Name = cmp.Or(d.lane.Name, c.To)
		d.lane.Run.Caused(c.Run, c.ID, msg.ByNativeID, 0)
	}
}

func (d *stream) session() string { return cmp.Or(d.Session, d.Origin, "unknown") }

// In returns the session.
func (d *stream) In() (session, run string) { return d.session(), "" }

func (d *stream) unknown() { d.Unknown(d.typ, d.Root, d.id) }

// enter makes a lane that of the record.
func (d *stream) enter(id string) {
	d.lane = bounded.Use(&d.Lanes, maxLanes, func(l *lane) bool { return l.ID == id }, func() *lane {
		l := &lane{ID: id}
		if id != "" {
			l.Run = conversation.Run{ID: id, Child: true}
			if c := d.Calls.Get(id); c != nil {
				l.Name = c.To
				l.Run.Caused(c.Run, c.ID, msg.ByNativeID, 0)
			}
		}
		return l
	}, nil)
}

// add adds a message of the lane's run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	m.Agent.Name = d.lane.Name
	if d.lane.Run.Active() && d.lane.Run.Mark(m) {
		m.Client = d.Client
	}
	return m
}

// status adds a message that a user would not see.
func (d *stream) status(key string) *msg.Message { return record.Hide(d.add(msg.Status, key), d.typ) }

// signal sets the signal of a message, unless it begins the run.
func signal(m *msg.Message, s msg.Signal) {
	if m.Signal == msg.NoSignal && m.Run != "" {
		m.Signal = s
	}
}

// stop ends the lane's run.
func (d *stream) stop(reason string) *msg.Message {
	m := record.Hide(d.add(msg.Stop, "stop:"+d.id), d.typ)
	m.FinishReason, m.IsError = reason, reason != "stop"
	if d.lane.Run.Active() {
		d.lane.Run.End(m)
	}
	return m
}
