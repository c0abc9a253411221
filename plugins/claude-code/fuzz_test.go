package claudecode

import (
	"bytes"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
)

// FuzzLines: any lines decode without a panic, to valid messages, of which there
// are no more than the input can stand for; and a decoder restored in the middle
// goes on as the other does.
func FuzzLines(f *testing.F) {
	for _, s := range streams(f) {
		var lines []byte
		for i := range s.frames {
			lines = append(append(lines, s.frames[i].Data...), '\n')
		}
		f.Add(s.origin, lines)
	}
	f.Fuzz(func(t *testing.T, origin string, lines []byte) {
		d := open(t, origin)
		for line := range bytes.Lines(lines) {
			fr := frame.Frame{Data: bytes.TrimSuffix(line, []byte("\n"))}
			snapshot, err := d.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			var out, again decoder.Output
			if err := d.Decode(&fr, &out); err != nil {
				t.Fatal(err)
			}
			if len(out.Messages) > len(line)+64 {
				t.Fatalf("%d messages of a line of %d bytes", len(out.Messages), len(line))
			}
			for i := range out.Messages {
				if err := out.Messages[i].Validate(); err != nil {
					t.Fatal(err)
				}
			}
			if len(out.Problems) == 0 && len(out.Messages) == 0 && !consumed(fr.Data) {
				t.Fatalf("line %q vanished", fr.Data)
			}
			other := open(t, origin)
			if snapshot != nil {
				if err := other.Restore(snapshot); err != nil {
					t.Fatal(err)
				}
			}
			if err := other.Decode(&fr, &again); err != nil {
				t.Fatal(err)
			}
			if len(out.Messages) != len(again.Messages) {
				t.Fatalf("%d messages, restored %d", len(out.Messages), len(again.Messages))
			}
			for i := range out.Messages {
				if a, b := &out.Messages[i], &again.Messages[i]; a.Key != b.Key || a.Run != b.Run || a.Session != b.Session || a.ParentKey != b.ParentKey {
					t.Fatalf("message %d is %s of %s, restored %s of %s", i, a.Key, a.Run, b.Key, b.Run)
				}
			}
		}
	})
}

// consumed reports whether a line may have no message: one of a response that only
// repeats, any link of the chain that was there a few lines before, or a blank one, which is no frame.
func consumed(line []byte) bool {
	return len(bytes.TrimSpace(line)) == 0 || bytes.Contains(line, []byte("uuid")) || bytes.Contains(line, []byte("assistant"))
}
