package redact

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"
)

// encoded reports whether b as a whole may be text in base64, as the events of some formats
// are.
func encoded(b []byte) bool {
	if n := len(b); n < 24 || n%4 != 0 {
		return false
	}
	for _, c := range bytes.TrimRight(b, "=") {
		if !word(c) && c != '+' && c != '/' || c == '_' {
			return false
		}
	}
	return true
}

// base64 redacts a text that is in base64 as a whole, and is so afterwards.
func (r *Redactor) base64(b []byte) []byte {
	if !encoded(b) {
		return b
	}
	text, err := base64.StdEncoding.AppendDecode(nil, b)
	if err != nil || !utf8.Valid(text) || encoded(text) {
		return b
	}
	out := r.Bytes(text)
	if first(out) == first(text) {
		return b
	}
	return base64.StdEncoding.AppendEncode(nil, out)
}
