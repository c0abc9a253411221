package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// derivedOf are the tables of conversations beside the same facts of the rows.
var derivedOf = map[string][2]string{
	"conversations": {
		"SELECT tenant, session_id, min(s.began) AS began, max(s.latest) AS latest, max(s.asked) AS asked, min(s.first_at) AS first_at, max(s.last_at) AS last_at, arraySort(groupUniqArrayArray(s.sources)) AS sources, " +
			"arraySort(groupUniqArrayArray(s.formats)) AS formats, arraySort(groupUniqArrayArray(s.agents)) AS agents, arraySort(groupUniqArrayArray(s.models)) AS models FROM sessions AS s GROUP BY tenant, session_id ORDER BY ALL",
		"SELECT tenant, session_id, min(ts) AS began, max(ts) AS latest, maxIf(ts, kind = 'user') AS asked, minOrNullIf(ts, NOT hidden AND NOT inferred) AS first_at, maxOrNullIf(ts, NOT hidden AND NOT inferred) AS last_at, " +
			"arraySort(groupUniqArray(toString(source))) AS sources, arraySort(groupUniqArray(toString(format))) AS formats, arraySort(groupUniqArrayIf(toString(agent_name), kind != 'user')) AS agents, " +
			"arraySort(groupUniqArrayIf(toString(model), model != '')) AS models FROM messages FINAL GROUP BY tenant, session_id ORDER BY ALL",
	},
	"facts": {
		"SELECT tenant, session_id, argMaxIfMerge(f.title) AS title, argMinIfMerge(f.project) AS project, argMaxIfMerge(f.user) AS user FROM session_facts AS f GROUP BY tenant, session_id HAVING concat(title, project, user) != '' ORDER BY ALL",
		"SELECT tenant, session_id, argMaxIf(attributes['session_title'], (ts, seq), attributes['session_title'] != '') AS title, argMinIf(attributes['project'], (ts, seq), attributes['project'] != '') AS project, " +
			"argMaxIf(attributes['user'], (ts, seq), attributes['user'] != '') AS user FROM messages FINAL WHERE kind IN ('user', 'status', 'system') OR mapContains(attributes, 'project') GROUP BY tenant, session_id HAVING concat(title, project, user) != '' ORDER BY ALL",
	},
	"setups": {
		"SELECT tenant, session_id, run_id, argMinIfMerge(x.prompt) AS prompt, argMinIfMerge(x.tools) AS tools, argMaxIfMerge(x.effort) AS effort FROM run_setups AS x GROUP BY tenant, session_id, run_id HAVING concat(prompt, tools, effort) != '' ORDER BY ALL",
		"SELECT tenant, session_id, run_id, argMinIf(lower(hex(sipHash64(replaceRegexpAll(content, '[0-9]+', '0')))), (ts, seq), kind = 'system' AND role = 'system' AND content != '') AS prompt, " +
			"argMinIf(lower(hex(sipHash64(content))), (ts, seq), kind = 'status' AND attributes['type'] = 'tool_definitions' AND content != '') AS tools, " +
			"argMaxIf(attributes['effort'], (ts, seq), kind IN ('system', 'status') AND attributes['effort'] != '') AS effort FROM messages FINAL GROUP BY tenant, session_id, run_id HAVING concat(prompt, tools, effort) != '' ORDER BY ALL",
	},
}

func sameConversations(t *testing.T, c *Conn, when string) {
	t.Helper()
	for what, pair := range derivedOf {
		got, want := rows(t, c, pair[0]), rows(t, c, pair[1])
		if len(want) == 0 {
			t.Fatalf("%s: there are no %s", when, what)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s: %s (-rows +derived):\n%s", when, what, d)
		}
	}
}

