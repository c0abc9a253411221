package langgraph

import (
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/langchain"
)

// prompt emits the input of a person, once: a request and values both have it.
func (d *replies) prompt(g *graph, p prompt) *msg.Message {
	key := "prompt:" + msg.HashKey(g.ID, p.Text)
	if !d.Once(key) {
		return nil
	}
	m := d.add(g, msg.User, key)
	m.Role, m.Content, m.Attachments, m.Agent = msg.RoleUser, msg.Plain(p.Text), p.Files, msg.Agent{Kind: msg.KindHuman}
	if g.Path != "" {
		m.Agent.Kind = msg.KindAgent
	}
	return m
}

// whole decodes a message that is complete.
func (d *replies) whole(g *graph, v jsonv.Value) {
	m, typ := langchain.Message(v)
	id := langchain.ID(m)
	r, repeats := d.Repeats(m)
	if repeats || typ == "remove" {
		v.MarkRead()
		return
	}
	ident.Of(m.Get("id"))
	v.First("type", "role").MarkRead()
	if typ == "ai" {
		r = d.going(id, g.Path, "")
		r.Set(m, d.At)
		d.complete(r)
		return
	}
	d.Drop(r)
	switch typ {
	case "tool":
		d.result(g, m)
	case "human":
		c := langchain.ContentOf(m)
		if p := d.prompt(g, prompt{string(c.Text), c.Files}); p != nil {
			p.SetAttr("message_id", id)
		}
	default:
		s := d.add(g, msg.System, "message:"+id)
		s.Role, s.Content, s.Hidden = msg.RoleSystem, msg.Plain(string(langchain.ContentOf(m).Text)), true
	}
}

// result decodes a message of a tool.
func (d *replies) result(g *graph, m jsonv.Value) {
	d.Once(langchain.ID(m))
	if r := d.resultOf(g, ident.Of(m.Get("tool_call_id")), ident.Of(m.Get("name")), msg.Text{}, m.Get("status").In("error")); r != nil {
		langchain.Result(r, m)
	} else {
		m.MarkRead()
	}
}

// resultOf emits the result of a call, once: tools, messages and values all have it.
func (d *replies) resultOf(g *graph, call, name string, text msg.Text, failed bool) *msg.Message {
	call = cmp.Or(call, "unnamed")
	key := "result:" + d.unique(call)
	if !d.Once(key) {
		return nil
	}
	d.Tools = slices.DeleteFunc(d.Tools, func(t started) bool { return t.Call == call })
	d.complete(d.Of("", call)...) // a result follows the whole reply
	m := d.add(g, msg.ToolResult, key)
	d.about(m, call)
	m.Role, m.Tool.Name, m.Content = msg.RoleTool, name, text
	conversation.Failed(m, failed)
	return m
}

// open opens a reply. Those of the same task that the model has stopped are complete then.
func (d *replies) open(id, graph, task string) *langchain.Reply {
	d.complete(d.Before(task)...)
	return d.Open(id, graph, task)
}

// going returns the open reply of that id, which it opens if need be.
func (d *replies) going(id, graph, task string) *langchain.Reply {
	if r := d.Reply(id); r != nil {
		return r
	}
	return d.open(id, graph, task)
}

// complete emits replies.
func (d *replies) complete(list ...*langchain.Reply) {
	for _, r := range slices.Clone(list) {
		if d.Drop(r) {
			d.Once(r.ID)
			d.write(r, msg.Complete)
		}
	}
}

// write adds the messages of a reply: its thought, its text, its calls, its tokens.
func (d *replies) write(r *langchain.Reply, complete msg.Completeness) {
	g := d.known(r.Graph)
	if g == nil {
		return
	}
	if complete == msg.Partial { // the run begins with a message that is kept
		g = &graph{Run: g.Run, Path: g.Path, Agent: g.Agent}
	}
	text := r.Text(msg.Assistant)
	if r.Role == "tool" {
		if complete == msg.Complete {
			d.resultOf(g, r.Call, "", msg.Plain(text), false)
		}
		return
	}
	at, last := d.At, r.Last
	d.At = at.Or(r.At)
	if thought := r.Text(msg.Reasoning); thought != "" {
		r.Said(d.add(g, msg.Reasoning, r.ID+"/thinking"), msg.Plain(thought)).Complete = complete
	}
	if text != "" {
		r.Said(d.add(g, msg.Assistant, r.ID+"/text"), msg.Plain(text)).Complete = complete
		g.Last = conversation.Cut(text, maxLast)
	}
	for _, p := range r.Parts {
		if p.Kind == msg.ToolCall && p.CallID != "" && (complete == msg.Complete || r.Stop != "") { // its tool runs when the model has stopped
			d.call(g, r, p.CallID, p.Tool, string(p.Text), complete)
		}
	}
	r.Run = g.ID
	if m := r.Usage(d.Out, complete); m != nil {
		m.Session, _ = d.In()
		m.Agent = msg.Agent{Name: cmp.Or(g.Agent, "graph"), Kind: msg.KindAgent}
	}
	d.At, r.Last = at, last
}

