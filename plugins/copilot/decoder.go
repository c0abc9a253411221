// Package copilot decodes the event log of GitHub Copilot CLI, session-state/<id>/events.jsonl.
//
// Facts of the format that are easy to get wrong:
//
//   - parentId is the record before: a chain, not a tree.
//   - A turn of the protocol is one response of the model; a turn of the person is an
//     interaction, whose id all of its records have. turnId begins at 0 in each.
//   - The records of a sub-agent have its agentId, or parentToolCallId, both as a rule the id of
//     the call that began it. Its prompt is a user.message of the source agent-<id>.
//   - A message has its output tokens only. The other classes are in session.shutdown,
//     cumulative for each model over all agents and over resumed runs; a block of records may be
//     written twice. inputTokens has the cached ones.
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
	"github.com/earshot-dev/earshot/core/sdk/snapshot"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// unread keeps the members that the decoder did not read.
var unread = unknown.NewKeeper(leavesOut)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory { return factory{} }

type factory struct{}

func (factory) Info() decoder.Info {
	return decoder.Info{
		Name:       "copilot",
		Version:    "1.0.0",
		Revision:   2,
		Summary:    "Event logs of GitHub Copilot CLI.",
		Transports: []frame.Kind{frame.Line},
	}
}

// New returns a decoder for one stream. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	return &stream{origin: origin(s.Origin)}, conversation.NoOptions("copilot", s.Options)
}

// origin returns the session that a path names: <session>/events.jsonl, or <session>.jsonl.
func origin(path string) string {
	parts := strings.FieldsFunc(strings.ToValidUTF8(path, "\uFFFD"), func(r rune) bool { return r == '/' || r == '\\' })
	if n := len(parts); n > 1 && strings.HasPrefix(parts[n-1], "events.") {
		return parts[n-2]
	} else if n > 0 {
		name, _, _ := strings.Cut(parts[n-1], ".")
		return name
	}
	return ""
}

const (
	stateVersion = 1
	maxLanes     = 64
	maxModels    = 64
	maxWaits     = 64
	maxSeen      = 4096
)

// stream decodes the log of one session.
type stream struct {
	doc    jsonv.Doc
	origin string
	state

	root, data jsonv.Value
	typ, id    string
	at         conversation.Time
	lane       *lane
	out        *decoder.Output
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Session string                    `json:",omitempty"`
	Client  msg.Client                `json:",omitzero"`
	Lanes   []*lane                   `json:",omitempty"` // the one used last at the end
	Calls   conversation.Calls[*call] `json:",omitzero"`
	Waits   []wait                    `json:",omitempty"`
	Seen    bounded.Set[string]       `json:",omitzero"`  // records
	Counted []counted                 `json:",omitempty"` // the tokens of usage messages
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
	Run   conversation.Run
}

// call is a tool call.
type call struct {
	conversation.Call
	Lane   string           `json:",omitempty"`
	Run    string           `json:",omitempty"`
	Server string           `json:",omitempty"`
	Input  conversation.Sum `json:",omitempty"`
	To     string           `json:",omitempty"` // the agent that works
	Child  string           `json:",omitempty"` // its run
	Async  bool             `json:",omitempty"`
	Task   bool             `json:",omitempty"`
}

// wait is a question to a person that has no answer.
type wait struct{ ID, Run, Call string }

// counted are the tokens of a model that usage messages have.
type counted struct {
	Model string `json:",omitempty"`
	conversation.Counts
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error { return snapshot.Restore(stateVersion, b, &d.state) }

// Flush has nothing to emit: every record is whole.
func (d *stream) Flush(*decoder.Output) error { return nil }

// Decode decodes one record: {type, data, id, timestamp, parentId, agentId?}.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		return nil
	}
	root, ok := conversation.ParseObject(&d.doc, f.Data, out)
	if !ok {
		return nil
	}
	before := len(out.Messages)
	d.root, d.data, d.out = root, root.Get("data"), out
	d.typ, d.id, d.at = root.Get("type").Str(), ident.Of(root.Get("id")), conversation.TimeOf(root.Get("timestamp"))
	if d.id == "" {
		d.id = "record:" + msg.HashKey(d.typ, string(root.Get("timestamp").Peek()), string(d.data.Peek()))
	}
	switch {
	case !d.data.Is(jsonv.Object) || d.typ == "":
		d.unknown()
	case !d.Seen.Add(d.id, maxSeen):
		root.MarkRead() // written twice
	default:
		if d.typ == "session.start" {
			d.Session = cmp.Or(d.Session, ident.Peek(d.data.Get("sessionId")))
		}
		d.enter(ident.First(root.Get("agentId"), d.data.Get("parentToolCallId")))
		ident.Is(d.data.Get("parentToolCallId"), d.lane.ID)
		if !d.record() {
			d.unknown()
		}
	}
	unread.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session = d.session() })
	return nil
}

func (d *stream) session() string { return cmp.Or(d.Session, d.origin, "unknown") }

func (d *stream) unknown() {
	m := d.out.Unknown(cmp.Or(d.typ, "none"), d.root.Raw())
	m.Session, m.Key = d.session(), "unknown:"+msg.HashKey(d.id, string(d.root.Peek()))
	d.at.Set(m)
}

// enter makes a lane that of the record.
func (d *stream) enter(id string) {
	for i, l := range d.Lanes {
		if l.ID == id {
			d.lane = l
			d.Lanes = append(append(d.Lanes[:i:i], d.Lanes[i+1:]...), l)
			return
		}
	}
	d.lane = &lane{ID: id}
	if id != "" {
		d.lane.Run = conversation.Run{ID: id, Child: true}
		if c := d.Calls.Get(id); c != nil {
			d.lane.Name = c.To
			d.lane.Run.Caused(c.Run, c.ID, msg.ByNativeID, 0)
		}
	}
	d.Lanes = bounded.Push(d.Lanes, d.lane, maxLanes)
}

// add adds a message of the lane's run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.out.Add()
	m.Kind, m.Key, m.Session, m.Complete = kind, key, d.session(), msg.Complete
	m.Agent = msg.Agent{Name: d.lane.Name, Kind: msg.KindAgent}
	if d.lane.Run.Active() {
		if d.lane.Run.Mark(m) {
			m.Client = d.Client
		}
	}
	d.at.Set(m)
	return m
}

// status adds a message that a user would not see.
func (d *stream) status(key string) *msg.Message {
	m := d.add(msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", d.typ)
	return m
}

// signal sets the signal of a message, unless it begins the run.
func signal(m *msg.Message, s msg.Signal) {
	if m.Signal == msg.NoSignal && m.Run != "" {
		m.Signal = s
	}
}

// stop ends the lane's run.
func (d *stream) stop(reason string) *msg.Message {
	m := d.add(msg.Stop, "stop:"+d.id)
	m.Hidden, m.FinishReason, m.IsError = true, reason, reason != "stop"
	if d.lane.Run.Active() {
		d.lane.Run.End(m)
	}
	m.SetAttr("type", d.typ)
	return m
}
