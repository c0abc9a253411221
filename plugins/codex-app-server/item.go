package codexappserver

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// item decodes item/started and item/completed.
func (d *connection) item(method string, v jsonv.Value) {
	it := codex.Item{Value: v, ID: ident.Of(v.Get("id")), Type: codex.Snake(v.Get("type").Str()), Done: method == "item/completed"}
	v.Get("senderThreadId").Equal(d.ID)
	if it.Done {
		d.th.Drop(d.th.Part(it.ID))
	}
	switch {
	case it.Known():
		d.known(it)
	case it.ID == "":
		d.unknown(method)
	case it.Type == "user_message":
		d.user(it)
	case it.Type == "sub_agent_activity":
		d.activity(it)
	case it.Type == "context_compaction":
		m := it.Whole(d.Status("compaction:"+it.ID, it.Type))
		m.Hidden, m.Signal = false, msg.Compaction
	case it.Type == "entered_review_mode", it.Type == "exited_review_mode", it.Type == "hook_prompt":
		m := d.Status(method+":"+it.Type+":"+it.ID, it.Type) // one id, that of the turn, has both ends of a review
		m.Content = v.First("review", "fragments").Text()
	default:
		d.unknown(method + "/" + v.Get("type").Str())
	}
}

// known decodes an item that other framings have too, and makes it a part of the open response.
func (d *connection) known(it codex.Item) {
	c := d.Calls.GetOpen(it.ID)
	switch {
	case it.Type == "file_change" && it.Done && c != nil && it.Get("status").Equal("failed"):
		c.Failed, it.Done = true, false // it may still be declined
	case it.Type == "agent_message" && !it.Done && len(it.Get("text").Escaped()) == 0, it.Type == "reasoning" && !it.Done:
		return // its text is still to come
	}
	before := len(d.Out.Messages)
	d.Item(it)
	if c := d.Calls.GetOpen(it.ID); c != nil && c.Spawn {
		for id := range it.Get("receiverThreadIds").Elems() {
			d.child(ident.Of(id), d.ID)
		}
	}
	if c != nil { // its call is a part already
		return
	}
	m, t := &d.Out.Messages[before], d.th
	t.Response = cmp.Or(t.Response, it.ID)
	m.Model, m.Provider, m.ResponseID = t.Model, t.Provider, t.Response
	m.ParentKey, t.Last = t.Last, m.Key
}

// piece keeps a piece of an item. The completed item has the whole; it counts only if the
// turn ends before.
func (d *connection) piece(kind msg.Kind, method string, p jsonv.Value) {
	id, delta := ident.Of(p.Get("itemId")), p.Get("delta")
	if id == "" || !delta.Is(jsonv.String) {
		d.unknown(method)
		return
	}
	d.th.Piece(id, kind, delta.Text(), maxPieces)
}

// user decodes userMessage: {content: […]}.
func (d *connection) user(it codex.Item) {
	m := it.Whole(d.Prompt(it.ID))
	input(m, it.Get("content"))
	d.Asked(m, m.Content)
	d.th.Response, d.th.Last = "", ""
}

// input reads the parts of a prompt: {type: text, text} | {type: image, url} | {type: localImage, path}.
func input(m *msg.Message, parts jsonv.Value) {
	var texts conversation.Texts
	for b := range parts.Elems() {
		switch typ := b.Get("type"); {
		case typ.Equal("image"):
			m.Attachments = append(m.Attachments, media.URL(b.Get("url")))
		case typ.Equal("localImage"):
			m.Attachments = append(m.Attachments, media.File(ident.Of(b.Get("path"))))
		default:
			texts.Add(b.Get("text").Text())
		}
	}
	m.Content = texts.Joined()
}

// activity decodes subAgentActivity: {id: the call's, kind: started | …, agentThreadId, agentPath}. The call
// has no other item.
func (d *connection) activity(it codex.Item) {
	child, path := ident.Of(it.Get("agentThreadId")), ident.Of(it.Get("agentPath"))
	if !it.Get("kind").Equal("started") || child == "" || d.Calls.GetOpen(it.ID) != nil {
		m := d.Status("activity:"+msg.HashKey(it.ID, string(it.Get("kind").Peek())), "subAgentActivity")
		m.Tool.CallID = it.ID
		codex.SetIDs(m, it.Value, "agent_thread_id=agentThreadId", "agent_path=agentPath", "kind")
		return
	}
	c := d.NewCall(it.ID, "spawn_agent")
	c.Delegation, c.Spawn, c.To = true, true, path
	c.On(d.Add(msg.Delegation, "call:"+c.ID))
	d.Calls.Add(c)
	d.Link(c, child, path, "ack:"+c.ID, "spawned")
	t := d.child(child, d.ID)
	t.Name = cmp.Or(t.Name, ident.OfFile(path, "\x00"))
}

// asks decodes a request to a person, who allows a call or answers it. A server of tools asks in no item: the oldest call
// that waits for it is taken.
func (d *connection) asks(p jsonv.Value) {
	w := wait{Request: d.m.ID(), Thread: d.ID, Item: ident.Of(p.Get("itemId"))}
	server := ident.Of(p.Get("serverName"))
	if server != "" && w.Item == "" {
		w.Item = "request:" + w.Request
		if c := d.Calls.Oldest(func(c *codex.Call) bool { return c.Server == server }); c != nil {
			w.Item = c.ID
		}
	}
	d.Waits = bounded.Push(d.Waits, w, maxWaits)
	m := d.Wait(d.OpenCall(w.Item), msg.WaitStart)
	m.Tool.Server, m.Content = cmp.Or(m.Tool.Server, server), p.First("reason", "message").Text()
	p.Skip("command", "cwd") // the item has them
}

// answered ends a wait.
func (d *connection) answered(request string) {
	if w, ok := bounded.Take(&d.Waits, func(w wait) bool { return w.Request == ident.Bounded(request) }); ok {
		d.enter(w.Thread)
		d.Wait(d.OpenCall(w.Item), msg.WaitEnd)
	}
}
