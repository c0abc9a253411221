package otlp

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// The tags of an attribute with a text: a KeyValue whose AnyValue has a string.
const (
	tagKey   = 1<<3 | 2
	tagValue = 2<<3 | 2
	tagText  = 1<<3 | 2
)

// The JSON of an attribute around its key and its text.
const (
	attributeHead   = `{"key":"`
	attributeMiddle = `","value":{"stringValue":"`
	attributeTail   = `"}}`
)

// appendAttribute appends a KeyValue that has a short key and a short text, both of which a JSON string may have as
// they are, encoded as every encoder does it: most attributes of agents. It reports false, and appends nothing, when it is
// another one, which is read by the tables of the schema.
func appendAttribute(dst, in []byte) ([]byte, bool) {
	const head, short = 2, 0x80 // a length below takes one byte
	if len(in) < 3*head || len(in) > short {
		return dst, false
	}
	value := head + int(in[1]) // where its tag is
	text := value + 2*head
	if in[0] != tagKey || text > len(in) || in[value] != tagValue || int(in[value+1]) != len(in)-value-head ||
		in[value+2] != tagText || int(in[value+3]) != len(in)-text || !plain(in, head, value) || !plain(in, text, len(in)) {
		return dst, false
	}
	const around = len(attributeHead) + len(attributeMiddle) + len(attributeTail)
	from := len(dst)
	to := from + around + len(in) - 3*head
	dst = slices.Grow(dst, to-from)[:to]
	out := dst[from:]
	copy(out, attributeHead)
	out = out[len(attributeHead):]
	out = out[copy(out, in[head:value]):]
	copy(out, attributeMiddle)
	out = out[len(attributeMiddle):]
	copy(out, in[text:])
	copy(dst[to-len(attributeTail):], attributeTail)
	return dst, true
}

// plain reports whether a JSON string may have the bytes of b between two places as they are: ASCII, without a control
// character, a quote or a backslash. It looks at eight at a time.
func plain(b []byte, from, to int) bool {
	const spaces = ones * ' '
	for ; from+8 <= to; from += 8 {
		if unusual(binary.LittleEndian.Uint64(b[from:])) {
			return false
		}
	}
	switch rest := 8 * (to - from); {
	case rest == 0:
		return true
	case from+8 <= len(b): // the others of the eight become spaces
		return !unusual(binary.LittleEndian.Uint64(b[from:])<<(64-rest) | spaces>>rest)
	case to >= 8:
		return !unusual(binary.LittleEndian.Uint64(b[to-8:])>>(64-rest)<<(64-rest) | spaces>>rest)
	}
	for _, c := range b[from:to] {
		if special[c] {
			return false
		}
	}
	return true
}

const ones = 0x0101010101010101

// unusual reports whether one of eight bytes is not plain.
func unusual(x uint64) bool {
	quote, backslash := x^ones*'"', x^ones*'\\'
	return (x|(x-ones*' ')|(quote-ones)&^quote|(backslash-ones)&^backslash)&(ones*0x80) != 0
}

// special are the bytes that a JSON string may not have as they are, and those of characters
// beyond ASCII.
var special = func() (t [256]bool) {
	for c := range t {
		t[c] = c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf
	}
	return t
}()
