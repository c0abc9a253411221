// Package langgraph decodes the streams of LangGraph: those of its platform (a request, and a response of
// SSE events named by stream mode), the events of its newer protocol, {type: event, method, params}, and
// lines of {type, ns, data} as a program prints them.
//
// Facts of the format that are easy to get wrong:
//
//   - One message is in several modes: as chunks (messages), as the whole so far (messages/partial),
//     in an update, and in each values after it. values has the whole thread, also of earlier runs.
//   - A namespace is a path of tasks, node:uuid. Events of messages and tools have that of the task, so
//     that the graph is the path without its last element; values, updates and checkpoints have that of
//     the graph. A graph with a path is the sub-graph, or the agent in a tool, of the task that its
//     path ends with.
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
		Name: "langgraph", Version: "1.0.0", Revision: 1,
		Summary:    "LangGraph: runs of its platform, stream modes and protocol events, with sub-graphs.",
		Transports: []frame.Kind{frame.Request, frame.Event, frame.Body, frame.Line, frame.Text},
	}
}

// New returns a decoder for one stream. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	origin := strings.ToValidUTF8(s.Origin, "\uFFFD")
	return &stream{state: state{replies: replies{runs: runs{origin: origin, Thread: threadOf(origin)}}}}, conversation.NoOptions("langgraph", s.Options)
}

// threadOf is the thread in the path of a URL: …/threads/ID/….
func threadOf(path string) string {
	_, rest, ok := strings.Cut(path, "/threads/")
	id := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		id = rest[:i]
	}
	if !ok || id == "search" {
		return ""
	}
	return ident.Bounded(id)
}

const (
	stateVersion = 1
	maxGraphs    = 256
	maxReplies   = 64
	maxSeen      = 4096
	maxText      = 4 << 20 // bytes of a reply that is not complete
	maxLast      = 64 << 10
)

// stream decodes one stream.
type stream struct {
	doc jsonv.Doc
	state
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	replies
	Valued string `json:",omitempty"` // the run whose first values have come
}

// replies are the messages that are not complete, of runs.
type replies struct {
	runs
	Replies []*reply `json:",omitempty"`
	Asked   *asked   `json:",omitempty"` // the request, until its run is known
}

// runs are the runs of a graph and its sub-graphs, and the messages that were emitted of them.
type runs struct {
	Thread string              `json:",omitempty"`
	Graphs []*graph            `json:",omitempty"` // the root first
	Tools  []started           `json:",omitempty"` // calls that run
	Seen   bounded.Set[string] `json:",omitzero"`  // messages, calls and results

	origin string
	at     conversation.Time
	out    *decoder.Output
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

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error {
	origin := d.origin
	err := snapshot.Restore(stateVersion, b, &d.state)
	d.origin = origin
	return err
}

// Flush emits the replies that are not complete.
func (d *stream) Flush(out *decoder.Output) error {
	d.out, d.at = out, conversation.Time{}
	for _, r := range d.Replies {
		d.write(r, msg.Partial)
	}
	return nil
}

// Decode decodes one event.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	d.out, d.at = out, conversation.Time{}
	if f.Kind == frame.Close {
		d.close(f.Name)
		return nil
	}
	if len(strings.TrimSpace(string(f.Data))) == 0 {
		return nil
	}
	root, ok := conversation.Parse(&d.doc, f.Data, out)
	if !ok {
		return nil
	}
	before := len(out.Messages)
	switch {
	case f.Kind == frame.Request && root.Is(jsonv.Object):
		d.request(f.Name, root)
	case f.Kind == frame.Body && root.Is(jsonv.Object):
		d.body(root)
	case root.Is(jsonv.Object) && root.Get("method").Is(jsonv.String) && root.Get("params").Is(jsonv.Object):
		p := root.Get("params")
		d.at = conversation.TimeOf(p.Get("timestamp"))
		var path []string
		for n := range p.Get("namespace").Elems() {
			path = append(path, ident.Peek(n))
		}
		d.protocol(ident.Of(root.Get("method")), strings.Join(path, "|"), p.Get("data"), root)
	case f.Kind == frame.Event && (root.Is(jsonv.Object) || root.Is(jsonv.Array) || root.Is(jsonv.Null) || root.Is(jsonv.String) && f.Name == "custom"):
		mode, path, _ := strings.Cut(f.Name, "|")
		d.mode(mode, path, root, root)
	case f.Kind != frame.Event && root.Get("data").Exists() && root.First("type", "event").Is(jsonv.String):
		var path []string
		for n := range root.Get("ns").Elems() {
			path = append(path, ident.Of(n))
		}
		mode, in, _ := strings.Cut(ident.Of(root.First("type", "event")), "|")
		d.mode(mode, cmp.Or(strings.Join(path, "|"), in), root.Get("data"), root)
	case root.Is(jsonv.Object) && f.Kind != frame.Event:
		d.unknown("none", root)
	default:
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return nil
	}
	unread.Keep(&d.doc, out, before, func(m *msg.Message) {
		if m.Session = d.session(); len(d.Graphs) > 0 {
			m.Run = d.Graphs[0].ID
		}
	})
	return nil
}

