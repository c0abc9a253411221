package legion

import (
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// scratch is the memory of one call of Decode. The decoders of a process share a
// few of them, because most of ten thousand streams are silent.
type scratch struct {
	text []byte // a decoded text
	key  []byte
	hash hash.Hash

	names map[string]string // strings that are repeated
	chunk strings.Builder
}

// trim frees the memory that an unusual record needed.
func (sc *scratch) trim() {
	if cap(sc.text) > maxScratch {
		sc.text = nil
	}
}

// str returns a copy of b. Successive copies share one piece of memory, so they are for
// messages, which have the same lifetime; a string that is remembered is cloned.
func (sc *scratch) str(b []byte) string {
	const size = 4096
	if len(b) > size/8 {
		return string(b)
	}
	if sc.chunk.Len()+len(b) > sc.chunk.Cap() {
		sc.chunk = strings.Builder{}
		sc.chunk.Grow(size)
	}
	from := sc.chunk.Len()
	sc.chunk.Write(b)
	return sc.chunk.String()[from:]
}

// scalar returns a string, a number or a boolean as text, for a message.
func (sc *scratch) scalar(v jsonv.Value) string {
	switch v.Kind() {
	case jsonv.String, jsonv.Number, jsonv.True, jsonv.False:
		return sc.str(sc.plain(v.Text()))
	}
	return ""
}

// attrs sets attributes to members of v. Each has a name, and the members that may have its
// value unless one has that name.
func (sc *scratch) attrs(m *msg.Message, v jsonv.Value, list [][]string) {
	for _, a := range list {
		m.SetAttr(a[0], sc.scalar(v.First(a[min(1, len(a)-1):]...)))
	}
}

// name returns a string that is likely to come again.
func (sc *scratch) name(v jsonv.Value) string { return sc.intern(read(v)) }

func (sc *scratch) intern(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if s, ok := sc.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(sc.names) < maxNames {
		sc.names[s] = s
	}
	return s
}

// hashKey is msg.HashKey of the parts, without a copy of the text. The text is
// hashed decoded, so that an escape more or less is the same.
func (sc *scratch) hashKey(typ, part string, at []byte, text msg.Text) []byte {
	raw := sc.plain(text)
	b := binary.AppendUvarint(sc.key[:0], uint64(len(typ)+len(part)))
	b = append(append(b, typ...), part...)
	b = append(binary.AppendUvarint(b, uint64(len(at))), at...)
	b = binary.AppendUvarint(b, uint64(len(raw)))
	sc.hash.Reset()
	sc.hash.Write(b)
	sc.hash.Write(raw)
	b = sc.hash.Sum(b[:0])
	return hex.AppendEncode(b, b[:16])[len(b):]
}

// plain returns the decoded text, valid until the next call.
func (sc *scratch) plain(t msg.Text) []byte {
	raw, quoted := t.Alias()
	if raw == nil || quoted {
		sc.text = t.Append(sc.text[:0])
		raw = sc.text
	}
	return raw
}
