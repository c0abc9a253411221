package decodertest

import (
	"os"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/msg"
)

// Fuzz feeds a decoder with damaged streams, beginning with those of ./testdata.
// The input is a recording in the form of frames.jsonl, or of jsonl where it is
// none. For any input the decoder does not panic, reports at most one problem for a frame,
// emits valid messages, and no more text than 16 times the input.
func Fuzz(f *testing.F, factory decoder.Factory) {
	f.Helper()
	cases, err := conformance.Load(os.DirFS(dir))
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		for _, frames := range [][]frame.Frame{c.Frames, c.Reload} {
			var seed []byte
			for i := range frames {
				if seed, err = fixture.AppendFrame(seed, &frames[i]); err != nil {
					f.Fatal(err)
				}
			}
			f.Add(seed)
		}
	}
	kind := cases[0].Frames[0].Kind
	f.Fuzz(func(t *testing.T, in []byte) {
		frames, err := fixture.Read(fixture.Frames, in)
		if err != nil {
			if frames, err = fixture.Read(fixture.JSONL, in); err != nil {
				t.Fatal(err)
			}
			for i := range frames {
				frames[i].Kind = kind
			}
		}
		decode(t, factory, frames)
	})
}

func decode(t *testing.T, factory decoder.Factory, frames []frame.Frame) {
	d, err := factory.New(decoder.Stream{Origin: "fuzz"})
	if err != nil {
		t.Fatal(err)
	}
	var out decoder.Output
	var all []msg.Message
	var given, taken int
	for i := range frames {
		out.Reset()
		out.Begin(int32(i))
		given += len(frames[i].Data) + len(frames[i].Name) + len(frames[i].ID)
		if err := d.Decode(&frames[i], &out); err != nil {
			return // it fails, which is allowed (D9)
		}
		if len(out.Problems) > 1 {
			t.Errorf("frame %d has %d problems", i, len(out.Problems))
		}
		all = append(all, keep(t, out.Messages, &taken)...)
	}
	// Open messages are built of the input; Flush may emit it once more.
	out.Reset()
	if err := d.Flush(&out); err != nil {
		t.Fatalf("flush: %v", err)
	}
	all = append(all, keep(t, out.Messages, &taken)...)
	const factor, constant = 16, 64 << 10
	if taken > factor*given+constant {
		t.Errorf("%d bytes of input become %d bytes of text", given, taken)
	}
	once := msg.Fold(all)
	if n := len(msg.Fold(once)); n != len(once) {
		t.Errorf("folding again leaves %d of %d messages", n, len(once))
	}
}

// keep returns messages that own their texts, and adds the size of those.
func keep(t *testing.T, in []msg.Message, size *int) []msg.Message {
	var out []msg.Message
	for _, m := range in {
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
		m.Content, m.Tool.Arguments, m.Delegation.Task = m.Content.Own(), m.Tool.Arguments.Own(), m.Delegation.Task.Own()
		*size += m.Content.Len() + m.Tool.Arguments.Len() + m.Delegation.Task.Len()
		out = append(out, m)
	}
	return out
}
