package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestTextIndexIsBuiltOncePerDay: a large insert of an embedded store builds the indexes of its part without that of the
// text, which the day gets when it is over, in one part or several. A search finds the same before and after.
func TestTextIndexIsBuiltOncePerDay(t *testing.T) {
	for inserts := 1; inserts <= 2; inserts++ {
		t.Run(fmt.Sprint(inserts), func(t *testing.T) {
			x, c := exporter(t, func(s *Settings) { s.TempDir = t.TempDir() })
			x.keeper.stop()
			if !settlesDays(x.conn, &x.settings) {
				t.Skip("of the embedded store")
			}
			if err := c.Exec(t.Context(), "SYSTEM STOP MERGES messages"); err != nil {
				t.Fatal(err)
			}
			for n := range inserts {
				b := &export.Batch{ID: fmt.Sprint("large", n), Messages: exporttest.Records(sampleMessages(40)...)}
				for i := range b.Messages {
					m := b.Messages[i]
					m.Content, m.Host.ID[0], m.Host.ID[1] = msg.Plain(strings.Repeat(fmt.Sprintf("lock%d of canal ", i), largeInsert/40/13)), byte(n), byte(i)
				}
				if !x.Gather(b) {
					t.Fatal("it is not gathered")
				}
				part1(t, x)
			}
			const search = "SELECT count() FROM messages FINAL WHERE hasAllTokens(lower(content), ['lock7'])"
			const bytes = "SELECT sum(secondary_indices_uncompressed_bytes) FROM system.parts WHERE active AND database = currentDatabase() AND table = 'messages'"
			indexed := func() bool {
				return strings.Contains(count(t, c, "EXPLAIN indexes = 1 "+strings.Replace(search, " FINAL", "", 1)), "__text_index_idx_fts") && count(t, c, bytes) != "0"
			}
			if got := count(t, c, "SELECT count() FROM system.parts WHERE active AND database = currentDatabase() AND table = 'messages'"); got != fmt.Sprint(inserts) {
				t.Fatalf("%s parts", got)
			}
			if got := count(t, c, bytes); got == "0" {
				t.Error("the insert has built no index")
			}
			if indexed() {
				t.Error("the insert has built the text index")
			}
			found := count(t, c, search)
			if found != fmt.Sprint(inserts) {
				t.Errorf("%s messages before the day is settled", found)
			}
			if err := c.Exec(t.Context(), "SYSTEM START MERGES messages"); err != nil {
				t.Fatal(err)
			}
			settle := func() int {
				n, err := x.conn.mergeSettled(t.Context(), 0, func(context.Context, time.Duration) error { return nil })
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if n := settle(); n != 1 {
				t.Errorf("%d days are settled", n)
			}
			if !indexed() {
				t.Error("the settled day has no text index")
			}
			if got := count(t, c, search); got != found {
				t.Errorf("%s messages when the day is settled, %s before", got, found)
			}
			if n := settle(); n != 0 {
				t.Errorf("%d days are settled again", n)
			}
		})
	}
}

// TestDaysOfFactsAreSettled: the facts of a day that is over are merged into one part, which is read without a merge.
func TestDaysOfFactsAreSettled(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	if !settlesDays(x.conn, &x.settings) {
		t.Skip("of the embedded store")
	}
	if err := c.Exec(t.Context(), "SYSTEM STOP MERGES span_facts_by_day"); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		b := fullBatch(fmt.Sprint("day", n), 30)
		for i := range b.Spans {
			b.Spans[i].ID[0] = byte(n)
		}
		export1(t, x, b)
		time.Sleep(2 * time.Millisecond)
		roll(t, rollerOf(x, 0))
	}
	const parts = "SELECT max(n) FROM (SELECT count() AS n FROM system.parts WHERE active AND database = currentDatabase() AND table = 'span_facts_by_day' GROUP BY partition)"
	if got := count(t, c, parts); got == "1" {
		t.Fatal("a day has one part before it is settled")
	}
	if err := c.Exec(t.Context(), "SYSTEM START MERGES span_facts_by_day"); err != nil {
		t.Fatal(err)
	}
	if _, err := x.conn.mergeSettled(t.Context(), -time.Minute, func(ctx context.Context, _ time.Duration) error { return ctx.Err() }); err != nil {
		t.Fatal(err)
	}
	if got := count(t, c, parts); got != "1" {
		t.Errorf("a day that is over has %s parts", got)
	}
	sameAsFacts := "SELECT (SELECT count() FROM span_facts_by_day FINAL) = (SELECT count() FROM span_facts_by_day)"
	if got := count(t, c, sameAsFacts); got != "1" && got != "true" {
		t.Error("a merged day has rows that are not valid")
	}
}

