package legion

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
)

// BenchmarkDecode decodes eight sessions of the benchmark's corpus, as the
// plugin's process does: line by line, 512 to a batch. encoding/json, which does
// no more than read a few members of the same lines, is the yardstick on a
// machine that does other things too.
func BenchmarkDecode(b *testing.B) {
	c := gen.Legion(gen.Options{Sessions: 8, Bytes: 16e6, Seed: 1})
	var sessions [][][]byte
	size, count := 0, 0
	for n := range c.Sessions() {
		_, data, _ := c.Session(n)
		lines := bytes.Split(data, []byte("\n"))
		sessions = append(sessions, lines)
		size += len(data)
		count += len(lines)
	}
	run := func(name string, session func(lines [][]byte) error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, lines := range sessions {
					if err := session(lines); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(count), "ns/line")
		})
	}

	factory := New()
	var out decoder.Output
	run("legion", func(lines [][]byte) error {
		d, err := factory.New(decoder.Stream{Origin: "sessions/x/messages.jsonl"})
		if err != nil {
			return err
		}
		for i, line := range lines {
			if err := d.Decode(&frame.Frame{Data: line}, &out); err != nil {
				return err
			}
			if i%512 == 511 {
				out.Reset()
			}
		}
		out.Reset()
		return nil
	})
	run("encoding_json", func(lines [][]byte) error {
		for _, line := range lines {
			var v struct {
				Type      string
				Content   json.RawMessage
				Timestamp json.RawMessage
				Metadata  struct{ Model string }
				Data      struct{ Model string }
			}
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			if err := json.Unmarshal(line, &v); err != nil {
				return err
			}
		}
		return nil
	})
}
