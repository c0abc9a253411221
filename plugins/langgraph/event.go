package langgraph

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/langchain"
)

// request decodes a request that creates a run: {assistant_id, input: {messages}, command: {resume}}.
func (d *stream) request(path string, v jsonv.Value) {
	d.finish(false)
	d.Graphs = nil
	config := v.Path("config", "configurable")
	d.Thread = cmp.Or(threadOf(path), ident.Of(config.Get("thread_id")), d.Thread)
	config.MarkRead() // it may have credentials
	a := &asked{Assistant: ident.Of(v.Get("assistant_id")), Path: ident.Bounded(path)}
	if r := v.Path("command", "resume"); r.Exists() && len(r.Peek()) <= maxLast {
		a.Resume = string(r.Raw())
	}
	for _, c := range langchain.Prompts(v.Path("input", "messages")) {
		a.Prompts = append(a.Prompts, prompt{conversation.Cut(string(c.Text), maxText), c.Files})
	}
	d.Asked = a
}

// body decodes a response that is one document: the state of the thread, or an error.
func (d *stream) body(v jsonv.Value) {
	switch {
	case v.Get("detail").Is(jsonv.String) || v.Get("__error__").Exists():
		d.failed(d.graph("", string(v.First("message", "detail").Peek())), v)
	case v.Get("messages").Is(jsonv.Array):
		d.values(d.graph("", "body"), v, true)
		d.finish(false)
	default:
		d.Unknown("body", v)
	}
}

// mode decodes an event of a stream mode. path is the namespace of its graph.
func (d *stream) mode(mode, path string, v jsonv.Value) {
	switch kind, _, _ := strings.Cut(mode, ":"); kind { // custom:NAME

	case "metadata":
		if id := ident.Of(v.Get("run_id")); id != "" {
			d.Thread = cmp.Or(d.Thread, ident.Of(v.Get("thread_id")))
			g := d.begin(id, "")
			d.status(g, "run:"+id, "run").SetAttr("attempt", v.Get("attempt").Digits())
			return
		}
		d.Unknown(mode, d.Root)
	case "values":
		d.values(d.step(path, mode, string(v.Get("messages").Peek())), v, false)
	case "updates":
		d.updates(d.step(path, mode, ""), v)
	case "messages", "messages-tuple":
		d.tuple(path, v)
	case "messages/metadata":
		for id, m := range v.Members() {
			d.Reply(ident.Bounded(id.String())).Note(m.Get("metadata"))
		}
	case "messages/partial", "messages/complete":
		for m := range v.Elems() {
			d.cumulative(path, m, mode == "messages/complete")
		}
	case "debug":
		d.At = conversation.TimeOf(v.Get("timestamp"))
		if d.Dated = true; v.Get("type").Is(jsonv.String) {
			d.debug(path, ident.Of(v.Get("type")), v.Get("payload"))
			return
		}
		d.Unknown(mode, d.Root)
	case "tasks":
		typ := "task"
		if v.First("result", "error", "interrupts").Exists() {
			typ = "task_result"
		}
		d.debug(path, typ, v)
	case "checkpoints":
		d.debug(path, "checkpoint", v)
	case "custom", "feedback":
		d.step(path, mode, "")
		if v.Is(jsonv.String) {
			d.Out.Messages[len(d.Out.Messages)-1].Content = v.Text()
		}
	case "error":
		d.failed(d.graph("", string(v.First("message", "detail").Peek())), v)
	case "end":
		d.finish(false)
	case "heartbeat":
	default:
		d.Unknown(ident.Bounded(mode), d.Root)
	}
}

// step adds a status of the graph, which keeps the members of the state that are not read.
func (d *stream) step(path, mode, where string) *graph {
	g := d.graph(path, where)
	d.status(g, conversation.Ordinal(mode+":"+g.ID, &g.Steps), mode)
	return g
}

