// Package managedagents decodes the events of sessions of Claude Managed Agents: streams of events
// (GET /v1/sessions/ID/events/stream, …/threads/ID/stream), pages of them that a client polls or sends,
// and lines of a recorder.
//
// Facts of the format that are easy to get wrong:
//
//   - An event has no session: the URL of its stream does. One of a child thread that is posted on the
//     stream of the primary thread as well has session_thread_id.
//   - The states of the primary thread are posted twice, as those of the session and as those of a thread, which is named as a child is.
//   - A user.interrupt without a thread is for all of them.
//   - An event of a user is posted twice: as it is queued, with processed_at null, and when it is read.
//   - session.status_idle ends a turn, unless its stop_reason is requires_action: then it names the calls
//     that wait, for a confirmation or for a result by the client.
//   - A tool_use_id is the id of the event of the call; ids of the model are not on the wire.
//   - Tokens are those of one request (span.model_request_end); session.usage is a sum.
//   - agent.thinking has no content, and event_delta is a preview that may stop early.
package managedagents

import (
	"cmp"
	_ "embed"
	"slices"

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
			Name: "claude-managed-agents", Revision: 4,
			Summary:    "Events of sessions of Claude Managed Agents, with their threads.",
			Transports: []frame.Kind{frame.Event, frame.Body, frame.Request, frame.Line},
		},
		LeavesOut: leavesOut,
		State:     1,
		Open: func(r *record.Current, s *state) record.Reader {
			d := &stream{Current: r, state: s, own: ident.Below(r.Origin, "/threads/")}
			r.Origin = cmp.Or(ident.Below(r.Origin, "/sessions/"), ident.OfFile(r.Origin, ".jsonl")) // the session
			return d
		},
	}.Factory()
}

const maxThreads, maxSeen, maxPreview = 64, 4096, 1 << 20

// stream decodes one stream of events.
type stream struct {
	*record.Current
	*state
	own string // the child thread whose own stream it is
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Model    string                    `json:",omitempty"` // where the stream names it
	Threads  []*thread                 `json:",omitempty"` // the last active one at the end
	Calls    conversation.Calls[*call] `json:",omitzero"`
	Seen     bounded.Set[string]       `json:",omitzero"` // events
	Previews conversation.Deltas       `json:",omitzero"`
}

// thread is a thread of the session: the primary one, whose runs are its turns, or a child, which is one run.
type thread struct {
	ID          string                 `json:",omitempty"` // of a child
	Agent       string                 `json:",omitempty"`
	Run         conversation.Run       `json:",omitzero"`
	Response    *conversation.Response `json:",omitempty"`
	Interrupted bool                   `json:",omitempty"`
}

// call is a tool call, or a message that hands work to a child thread.
type call struct {
	conversation.Call
	Thread string `json:",omitempty"` // that made it
	Run    string
	Child  string `json:",omitempty"` // thread that works for it
	To     string `json:",omitempty"`
	Custom bool   `json:",omitempty"` // the client executes it
}

// Read decodes one event, or a page of them.
func (d *stream) Read() {
	page := d.Root.First("data", "events")
	if !page.Is(jsonv.Array) || d.Root.Get("type").Exists() {
		d.event(d.Root)
		return
	}
	events := slices.Collect(page.Elems())
	if n := len(events); n > 1 && events[0].Get("processed_at").PeekStr() > events[n-1].Get("processed_at").PeekStr() {
		slices.Reverse(events) // the newest was first
	}
	for _, v := range events {
		d.event(v)
	}
}

// Flush emits the previews of answers that are not complete.
func (d *stream) Flush() {
	for _, p := range d.Previews.Parts {
		t := *d.thread(d.own, "")
		m := d.add(&t, p.Kind, p.Name)
		m.Role, m.Content, m.Complete = msg.RoleAssistant, msg.Plain(string(p.Text)), msg.Partial
	}
}

// thread returns the thread of that id, "" for the primary one, which it adds if need be.
func (d *stream) thread(id, agent string) *thread {
	t := bounded.Use(&d.Threads, maxThreads, func(t *thread) bool { return t.ID == id }, func() *thread {
		t := &thread{ID: id}
		if id != "" {
			t.Run = conversation.Run{ID: id, Child: true}
		}
		return t
	}, nil)
	t.Agent = cmp.Or(t.Agent, agent)
	return t
}

// agent is the agent of a thread; none of the session alone.
func (t *thread) agent() msg.Agent {
	if t == nil {
		return msg.Agent{}
	}
	return msg.Agent{ID: t.ID, Name: cmp.Or(t.Agent, "claude"), Kind: msg.KindAgent}
}

// add adds a message of a thread's run, or of the session alone.
func (d *stream) add(t *thread, kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	if m.Agent = t.agent(); t != nil && t.Run.Active() {
		t.Run.Mark(m)
	}
	return m
}

// status adds a message that a user would not see.
func (d *stream) status(t *thread, key, typ string) *msg.Message {
	return record.Hide(d.add(t, msg.Status, key), typ)
}

// request begins a response of the thread, and its run unless one is active.
func (d *stream) request(t *thread, id string) *conversation.Response {
	t.Run.Wake(id)
	t.Response = &conversation.Response{ID: id, Model: d.Model, Provider: "anthropic", Run: t.Run.ID}
	return t.Response
}

// part adds a part of the open response of the thread, or of a new one.
func (d *stream) part(t *thread, kind msg.Kind, id, key string) *msg.Message {
	if t.ID != d.own { // the thread's own stream has it with its response
		t.Run.Wake(id)
		m := d.add(t, kind, key)
		m.Role, m.Complete = msg.RoleAssistant, msg.Summary
		return m
	}
	r := t.Response
	if r == nil || r.Done || r.Run != t.Run.ID || !t.Run.Active() {
		r = d.request(t, id)
	}
	return r.Next(d.add(t, kind, key))
}

// about adds a message about a call, to the run that made it.
func (d *stream) about(c *call, kind msg.Kind, key string) *msg.Message {
	m := d.add(d.thread(c.Thread, ""), kind, key)
	m.ParentKey, m.Run = "call:"+c.ID, c.Run
	c.On(m)
	return m
}