// TestDaysThatAreOverAreMerged: a day becomes one part, a late row opens it again, and the present day
// is left alone.
func TestDaysThatAreOverAreMerged(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	for _, table := range []string{"messages", "spans"} {
		if err := x.conn.Exec(t.Context(), "SYSTEM STOP MERGES "+x.schema.name(table)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		b := fullBatch(fmt.Sprint(i), 20)
		for k, m := range sampleMessages(10) {
			m.Time, m.Host.ID[0] = time.Now().UnixNano(), byte(16*i+k)
			b.Messages = append(b.Messages, new(m))
		}
		export1(t, x, b)
	}
	if err := x.conn.Exec(t.Context(), "SYSTEM START MERGES"); err != nil {
		t.Fatal(err)
	}
	merge := func(idle time.Duration) int {
		n, err := x.conn.mergeSettled(t.Context(), idle, func(context.Context, time.Duration) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := merge(time.Hour); n != 0 {
		t.Errorf("%d days of new rows were merged", n)
	}
	merge(0)
	const parts = "SELECT max(n) FROM (SELECT count() AS n FROM system.parts WHERE active AND database = currentDatabase() AND table IN ('messages', 'spans') AND partition_id < toString(toYYYYMMDD(now('UTC'))) GROUP BY table, partition_id)"
	if got := count(t, c, parts); got != "1" {
		t.Errorf("%s parts of a day that is over", got)
	}
	if n := merge(0); n != 0 {
		t.Errorf("%d days were merged again", n)
	}
	late := sampleMessages(1)
	late[0].Host.ID[0]++
	export1(t, x, &export.Batch{ID: "late", Messages: exporttest.Records(late...)})
	if n := merge(0); n != 1 {
		t.Errorf("%d days were merged after a late row", n)
	}
}

// TestInsertsAreInFewFiles: the part of a large insert is in few files; that of a merge is not.
func TestInsertsAreInFewFiles(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	exec := func(sql string) {
		t.Helper()
		if err := x.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("SYSTEM STOP MERGES " + x.schema.name("messages"))
	for i := range 2 { // 30 MB each
		exec(fmt.Sprintf("INSERT INTO %s (tenant, ts, session_id, message_id, content) SELECT 'default', toDateTime64('2026-01-02 03:04:05', 9, 'UTC'), 's', leftPad(toString(number + %d), 32, '0'), repeat('x', 100000) FROM numbers(300) SETTINGS optimize_on_insert = 0",
			x.schema.name("messages"), 1000*i))
	}
	const kinds = "SELECT arrayStringConcat(arraySort(groupArray(part_type)), ' ') FROM system.parts WHERE database = currentDatabase() AND table = 'messages' AND active"
	if got := count(t, c, kinds); got != "Compact Compact" {
		t.Errorf("inserted: %s", got)
	}
	exec("SYSTEM START MERGES " + x.schema.name("messages"))
	exec("OPTIMIZE TABLE " + x.schema.name("messages") + " FINAL")
	if got := count(t, c, kinds); got != "Wide" {
		t.Errorf("merged: %s", got)
	}
}
