package config

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// FuzzParse: no file makes Parse panic or hang; an error is an *Error whose
// problems lie within the file and take one line each; what passes can be written.
func FuzzParse(f *testing.F) {
	f.Add(Example())
	f.Add([]byte(switchOn(Example())))
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
		c, err := Parse("f", data, environment)
		if err == nil {
			if _, err := yaml.Marshal(c); err != nil {
				t.Errorf("to YAML: %v", err)
			}
			if _, err := json.Marshal(c); err != nil {
				t.Errorf("to JSON: %v", err)
			}
			return
		}
		var e *Error
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
