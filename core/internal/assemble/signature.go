package assemble

import (
	"bytes"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Limits of a signature: the caller decides how many arguments a tool is called with.
const (
	maxMembers    = 24
	maxMember     = 48   // bytes of a name
	maxSignatures = 4096 // that are shared
)

// signatures makes the signatures of calls: the members of their arguments with their types,
// sorted, without the values.
//
//	{"command": "make test", "timeout": 60}   command:string timeout:number
//
// Calls of one tool have few signatures, so that equal ones share their text.
type signatures struct {
	known map[string]string
	buf   []byte
	list  []member
}

type member struct {
	name []byte
	kind string
}

// of returns the signature of a call's arguments; empty when they are no JSON object.
func (s *signatures) of(t msg.Text) string {
	raw, quoted := t.Alias()
	if quoted || raw == nil {
		raw = []byte(t.String())
	}
	if !s.scan(raw) {
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
	if s.known == nil || len(s.known) >= maxSignatures {
		s.known = make(map[string]string)
	}
	s.known[string(s.buf)] = text
	return text
}

// scan lists the members of an object and reports whether b is one that has some. It is a state machine
// over the tokens of the object's own level; a value is one token.
func (s *signatures) scan(b []byte) bool {
	const (
		object = iota // {
		name
		colon
		value
		comma // or }
	)
	s.list = s.list[:0]
	var m member
	for state, i := object, 0; i < len(b); {
		c, length := b[i], 1
		if c == '"' {
			if length = stringLen(b[i:]); length == 0 {
				return false
			}
		}
		switch {
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
		case state == object && c == '{':
			state = name
		case state == name && c == '"':
			m.name = b[i+1 : i+length-1]
			state = colon
		case state == colon && c == ':':
			state = value
		case state == value:
			if m.kind = "string"; c != '"' {
				m.kind, length = scanValue(b[i:])
			}
			if length == 0 {
				return false
			}
			if len(s.list) < maxMembers {
				m.name = m.name[:min(len(m.name), maxMember)]
				s.list = append(s.list, m)
			}
			state = comma
		case state == comma && c == ',':
			state = name
		case state == comma && c == '}':
			return true
		default:
			return false
		}
		i += length
	}
	return false
}

// scanValue returns the type and the length of the value, other than a string, that b begins
// with; 0 when it is none.
func scanValue(b []byte) (kind string, length int) {
	switch c := b[0]; {
	case c == '{':
		return "object", nestedLen(b)
	case c == '[':
		return "array", nestedLen(b)
	case c == 't' || c == 'f':
		kind = "bool"
	case c == 'n':
		kind = "null"
	case c == '-' || '0' <= c && c <= '9':
		kind = "number"
	default:
		return "", 0
	}
	return kind, max(0, bytes.IndexAny(b, ",} \n\r\t"))
}

// stringLen is the length of the string that b begins with, quotes and all; 0 when it does
// not end.
func stringLen(b []byte) int {
	end, closed := jsonv.StringEnd(b, 1)
	if !closed {
		return 0
	}
	return end + 1
}

// nestedLen is the length of the object or the array that b begins with; 0 when it does not
// end.
func nestedLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringLen(b[i:])
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
