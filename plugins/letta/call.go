package letta

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// speechTool is the tool by which agents of the older kind speak. By default servers write
// its call as an assistant_message and omit its result.
const speechTool = "send_message"

// call is a tool call without a result.
type call struct {
	conversation.Delegation
	Key     string `json:",omitempty"` // of the assistant message, for a call of speechTool
	Run     string `json:",omitempty"`
	Request string `json:",omitempty"` // id of the request for approval
}

func callOf(c conversation.Call) *call {
	return &call{Delegation: conversation.Delegation{Call: c, Task: delegates(c.Name), Async: c.Name == asyncTool}}
}

// call identifies the call that the block is.
func (b *block) call() conversation.Call {
	c := conversation.Call{ID: cmp.Or(b.Tool.CallID, b.Base), Name: b.Tool.Name}
	c.Within(b.Base)
	return c
}

// calls decodes a message that calls tools: one piece of one call, or a list of whole calls.
// One field repeats the other.
func (r *run) calls(d *stream, v jsonv.Value, approval bool) {
	list, one := v.Get("tool_calls"), v.First("tool_call", "tool_calls", "function_call")
	switch {
	case list.Is(jsonv.Array) && list.Len() > 0:
		markRepeated(v.Get("tool_call"), list)
		r.close(d)
		for e := range list.Elems() {
			p := pieceOf(v, e, approval, true)
			r.piece(d, &p)
		}
		r.close(d)
	case one.Is(jsonv.Object), one.Is(jsonv.String):
		markRepeated(list, v.Get("tool_call"))
		p := pieceOf(v, one, approval, one.Is(jsonv.String))
		r.piece(d, &p)
	default:
		d.unknown(v, "")
	}
}

// pieceOf returns the piece of a call. The oldest servers write a call as a string: name(arguments).
func pieceOf(v, call jsonv.Value, approval, whole bool) piece {
	p := piece{record: v, part: calling, call: call, approval: approval, whole: whole}
	p.name, p.text = ident.Of(call.Get("name")), call.Get("arguments").Text()
	if call.Is(jsonv.String) {
		name, args, _ := strings.Cut(call.Str(), "(")
		p.name, p.text = ident.Bounded(name), msg.Plain(strings.TrimSuffix(args, ")"))
	}
	return p
}

// callID is the id of a call, which only the first piece has in some versions, and not the
// first in others.
func callID(call jsonv.Value) jsonv.Value {
	return call.First("tool_call_id", "function_call_id", "id")
}

// arguments returns the arguments in canonical form, and their value unless they are no JSON.
func (w *writer) arguments(raw []byte) (canon string, v jsonv.Value) {
	if w.inner.Parse(raw) != nil {
		return string(raw), v
	}
	v = w.inner.Root()
	return string(compact(make([]byte, 0, len(raw)), v)), v
}

// emitCall emits a call as the message m: the call, the delegation that it is, or its text. It returns the arguments.
func (r *run) emitCall(d *stream, b *block, m msg.Message, flushed bool) (args string) {
	if !flushed && len(b.Text) == 0 {
		b.Text = []byte("{}")
	}
	args, root := d.arguments(b.Text)
	level := m.Complete
	c := callOf(b.call())
	if c.Key, c.Run = b.Key, r.ID; c.Key != "" {
		m.Kind, m.Tool = msg.Assistant, msg.Tool{}
		if speech := root.Get("message"); speech.Exists() {
			m.Content = speech.Text()
		} else if level > msg.Partial {
			m.Content = msg.Plain(args)
		}
		d.put(r, m)
	} else {
		if m.Key = "call:" + c.ID; c.Name == "" {
			m.Complete = min(level, msg.Summary) // its beginning is missing
		}
		if !flushed && root.Is(jsonv.Missing) {
			m.SetAttr("unparsed_arguments", "true")
		}
		c.called(d.put(r, m), msg.Plain(args), root)
	}
	if flushed {
		return args
	}
	if b.Approval {
		c.Request = b.ID
		w := d.about(r, b, "wait:"+c.ID, "approval_request")
		w.ParentKey, w.Signal, w.Complete = "call:"+c.ID, msg.WaitStart, level
		c.Call.On(w)
	}
	d.Calls.Take(c.ID)
	d.Calls.Add(c)
	return args
}

// markRepeated marks the members of v that equal those of first, or of the first element of a
// list, as read.
func markRepeated(v, first jsonv.Value) {
	for e := range first.Elems() {
		first = e
		break
	}
	for k, m := range first.Members() {
		if repeated := v.Get(string(k.Bytes())); bytes.Equal(repeated.Peek(), m.Peek()) {
			repeated.MarkRead()
		}
	}
}

