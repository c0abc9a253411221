package conversation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"hash/crc32"
	"slices"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/msg"
)

// MaxParts is the number of parts that are assembled at a time, MaxBytes the size of their
// text.
const (
	MaxParts = 4096
	MaxBytes = 16 << 20
)

// Part is a part of a response of which pieces have come.
type Part struct {
	Name   string   // by which its pieces name it
	Kind   msg.Kind // Assistant, Reasoning or ToolCall
	Key    string   `json:",omitempty"`
	CallID string   `json:",omitempty"`
	Tool   string   `json:",omitempty"`
	Server string   `json:",omitempty"`
	Text   []byte   `json:",omitempty"` // of a call: JSON, which may be incomplete
	Cut    bool     `json:",omitempty"` // text was dropped beyond MaxBytes
	Closed bool     `json:",omitempty"` // its last piece has come
}

// Empty reports whether the part has nothing to emit. A call without arguments is a call.
func (p *Part) Empty() bool { return len(p.Text) == 0 && p.Kind != msg.ToolCall }

// Arguments returns the arguments of a call: {} when no piece has come.
func (p *Part) Arguments() msg.Text {
	if len(p.Text) == 0 {
		return msg.Plain("{}")
	}
	return msg.Plain(string(p.Text))
}

// Fill makes a message that of the part: a text or a thought of the model, or a call.
func (p *Part) Fill(m *msg.Message) {
	m.Kind, m.Key, m.Role = p.Kind, p.Key, msg.RoleAssistant
	if p.Kind != msg.ToolCall {
		m.Content = msg.Plain(string(p.Text))
		return
	}
	m.Tool.CallID, m.Tool.Name, m.Tool.Server, m.Tool.Arguments = p.CallID, p.Tool, cmp.Or(p.Server, ToolServer(p.Tool)), p.Arguments()
}

// Deltas assembles the parts of a response from their pieces. A format that sends the whole
// part as well drops the pieces then (Whole): the whole part replaces them, and they
// count only when it does not arrive. A format with several responses at a time embeds one in each
// of them, beside Response.
type Deltas struct {
	Parts []*Part `json:",omitempty"` // in the order in which they began
	Bytes int     `json:",omitempty"` // of their texts
}

// Part returns the part of that name, or nil.
func (d *Deltas) Part(name string) *Part {
	for _, p := range d.Parts {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Open opens a part; nil when there are too many.
func (d *Deltas) Open(name string, kind msg.Kind) *Part {
	if len(d.Parts) >= MaxParts {
		return nil
	}
	p := &Part{Name: name, Kind: kind}
	d.Parts = append(d.Parts, p)
	return p
}

// Append adds a piece to a part. Beyond the limit of bytes it is dropped and the part is
// marked as cut.
func (d *Deltas) Append(p *Part, piece msg.Text, limit int) {
	if p == nil {
		return
	}
	if d.Bytes+piece.Len() > limit {
		p.Cut = true
		return
	}
	before := len(p.Text)
	p.Text = piece.Append(p.Text)
	d.Bytes += len(p.Text) - before
}

// Piece is Append for the part of that name, which it opens if need be and returns; nil when there are too many.
func (d *Deltas) Piece(name string, kind msg.Kind, piece msg.Text, limit int) *Part {
	p := d.Part(name)
	if p == nil {
		p = d.Open(name, kind)
	}
	d.Append(p, piece, limit)
	return p
}

// Clear empties a part, whose text begins again.
func (d *Deltas) Clear(p *Part) {
	d.Bytes -= len(p.Text)
	p.Text, p.Cut = p.Text[:0], false
}

// Replace makes a text that of a part, whose pieces it has. It is never cut.
func (d *Deltas) Replace(p *Part, text msg.Text) {
	d.Clear(p)
	p.Text = text.Append(p.Text)
	d.Bytes += len(p.Text)
}

// Drop removes a part and reports whether it was there.
func (d *Deltas) Drop(p *Part) bool {
	i := slices.Index(d.Parts, p)
	if i < 0 {
		return false
	}
	d.Parts = append(d.Parts[:i:i], d.Parts[i+1:]...)
	d.Bytes -= len(p.Text)
	return true
}

// Whole drops the first part of that kind, because a record has the whole of it.
func (d *Deltas) Whole(kind msg.Kind) {
	for _, p := range d.Parts {
		if p.Kind == kind {
			d.Drop(p)
			return
		}
	}
}

// maxKept is the size up to which LastText keeps a text as it was written.
const maxKept = 4096

// LastText is the last text of a run, which a record at the end of the run repeats. The
// text is kept as it was written and its sum is computed when it is needed, because most
// texts are never compared.
type LastText struct {
	Bytes int    `json:",omitempty"` // decoded
	Sum   uint32 `json:",omitempty"`

	raw    []byte
	quoted bool
	kept   bool // raw has the text, and Bytes and Sum are not of it yet
}

// Set makes t the last text.
func (l *LastText) Set(t msg.Text) {
	raw, quoted := t.Alias()
	if raw == nil || len(raw) > maxKept {
		*l = LastText{raw: l.raw[:0]}
		l.Bytes, l.Sum = sum(t)
		return
	}
	l.raw, l.quoted, l.kept = append(l.raw[:0], raw...), quoted, true
}

// Is reports whether t is the last text.
func (l *LastText) Is(t msg.Text) bool {
	raw, quoted := t.Alias()
	if l.kept && raw != nil && quoted == l.quoted && bytes.Equal(raw, l.raw) {
		return true
	}
	l.settle()
	size, s := sum(t)
	return size == l.Bytes && s == l.Sum
}

func (l *LastText) settle() {
	if !l.kept {
		return
	}
	t := msg.Raw(l.raw)
	if l.quoted {
		t = msg.Quoted(l.raw)
	}
	l.Bytes, l.Sum = sum(t)
	l.kept = false
}

// IsZero reports whether there is no text.
func (l LastText) IsZero() bool { return !l.kept && l.Bytes == 0 && l.Sum == 0 }

// MarshalJSON implements json.Marshaler: a snapshot has the sum and not the text.
func (l LastText) MarshalJSON() ([]byte, error) {
	l.settle()
	type plain LastText
	return json.Marshal(plain(l))
}

// sum returns the size and the checksum of the decoded text, without a copy of it.
func sum(t msg.Text) (size int, s uint32) {
	raw, quoted := t.Alias()
	if raw == nil {
		raw = []byte(t.String())
	}
	var room [utf8.UTFMax]byte
	for len(raw) > 0 {
		plain := len(raw)
		if quoted {
			if i := bytes.IndexByte(raw, '\\'); i >= 0 {
				plain = i
			}
		}
		size, s = size+plain, crc32.Update(s, crc32.IEEETable, raw[:plain])
		if raw = raw[plain:]; len(raw) == 0 {
			break
		}
		n := escape(raw)
		one := msg.Quoted(raw[:n]).Append(room[:0])
		size, s, raw = size+len(one), crc32.Update(s, crc32.IEEETable, one), raw[n:]
	}
	return size, s
}

// escape returns the length of the escape at the beginning of b: of both halves when it is a
// surrogate pair.
func escape(b []byte) int {
	const unit = len(`\uXXXX`)
	switch {
	case len(b) < 2 || b[1] != 'u':
		return min(2, len(b))
	case len(b) >= 2*unit && (b[2]|0x20) == 'd' && bytes.HasPrefix(b[unit:], []byte(`\u`)) && len(msg.Quoted(b[:2*unit]).String()) == utf8.UTFMax:
		return 2 * unit
	}
	return min(unit, len(b))
}
