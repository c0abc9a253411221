package export_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/msg/msgtest"
)

// Every field of every record survives the encoding, bytes that are no UTF-8 too.
func TestEncoding(t *testing.T) {
	check := func(name string, b *export.Batch) {
		t.Helper()
		data, err := b.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got export.Batch
		if err := got.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b, &got, cmp.Comparer(func(a, b msg.Text) bool { return a.String() == b.String() })); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		for n := range min(len(data), 200) {
			if err := new(export.Batch).UnmarshalBinary(data[:n]); err == nil {
				t.Fatalf("%s: the first %d bytes of %d are a batch", name, n, len(data))
			}
		}
	}
	for _, b := range exporttest.Batches(2, 20) {
		check("whole", b)
	}
	check("bytes", &export.Batch{ID: "x", Messages: []*msg.Message{{Key: "\xff", Content: msg.Raw([]byte("\xfe\x00")), Delegation: msg.Delegate{Task: msg.Quoted([]byte(`a\nb`))}}}})
	msgtest.EachField(msg.Message{}, func(name string, m msg.Message) { check(name, &export.Batch{ID: "x", Messages: exporttest.Records(m)}) })
	msgtest.EachField(msg.Span{}, func(name string, s msg.Span) { check(name, &export.Batch{ID: "x", Spans: exporttest.Records(s)}) })
	msgtest.EachField(msg.DeadLetter{}, func(name string, l msg.DeadLetter) {
		check(name, &export.Batch{ID: "x", DeadLetters: []msg.DeadLetter{l}})
	})
	msgtest.EachField(msg.Stream{}, func(name string, s msg.Stream) { check(name, &export.Batch{ID: "x", Streams: []msg.Stream{s}}) })
	msgtest.EachField(msg.Ledger{}, func(name string, l msg.Ledger) { check(name, &export.Batch{ID: "x", Ledger: []msg.Ledger{l}}) })
}
