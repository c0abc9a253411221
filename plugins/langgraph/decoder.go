// Package langgraph decodes the streams of LangGraph: those of its platform (a request, and a response of
// SSE events named by stream mode), the events of its newer protocol, {type: event, method, params}, those of
// LangChain's callbacks, {event: on_…, data}, and lines of {type, ns, data} as a program prints them.
//
// Facts of the format that are easy to get wrong:
//
//   - One message is in several modes: as chunks (messages), as the whole so far (messages/partial),
//     in an update, and in each values after it. values has the whole thread, also of earlier runs.
//   - A node may call models at a time; the chunks of their replies are mixed, under one namespace.
//   - A namespace is a path of tasks, node:uuid. Events of messages and tools have that of the task, so
//     that the graph is the path without its last element; values, updates and checkpoints have that of
//     the graph. A graph with a path is the sub-graph, or the agent in a tool, of the task that its
//     path ends with.
//     A program that streams its own graph has the graph's for all, and lifecycle names the
//     sub-graph in its data.
//   - input_tokens has the cached ones, output_tokens those of reasoning. Chunks add up; message-start
//     and usage repeat and grow, and message-finish is the last.
//   - A run that waits for a person ends its stream after __interrupt__; the next request resumes it.
//   - config.configurable repeats the headers of the request, credentials included.
package langgraph

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
	"github.com/earshot-dev/earshot/core/sdk/langchain"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name: "langgraph", Revision: 6,
			Summary:    "LangGraph: runs of its platform, stream modes and protocol events, with sub-graphs.",
			Transports: []frame.Kind{frame.Request, frame.Event, frame.Body, frame.Line, frame.Text},
		},
		LeavesOut: leavesOut,
		State:     1,
		Takes: func(f *frame.Frame, root jsonv.Value) bool {
			return f.Kind == frame.Event && (root.Is(jsonv.Array) || root.Is(jsonv.Null) || root.Is(jsonv.String) && f.Name == "custom")
		},
		Open: func(r *record.Current, s *state) record.Reader {
			s.Thread, r.Origin = threadOf(r.Origin), ident.OfFile(r.Origin, ".jsonl")
			return &stream{replies{runs{r, s}}}
		},
	}.Factory()
}

// threadOf is the thread in the path of a URL: …/threads/ID/….
func threadOf(path string) string {
	if id := ident.Below(path, "/threads/"); id != "search" {
		return id
	}
	return ""
}

const (
	maxGraphs = 256
	maxText   = 4 << 20 // bytes of a prompt
	maxLast   = 64 << 10
)

// stream decodes the events.
type stream struct{ replies }

// replies has the messages that are not complete, of runs.
type replies struct{ runs }

// runs has the runs of a graph and its sub-graphs, and the messages that were emitted of them.
type runs struct {
	*record.Current
	*state
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Thread string    `json:",omitempty"`
	Graphs []*graph  `json:",omitempty"` // the root first
	Tools  []started `json:",omitempty"` // calls that run
	langchain.Transcript
	Asked  *asked `json:",omitempty"` // the request, until its run is known
	Valued string `json:",omitempty"` // the run whose first values have come
	Dated  bool   `json:",omitempty"` // its events have times, in which a reply is repeated
	Inner  bool   `json:",omitempty"` // a program streams its own graph: namespaces are those of graphs, never of tasks
}

// asked is a request.
type asked struct {
	Assistant string   `json:",omitempty"`
	Path      string   `json:",omitempty"`
	Prompts   []prompt `json:",omitempty"`
	Resume    string   `json:",omitempty"` // JSON
}

// prompt is the input of a person.
type prompt struct {
	Text  string
	Files []msg.Attachment `json:",omitempty"`
}

// graph is a run of a graph: the root, or a sub-graph.
type graph struct {
	conversation.Run
	Path   string `json:",omitempty"` // namespace, its tasks joined by |
	Agent  string `json:",omitempty"`
	Made   string `json:",omitempty"` // the delegation that was inferred for it
	Last   string `json:",omitempty"` // its last text
	Paused bool   `json:",omitempty"`
	Steps  int    `json:",omitempty"`
}

