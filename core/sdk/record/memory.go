package record

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Limits of a Memory that waits for the next record.
const (
	maxNames = 512
	maxKept  = 1 << 20 // bytes of a text
)

// Memory is what the streams of a factory share, most of which are silent: a stream has it while it decodes a
// frame. Copies of short strings share one piece of memory, so they are for messages, which have the same lifetime; a
// string that is remembered, and is no name, is cloned.
type Memory struct {
	doc   jsonv.Doc
	names map[string]string
	chunk strings.Builder
	text  []byte // a decoded text
	key   []byte
}

// idle reports whether the memory may wait for the next record, after one that was not unusual.
func (m *Memory) idle() bool { return cap(m.text) <= maxKept && cap(m.key) <= maxKept }

// Name is ident.Of for a string that is likely to come again, as a type, a model or a tool: equal ones are one
// string.
func (m *Memory) Name(v jsonv.Value) string {
	if s, ok := m.names[string(v.Chars())]; ok {
		v.MarkRead()
		return s
	}
	s := ident.Of(v)
	if len(m.names) < maxNames && s != "" {
		if m.names == nil {
			m.names = make(map[string]string)
		}
		m.names[s] = s
	}
	return s
}

// Str returns a copy of b.
func (m *Memory) Str(b []byte) string {
	const size = 4096
	if len(b) > size/8 {
		return string(b)
	}
	if m.chunk.Len()+len(b) > m.chunk.Cap() {
		m.chunk = strings.Builder{}
		m.chunk.Grow(size)
	}
	from := m.chunk.Len()
	m.chunk.Write(b)
	return m.chunk.String()[from:]
}

// StrOf returns a copy of a string's text, which then counts as read; "" for any other kind.
func (m *Memory) StrOf(v jsonv.Value) string {
	if v.Is(jsonv.String) {
		v.MarkRead()
	}
	return m.Str(v.Chars())
}

// Join returns the parts as one string.
func (m *Memory) Join(parts ...string) string {
	m.key = m.key[:0]
	for _, s := range parts {
		m.key = append(m.key, s...)
	}
	return m.Str(m.key)
}

// Scalar returns a string, a number or a boolean as text; "" for any other kind.
func (m *Memory) Scalar(v jsonv.Value) string {
	switch v.Kind() {
	case jsonv.String, jsonv.Number, jsonv.True, jsonv.False:
		return m.Str(m.Plain(v.Text()))
	}
	return ""
}

// Plain returns the decoded text, valid until the next call of a method.
func (m *Memory) Plain(t msg.Text) []byte {
	raw, quoted := t.Alias()
	if raw == nil || quoted {
		m.text = t.Append(m.text[:0])
		raw = m.text
	}
	return raw
}

// Hash is msg.HashKey of the facts and the decoded text, so that an escape more or less is the same, without a string
// of the text. It is valid until the next call of a method.
func (m *Memory) Hash(text msg.Text, facts ...string) []byte {
	raw, b := m.Plain(text), m.key[:0]
	for _, s := range facts {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	b = append(binary.AppendUvarint(b, uint64(len(raw))), raw...)
	sum := sha256.Sum256(b)
	m.key = hex.AppendEncode(b[:0], sum[:16])
	return m.key
}
