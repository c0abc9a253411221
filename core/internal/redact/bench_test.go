package redact

import (
	"bytes"
	"testing"

	"github.com/earshot-dev/earshot/bench/gen"
)

// lines are lines as Legion writes them.
func lines(b *testing.B) []byte {
	b.Helper()
	_, data, _ := gen.Legion(gen.Options{Sessions: 1, Bytes: 1 << 20}).Session(0)
	return data
}

func BenchmarkClean(b *testing.B) {
	in := lines(b)
	for name, s := range map[string]Settings{
		"builtin":    {Builtin: true},
		"keys":       {Builtin: true, Keys: []string{"password", "api_key", "authorization"}},
		"patterns":   {Builtin: true, Patterns: []Pattern{{"employee", `EMP-[0-9]{6}`}, {"project", `\bPRJ-[0-9]+\b`}}},
		"no literal": {Builtin: true, Patterns: []Pattern{{"card", `\b[0-9]{16}\b`}}},
	} {
		b.Run(name, func(b *testing.B) {
			r := newRedactor(b, s)
			if name != "no literal" && r.mayHold(in) {
				b.Fatal("the lines are not clean")
			}
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if out := r.Bytes(in); &out[0] != &in[0] {
					b.Fatal("copied")
				}
			}
		})
	}
}

func BenchmarkFound(b *testing.B) {
	in := bytes.Split(bytes.TrimSpace(lines(b)), []byte("\n"))
	size := 0
	for i := range in {
		in[i] = bytes.Replace(in[i], []byte(`"content": "`), []byte(`"content": "`+aws+` `), 1)
		size += len(in[i])
	}
	r := newRedactor(b, Settings{Builtin: true})
	if r.mayHold(in[0]) == false {
		b.Fatal("nothing to find")
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, line := range in {
			r.Bytes(line)
		}
	}
}
