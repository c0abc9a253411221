package grace

import (
	"net/url"
	"strings"

	"github.com/earshot-dev/earshot/core/sdk/conversation"
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
	return conversation.Cut(s, most)
}

// short is the JSON of a list or an object as an attribute; nothing, and not read, where
// there is none or too much of it.
func short(v jsonv.Value) string {
	raw := v.Peek()
	if !v.Is(jsonv.Array) && !v.Is(jsonv.Object) || len(raw) <= 2 || len(raw) > conversation.MaxAttr {
		return ""
	}
	return string(v.Raw())
}

// base is the name of the file at a path of any system.
func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// unquoted is the value of JSON in a string, and v itself when it is none: meta is an object on
// the stream and a string in a row. The texts of the result lie in memory of their own; the
// value is valid until doc is used again.
func unquoted(doc *jsonv.Doc, v jsonv.Value) jsonv.Value {
	if !v.Is(jsonv.String) {
		return v
	}
	raw := v.Peek()
	if len(raw) < 4 || raw[1] != '{' && raw[1] != '[' || doc.Parse([]byte(v.PeekStr())) != nil {
		return v
	}
	v.MarkRead()
	return doc.Root()
}

// sessionOfOrigin is the conversation of a stream that does not name it: the one
// that the URL names, or the name of the file. It is empty when there is neither.
func sessionOfOrigin(origin string) string {
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
