package legion

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// jsonOfRepr translates what Python's repr gives for literals and dataclasses,
// [TextBlock(text='a'), ToolUseBlock(id='t1', name='Read', input={'path': 'x'})],
// into JSON, in which a dataclass is an object with its fields. ok is false when
// any byte of it is something else.
func jsonOfRepr(src []byte) (out []byte, ok bool) {
	p := reprParser{src: src}
	if !p.value(0) {
		return nil, false
	}
	p.space()
	return p.out, p.i == len(p.src)
}

type reprParser struct {
	src []byte
	i   int
	out []byte
}

const maxReprDepth = 64

func (p *reprParser) value(depth int) bool {
	p.space()
	if p.i >= len(p.src) || depth > maxReprDepth {
		return false
	}
	switch c := p.src[p.i]; {
	case c == '\'' || c == '"':
		return p.str()
	case c == '[':
		return p.list('[', ']', depth, p.value)
	case c == '(':
		return p.list('(', ')', depth, p.value)
	case c == '{':
		return p.members('{', '}', depth, p.dictKey)
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	switch name := p.name(); name {
	case "":
		return false
	case "None", "nan", "inf":
		p.out = append(p.out, "null"...)
	case "True":
		p.out = append(p.out, "true"...)
	case "False":
		p.out = append(p.out, "false"...)
	default:
		return p.members('(', ')', depth, p.fieldName)
	}
	return true
}

// list reads values between brackets.
func (p *reprParser) list(opening, closing byte, depth int, item func(int) bool) bool {
	p.out = append(p.out, '[')
	if !p.items(opening, closing, func() bool { return item(depth + 1) }) {
		return false
	}
	p.out = append(p.out, ']')
	return true
}

// members reads keys and values between brackets: a dict, or a dataclass.
func (p *reprParser) members(opening, closing byte, depth int, key func() bool) bool {
	p.out = append(p.out, '{')
	if !p.items(opening, closing, func() bool { return key() && p.value(depth+1) }) {
		return false
	}
	p.out = append(p.out, '}')
	return true
}

func (p *reprParser) items(opening, closing byte, item func() bool) bool {
	if !p.take(opening) {
		return false
	}
	for n := 0; ; n++ {
		p.space()
		if p.take(closing) {
			return true
		}
		if n > 0 {
			if !p.take(',') {
				return false
			}
			p.space()
			if p.take(closing) { // a tuple of one
				return true
			}
			p.out = append(p.out, ',')
		}
		if !item() {
			return false
		}
	}
}

func (p *reprParser) dictKey() bool {
	p.space()
	if p.i >= len(p.src) || p.src[p.i] != '\'' && p.src[p.i] != '"' || !p.str() {
		return false
	}
	p.space()
	p.out = append(p.out, ':')
	return p.take(':')
}

func (p *reprParser) fieldName() bool {
	p.space()
	name := p.name()
	if name == "" || !p.take('=') {
		return false
	}
	p.out = strconv.AppendQuote(p.out, name) // letters, digits, underscores
	p.out = append(p.out, ':')
	return true
}

func (p *reprParser) name() string {
	from := p.i
	for p.i < len(p.src) {
		c := p.src[p.i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (p.i == from || c < '0' || c > '9') {
			break
		}
		p.i++
	}
	return string(p.src[from:p.i])
}

func (p *reprParser) number() bool {
	from := p.i
	for p.i < len(p.src) && bytes.IndexByte([]byte("+-.eE0123456789"), p.src[p.i]) >= 0 {
		p.i++
	}
	n := p.src[from:p.i]
	p.out = append(p.out, n...)
	return json.Valid(n)
}

// str reads a string literal in either quotes.
func (p *reprParser) str() bool {
	quote := p.src[p.i]
	p.i++
	var s []byte
	for p.i < len(p.src) {
		switch c := p.src[p.i]; c {
		case quote:
			p.i++
			b, err := json.Marshal(string(s))
			p.out = append(p.out, b...)
			return err == nil && utf8.Valid(s)
		case '\\':
			var ok bool
			if s, ok = p.escape(s); !ok {
				return false
			}
		case '\n':
			return false
		default:
			s = append(s, c)
			p.i++
		}
	}
	return false
}

// escape reads one of the escapes that repr writes.
func (p *reprParser) escape(s []byte) ([]byte, bool) {
	if p.i+1 >= len(p.src) {
		return s, false
	}
	c, digits := p.src[p.i+1], 0
	p.i += 2
	switch c {
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case '\\', '\'', '"':
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		return s, false
	}
	if digits == 0 {
		return append(s, c), true
	}
	if p.i+digits > len(p.src) {
		return s, false
	}
	n, err := strconv.ParseUint(string(p.src[p.i:p.i+digits]), 16, 32)
	p.i += digits
	return utf8.AppendRune(s, rune(n)), err == nil
}

func (p *reprParser) take(c byte) bool {
	if p.i < len(p.src) && p.src[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *reprParser) space() {
	for p.i < len(p.src) && (p.src[p.i] == ' ' || p.src[p.i] == '\n') {
		p.i++
	}
}
