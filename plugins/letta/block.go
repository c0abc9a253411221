package letta

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	maxText = 64 << 20 // bytes of one block; later pieces are kept raw
	maxOpen = 1024     // blocks
)

// The kinds of blocks, which are in the keys of texts.
const (
	thinking = "thinking"
	text     = "text"
	hidden   = "hidden"
	calling  = "call"
)

// block is a text or a call that later pieces may continue.
type block struct {
	Kind string
	Otid string            `json:",omitempty"`
	ID   string            `json:",omitempty"` // of the message of its first piece
	Base string            // the common prefix of the keys of its response's parts
	Key  string            `json:",omitempty"` // of a text; empty until it has content
	Cut  bool              `json:",omitempty"` // its beginning or its end is missing
	Text []byte            `json:",omitempty"` // of a call: its arguments
	At   conversation.Time `json:",omitzero"`

	Response string    // id of the model's response that contains it
	From     msg.Agent `json:",omitzero"` // the agent of the message, in a group of agents

	Source string           `json:",omitempty"`
	State  string           `json:",omitempty"` // of hidden reasoning: redacted, omitted
	Size   int              `json:",omitempty"` // of hidden reasoning, in bytes
	Failed bool             `json:",omitempty"`
	Files  []msg.Attachment `json:",omitempty"`

	CallID   string `json:",omitempty"` // empty until a piece has it
	Tool     string `json:",omitempty"`
	Approval bool   `json:",omitempty"` // the call waits for one
}

// last returns the latest open block, or nil.
func (r *run) last() *block {
	if len(r.Open) == 0 {
		return nil
	}
	return r.Open[len(r.Open)-1]
}

// continuedBy reports whether v, a piece of that kind, continues b or, if b is a call, has
// another call of the same message.
func (b *block) continuedBy(v jsonv.Value, kind string) bool {
	if b == nil || b.Kind != kind {
		return false
	}
	if otid := v.Get("otid"); b.Otid != "" && otid.Is(jsonv.String) {
		return ident.Is(otid, b.Otid)
	}
	return ident.Is(v.Get("id"), b.ID) || b.ID == "" && !v.Get("id").Is(jsonv.String)
}

// begin returns a block that begins with v.
func (r *run) begin(w *writer, v jsonv.Value, kind string) *block {
	b := &block{Kind: kind, Otid: ident.Of(v.Get("otid")), ID: ident.Of(v.Get("id")), Cut: r.Late && !w.whole}
	var step string
	b.Base, step = baseOf(v, b.Otid, b.ID)
	if b.Base == "" { // nothing names it
		b.Base = msg.HashKey(r.ID, kind, string(v.Get("date").Peek()))
	}
	b.Response = cmp.Or(step, b.Base)
	if step == "" && b.Base == b.Otid { // each block has an id of its own
		r.Response = cmp.Or(r.Response, b.Base)
		b.Response = r.Response
	}
	if id := v.Get("sender_id"); isAgent(id) {
		b.From = w.agent(ident.Of(id), ident.Of(v.Get("name")))
	}
	r.Begun, r.Late = true, false
	return b
}

// isAgent reports whether v is the id of an agent.
func isAgent(v jsonv.Value) bool { return v.HasPrefix("agent-") }

// baseOf returns the prefix of the keys of a response's parts, which is the same in all
// forms: its step, where the server names steps in streams too, or else its message. Where
// every piece has another message id, it is the otid, which is then not derived from the id.
func baseOf(v jsonv.Value, otid, id string) (base, step string) {
	step = ident.Of(v.Get("step_id"))
	switch {
	case step != "" && len(v.Get("run_id").Escaped()) > 0:
		return step, step
	case otid != "" && !sameMessage(otid, id):
		return otid, step
	}
	return id, step
}

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

// part names the block in all forms.
func (b *block) part() conversation.PartID {
	return conversation.PartID{Base: conversation.SumOf(b.Base), Kind: b.Kind, Name: conversation.SumOf(cmp.Or(b.Otid, b.ID))}
}

// key is the key of a part.
func (r *run) key(base string, id conversation.PartID) string {
	n := r.Emitted.Open(id).N
	return conversation.Ordinal(base+"/"+id.Kind, &n)
}

