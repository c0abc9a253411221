package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestErase: a session is found by its id, its user and its text, and erased from every table; the rows of others stay, and the rollups
// are those of the rows that are left.
func TestErase(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	h := &history{Rand: rand.New(rand.NewPCG(5, 5))}
	for range 4 {
		export1(t, x, h.next())
	}
	const ada, grace = "conversation-of-ada", "conversation-of-grace"
	const shared, own = "What both of them say in their conversations", "What Ada alone says about a lamp post: the third of the quay is 7734 steps from the mill, and nobody lights it"
	say := func(session, user, text string, seq byte) msg.Message {
		m := sampleMessages(1)[0]
		m.Session, m.Key, m.Content, m.Client.User, m.Host.Seq = session, fmt.Sprint(session, seq), msg.Plain(text), user, uint64(seq)
		m.Host.ID = msg.NewID("default", "", session, m.Key)
		return m
	}
	call := func(session string) msg.Span {
		s := sampleSpan()
		s.Session, s.ID = session, msg.NewSpanID("", "", session, s.Kind, "c")
		return s
	}
	letter := func(n byte, session, payload string) msg.DeadLetter {
		return msg.DeadLetter{ID: msg.ID{n}, Tenant: "default", Session: session, Payload: []byte(payload), Bytes: int64(len(payload)), Seen: sampleSpan().Start, Ver: 1}
	}
	export1(t, x, &export.Batch{
		Messages: exporttest.Records(say(ada, "ada", shared, 1), say(ada, "ada", own, 2), say(ada, "ada", "short", 3), say(grace, "grace", shared, 1)),
		Spans:    exporttest.Records(call(ada), call(grace)),
		DeadLetters: []msg.DeadLetter{
			letter(1, ada, "of her"), letter(2, "", "{"+ada), letter(3, "", "quicksand"), letter(4, "", "s1 is too short to look for"), letter(5, grace, "quicksand, of another session"),
		},
		Streams: []msg.Stream{{Tenant: "default", Source: "x", Stream: "a", Session: ada, Ver: 1}, {Tenant: "default", Source: "x", Stream: "g", Session: grace, Ver: 1}},
	})
	time.Sleep(2 * time.Millisecond)
	roll(t, rollerOf(x, 0))

	e := x.Eraser()
	find := func(what string, s export.Selection, want ...string) {
		t.Helper()
		found, err := e.Find(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.Tenant+" "+f.ID)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	find("nothing", export.Selection{})
	find("ids", export.Selection{IDs: []string{ada, "s1", "nobody's"}}, "default "+ada, "default s1")
	find("a user", export.Selection{User: "ada"}, "default "+ada)
	find("a text", export.Selection{Match: "77[0-9]{2} steps"}, "default "+ada)
	find("a text of a dead letter", export.Selection{Match: "^of her$"}, "default "+ada)
	find("all of them", export.Selection{IDs: []string{"s1"}, User: "ada", Match: "both of them say"}, "default "+ada, "default "+grace, "default s1")

	saved := 0
	erasure := &export.Erasure{Sessions: []export.Session{{Tenant: "default", ID: ada}, {Tenant: "default", ID: "s1"}, {Tenant: "another", ID: grace}}, Match: "quicksand", Save: func() error { saved++; return nil }}
	texts, err := e.Texts(t.Context(), erasure)
	if d := cmp.Diff([]string{own[(len(own)-64)/2:][:64]}, texts); err != nil || d != "" {
		t.Errorf("texts that no other session has: %v (-want +got):\n%s", err, d)
	}
	tables := func() (out []export.TableRows) {
		t.Helper()
		out, err := e.Count(t.Context(), erasure)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var want []export.TableRows
	for _, table := range []string{"dead_letters", "findings", "messages", "run_setups", "session_attributes", "session_facts", "sessions", "span_facts_by_day", "spans", "streams", "turn_facts", "unknown_facts", "usage_facts", "usage_rollup"} {
		is := "session_id IN ('" + ada + "', 's1')"
		if table == "dead_letters" {
			is += " OR session_id = '' AND payload != 's1 is too short to look for'"
		}
		var n uint64
		if _, err := fmt.Sscan(count(t, c, "SELECT count() FROM "+table+" WHERE "+is), &n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			want = append(want, export.TableRows{Table: table, Rows: n})
		}
	}
	if d := cmp.Diff(want, tables()); d != "" || len(want) < 7 {
		t.Errorf("rows that are to be erased (-want +got):\n%s", d)
	}
	others := func() string {
		t.Helper()
		return count(t, c, "SELECT (SELECT (count(), sum(cityHash64(*))) FROM messages FINAL WHERE session_id NOT IN ('"+ada+"', 's1')), (SELECT (count(), sum(cityHash64(*))) FROM spans FINAL WHERE session_id NOT IN ('"+ada+"', 's1')),"+
			"(SELECT groupArray(session_id) FROM streams FINAL WHERE session_id != '"+ada+"')")
	}
	before := others()
	if err := e.Erase(t.Context(), erasure); err != nil {
		t.Fatal(err)
	}
	if left := tables(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	find("an erased session", export.Selection{IDs: []string{ada, "s1"}, User: "ada", Match: "77[0-9]{2} steps"})
	if got := others(); got != before {
		t.Errorf("the others: %s, had %s", got, before)
	}
	sameAsRows(t, c, "erased", "")
	if got := count(t, c, "SELECT groupArray(substring(toString(dl_id), 1, 2)) FROM (SELECT dl_id FROM dead_letters FINAL ORDER BY dl_id)"); got != "['04','05']" {
		t.Errorf("dead letters: %s", got)
	}
	if got := count(t, c, "SELECT count() FROM system.parts WHERE database = currentDatabase() AND NOT active AND rows > 0 AND table IN ('messages', 'spans', 'messages_rollup')"); got != "0" {
		t.Errorf("%s parts of before are on the disk", got)
	}
	if saved != 1 || len(erasure.Hours["messages_rollup"]) == 0 || len(erasure.Hours["tool_calls_rollup"]) == 0 {
		t.Errorf("hours %v, saved %d times", erasure.Hours, saved)
	}
	if got := count(t, c, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND engine_full LIKE '%old_parts_lifetime%'"); got != "0" {
		t.Errorf("%s tables keep the settings of an erasure", got)
	}
}

// TestStatementsOfAnErasure: which rows are removed of which tables, the hours that are computed again, and the settings of tables meanwhile; a
// table without rows of the sessions is left alone, and the counts of hours whose rows have expired stay, but for the pauses, which name sessions.
func TestStatementsOfAnErasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hour := time.Now().Truncate(time.Hour)
		old := hour.Add(-48 * time.Hour)
		waits := 3 // looks until the parts of before are gone
		conn, server := scriptedConn(func(sql string) ([][]any, error) {
			switch {
			case strings.HasPrefix(sql, "SELECT table, groupArray(name)"):
				return [][]any{
					{"attribution", []string{"tenant", "began_by"}}, {"messages", []string{"tenant", "session_id", "ts"}}, {"model_prices", []string{"model"}},
					{"otel_traces", []string{"SessionId", "SpanAttributes"}}, {"spans", []string{"session_id", "tenant"}}, {"odd", []string{"session_id"}},
				}, nil
			case strings.HasPrefix(sql, "SELECT count() FROM system.parts"):
				if waits--; !strings.HasSuffix(sql, " AND NOT active AND rows > 0 AND table IN ('attribution', 'messages', 'otel_traces', 'spans', 'messages_rollup', 'tool_calls_rollup', 'pauses_rollup', 'usage_rollup')") {
					t.Error(sql)
				}
				return [][]any{{max(waits, 0)}}, nil
			case strings.HasPrefix(sql, "SELECT count() FROM `earshot`.`spans`"):
				return [][]any{{0}}, nil
			case strings.HasPrefix(sql, "SELECT count()"):
				return [][]any{{2}}, nil
			case strings.HasPrefix(sql, "SELECT groupUniqArray(toInt64"):
				return [][]any{{[]int64{hour.Unix(), old.Unix(), hour.Unix()}}}, nil
			case strings.HasPrefix(sql, "SELECT groupUniqArray(_partition_id)"):
				return [][]any{{[]string{"202603"}}}, nil
			}
			return nil, nil
		})
		prepared, saved := 0, 0
		e := &eraser{conn, Schema{TTL: TTL{Messages: testDay, Spans: testDay}}, func(context.Context) error { prepared++; return nil }}
		erasure := &export.Erasure{Sessions: []export.Session{{Tenant: "default", ID: "s"}}, Save: func() error { saved++; return nil }}
		began := time.Now()
		if err := e.Erase(t.Context(), erasure); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 400*time.Millisecond || prepared != 1 || saved != 1 {
			t.Errorf("erased behind %s, prepared %d times, saved %d times", took, prepared, saved)
		}
		key := "(concat(toString(tenant), '\\0', session_id)))) IN ('" + erasure.Sessions[0].Key() + "')"
		all := []string{"attribution", "messages", "otel_traces", "spans", "messages_rollup", "tool_calls_rollup", "pauses_rollup", "usage_rollup"}
		var want []string
		for _, table := range all {
			want = append(want, "ALTER TABLE `earshot`."+quoteName(table)+" MODIFY SETTING min_rows_to_fsync_after_merge = 1, old_parts_lifetime = 1, fsync_part_directory = 1")
		}
		const erased = " DELETE WHERE lower(hex(SHA256"
		want = append(want,
			"ALTER TABLE `earshot`.`attribution`"+erased+strings.Replace(key, "session_id", "began_by", 1)+" SETTINGS mutations_sync = 2",
			"ALTER TABLE `earshot`.`messages`"+erased+key+" SETTINGS mutations_sync = 2",
			"ALTER TABLE `earshot`.`otel_traces`"+erased+strings.NewReplacer("session_id", "SessionId", "tenant", "SpanAttributes['earshot.tenant']").Replace(key)+" SETTINGS mutations_sync = 2",
		)
		hours := map[string]string{}
		for _, r := range rollups() {
			in := fmt.Sprintf("IN (toDateTime(%d, 'UTC'))", hour.Unix())
			if r.table == "pauses_rollup" {
				in = fmt.Sprintf("IN (toDateTime(%d, 'UTC'), toDateTime(%d, 'UTC'))", old.Unix(), hour.Unix())
			}
			hours["`earshot`."+quoteName(r.table)] = in
			table := "`earshot`." + quoteName(r.table)
			want = append(want, "compute "+table, "OPTIMIZE TABLE "+table+" PARTITION ID '202603' FINAL", "ALTER TABLE "+table+" DELETE WHERE is_deleted = 1 AND toStartOfHour(ts) "+in+" SETTINGS mutations_sync = 2")
		}
		for _, table := range all {
			want = append(want, "ALTER TABLE `earshot`."+quoteName(table)+" RESET SETTING min_rows_to_fsync_after_merge, old_parts_lifetime, fsync_part_directory")
		}
		got := server.statements()
		for i, sql := range got {
			if table, computes := strings.CutPrefix(sql, "INSERT INTO "); computes {
				if table = strings.Fields(table)[0]; strings.Contains(sql, hours[table]) {
					got[i] = "compute " + table
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if d := cmp.Diff([]int64{old.Unix(), hour.Unix()}, erasure.Hours["messages_rollup"]); d != "" || len(erasure.Hours) != len(rollups()) {
			t.Errorf("hours %v", erasure.Hours)
		}
		waits = 1 << 20
		erasure.Hours["messages_rollup"] = []int64{old.Unix() - 3600} // of rows that are gone, before a crash
		began = time.Now()
		if err := e.Erase(t.Context(), erasure); err == nil || !strings.Contains(err.Error(), "still on the disk") || time.Since(began) < formerFor {
			t.Errorf("behind %s: %v", time.Since(began), err)
		}
		if d := cmp.Diff([]int64{old.Unix() - 3600, old.Unix(), hour.Unix()}, erasure.Hours["messages_rollup"]); d != "" {
			t.Errorf("hours (-want +got):\n%s", d)
		}
		if got := server.statements(); !strings.HasPrefix(got[len(got)-1], "ALTER TABLE `earshot`.`usage_rollup` RESET SETTING") {
			t.Errorf("the tables keep the settings of an erasure: %s", got[len(got)-1])
		}
	})
	for cluster, want := range map[string]string{"": "messages", "c": "messages_local"} {
		if got := (&eraser{schema: Schema{Cluster: cluster}}).dataTable("messages"); got != want {
			t.Errorf("cluster %q: the rows are in %s", cluster, got)
		}
	}
}

// TestErasureKeepsTheEmbeddedStoreAwake: while rows are erased from the embedded store, which looks for work on its tables seconds apart to idle,
// it is made to look at once; a server is left alone: its merges may be stopped on purpose.
func TestErasureKeepsTheEmbeddedStoreAwake(t *testing.T) {
	for _, embedded := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			woken := 0
			conn, server := scriptedConn(func(sql string) ([][]any, error) {
				switch {
				case sql == "SYSTEM START MERGES":
					woken++
				case strings.HasPrefix(sql, "SELECT table, groupArray(name)"):
					return [][]any{{"messages", []string{"tenant", "session_id"}}}, nil
				case strings.HasPrefix(sql, "SELECT count() FROM system.parts"):
					return [][]any{{0}}, nil
				case strings.HasPrefix(sql, "SELECT count()"):
					return [][]any{{2}}, nil
				case strings.HasPrefix(sql, "SELECT groupUniqArray(toInt64"):
					return [][]any{{[]int64{}}}, nil
				case strings.Contains(sql, " DELETE WHERE "):
					time.Sleep(3 * awakeEvery)
				}
				return nil, nil
			})
			conn.embedded = embedded
			e := &eraser{conn, Schema{Sync: true}, func(context.Context) error { return nil }}
			if err := e.Erase(t.Context(), &export.Erasure{Sessions: []export.Session{{Tenant: "default", ID: "s"}}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			quick := strings.Contains(strings.Join(server.statements(), "\n"), "merge_tree_clear_old_parts_interval_seconds = 1")
			if embedded != (woken > 0) || embedded != quick || woken > 4 {
				t.Errorf("embedded %v: woken %d times, the parts of before removed at once: %v", embedded, woken, quick)
			}
		})
	}
}

// TestFailedErasure: an erasure whose statement fails, whichever it is, is not done, and the settings of the tables are those of before once they
// were changed.
func TestFailedErasure(t *testing.T) {
	sessions := []export.Session{{Tenant: "default", ID: "conversation"}}
	failed := errors.New("it fails")
	for n := 1; ; n++ {
		asked := 0
		conn, server := scriptedConn(func(sql string) ([][]any, error) {
			if asked++; asked == n {
				return nil, failed
			}
			switch {
			case strings.HasPrefix(sql, "SELECT table, groupArray(name)"):
				return [][]any{{"messages", []string{"tenant", "session_id"}}, {"dead_letters", []string{"tenant", "session_id"}}}, nil
			case strings.HasPrefix(sql, "SELECT groupUniqArray(toInt64"):
				return [][]any{{[]int64{3600}}}, nil
			case strings.HasPrefix(sql, "SELECT groupUniqArray(_partition_id)"):
				return [][]any{{[]string{"202603"}}}, nil
			case strings.HasPrefix(sql, "SELECT DISTINCT toString(dl_id)"):
				if !strings.HasSuffix(sql, "WHERE session_id = '' AND (position(payload, 'conversation') > 0 OR position(error, 'conversation') > 0 OR match(payload, 'quick') OR match(error, 'quick'))") {
					t.Error(sql)
				}
				return [][]any{{"0a"}}, nil
			case strings.HasPrefix(sql, "SELECT count() FROM system.parts"):
				return [][]any{{0}}, nil
			}
			return [][]any{{1}}, nil
		})
		e := &eraser{conn, Schema{}, func(context.Context) error { return nil }}
		err := e.Erase(t.Context(), &export.Erasure{Sessions: sessions, Match: "quick"})
		if asked < n { // there are no more
			again := strings.Count(strings.Join(server.statements(), "\n"), "OPTIMIZE TABLE")
			if err != nil || n < 20 || again != len(rollups())-1 { // there is no table of spans
				t.Errorf("%d statements, %d rollups are computed again, %v", n, again, err)
			}
			break
		}
		if !errors.Is(err, failed) {
			t.Errorf("statement %d: %v", n, err)
		}
		set, reset := 0, 0
		for _, sql := range server.statements() {
			if strings.Contains(sql, "MODIFY SETTING") {
				set++
			} else if strings.Contains(sql, "RESET SETTING") {
				reset++
			}
		}
		if set != reset || set > 0 && set != 6 {
			t.Errorf("statement %d: the settings of %d tables are changed, and of %d are those of before", n, set, reset)
		}
	}
	prepare := errors.New("no tables")
	conn, _ := scriptedConn(func(string) ([][]any, error) { return nil, nil })
	if err := (&eraser{conn, Schema{}, func(context.Context) error { return prepare }}).Erase(t.Context(), &export.Erasure{}); !errors.Is(err, prepare) {
		t.Errorf("error %v", err)
	}
	saving := errors.New("not saved")
	if err := (&eraser{conn, Schema{}, func(context.Context) error { return nil }}).Erase(t.Context(), &export.Erasure{Save: func() error { return saving }}); !errors.Is(err, saving) {
		t.Errorf("error %v", err)
	}
}

// TestTextsThatAreLookedFor: the longest pieces of the texts, the middle of each, without those that another session has; none where there are too many
// sessions to compare.
func TestTextsThatAreLookedFor(t *testing.T) {
	piece := func(i int) string { return fmt.Sprintf("piece %03d of what both say", i) }
	var texts [][]any
	for i := range 5 * textsAtMost {
		texts = append(texts, []any{piece(i)}, []any{"\n" + piece(i) + "\n" + strings.Repeat("y", 10)})
	}
	long := strings.Repeat("a", 10) + strings.Repeat("m", 64) + strings.Repeat("z", 11)
	texts = append(texts, []any{long}, []any{"short"})
	compared := 0
	conn, _ := scriptedConn(func(sql string) ([][]any, error) {
		if strings.HasPrefix(sql, "SELECT DISTINCT") {
			return texts, nil
		}
		compared = strings.Count(sql, "say'") + strings.Count(sql, "mmmm'")
		return [][]any{{[]uint64{0, 3}}}, nil // the second is of others, too
	})
	e := &eraser{conn: conn}
	want := []string{strings.Repeat("m", 64)}
	for i := range textsAtMost - 1 {
		want = append(want, piece(i+1))
	}
	got, err := e.Texts(t.Context(), &export.Erasure{Sessions: make([]export.Session, 1)})
	if d := cmp.Diff(want, got); d != "" || err != nil || compared != 4*textsAtMost {
		t.Errorf("%d are compared, %v (-want +got):\n%s", compared, err, d)
	}
	if got, err := e.Texts(t.Context(), &export.Erasure{Sessions: make([]export.Session, keysAtOnce+1)}); got != nil || err != nil {
		t.Errorf("of many sessions: %q, %v", got, err)
	}
	if got := longest([]string{"ab", "abc", "xy"}); got != "abc" {
		t.Errorf("longest is %q", got)
	}
}
