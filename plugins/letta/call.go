package letta

import (
	"bytes"
	"cmp"
	"slices"
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
	conversation.Call
	Key     string `json:",omitempty"` // of the assistant message, for a call of speechTool
	Run     string `json:",omitempty"`
	Request string `json:",omitempty"` // id of the request for approval
	To      string `json:",omitempty"` // the agent that it delegates to
}

// calls decodes a message that calls tools: one piece of one call, or a list of whole
// calls.
func (r *run) calls(d *stream, v jsonv.Value, approval bool) {
	list, piece := v.Get("tool_calls"), v.Get("tool_call")
	if !piece.Is(jsonv.Object) {
		piece = v.First("tool_calls", "function_call")
	}
	whole := list.Is(jsonv.Array) && list.Len() > 0
	switch {
	case whole:
		markRepeated(piece, list)
		r.close(d)
		r.First = 1
		for e := range list.Elems() {
			r.beginCall(d, v, e, approval)
		}
	case piece.Is(jsonv.Object), piece.Is(jsonv.String):
		markRepeated(list, v.Get("tool_call"))
		if b := r.continued(v, calling, piece); b != nil {
			b.describe(d, v)
			r.appendCall(b, piece)
		} else {
			r.beginCall(d, v, piece, approval)
		}
	default:
		d.unknown(v, "")
	}
	if whole || d.whole {
		r.close(d)
	}
}

// callID is the id of a call, which only the first piece has in some versions, and not the
// first in others.
func callID(piece jsonv.Value) jsonv.Value {
	return piece.First("tool_call_id", "function_call_id", "id")
}

// continued returns the open block that v, a piece of that part, continues, or nil. Of several calls it is
// the last one if the piece has no id or the call has none yet.
func (r *run) continued(v jsonv.Value, part string, piece jsonv.Value) *block {
	id, last := callID(piece), true
	for _, b := range slices.Backward(r.Open) {
		if piece.Is(jsonv.String) || !b.continuedBy(v, part) {
			continue
		}
		if last && b.Tool.CallID == "" {
			b.Tool.CallID = ident.Of(id)
			return b
		}
		if last && !id.Is(jsonv.String) || ident.Is(id, b.Tool.CallID) {
			return b
		}
		last = false
	}
	return nil
}

// beginCall opens a call.
func (r *run) beginCall(d *stream, v, piece jsonv.Value, approval bool) {
	b := r.begin(d, v, calling, approval)
	b.Tool.CallID = ident.Of(callID(piece))
	b.describe(d, v)
	if piece.Is(jsonv.String) { // as the oldest servers write it, without an id: name(arguments)
		name, args, _ := strings.Cut(piece.Str(), "(")
		b.Tool.Name, b.Text = ident.Bounded(name), []byte(strings.TrimSuffix(args, ")"))
	} else {
		r.appendCall(b, piece)
	}
	if d.repeats(r, piece, b.call(), func() conversation.Sum { s, _ := d.arguments(b.Text); return b.sum(s) }) {
		return
	}
	r.firstToken(d, b)
	r.Open = append(r.Open, b)
}

// appendCall adds a piece to a call. A call of speechTool has the key of its text, and of a
// further text if another call of its message has that.
func (r *run) appendCall(b *block, piece jsonv.Value) {
	name, args := piece.Get("name"), piece.Get("arguments")
	if b.Tool.Name == "" {
		if b.Tool.Name = ident.Of(name); b.Tool.Name == speechTool && b.Key == "" {
			id := b.name(speaking)
			if slices.ContainsFunc(r.Open, func(o *block) bool { return o.Key != "" && o.name(speaking) == id }) {
				id.Name = b.call().Name
			}
			b.Key = r.key(b.Base, id)
		}
	} else if name.Is(jsonv.String) {
		ident.Is(name, b.Tool.Name)
		if n := len(b.Text); n > 1 && b.Text[n-1] == '}' && len(args.Peek()) > n && args.Equal(string(b.Text)) {
			return // a repetition of the whole call
		}
	}
	if len(b.Text) < maxText {
		b.Text = args.Text().Append(b.Text)
	}
}

// call names the call in all forms.
func (b *block) call() conversation.PartID {
	return conversation.PartID{Kind: calling, Name: conversation.SumOf(cmp.Or(b.Tool.CallID, b.Base))}
}

// sum is the checksum of the call with its arguments in canonical form.
func (b *block) sum(args string) conversation.Sum {
	return conversation.SumOf(b.Tool.Name + "\x00" + args)
}

// arguments returns the arguments in canonical form, and their value unless they are no JSON.
func (w *writer) arguments(raw []byte) (canon string, v jsonv.Value) {
	if w.inner.Parse(raw) != nil {
		return string(raw), v
	}
	v = w.inner.Root()
	return string(compact(make([]byte, 0, len(raw)), v)), v
}

