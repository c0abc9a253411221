package clickhouse

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestJobsOfABatch: each table has its rows of a batch, with the size that cuts inserts and the day or month that a row is stored in.
func TestJobsOfABatch(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC).UnixNano()
	b := &export.Batch{
		Messages:    exporttest.Records(msg.Message{Time: at, Content: msg.Plain("content"), Tool: msg.Tool{Arguments: msg.Quoted([]byte(`a\nb`))}}),
		Spans:       exporttest.Records(msg.Span{ID: msg.SpanID{1}, Start: at, Events: []msg.SpanEvent{{Time: at, Name: msg.EventFinding}}}, msg.Span{ID: msg.SpanID{2}, Start: at}),
		Verdicts:    []msg.Verdict{{Since: at}, {TraceID: msg.TraceID{1}, Since: at}},
		DeadLetters: []msg.DeadLetter{{Payload: make([]byte, 100)}}, Ledger: []msg.Ledger{{}}, Streams: []msg.Stream{{Pace: msg.Pace{Start: at}}},
	}
	b.Messages[0].Delegation.Task = msg.Plain("task")
	type made struct {
		Table               string
		Rows, Written, Size int
		Period              int32
	}
	day, month := day(at), month(at)
	want := []made{
		{"messages", 1, 1, fixed + 15, day}, {"spans", 2, 2, fixed, day}, {"findings", 1, 1, fixed, month}, {"verdicts", 1, 1, fixed, month},
		{"dead_letters", 1, 1, fixed + 100, 0}, {"source_ledger", 1, 1, fixed, 0}, {"streams", 1, 1, fixed, month},
	}
	x, err := New(t.Context(), Settings{Conn: ConnSettings{DSN: "http://h"}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.conn.Close()
	var got []made
	for _, next := range x.writers.jobs(b) {
		j := next()
		m := made{Table: j.name, Rows: len(j.rows), Size: j.size(0)}
		if j.period != nil {
			m.Period = j.period(0)
		}
		if j.blocks(part{0, len(j.rows)})() {
			m.Written = j.block.Rows()
		}
		if !strings.HasPrefix(j.insert, "INSERT INTO `earshot`."+quoteName(j.name)+" (`") || strings.Count(j.insert, "`, `") != len(j.block.Columns)-1 {
			t.Errorf("%s: %s", j.name, j.insert)
		}
		j.block.Reset()
		got = append(got, m)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, next := range x.writers.jobs(&export.Batch{}) {
		if j := next(); len(j.rows) != 0 || j.blocks(part{})() {
			t.Errorf("%s has rows of nothing", j.name)
		}
	}
}

// TestBlocksOfAPart: the rows of a part are cut into blocks of about a megabyte, a row never.
func TestBlocksOfAPart(t *testing.T) {
	for _, c := range []struct {
		sizes []int
		want  []int // rows of each
	}{
		{nil, nil}, {[]int{1, 2, 3}, []int{3}}, {[]int{chunk, 1}, []int{1, 1}}, {[]int{chunk - 1, 1, 1}, []int{2, 1}}, {[]int{1, 3 * chunk, 1, 1}, []int{2, 2}},
	} {
		rows := newLedgerRows()
		j := &job{table: &rows.table, add: func(i int32) { rows.add(&msg.Ledger{Read: int64(i)}) }, size: func(i int32) int { return c.sizes[i] }}
		for i := range c.sizes {
			j.rows = append(j.rows, int32(i))
		}
		var got []int
		for next := j.blocks(part{0, len(c.sizes)}); next(); {
			got = append(got, j.block.Rows())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("rows of %d bytes: blocks of %d, want %d", c.sizes, got, c.want)
		}
	}
}

// TestHoursThatReadersTakeFromRows: the condition is part of every query, so it is short where no hour depends on another one.
func TestHoursThatReadersTakeFromRows(t *testing.T) {
	const since = " FROM `earshot`.`messages` WHERE ingest_ts >= (SELECT max(until) FROM `earshot`.`rollup_hours` WHERE name = 'all "
	for _, c := range []struct {
		of   hourly
		want string
	}{
		{messageRollup.hourly, "SELECT toStartOfHour(ts)" + since + "messages') SETTINGS final = 0"},
		{pauseRollup.hourly, "SELECT arrayJoin(arrayMap(i -> toStartOfHour(ts) + toIntervalHour(i), range(25)))" + since + "pauses') SETTINGS final = 0"},
	} {
		if got := c.of.pending(Schema{}); got != c.want {
			t.Errorf("%s: %s", c.of.table, got)
		}
	}
	tables := []string{}
	for _, r := range everyComputed() {
		tables = append(tables, r.base().table)
	}
	if d := cmp.Diff([]string{"messages_rollup", "tool_calls_rollup", "pauses_rollup", "usage_rollup", "usage_facts", "span_facts_by_day", "unknown_facts"}, tables); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// While hours are computed again for a later column, readers go by the mark of before, which follows.
	all := pauseRollup.noteAll(Schema{}, time.UnixMilli(5), time.UnixMilli(7))
	if touched := pauseRollup.touched(Schema{}); !strings.Contains(touched, "name = 'all longest pauses')") || !strings.Contains(touched, "name = 'longest pauses'") ||
		!strings.Contains(all, "('all longest pauses', ") || !strings.Contains(all, "('all pauses', ") || strings.Contains(messageRollup.noteAll(Schema{}, time.UnixMilli(5), time.UnixMilli(7)), "), (") {
		t.Errorf("%s\n%s", touched, all)
	}
	names, values := usageFacts.columns()
	ofRow, _, _ := strings.Cut(names, ", `cache_write_1h_tokens`")
	derived, computed := ofRow, ofRow
	for _, d := range usageFacts.derived {
		derived, computed = derived+", `"+d.name+"`", computed+", "+d.value+" AS `"+d.name+"`"
	}
	if names != derived || values != computed || !strings.Contains(values, ", toUInt64OrZero(attributes['cache_write_1h_tokens']) AS `cache_write_1h_tokens`, ") ||
		!strings.HasPrefix(ofRow, "`tenant`, `source`, ") || strings.Contains(ofRow, "ver`") || strings.Contains(ofRow, "is_deleted") {
		t.Errorf("columns of facts: %s\nvalues %s", names, values)
	}
	// Facts that an earlier build has stored without a later column are other ones.
	for _, part := range []string{"ver, ingest_ts, toUInt64OrZero(attributes['cache_write_1h_tokens']), toLowCardinality(attributes['tier']), ", ") GLOBAL NOT IN (SELECT ",
		"row_ver, ingest_ts, cache_write_1h_tokens, tier, prompt_over, stated_picodollars FROM `earshot`.`usage_facts` FINAL"} {
		if sql := usageFacts.compute(Schema{}, "toDateTime(0)", 1); !strings.Contains(sql, part) {
			t.Errorf("no %q in\n%s", part, sql)
		}
	}
	pauses := strings.Split(pauseCounts(), ", ")
	if got := []string{pauses[0], pauses[1], pauses[len(pauses)-2], pauses[len(pauses)-1]}; !slices.Equal(got, []string{
		"countIf(r.pause_us > -1 AND r.pause_us <= 100000)", "countIf(r.pause_us > 100000 AND r.pause_us <= 300000)",
		"countIf(r.pause_us > 600000000 AND r.pause_us <= 1800000000)", "countIf(r.pause_us > 1800000000)",
	}) || len(pauses) != len(pauseBounds)+1 {
		t.Errorf("pauses are counted by %q", pauses)
	}
}
