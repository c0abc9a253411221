package grace

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// first returns the first of the members that is there.
func first(v jsonv.Value, names ...string) jsonv.Value {
	for _, name := range names {
		if m := v.Get(name); m.Exists() {
			return m
		}
	}
	return jsonv.Value{}
}

// ident is the name or the id in v, "" if v is no string; a hash of it if it is
// too long to be remembered.
func ident(v jsonv.Value) string {
	if !v.Is(jsonv.String) {
		return ""
	}
	if raw := v.Raw(); len(raw) > maxIdent {
		return "long:" + msg.HashKey(string(raw))
	}
	return v.Str()
}

// id is an id that may be a number.
func id(v jsonv.Value) string {
	if v.Is(jsonv.Number) {
		return cut(string(v.Raw()), maxIdent)
	}
	return ident(v)
}

// keep is a text as it is remembered.
func keep(t msg.Text) string { return cut(t.String(), maxText) }

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

// count is a number as an attribute: nothing when it is zero.
func count(n int) string {
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
