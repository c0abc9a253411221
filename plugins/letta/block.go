package letta

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

const (
	maxText = 64 << 20 // bytes of one block; later pieces are kept raw
	maxOpen = 1024     // blocks
)

// The parts of a response, which are in the keys of texts.
const (
	thinking = "thinking"
	speaking = "text"
	hidden   = "hidden"
	calling  = "call"
)

// block is a message of the model that later pieces may continue: a text or a call.
type block struct {
	msg.Message // that it becomes. A text has a key once it has content, a call one if it speaks

	Part string
	Otid string `json:",omitempty"`
	ID   string `json:",omitempty"` // of the record of its first piece
	Base string // the common prefix of the keys of its response's parts
	Cut  bool   `json:",omitempty"` // its beginning or its end is missing
	Text []byte `json:",omitempty"` // of a call: its arguments

	Size     int  `json:",omitempty"` // of hidden reasoning, in bytes
	Approval bool `json:",omitempty"` // the call waits for one
}

// kinds are those of the messages of parts.
var kinds = map[string]msg.Kind{thinking: msg.Reasoning, hidden: msg.Reasoning, speaking: msg.Assistant, calling: msg.ToolCall}

// continuedBy reports whether v, a piece of that part, continues b or, if b is a call, has
// another call of the same message.
func (b *block) continuedBy(v jsonv.Value, part string) bool {
	if b.Part != part {
		return false
	}
	if otid := v.Get("otid"); b.Otid != "" && otid.Is(jsonv.String) {
		return ident.Is(otid, b.Otid)
	}
	return ident.Is(v.Get("id"), b.ID) || b.ID == "" && !v.Get("id").Is(jsonv.String)
}

// begin returns a block that begins with v. The prefix of its keys is the same in all forms:
// its step, where the server names steps in streams too, or else its message. Where every
// piece has another message id, it is the otid, which is then not derived from the id.
// It ends the open blocks, except that the calls of a message are written at the same time, and
// those of a response if each has an otid.
func (r *run) begin(d *stream, v jsonv.Value, part string, approval bool) *block {
	b := &block{Part: part, Otid: ident.Of(v.Get("otid")), ID: ident.Of(v.Get("id")), Approval: approval, Cut: r.First > 1 && !d.whole}
	b.Kind, b.Role, b.Hidden = kinds[part], msg.RoleAssistant, part == hidden
	step := ident.Of(v.Get("step_id"))
	switch {
	case step != "" && len(v.Get("run_id").Escaped()) > 0:
		b.Base = step
	case b.Otid != "" && !sameMessage(b.Otid, b.ID):
		b.Base = b.Otid
	case b.ID != "":
		b.Base = b.ID
	default: // nothing names it
		b.Base = msg.HashKey(r.ID, part, string(v.Get("date").Peek()))
	}
	b.ResponseID = cmp.Or(step, b.Base)
	if step == "" && b.Base == b.Otid { // each block has an id of its own
		r.Response = cmp.Or(r.Response, b.Base)
		b.ResponseID = r.Response
	}
	if n := len(r.Open); n == 0 || n == maxOpen || part != calling || !r.Open[n-1].beside(b, v) {
		r.close(d)
	}
	if id := v.Get("sender_id"); isAgent(id) { // in a group of agents
		b.Agent = d.agent(ident.Of(id), ident.Of(v.Get("name")))
	}
	r.First = 1
	return b
}

// beside reports whether the call b is written at the same time as next, which begins with v.
func (b *block) beside(next *block, v jsonv.Value) bool {
	return b.Part == calling && b.Approval == next.Approval && (b.continuedBy(v, calling) || b.ResponseID == next.ResponseID && b.Otid != "" && next.Otid != "")
}

// isAgent reports whether v is the id of an agent.
func isAgent(v jsonv.Value) bool { return v.HasPrefix("agent-") }

// sameMessage reports whether an otid is that of a block of the message: the uuid of the
// message with the number of the block in its last seven bits.
func sameMessage(otid, id string) bool {
	id = strings.TrimPrefix(id, "message-")
	if len(otid) != 36 || len(id) != 36 || !strings.EqualFold(otid[:34], id[:34]) {
		return false
	}
	a, errA := strconv.ParseUint(otid[34:], 16, 8)
	b, errB := strconv.ParseUint(id[34:], 16, 8)
	return errA == nil && errB == nil && a>>7 == b>>7
}

// name names the block in all forms, as a part of that kind.
func (b *block) name(part string) conversation.PartID {
	return conversation.PartID{Base: conversation.SumOf(b.Base), Kind: part, Name: conversation.SumOf(cmp.Or(b.Otid, b.ID))}
}

// key is the key of a part.
func (r *run) key(base string, id conversation.PartID) string {
	n := r.Emitted.Open(id).N
	return conversation.Ordinal(base+"/"+id.Kind, &n)
}