// talks are batches of conversations that have facts and setups.
func talks(batches int) []*export.Batch {
	out := newForest(12, 30).pieces(batches)
	for i, b := range out {
		for n := range sampleMessages(4) {
			m := sampleMessages(4)[n]
			m.Session, m.Run = "talk-"+string(rune('a'+i)), "talk/run"
			m.Host.Seq, m.Host.ID[0], m.Host.ID[1] = uint64(n), byte(i), byte(0x80+n)
			m.Client.Project, m.Title = "/srv/"+m.Session, "Title of "+m.Session
			switch {
			case n == 3:
				m.Kind, m.Role = msg.System, msg.RoleSystem
			case n == 2 && i%2 == 0:
				m.Kind = msg.Status
				m.SetAttr("type", msg.TypeTools)
			case n == 1 && i%3 == 0:
				m.Kind = msg.Status
				m.SetAttr("effort", "high")
			}
			b.Messages = append(b.Messages, new(m))
		}
	}
	return out
}

// TestListsWaitForAReader: while nobody reads, conversations are derived with the attribution and not behind each insert; a reader has all.
func TestListsWaitForAReader(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.ConversationsEvery = time.Millisecond })
	x.keeper.stop()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { x.underived.keep(ctx, x); close(ended) }()
	defer func() { stop(); <-ended }()
	batches := talks(2)
	x.Unread(t.Context(), true)
	export1(t, x, batches[0])
	time.Sleep(100 * time.Millisecond)
	if got := count(t, c, "SELECT count() FROM sessions"); got != "0" {
		t.Errorf("%s rows are derived, and nobody reads", got)
	}
	if _, err := attributorOf(x).write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := attributorOf(x).pass(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	sameConversations(t, c, "the attribution")
	export1(t, x, batches[1])
	x.Unread(t.Context(), false)
	sameConversations(t, c, "a reader")
}

