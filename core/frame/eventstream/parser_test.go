package eventstream

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

func cut(limit int, chunks ...[]byte) []frame.Frame {
	p, b := New(limit), &frame.Batch{}
	for _, c := range chunks {
		p.Feed(b, c, 7)
	}
	p.Finish(b, 7)
	return b.Frames
}

// TestKnownMessage decodes a message whose bytes are those of AWS's own test vectors.
func TestKnownMessage(t *testing.T) {
	empty, err := hex.DecodeString("000000100000000005c248eb7d98c8ff")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(Append(nil, nil), empty) {
		t.Errorf("%x", Append(nil, nil))
	}
	got := cut(100, empty)
	if len(got) != 1 || got[0].Reason != "" || got[0].End != 16 {
		t.Errorf("%+v", got)
	}
}

func TestFrames(t *testing.T) {
	delta := Append(nil, []byte(`{"n":1}`), ":event-type", "contentBlockDelta", ":message-type", "event")
	fault := Append(nil, []byte(`{"message":"slow down"}`), ":exception-type", "throttlingException", ":message-type", "exception")
	failed := Append(nil, nil, ":error-code", "InternalError", ":error-message", "it broke", ":message-type", "error")
	long := Append(nil, bytes.Repeat([]byte("x"), 400), ":event-type", "chunk", ":message-type", "event")
	bad := bytes.Clone(delta)
	bad[len(bad)-6] ^= 1
	n := int64(len(delta))
	ok := func(at int64) frame.Frame {
		return frame.Frame{Kind: frame.Event, Name: "contentBlockDelta", At: 7, Data: []byte(`{"n":1}`), Pos: at, End: at + n}
	}
	for name, c := range map[string]struct {
		in   []byte
		want []frame.Frame
	}{
		"two":        {append(bytes.Clone(delta), delta...), []frame.Frame{ok(0), ok(n)}},
		"exception":  {fault, []frame.Frame{{Kind: frame.Event, Name: "throttlingException", At: 7, Data: []byte(`{"message":"slow down"}`), End: int64(len(fault))}}},
		"error":      {failed, []frame.Frame{{Kind: frame.Event, Name: "InternalError", At: 7, Data: []byte(`{"message":"it broke"}`), End: int64(len(failed))}}},
		"checksum":   {append(bytes.Clone(bad), delta...), []frame.Frame{{Kind: frame.Event, At: 7, Data: bad[len(bad)-11:], End: n, Reason: ReasonChecksum}, ok(n)}},
		"noise":      {append([]byte("HTTP/1.1 is no prelude"), delta...), []frame.Frame{{Kind: frame.Event, At: 7, End: 22, Dropped: 22, Reason: ReasonChecksum}, ok(22)}},
		"truncated":  {append(bytes.Clone(delta), delta[:20]...), []frame.Frame{ok(0), {Kind: frame.Event, At: 7, Data: delta[:20], Pos: n, End: n + 20, Reason: ReasonTruncated}}},
		"only noise": {[]byte("x"), []frame.Frame{{Kind: frame.Event, At: 7, Data: []byte("x"), End: 1, Reason: ReasonTruncated}}},
		"nothing":    {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, cut(100, c.in), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	got := cut(100, append(bytes.Clone(long), delta...))
	if len(got) != 2 || got[0].Reason != msg.ReasonTooLong || got[0].Dropped == 0 || len(got[0].Data) > 116 || got[1].Reason != "" || got[0].End != int64(len(long)) {
		t.Errorf("%+v", got)
	}
}

// TestCutsDoNotMatter feeds streams with noise and damage in random chunks.
func TestCutsDoNotMatter(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		var in []byte
		for range 6 {
			m := Append(nil, bytes.Repeat([]byte("payload "), random.IntN(30)), ":event-type", "chunk")
			switch random.IntN(6) {
			case 0:
				m[random.IntN(len(m))] ^= 0x40
			case 1:
				m = m[:random.IntN(len(m))]
			}
			in = append(in, m...)
		}
		want := cut(120, in)
		var chunks [][]byte
		for rest := in; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		got := cut(120, chunks...)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d (-whole +chunks):\n%s", seed, d)
		}
		end := int64(0)
		for _, f := range got {
			if f.Pos != end {
				t.Fatalf("seed %d: a gap at %d: %+v", seed, end, got)
			}
			end = f.End
		}
		if end != int64(len(in)) {
			t.Fatalf("seed %d: the frames end at %d of %d", seed, end, len(in))
		}
	}
}

func FuzzParser(f *testing.F) {
	f.Add(Append([]byte("x"), []byte("{}"), ":event-type", "e"), 3)
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		if at < 0 || at > len(in) {
			at = 0
		}
		if d := cmp.Diff(cut(64, in), cut(64, in[:at], in[at:])); d != "" {
			t.Error(d)
		}
	})
}
