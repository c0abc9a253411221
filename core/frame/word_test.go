package frame

import (
	"strings"
	"testing"
)

func TestWithoutCutWord(t *testing.T) {
	long := strings.Repeat("x", 3*longestWord)
	for in, want := range map[string]string{
		"": "", "word": "", "two words": "two ", "a whole one ": "a whole one ", `{"a":"b","url":"postgres://joe:pa55wo`: `{"a":"b","url":"`, `{\"k\":\"sk-12`: `{\"k\":\"`,
		"KEY=part": "", `{"a":1}`: `{"a":1}`, "before " + long: "before " + long[longestWord:],
	} {
		if got := string(WithoutCutWord([]byte(in))); got != want {
			t.Errorf("%.40q: %.60q, want %.60q", in, got, want)
		}
	}
}