// compact appends v as JSON without spacing and without escapes that it does not need. A
// model spaces and escapes arguments as it likes, and the server rewrites them when it stores
// them: in this form both are equal.
func compact(dst []byte, v jsonv.Value) []byte {
	comma := []byte{','}
	switch v.Kind() {
	case jsonv.Object:
		dst = append(dst, '{')
		for k, m := range v.Members() {
			dst = append(compact(append(jsonv.AppendQuote(dst, k.String()), ':'), m), ',')
		}
		return append(bytes.TrimSuffix(dst, comma), '}')
	case jsonv.Array:
		dst = append(dst, '[')
		for e := range v.Elems() {
			dst = append(compact(dst, e), ',')
		}
		return append(bytes.TrimSuffix(dst, comma), ']')
	case jsonv.String:
		if _, escaped := v.Text().Alias(); escaped {
			return jsonv.AppendQuote(dst, v.Str())
		}
	}
	return append(dst, v.Raw()...)
}

// results decodes the results of tools. The fields of the message itself repeat the first of
// the list, if any.
func (r *run) results(d *stream, v jsonv.Value) {
	r.close(d)
	r.First, r.Response = 1, ""
	list := listOr(v.Get("tool_returns"), v)
	markRepeated(v, v.Get("tool_returns"))
	for e := range jsonv.Each(list) {
		r.result(d, v, e)
	}
}

// listOr returns a list, or the other value if it has no elements.
func listOr(list, or jsonv.Value) jsonv.Value {
	if list.Is(jsonv.Array) && list.Len() > 0 {
		return list
	}
	return or
}

// result decodes the result of one tool; v is the message that contains it.
func (r *run) result(d *stream, v, e jsonv.Value) {
	returned, named := e.First("tool_return", "function_return"), v.Get("name")
	c := d.callOf(r, v, ident.Of(e.First("tool_call_id", "function_call_id")))
	if c == nil {
		id := cmp.Or(ident.Of(v.Get("id")), msg.HashKey(r.ID, string(v.Get("date").Peek()), string(returned.Peek())))
		c = callOf(conversation.Call{ID: id})
	}
	part, sum := conversation.PartID{Kind: "result", Name: conversation.SumOf(c.ID)}, conversation.SumOf(returned.Peek())
	if d.repeats(r, v, part, func() conversation.Sum { return sum }) {
		e.MarkRead()
		return
	}
	if !d.whole { // the stream may repeat it
		r.Emitted.Complete(part, sum)
	}
	d.Calls.Remove(c)
	if ident.Is(named, c.Name); c.Name == "" && !named.Equal("tool") { // the word of some servers for any tool
		c.Name = ident.Of(named)
	}
	c.Task, c.Async = delegates(c.Name), c.Name == asyncTool
	m := c.Result(d.dated(r, msg.ToolResult, "result:"+c.ID))
	if id := v.Get("sender_id"); isAgent(id) {
		m.Agent = d.agent(ident.Of(id), "")
	}
	returns(m, e, v.Get("is_err").Bool())
	for _, name := range [...]string{"stdout", "stderr"} {
		output, _ := contentOf(e.Get(name))
		m.SetAttr(name, output.String())
	}
	switch {
	case c.Key != "": // other forms have no result of speechTool
		m.Kind, m.ParentKey = msg.Status, c.Key
		record.Hide(m, speechTool)
	case c.Task:
		d.fillAnswer(m)
	}
}

// callOf returns the call of a result that v has: by its id in the response, else the newest that has it, and without
// an id the newest of the run. It is nil if nothing names it.
func (w *writer) callOf(r *run, v jsonv.Value, id string) *call {
	if id == "" {
		return w.Calls.Newest(func(c *call) bool { return c.Run == r.ID })
	}
	if c := w.Calls.GetOpen(id); c != nil {
		return c
	}
	c := conversation.Call{ID: id}
	c.Within(cmp.Or(ident.Of(v.Get("step_id")), r.ID))
	return cmp.Or(w.Calls.GetOpen(c.ID), w.Calls.Named(id), callOf(c))
}

// returns makes the content of a result the value that a tool has returned.
func returns(m *msg.Message, e jsonv.Value, failed bool) {
	m.Content, m.Attachments = contentOf(e.First("tool_return", "function_return"))
	if m.IsError = e.Get("status").Equal("error") || failed; m.IsError {
		m.Tool.ErrorType = errorType(m.Content)
	}
}

// errorType classifies the text of a tool's error.
func errorType(t msg.Text) string {
	const most = 400
	return conversation.ErrorClass(conversation.Cut(t.String(), most), "request to call tool denied", "denied", "interrupted", "interrupted",
		"cancelled", "cancelled", "timed out", "timeout", "imeout", "timeout", "No tool named", "not_found",
		"ool rule violation", "validation", "ValidationError", "validation")
}
