package config

import (
	"strings"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	text := []byte(switchOn(Example()))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("f", text, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSyntaxError is the search for the place of the worst error: a quote
// that opens in the first line and never closes.
func BenchmarkSyntaxError(b *testing.B) {
	text := []byte("data_dir: \"" + strings.ReplaceAll(strings.Repeat(string(Example()), 20), `"`, ""))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse("f", text, nil); err == nil {
			b.Fatal("passed")
		}
	}
}
