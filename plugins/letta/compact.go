package letta

import (
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// compact appends v as JSON without spacing and without escapes that it does not need. A
// model spaces and escapes arguments as it likes, and the server rewrites them when it stores
// them: in this form both are equal.
func compact(dst []byte, v jsonv.Value) []byte {
	switch v.Kind() {
	case jsonv.Object:
		dst = append(dst, '{')
		n := 0
		for k, m := range v.Members() {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, k.String()), ':')
			dst = compact(dst, m)
		}
		return append(dst, '}')
	case jsonv.Array:
		dst = append(dst, '[')
		n := 0
		for e := range v.Elems() {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = compact(dst, e)
		}
		return append(dst, ']')
	case jsonv.String:
		if _, escaped := v.Text().Alias(); escaped {
			return appendString(dst, v.Str())
		}
	}
	return append(dst, v.Raw()...)
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		default:
			dst = append(dst, c)
		}
		i++
	}
	return append(dst, '"')
}
