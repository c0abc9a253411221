package langgraph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/langchain"
)

// reply is a message of the model, or of a tool, that is not complete.
type reply struct {
	conversation.Response
	conversation.Deltas
	Path   string `json:",omitempty"` // of its task
	Graph  string `json:",omitempty"` // path of its graph
	Source string `json:",omitempty"` // run of the model, by which its pieces name it
	Role   string `json:",omitempty"`
	Call   string `json:",omitempty"` // that a message of the role tool answers
}

// prompt emits the input of a person, once: a request and values both have it.
func (d *replies) prompt(g *graph, p prompt) *msg.Message {
	key := "prompt:" + msg.HashKey(g.ID, p.Text)
	if !d.Seen.Add(key, maxSeen) {
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
	r := d.reply(id)
	if r == nil && !d.Seen.Add(id, maxSeen) || typ == "remove" { // it is repeated
		v.MarkRead()
		return
	}
	d.Seen.Add(id, maxSeen)
	ident.Of(m.Get("id"))
	v.First("type", "role").MarkRead()
	switch typ {
	case "ai":
		if r == nil {
			r = d.open(id, g.Path, "")
		}
		d.set(r, m)
		d.complete(r)
		return
	case "tool":
		d.drop(r)
		d.result(g, m)
		return
	}
	d.drop(r)
	c := langchain.ContentOf(m)
	if typ == "human" {
		if p := d.prompt(g, prompt{string(c.Text), c.Files}); p != nil {
			p.SetAttr("message_id", id)
		}
		return
	}
	s := d.add(g, msg.System, "message:"+id)
	s.Role, s.Content, s.Hidden = msg.RoleSystem, msg.Plain(string(c.Text)), true
}

// result decodes a message of a tool.
func (d *replies) result(g *graph, m jsonv.Value) {
	c := langchain.ContentOf(m)
	d.Seen.Add(langchain.ID(m), maxSeen)
	call := ident.Of(m.Get("tool_call_id"))
	r := d.resultOf(g, call, ident.Of(m.Get("name")), msg.Plain(string(c.Text)), m.Get("status").In("error"))
	if r == nil {
		m.MarkRead()
		return
	}
	r.Attachments = c.Files
	r.SetAttr("message_id", ident.Of(m.Get("id")))
	m.Get("status").In("success")
	if a := m.Get("artifact"); a.Exists() {
		r.SetAttr("artifact", conversation.ShortJSON(a))
	}
}

// resultOf emits the result of a call, once: tools, messages and values all have it.
func (d *replies) resultOf(g *graph, call, name string, text msg.Text, failed bool) *msg.Message {
	call = cmp.Or(call, "unnamed")
	key := "result:" + d.unique(call)
	if !d.Seen.Add(key, maxSeen) {
		return nil
	}
	d.Tools = slices.DeleteFunc(d.Tools, func(t started) bool { return t.Call == call })
	for _, r := range slices.Clone(d.Replies) { // a result follows the whole reply
		if slices.ContainsFunc(r.Parts, func(p *conversation.Part) bool { return p.CallID == call }) {
			d.complete(r)
		}
	}
	m := d.add(g, msg.ToolResult, key)
	d.about(m, call)
	m.Role, m.Tool.Name, m.Content = msg.RoleTool, name, text
	if failed {
		m.IsError, m.Tool.ErrorType = true, "tool_error"
	}
	return m
}

// reply returns the open reply of that id, or nil.
func (d *replies) reply(id string) *reply {
	return bounded.Find(d.Replies, func(r *reply) bool { return r.ID == id })
}

// of returns the open replies of a task.
func (d *replies) of(path string) (list []*reply) {
	for _, r := range d.Replies {
		if r.Path == path {
			list = append(list, r)
		}
	}
	return list
}

// open opens a reply. Another of the same task is complete then: a task makes one at a time.
func (d *replies) open(id, graph, path string) *reply {
	if path != "" {
		for _, r := range d.of(path) {
			d.complete(r)
		}
	}
	if len(d.Replies) >= maxReplies {
		d.complete(d.Replies[0])
	}
	r := &reply{Path: path, Graph: graph}
	r.ID = id
	d.Replies = append(d.Replies, r)
	return r
}

func (d *replies) drop(r *reply) {
	d.Replies = slices.DeleteFunc(d.Replies, func(o *reply) bool { return o == r })
}

// complete emits a reply.
func (d *replies) complete(r *reply) {
	d.drop(r)
	d.Seen.Add(r.ID, maxSeen)
	d.write(r, msg.Complete)
}

// write adds the messages of a reply: its thought, its text, its calls, its tokens.
func (d *replies) write(r *reply, complete msg.Completeness) {
	g := d.known(r.Graph)
	if g == nil {
		return
	}
	if complete == msg.Partial { // the run begins with a message that is kept
		g = &graph{Run: g.Run, Path: g.Path, Agent: g.Agent}
	}
	text := r.joined(msg.Assistant)
	if r.Role == "tool" {
		if complete == msg.Complete {
			d.resultOf(g, r.Call, "", msg.Plain(text), false)
		}
		return
	}
	at, last := d.At, r.Last
	d.At = at.Or(r.At)
	for _, part := range [...]struct {
		kind      msg.Kind
		key, text string
	}{{msg.Reasoning, "/thinking", r.joined(msg.Reasoning)}, {msg.Assistant, "/text", text}} {
		if part.text != "" {
			m := d.add(g, part.kind, r.ID+part.key)
			m.Role, m.Content, m.Complete = msg.RoleAssistant, msg.Plain(part.text), complete
			r.Mark(m)
			r.Last = m.Key
		}
	}
	if complete == msg.Complete && text != "" {
		g.Last = conversation.Cut(text, maxLast)
	}
	for _, p := range r.Parts {
		if p.Kind == msg.ToolCall && p.CallID != "" && (complete == msg.Complete || r.Stop != "") { // its tool runs when the model has stopped
			d.call(g, r, p.CallID, p.Tool, string(p.Text), complete)
		}
	}
	r.Run = g.ID
	if m := r.Usage(d.Out, complete); m != nil {
		m.Session, m.Agent = d.session(), msg.Agent{Name: cmp.Or(g.Agent, "graph"), Kind: msg.KindAgent}
	}
	d.At, r.Last = at, last
}

// joined are the texts of a kind.
func (r *reply) joined(kind msg.Kind) string {
	var b strings.Builder
	for _, p := range r.Parts {
		if p.Kind == kind {
			b.Write(p.Text)
		}
	}
	return b.String()
}

// put adds text to the part of that name.
func (r *reply) put(name string, kind msg.Kind, text []byte) (p *conversation.Part) {
	for _, o := range r.Parts {
		if o.Name == name { // an index may be used again
			p = o
		}
	}
	if p == nil {
		if p = r.Open(name, kind); p == nil { // there are too many
			p = &conversation.Part{Kind: kind}
		}
	}
	r.Append(p, msg.Raw(text), maxText)
	return p
}

// arguments replaces those of a call: {id, name, args}.
func (r *reply) arguments(p *conversation.Part, v jsonv.Value) {
	p.Kind, p.CallID, p.Tool = msg.ToolCall, cmp.Or(ident.Of(v.Get("id")), p.CallID), cmp.Or(ident.Of(v.Get("name")), p.Tool)
	r.Clear(p)
	r.Append(p, v.Get("args").Text(), maxText)
}

// call emits a tool call: complete once.
func (d *replies) call(g *graph, r *reply, id, name, arguments string, complete msg.Completeness) {
	key := "call:" + d.unique(id)
	if d.Seen.Has(key) || complete == msg.Complete && !d.Seen.Add(key, maxSeen) {
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

// set replaces the parts of a reply by those of the whole message.
func (d *replies) set(r *reply, m jsonv.Value) {
	r.Deltas = conversation.Deltas{}
	r.contents(m)
	for t := range m.Get("tool_calls").Elems() {
		t.Get("type").Equal("tool_call")
		p := r.put("call "+string(t.Get("id").Peek()), msg.ToolCall, t.Get("args").Raw())
		p.CallID, p.Tool = ident.Of(t.Get("id")), ident.Of(t.Get("name"))
	}
	m.Get("tool_call_chunks").MarkRead() // tool_calls has them parsed
	d.facts(r, m)
	if u := m.Get("usage_metadata"); u.Is(jsonv.Object) {
		r.Counts, r.Provenance = langchain.Counts(u, r.Counts), msg.Provider
	}
}

// contents adds the text and the thought of a message, or of a chunk.
func (r *reply) contents(m jsonv.Value) {
	c := langchain.ContentOf(m)
	if len(c.Thought) > 0 {
		r.put("thought", msg.Reasoning, c.Thought)
	}
	if len(c.Text) > 0 {
		r.put("text", msg.Assistant, c.Text)
	}
}

// facts reads response_metadata.
func (d *replies) facts(r *reply, m jsonv.Value) {
	meta := m.First("response_metadata", "responseMetadata")
	if model := ident.First(meta.Get("model_name"), meta.Get("model")); model != "" {
		r.Model = model
	}
	if provider := ident.Of(meta.Get("model_provider")); provider != "" {
		r.Provider = provider
	}
	if stop := ident.First(meta.Get("finish_reason"), meta.Get("stop_reason")); stop != "" {
		r.Stop = stop
	}
	meta.Skip("token_usage", "tokenUsage", "usage", "safety_ratings", "logprobs") // usage_metadata has the counts
	r.At = d.At.Or(r.At)
}

// noted reads the metadata of a chunk.
func (d *replies) noted(r *reply, meta jsonv.Value) {
	if r != nil {
		r.Model = cmp.Or(ident.Of(meta.Get("ls_model_name")), r.Model)
		r.Provider = cmp.Or(ident.Of(meta.Get("ls_provider")), r.Provider)
	}
	if meta.Is(jsonv.Object) { // it repeats configurable, which may have credentials
		meta.MarkRead()
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
	id := ident.Of(m.Get("id"))
	r := d.reply(id)
	if r == nil {
		if d.Seen.Has(id) {
			v.MarkRead()
			return
		}
		r = d.open(id, g.Path, task)
	}
	d.noted(r, meta)
	r.contents(m)
	for t := range m.Get("tool_call_chunks").Elems() {
		t.Get("type").Equal("tool_call_chunk")
		p := r.put("call "+ident.Bounded(string(t.Get("index").Peek())), msg.ToolCall, t.Get("args").Text().Append(nil))
		p.CallID, p.Tool = cmp.Or(p.CallID, ident.Of(t.Get("id"))), cmp.Or(p.Tool, ident.Of(t.Get("name")))
	}
	m.Skip("tool_calls", "invalid_tool_calls")
	d.facts(r, m)
	if u := m.Get("usage_metadata"); u.Is(jsonv.Object) {
		r.Counts, r.Provenance = r.Counts.Add(langchain.Counts(u, conversation.Counts{})), msg.Provider
	}
	if m.Get("chunk_position").Equal("last") {
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
	r := d.reply(id)
	if r == nil {
		if d.Seen.Has(id) {
			v.MarkRead()
			return
		}
		r = d.open(id, d.graph(path, id).Path, "")
	}
	ident.Of(m.Get("id"))
	v.Get("type").MarkRead()
	if d.set(r, m); !d.Dated && r.Stop != "" && m.Get("usage_metadata").Is(jsonv.Object) { // the last: its calls run from here
		d.complete(r)
	}
}

// block decodes an event of a message of the newer protocol.
func (d *replies) block(path, where string, v, root jsonv.Value) {
	above, _ := split(path)
	g, run := d.graph(above, where), ident.Of(v.Get("run_id"))
	event := v.Get("event")
	if event.Equal("message-start") {
		r := d.open(cmp.Or(ident.Of(v.Get("id")), run), g.Path, path)
		r.Source, r.At = run, d.At
		r.Role, r.Call = ident.Of(v.Get("role")), ident.Of(v.Get("tool_call_id"))
		r.count(v.Get("usage"))
		meta := v.Get("metadata")
		r.Model, r.Provider = ident.Of(meta.First("model", "ls_model_name")), ident.Of(meta.First("provider", "ls_provider"))
		return
	}
	i := slices.IndexFunc(d.Replies, func(r *reply) bool { return r.Path == path && r.Source == run })
	if i < 0 {
		d.Unknown("messages", root)
		return
	}
	r, index := d.Replies[i], ident.Bounded(string(v.Get("index").Peek()))
	r.At = d.At
	switch {
	case event.Equal("content-block-start"):
		c, kind := v.Get("content"), msg.Assistant
		switch typ := c.Get("type"); {
		case typ.In("reasoning", "thinking"):
			kind = msg.Reasoning
		case typ.In("tool_call", "tool_use", "tool_call_chunk"):
			kind = msg.ToolCall
		}
		if p := r.Open(index, kind); p != nil {
			p.CallID, p.Tool = ident.Of(c.Get("id")), ident.Of(c.Get("name"))
			r.Append(p, msg.Raw(textOf(c)), maxText)
		}
	case event.Equal("content-block-delta"):
		delta, p := v.Get("delta"), r.put(index, msg.Assistant, nil)
		delta.Get("type").MarkRead()
		switch fields := delta.Get("fields"); {
		case fields.Get("type").Equal("tool_call_chunk"): // all of it so far
			r.arguments(p, fields)
		case fields.Is(jsonv.Object):
			fields.MarkRead() // a chunk as the provider sends it; another delta has it
		default:
			r.Append(p, msg.Raw(textOf(delta)), maxText)
		}
	case event.Equal("content-block-finish"):
		c, p := v.Get("content"), r.put(index, msg.Assistant, nil)
		c.Get("type").MarkRead()
		if c.Get("args").Exists() {
			r.arguments(p, c)
			c.Get("input").MarkRead() // the last piece
		} else if text := textOf(c); len(text) > 0 {
			r.Clear(p)
			r.Append(p, msg.Raw(text), maxText)
		}
	case event.Equal("usage"):
		r.count(v.Get("usage"))
	case event.Equal("message-finish"):
		r.count(v.Get("usage"))
		r.Stop = ident.Of(v.Get("reason"))
		d.facts(r, v)
		d.complete(r)
	case event.In("error", "message-error"):
		m := d.add(g, msg.Error, "error:"+msg.HashKey(r.ID, string(v.Peek())))
		m.IsError, m.Content = true, v.First("message", "error").Text()
	default:
		d.Unknown("messages/"+event.PeekStr(), root)
	}
}

// textOf is the text of a block or of a delta.
func textOf(v jsonv.Value) []byte { return v.First("text", "reasoning", "thinking").Text().Append(nil) }

func (r *reply) count(u jsonv.Value) {
	if u.Is(jsonv.Object) {
		r.Counts, r.Provenance = langchain.Counts(u, r.Counts), msg.Provider
	}
}
