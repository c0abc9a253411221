// Package agui decodes AG-UI, the events by which an agent talks to a user interface, and the
// request that starts a run.
//
// Facts of the format that are easy to get wrong:
//
//   - Adapters differ: names are camelCase or snake_case, a result is in content or in
//     result, times are milliseconds or seconds, and few have any.
//   - A message arrives as START, CONTENT, END, or as CHUNKs, which nothing ends but
//     the next message or the end of the run. Messages without text are frequent.
//   - LangGraph sends START, ARGS and END of a call twice, the second time after it was
//     executed, ends a run under another runId, and wraps every event of its own in
//     RAW and in rawEvent. Its tokens are only there.
//   - CrewAI and LlamaIndex have results only in MESSAGES_SNAPSHOT, which repeats the
//     conversation, with new ids of messages, and of calls, each time.
//   - A result that is an error is marked in lists of messages alone, by error: a tool of the user interface in
//     the next request, one of LangGraph in MESSAGES_SNAPSHOT (since August 2026, with the word "error") and in RAW.
//   - LangGraph leaves out the arguments that came with the name of a call, which are in
//     rawEvent, and the last pieces of a text, which are in the snapshot.
//   - CopilotKit's user interface connects to a thread when it is shown, with a request like that of a run and a run id of
//     its own; the response has the events of all runs of the thread again, under their ids, without times.
//   - Claude's agent has its tokens, and whether it failed, in the result of RUN_FINISHED, its model in CUSTOM system:init.
//   - Some adapters number their calls and messages from 1 in each run, and some providers the
//     calls of a tool: such ids are unique in a run only.
package agui

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
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name:       "ag-ui",
			Revision:   10,
			Summary:    "AG-UI events between an agent and a user interface.",
			Transports: []frame.Kind{frame.Event, frame.Request, frame.Line, frame.Text},
		},
		LeavesOut: leavesOut,
		State:     1,
		Open:      func(r *record.Current, s *state) record.Reader { return &stream{Current: r, state: s} },
	}.Factory()
}

const maxSeen = 4096 // messages, texts and results

// stream decodes one stream, as a rule of one run.
type stream struct {
	*record.Current
	*state

	typ  string
	asks string                   // the run whose calls the results of a request are of
	ids  map[string]string        // of the list of messages that is decoded: its id of a call, and the run's
	had  map[conversation.Sum]int // and how many equal calls it has had
}

// asked is a call of the run.
type asked struct {
	ID  string
	Sum conversation.Sum // of its name and arguments
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Session string                                 `json:",omitempty"`
	Run     conversation.Run                       `json:",omitzero"`
	Parts   conversation.Deltas                    `json:",omitzero"`
	Chunk   string                                 `json:",omitempty"` // the part whose last piece was a CHUNK
	Calls   conversation.Calls[*conversation.Call] `json:",omitzero"`
	Seen    bounded.Set[string]                    `json:",omitzero"`  // messages, texts and results that were emitted
	Thought int                                    `json:",omitempty"` // thoughts without an id in the run
	Asked   []asked                                `json:",omitempty"` // the calls of the run, in order
	Counted bool                                   `json:",omitempty"` // responses of the run have tokens of their own
	Waits   bool                                   `json:",omitempty"` // by an event the run waits for a person
	Model   string                                 `json:",omitempty"` // of Claude's agent
	Past    bool                                   `json:",omitempty"` // the events were sent before
	Said    conversation.Written                   `json:",omitzero"`  // the last text
	SaidBy  string                                 `json:",omitempty"` // its key
}

// In returns the session and the run.
func (d *stream) In() (session, run string) {
	return cmp.Or(d.Session, d.Origin, "unknown"), d.Run.ID
}

// Flush emits the parts that are not complete.
func (d *stream) Flush() {
	first := len(d.Out.Messages)
	for _, p := range d.Parts.Parts {
		if !p.Empty() && d.Calls.Get(p.CallID) == nil {
			d.fill(d.Out.Add(), p)
		}
	}
	if d.Past {
		past(d.Out, first)
	}
}

// unique returns an id of the protocol as one that is unique in the session.
func (d *stream) unique(id string) string { return ident.Within(d.Run.ID, id) }

// fill writes a part into a message.
func (d *stream) fill(m *msg.Message, p *conversation.Part) {
	p.Fill(m)
	m.Session, m.Run = d.In()
	m.Agent.Kind = msg.KindAgent
	switch p.Kind {
	case msg.ToolCall:
		m.Key, m.ResponseID, m.Tool.ProtocolID = "call:"+p.CallID, p.Key, strings.TrimPrefix(p.CallID, d.Run.ID+"/")
	case msg.Assistant:
		m.ResponseID = p.Key
	case msg.User:
		m.Role, m.Agent.Kind = msg.RoleUser, msg.KindHuman
	case msg.System:
		m.Role, m.Hidden = msg.RoleSystem, true
	}
}

// add adds a message of the run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	d.Run.Mark(m)
	return m
}

// id reads an id, whose name some adapters write in snake_case.
func (d *stream) id(camel, snake string) string { return ident.Of(d.Root.First(camel, snake)) }