// protocol decodes an event of the newer protocol. path is that of the task for messages, tools and
// lifecycle, of the graph for the others.
func (d *stream) protocol(method, path string, v jsonv.Value) {
	where := strconv.FormatInt(d.At.Nanos, 10) + ident.PeekOrNumber(d.Root.First("event_id", "seq"))
	switch method {
	case "lifecycle":
		d.lifecycle(path, where, v)
	case "messages":
		pair := append(slices.Collect(v.Elems()), v, jsonv.Value{}) // [event, metadata] where a program streams its own graph
		if pair[0].Get("event").Is(jsonv.String) {
			if v.Is(jsonv.Array) {
				d.Inner, path = true, cmp.Or(ident.Peek(pair[1].Get("langgraph_checkpoint_ns")), path+"|")
			}
			d.block(path, where, pair[0], pair[1])
			return
		}
		d.tuple(path, v)
	case "tools":
		d.tool(path, where, v)
	case "input", "input.requested":
		d.waits(d.graph(path, where), v)
	default:
		d.mode(method, path, v)
	}
}

// lifecycle decodes the states of a graph or a task: {event, graph_name, error}.
func (d *stream) lifecycle(path, where string, v jsonv.Value) {
	event, name := ident.Of(v.Get("event")), ident.Of(v.Get("graph_name"))
	if of := v.Get("namespace"); of.Len() > 0 { // a program that streams its own graph names the sub-graph here
		d.Inner, path = true, ident.Join(of, "|")
	}
	above, _ := split(path)
	begins, fails, resumes := event == "running" || event == "started", event == "failed", false
	var g *graph
	if r := d.known(""); path == "" && begins && (r == nil || !r.Active()) {
		g = d.begin("run:"+msg.HashKey(d.Thread, where), name)
	} else {
		g = d.graph(above, where)
		resumes = path == "" && begins && g.Paused
	}
	m := d.status(g, "lifecycle:"+msg.HashKey(g.ID, path, event, where), "lifecycle")
	m.SetAttr("event", event)
	m.SetAttr("node", name)
	m.SetAttr("namespace", path)
	conversation.Fault(m, v.Get("error"))
	if call := ident.Of(v.Path("cause", "tool_call_id")); call != "" && begins {
		d.runsIn(path, call)
		d.graph(path, where).Agent = name
	}
	switch {
	case resumes:
		g.Paused, m.Signal = false, msg.RunResume
	case begins:
	case event == "interrupted":
		if path == "" && !g.Paused {
			g.Paused, m.Signal = true, msg.RunPause
		}
	case path == "":
		d.finish(fails)
	default:
		d.complete(d.Of(path, "")...)
		d.over(path, fails)
	}
}

// known returns the run of the graph of that path if there is one.
func (d *runs) known(path string) *graph {
	return bounded.Find(d.Graphs, func(g *graph) bool { return g.Path == path })
}

// runsIn notes the call that a task executes.
func (d *stream) runsIn(path, call string) {
	if s := (started{path, call}); len(d.Tools) < maxGraphs && !slices.Contains(d.Tools, s) {
		d.Tools = append(d.Tools, s)
	}
}

// tool decodes an event of a call: tool-started, tool-finished, tool-error.
func (d *stream) tool(path, where string, v jsonv.Value) {
	if d.Inner {
		path += "|" // of a task without a name
	}
	above, _ := split(path)
	g, id := d.graph(above, where), ident.Of(v.Get("tool_call_id"))
	switch event := v.Get("event"); {
	case id == "":
		d.Unknown("tools", d.Root)
	case event.Equal("tool-started"):
		input := v.Get("input")
		if d.runsIn(path, id); d.Seen.Has("call:" + d.unique(id)) {
			input.MarkRead() // the call has it
		} else {
			d.call(g, nil, id, ident.Of(v.Get("tool_name")), string(input.Text().Append(nil)), msg.Complete)
		}
	case event.Equal("tool-finished"):
		d.over(path, false)
		if output, typ := langchain.Message(v.Get("output")); typ == "tool" {
			d.result(g, output)
		} else {
			d.resultOf(g, id, ident.Of(v.Get("tool_name")), output.Text(), false)
		}
	case event.In("tool-error", "tool-failed"):
		d.over(path, true)
		d.resultOf(g, id, ident.Of(v.Get("tool_name")), v.First("error", "message").Text(), true)
	default:
		m := d.status(g, "tool:"+msg.HashKey(id, where), ident.Bounded(event.Str()))
		m.Tool.CallID, m.Content = id, v.First("data", "delta", "output").Text()
	}
}

// values decodes the state of a graph. The first of a run has the thread before it too: the messages after
// the last reply are new, and in a whole response those after the last prompt.
func (d *stream) values(g *graph, v jsonv.Value, over bool) {
	if g.Path == "" && d.Valued != g.ID {
		d.Valued = g.ID
		d.Skip(v.Get("messages"), over)
	}
	d.update(g, v)
}

