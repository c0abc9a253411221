package jsonv

import "bytes"

// StringEnd returns where a string ends whose body begins at from: at its closing quote, or at
// the end of b. Nothing is validated, so it is for JSON that may be cut off or broken, and where a
// string is skipped: it looks at quotes alone, not at each byte.
func StringEnd(b []byte, from int) (end int, closed bool) {
	for at := from; ; at++ {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return len(b), false
		}
		at += n
		escapes := at
		for escapes > from && b[escapes-1] == '\\' {
			escapes--
		}
		if (at-escapes)%2 == 0 {
			return at, true
		}
	}
}
