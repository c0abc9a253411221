package jsonv

import (
	"strings"
	"testing"
)

// stringEnd looks at each byte.
func stringEnd(b []byte, at int) (int, bool) {
	for ; at < len(b); at++ {
		switch b[at] {
		case '"':
			return at, true
		case '\\':
			at++
		}
	}
	return len(b), false
}

func TestStringEnd(t *testing.T) {
	for text, want := range map[string]int{`"`: 0, `a"`: 1, `\""`: 2, `\\"`: 2, `\\\""x`: 4, `a\"b\\"c"`: 6} {
		if end, closed := StringEnd([]byte(text), 0); end != want || !closed {
			t.Errorf("%s: %d, %t, want %d", text, end, closed, want)
		}
	}
	for _, text := range []string{``, `a`, `\"`, `\`, `\\\`, `a\"b\\\"`} {
		if end, closed := StringEnd([]byte(text), 0); end != len(text) || closed {
			t.Errorf("%s: %d, %t", text, end, closed)
		}
	}
	if end, closed := StringEnd([]byte(`\"`), 1); end != 1 || !closed {
		t.Errorf("a backslash in front of the body: %d, %t", end, closed)
	}
}

func FuzzStringEnd(f *testing.F) {
	f.Add([]byte(`\\\"a\u0022"b\"`), 1)
	f.Fuzz(func(t *testing.T, b []byte, from int) {
		if from < 0 || from > len(b) {
			t.Skip()
		}
		end, closed := StringEnd(b, from)
		if e, c := stringEnd(b, from); e != end || c != closed {
			t.Errorf("%q from %d: %d, %t, want %d, %t", b, from, end, closed, e, c)
		}
	})
}

func BenchmarkStringEnd(b *testing.B) {
	for name, body := range map[string]string{
		"prose": strings.Repeat("When the ferry leaves the quay at noon, look at the tide. ", 60),
		"code":  strings.Repeat(`\tif err := run(\"x\"); err != nil {\n\t\treturn err\n\t}\n`, 60),
		"short": "status",
	} {
		text := []byte(body + `"`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				StringEnd(text, 0)
			}
		})
	}
}
