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
func (r *run) calls(w *writer, v jsonv.Value, approval bool) {
	list, one := v.Get("tool_calls"), v.Get("tool_call")
	whole := list.Is(jsonv.Array) && list.Len() > 0
	switch {
	case whole:
		markRepeated(one, list)
		r.close(w)
		r.Late = false
		for e := range list.Elems() {
			r.beginCall(w, v, e, approval)
		}
	case one.Is(jsonv.Object):
		markRepeated(list, one)
		r.callPiece(w, v, one, approval)
	default:
		if one = v.First("tool_calls", "function_call"); !one.Is(jsonv.Object) && !one.Is(jsonv.String) {
			w.unknown(v, "")
			return
		}
		r.callPiece(w, v, one, approval)
	}
	if whole || w.whole {
		r.close(w)
	}
}

// callPiece decodes a piece of one call of the message v.
func (r *run) callPiece(w *writer, v, piece jsonv.Value, approval bool) {
	if b := r.openCall(v, piece, approval); b != nil {
		b.describe(w, v)
		r.appendCall(b, piece)
	} else {
		r.beginCall(w, v, piece, approval)
	}
}

// callID is the id of a call, which only the first piece has in some versions, and not the
// first in others.
func callID(piece jsonv.Value) jsonv.Value {
	return piece.First("tool_call_id", "function_call_id", "id")
}

// openCall returns the open call that a piece of the message v continues: the last one if the
// piece has no id or the call has none yet.
func (r *run) openCall(v, piece jsonv.Value, approval bool) *block {
	id, last := callID(piece), true
	for _, b := range slices.Backward(r.Open) {
		if piece.Is(jsonv.String) || b.Approval != approval || !b.continuedBy(v, calling) {
			continue
		}
		if last && b.CallID == "" {
			b.CallID = ident.Of(id)
			return b
		}
		if last && !id.Is(jsonv.String) || ident.Is(id, b.CallID) {
			return b
		}
		last = false
	}
	return nil
}

// beginCall opens a call. The other calls of its message stay open, and those of its response
// if each has an otid: the model writes them at the same time.
func (r *run) beginCall(w *writer, v, piece jsonv.Value, approval bool) {
	b, last := r.begin(w, v, calling), r.last()
	b.Approval, b.CallID = approval, ident.Of(callID(piece))
	parallel := last != nil && last.Kind == calling && last.Approval == approval &&
		(last.continuedBy(v, calling) || last.Response == b.Response && last.Otid != "" && b.Otid != "")
	if !parallel || len(r.Open) >= maxOpen {
		r.close(w)
	}
	b.describe(w, v)
	if piece.Is(jsonv.String) { // as the oldest servers write it, without an id: name(arguments)
		name, args, _ := strings.Cut(piece.Str(), "(")
		b.Tool, b.Text = ident.Bounded(name), []byte(strings.TrimSuffix(args, ")"))
	} else {
		r.appendCall(b, piece)
	}
	if r.repeats(w, piece, b.callPart(), func() conversation.Sum { s, _ := w.arguments(b.Text); return b.sum(s) }) {
		return
	}
	r.firstToken(w, b)
	r.Open = append(r.Open, b)
}

// appendCall adds a piece to a call.
func (r *run) appendCall(b *block, piece jsonv.Value) {
	name, args := piece.Get("name"), piece.Get("arguments")
	if b.Tool == "" {
		if b.Tool = ident.Of(name); b.Tool == speechTool && b.Key == "" {
			b.Key = r.speechKey(b)
		}
	} else if name.Is(jsonv.String) {
		ident.Is(name, b.Tool)
		if n := len(b.Text); n > 1 && b.Text[n-1] == '}' && len(args.Peek()) > n && args.Equal(string(b.Text)) {
			return // a repetition of the whole call
		}
	}
	if len(b.Text) < maxText {
		b.Text = args.Text().Append(b.Text)
	}
}

// speechKey returns the key of the assistant message that a call of speechTool becomes: that
// of the message's text, and of a further text for a further call.
func (r *run) speechKey(b *block) string {
	id := b.part()
	for _, o := range r.Open {
		if o.Key != "" && o.part() == id {
			id.Name = b.callPart().Name
			break
		}
	}
	id.Kind = text
	return r.key(b.Base, id)
}

// callPart names the call in all forms.
func (b *block) callPart() conversation.PartID {
	return conversation.PartID{Kind: calling, Name: conversation.SumOf(cmp.Or(b.CallID, b.Base))}
}

// sum is the checksum of the call with its arguments in canonical form.
func (b *block) sum(args string) conversation.Sum {
	return conversation.SumOf(b.Tool + "\x00" + args)
}

// arguments returns the arguments in canonical form, and whether they are JSON.
func (w *writer) arguments(raw []byte) (canon string, valid bool) {
	if w.inner.Parse(raw) != nil {
		return string(raw), false
	}
	return string(compact(make([]byte, 0, len(raw)), w.inner.Root())), true
}

