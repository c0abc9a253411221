package legion

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// scratch is the memory of one call of Decode. The decoders of a process share a
// few of them, because most of ten thousand streams are silent.
type scratch struct {
	text []byte // a decoded text
	key  []byte

	names map[string]string // strings that are repeated
	chunk strings.Builder
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

// join is str of an id after a prefix.
func (sc *scratch) join(prefix, id string) string {
	sc.key = append(append(sc.key[:0], prefix...), id...)
	return sc.str(sc.key)
}

// scalar returns a string, a number or a boolean as text, for a message.
func (sc *scratch) scalar(v jsonv.Value) string {
	switch v.Kind() {
	case jsonv.String, jsonv.Number, jsonv.True, jsonv.False:
		return sc.str(sc.plain(v.Text()))
	}
	return ""
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

// hash makes the key msg.HashKey of the parts, without a copy of the text for itself. The text is
// hashed decoded, so that an escape more or less is the same.
func (sc *scratch) hash(typ, part string, at []byte, text msg.Text) {
	raw := sc.plain(text)
	b := binary.AppendUvarint(sc.key[:0], uint64(len(typ)+len(part)))
	b = append(append(b, typ...), part...)
	b = append(binary.AppendUvarint(b, uint64(len(at))), at...)
	b = append(binary.AppendUvarint(b, uint64(len(raw))), raw...)
	sum := sha256.Sum256(b)
	sc.key = hex.AppendEncode(b[:0], sum[:16])
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

// read returns the text of a string, which then counts as read; nil for any other kind.
func read(v jsonv.Value) []byte {
	known(v)
	return v.Chars()
}

// known counts a string as read.
func known(v jsonv.Value) {
	if v.Is(jsonv.String) {
		v.MarkRead()
	}
}
