package claudecode

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// stream is a case of testdata as frames.
type stream struct {
	name, origin string
	frames       []frame.Frame
}

func streams(t testing.TB) []stream {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*/origin.txt")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var out []stream
	for _, origin := range dirs {
		out = append(out, load(t, filepath.Base(filepath.Dir(origin))))
	}
	return out
}

func load(t testing.TB, name string) stream {
	t.Helper()
	dir := filepath.Join("testdata", name)
	origin, err := os.ReadFile(filepath.Join(dir, "origin.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := stream{name: name, origin: strings.TrimSpace(string(origin))}
	if body, err := os.ReadFile(filepath.Join(dir, "in.json")); err == nil {
		s.frames = []frame.Frame{{Kind: frame.Body, Data: body}}
		return s
	}
	lines, err := os.ReadFile(filepath.Join(dir, "in.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(lines) {
		s.frames = append(s.frames, frame.Frame{Kind: frame.Line, Data: bytes.TrimSuffix(l, []byte("\n"))})
	}
	return s
}

// opened is a decoder and its reader.
type opened struct {
	decoder.Decoder
	decoder.Snapshotter
	*transcript
}

func open(t testing.TB, origin string) opened {
	t.Helper()
	var d opened
	f := format()
	reader := f.Open
	f.Open = func(r *record.Current, s *state) record.Reader {
		d.transcript = reader(r, s).(*transcript)
		return d.transcript
	}
	one, err := f.Factory().New(decoder.Stream{Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	d.Decoder, d.Snapshotter = one, one.(decoder.Snapshotter)
	return d
}

// play decodes a stream and returns its folded messages, open ones included.
func play(t testing.TB, s stream) []msg.Message {
	t.Helper()
	return msg.Fold(decodertest.Decode(t, New(), decoder.Stream{Origin: s.origin}, s.frames).Messages)
}
