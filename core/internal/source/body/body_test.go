package body

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/eventstream"
)

func show(frames []frame.Frame) string {
	out := ""
	for _, f := range frames {
		out += f.Kind.String() + " " + string(f.Data)
		if f.Reason != "" {
			out += " !" + f.Reason
		}
		out += "\n"
	}
	return out
}

func TestShapeOf(t *testing.T) {
	for contentType, want := range map[string]Shape{
		"text/event-stream": Events, "Text/Event-Stream;charset=utf-8": Events, "application/json": Document, "application/vnd.api+json; v=1": Document,
		"application/vnd.amazon.eventstream": Messages,
		"application/x-ndjson":               Lines, "application/jsonl": Lines, "text/html": Opaque, "": Opaque, "image/png": Opaque, "application/json; =": Document,
	} {
		if got := ShapeOf(contentType); got != want {
			t.Errorf("%q: %d, want %d", contentType, got, want)
		}
	}
}

// A hole costs the frames that it cut and no other.
func TestHole(t *testing.T) {
	for name, c := range map[string]struct {
		shape         Shape
		before, after string
		want          string
		skipped       int64
	}{
		"inside an event":      {Events, "data: 1\n\ndata: ha", "lf\n\ndata: 3\n\n", "event 1\nevent ha !lost\nevent 3\n", 4},
		"between events":       {Events, "data: 1\n\n", "x\n\ndata: 3\n\n", "event 1\nevent 3\n", 3},
		"CRLF":                 {Events, "data: ha", "lf\r\n\r\ndata: 3\r\n\r\n", "event ha !lost\nevent 3\n", 5},
		"CR":                   {Events, "data: ha", "lf\r\rdata: 3\r\r", "event ha !lost\nevent 3\n", 4},
		"lines of one event":   {Events, "data: ha", "lf\ndata: more\n\ndata: 3\n\n", "event ha !lost\nevent 3\n", 15},
		"nothing after":        {Events, "data: ha", "lf", "event ha !lost\n", 2},
		"inside a line":        {Lines, "1\nha", "lf\n3\n", "line 1\nline ha !lost\nline 3\n", 3},
		"before a line end":    {Lines, "1\n", "\n3", "line 1\nline 3\n", 1},
		"inside of a document": {Document, "[1,", "2]", "body [1, !listener_full\n", 0},
	} {
		for cutAt := range len(c.after) + 1 {
			cut := New(c.shape, 100)
			var b frame.Batch
			cut.Feed(&b, []byte(c.before), 1)
			cut.Lost(&b, 2, "lost")
			cut.Feed(&b, []byte(c.after[:cutAt]), 3)
			cut.Feed(&b, []byte(c.after[cutAt:]), 3)
			cut.Finish(&b, 4, true)
			if got := show(b.Frames); got != c.want {
				t.Errorf("%s, cut at %d: got\n%s\nwant\n%s", name, cutAt, got, c.want)
			}
			if n := cut.Skipped(); n != c.skipped || cut.Skipped() != 0 {
				t.Errorf("%s, cut at %d: %d bytes skipped, want %d", name, cutAt, n, c.skipped)
			}
		}
	}
}

// A hole in binary messages costs the message that it cut and the bytes up to the next.
func TestHoleInMessages(t *testing.T) {
	m := eventstream.Append(nil, []byte("1"), ":event-type", "chunk")
	for at := range len(m) {
		cut := New(Messages, 100)
		var b frame.Batch
		cut.Feed(&b, m, 1)
		cut.Feed(&b, m[:at], 1)
		cut.Lost(&b, 2, "lost")
		cut.Feed(&b, append(m[min(at+3, len(m)):], m...), 3)
		cut.Finish(&b, 4, true)
		whole := 0
		for _, f := range b.Frames {
			if f.Reason == "" && string(f.Data) == "1" {
				whole++
			}
		}
		if last := b.Frames[len(b.Frames)-1]; whole != 2 || last.Reason != "" {
			t.Errorf("a hole at %d: %d messages of 2:\n%s", at, whole, show(b.Frames))
		}
	}
}

func TestBrokenEnd(t *testing.T) {
	for shape, want := range map[Shape]string{Events: "event x !connection_lost\n", Lines: "line data: x !connection_lost\n", Document: "body data: x !connection_lost\n"} {
		cut := New(shape, 100)
		var b frame.Batch
		cut.Feed(&b, []byte("data: x"), 1)
		if cut.Held() == 0 {
			t.Errorf("%d: nothing held", shape)
		}
		cut.Finish(&b, 1, false)
		if got := show(b.Frames); got != want {
			t.Errorf("%d: got %s, want %s", shape, got, want)
		}
	}
}

// Random streams with random holes: every complete frame was sent as one.
func TestRandomHoles(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 9))
		shape := []Shape{Events, Lines}[seed%2]
		var stream bytes.Buffer
		sent := map[string]bool{}
		for range 30 {
			text := strings.Repeat(string(rune('a'+rng.IntN(26))), 1+rng.IntN(20))
			sent[text] = true
			if end := []string{"\n", "\r\n", "\r"}[rng.IntN(3)]; shape == Events {
				stream.WriteString("data: " + text + end + end)
			} else {
				stream.WriteString(text + "\n")
			}
		}
		cut := New(shape, 1000)
		var b frame.Batch
		in := stream.Bytes()
		fed, lost := 0, 0
		for len(in) > 0 {
			n := 1 + rng.IntN(len(in))
			if rng.IntN(5) == 0 {
				cut.Lost(&b, 1, "lost")
				lost += n
			} else {
				cut.Feed(&b, in[:n], 1)
				fed += n
			}
			in = in[n:]
		}
		cut.Finish(&b, 1, true)
		for _, f := range b.Frames {
			if f.Reason == "" && !sent[string(f.Data)] && lost == 0 {
				t.Fatalf("seed %d: %q was never sent", seed, f.Data)
			}
		}
		if skipped := cut.Skipped(); skipped > int64(fed) {
			t.Fatalf("seed %d: %d of %d bytes skipped", seed, skipped, fed)
		}
	}
}

func TestDecode(t *testing.T) {
	var gz, raw, twice bytes.Buffer
	z := gzip.NewWriter(&gz)
	_, _ = io.WriteString(z, "hello")
	_ = z.Close()
	z = gzip.NewWriter(&twice)
	_, _ = z.Write(gz.Bytes())
	_ = z.Close()
	d, _ := flate.NewWriter(&raw, 6)
	_, _ = io.WriteString(d, "hello")
	_ = d.Close()
	for encoding, in := range map[string]string{
		"": "hello", "identity": "hello", "gzip": gz.String(), "X-GZIP": gz.String(), "deflate": raw.String(), "gzip, gzip": twice.String(), "identity, gzip": gz.String(),
	} {
		r, err := Decode(encoding, strings.NewReader(in))
		if err != nil {
			t.Errorf("%q: %v", encoding, err)
			continue
		}
		if b, err := io.ReadAll(r); err != nil || string(b) != "hello" {
			t.Errorf("%q: %q %v", encoding, b, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, encoding := range []string{"rot13", "gzip,gzip,gzip,gzip"} {
		if _, err := Decode(encoding, strings.NewReader(gz.String())); !errors.Is(err, ErrEncoding) {
			t.Errorf("%q: %v", encoding, err)
		}
	}
	for _, encoding := range []string{"gzip", "deflate"} {
		if _, err := Decode(encoding, strings.NewReader("")); err == nil {
			t.Errorf("%q: nothing is no error", encoding)
		}
	}
}