// updates decodes the output of nodes: {node: update}.
func (d *stream) updates(g *graph, v jsonv.Value) {
	for name, u := range v.Members() {
		node := ident.Bounded(name.String())
		if node == "__interrupt__" {
			d.waits(g, u)
			continue
		}
		for one := range jsonv.Each(u) {
			d.update(g, one)
		}
		if sub, ok := bounded.Only(d.Graphs, func(s *graph) bool {
			above, task := split(s.Path)
			return s.Path != "" && above == g.Path && strings.HasPrefix(task, node+":") && s.Active()
		}); ok {
			d.ends(sub, "completed", false)
		}
	}
}

// update decodes the output of a node, or the state: its messages. The rest is kept once as it is.
func (d *stream) update(g *graph, v jsonv.Value) {
	if d.messages(g, v) {
		return
	}
	for name, member := range v.Members() {
		switch {
		case name.Is("__interrupt__"):
			d.waits(g, member)
		case d.messages(g, member):
		case !d.Once("state:" + msg.HashKey(g.ID, name.String(), string(member.Peek()))): // it is repeated
			member.MarkRead()
		}
	}
}

// messages decodes a message, or a list of them. It reports whether v is that.
func (d *stream) messages(g *graph, v jsonv.Value) bool {
	if _, typ := langchain.Message(v); typ == "" && !langchain.List(v) {
		return false
	}
	for m := range jsonv.Each(v) {
		d.whole(g, m)
	}
	return true
}

// debug decodes a task, its result or a checkpoint.
func (d *stream) debug(path, typ string, p jsonv.Value) {
	id, name := ident.Of(p.Get("id")), ident.Of(p.Get("name"))
	g := d.graph(path, id+name)
	step := jsonv.Or(p.Get("step"), p.Path("metadata", "step")).Digits()
	m := d.status(g, typ+":"+msg.HashKey(g.ID, id, name, step, string(p.Path("config", "configurable", "checkpoint_id").Peek())), typ)
	m.SetAttr("node", name)
	m.SetAttr("step", step)
	m.SetAttr("id", id)
	m.SetAttr("parent_id", ident.Of(p.Get("parent_id")))
	conversation.Fault(m, p.Get("error"))
	p.Skip("input", "values", "config", "parent_config", "metadata", "tasks") // the state, and credentials
	for pair := range p.Get("result").Elems() {                               // [[channel, value]]
		for v := range pair.Elems() {
			d.update(g, v)
		}
	}
	d.update(g, p.Get("result"))
	d.waits(g, p.Get("interrupts"))
	if typ != "task_result" || p.Get("interrupts").Len() > 0 { // it goes on
		return
	}
	if path != "" {
		path += "|"
	}
	d.over(path+name+":"+id, p.Get("error").Exists())
}

// over ends the run of the graph of that path, if there is one.
func (d *runs) over(path string, failed bool) {
	if sub := d.known(path); sub != nil {
		d.ends(sub, conversation.Outcome(failed), failed)
	}
}

// waits decodes interrupts: a list of {id, value}.
func (d *stream) waits(g *graph, v jsonv.Value) {
	if v.Len() == 0 {
		return
	}
	key := "interrupt:" + msg.HashKey(d.Graphs[0].ID, string(v.Peek()))
	if !d.Once(key) { // values and updates both have it
		v.MarkRead()
		return
	}
	d.complete(d.Replies...) // they come before the question
	m := d.status(d.Graphs[0], key, "interrupt")
	m.Signal, m.Content = msg.RunPause, v.JSON()
	m.SetAttr("node", g.Agent)
	d.Graphs[0].Paused = true
}

// failed decodes an error of the run, which ends it.
func (d *stream) failed(g *graph, v jsonv.Value) {
	m := d.add(g, msg.Error, "error:"+msg.HashKey(g.ID, string(v.Get("error").Peek()), string(v.First("message", "detail").Peek())))
	m.IsError, m.Role = true, msg.RoleAssistant
	m.Tool.ErrorType = ident.Of(v.Get("error"))
	m.Content = v.First("message", "detail", "__error__").Text()
	g.Paused = false
	d.finish(true)
}