// started is a tool call that a task executes.
type started struct{ Path, Call string }

// Flush emits the replies that are not complete.
func (d *stream) Flush() {
	for _, r := range d.Replies {
		d.write(r, msg.Partial)
	}
}

// Read decodes one event.
func (d *stream) Read() {
	p := d.Root.Get("params")
	switch {
	case d.Frame.Kind == frame.Request:
		d.request(d.Frame.Name, d.Root)
	case d.Frame.Kind == frame.Body:
		d.body(d.Root)
	case d.Root.Get("method").Is(jsonv.String) && p.Is(jsonv.Object):
		d.At = conversation.TimeOf(p.Get("timestamp"))
		d.protocol(ident.Of(d.Root.Get("method")), ident.Join(p.Get("namespace"), "|"), p.Get("data"))
	case strings.HasPrefix(d.Root.Get("event").PeekStr(), "on_"):
		d.callback(d.Root)
	case d.Frame.Kind == frame.Event:
		mode, path, _ := strings.Cut(d.Frame.Name, "|")
		d.mode(mode, path, d.Root)
	case d.Root.Get("data").Exists() && d.Root.First("type", "event").Is(jsonv.String):
		mode, in, _ := strings.Cut(ident.Of(d.Root.First("type", "event")), "|")
		d.mode(mode, cmp.Or(ident.Join(d.Root.Get("ns"), "|"), in), d.Root.Get("data"))
	default:
		d.Unknown("none", d.Root)
	}
	holder := jsonv.Or(p, d.Root)
	if v := holder.Get("interrupts"); v.Len() > 0 && holder.Get("data").Exists() && len(d.Graphs) > 0 { // beside values
		d.waits(d.Graphs[0], v)
	}
}

// Begin looks at the end of a stream.
func (d *stream) Begin() (record bool) {
	if d.Frame.Kind == frame.Close {
		d.close(d.Frame.Name)
	}
	return true
}

// In returns the thread, of a run without one the run, and the run of the root graph.
func (d *runs) In() (session, run string) {
	if len(d.Graphs) > 0 {
		run = d.Graphs[0].ID
	}
	return cmp.Or(d.Thread, run, d.Origin, "unknown"), run
}

// begin begins a run of the root graph.
func (d *replies) begin(id, agent string) *graph {
	if len(d.Graphs) > 0 && d.Graphs[0].ID == id {
		return d.Graphs[0]
	}
	d.finish(false)
	g := &graph{Run: conversation.Run{ID: id}, Agent: agent}
	d.Graphs, d.Tools = []*graph{g}, nil
	if a := d.Asked; a != nil {
		d.Asked = nil
		if g.Agent = cmp.Or(agent, a.Assistant); a.Resume != "" {
			m := d.status(g, "resume:"+msg.HashKey(g.ID, a.Resume), "resume")
			m.Content, m.Signal = msg.Plain(a.Resume), msg.RunResume
		}
		for _, p := range a.Prompts {
			d.prompt(g, p)
		}
	}
	return g
}

