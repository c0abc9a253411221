package frame

import (
	"fmt"
	"strings"
	"testing"
)

// A process boundary names frames by their place in the buffer, so every frame
// must still lie in it after it has grown many times.
func TestAppendedFramesLieInTheBuffer(t *testing.T) {
	var b Batch
	var want []string
	for i := range 300 {
		data := strings.Repeat("x", i%7) + fmt.Sprint(i)
		if i%50 == 0 {
			data = ""
		}
		want = append(want, data)
		b.Append(Frame{Kind: Text, Pos: int64(i)}, []byte(data))
	}
	end := 0
	for i, f := range b.Frames {
		off, ok := Offset(b.Data, f.Data)
		if len(f.Data) > 0 && (!ok || off != end) {
			t.Fatalf("frame %d lies at %d %v, want %d", i, off, ok, end)
		}
		if string(f.Data) != want[i] || f.Pos != int64(i) {
			t.Fatalf("frame %d: %q", i, f.Data)
		}
		end += len(f.Data)
	}
	b.Reset()
	b.Append(Frame{}, []byte("again"))
	if len(b.Frames) != 1 || string(b.Data) != "again" || string(b.Frames[0].Data) != "again" {
		t.Errorf("after Reset: %q, %d frames", b.Data, len(b.Frames))
	}
}
