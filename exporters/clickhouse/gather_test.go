package clickhouse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/export"
)

// TestGatheredIsStoredTheSame compares the tables of batches that were gathered, of others
// that were taken back and exported as rows, and of those that were exported one by one. The
// gathered ones are one part in each table.
func TestGatheredIsStoredTheSame(t *testing.T) {
	batches := func() (out []*export.Batch) {
		for i := range 4 {
			b := fullBatch(fmt.Sprint("b", i), 60)
			for k := range b.Messages {
				b.Messages[k].Host.Ver += uint64(i)
			}
			out = append(out, b)
		}
		return out
	}
	x, c := exporter(t, nil)
	for _, b := range batches() {
		export1(t, x, b)
	}
	want := visible(t, c)

	for _, name := range []string{"gathered", "gathered and the last not", "taken back"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			x, c := exporter(t, func(s *Settings) { s.TempDir = dir })
			before := lastPart(t, c)
			all := batches()
			for _, b := range all[:3] {
				if !x.Gather(b) {
					t.Fatal("a batch is not gathered")
				}
				clear(b.Messages) // the batch is not kept
				clear(b.Spans)
			}
			if got := count(t, c, "SELECT count() FROM messages"); got != "0" {
				t.Errorf("%s rows before the export", got)
			}
			switch name {
			case "gathered":
				if !x.Gather(all[3]) {
					t.Fatal("a batch is not gathered")
				}
				export1(t, x, &export.Batch{})
			case "taken back":
				var taken []*export.Batch
				if err := x.Ungather(func(b *export.Batch) error { taken = append(taken, b); return nil }); err != nil {
					t.Fatal(err)
				}
				for _, b := range append(taken, all[3]) {
					for range 2 {
						export1(t, x, b)
					}
				}
			default:
				export1(t, x, all[3])
			}
			if got := visible(t, c); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if name == "taken back" {
				return
			}
			if got := count(t, c, "SELECT countIf(level = 0) FROM system.parts WHERE database = currentDatabase() AND table = 'messages' AND min_block_number > "+before); got != "1" {
				t.Errorf("%s inserts", got)
			}
			export1(t, x, &export.Batch{})
			if got := visible(t, c); got != want {
				t.Error("an empty export changed something")
			}
		})
	}
}

// TestGatheredRowIsRefused has a server that refuses one row of those that were gathered: the error
// is not permanent, and the row is found among those that are taken back.
func TestGatheredRowIsRefused(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.TempDir = t.TempDir() })
	b := &export.Batch{ID: "b", Messages: sampleMessages(3000)}
	bad := b.Messages[1234].Host.ID.String()
	if err := x.conn.Exec(t.Context(), "ALTER TABLE "+x.schema.name("messages")+" ADD CONSTRAINT good CHECK message_id != unhex('"+bad+"') AND message_id != '"+bad+"'"); err != nil {
		t.Fatal(err)
	}
	if !x.Gather(b) {
		t.Fatal("a batch is not gathered")
	}
	err := x.Export(t.Context(), &export.Batch{ID: "c", Messages: sampleMessages(1)})
	if err == nil || export.IsPermanent(err) {
		t.Fatalf("error %v", err)
	}
	var work []*export.Batch
	if err := x.Ungather(func(b *export.Batch) error { work = append(work, b); return nil }); err != nil {
		t.Fatal(err)
	}
	var refused []export.Rows
	for len(work) > 0 {
		b := work[0]
		work = work[1:]
		err := x.Export(t.Context(), b)
		if err == nil {
			continue
		}
		if !export.IsPermanent(err) {
			t.Fatal(err)
		}
		halves, ok := [2]*export.Batch{}, false
		if b.Len() > 1 {
			halves, ok = b.Halves(), true
		} else {
			halves, ok = x.Split(b)
		}
		if !ok {
			refused = append(refused, b.Rows...)
			continue
		}
		work = append(work, halves[:]...)
	}
	if len(refused) != 1 || refused[0].Count != 1 || refused[0].Table != "messages" || !strings.Contains(refused[0].Shown, "message_id") {
		t.Fatalf("refused: %d, %.300v", len(refused), refused)
	}
	if got := count(t, c, "SELECT uniqExact(message_id) FROM messages"); got != "2999" {
		t.Errorf("%s messages are stored", got)
	}
}

// TestGatherHasLimits: a batch whose partitions would be too many for one insert, and one behind
// the size of an insert, are not gathered, and nothing of them is.
func TestGatherHasLimits(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.TempDir, s.MaxInsertBytes = t.TempDir(), 4<<20 })
	spans := func(id string, from, days int) *export.Batch {
		b := &export.Batch{ID: id}
		for i := range days {
			s := sampleSpan()
			s.Start += int64(from+i) * 86_400e9
			s.End = s.Start + 1
			s.ID[0], s.ID[1] = byte(from+i), byte((from+i)>>8)
			b.Spans = append(b.Spans, s)
		}
		return b
	}
	if !x.Gather(spans("a", 0, 60)) || x.Gather(spans("b", 60, 60)) || !x.Gather(spans("c", 30, 50)) {
		t.Error("90 partitions are not the limit")
	}
	export1(t, x, spans("d", 200, 40))
	if got := count(t, c, "SELECT uniqExact(SpanId) FROM otel_traces"); got != "120" {
		t.Errorf("%s spans", got)
	}
	n := 0
	for ; n < 100 && x.Gather(&export.Batch{ID: fmt.Sprint(n), Messages: sampleMessages(2000)}); n++ {
	}
	if n == 0 || n == 100 {
		t.Errorf("%d batches are gathered", n)
	}
	export1(t, x, &export.Batch{})
}
