package clickhouse

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
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
	b := &export.Batch{ID: "b", Messages: exporttest.Records(sampleMessages(3000)...)}
	bad := b.Messages[1234].Host.ID.String()
	if err := x.conn.Exec(t.Context(), "ALTER TABLE "+x.schema.name("messages")+" ADD CONSTRAINT good CHECK message_id != unhex('"+bad+"') AND message_id != '"+bad+"'"); err != nil {
		t.Fatal(err)
	}
	if !x.Gather(b) {
		t.Fatal("a batch is not gathered")
	}
	err := x.Export(t.Context(), &export.Batch{ID: "c", Messages: exporttest.Records(sampleMessages(1)...)})
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
			b.Spans = append(b.Spans, new(s))
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
	for ; n < 100 && x.Gather(&export.Batch{ID: fmt.Sprint(n), Messages: exporttest.Records(sampleMessages(2000)...)}); n++ {
	}
	if n == 0 || n == 100 {
		t.Errorf("%d batches are gathered", n)
	}
	export1(t, x, &export.Batch{})
}

// TestFailedExportKeepsWhatWasGathered has a server that refuses the inserts of a table: an export with gathered rows goes on where it
// stopped, and the batch that failed is not among those that are taken back.
func TestFailedExportKeepsWhatWasGathered(t *testing.T) {
	var mu sync.Mutex
	var refused string
	var got []string
	fake := &fakeServer{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		insert := r.URL.Query().Get("query")
		if insert == "" {
			fake.hello(w, r)
			return
		}
		table := strings.Split(insert, "`")[3]
		rows, err := fake.read(table, r)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || table == refused {
			http.Error(w, fmt.Sprint("not now ", err), http.StatusServiceUnavailable)
			return
		}
		got = append(got, fmt.Sprint(table, " ", len(rows)))
	}))
	defer server.Close()
	x, err := New(t.Context(), Settings{Conn: ConnSettings{DSN: server.URL}, TempDir: t.TempDir(), ConversationsEvery: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer x.conn.Close()
	defer x.gathered.close()
	batch := func(id string, messages int) *export.Batch {
		return &export.Batch{ID: id, Messages: exporttest.Records(sampleMessages(messages)...), DeadLetters: []msg.DeadLetter{{ID: msg.ID{1}, Tenant: "default", Ver: 1}}}
	}
	if x.Gather(batch("early", 1)) {
		t.Error("a batch is gathered before the tables are known")
	}
	x.ready = true
	gather := func(b *export.Batch) {
		t.Helper()
		if !x.Gather(b) {
			t.Fatal("it is not gathered")
		}
	}
	exports := func(what string, b *export.Batch, refuse string, want ...string) {
		t.Helper()
		refused, got = refuse, nil
		if err := x.Export(t.Context(), b); (err != nil) != (refuse != "") || export.IsPermanent(err) {
			t.Errorf("%s: %v", what, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	gather(batch("a", 10))
	gather(batch("b", 20))
	exports("refused", batch("c", 5), "dead_letters", "messages 35")
	exports("again", batch("c", 5), "", "dead_letters 3")
	exports("nothing is left", &export.Batch{}, "")

	gather(batch("d", 10))
	gather(batch("e", 20))
	exports("refused", batch("f", 5), "messages")
	var taken []*export.Batch
	full := errors.New("full")
	for _, answer := range []error{full, nil} {
		taken = nil
		if err := x.Ungather(func(b *export.Batch) error {
			if len(taken) == 1 && answer != nil {
				return answer
			}
			taken = append(taken, b)
			return nil
		}); !errors.Is(err, answer) {
			t.Errorf("taken back: %v", err)
		}
		for _, b := range taken {
			id := map[error]string{full: "dg", nil: "eg"}[answer]
			if len(b.Rows) != 2 || b.Rows[0].Table != "messages" || b.Rows[0].Count != map[string]int{"dg": 10, "eg": 20}[id] || b.Rows[1].Table != "dead_letters" || b.ID != id {
				t.Errorf("taken back: %s, %d rows", b.ID, b.Len())
			}
		}
		if len(taken) != 1 {
			t.Errorf("%d batches are taken back", len(taken))
		}
	}
	exports("that was taken back", taken[0], "dead_letters", "messages 20")
	exports("the same again", taken[0], "", "dead_letters 1")
	exports("behind it", &export.Batch{ID: "g", Messages: exporttest.Records(sampleMessages(1)...)}, "", "messages 1")
	if err := x.Export(t.Context(), &export.Batch{ID: "h", Rows: []export.Rows{{Table: "of_before", Count: 1}}}); !export.IsPermanent(err) {
		t.Errorf("rows of a table that is not written any more: %v", err)
	}
	if info, err := x.gathered.file.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("the file has %d bytes, error %v", info.Size(), err)
	}
}
