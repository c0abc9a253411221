package codex

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// cases are the names of the cases of testdata.
func cases(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*/in.jsonl")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for i, d := range dirs {
		dirs[i] = filepath.Base(filepath.Dir(d))
	}
	return dirs
}

// lines returns the lines of a case and the path of its file.
func lines(t testing.TB, name string) (all [][]byte, origin string) {
	t.Helper()
	in, err := os.ReadFile(filepath.Join("testdata", name, "in.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	path, err := os.ReadFile(filepath.Join("testdata", name, "origin.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(in) {
		all = append(all, bytes.TrimSuffix(l, []byte("\n")))
	}
	return all, strings.TrimSpace(string(path))
}

// restorable is a decoder whose state can be saved.
type restorable interface {
	decoder.Decoder
	decoder.Snapshotter
}

func open(t testing.TB, origin string) restorable {
	t.Helper()
	d, err := New().New(decoder.Stream{Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	return d.(restorable)
}

// play decodes lines and returns the folded messages.
func play(t testing.TB, origin string, all ...[]byte) []msg.Message {
	t.Helper()
	d := open(t, origin)
	var out decoder.Output
	for _, l := range all {
		if err := d.Decode(&frame.Frame{Data: l}, &out); err != nil {
			t.Fatal(err)
		}
	}
	if len(out.Problems) > 0 {
		t.Fatalf("problems: %v", out.Problems)
	}
	return msg.Fold(out.Messages)
}

func playCase(t testing.TB, name string) []msg.Message {
	t.Helper()
	all, origin := lines(t, name)
	return play(t, origin, all...)
}

func text(s string) []byte { return []byte(s) }
