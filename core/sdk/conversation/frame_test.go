package conversation

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// TestUTF16IsNamed: the lines of a file that Windows PowerShell 5 wrote are a problem with its reason.
func TestUTF16IsNamed(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		var file []byte
		for _, u := range utf16.Encode([]rune("\ufeff{\"type\":\"system\"}\r\n{\"type\":\"assistant\"}\r\n")) {
			file = order.AppendUint16(file, u)
		}
		for line := range strings.SplitSeq(string(file), "\n") {
			if len(line) < 16 {
				continue
			}
			var out decoder.Output
			if _, ok := Parse(new(jsonv.Doc), []byte(line), &out); ok || len(out.Problems) != 1 || out.Problems[0].Reason != msg.ReasonInvalidUTF8 || !strings.Contains(out.Problems[0].Detail, "UTF-16") {
				t.Errorf("%q: %v %+v", line, ok, out.Problems)
			}
		}
	}
	for _, line := range []string{"{\"a\":", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "{\x00"} {
		var out decoder.Output
		if _, ok := Parse(new(jsonv.Doc), []byte(line), &out); ok || strings.Contains(out.Problems[0].Detail, "UTF-16") {
			t.Errorf("%q: %+v", line, out.Problems)
		}
	}
}
