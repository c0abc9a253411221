package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
)

// byMonth returns an exporter into tables as the schema of the first release makes them.
func byMonth(t *testing.T) (*Exporter, *Conn) {
	t.Helper()
	x, c := exporter(t, nil)
	x.keeper.stop()
	p := relayoutOf(x, 0)
	is, err := p.table(t.Context(), "messages")
	if err != nil || is.key != "toDate(ts)" {
		t.Fatalf("a new store has partitions by %q, error %v", is.key, err)
	}
	for _, sql := range []string{"DROP TABLE " + p.s.name("messages") + " SYNC", strings.Replace(is.create, daily, monthly, 1)} {
		if err := x.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return x, c
}

func relayoutOf(x *Exporter, settle time.Duration) relayout {
	return relayout{c: x.conn, s: x.schema, settle: settle, log: slog.New(slog.DiscardHandler),
		sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
}

const eachMessage = "SELECT count(), uniqExact(message_id), sum(cityHash64(*)), countIf(failed), max(ingest_ts) FROM messages FINAL"

// TestMessagesMoveToDays replaces the table of a store that has rows, while rows are stored: new
// ones, later versions and tombstones of copied ones. The copying is interrupted after each day.
// A reader has every row once at any time, and so has the new table in the end.
func TestMessagesMoveToDays(t *testing.T) {
	x, c := byMonth(t)
	h := &history{Rand: rand.New(rand.NewPCG(7, 7))}
	for range 12 {
		b := h.next()
		for i := range b.Messages { // some on other days, too
			b.Messages[i].Time -= int64(b.Messages[i].Host.ID[0]%5) * int64(testDay)
		}
		export1(t, x, b)
	}
	interrupted, said := errors.New("interrupted"), new(bytes.Buffer)
	for i := 0; ; i++ {
		p := relayoutOf(x, time.Hour) // no row is so old that it could not be followed by another
		p.log = slog.New(slog.NewTextHandler(said, nil))
		before, more := count(t, c, eachMessage), true
		p.sleep = func(context.Context, time.Duration) error {
			if !more {
				return nil
			}
			export1(t, x, h.next())
			before, more = count(t, c, eachMessage), false
			if i < 7 {
				return interrupted
			}
			return nil
		}
		done, err := p.pass(t.Context())
		if err == nil || done {
			if err != nil || done {
				t.Fatalf("done %v, error %v: rows may follow", done, err)
			}
			if got := count(t, c, eachMessage); got != before {
				t.Errorf("after the exchange %s, before %s", got, before)
			}
			break
		}
		if !errors.Is(err, interrupted) || i > 20 {
			t.Fatal(err)
		}
	}
	if key := count(t, c, "SELECT partition_key FROM system.tables WHERE database = currentDatabase() AND name = 'messages'"); key != "toDate(ts)" {
		t.Fatalf("partitions by %s", key)
	}
	copied := make(map[string]int)
	for _, m := range regexp.MustCompile(`a day of messages is copied" day=(\S+)`).FindAllStringSubmatch(said.String(), -1) {
		if copied[m[1]]++; copied[m[1]] > 1 {
			t.Errorf("%s was copied from the beginning again", m[1])
		}
	}
	if len(copied) < 5 {
		t.Errorf("days were copied: %v", copied)
	}
	// A row of an insert that began before the exchange.
	late := sampleMessages(1)
	late[0].Host.ID[0]++
	export1(t, x, &export.Batch{ID: "late", Messages: exporttest.Records(late...)})
	want := count(t, c, eachMessage)
	if err := x.conn.Exec(t.Context(), fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE message_id = '%s'", x.schema.name(byDay), x.schema.name("messages"), late[0].Host.ID)); err != nil {
		t.Fatal(err)
	}
	if err := x.conn.Exec(t.Context(), fmt.Sprintf("ALTER TABLE %s DELETE WHERE message_id = '%s' SETTINGS mutations_sync = 1", x.schema.name("messages"), late[0].Host.ID)); err != nil {
		t.Fatal(err)
	}
	if done, err := relayoutOf(x, time.Hour).pass(t.Context()); err != nil || done {
		t.Fatalf("done %v, error %v: rows may follow", done, err)
	}
	if got := count(t, c, eachMessage); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	time.Sleep(2 * time.Millisecond)
	for _, last := range []bool{true, true} {
		if done, err := relayoutOf(x, 0).pass(t.Context()); err != nil || done != last {
			t.Errorf("done %v, error %v", done, err)
		}
	}
	if got := count(t, c, eachMessage); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	export1(t, x, h.next())
	if got := count(t, c, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = '"+byDay+"'"); got != "0" {
		t.Error("the former table is there")
	}
	if got := count(t, c, "SELECT (SELECT uniqExact(session_id) FROM messages) = (SELECT uniqExact(session_id) FROM sessions)"); got != "1" {
		t.Error("sessions are not fed")
	}
	time.Sleep(2 * time.Millisecond)
	roll(t, rollerOf(x, 0))
	sameAsRows(t, c, "moved", "")
}

// TestNewStoreHasDays: the embedded store's first schema has the table of messages that replacing the one of a month makes.
func TestNewStoreHasDays(t *testing.T) {
	definition := func(x *Exporter) string {
		t.Helper()
		is, err := relayoutOf(x, 0).table(t.Context(), "messages")
		if err != nil {
			t.Fatal(err)
		}
		return is.key + " " + is.create
	}
	x, _ := ownExporter(t, nil)
	if !x.conn.embedded {
		t.Skip("of the embedded store")
	}
	x.keeper.stop()
	got := definition(x)
	if !strings.HasPrefix(got, "toDate(ts) ") {
		t.Fatalf("a new store: %s", got)
	}
	if err := x.conn.Exec(t.Context(), "DROP DATABASE "+quoteName(x.conn.database)+" SYNC"); err != nil {
		t.Fatal(err)
	}
	server := x.schema
	server.days = false
	if _, err := server.Apply(t.Context(), x.conn); err != nil {
		t.Fatal(err)
	}
	if made := definition(x); !strings.HasPrefix(made, monthlyKey) {
		t.Fatalf("a server's table: %s", made)
	}
	next, _ := exporterInto(t, x.settings)
	if err := next.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := definition(x); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
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
