package letta

import (
	"bytes"
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

// kinds are those of the messages of parts.
var kinds = map[string]msg.Kind{thinking: msg.Reasoning, hidden: msg.Reasoning, speaking: msg.Assistant, calling: msg.ToolCall}

// piece is the part of a block that a record has: all of it, or the text since the piece before.
type piece struct {
	record jsonv.Value
	part   string
	text   msg.Text // of a call: its arguments
	files  []msg.Attachment

	call     jsonv.Value // the object in the record, or the string, that the piece of a call is
	name     string      // of the tool
	approval bool        // the call waits for one
	whole    bool        // the call is not continued
}

// block is a message of the model that later pieces may continue: a text or a call.
type block struct {
	msg.Message // that it becomes. It has a key from the first words of a text, or of a call that speaks

	Part string
	Otid string   `json:",omitempty"`
	ID   string   `json:",omitempty"` // of the record of its first piece
	Base string   // the common prefix of the keys of its response's parts
	Cut  bool     `json:",omitempty"` // its beginning or its end is missing
	Text []byte   `json:",omitempty"` // of a call: its arguments
	said msg.Text // in the place of Text, in a frame that is complete

	Size     int  `json:",omitempty"` // of hidden reasoning, in bytes
	Approval bool `json:",omitempty"` // the call waits for one
}

// piece adds a piece to the open block that it continues, or begins one. A block that was emitted as complete before
// is not emitted again.
func (r *run) piece(d *stream, p *piece) {
	b := r.continued(p)
	begun := b != nil && b.begun()
	if b == nil {
		b = r.begin(d, p)
	}
	b.add(d, p)
	if b.Key == "" {
		b.Key = r.keyOf(b)
	}
	if !begun && b.begun() {
		if d.repeats(r, cmp.Or(p.call, p.record), b.id(), func() conversation.Sum { return b.sum(d) }) {
			r.Open = slices.DeleteFunc(r.Open, func(o *block) bool { return o == b })
			return
		}
		r.firstToken(d, b)
	}
	if len(b.Text) > maxText {
		r.close(d)
	}
}

// begun reports whether a block has something to emit.
func (b *block) begun() bool { return b.Key != "" || b.Part == calling }

// continued returns the open block that a piece continues, or nil. Of several calls it is the last one if the piece
// has no id or the call has none yet.
func (r *run) continued(p *piece) *block {
	id, last := callID(p.call), true
	for _, b := range slices.Backward(r.Open) {
		if p.whole || !b.continuedBy(p) {
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

// continuedBy reports whether a piece continues b or, if b is a call, has another call of the same message.
func (b *block) continuedBy(p *piece) bool {
	id, otid := p.record.Get("id"), p.record.Get("otid")
	switch {
	case b.Part != p.part:
		return false
	case b.Otid != "" && otid.Is(jsonv.String):
		return ident.Is(otid, b.Otid)
	}
	return ident.Is(id, b.ID) || b.ID == "" && !id.Is(jsonv.String)
}

// begin opens a block that begins with a piece. The prefix of its keys is the same in all forms:
// its step, where the server names steps in streams too, or else its message. Where every
// piece has another message id, it is the otid, which is then not derived from the id.
// It ends the open blocks, except that the calls of a message are written at the same time, and
// those of a response if each has an otid.
func (r *run) begin(d *stream, p *piece) *block {
	v := p.record
	b := &block{Part: p.part, Otid: ident.Of(v.Get("otid")), ID: ident.Of(v.Get("id")), Approval: p.approval, Cut: r.First > 1 && !p.whole && !d.whole}
	b.Kind, b.Role, b.Hidden = kinds[p.part], msg.RoleAssistant, p.part == hidden
	b.Tool.CallID = ident.Of(callID(p.call))
	step := ident.Of(v.Get("step_id"))
	switch {
	case step != "" && len(v.Get("run_id").Escaped()) > 0:
		b.Base = step
	case b.Otid != "" && !sameMessage(b.Otid, b.ID):
		b.Base = b.Otid
	case b.ID != "":
		b.Base = b.ID
	default: // nothing names it
		b.Base = msg.HashKey(r.ID, p.part, string(v.Get("date").Peek()))
	}
	b.ResponseID = cmp.Or(step, b.Base)
	if step == "" && b.Base == b.Otid { // each block has an id of its own
		r.Response = cmp.Or(r.Response, b.Base)
		b.ResponseID = r.Response
	}
	if n := len(r.Open); n == 0 || n == maxOpen || !r.Open[n-1].beside(b, p) {
		r.close(d)
	}
	r.First = 1
	r.Open = append(r.Open, b)
	return b
}

// beside reports whether the call b is written at the same time as next, which begins with the piece.
func (b *block) beside(next *block, p *piece) bool {
	return b.Part == calling && next.Part == calling && b.Approval == next.Approval &&
		(b.continuedBy(p) || b.ResponseID == next.ResponseID && b.Otid != "" && next.Otid != "")
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

// add adds the text of a piece, and the facts beside it.
func (b *block) add(d *stream, p *piece) {
	v := p.record
	if d.At.Nanos != 0 {
		d.At.Set(&b.Message)
	}
	b.IsError = b.IsError || v.Get("is_err").Bool()
	if id := v.Get("sender_id"); isAgent(id) && !ident.Is(id, b.Agent.ID) { // in a group of agents
		b.Agent = d.agent(ident.Of(id), ident.Of(v.Get("name")))
	}
	if b.Kind == msg.Reasoning {
		for _, name := range [...]string{"source", "state"} { // words that each piece repeats
			if word := d.Name(v.Get(name)); b.Attr(name) == "" {
				b.SetAttr(name, word)
			}
		}
		if sealed := v.Get("hidden_reasoning"); sealed.Is(jsonv.String) {
			b.Size += sealed.Text().Len()
		}
	}
	if again := b.Tool.Name != "" && p.name != ""; again && bytes.HasSuffix(b.Text, []byte("}")) && p.text.String() == string(b.Text) {
		return // a repetition of the whole call
	}
	b.Tool.Name = cmp.Or(b.Tool.Name, p.name)
	if d.whole && b.Part != calling {
		b.said = p.text
	} else {
		b.Text = p.text.Append(b.Text)
	}
	b.Attachments = append(b.Attachments, p.files...)
}

// keyOf returns the key of a block that has words, or may have them and is hidden: the ordinal of its part follows
// the prefix. A call of speechTool has the key of its text, and of a further text if another call of its message has
// that. It is empty for any other block.
func (r *run) keyOf(b *block) string {
	part, words := b.Part, b.Part == hidden || len(b.Text) > 0 || !b.said.IsZero() || len(b.Attachments) > 0
	if b.Part == calling {
		part, words = speaking, b.Tool.Name == speechTool
	}
	if !words {
		return ""
	}
	id := b.name(part)
	if b.Part == calling && slices.ContainsFunc(r.Open, func(o *block) bool { return o.Key != "" && o.name(part) == id }) {
		id.Name = b.id().Name
	}
	n := r.Emitted.Open(id).N
	return conversation.Ordinal(b.Base+"/"+part, &n)
}

// name names the block in all forms, as a part of that kind.
func (b *block) name(part string) conversation.PartID {
	return conversation.PartID{Base: conversation.SumOf(b.Base), Kind: part, Name: conversation.SumOf(cmp.Or(b.Otid, b.ID))}
}

// id names the block in all forms. A call has an id of its own.
func (b *block) id() conversation.PartID {
	if b.Part == calling {
		return conversation.PartID{Kind: calling, Name: conversation.SumOf(b.call().ID)}
	}
	return b.name(b.Part)
}

// sum is the checksum of the content, of a call that of its name and of its arguments in canonical form.
func (b *block) sum(d *stream) conversation.Sum {
	if b.Part == calling {
		args, _ := d.arguments(b.Text)
		return b.sumOf(args)
	}
	return conversation.SumOfText(b.words())
}

func (b *block) sumOf(args string) conversation.Sum {
	return conversation.SumOf(b.Tool.Name + "\x00" + args)
}

// words are the text, of reasoning without the blanks around it: the server removes them when it stores it.
func (b *block) words() msg.Text {
	text := b.said
	if len(b.Text) > 0 {
		text = msg.Raw(b.Text)
	}
	if b.Part != thinking {
		return text
	}
	s := text.String()
	if trimmed := strings.TrimSpace(s); len(trimmed) < len(s) {
		return msg.Plain(trimmed)
	}
	return text
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
	m := d.about(r, b, "first_token:"+b.ResponseID, "first_token")
	if m.Complete = d.level; !r.Named {
		r.setCorrelationID(m)
	}
	if b.Cut {
		m.Complete = msg.Partial
	} else {
		m.Signal = msg.FirstToken
	}
}

// about adds a status about a block, at its date.
func (w *writer) about(r *run, b *block, key, typ string) *msg.Message {
	return record.Hide(w.put(r, msg.Message{Kind: msg.Status, Key: key, ResponseID: b.ResponseID, Agent: b.Agent, Time: b.Time, Precision: b.Precision}), typ)
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
	if !b.begun() {
		return
	}
	m, flushed := b.Message, d.Frame == nil
	if m.Complete = d.level; b.Cut {
		m.Complete = msg.Partial
	}
	var sum conversation.Sum
	if b.Part == calling {
		if flushed && b.Tool.CallID == "" { // it may follow the name
			return
		}
		sum = b.sumOf(r.emitCall(d, b, m, flushed))
	} else {
		if m.Content = b.words(); m.Content.IsZero() && b.Part != hidden && len(b.Attachments) == 0 {
			return
		}
		if b.Size > 0 {
			m.Attrs = append(slices.Clip(m.Attrs), msg.Attr{Key: "hidden_bytes", Value: strconv.Itoa(b.Size)})
		}
		d.put(r, m)
		sum = conversation.SumOfText(m.Content)
	}
	if m.Complete > msg.Partial && !d.whole {
		r.Emitted.Complete(b.id(), sum)
	}
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
