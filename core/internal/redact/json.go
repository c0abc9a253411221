package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// deepest is how many JSON documents may lie in each other's strings.
const deepest = 8

// writer rewrites values without their secrets.
type writer struct {
	r     *Redactor
	found finds
}

// value redacts JSON or text. It returns b when nothing is found.
func (w *writer) value(b []byte, depth int) (out []byte, changed bool) {
	head := bytes.TrimLeft(b, " \t\r\n")
	if depth >= deepest || len(head) == 0 || head[0] != '{' && head[0] != '[' && (head[0] != '"' || depth > 0) {
		return w.text(b)
	}
	if json.Valid(b) {
		return w.json(b, depth)
	}
	if depth > 0 {
		return w.text(b)
	}
	// Cut off, or several documents: secrets may also be between the strings.
	out, changed = w.json(b, depth)
	out, more := w.text(out)
	return out, changed || more
}

// json goes from string to string.
func (w *writer) json(b []byte, depth int) (out []byte, changed bool) {
	kept := 0         // up to where b is in out
	var paired []byte // the string before a key: {"name":"db_password","value":"x"}
	put := func(from, to int, with []byte) {
		out = append(append(out, b[kept:from]...), with...)
		kept, changed = to, true
	}
	for pos := 0; pos < len(b); {
		n := bytes.IndexByte(b[pos:], '"')
		if n < 0 {
			n = len(b) - pos
		}
		if n > 0 {
			if part, ok := w.between(b[pos : pos+n]); ok {
				put(pos, pos+n, part)
			}
			pos += n
			continue
		}
		end, closed := jsonv.StringEnd(b, pos+1)
		inner := unescape(b[pos+1 : end])
		next := end
		if closed {
			next++
		}
		colon := next
		for colon < len(b) && b[colon] <= ' ' {
			colon++
		}
		if closed && colon < len(b) && b[colon] == ':' {
			name, check := w.key(inner)
			if name == "" && paired != nil && valueKey(inner) {
				if bytes.HasPrefix(bytes.TrimLeft(b[colon+1:], " \t\r\n"), []byte("{")) {
					pos = next // {"key":"db_password","value":{"stringValue":"x"}} of OTLP
					continue
				}
				name, check = w.key(paired)
			}
			if paired = nil; name != "" {
				from, to := valueAt(b, colon+1)
				secret, isText := b[from:to], false
				if text, ok := whole(secret); ok {
					secret, isText = text, true
				}
				if check == nil || isText && check(secret) {
					if len(secret) > 0 {
						put(from, to, quote(nil, []byte(w.r.replacement(name, secret))))
						w.found[name]++
					}
					pos = to
					continue
				}
			}
		}
		paired = inner
		if text, ok := w.value(inner, depth+1); ok {
			with := quote(nil, text)
			if !closed {
				with = with[:len(with)-1]
			}
			put(pos, next, with)
		}
		pos = next
	}
	if !changed {
		return b, false
	}
	return append(out, b[kept:]...), true
}

// valueKey reports whether the value of a key belongs to the name before it.
func valueKey(key []byte) bool {
	for _, k := range [...]string{"value", "stringValue", "string_value", "intValue", "int_value", "doubleValue", "double_value", "bytesValue", "bytes_value"} {
		if len(key) == len(k) && strings.EqualFold(string(key), k) {
			return true
		}
	}
	return false
}

// key returns the rule by which the value of a key is a secret; check is of a value that is a
// string, and nil for all values.
func (w *writer) key(key []byte) (name string, check func([]byte) bool) {
	switch {
	case w.r.keys.has(key):
		return string(bytes.ToLower(key)), nil
	case w.r.builtin != nil:
		return secretKey(key)
	}
	return "", nil
}

// between redacts the bytes between strings: a number, or text that is not JSON.
func (w *writer) between(b []byte) (out []byte, changed bool) {
	kept := 0
	for pos := 0; pos < len(b); {
		for pos < len(b) && structure(b[pos]) {
			pos++
		}
		from := pos
		for pos < len(b) && !structure(b[pos]) {
			pos++
		}
		if text, ok := w.text(b[from:pos]); ok {
			out = append(out, b[kept:from]...)
			out = quote(out, text)
			kept, changed = pos, true
		}
	}
	if !changed {
		return b, false
	}
	return append(out, b[kept:]...), true
}

