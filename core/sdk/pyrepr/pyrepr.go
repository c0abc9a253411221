// Package pyrepr translates the output of Python's repr into JSON. Agents written in Python
// put str() of their own objects where a protocol has a text, and a decoder reads the
// fields from there.
//
// The input is the whole text, the output one JSON document, or ok = false when any byte of
// the text is no part of a known form. The forms:
//
//	None, nan, inf, -inf              null: JSON has no such numbers
//	True, False, 1, -2.5, 1e+20       as in JSON
//	'a', "it's", '\x1b\U0001f570'     a string; a lone surrogate is U+FFFD, as it is in every Text
//	b'a\xff'                          a string; a byte that is no UTF-8 is U+FFFD
//	[1], (1,), {1}, set(), frozenset({1})   an array
//	{'a': 1, 2: 3}                    an object; a key that is a number, a bool or None is
//	                                  written as json.dumps writes it
//	Name(a=1), outer.Name(a=1)        an object with the fields: dataclasses, named tuples
//	<Color.RED: 1>                    the value of the enum's member
//	datetime.datetime(2026, 3, 4, 9, 10, tzinfo=datetime.timezone.utc)   ISO 8601, as isoformat writes it
//	UUID('…'), Decimal('1.5'), deque([1]) and the like   the one argument
//
// testdata/python.jsonl has the output of Python's repr and json.dumps for the same values.
package pyrepr

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// MaxDepth is how deep lists, dicts and calls may be nested.
const MaxDepth = 64

// Parse parses a text that is JSON or a repr, and reports whether it is either.
func Parse(doc *jsonv.Doc, text []byte) bool {
	if doc.Parse(text) == nil {
		return true
	}
	text, ok := JSON(text)
	return ok && doc.Parse(text) == nil
}

// JSON returns src as JSON. The result is at most six times as long as src.
func JSON(src []byte) (out []byte, ok bool) {
	p := parser{src: src, out: make([]byte, 0, len(src))}
	if !p.value(0) {
		return nil, false
	}
	p.space()
	return p.out, p.at == len(p.src)
}

type parser struct {
	src []byte
	at  int
	out []byte
}

