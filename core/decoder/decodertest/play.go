package decodertest

import (
	"os"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// Play decodes a case of ./testdata in this process and returns its folded messages.
func Play(t testing.TB, factory decoder.Factory, name string) []msg.Message {
	t.Helper()
	cases, err := conformance.Load(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Name == name {
			return msg.Fold(Decode(t, factory, c.Stream, c.Frames).Messages)
		}
	}
	t.Fatalf("no case %s", name)
	return nil
}

// Messages decodes frames in this process and returns the folded messages, those that are not complete
// included. No frame is a problem.
func Messages(t testing.TB, factory decoder.Factory, s decoder.Stream, frames []frame.Frame) []msg.Message {
	t.Helper()
	out := Decode(t, factory, s, frames)
	for _, p := range out.Problems {
		t.Fatalf("frame %d is a problem: %s: %s", p.Frame, p.Reason, p.Detail)
	}
	return msg.Fold(out.Messages)
}

// Decode decodes frames and flushes. The messages are valid and outlive the decoder.
func Decode(t testing.TB, factory decoder.Factory, s decoder.Stream, frames []frame.Frame) *decoder.Output {
	t.Helper()
	d, err := factory.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return Feed(t, d, frames)
}

// Feed is Decode for a decoder that has decoded before.
func Feed(t testing.TB, d decoder.Decoder, frames []frame.Frame) *decoder.Output {
	t.Helper()
	out := &decoder.Output{}
	own := func(from int) {
		for i := from; i < len(out.Messages); i++ {
			m := &out.Messages[i]
			m.Content, m.Tool.Arguments, m.Delegation.Task = m.Content.Own(), m.Tool.Arguments.Own(), m.Delegation.Task.Own()
			if err := m.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range frames {
		before := len(out.Messages)
		out.Begin(int32(i)) //nolint:gosec // tests have few
		if err := d.Decode(&frames[i], out); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		own(before)
	}
	before := len(out.Messages)
	if err := d.Flush(out); err != nil {
		t.Fatal(err)
	}
	own(before)
	return out
}
