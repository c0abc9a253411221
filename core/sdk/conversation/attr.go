package conversation

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// MaxAttr is the size in bytes up to which a value of the protocol becomes an attribute.
const MaxAttr = 4 << 10

// Excerpt is the beginning of a string, as an attribute. A longer one does not count as read,
// so that the decoder's unknown.Keeper keeps it whole.
func Excerpt(v jsonv.Value) string {
	s := v.PeekStr()
	if len(s) <= MaxAttr {
		return v.Str()
	}
	return Cut(s, MaxAttr)
}

// Attrs makes strings of an object attributes of a message, as AttrsAs does.
func Attrs(m *msg.Message, v jsonv.Value, names ...string) { AttrsAs(m, v, Excerpt, names...) }

// AttrsAs makes members of an object attributes of a message, in this order and as that function reads them: ident.Of,
// jsonv.Value.Digits, ShortJSON. An attribute has the name of its member, or the one before an equals sign:
// "exit_code=exitCode". Of several members, with bars between them, the first that is there counts: "exit_code=exit_code|exitCode".
// A member of a member is named by both: "model.variant" is the attribute variant.
func AttrsAs(m *msg.Message, v jsonv.Value, as func(jsonv.Value) string, names ...string) {
	for _, name := range names {
		of, member := v, name
		if i := strings.IndexByte(name, '='); i >= 0 {
			name, member = name[:i], name[i+1:]
		}
		if i := strings.IndexByte(member, '.'); i >= 0 {
			of, member, name = v.Get(member[:i]), member[i+1:], name[strings.IndexByte(name, '.')+1:]
		}
		m.SetAttr(name, as(firstOf(of, member)))
	}
}

// firstOf returns the first of the members, with bars between them, that is there.
func firstOf(v jsonv.Value, members string) (found jsonv.Value) {
	for more := true; more && !found.Exists(); {
		var member string
		member, members, more = strings.Cut(members, "|")
		found = v.Get(member)
	}
	return found
}

// ShortJSON is JSON as an attribute; nothing, and not read, when it is long.
func ShortJSON(v jsonv.Value) string {
	if !v.Exists() || len(v.Peek()) > MaxAttr {
		return ""
	}
	return string(v.Raw())
}

// NonZero is a number as an attribute; nothing when it is zero.
func NonZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Cut is the beginning of a text, of at most that many bytes and without half a character.
func Cut[T string | []byte](s T, most int) T {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
