package config_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/config"
)

// FuzzParse: no file makes Parse panic or hang; an error is an *config.Error whose
// problems lie within the file and take one line each.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example(f)))
	f.Add([]byte(switchOn(example(f))))
	text, err := os.ReadFile("testdata/problems.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range strings.Split(string(text), "\n=== ")[1:] {
		_, body, _ := strings.Cut(c, "\n")
		input, _, _ := strings.Cut(body, "----\n")
		f.Add([]byte(input))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := types.Parse("f", data, config.Environment)
		if err == nil {
			return
		}
		var e *config.Error
		if !errors.As(err, &e) || len(e.Problems) == 0 || c == nil {
			t.Fatalf("%T %v", err, err)
		}
		lines := strings.Split(string(data), "\n")
		for _, p := range e.Problems {
			if p.Line < 1 || p.Line > len(lines) {
				t.Fatalf("%s: the file has %d lines", p, len(lines))
			}
			if p.Col < 1 || p.Col > utf8.RuneCountInString(lines[p.Line-1])+1 {
				t.Fatalf("%s: the line is %q", p, lines[p.Line-1])
			}
			if text := p.String(); strings.ContainsAny(text, "\n\r\x00\x1b") || !utf8.ValidString(text) {
				t.Fatalf("%q is not one line of text", text)
			}
		}
	})
}
