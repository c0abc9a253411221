package letta

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// maxNesting is how deep lists and dicts may be nested.
const maxNesting = 32

// jsonOfRepr writes as JSON what Python's repr made of dicts, lists, tuples, strings,
// numbers, booleans and None. ok is false when there is anything else in src.
func jsonOfRepr(src []byte) (out []byte, ok bool) {
	p := repr{src: src, out: make([]byte, 0, len(src))}
	if !p.value(0) {
		return nil, false
	}
	p.space()
	return p.out, p.at == len(p.src)
}

type repr struct {
	src []byte
	at  int
	out []byte
}

func (p *repr) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *repr) take(c byte) bool {
	if p.at < len(p.src) && p.src[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *repr) space() {
	for p.at < len(p.src) && p.src[p.at] <= ' ' {
		p.at++
	}
}

func (p *repr) value(depth int) bool {
	p.space()
	switch c := p.peek(); {
	case depth > maxNesting:
		return false
	case c == '\'' || c == '"':
		return p.text()
	case c == '{':
		return p.items('{', '}', depth, true)
	case c == '[':
		return p.items('[', ']', depth, false)
	case c == '(':
		return p.items('(', ')', depth, false)
	}
	for _, word := range [...]struct{ python, json string }{{"None", "null"}, {"True", "true"}, {"False", "false"}} {
		if bytes.HasPrefix(p.src[p.at:], []byte(word.python)) {
			p.at += len(word.python)
			p.out = append(p.out, word.json...)
			return true
		}
	}
	return p.number()
}

// items reads what stands between brackets: values, or pairs of a key and a value.
func (p *repr) items(open, end byte, depth int, pairs bool) bool {
	p.at++
	if pairs {
		p.out = append(p.out, '{')
	} else {
		p.out = append(p.out, '[')
	}
	for n := 0; ; n++ {
		p.space()
		if p.take(end) { // a tuple of one ends with a comma
			break
		}
		if n > 0 {
			p.out = append(p.out, ',')
		}
		if pairs && !p.key() || !p.value(depth+1) {
			return false
		}
		p.space()
		if p.take(',') {
			continue
		}
		if !p.take(end) {
			return false
		}
		break
	}
	if pairs {
		p.out = append(p.out, '}')
	} else {
		p.out = append(p.out, ']')
	}
	return true
}

// key reads the key of a dict, which is a string, and its colon.
func (p *repr) key() bool {
	if c := p.peek(); c != '\'' && c != '"' || !p.text() {
		return false
	}
	p.space()
	p.out = append(p.out, ':')
	return p.take(':')
}

func (p *repr) number() bool {
	from := p.at
	for p.at < len(p.src) && bytes.IndexByte([]byte("+-.eE0123456789"), p.src[p.at]) >= 0 {
		p.at++
	}
	p.out = append(p.out, p.src[from:p.at]...)
	return json.Valid(p.src[from:p.at])
}

// text reads a string, in either kind of quotes.
func (p *repr) text() bool {
	quote := p.src[p.at]
	p.at++
	var s []byte
	for p.at < len(p.src) {
		c := p.src[p.at]
		p.at++
		switch c {
		case quote:
			p.out = appendString(p.out, string(s))
			return utf8.Valid(s)
		case '\n':
			return false
		case '\\':
			r, ok := p.escape()
			if !ok {
				return false
			}
			s = utf8.AppendRune(s, r)
		default:
			s = append(s, c)
		}
	}
	return false
}

// escape reads what stands behind a backslash.
func (p *repr) escape() (rune, bool) {
	c := p.peek()
	p.at++
	digits := 0
	switch c {
	case '\\', '\'', '"':
		return rune(c), true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if digits == 0 || p.at+digits > len(p.src) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.src[p.at:p.at+digits]), 16, 32)
	p.at += digits
	return rune(n), err == nil && n <= utf8.MaxRune
}
