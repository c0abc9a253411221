package config_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	text := []byte(switchOn(example(b)))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := types.Parse("f", text, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSyntaxError is the search for the place of the worst error: a quote
// that opens in the first line and never closes.
func BenchmarkSyntaxError(b *testing.B) {
	text := []byte("data_dir: \"" + strings.ReplaceAll(strings.Repeat(example(b), 20), `"`, ""))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := types.Parse("f", text, nil); err == nil {
			b.Fatal("passed")
		}
	}
}

func example(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// switchOn removes every # that turns a key off.
func switchOn(example string) string {
	off := regexp.MustCompile(`(?m)^( *)#(\S|  )`)
	return strings.ReplaceAll(off.ReplaceAllString(example, "$1$2"), `upstream: "http:`, `upstream: "https:`)
}