// session is the thread; of a run without one, the run.
func (d *runs) session() string {
	switch {
	case d.Thread != "":
		return d.Thread
	case len(d.Graphs) > 0:
		return d.Graphs[0].ID
	}
	name := strings.TrimSuffix(d.origin[strings.LastIndexAny(d.origin, `/\`)+1:], ".jsonl")
	return cmp.Or(name, "unknown")
}

// begin begins a run of the root graph.
func (d *replies) begin(id, agent string) *graph {
	if len(d.Graphs) > 0 && d.Graphs[0].ID == id {
		return d.Graphs[0]
	}
	d.finish("", false)
	d.Tools = nil
	g := &graph{Agent: agent}
	g.Begin(id)
	d.Graphs = []*graph{g}
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
		d.begin("run:"+msg.HashKey(d.session(), where), "")
	}
	if path == "" {
		return d.Graphs[0]
	}
	for _, g := range d.Graphs {
		if g.Path == path {
			return g
		}
	}
	above, task := split(path)
	p := d.graph(above, where)
	node, _, _ := strings.Cut(task, ":")
	g := &graph{Path: path, Agent: node}
	g.Run = conversation.Run{ID: task, Child: true}
	if node == task {
		g.ID = p.ID + "/" + task
	}
	if len(d.Graphs) >= maxGraphs {
		d.Graphs = append(d.Graphs[:1:1], d.Graphs[2:]...)
	}
	d.Graphs = append(d.Graphs, g)
	if call := d.only(path); call != "" { // the agent runs in a tool
		g.Caused(p.ID, call, msg.ByNativeID, 100)
		m := d.status(p, "link:"+call, "link")
		m.Signal, m.Tool.CallID, m.Delegation.ChildRun, m.Delegation.Link = msg.Link, call, g.ID, msg.ByNativeID
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
func split(path string) (above, task string) {
	if i := strings.LastIndexByte(path, '|'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// only is the one call that the task executes.
func (d *runs) only(path string) (call string) {
	for _, t := range d.Tools {
		if t.Path == path {
			if call != "" {
				return ""
			}
			call = t.Call
		}
	}
	return call
}

// add adds a message of a graph.
func (d *runs) add(g *graph, kind msg.Kind, key string) *msg.Message {
	m := d.out.Add()
	m.Kind, m.Key, m.Session, m.Complete = kind, key, d.session(), msg.Complete
	d.at.Set(m)
	if g != nil {
		m.Agent = msg.Agent{Name: cmp.Or(g.Agent, "graph"), Kind: msg.KindAgent}
		g.Mark(m)
	}
	return m
}

// status adds a message that a user would not see.
func (d *runs) status(g *graph, key, typ string) *msg.Message {
	m := d.add(g, msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

func (d *runs) unknown(typ string, v jsonv.Value) {
	m := d.out.Unknown(typ, v.Raw())
	m.Key, m.Session = "unknown:"+msg.HashKey(string(v.Peek())), d.session()
	if len(d.Graphs) > 0 {
		m.Run = d.Graphs[0].ID
	}
	d.at.Set(m)
}

// ends ends the run of a graph, and those of its sub-graphs.
func (d *runs) ends(g *graph, reason string, failed bool) {
	for _, sub := range d.Graphs {
		if sub.Path != "" && sub.Active() && (g.Path == "" || strings.HasPrefix(sub.Path, g.Path+"|")) {
			d.end(sub, reason, failed)
		}
	}
	d.end(g, reason, failed)
}

func (d *runs) end(g *graph, reason string, failed bool) {
	if !g.Active() {
		return
	}
	m := d.add(g, msg.Stop, "stop:"+g.ID)
	m.Hidden, m.FinishReason, m.IsError = true, reason, failed
	g.End(m)
	if g.Made == "" {
		return
	}
	above, _ := split(g.Path)
	m = d.add(cmp.Or(d.known(above), d.Graphs[0]), msg.DelegationResult, "result:"+g.Made)
	m.Role, m.Tool.CallID, m.Tool.Name, m.Delegation.ChildRun, m.Delegation.Link = msg.RoleTool, g.Made, g.Agent, g.ID, msg.ByNativeID
	m.Tool.Internal, m.Content, m.IsError = true, msg.Plain(g.Last), failed
	g.Last = ""
}

// finish completes the open replies and ends the run of the root, unless it waits.
func (d *replies) finish(reason string, failed bool) {
	for len(d.Replies) > 0 {
		d.complete(d.Replies[0])
	}
	if len(d.Graphs) == 0 || d.Graphs[0].Paused {
		return
	}
	d.ends(d.Graphs[0], cmp.Or(reason, "stop"), failed)
}

// close ends a stream. One that was lost may go on.
func (d *stream) close(name string) {
	if a := d.Asked; a != nil {
		d.Asked = nil
		for _, p := range a.Prompts {
			m := d.status(nil, "request:"+msg.HashKey(a.Path, p.Text), "request")
			m.Content, m.Attachments = msg.Plain(p.Text), p.Files
		}
	}
	if name != frame.Lost {
		d.finish("", false)
	}
}
