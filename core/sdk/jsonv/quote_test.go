package jsonv

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestQuoteIsRead: a string is read as it was, except for bytes that are no UTF-8.
func TestQuoteIsRead(t *testing.T) {
	for _, s := range []string{"", "tide", `"\/`, "a\tb\nc\rd\x00\x1f\x7f", "né 😀 \u2028 <&>", "\xff\xed\xa0\x80"} {
		var got string
		b := AppendQuote([]byte(nil), s)
		if err := json.Unmarshal(b, &got); err != nil || got != string([]rune(s)) {
			t.Errorf("%q is read from %s as %q: %v", s, b, got, err)
		}
		if again := AppendQuote(nil, []byte(s)); string(again) != string(b) {
			t.Errorf("%q: bytes as %s, a string as %s", s, again, b)
		}
	}
	long := []byte(strings.Repeat("The tide turns at noon. ", 40))
	buf := make([]byte, 0, 2*len(long))
	if n := testing.AllocsPerRun(10, func() { AppendQuote(buf, long) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
