package letta

import (
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// open returns a decoder of a stream with that origin.
func open(t testing.TB, origin string) *stream {
	t.Helper()
	d, err := New().New(decoder.Stream{Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*stream)
}

// play decodes events and returns the folded messages, open ones included, and the problems.
// Every message must be valid.
func play(t testing.TB, d *stream, frames []frame.Frame) ([]msg.Message, []msg.Problem) {
	t.Helper()
	var out decoder.Output
	for i := range frames {
		out.Begin(int32(i))
		if err := d.Decode(&frames[i], &out); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	if err := d.Flush(&out); err != nil {
		t.Fatal(err)
	}
	for i := range out.Messages {
		if err := out.Messages[i].Validate(); err != nil {
			t.Fatal(err)
		}
	}
	return msg.Fold(out.Messages), out.Problems
}

// events returns the frames of an event stream with these data.
func events(data ...string) []frame.Frame {
	out := make([]frame.Frame, len(data))
	for i, s := range data {
		out[i] = frame.Frame{Kind: frame.Event, Data: []byte(s)}
	}
	return out
}