// piece decodes a whole text or a piece of one. Hidden reasoning has no content.
func (r *run) piece(w *writer, v jsonv.Value, kind string, content jsonv.Value) {
	b := r.last()
	if !b.continuedBy(v, kind) {
		r.close(w)
		b = r.begin(w, v, kind)
	}
	delta, files := contentOf(content)
	if b.Key == "" && (kind == hidden || !delta.IsZero()) {
		if r.repeats(w, v, b.part(), func() conversation.Sum { return conversation.SumOfText(trim(kind, delta)) }) {
			return
		}
		b.Key = r.key(b.Base, b.part())
	}
	b.describe(w, v)
	b.Files = append(b.Files, files...)
	if b.Key != "" {
		r.firstToken(w, b)
	}
	if w.whole {
		r.emitText(w, b, trim(kind, delta))
		return
	}
	b.Text = delta.Append(b.Text)
	if r.Open = append(r.Open[:0], b); len(b.Text) > maxText {
		r.close(w)
	}
}

// describe sets the block's fields from a piece.
func (b *block) describe(w *writer, v jsonv.Value) {
	b.At = w.date.read(v.Get("date")).Or(b.At)
	b.Failed = b.Failed || v.Get("is_err").Bool()
	switch b.Kind {
	case thinking:
		if source := v.Get("source"); !source.Equal(b.Source) && b.Source == "" {
			b.Source = ident.Of(source)
		}
	case hidden:
		b.State = ident.Of(v.Get("state"))
		if sealed := v.Get("hidden_reasoning"); sealed.Is(jsonv.String) {
			b.Size += sealed.Text().Len()
		}
	}
	if b.From.ID != "" {
		ident.Is(v.Get("sender_id"), b.From.ID)
		ident.Is(v.Get("name"), b.From.Name)
	}
}

// firstToken signals the first piece of a response, at the date of the piece: a run and
// a response begin there, however late the first block is complete or flushed. A response
// whose beginning is missing has no signal; it is only noted.
func (r *run) firstToken(w *writer, b *block) {
	id := conversation.PartID{Base: conversation.SumOf(b.Response), Kind: "first"}
	if w.whole || r.Emitted.Find(id) != nil {
		return
	}
	r.Emitted.Open(id)
	m := w.status(r, "first_token:"+b.Response, "first_token")
	m.ResponseID = b.Response
	at(m, b.At)
	if !r.Named {
		r.setCorrelationID(m)
	}
	if b.From.ID != "" {
		m.Agent = b.From
	}
	if b.Cut {
		m.Complete = msg.Partial
	} else {
		m.Signal = msg.FirstToken
	}
}

// cut closes the open blocks as partial, because no later frame can continue them.
func (r *run) cut(w *writer) {
	for _, b := range r.Open {
		b.Cut = true
	}
	r.close(w)
}

// close emits the open blocks, because another message begins.
func (r *run) close(w *writer) {
	level := w.level
	for _, b := range r.Open {
		if w.level = level; b.Cut {
			w.level = msg.Partial
		}
		r.emit(w, b, true)
	}
	clear(r.Open)
	w.level, r.Open = level, r.Open[:0]
}

// emit emits the content of a block, as complete as the level. closed means that no piece
// follows.
func (r *run) emit(w *writer, b *block, closed bool) {
	if b.Kind == calling {
		r.emitCall(w, b, closed)
	} else {
		r.emitText(w, b, trim(b.Kind, msg.Plain(string(b.Text))))
	}
}

// emitText emits a block that is not a call. It ignores an empty one.
func (r *run) emitText(w *writer, b *block, content msg.Text) {
	if b.Key == "" || b.Kind != hidden && content.IsZero() && len(b.Files) == 0 {
		return
	}
	if w.level > msg.Partial && !w.whole {
		r.Emitted.Complete(b.part(), conversation.SumOfText(content))
	}
	kind := msg.Assistant
	if b.Kind != text {
		kind = msg.Reasoning
	}
	m := r.modelMessage(w, b, kind, b.Key)
	m.Content, m.Attachments = content, b.Files
	m.SetAttr("source", b.Source)
	if b.Kind == hidden {
		m.Hidden = true
		m.SetAttr("state", b.State)
		if b.Size > 0 {
			m.SetAttr("hidden_bytes", strconv.Itoa(b.Size))
		}
	}
}

// modelMessage adds a message of the model in a block.
func (r *run) modelMessage(w *writer, b *block, kind msg.Kind, key string) *msg.Message {
	m := w.message(r, kind, key)
	m.Role, m.ResponseID, m.IsError = msg.RoleAssistant, b.Response, b.Failed
	if b.From.ID != "" {
		m.Agent = b.From
	}
	at(m, b.At)
	return m
}

// trim removes the blanks around reasoning, as the server does when it stores it.
func trim(kind string, t msg.Text) msg.Text {
	if kind != thinking {
		return t
	}
	s := t.String()
	if trimmed := strings.TrimSpace(s); len(trimmed) < len(s) {
		return msg.Plain(trimmed)
	}
	return t
}