func structure(c byte) bool {
	switch c {
	case '{', '}', '[', ']', ',', ':', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// match is one find of a rule.
type match struct {
	from, to int
	order    int // of its kind: of two that begin together the first names the find
	name     string
}

// text redacts text.
func (w *writer) text(b []byte) (out []byte, changed bool) {
	var all []match
	if w.r.builtin != nil {
		w.r.builtin.find(b, func(m match) bool {
			if m.from < m.to {
				all = append(all, m)
			}
			return true
		})
	}
	for i := range w.r.patterns {
		rule := &w.r.patterns[i]
		for _, m := range rule.find(b) {
			if m[0] < m[1] {
				all = append(all, match{m[0], m[1], -1, rule.name})
			}
		}
	}
	if len(all) == 0 {
		return b, false
	}
	kept := 0
	for _, m := range merged(all) {
		out = append(out, b[kept:m.from]...)
		out = append(out, w.r.replacement(m.name, b[m.from:m.to])...)
		kept = m.to
		w.found[m.name]++
	}
	return append(out, b[kept:]...), true
}

// merged are the matches in order; those that overlap are one.
func merged(all []match) []match {
	slices.SortStableFunc(all, func(a, b match) int { return cmp.Or(a.from-b.from, a.order-b.order) })
	out := all[:0]
	for _, m := range all {
		if n := len(out); n > 0 && m.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, m.to)
		} else {
			out = append(out, m)
		}
	}
	return out
}

// valueAt returns where the value after a colon begins and ends. A null is no
// value.
func valueAt(b []byte, pos int) (from, to int) {
	for pos < len(b) && b[pos] <= ' ' {
		pos++
	}
	from = pos
	depth := 0
	for pos < len(b) {
		switch c := b[pos]; c {
		case '"':
			end, closed := jsonv.StringEnd(b, pos+1)
			if pos = end; closed {
				pos++
			}
			if depth == 0 {
				return from, pos
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return from, scalarEnd(b, from, pos)
			}
			if depth--; depth == 0 {
				return from, pos + 1
			}
		case ',':
			if depth == 0 {
				return from, scalarEnd(b, from, pos)
			}
		}
		pos++
	}
	return from, scalarEnd(b, from, pos)
}

// scalarEnd is where the number, boolean or null before pos ends, or a value that was cut off.
func scalarEnd(b []byte, from, pos int) int {
	text := bytes.TrimRight(b[from:pos], " \t\r\n")
	if string(text) == "null" {
		return from
	}
	return from + len(text)
}

// whole returns the text of a value that is one string, or the begin of one, with which a document that was cut off ends.
func whole(b []byte) ([]byte, bool) {
	if len(b) < 2 || b[0] != '"' {
		return nil, false
	}
	end, closed := jsonv.StringEnd(b, 1)
	if closed && end != len(b)-1 {
		return nil, false
	}
	return unescape(b[1:end]), true
}

// unescape returns the text of a string. A lone surrogate becomes the three bytes
// that UTF-8 would have for it, so that quote can write it again.
func unescape(b []byte) []byte {
	i := bytes.IndexByte(b, '\\')
	if i < 0 {
		return b
	}
	text := append(make([]byte, 0, len(b)), b[:i]...)
	for i < len(b) {
		c := b[i]
		if c != '\\' || i+1 >= len(b) {
			text = append(text, c)
			i++
			continue
		}
		switch e := b[i+1]; e {
		case 'n':
			text = append(text, '\n')
		case 't':
			text = append(text, '\t')
		case 'r':
			text = append(text, '\r')
		case 'b':
			text = append(text, '\b')
		case 'f':
			text = append(text, '\f')
		case '"', '\\', '/':
			text = append(text, e)
		case 'u':
			r, ok := hex4(b[i+2:])
			if !ok {
				text = append(text, '\\', 'u')
				break
			}
			i += 4
			if utf16.IsSurrogate(r) {
				if i+8 <= len(b) && b[i+2] == '\\' && b[i+3] == 'u' {
					if low, ok := hex4(b[i+4:]); ok {
						if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
							text = utf8.AppendRune(text, pair)
							i += 6
							break
						}
					}
				}
				text = append(text, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
				break
			}
			text = utf8.AppendRune(text, r)
		default:
			text = append(text, '\\', e)
		}
		i += 2
	}
	return text
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= lower(c) && lower(c) <= 'f':
			r = r<<4 | rune(lower(c)-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

const hexDigits = "0123456789abcdef"

// quote appends text as a JSON string.
func quote(dst, text []byte) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c == 0xED && i+2 < len(text) && text[i+1] >= 0xA0: // a surrogate
			r := 0xD000 | rune(text[i+1]&0x3F)<<6 | rune(text[i+2]&0x3F)
			dst = append(dst, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
