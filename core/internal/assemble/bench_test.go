package assemble

import (
	"bytes"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/plugins/legion"
)

type emptyStore struct{}

func (emptyStore) Group(string) ([]byte, error) { return nil, nil }

type countSpans int

func (n *countSpans) Span(msg.Span)         { *n++ }
func (n *countSpans) Relink(uint64, RunRef) {}
func (n *countSpans) Found(string, string)  {}

// BenchmarkApply gives the messages of one session their places. Bytes are those of
// the session's lines, so that stages compare.
func BenchmarkApply(b *testing.B) {
	_, data, _ := gen.Legion(gen.Options{Sessions: 1, Bytes: 4e6, Seed: 1}).Session(0)
	d, err := legion.New().New(decoder.Stream{Origin: "x"})
	if err != nil {
		b.Fatal(err)
	}
	var out decoder.Output
	for i, line := range bytes.Split(data, []byte("\n")) {
		out.Begin(int32(i))
		if err := d.Decode(&frame.Frame{Data: line}, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	spans, now := countSpans(0), time.Unix(0, 0)
	for b.Loop() {
		a := New(Settings{}, emptyStore{}, &spans)
		for i := range out.Messages {
			m := out.Messages[i]
			m.Host = msg.Host{Tenant: "t", Source: "s", Format: "legion", Ver: uint64(i)}
			if _, err := a.Apply(&m, 1, 1, now); err != nil {
				b.Fatal(err)
			}
		}
	}
	if spans == 0 {
		b.Fatal("no spans")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(out.Messages)), "ns/message")
}
