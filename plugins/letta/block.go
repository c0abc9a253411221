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

// maxText is how long the text of one block may become, in bytes; what comes after
// that is kept as it is.
const maxText = 64 << 20

// block is a message of which more may come.
type block struct {
	Kind partKind
	Otid string `json:",omitempty"`
	ID   string `json:",omitempty"` // of its first piece
	Base string // what the keys of its response's parts are made of
	Key  string `json:",omitempty"` // empty until it says something
	Cut  bool   `json:",omitempty"` // its beginning was missed, or its end
	Text []byte `json:",omitempty"`

	Response string    // id of the model's response that it is a part of
	From     msg.Agent `json:",omitzero"` // who says it, in a group of agents

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

// goes reports whether v, which says something of that kind, goes on with b.
func (b *block) goes(v jsonv.Value, kind partKind) bool {
	if b == nil || b.Kind != kind {
		return false
	}
	if otid := v.Get("otid"); b.Otid != "" && otid.Is(jsonv.String) {
		return ident.Is(otid, b.Otid)
	}
	return ident.Is(v.Get("id"), b.ID) || b.ID == "" && !v.Get("id").Is(jsonv.String)
}

// begin returns a block that begins with v.
func (d *stream) begin(r *run, v jsonv.Value, kind partKind) *block {
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

// baseOf returns what the parts of a response go by in all forms: its step, where
// the server names steps in streams too, or else its message. A message whose id is
// another in every piece goes by its otid, which is then no number of a block within
// the id.
func baseOf(v jsonv.Value, otid, id string) (base, step string) {
	step = ident.Of(v.Get("step_id"))
	switch {
	case step != "" && ident.Of(v.Get("run_id")) != "":
		return step, step
	case otid != "" && !within(otid, id):
		return otid, step
	}
	return id, step
}

// within reports whether an otid is that of a block of the message: the uuid of the
// message with the number of the block in its last seven bits.
func within(otid, id string) bool {
	id = strings.TrimPrefix(id, "message-")
	if len(otid) != 36 || len(id) != 36 || !strings.EqualFold(otid[:34], id[:34]) {
		return false
	}
	a, errA := strconv.ParseUint(otid[34:], 16, 8)
	b, errB := strconv.ParseUint(id[34:], 16, 8)
	return errA == nil && errB == nil && a>>7 == b>>7
}

// name is what tells the block from others of its kind in the response.
func (b *block) name() uint64 {
	if b.Otid != "" {
		return hash(b.Otid)
	}
	return hash(b.ID)
}

// piece decodes a message that says something, or a part of one. What is hidden has
// nothing to say.
func (d *stream) piece(r *run, v jsonv.Value, kind partKind, content jsonv.Value) {
	b := r.Block
	if !b.goes(v, kind) {
		d.close(r)
		b = d.begin(r, v, kind)
	}
	said, files := contentOf(content)
	if !d.hears(r, b, v, said) {
		return
	}
	b.describe(v)
	b.Time, b.Prec = d.date.read(v.Get("date"))
	b.Files = append(b.Files, files...)
	if b.Key != "" {
		d.begins(r, b)
	}
	if d.whole {
		d.part(r, b, trim(kind, said))
		return
	}
	b.Text = said.Append(b.Text)
	if r.Block = b; len(b.Text) > maxText {
		d.close(r)
	}
}

// begins signals the first piece of a response, at the date of the piece: a run, and a
// response, begin there, however long the first block takes and whenever it is flushed. Of a
// response that was not heard from its beginning it is only noted that it was heard.
func (d *stream) begins(r *run, b *block) {
	if d.whole || r.known(hash(b.Response), beginning, 0) != nil {
		return
	}
	r.part(hash(b.Response), beginning, 0)
	m := d.status(r, "first_token:"+b.Response, "first_token")
	m.ResponseID = b.Response
	at(m, b.Time, b.Prec)
	if !r.Named {
		r.meets(m)
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

// hears makes sure that a block that says something has its key. It reports false
// of what was complete before: told again it is nothing new, and a piece that comes
// too late can only be kept as it is.
func (d *stream) hears(r *run, b *block, v jsonv.Value, said msg.Text) bool {
	if b.Key != "" || said.IsZero() && b.Kind != hidden {
		return true
	}
	base := hash(b.Base)
	if p := r.known(base, b.Kind, b.name()); p != nil && p.Sum != 0 && !d.whole {
		if p.Sum != sum(trim(b.Kind, said)) {
			d.keep(v, "late_piece")
		}
		return false
	}
	b.Key = partKey(b.Base, r.part(base, b.Kind, b.name()))
	return true
}

// describe takes over what a piece says of its block.
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

// cutAll ends what is being said in any run, because nothing more can come of it.
func (d *stream) cutAll() {
	for _, r := range d.Runs {
		d.cut(r)
	}
}

// cut ends what the run is saying before it is said.
func (d *stream) cut(r *run) {
	for b := range r.blocks() {
		b.Cut = true
	}
	d.close(r)
}

// close ends what the run is saying, because it says something else.
func (d *stream) close(r *run) {
	level := d.level
	for b := range r.blocks() {
		if d.level = level; b.Cut {
			d.level = msg.Partial
		}
		d.giveBlock(r, b, true)
	}
	d.level = level
	r.Block, r.Beside = nil, nil
}

// blocks are those of which more may come, in the order in which they began.
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

// giveBlock gives what a block has said, as complete as the level says. over says that
// nothing will be added to it.
func (d *stream) giveBlock(r *run, b *block, over bool) {
	if b.Kind == calling {
		for _, c := range b.Calls {
			if over || c.ID != b.Base { // the id of a call may come after its name
				d.giveCall(r, b, c, over)
			}
		}
		return
	}
	d.part(r, b, trim(b.Kind, msg.Plain(string(b.Text))))
}

// part gives a block that is no call. One that says nothing is none.
func (d *stream) part(r *run, b *block, said msg.Text) {
	if b.Key == "" || b.Kind != hidden && said.IsZero() && len(b.Files) == 0 {
		return
	}
	if d.level > msg.Partial && !d.whole {
		r.part(hash(b.Base), b.Kind, b.name()).Sum = sum(said)
	}
	kind := msg.Assistant
	if b.Kind != text {
		kind = msg.Reasoning
	}
	m := d.spoken(r, b, kind, b.Key)
	m.Content, m.Attachments = said, b.Files
	m.SetAttr("source", b.Source)
	if b.Kind == hidden {
		m.Hidden = true
		m.SetAttr("state", b.State)
		if b.Size > 0 {
			m.SetAttr("hidden_bytes", strconv.Itoa(b.Size))
		}
	}
}

// spoken adds a message for what the model says in a block.
func (d *stream) spoken(r *run, b *block, kind msg.Kind, key string) *msg.Message {
	m := d.give(r, kind, key)
	m.Role = msg.RoleAssistant
	m.ResponseID = b.Response
	if b.From.ID != "" {
		m.Agent = b.From
	}
	m.IsError = b.Failed
	at(m, b.Time, b.Prec)
	return m
}

// trim takes the blanks from around reasoning, as the server does when it stores it.
func trim(kind partKind, t msg.Text) msg.Text {
	if raw, quoted := t.Alias(); kind != thinking || raw != nil && !blankEdge(raw, quoted) {
		return t
	}
	return msg.Plain(strings.TrimSpace(t.String()))
}

// blankEdge reports whether what raw stands for may begin or end with a blank.
func blankEdge(raw []byte, quoted bool) bool {
	if len(raw) == 0 {
		return false
	}
	odd := func(c byte) bool { return c <= ' ' || c >= 0x80 || c == '\\' }
	const escape = len(`\u0020`)
	return odd(raw[0]) || odd(raw[len(raw)-1]) || quoted && bytes.IndexByte(raw[max(0, len(raw)-escape):], '\\') >= 0
}
