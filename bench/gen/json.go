package gen

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// line writes one record the way Python's json.dumps does, a space after comma
// and colon; ascii escapes everything beyond ASCII, as its default is.
type line struct {
	b     []byte
	ascii bool
	comma bool
}

func (l *line) open(c byte) *line {
	l.sep()
	l.b = append(l.b, c)
	l.comma = false
	return l
}

func (l *line) close(c byte) *line {
	l.b = append(l.b, c)
	l.comma = true
	return l
}

func (l *line) sep() {
	if l.comma {
		l.b = append(l.b, ", "...)
	}
	l.comma = true
}

func (l *line) key(k string) *line {
	l.sep()
	l.quote([]byte(k))
	l.b = append(l.b, ": "...)
	l.comma = false
	return l
}

func (l *line) str(k string, v []byte) *line {
	l.key(k)
	l.quote(v)
	l.comma = true
	return l
}

// raw writes a value that is JSON already.
func (l *line) raw(k, v string) *line {
	l.key(k)
	l.b = append(l.b, v...)
	l.comma = true
	return l
}

func (l *line) num(k string, v uint64) *line { return l.raw(k, strconv.FormatUint(v, 10)) }

// time writes seconds as Python prints a float.
func (l *line) time(k string, ns int64) *line {
	s := strconv.FormatFloat(float64(ns)/1e9, 'f', -1, 64)
	for i := range len(s) {
		if s[i] == '.' {
			return l.raw(k, s)
		}
	}
	return l.raw(k, s+".0")
}

const hex = "0123456789abcdef"

func (l *line) quote(v []byte) {
	l.b = append(l.b, '"')
	for i := 0; i < len(v); {
		c := v[i]
		if c >= utf8.RuneSelf && l.ascii {
			r, n := utf8.DecodeRune(v[i:])
			i += n
			if r > 0xffff {
				hi, lo := utf16.EncodeRune(r)
				l.unicode(hi)
				r = lo
			}
			l.unicode(r)
			continue
		}
		switch c {
		case '"', '\\':
			l.b = append(l.b, '\\', c)
		case '\n':
			l.b = append(l.b, '\\', 'n')
		case '\t':
			l.b = append(l.b, '\\', 't')
		case '\r':
			l.b = append(l.b, '\\', 'r')
		default:
			if c < 0x20 {
				l.unicode(rune(c))
			} else {
				l.b = append(l.b, c)
			}
		}
		i++
	}
	l.b = append(l.b, '"')
}

func (l *line) unicode(r rune) {
	l.b = append(l.b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}