// emitCall emits a call.
func (r *run) emitCall(d *stream, b *block, level msg.Completeness) {
	m, flushed := b.Message, d.Frame == nil
	if flushed && b.Tool.CallID == "" { // it may follow the name
		return
	}
	if !flushed && len(b.Text) == 0 {
		b.Text = []byte("{}")
	}
	args, root := d.arguments(b.Text)
	c := &call{Call: conversation.Call{ID: cmp.Or(b.Tool.CallID, b.Base), Name: b.Tool.Name}, Key: b.Key, Run: r.ID}
	if m.Complete = level; b.Key == "" {
		m.Key, m.Tool.CallID, m.Tool.Arguments = "call:"+c.ID, c.ID, msg.Plain(args)
		if c.Name == "" {
			m.Complete = min(level, msg.Summary) // its beginning is missing
		}
		if !flushed && root.Is(jsonv.Missing) {
			m.SetAttr("unparsed_arguments", "true")
		}
	} else {
		m.Kind, m.Tool = msg.Assistant, msg.Tool{}
		if speech := root.Get("message"); speech.Exists() {
			m.Content = speech.Text().Own()
		} else if level > msg.Partial {
			m.Content = msg.Plain(args)
		}
	}
	if out := d.put(r, m); delegates(c.Name) {
		fillDelegation(out, root)
		c.To = out.Delegation.To
	}
	if flushed {
		return
	}
	if level > msg.Partial && !d.whole {
		r.Emitted.Complete(b.call(), b.sum(args))
	}
	if b.Approval {
		c.Request = b.ID
		m := record.Hide(d.about(r, b, "wait:"+c.ID, level), "approval_request")
		m.ParentKey, m.Signal, m.Tool.CallID, m.Tool.Name = "call:"+c.ID, msg.WaitStart, c.ID, c.Name
	}
	d.Calls.Take(c.ID)
	d.Calls.Add(c)
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
	list := v.Get("tool_returns")
	if !list.Is(jsonv.Array) || list.Len() == 0 {
		r.result(d, v, v)
		return
	}
	markRepeated(v, list)
	for e := range list.Elems() {
		r.result(d, v, e)
	}
}

// result decodes the result of one tool; v is the message that contains it.
func (r *run) result(d *stream, v, e jsonv.Value) {
	returned := e.First("tool_return", "function_return")
	id := ident.Of(e.First("tool_call_id", "function_call_id"))
	if c := d.Calls.Newest(func(c *call) bool { return c.Run == r.ID }); id == "" && c != nil {
		id = c.ID
	}
	if id == "" {
		id = cmp.Or(ident.Of(v.Get("id")), msg.HashKey(r.ID, string(v.Get("date").Peek()), string(returned.Peek())))
	}
	part, sum := conversation.PartID{Kind: "result", Name: conversation.SumOf(id)}, conversation.SumOf(returned.Peek())
	if d.repeats(r, v, part, func() conversation.Sum { return sum }) {
		e.MarkRead()
		return
	}
	if !d.whole { // the stream may repeat it
		r.Emitted.Complete(part, sum)
	}
	c := d.Calls.Take(id)
	if c == nil {
		c = &call{}
	}
	named := v.Get("name")
	if ident.Is(named, c.Name); c.Name == "" && !named.Equal("tool") { // the word of some servers for any tool
		c.Name = ident.Of(named)
	}
	m := d.dated(r, msg.ToolResult, "result:"+id)
	m.ParentKey, m.Role = "call:"+id, msg.RoleTool
	m.Tool.CallID, m.Tool.Name = id, c.Name
	if id := v.Get("sender_id"); isAgent(id) {
		m.Agent = d.agent(ident.Of(id), "")
	}
	m.Content, m.Attachments = contentOf(returned)
	if m.IsError = e.Get("status").Equal("error") || v.Get("is_err").Bool(); m.IsError {
		m.Tool.ErrorType = errorType(m.Content)
	}
	for _, name := range [...]string{"stdout", "stderr"} {
		output, _ := contentOf(e.Get(name))
		m.SetAttr(name, output.String())
	}
	switch {
	case c.Key != "": // other forms have no result of speechTool
		m.Kind, m.ParentKey = msg.Status, c.Key
		record.Hide(m, speechTool)
	case delegates(c.Name):
		m.Kind, m.Delegation.To, m.Delegation.Async = msg.DelegationResult, c.To, c.Name == asyncTool
		d.fillAnswer(m)
	}
}

// errorType classifies the text of a tool's error.
func errorType(t msg.Text) string {
	const most = 400
	return conversation.ErrorClass(conversation.Cut(t.String(), most), "request to call tool denied", "denied", "interrupted", "interrupted",
		"cancelled", "cancelled", "timed out", "timeout", "imeout", "timeout", "No tool named", "not_found",
		"ool rule violation", "validation", "ValidationError", "validation")
}