// emitCall emits a call, as complete as the level. closed means that no piece follows.
func (r *run) emitCall(w *writer, b *block, closed bool) {
	if !closed && b.CallID == "" { // it may follow the name
		return
	}
	if closed && len(b.Text) == 0 {
		b.Text = []byte("{}")
	}
	args, valid := w.arguments(b.Text)
	c := &call{Call: conversation.Call{ID: cmp.Or(b.CallID, b.Base), Name: b.Tool}, Key: b.Key, Run: r.ID}
	if c.Key != "" {
		m := r.modelMessage(w, b, msg.Assistant, c.Key)
		if speech := w.inner.Root().Get("message"); valid && speech.Exists() {
			m.Content = speech.Text().Own()
		} else if w.level > msg.Partial {
			m.Content = msg.Plain(args)
		}
	} else {
		m := r.modelMessage(w, b, msg.ToolCall, "call:"+c.ID)
		m.Tool.CallID, m.Tool.Name, m.Tool.Arguments = c.ID, c.Name, msg.Plain(args)
		if c.Name == "" && m.Complete == msg.Complete {
			m.Complete = msg.Summary // its beginning is missing
		}
		if closed && !valid {
			m.SetAttr("unparsed_arguments", "true")
		}
		if delegates(c.Name) {
			fillDelegation(m, w.inner.Root(), valid)
			c.To = m.Delegation.To
		}
	}
	if !closed {
		return
	}
	if w.level > msg.Partial && !w.whole {
		r.Emitted.Complete(b.callPart(), b.sum(args))
	}
	if b.Approval {
		c.Request = b.ID
		m := w.status(r, "wait:"+c.ID, "approval_request")
		m.Signal, m.ParentKey, m.ResponseID = msg.WaitStart, "call:"+c.ID, b.Response
		m.Tool.CallID, m.Tool.Name = c.ID, c.Name
		at(m, b.At)
	}
	w.Calls.Take(c.ID)
	w.Calls.Add(c)
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
	switch v.Kind() {
	case jsonv.Object:
		dst = append(dst, '{')
		n := 0
		for k, m := range v.Members() {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = compact(append(jsonv.AppendQuote(dst, k.String()), ':'), m)
		}
		return append(dst, '}')
	case jsonv.Array:
		dst = append(dst, '[')
		n := 0
		for e := range v.Elems() {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = compact(dst, e)
		}
		return append(dst, ']')
	case jsonv.String:
		if _, escaped := v.Text().Alias(); escaped {
			return jsonv.AppendQuote(dst, v.Str())
		}
	}
	return append(dst, v.Raw()...)
}

// results decodes the results of tools. The fields of the message itself repeat the first of
// the list, if any.
func (r *run) results(w *writer, v jsonv.Value) {
	r.close(w)
	r.Begun, r.Late, r.Response = true, false, ""
	list := v.Get("tool_returns")
	if !list.Is(jsonv.Array) || list.Len() == 0 {
		r.result(w, v, v)
		return
	}
	markRepeated(v, list)
	for e := range list.Elems() {
		r.result(w, v, e)
	}
}

// result decodes the result of one tool; v is the message that contains it.
func (r *run) result(w *writer, v, e jsonv.Value) {
	returned := e.First("tool_return", "function_return")
	id := ident.Of(e.First("tool_call_id", "function_call_id"))
	if id == "" { // of the run's last call
		if c := w.Calls.Newest(func(c *call) bool { return c.Run == r.ID }); c != nil {
			id = c.ID
		} else if id = ident.Of(v.Get("id")); id == "" {
			id = msg.HashKey(r.ID, string(v.Get("date").Peek()), string(returned.Peek()))
		}
	}
	part := conversation.PartID{Kind: "result", Name: conversation.SumOf(id)}
	facts := func() conversation.Sum { return conversation.SumOf(returned.Peek()) }
	if r.repeats(w, v, part, facts) {
		e.MarkRead()
		return
	}
	if !w.whole { // the stream may repeat it
		r.Emitted.Complete(part, facts())
	}
	c := w.Calls.Take(id)
	if c == nil {
		c = &call{}
	}
	named := v.Get("name")
	if ident.Is(named, c.Name); c.Name == "" && !named.Equal("tool") { // the word of some servers for any tool
		c.Name = ident.Of(named)
	}
	m := w.message(r, msg.ToolResult, "result:"+id)
	m.ParentKey, m.Role = "call:"+id, msg.RoleTool
	m.Tool.CallID, m.Tool.Name = id, c.Name
	if id := v.Get("sender_id"); isAgent(id) {
		m.Agent = w.agent(ident.Of(id), "")
	}
	m.IsError = e.Get("status").Equal("error") || v.Get("is_err").Bool()
	w.stamp(m, v)
	m.Content, m.Attachments = contentOf(returned)
	m.SetAttr("stdout", lines(e.Get("stdout")))
	m.SetAttr("stderr", lines(e.Get("stderr")))
	errorText, unpacked := m.Content, false
	switch {
	case c.Key != "": // other forms have no result of speechTool
		m.Kind, m.ParentKey, m.Hidden = msg.Status, c.Key, true
		m.SetAttr("type", speechTool)
	case delegates(c.Name):
		m.Kind, m.Delegation.To, m.Delegation.Async = msg.DelegationResult, c.To, c.Name == asyncTool
		unpacked = w.fillAnswer(m)
	}
	if m.IsError {
		m.Tool.ErrorType = errorType(errorText)
	}
	if unpacked {
		w.KeepUnread(&w.inner, len(w.Out.Messages)-1)
	}
}

// errorType classifies the text of a tool's error.
func errorType(t msg.Text) string {
	const most = 400
	s := t.String()
	return conversation.ErrorClass(s[:min(len(s), most)], "request to call tool denied", "denied", "interrupted", "interrupted",
		"cancelled", "cancelled", "timed out", "timeout", "imeout", "timeout", "No tool named", "not_found",
		"ool rule violation", "validation", "ValidationError", "validation")
}
