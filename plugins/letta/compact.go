package letta

import "github.com/earshot-dev/earshot/core/sdk/jsonv"

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
			dst = compact(append(jsonv.AppendQuote(dst, k.String()), ':'), m)
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
			return jsonv.AppendQuote(dst, v.Str())
		}
	}
	return append(dst, v.Raw()...)
}
