package assemble

import (
	"bytes"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
)

// Limits of a shape: what a tool is called with is for its caller to decide.
const (
	maxMembers = 24
	maxMember  = 48   // bytes of a name
	maxShapes  = 4096 // that are shared
)

// shapes says which arguments calls have, without their values: the members of the
// object with their types, sorted.
//
//	{"command": "make test", "timeout": 60}   command:string timeout:number
//
// Calls of one tool have few shapes, so that equal ones share their text.
type signatures struct {
	known map[string]string
	buf   []byte
	list  []member
}

type member struct {
	name []byte
	kind string
}

// of returns the shape of a call's arguments; empty when they are no JSON object.
func (s *signatures) of(t msg.Text) string {
	raw, quoted := t.Alias()
	if quoted || raw == nil {
		raw = []byte(t.String())
	}
	if !s.members(raw) {
		return ""
	}
	slices.SortFunc(s.list, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	s.buf = s.buf[:0]
	for i, m := range s.list {
		if i > 0 {
			s.buf = append(s.buf, ' ')
		}
		s.buf = append(append(append(s.buf, m.name...), ':'), m.kind...)
	}
	if known, ok := s.known[string(s.buf)]; ok {
		return known
	}
	text := string(bytes.ToValidUTF8(s.buf, []byte("\uFFFD")))
	if s.known == nil || len(s.known) >= maxShapes {
		s.known = make(map[string]string)
	}
	s.known[string(s.buf)] = text
	return text
}

// members reads the members of an object and reports whether it is one.
func (s *signatures) members(b []byte) bool {
	s.list = s.list[:0]
	if b = blank(b); len(b) == 0 || b[0] != '{' {
		return false
	}
	for b = blank(b[1:]); ; b = blank(b[1:]) {
		if len(b) > 0 && b[0] == '}' && len(s.list) == 0 {
			return true
		}
		end := str(b)
		if end < 2 {
			return false
		}
		name := b[1 : end-1]
		if b = blank(b[end:]); len(b) == 0 || b[0] != ':' {
			return false
		}
		b = blank(b[1:])
		kind, n := value(b)
		if n == 0 {
			return false
		}
		if len(s.list) < maxMembers {
			s.list = append(s.list, member{name[:min(len(name), maxMember)], kind})
		}
		if b = blank(b[n:]); len(b) == 0 || b[0] != ',' {
			return len(b) > 0 && b[0] == '}'
		}
	}
}

func blank(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\r' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// str is the length of the string that b begins with, quotes and all; 0 when it is none.
func str(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i := 1; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0
		}
		i += n + 1
		slashes := 0
		for b[i-2-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

// value is the type and the length of the value that b begins with; 0 when it is none.
func value(b []byte) (kind string, length int) {
	if len(b) == 0 {
		return "", 0
	}
	switch c := b[0]; {
	case c == '"':
		return "string", str(b)
	case c == '{' || c == '[':
		if kind = "object"; c == '[' {
			kind = "array"
		}
		return kind, nested(b)
	case c == 't' || c == 'f':
		kind = "bool"
	case c == 'n':
		kind = "null"
	case c == '-' || '0' <= c && c <= '9':
		kind = "number"
	default:
		return "", 0
	}
	if length = bytes.IndexAny(b, ",} \n\r\t"); length < 0 {
		length = 0
	}
	return kind, length
}

// nested is the length of the object or the array that b begins with; 0 when it does
// not end.
func nested(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := str(b[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
