package redact

import (
	"bytes"
	"strings"
)

// mayHold reports whether b may hold a secret. It errs on the side of yes. Every byte of
// every frame goes through it.
func (r *Redactor) mayHold(b []byte) bool {
	if r.builtin != nil && r.builtin.holds(b) || r.builtin == nil && escapedLetter(b) {
		return true
	}
	if len(r.keys) > 0 && r.keys.in(b) {
		return true
	}
	for i := range r.patterns {
		if p := &r.patterns[i]; bytes.Contains(b, p.literal) || escaped(p.literal, b) {
			return true
		}
	}
	return false
}

// escapedLetter reports whether b has a printable character as a \u escape that no encoder
// needs to write: all of ASCII but the quote, the backslash and those that HTML has its own use for.
func escapedLetter(b []byte) bool {
	for {
		i := bytes.Index(b, []byte(`\u00`))
		if i < 0 || i+6 > len(b) {
			return false
		}
		high, low := b[i+4], lower(b[i+5])
		b = b[i+6:]
		switch {
		case high < '2' || high > '7' || high == '7' && low == 'f':
		case high == '2' && (low == '2' || low == '6' || low == '7'), high == '3' && (low == 'c' || low == 'e'), high == '5' && low == 'c':
		default:
			return true
		}
	}
}

// escaped reports whether b may hold the literal with escapes in it.
func escaped(literal, b []byte) bool {
	odd := bytes.ContainsFunc(literal, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\/<>&'`, r) })
	return odd && bytes.Contains(b, []byte(`\`))
}

// shortest is the least length of a name that is looked at: no builtin secret is shorter with the
// text around it.
const shortest = 12

// wordBefore reports whether b ends within a word, unless that is an escape such as \n.
func wordBefore(b []byte) bool {
	n := len(b)
	return n > 0 && word(b[n-1]) && (n < 2 || b[n-2] != '\\')
}

func word(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// in reports whether one of the keys may be in b, with a colon after it.
func (k keys) in(b []byte) bool {
	for pos := 0; ; {
		i := bytes.IndexByte(b[pos:], ':')
		if i < 0 {
			return false
		}
		at := pos + i
		pos = at + 1
		for at > 0 && b[at-1] <= ' ' {
			at--
		}
		if at == 0 || b[at-1] != '"' {
			continue
		}
		at--
		for at > 0 && b[at-1] == '\\' {
			at--
		}
		if at == 0 {
			continue
		}
		if k.end(b[:at]) || k.named(b[:at]) || escapedKey(b[:at]) {
			return true
		}
	}
}

// end reports whether b ends with a quote and one of the keys.
func (k keys) end(b []byte) bool {
	for _, key := range k[lower(b[len(b)-1])] {
		if at := len(b) - len(key); at > 0 && b[at-1] == '"' && bytes.EqualFold(b[at:], []byte(key)) {
			return true
		}
	}
	return false
}

// named reports whether b ends with one of the keys as a name and "value": {"name":"key","value":…}.
func (k keys) named(b []byte) bool {
	const value = `"value`
	n := len(b) - len(value)
	if n < 0 || !strings.EqualFold(string(b[n:]), value) {
		return false
	}
	name, quoted := bytes.CutSuffix(bytes.TrimRight(b[:n], "\\, \t\r\n"), []byte(`"`))
	name = bytes.TrimRight(name, `\`)
	return quoted && len(name) > 0 && (k.end(name) || escapedKey(name))
}

// escapedKey reports whether the key that ends there has an escape in it: then it
// is looked at closely.
func escapedKey(b []byte) bool {
	from := bytes.LastIndexByte(b, '"')
	return from >= 0 && bytes.IndexByte(b[from+1:], '\\') >= 0
}
