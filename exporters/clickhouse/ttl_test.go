package clickhouse

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
)

// TestBodiesGo looks for the contents of messages that are past their retention, in a part that is
// merged with no other: the server removes them by itself, and keeps the rows.
func TestBodiesGo(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.TTL = TTL{Bodies: 2 * time.Second, Messages: testDay} })
	if got := count(t, c, "SELECT extract(engine_full, 'merge_with_ttl_timeout = (\\\\d+)') FROM system.tables WHERE database = currentDatabase() AND name = 'messages'"); got != "86400" {
		t.Errorf("a merge for retention every %s seconds", got)
	}
	if err := x.conn.Exec(t.Context(), "ALTER TABLE "+x.schema.name("messages")+" MODIFY SETTING merge_with_ttl_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	export1(t, x, &export.Batch{ID: "a", Messages: exporttest.Records(sampleMessages(500)...)})
	if got := count(t, c, "SELECT countIf(content != '') > 0 FROM messages"); got != "1" {
		t.Fatal("there are no contents")
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		got := count(t, c, "SELECT count(), countIf(content != '' OR tool_arguments != '' OR delegate_task != '') FROM messages")
		if got == "500\t0" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("rows, and rows with contents: %s", got)
		}
	}
}

// TestOldestGoFirst holds the tables below a size: the rows of the oldest days go, of all tables,
// and those of the newest stay.
func TestOldestGoFirst(t *testing.T) {
	x, c := exporter(t, nil)
	const months = 6
	for i := range months {
		b := fullBatch(fmt.Sprint(i), 50)
		for k := range b.Messages {
			b.Messages[k].Time += int64(i) * 31 * int64(testDay)
			b.Messages[k].Host.ID[0], b.Messages[k].Host.ID[1] = byte(i), byte(k)
		}
		for k := range b.Spans {
			b.Spans[k].Start += int64(i) * 31 * int64(testDay)
			b.Spans[k].End = b.Spans[k].Start + 1
		}
		export1(t, x, b)
	}
	full, err := x.conn.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	newest := count(t, c, "SELECT max(ts) FROM messages")
	if n, _, err := x.conn.dropOldest(t.Context(), full); err != nil || n != 0 {
		t.Fatalf("%d bytes dropped, error %v", n, err)
	}
	if _, _, err := x.conn.dropOldest(t.Context(), full/2); err != nil {
		t.Fatal(err)
	}
	left, err := x.conn.Size(t.Context())
	if err != nil || left > full/2 || left < full/8 {
		t.Errorf("%d bytes of %d, error %v", left, full, err)
	}
	if got := count(t, c, "SELECT max(ts) FROM messages"); got != newest {
		t.Errorf("newest %s, was %s", got, newest)
	}
	if got := count(t, c, "SELECT min(toYYYYMM(ts)) > (SELECT min(toYYYYMM(toDateTime("+fmt.Sprint(sampleMessages(1)[0].Time/1e9)+")))) FROM messages"); got != "1" {
		t.Error("the oldest month is still there")
	}
	if got := count(t, c, "SELECT count() FROM dead_letters"); got == "0" {
		t.Error("dead letters are gone")
	}
}

// TestOldestPartsAreDropped: as many as it takes to be within the bound, to the byte, and never those of tables without partitions; the parts before a
// failure are counted.
func TestOldestPartsAreDropped(t *testing.T) {
	parts := [][]any{{"spans", "a", "20260301", 10}, {"messages", "b", "202603", 20}, {"spans", "c", "20260302", 30}, {"thresholds", "d", "all", 40}}
	for _, c := range []struct {
		most    int64
		fails   string
		want    int
		dropped int64
		upTo    string
	}{
		{100, "", 0, 0, ""}, {99, "", 1, 10, "20260301"}, {90, "", 1, 10, "20260301"}, {89, "", 2, 30, "202603"}, {0, "", 3, 60, "20260302"}, {0, "b", 2, 10, "20260301"},
	} {
		conn, server := scriptedConn(func(sql string) ([][]any, error) {
			if c.fails != "" && strings.HasSuffix(sql, "DROP PART '"+c.fails+"'") {
				return nil, errors.New("it is being merged")
			}
			return parts, nil
		})
		dropped, upTo, err := conn.dropOldest(t.Context(), c.most)
		if got := server.statements(); len(got) != c.want || dropped != c.dropped || upTo != c.upTo || (err != nil) != (c.fails != "") {
			t.Errorf("at most %d: %d bytes up to %q, %v, %q", c.most, dropped, upTo, err, got)
		}
	}
}
