// Package managedagents decodes the events of sessions of Claude Managed Agents: streams of events
// (GET /v1/sessions/ID/events/stream, …/threads/ID/stream), pages of them that a client polls or sends,
// and lines of a recorder.
//
// Facts of the format that are easy to get wrong:
//
//   - An event has no session: the URL of its stream does. One of a child thread that is posted on the
//     stream of the primary thread as well has session_thread_id.
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
		Name: "claude-managed-agents", Version: "1.0.0", Revision: 1,
		Summary:    "Events of sessions of Claude Managed Agents, with their threads.",
		Transports: []frame.Kind{frame.Event, frame.Body, frame.Request, frame.Line},
	}
}

// New returns a decoder for one stream of events. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	origin := strings.ToValidUTF8(s.Origin, "\uFFFD")
	d := &stream{own: below(origin, "/threads/")}
	file := ident.Bounded(strings.TrimSuffix(origin[strings.LastIndexAny(origin, `/\`)+1:], ".jsonl"))
	d.Session = cmp.Or(below(origin, "/sessions/"), file, "unknown")
	return d, conversation.NoOptions("claude-managed-agents", s.Options)
}

// below is the part of a path that follows a name.
func below(path, name string) string {
	_, rest, _ := strings.Cut(path, name)
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[:i]
	}
	return ident.Bounded(rest)
}

const stateVersion, maxThreads, maxSeen, maxPreview = 1, 64, 4096, 1 << 20

// stream decodes one stream of events.
type stream struct {
	doc jsonv.Doc
	own string // the child thread whose own stream it is
	out *decoder.Output
	at  conversation.Time
	state
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Session  string
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
	Server string `json:",omitempty"`
	Thread string `json:",omitempty"` // that made it
	Run    string
	Child  string `json:",omitempty"` // thread that works for it
	To     string `json:",omitempty"`
	Custom bool   `json:",omitempty"` // the client executes it
}

var _ decoder.Snapshotter = (*stream)(nil)

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error { return snapshot.Restore(stateVersion, b, &d.state) }

// Decode decodes one event, or a page of them.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	if d.out = out; f.Kind == frame.Close || len(strings.TrimSpace(string(f.Data))) == 0 {
		return nil
	}
	root, ok := conversation.ParseObject(&d.doc, f.Data, out)
	if !ok {
		return nil
	}
	before, events := len(out.Messages), []jsonv.Value{root}
	if page := root.First("data", "events"); page.Is(jsonv.Array) && !root.Get("type").Exists() {
		events = slices.Collect(page.Elems())
	}
	if n := len(events); n > 1 && events[0].Get("processed_at").PeekStr() > events[n-1].Get("processed_at").PeekStr() {
		slices.Reverse(events) // the newest was first
	}
	for _, v := range events {
		d.event(v)
	}
	unread.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session = d.Session })
	return nil
}

// Flush emits the previews of answers that are not complete.
func (d *stream) Flush(out *decoder.Output) error {
	d.out, d.at = out, conversation.Time{}
	for _, p := range d.Previews.Parts {
		t := *d.thread(d.own, "")
		m := d.add(&t, p.Kind, p.Name)
		m.Role, m.Content, m.Complete = msg.RoleAssistant, msg.Plain(string(p.Text)), msg.Partial
	}
	return nil
}

// thread returns the thread of that id, "" for the primary one, which it adds if need be.
func (d *stream) thread(id, agent string) *thread {
	d.Threads = bounded.Use(d.Threads, maxThreads, func(t *thread) bool { return t.ID == id }, func() *thread {
		t := &thread{ID: id}
		if id != "" {
			t.Run = conversation.Run{ID: id, Child: true}
		}
		return t
	})
	t := d.Threads[len(d.Threads)-1]
	t.Agent = cmp.Or(t.Agent, agent)
	return t
}

// add adds a message of a thread's run, or of the session alone.
func (d *stream) add(t *thread, kind msg.Kind, key string) *msg.Message {
	m := d.out.Add()
	m.Kind, m.Key, m.Session, m.Complete = kind, key, d.Session, msg.Complete
	d.at.Set(m)
	if t != nil {
		m.Agent = msg.Agent{ID: t.ID, Name: cmp.Or(t.Agent, "claude"), Kind: msg.KindAgent}
		if t.Run.Active() {
			t.Run.Mark(m)
		}
	}
	return m
}

// status adds a message that a user would not see.
func (d *stream) status(t *thread, key, typ string) *msg.Message {
	m := d.add(t, msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// request begins a response of the thread, and its run unless one is active.
func (d *stream) request(t *thread, id string) *conversation.Response {
	t.Run.Wake(id)
	t.Response = &conversation.Response{ID: id, Model: d.Model, Provider: "anthropic", Run: t.Run.ID}
	return t.Response
}

// part adds a part of the open response of the thread, or of a new one.
func (d *stream) part(t *thread, kind msg.Kind, id, key string) *msg.Message {
	if t.ID != d.own { // what the thread's own stream has with its response
		t.Run.Wake(id)
		m := d.add(t, kind, key)
		m.Role, m.Complete = msg.RoleAssistant, msg.Summary
		return m
	}
	r := t.Response
	if r == nil || r.Done || r.Run != t.Run.ID || !t.Run.Active() {
		r = d.request(t, id)
	}
	m := d.add(t, kind, key)
	m.Role, m.ParentKey, r.Last = msg.RoleAssistant, r.Last, key
	r.Mark(m)
	return m
}

// about adds a message about a call, to the run that made it.
func (d *stream) about(c *call, kind msg.Kind, key string) *msg.Message {
	m := d.add(d.thread(c.Thread, ""), kind, key)
	m.ParentKey, m.Run = "call:"+c.ID, c.Run
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, c.Name, c.Server
	return m
}