// graph returns the run of the graph of that path, which begins if need be. where names an event for
// a root that has no name.
func (d *replies) graph(path, where string) *graph {
	if len(d.Graphs) == 0 || path == "" && d.Graphs[0].Ended {
		session, _ := d.In()
		d.begin("run:"+msg.HashKey(session, where), "")
	}
	if path == "" {
		return d.Graphs[0]
	}
	if g := d.known(path); g != nil {
		return g
	}
	above, task := split(path)
	p := d.graph(above, where)
	node, _, _ := strings.Cut(task, ":")
	g := &graph{Run: conversation.Run{ID: task, Child: true}, Path: path, Agent: node}
	if node == task {
		g.ID = p.ID + "/" + task
	}
	if len(d.Graphs) >= maxGraphs {
		d.Graphs = append(d.Graphs[:1:1], d.Graphs[2:]...)
	}
	d.Graphs = append(d.Graphs, g)
	if t, ok := bounded.Only(d.Tools, func(t started) bool { return t.Path == path }); ok { // the agent runs in a tool
		call := d.unique(t.Call)
		g.Caused(p.ID, call, msg.ByNativeID, 100)
		m := d.status(p, "link:"+call, "link")
		m.Signal, m.Tool.CallID = msg.Link, call
		conversation.Causes(m, g.ID)
		return g
	}
	g.Made = "task:" + task
	m := d.add(p, msg.Delegation, "call:"+g.Made)
	m.Tool.CallID, m.Tool.Name, m.Tool.Arguments, m.Tool.Internal = g.Made, node, msg.Plain("{}"), true
	m.Delegation.To, m.Delegation.ChildRun, m.Delegation.Link = node, g.ID, msg.ByNativeID
	g.Caused(p.ID, g.Made, msg.ByNativeID, 100)
	return g
}

// split returns the path of the graph in which a task is, and the task.
func split(path string) (above, task string) { return cutLast(path, '|') }

// cutLast cuts s around its last sep; without one all of it is behind.
func cutLast(s string, sep byte) (before, after string) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:]
	}
	return "", s
}

// unique returns the id of a call as one that is unique in the thread.
func (d *runs) unique(id string) string {
	if ident.Counts(id) && len(d.Graphs) > 0 {
		return d.Graphs[0].ID + "/" + id
	}
	return id
}

// about writes the id of a call into a message, and the protocol's if that is another.
func (d *runs) about(m *msg.Message, id string) {
	if m.Tool.CallID = d.unique(id); m.Tool.CallID != id {
		m.Tool.ProtocolID = id
	}
}

// add adds a message of a graph.
func (d *runs) add(g *graph, kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	m.Agent.Name = cmp.Or(g.Agent, "graph")
	g.Mark(m)
	return m
}

// status adds a message that a user would not see.
func (d *runs) status(g *graph, key, typ string) *msg.Message {
	return record.Hide(d.add(g, msg.Status, key), typ)
}

// ends ends the run of a graph, after those of its sub-graphs.
func (d *runs) ends(g *graph, reason string, failed bool) {
	for _, sub := range d.Graphs {
		if sub.Path != "" && (g.Path == "" || strings.HasPrefix(sub.Path, g.Path+"|")) {
			d.end(sub, reason, failed)
		}
	}
	d.end(g, reason, failed)
}

func (d *runs) end(g *graph, reason string, failed bool) {
	if !g.Active() {
		return
	}
	g.Finish(d.add(g, msg.Stop, "stop:"+g.ID), reason, failed)
	if g.Made == "" {
		return
	}
	above, _ := split(g.Path)
	m := d.add(cmp.Or(d.known(above), d.Graphs[0]), msg.DelegationResult, "result:"+g.Made)
	m.Role, m.Tool.CallID, m.Tool.Name, m.Delegation.ChildRun, m.Delegation.Link = msg.RoleTool, g.Made, g.Agent, g.ID, msg.ByNativeID
	m.Tool.Internal, m.Content, m.IsError = true, msg.Plain(g.Last), failed
	g.Last = ""
}

// finish completes the open replies and ends the run of the root, unless it waits.
func (d *replies) finish(failed bool) {
	d.complete(d.Replies...)
	if len(d.Graphs) > 0 && !d.Graphs[0].Paused {
		d.ends(d.Graphs[0], conversation.Outcome(failed), failed)
	}
}

// close ends a stream. One that was lost may go on.
func (d *stream) close(name string) {
	if a := d.Asked; a != nil {
		d.Asked = nil
		for _, p := range a.Prompts {
			m := record.Hide(d.Add(msg.Status, "request:"+msg.HashKey(a.Path, p.Text)), "request")
			m.Agent, m.Content, m.Attachments = msg.Agent{}, msg.Plain(p.Text), p.Files
		}
	}
	if name != frame.Lost {
		d.finish(false)
	}
}
