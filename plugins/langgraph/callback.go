package langgraph

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/langchain"
)

// callback decodes an event of the callbacks of LangChain, {event: on_…, name, run_id, metadata, data}: the mode events, and
// what a program prints of astream_events. Each runnable inside a node has some too; they repeat the model's, the tool's and the node's.
func (d *stream) callback(v jsonv.Value) {
	event, id := v.Get("event").PeekStr(), ident.Of(v.Get("run_id"))
	meta, data, name := v.Get("metadata"), v.Get("data"), ident.Of(v.Get("name"))
	node := ident.Peek(meta.Get("langgraph_node"))
	task := cmp.Or(ident.Peek(meta.Get("langgraph_checkpoint_ns")), ident.Peek(meta.Get("checkpoint_ns")))
	above, _ := split(task)
	d.Thread = cmp.Or(d.Thread, ident.Peek(meta.Get("thread_id")))
	if node == "" && len(d.Graphs) == 0 {
		d.begin(id, name)
	}
	g := d.graph(above, id)
	switch what, when := cutLast(strings.TrimPrefix(event, "on_"), '_'); {
	case what == "chat_model" && when == "stream":
		m, _ := langchain.Message(data.Get("chunk"))
		d.piece(g, task, modelID(m, id), m, meta, v)
	case what == "chat_model" && when == "end":
		d.modelEnds(g, id, data.Get("output"))
	case what == "tool" && when == "end":
		d.toolEnds(g, data.Get("output"))
	case what == "tool" && when == "error" && data.Get("tool_call_id").Exists():
		d.resultOf(g, ident.Of(data.Get("tool_call_id")), name, data.Get("error").Text(), true)
	case what == "chain" && node == "":
		d.root(g, when, data)
	case what == "chain" && name == node && when == "end":
		d.update(g, data.Get("output"))
		d.over(task, false)
	case event == "on_custom_event" || what == "retriever" && when == "end" || when == "error":
		m := d.status(g, conversation.Ordinal(event+":"+g.ID, &g.Steps), event)
		m.SetAttr("name", name)
		m.Content = data.JSON()
	}
	v.Skip("event", "metadata", "tags", "parent_ids")
	data.Skip("input", "output", "chunk") // in messages, or there before
}

// modelID is the id of a reply. A program that prints a part of each event leaves it out: then it is the run of the model, as
// LangChain itself names a reply that has none of its provider.
func modelID(m jsonv.Value, run string) string { return cmp.Or(ident.Peek(m.Get("id")), "run-"+run) }

// modelEnds decodes the whole reply of a model: a message, or generations of some in the first version of the events.
func (d *stream) modelEnds(g *graph, run string, output jsonv.Value) {
	for list := range output.Get("generations").Elems() {
		for one := range jsonv.Each(list) {
			d.modelEnds(g, run, one.Get("message"))
		}
	}
	switch m, typ := langchain.Message(output); {
	case typ == "ai" && m.Get("id").Is(jsonv.String):
		d.whole(g, output)
	case typ == "ai":
		if id := modelID(m, run); d.Going(id) {
			r := d.going(id, g.Path, "")
			r.Set(m, d.At)
			d.complete(r)
		}
	case d.Reply("run-"+run) != nil:
		d.complete(d.Reply("run-" + run))
	}
}

// toolEnds decodes what a tool has returned: its message, or a command that updates the state with one.
func (d *stream) toolEnds(g *graph, output jsonv.Value) {
	if m, typ := langchain.Message(output); typ == "tool" {
		d.result(g, m)
		return
	}
	for one := range jsonv.Each(output) {
		d.messages(g, jsonv.Or(one.Path("update", "messages"), one.Get("messages")))
	}
}

// root decodes an event of the graph itself: its input, its interrupts, and the state that it ends with.
func (d *stream) root(g *graph, when string, data jsonv.Value) {
	switch when {
	case "start":
		for _, c := range langchain.Prompts(data.Path("input", "messages")) {
			d.prompt(g, prompt{conversation.Cut(string(c.Text), maxText), c.Files})
		}
	case "stream":
		for part := range jsonv.Each(data.Get("chunk")) { // [mode, chunk] where several are streamed
			d.waits(g, part.Get("__interrupt__"))
		}
	case "end":
		d.values(g, data.Get("output"), false)
		if d.Frame.Kind == frame.Line { // a stream of the platform goes on, and is closed
			d.finish(false)
		}
	case "error":
		d.failed(g, data)
	}
}
