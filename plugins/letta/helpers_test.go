package letta

import (
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// open returns a decoder of a stream with that origin.
func open(t testing.TB, origin string) decoder.Decoder {
	t.Helper()
	d, err := New().New(decoder.Stream{Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// play decodes events and returns the folded messages, open ones included, and the problems.
// Every message must be valid.
func play(t testing.TB, d decoder.Decoder, frames []frame.Frame) ([]msg.Message, []msg.Problem) {
	t.Helper()
	out := decodertest.Feed(t, d, frames)
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
