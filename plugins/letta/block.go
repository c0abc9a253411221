package letta

import (
	"bytes"
	"iter"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// maxText limits the text of one block, in bytes; later pieces are kept raw.
const maxText = 64 << 20

// block is a message that later pieces may continue.
type block struct {
	Kind partKind
	Otid string `json:",omitempty"`
	ID   string `json:",omitempty"` // of its first piece
	Base string // the common prefix of the keys of its response's parts
	Key  string `json:",omitempty"` // empty until it has content
	Cut  bool   `json:",omitempty"` // its beginning or its end is missing
	Text []byte `json:",omitempty"`

	Response string    // id of the model's response that contains it
	From     msg.Agent `json:",omitzero"` // the agent of the message, in a group of agents

	Source string           `json:",omitempty"`
	State  string           `json:",omitempty"` // of hidden reasoning: redacted, omitted
	Size   int              `json:",omitempty"` // of hidden reasoning, in bytes
	Failed bool             `json:",omitempty"`
	Files  []msg.Attachment `json:",omitempty"`

	Calls    []*call `json:",omitempty"` // in the order in which they began
	Approval bool    `json:",omitempty"`

	Time int64 `json:",omitempty"`
	Prec msg.Precision
}

// continuedBy reports whether v, a piece of that kind, continues b.
func (b *block) continuedBy(v jsonv.Value, kind partKind) bool {
	if b == nil || b.Kind != kind {
		return false
	}
	if otid := v.Get("otid"); b.Otid != "" && otid.Is(jsonv.String) {
		return ident.Is(otid, b.Otid)
	}
	return ident.Is(v.Get("id"), b.ID) || b.ID == "" && !v.Get("id").Is(jsonv.String)
}

// beginBlock returns a block that begins with v.
func (d *stream) beginBlock(r *run, v jsonv.Value, kind partKind) *block {
	b := &block{Kind: kind, Otid: ident.Of(v.Get("otid")), ID: ident.Of(v.Get("id")), Cut: r.Late && !r.Begun && !d.whole}
	var step string
	b.Base, step = baseOf(v, b.Otid, b.ID)
	if b.Base == "" { // nothing names it
		b.Base = msg.HashKey(r.ID, string(kind), string(v.Get("date").Peek()))
	}
	switch {
	case step != "":
		b.Response = step
	case b.Otid != "" && b.Base == b.Otid: // each block has an id of its own
		if r.Response == "" {
			r.Response = b.Base
		}
		b.Response = r.Response
	default:
		b.Response = b.Base
	}
	if id := v.Get("sender_id"); agentID(id) {
		b.From = d.agent(ident.Of(id), ident.Of(v.Get("name")))
	}
	r.Begun = true
	return b
}

// agentID reports whether v is the id of an agent.
func agentID(v jsonv.Value) bool { return bytes.HasPrefix(v.Peek(), []byte(`"agent-`)) }

// baseOf returns the prefix of the keys of a response's parts, which is the same in all
// forms: its step, where the server names steps in streams too, or else its message. Where
// every piece has another message id, it is the otid, which is then not derived from the id.
func baseOf(v jsonv.Value, otid, id string) (base, step string) {
	step = ident.Of(v.Get("step_id"))
	switch {
	case step != "" && ident.Of(v.Get("run_id")) != "":
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

// name returns a hash that distinguishes the block from others of its kind in the response.
func (b *block) name() uint64 {
	if b.Otid != "" {
		return hash(b.Otid)
	}
	return hash(b.ID)
}

// piece decodes a whole message or a piece of one. Hidden reasoning has no content.
func (d *stream) piece(r *run, v jsonv.Value, kind partKind, content jsonv.Value) {
	b := r.Block
	if !b.continuedBy(v, kind) {
		d.closeBlocks(r)
		b = d.beginBlock(r, v, kind)
	}
	delta, files := contentOf(content)
	if !d.assignKey(r, b, v, delta) {
		return
	}
	b.describe(v)
	b.Time, b.Prec = d.date.read(v.Get("date"))
	b.Files = append(b.Files, files...)
	if b.Key != "" {
		d.signalFirstToken(r, b)
	}
	if d.whole {
		d.emitPart(r, b, trim(kind, delta))
		return
	}
	b.Text = delta.Append(b.Text)
	if r.Block = b; len(b.Text) > maxText {
		d.closeBlocks(r)
	}
}

// signalFirstToken signals the first piece of a response, at the date of the piece: a run and
// a response begin there, however late the first block is complete or flushed. A response
// whose beginning is missing has no signal; it is only noted.
func (d *stream) signalFirstToken(r *run, b *block) {
	if d.whole || r.findPart(hash(b.Response), beginning, 0) != nil {
		return
	}
	r.part(hash(b.Response), beginning, 0)
	m := d.status(r, "first_token:"+b.Response, "first_token")
	m.ResponseID = b.Response
	at(m, b.Time, b.Prec)
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

// assignKey sets the key of a block with content. It returns false for a block that was
// complete before: a repetition is ignored, and a late piece is kept raw.
func (d *stream) assignKey(r *run, b *block, v jsonv.Value, delta msg.Text) bool {
	if b.Key != "" || delta.IsZero() && b.Kind != hidden {
		return true
	}
	base := hash(b.Base)
	if p := r.findPart(base, b.Kind, b.name()); p != nil && p.Sum != 0 && !d.whole {
		if p.Sum != sum(trim(b.Kind, delta)) {
			d.keepRaw(v, "late_piece")
		}
		return false
	}
	b.Key = partKey(b.Base, r.part(base, b.Kind, b.name()))
	return true
}

// describe sets the block's fields from a piece.
func (b *block) describe(v jsonv.Value) {
	b.Failed = b.Failed || v.Get("is_err").Bool()
	switch b.Kind {
	case thinking:
		if source := v.Get("source"); b.Source == "" {
			b.Source = ident.Of(source)
		} else {
			source.Equal(b.Source)
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

// partKey is the key of a part.
func partKey(base string, p *part) string {
	key := base + "/" + string(p.Kind)
	if p.N > 0 {
		key += "/" + strconv.Itoa(p.N)
	}
	return key
}

// cutAll closes the open blocks of all runs as partial, because no later frame can continue
// them.
func (d *stream) cutAll() {
	for _, r := range d.Runs {
		d.cutRun(r)
	}
}

// cutRun closes the open blocks of a run as partial.
func (d *stream) cutRun(r *run) {
	for b := range r.blocks() {
		b.Cut = true
	}
	d.closeBlocks(r)
}

// closeBlocks emits the open blocks of a run, because another message begins.
func (d *stream) closeBlocks(r *run) {
	level := d.level
	for b := range r.blocks() {
		if d.level = level; b.Cut {
			d.level = msg.Partial
		}
		d.emitBlock(r, b, true)
	}
	d.level = level
	r.Block, r.Beside = nil, nil
}

// blocks yields the open blocks, in the order in which they began.
func (r *run) blocks() iter.Seq[*block] {
	return func(yield func(*block) bool) {
		for _, b := range r.Beside {
			if !yield(b) {
				return
			}
		}
		if r.Block != nil {
			yield(r.Block)
		}
	}
}

// emitBlock emits the content of a block, as complete as the level. over means that the block
// is closed.
func (d *stream) emitBlock(r *run, b *block, over bool) {
	if b.Kind == calling {
		for _, c := range b.Calls {
			if over || c.ID != b.Base { // the id of a call may follow its name
				d.emitCall(r, b, c, over)
			}
		}
		return
	}
	d.emitPart(r, b, trim(b.Kind, msg.Plain(string(b.Text))))
}

// emitPart emits a block that is not a call. It ignores an empty one.
func (d *stream) emitPart(r *run, b *block, content msg.Text) {
	if b.Key == "" || b.Kind != hidden && content.IsZero() && len(b.Files) == 0 {
		return
	}
	if d.level > msg.Partial && !d.whole {
		r.part(hash(b.Base), b.Kind, b.name()).Sum = sum(content)
	}
	kind := msg.Assistant
	if b.Kind != text {
		kind = msg.Reasoning
	}
	m := d.addModelMessage(r, b, kind, b.Key)
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

// addModelMessage adds a message of the model in a block.
func (d *stream) addModelMessage(r *run, b *block, kind msg.Kind, key string) *msg.Message {
	m := d.addMessage(r, kind, key)
	m.Role = msg.RoleAssistant
	m.ResponseID = b.Response
	if b.From.ID != "" {
		m.Agent = b.From
	}
	m.IsError = b.Failed
	at(m, b.Time, b.Prec)
	return m
}

// trim removes the blanks around reasoning, as the server does when it stores it.
func trim(kind partKind, t msg.Text) msg.Text {
	if raw, quoted := t.Alias(); kind != thinking || raw != nil && !blankEdge(raw, quoted) {
		return t
	}
	return msg.Plain(strings.TrimSpace(t.String()))
}

// blankEdge reports whether the text of raw may begin or end with a blank.
func blankEdge(raw []byte, quoted bool) bool {
	if len(raw) == 0 {
		return false
	}
	odd := func(c byte) bool { return c <= ' ' || c >= 0x80 || c == '\\' }
	const escape = len(`\u0020`)
	return odd(raw[0]) || odd(raw[len(raw)-1]) || quoted && bytes.IndexByte(raw[max(0, len(raw)-escape):], '\\') >= 0
}
