package llmmessage

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// imageOf describes an image by its bytes: the protocol names no type, and its documents
// guess JPEG for all.
func imageOf(v jsonv.Value) []msg.Attachment {
	if len(v.Escaped()) == 0 {
		return nil
	}
	return []msg.Attachment{media.Sniffed(v)}
}

// cut is the beginning of a text.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// excerpt is the beginning of a string. One that is longer is kept whole beside the message.
func excerpt(v jsonv.Value) string {
	s := v.PeekStr()
	if len(s) <= maxAttr {
		return v.Str()
	}
	return cut(s, maxAttr)
}

// nonZero is a number as an attribute: nothing when it is zero.
func nonZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// shortJSON is JSON as an attribute: nothing when it is long.
func shortJSON(v jsonv.Value) string {
	if raw := v.Peek(); v.Exists() && len(raw) <= maxAttr {
		v.MarkRead()
		return string(raw)
	}
	return ""
}

// nth is the suffix of the nth occurrence.
func nth(n int) string {
	if n <= 1 {
		return ""
	}
	return "#" + strconv.Itoa(n)
}

// hash is 64 bits of a hash of byte strings.
func (d *stream) hash(parts ...[]byte) uint64 {
	var buf [32]byte
	d.sum.Reset()
	for _, p := range parts {
		d.sum.Write(binary.AppendUvarint(buf[:0], uint64(len(p))))
		d.sum.Write(p)
	}
	return binary.BigEndian.Uint64(d.sum.Sum(buf[:0]))
}

// canonical appends JSON so that equal documents become equal bytes: members in order, no
// space, numbers and strings in one form. The model writes the arguments of a call in a
// snapshot, and the agent in an event.
func canonical(dst []byte, v jsonv.Value) []byte {
	switch v.Kind() {
	case jsonv.Object:
		type member struct {
			key string
			v   jsonv.Value
		}
		var members []member
		for k, v := range v.Members() {
			members = append(members, member{k.String(), v})
		}
		slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
		dst = append(dst, '{')
		for i, m := range members {
			if i+1 < len(members) && members[i+1].key == m.key { // the last one counts
				continue
			}
			dst = append(strconv.AppendQuote(dst, m.key), ':')
			dst = append(canonical(dst, m.v), ',')
		}
		return append(dst, '}')
	case jsonv.Array:
		dst = append(dst, '[')
		for e := range v.Elems() {
			dst = append(canonical(dst, e), ',')
		}
		return append(dst, ']')
	case jsonv.String:
		return strconv.AppendQuote(dst, v.PeekStr())
	case jsonv.Number:
		return strconv.AppendFloat(dst, v.Float(), 'g', -1, 64)
	}
	return append(dst, v.Peek()...)
}
