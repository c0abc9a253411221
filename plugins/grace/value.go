package grace

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// peekText is the text of v, or the JSON of another value, for comparisons: it does not count
// as read.
func peekText(v jsonv.Value) string {
	switch {
	case v.Is(jsonv.String):
		return v.PeekStr()
	case v.Exists():
		return string(v.Peek())
	}
	return ""
}

// stringOnly is v where it is a string.
func stringOnly(v jsonv.Value) jsonv.Value {
	if v.Is(jsonv.String) {
		return v
	}
	return jsonv.Value{}
}

// brief is the text of v, or the JSON of another value, as an attribute: the beginning of
// it where it is long, which does not count as read.
func brief(v jsonv.Value) string { return limited(v, maxGoal) }

// limited is brief for a length in bytes.
func limited(v jsonv.Value, most int) string {
	s := peekText(v)
	if len(s) <= most {
		v.MarkRead()
	}
	return cut(s, most)
}

// short is the JSON of a list or an object as an attribute; nothing, and not read, where
// there is none or too much of it.
func short(v jsonv.Value) string {
	raw := v.Peek()
	if !v.Is(jsonv.Array) && !v.Is(jsonv.Object) || len(raw) <= 2 || len(raw) > maxAttr {
		return ""
	}
	return string(v.Raw())
}

// limitText is a text cut to the limit of the state.
func limitText(t msg.Text) string { return cut(t.String(), maxText) }

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

// nonZero is a number as an attribute: nothing when it is zero.
func nonZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// hash is 64 bits of FNV-1a, the same in every process.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// sessionOfOrigin is the conversation of a stream that does not name it: the one
// that the URL names, or the name of the file. It is empty when there is neither.
func sessionOfOrigin(origin string) string {
	origin = strings.ToValidUTF8(origin, "\uFFFD")
	if u, err := url.Parse(origin); err == nil && u.Host != "" {
		return strings.ToValidUTF8(u.Query().Get("conversation_id"), "\uFFFD")
	}
	parts := strings.FieldsFunc(origin, func(r rune) bool { return r == '/' || r == '\\' })
	if len(parts) == 0 {
		return ""
	}
	name, _, _ := strings.Cut(parts[len(parts)-1], ".")
	return name
}
