package clickhouse

import (
	"fmt"
	"math/rand/v2"
	"testing"
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
	for _, table := range []string{"dead_letters", "findings", "messages", "run_setups", "session_attributes", "session_facts", "sessions", "span_facts", "spans", "streams", "turn_facts", "usage_facts", "usage_rollup"} {
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