// text decodes a whole text or a piece of one. Hidden reasoning has no content.
func (r *run) text(d *stream, v jsonv.Value, part string, content jsonv.Value) {
	b := r.continued(v, part, jsonv.Value{})
	if b == nil {
		b = r.begin(d, v, part, false)
	}
	delta, files := contentOf(content)
	if b.Key == "" && (part == hidden || !delta.IsZero()) {
		id := b.name(part)
		if d.repeats(r, v, id, func() conversation.Sum { return conversation.SumOfText(trim(part, delta)) }) {
			return
		}
		b.Key = r.key(b.Base, id)
	}
	b.describe(d, v)
	if b.Key != "" {
		r.firstToken(d, b)
	}
	b.Attachments = append(b.Attachments, files...)
	if d.whole {
		r.say(d, b, delta, d.level)
		return
	}
	b.Text = delta.Append(b.Text)
	if r.Open = append(r.Open[:0], b); len(b.Text) > maxText {
		r.close(d)
	}
}

// describe adds the facts of a piece beside its text.
func (b *block) describe(d *stream, v jsonv.Value) {
	if d.At.Nanos != 0 {
		d.At.Set(&b.Message)
	}
	b.IsError = b.IsError || v.Get("is_err").Bool()
	if b.Kind == msg.Reasoning {
		for _, name := range [...]string{"source", "state"} { // words that each piece repeats
			if known := b.Attr(name); !ident.Is(v.Get(name), known) && known == "" {
				b.SetAttr(name, ident.Of(v.Get(name)))
			}
		}
		if sealed := v.Get("hidden_reasoning"); sealed.Is(jsonv.String) {
			b.Size += sealed.Text().Len()
		}
	}
	if b.Agent.ID != "" {
		ident.Is(v.Get("sender_id"), b.Agent.ID)
		ident.Is(v.Get("name"), b.Agent.Name)
	}
}

// firstToken signals the first piece of a response, at the date of the piece: a run and
// a response begin there, however late the first block is complete or flushed. A response
// whose beginning is missing has no signal; it is only noted.
func (r *run) firstToken(d *stream, b *block) {
	id := conversation.PartID{Base: conversation.SumOf(b.ResponseID), Kind: "first"}
	if d.whole || r.Emitted.Find(id) != nil {
		return
	}
	r.Emitted.Open(id)
	m := record.Hide(d.about(r, b, "first_token:"+b.ResponseID, d.level), "first_token")
	if m.Agent = cmp.Or(b.Agent, m.Agent); !r.Named {
		r.setCorrelationID(m)
	}
	if b.Cut {
		m.Complete = msg.Partial
	} else {
		m.Signal = msg.FirstToken
	}
}

// about adds a status about a block, at its date.
func (w *writer) about(r *run, b *block, key string, level msg.Completeness) *msg.Message {
	return w.put(r, msg.Message{Kind: msg.Status, Key: key, ResponseID: b.ResponseID, Time: b.Time, Precision: b.Precision, Complete: level})
}

// cut closes the open blocks as partial, because no later frame can continue them.
func (r *run) cut(d *stream) {
	for _, b := range r.Open {
		b.Cut = true
	}
	r.close(d)
}

// close emits the open blocks, because another message begins.
func (r *run) close(d *stream) {
	for _, b := range r.Open {
		r.emit(d, b)
	}
	clear(r.Open)
	r.Open = r.Open[:0]
}

// emit emits a block as far as it has come.
func (r *run) emit(d *stream, b *block) {
	level := d.level
	if b.Cut {
		level = msg.Partial
	}
	if b.Part == calling {
		r.emitCall(d, b, level)
	} else {
		r.say(d, b, msg.Plain(string(b.Text)), level)
	}
}

// say emits a text, unless it is empty.
func (r *run) say(d *stream, b *block, content msg.Text, level msg.Completeness) {
	content = trim(b.Part, content)
	if b.Key == "" || b.Part != hidden && content.IsZero() && len(b.Attachments) == 0 {
		return
	}
	m := b.Message
	m.Content, m.Complete = content, level
	if b.Size > 0 {
		m.Attrs = append(slices.Clip(m.Attrs), msg.Attr{Key: "hidden_bytes", Value: strconv.Itoa(b.Size)})
	}
	if d.put(r, m); level > msg.Partial && !d.whole {
		r.Emitted.Complete(b.name(b.Part), conversation.SumOfText(content))
	}
}

// trim removes the blanks around reasoning, as the server does when it stores it.
func trim(part string, t msg.Text) msg.Text {
	if part != thinking {
		return t
	}
	s := t.String()
	if trimmed := strings.TrimSpace(s); len(trimmed) < len(s) {
		return msg.Plain(trimmed)
	}
	return t
}

// contentOf returns the text and the files of a content, which is a string, a block of
// Anthropic's or a list of them. A file may be in the store of the server:
//
//	{"type":"image","source":{"type":"letta","file_id":"file-...","media_type":"image/png"}}
func contentOf(v jsonv.Value) (msg.Text, []msg.Attachment) {
	if v.Is(jsonv.Object) && v.Get("type").Equal("text") {
		v = v.Get("text")
	}
	if !v.Is(jsonv.Array) {
		return v.Text(), nil
	}
	var c anthropic.Blocks
	for b := range v.Elems() {
		source := b.Get("source")
		id := ident.Of(source.Get("file_id"))
		if id == "" {
			c.Add(b)
			continue
		}
		f, _ := anthropic.File(b) // which has its data as well, or not
		f.Name, f.MediaType = id, cmp.Or(f.MediaType, ident.Of(source.Get("media_type")))
		c.Files = append(c.Files, f)
	}
	return c.Text(), c.Files
}
