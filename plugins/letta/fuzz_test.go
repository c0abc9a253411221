package letta

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// FuzzFrames: any events, requests and bodies, in any order, decode to valid messages, and a
// decoder that is restored before each frame emits the same as the original. A line of the
// input is a frame: R before it makes it a request, B a body.
func FuzzFrames(f *testing.F) {
	cases, err := conformance.Load(os.DirFS("testdata"))
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		for _, frames := range [][]frame.Frame{c.Frames, c.Reload} {
			var in []byte
			for _, fr := range frames {
				switch fr.Kind {
				case frame.Request:
					in = append(in, 'R')
				case frame.Body:
					in = append(in, 'B')
				}
				in = append(append(in, bytes.ReplaceAll(fr.Data, []byte("\n"), []byte(" "))...), '\n')
			}
			f.Add(in)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		d := open(t, "")
		for line := range bytes.Lines(in) {
			fr := frame.Frame{Kind: frame.Event, Data: bytes.TrimSuffix(line, []byte("\n"))}
			if rest, ok := bytes.CutPrefix(fr.Data, []byte("R")); ok {
				fr.Kind, fr.Name, fr.Data = frame.Request, "POST /v1/agents/a/messages", rest
			} else if rest, ok := bytes.CutPrefix(fr.Data, []byte("B")); ok {
				fr.Kind, fr.Data = frame.Body, rest
			}
			snapshot, err := d.(decoder.Snapshotter).Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			restored := open(t, "")
			if snapshot != nil {
				if err := restored.(decoder.Snapshotter).Restore(snapshot); err != nil {
					t.Fatal(err)
				}
			}
			got, other := rows(t, d, fr), rows(t, restored, fr)
			if !bytes.Equal(got, other) {
				t.Fatalf("frame %s\nemitted  %s\nrestored %s", fr.Data, got, other)
			}
		}
	})
}

// rows decodes a frame and returns its messages and those of a flush.
func rows(t *testing.T, d decoder.Decoder, f frame.Frame) []byte {
	var out decoder.Output
	if err := d.Decode(&f, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Problems) > 1 {
		t.Fatalf("%d problems", len(out.Problems))
	}
	n := len(out.Messages)
	if err := d.Flush(&out); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for i := range out.Messages {
		m := &out.Messages[i]
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		if i >= n && m.Complete != msg.Partial {
			t.Fatalf("flush emits %s as %s", m.Key, m.Complete)
		}
		row, err := json.Marshal(m.Row())
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(append(all, m.Key...), row...), '\n')
	}
	return all
}