// call emits a tool call: complete once.
func (d *replies) call(g *graph, r *langchain.Reply, id, name, arguments string, complete msg.Completeness) {
	key := "call:" + d.unique(id)
	if d.Seen.Has(key) || complete == msg.Complete && !d.Once(key) {
		return
	}
	m := d.add(g, msg.ToolCall, key)
	d.about(m, id)
	m.Complete = complete
	m.Tool.Name, m.Tool.Server = cmp.Or(name, "tool"), conversation.ToolServer(name)
	m.Tool.Arguments = msg.Plain(cmp.Or(arguments, "{}"))
	if r != nil {
		m.Role = msg.RoleAssistant
		r.Mark(m)
	}
}

// tuple decodes [chunk, metadata]: a chunk of a reply, which adds to it, or a whole message.
func (d *replies) tuple(path string, v jsonv.Value) {
	pair := append(slices.Collect(v.Elems()), jsonv.Value{}, jsonv.Value{})
	chunk, meta := pair[0], pair[1]
	task := cmp.Or(ident.Peek(meta.Get("langgraph_checkpoint_ns")), ident.Peek(meta.Get("checkpoint_ns")), path)
	above, _ := split(task)
	m, typ := langchain.Message(chunk)
	if typ == "" {
		d.Unknown("messages", v)
		return
	}
	g := d.graph(above, langchain.ID(m))
	if typ != "ai" || !chunk.First("type").In("AIMessageChunk", "AIMessageChunkChunk") && !m.Get("tool_call_chunks").Exists() {
		d.whole(g, chunk)
		meta.MarkRead()
		return
	}
	d.piece(g, task, ident.Of(m.Get("id")), m, meta, v)
}

// piece decodes a chunk of a reply, which adds to it. all is the event, of a reply that is complete.
func (d *replies) piece(g *graph, task, id string, m, meta, all jsonv.Value) {
	if !d.Going(id) {
		all.MarkRead()
		return
	}
	r := d.going(id, g.Path, task)
	r.Note(meta)
	if r.Add(m, d.At); m.Get("chunk_position").Equal("last") {
		d.complete(r)
	}
}

// cumulative decodes a message as it is so far.
func (d *replies) cumulative(path string, v jsonv.Value, complete bool) {
	m, typ := langchain.Message(v)
	id := langchain.ID(m)
	if typ != "ai" || complete {
		d.whole(d.graph(path, id), v)
		return
	}
	if !d.Going(id) {
		v.MarkRead()
		return
	}
	r := d.going(id, d.graph(path, id).Path, "")
	ident.Of(m.Get("id"))
	v.Get("type").MarkRead()
	if r.Set(m, d.At); !d.Dated && r.Stop != "" && m.Get("usage_metadata").Is(jsonv.Object) { // the last: its calls run from here
		d.complete(r)
	}
}

// block decodes an event of a message of the newer protocol.
func (d *replies) block(path, where string, v, meta jsonv.Value) {
	above, _ := split(path)
	g, run, event := d.graph(above, where), ident.First(v.Get("run_id"), meta.Get("run_id")), v.Get("event")
	if d.Inner {
		meta.MarkRead() // it has the configuration
	}
	r := bounded.Find(d.Replies, func(r *langchain.Reply) bool { return r.Path == path && r.Source == run })
	switch {
	case event.Equal("message-start"):
		r = d.open(cmp.Or(ident.First(v.Get("id"), v.Get("message_id")), run), g.Path, path)
		r.Start(v, d.At)
		if r.Source = run; d.Inner {
			r.Note(meta)
		}
	case r == nil:
		d.Unknown("messages", d.Root)
	case event.In("error", "message-error"):
		m := d.add(g, msg.Error, "error:"+msg.HashKey(r.ID, string(v.Peek())))
		m.IsError, m.Content = true, v.First("message", "error").Text()
	default:
		known, over := r.Event(v, d.At)
		if !known {
			d.Unknown("messages/"+event.PeekStr(), d.Root)
		} else if over {
			d.complete(r)
		}
	}
}