// peek is the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *parser) take(c byte) bool {
	if p.at < len(p.src) && p.src[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) space() {
	for p.at < len(p.src) && bytes.IndexByte([]byte(" \t\r\n"), p.src[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) write(s string) bool {
	p.out = append(p.out, s...)
	return true
}

func (p *parser) value(depth int) bool {
	p.space()
	if depth > MaxDepth {
		return false
	}
	switch c := p.peek(); {
	case c == '\'' || c == '"':
		return p.text(false)
	case c == '[':
		return p.list(']', depth)
	case c == '(':
		return p.list(')', depth)
	case c == '{':
		return p.braces(depth)
	case c == '<':
		return p.enum(depth)
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == 'b' && p.at+1 < len(p.src) && (p.src[p.at+1] == '\'' || p.src[p.at+1] == '"'):
		p.at++
		return p.text(true)
	}
	switch name := p.name(); name {
	case "None", "nan", "inf":
		return p.write("null")
	case "True":
		return p.write("true")
	case "False":
		return p.write("false")
	case "":
		return false
	default:
		return p.call(name, depth)
	}
}

// items reads items up to the closing byte, with a comma after each but the last, which
// may have one too: (1,).
func (p *parser) items(closing byte, item func(n int) bool) bool {
	p.at++
	for n := 0; ; n++ {
		p.space()
		if p.take(closing) {
			return true
		}
		if n > 0 {
			p.out = append(p.out, ',')
		}
		if !item(n) {
			return false
		}
		p.space()
		if !p.take(',') {
			return p.take(closing)
		}
	}
}

func (p *parser) list(closing byte, depth int) bool {
	p.out = append(p.out, '[')
	return p.items(closing, func(int) bool { return p.value(depth + 1) }) && p.write("]")
}

// braces reads a dict or a set. The first item decides which.
func (p *parser) braces(depth int) bool {
	start, set := len(p.out), false
	p.out = append(p.out, '{')
	ok := p.items('}', func(n int) bool {
		from := len(p.out)
		if !p.value(depth + 1) {
			return false
		}
		if p.space(); n == 0 && p.peek() != ':' {
			set, p.out[start] = true, '['
		}
		return set || p.key(from) && p.take(':') && p.write(":") && p.value(depth+1)
	})
	if set {
		return ok && p.write("]")
	}
	return ok && p.write("}")
}

// key makes the value that was written at from a key. Lists and objects are no keys.
func (p *parser) key(from int) bool {
	switch p.out[from] {
	case '"':
		return true
	case '[', '{':
		return false
	}
	p.out = append(slices.Insert(p.out, from, '"'), '"')
	return true
}

// enum reads <Color.RED: 1>. A member that is several, <Perm.R|W: 6>, has one value too.
func (p *parser) enum(depth int) bool {
	name, _, ok := bytes.Cut(p.src[p.at+1:], []byte(": "))
	if !ok || !bytes.ContainsRune(name, '.') || bytes.ContainsAny(name, " \n'\"<>(){}[]") {
		return false
	}
	p.at += 1 + len(name) + 2
	return p.value(depth+1) && p.take('>')
}

// call reads the arguments of a name: the fields of an object, or the argument of a known
// class.
func (p *parser) call(name string, depth int) bool {
	if p.peek() != '(' {
		return false
	}
	start := len(p.out)
	p.out = append(p.out, '{')
	var positional []int // where their values begin
	fields := 0
	moment := name == "datetime.datetime" || name == "datetime.date"
	offset, zoned := "", false
	if !p.items(')', func(int) bool {
		at := p.at
		if field := p.name(); field != "" && p.take('=') {
			fields++
			if moment && field == "tzinfo" {
				offset, zoned = p.zone(depth + 1)
				return zoned
			}
			p.out = append(strconv.AppendQuote(p.out, field), ':')
			return p.value(depth + 1)
		}
		p.at = at
		positional = append(positional, len(p.out))
		return fields == 0 && p.value(depth+1)
	}) {
		return false
	}
	switch {
	case moment:
		return p.moment(start, offset)
	case len(positional) == 0 && fields == 0 && collection(name):
		p.out = append(p.out[:start], '[')
		return p.write("]")
	case len(positional) == 0:
		return p.write("}")
	case len(positional) == 1 && fields == 0 && (collection(name) || wrapper(name)):
		p.out = slices.Delete(p.out, start, positional[0])
		return true
	}
	return false
}

// collection reports whether a class is made of one list, or of nothing.
func collection(name string) bool {
	switch name {
	case "set", "frozenset", "deque":
		return true
	}
	return false
}

// wrapper reports whether repr prints an object of the class as the class and one value.
func wrapper(name string) bool {
	switch name {
	case "UUID", "Decimal", "bytearray", "PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "OrderedDict", "Counter", "mappingproxy", "dict_keys",
		"dict_values":
		return true
	}
	return false
}

// zone reads a time zone: its offset as ISO 8601 writes it, empty when only a name is
// known.
func (p *parser) zone(depth int) (offset string, ok bool) {
	const utc, timedelta = "datetime.timezone.utc", "datetime.timezone(datetime.timedelta("
	rest := p.src[p.at:]
	if bytes.HasPrefix(rest, []byte(utc)) {
		p.at += len(utc)
		return "+00:00", true
	}
	if bytes.HasPrefix(rest, []byte(timedelta)) {
		inside, _, closed := bytes.Cut(rest[len(timedelta):], []byte(")"))
		seconds := 0
		for part := range bytes.SplitSeq(inside, []byte(", ")) {
			name, number, _ := bytes.Cut(part, []byte("="))
			n, err := strconv.Atoi(string(number))
			switch {
			case err != nil || n < -86400 || n > 86400:
				return "", false
			case string(name) == "days":
				seconds += 86400 * n
			case string(name) == "seconds":
				seconds += n
			default:
				return "", false
			}
		}
		p.at += len(timedelta) + len(inside) + 1
		if p.take(',') { // the zone's name
			before := len(p.out)
			if !p.value(depth) {
				return "", false
			}
			p.out = p.out[:before]
		}
		sign := byte('+')
		if seconds < 0 {
			sign, seconds = '-', -seconds
		}
		b := append(two([]byte{sign}, seconds/3600), ':')
		return string(two(b, seconds/60%60)), closed && p.take(')')
	}
	before := len(p.out)
	ok = p.value(depth)
	p.out = p.out[:before]
	return "", ok
}

// moment writes the numbers of a datetime or a date, which stand in out from start, as
// isoformat does: seconds always, microseconds if there are any.
func (p *parser) moment(start int, offset string) bool {
	var n [7]int
	count := 0
	for part := range bytes.SplitSeq(p.out[start+1:], []byte(",")) {
		if len(part) == 0 || string(part) == `"fold":1` { // the place of tzinfo is empty
			continue
		}
		v, err := strconv.Atoi(string(part))
		if err != nil || v < 0 || count == len(n) {
			return false
		}
		n[count] = v
		count++
	}
	limits := [...]int{9999, 12, 31, 23, 59, 59, 999999}
	for i, v := range n {
		if v > limits[i] {
			return false
		}
	}
	if count != 3 && count < 5 {
		return false
	}
	b := append(p.out[:start], '"')
	b = append(two(two(b, n[0]/100), n[0]%100), '-')
	b = two(append(two(b, n[1]), '-'), n[2])
	if count > 3 {
		b = two(append(two(append(two(append(b, 'T'), n[3]), ':'), n[4]), ':'), n[5])
		if n[6] > 0 {
			b = two(two(two(append(b, '.'), n[6]/10000), n[6]/100%100), n[6]%100)
		}
		b = append(b, offset...)
	}
	p.out = append(b, '"')
	return true
}

// two appends a number of two digits.
func two(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// name reads a name, with the modules and classes before it: outer.Name,
// make.<locals>.Name.
func (p *parser) name() string {
	const locals = "<locals>"
	from := p.at
	for p.at < len(p.src) {
		c := p.src[p.at]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		first := p.at == from || p.src[p.at-1] == '.'
		switch {
		case letter || !first && ('0' <= c && c <= '9' || c == '.'):
			p.at++
		case first && p.at > from && bytes.HasPrefix(p.src[p.at:], []byte(locals)):
			p.at += len(locals)
		default:
			return string(p.src[from:p.at])
		}
	}
	return string(p.src[from:p.at])
}

// number reads an int or a float. Infinity is no number of JSON.
func (p *parser) number() bool {
	if bytes.HasPrefix(p.src[p.at:], []byte("-inf")) {
		p.at += len("-inf")
		return p.write("null")
	}
	from := p.at
	for p.at < len(p.src) && bytes.IndexByte([]byte("+-.eE0123456789"), p.src[p.at]) >= 0 {
		p.at++
	}
	p.out = append(p.out, p.src[from:p.at]...)
	return json.Valid(p.src[from:p.at])
}

// text reads a string or bytes, in either kind of quotes.
func (p *parser) text(binary bool) bool {
	quote := p.src[p.at]
	p.at++
	var s []byte
	for p.at < len(p.src) {
		c := p.src[p.at]
		p.at++
		switch c {
		case quote:
			if !binary && !utf8.Valid(s) {
				return false
			}
			p.out = jsonv.AppendQuote(p.out, s)
			return true
		case '\n':
			return false
		case '\\':
			r, ok := p.escape()
			if !ok {
				return false
			}
			if binary {
				s = append(s, byte(r))
			} else {
				s = utf8.AppendRune(s, r)
			}
		default:
			s = append(s, c)
		}
	}
	return false
}

// escape reads the rest of an escape, after its backslash.
func (p *parser) escape() (rune, bool) {
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