// TestConversationsAreDerived: behind an insert, but not behind each of those that follow each other; then before a reader has its
// answer, at the end, and by the next process.
func TestConversationsAreDerived(t *testing.T) {
	conn := ConnSettings{DSN: storeDSN(t), Database: emptied.take(t)}
	begin := func() *Exporter {
		t.Helper()
		x, err := New(t.Context(), Settings{Conn: conn, CreateSchema: true, ConversationsEvery: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.keeper.stop()
		return x
	}
	x := begin()
	c, err := Open(conn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	batches := talks(5)
	export1(t, x, batches[0])
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { x.underived.keep(ctx, x); close(ended) }()
	for x.underived.wait(time.Hour) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	sameConversations(t, c, "the first insert")
	export1(t, x, batches[1])
	time.Sleep(100 * time.Millisecond)
	if got := count(t, c, "SELECT count() FROM sessions WHERE session_id = 'talk-b'"); got != "0" {
		t.Error("the second insert was followed by deriving at once")
	}
	stop()
	<-ended
	x.Unread(t.Context(), false)
	sameConversations(t, c, "a reader")
	export1(t, x, batches[2])
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	sameConversations(t, c, "the end")
	x = begin()
	p := attributorOf(x)
	if _, err := p.write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := p.pass(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	export1(t, x, batches[3])
	export1(t, x, batches[4])
	x.underived = underived{} // as if the process had been killed
	if err := x.conn.Close(); err != nil {
		t.Fatal(err)
	}
	x = begin()
	if _, err := attributorOf(x).pass(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	sameConversations(t, c, "the process after one that was killed")
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestWhatMessagesMayHave: the tables of facts and of setups are derived when a message that is stored may have one, until it is.
func TestWhatMessagesMayHave(t *testing.T) {
	attr := func(key string) msg.Message { return msg.Message{Attrs: []msg.Attr{{Key: "other"}, {Key: key}}} }
	fact, none, said := derivable{fact: true}, derivable{}, msg.Plain("Be brief.")
	same := func(a, b derivable) bool {
		a.contents, b.contents = nil, nil
		return a == b
	}
	status := func(attrs ...msg.Attr) export.Batch {
		return export.Batch{Messages: []*msg.Message{{Kind: msg.Status, Attrs: attrs}, {}}}
	}
	for _, c := range []struct {
		name  string
		batch export.Batch
		want  derivable
	}{
		{"nothing", export.Batch{}, none},
		{"a message", export.Batch{Messages: exporttest.Records([]msg.Message{{Kind: msg.User}, attr("more")}...)}, none},
		{"a title", export.Batch{Messages: []*msg.Message{{Kind: msg.User}, {Title: "t"}}}, fact},
		{"a client", export.Batch{Messages: []*msg.Message{{Client: msg.Client{Branch: "b"}}}}, fact},
		{"an account", export.Batch{Messages: exporttest.Records(attr("user.email"))}, fact},
		{"a prompt", export.Batch{Messages: []*msg.Message{{Kind: msg.System, Role: msg.RoleSystem, Content: said}, {Kind: msg.User}}}, derivable{prompt: true}},
		{"a prompt without a content", export.Batch{Messages: []*msg.Message{{Kind: msg.System, Role: msg.RoleSystem}}}, none},
		{"a notice", export.Batch{Messages: []*msg.Message{{Kind: msg.System}}}, none},
		{"tools", export.Batch{Messages: []*msg.Message{{Kind: msg.Status, Content: said, Attrs: []msg.Attr{{Key: "type", Value: msg.TypeTools}}}}}, derivable{tools: true}},
		{"another status", status(msg.Attr{Key: "type", Value: "other"}), none},
		{"an effort", status(msg.Attr{Key: "effort", Value: "high"}), derivable{effort: true}},
		{"an effort of a prompt", export.Batch{Messages: []*msg.Message{{Kind: msg.System, Attrs: []msg.Attr{{Key: "request.reasoning"}}}}}, derivable{effort: true}},
		{"an effort of a call", export.Batch{Messages: exporttest.Records(attr("reasoning_effort"))}, none},
		{"all", export.Batch{Messages: []*msg.Message{{Kind: msg.System, Role: msg.RoleSystem, Title: "t", Content: said}, {Kind: msg.Status, Content: said, Attrs: []msg.Attr{{Key: "type", Value: msg.TypeTools}, {Key: "effort"}}}}}, anyDerivable()},
		{"encoded rows", export.Batch{Rows: make([]export.Rows, 1)}, anyDerivable()},
	} {
		u := underived{some: make(chan struct{}, 1)}
		first := time.Unix(20, 0)
		u.note(first, derivableOf(&c.batch))
		u.note(first.Add(time.Second), derivableOf(&export.Batch{}))
		if since, have := u.take(); !since.Equal(first) || !same(have, c.want) || len(u.some) != 1 {
			t.Errorf("%s: %+v since %s", c.name, have, since)
		}
		if since, have := u.take(); !since.IsZero() || have != none {
			t.Errorf("%s: taken twice: %+v since %s", c.name, have, since)
		}
		u.note(first, none)
		u.note(first.Add(-time.Second), c.want)
		if since, have := u.take(); !since.Equal(first.Add(-time.Second)) || !same(have, c.want) {
			t.Errorf("%s: put back: %+v since %s", c.name, have, since)
		}
	}
}

// TestListsAreKept: the lists of conversations follow an insert at once, and the next ones as seldom as the setting has it; a failure is logged,
// and tried again from the same insert on. The tables that no message may be in are left alone.
func TestListsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		server := began.Add(-time.Hour) // whose clock differs
		var mu sync.Mutex               // of the next two
		var failed error
		var got []string
		conn, _ := scriptedConn(func(sql string) ([][]any, error) {
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(sql, "SELECT toUnixTimestamp64Milli") {
				return [][]any{{server.Add(time.Since(began)).UnixMilli()}}, nil
			}
			table := regexp.MustCompile("INSERT INTO `earshot`.`(\\w+)`").FindStringSubmatch(sql)
			from := regexp.MustCompile(`ingest_ts >= fromUnixTimestamp64Milli\(toInt64\((\d+)\), 'UTC'\)`).FindStringSubmatch(sql)
			var ms int64
			if _, err := fmt.Sscan(from[1], &ms); err != nil {
				t.Error(err)
			}
			got = append(got, fmt.Sprint(time.Since(began), " ", table[1], " since ", time.UnixMilli(ms).Sub(server)))
			return nil, failed
		})
		x := doubleOf(conn)
		var log bytes.Buffer
		x.settings.ConversationsEvery, x.settings.Logger = 10*time.Second, slog.New(slog.NewTextHandler(&log, nil))
		go x.underived.keep(ctx, x)
		store := func(m msg.Message) {
			x.underived.note(time.Now(), derivableOf(&export.Batch{Messages: exporttest.Records(m)}))
		}
		want := func(when string, d time.Duration, warns int, want ...string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(got, want) || strings.Count(log.String(), "are behind") != warns {
				t.Errorf("%s: %q, want %q; said %q", when, got, want, &log)
			}
			got = nil
			log.Reset()
		}
		want("nothing", time.Minute, 0)
		store(msg.Message{})
		want("an insert", time.Second, 0, "1m0s sessions since 58s")
		store(msg.Message{Title: "t"}) // 1m1s
		time.Sleep(time.Second)
		store(msg.Message{Kind: msg.System, Role: msg.RoleSystem, Content: msg.Plain("Be brief.")})
		want("two more", 10*time.Second, 0, "1m10s sessions since 59s", "1m10s session_facts since 59s", "1m10s run_setups since 59s")
		time.Sleep(48 * time.Second) // 2m
		fail := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failed = err
		}
		fail(errors.New("no answer"))
		store(msg.Message{})
		want("a failure", 7*time.Second, 2, "2m0s sessions since 1m58s", "2m5s sessions since 1m58s")
		fail(nil)
		want("and again", time.Minute, 0, "2m10s sessions since 1m58s")
		if got := x.underived.wait(time.Minute); got != 3*time.Second {
			t.Errorf("the next time is in %s", got)
		}
		if got := x.underived.wait(time.Second); got != 0 {
			t.Errorf("the next time was %s ago", -got)
		}
		cancel()
		store(msg.Message{})
		want("ended", time.Minute, 0)
	})
}

// TestInsertWaitsForLists: without a setting each insert waits until its conversations are derived, one of rows that were gathered too; that they are not is no
// failure of the insert.
func TestInsertWaitsForLists(t *testing.T) {
	for _, gathered := range []bool{false, true} {
		x, server := inserting(t, Settings{TempDir: t.TempDir()})
		b := &export.Batch{ID: "b", Messages: exporttest.Records(sampleMessages(1)...)}
		if !gathered {
			export1(t, x, b)
		} else if x.Gather(b) {
			part1(t, x)
		}
		if len(server.stored()) != 1 || len(server.other) == 0 {
			t.Errorf("gathered: %t: nothing is derived", gathered)
		}
		if since, have := x.underived.take(); since.IsZero() || have != derivableOf(b) {
			t.Errorf("gathered: %t: what could not be derived is forgotten", gathered)
		}
	}
}

// TestListsAreBehindGatheredRows: when the store of gathered rows has returned, their conversations are derived, and those of rows that are gathered
// meanwhile are not there.
func TestListsAreBehindGatheredRows(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.TempDir, s.ConversationsEvery = t.TempDir(), 0 })
	x.keeper.stop()
	batches := talks(3)
	gather := func(b *export.Batch) {
		t.Helper()
		if !x.Gather(b) {
			t.Fatal("it is not gathered")
		}
	}
	gather(batches[0])
	store, stored := x.Part(), make(chan error)
	go func() { stored <- store(t.Context()) }()
	gather(batches[1])
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	sameConversations(t, c, "stored meanwhile")
	if got := count(t, c, "SELECT count() FROM sessions WHERE session_id = 'talk-b'"); got != "0" {
		t.Error("rows that are gathered are derived from")
	}
	gather(batches[2])
	part1(t, x)
	sameConversations(t, c, "the rest")
}
