package clickhouse

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/attribution"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
)

// sameFacts holds the facts of turns and the attributes of conversations to the rows.
func sameFacts(t *testing.T, c *Conn, when string) {
	t.Helper()
	for what, pair := range map[string][2]string{
		"facts of turns": {
			"SELECT tenant, session_id, trace_id, began, " + turnFacts + ", caller_trace, ver FROM turn_facts FINAL ORDER BY ALL",
			"SELECT tenant, session_id, lower(hex(s.trace_id)) AS trace_id, ts AS began, " + turnFacts + ", arrayFirst((t, a) -> a['earshot.link'] = 'delegation', links.trace_id, links.attributes) AS caller_trace, ver " +
				"FROM spans AS s FINAL WHERE kind IN ('run', 'workflow') AND empty(parent_span_id) ORDER BY ALL",
		},
		"hosts": {
			"SELECT tenant, session_id, argMinIfMerge(f.host) AS host FROM session_facts AS f GROUP BY ALL HAVING host != '' ORDER BY ALL",
			"SELECT tenant, session_id, argMin(toString(s.host), ts) AS host FROM spans AS s FINAL WHERE kind IN ('run', 'workflow') AND s.host != '' GROUP BY ALL ORDER BY ALL",
		},
		"attributes": {
			"SELECT tenant, session_id, name, argMinMerge(v.value) AS value FROM session_attributes AS v GROUP BY ALL ORDER BY ALL",
			"SELECT tenant, session_id, k AS name, argMin(attributes[k], (ts, seq)) AS value FROM messages FINAL ARRAY JOIN arrayFilter(k -> match(k, " + quoteText(attribution.KeptAttributes) +
				") AND attributes[k] != '', mapKeys(attributes)) AS k WHERE kind IN ('user', 'status', 'system') GROUP BY ALL ORDER BY ALL",
		},
	} {
		got, want := rows(t, c, pair[0]), rows(t, c, pair[1])
		if len(want) == 0 {
			t.Fatalf("%s: there are no %s", when, what)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s: %s (-rows +facts):\n%s", when, what, d)
		}
	}
}

// pieces cuts the rows of a forest into batches.
func (f *forest) pieces(n int) []*export.Batch {
	out := make([]*export.Batch, n)
	for i := range out {
		out[i] = &export.Batch{ID: fmt.Sprint(f.batch.ID, "-", i)}
	}
	for _, m := range f.batch.Messages {
		b := out[f.IntN(n)]
		b.Messages = append(b.Messages, m)
	}
	for i, s := range f.batch.Spans {
		b := out[f.IntN(n)]
		b.Spans = append(b.Spans, s)
		if i%5 == 0 { // a later version, with other facts
			later := *s
			later.Ver, later.Client.Branch = s.Ver+1, "later"
			out[n-1].Spans = append(out[n-1].Spans, &later)
		}
	}
	return out
}

// TestFactsAreCollected: after each pass the facts are those of the rows, if the pass is of all that was stored since
// the last one; also when that one failed, or the process ended before it.
func TestFactsAreCollected(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	p := attributorOf(x)
	pass := func(begin time.Time) {
		t.Helper()
		if _, err := p.pass(t.Context(), begin); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	pass(time.Time{}) // notes the time
	r := rand.New(rand.NewPCG(3, 1))
	var since time.Time // of rows whose pass did not come about
	for i, b := range newForest(5, 60).pieces(12) {
		export1(t, x, b)
		switch r.IntN(3) {
		case 0:
			continue
		case 1: // the pass fails
			if at := x.keeper.stored.take(); since.IsZero() {
				since = at
			}
			continue
		}
		if at := x.keeper.stored.take(); since.IsZero() {
			since = at
		}
		pass(since)
		since = time.Time{}
		sameFacts(t, c, fmt.Sprint("batch ", i))
	}
	export1(t, x, &newForest(6, 20).batch)
	x.keeper.stored.take() // of a process that ended
	pass(time.Now().Add(time.Hour))
	if got, want := count(t, c, "SELECT count() FROM turn_facts FINAL"), count(t, c, "SELECT count() FROM spans FINAL WHERE kind = 'run' AND empty(parent_span_id)"); got == want {
		t.Errorf("a pass of no rows has collected those of another process: %s facts", got)
	}
	pass(time.Time{})
	sameFacts(t, c, "after another start")
}

// TestLostAnswerIsCollected: rows whose insert failed, perhaps after they were stored, are collected with those of the
// next insert that did not.
func TestLostAnswerIsCollected(t *testing.T) {
	x, _ := exporter(t, nil)
	x.keeper.stop()
	b := &newForest(8, 3).batch
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	first := time.Now()
	if err := x.Export(ctx, b); err == nil {
		t.Fatal("it was exported")
	}
	second := time.Now()
	if at := x.keeper.stored.take(); !at.IsZero() {
		t.Errorf("rows were stored at %s", at)
	}
	export1(t, x, b)
	if at := x.keeper.stored.take(); at.Before(first) || at.After(second) {
		t.Errorf("collected from %s, and the first attempt was between %s and %s", at, first, second)
	}
	export1(t, x, &export.Batch{ID: "next", Messages: exporttest.Records(sampleMessages(1)...)})
	if at := x.keeper.stored.take(); !at.After(second) {
		t.Errorf("collected from %s, and all before %s was", at, second)
	}
}

// TestCloseAttributesWhatIsLeft: the pass of Close is of the rows that no pass has had.
func TestCloseAttributesWhatIsLeft(t *testing.T) {
	conn := ConnSettings{DSN: storeDSN(t), Database: emptied.take(t)}
	x, err := New(t.Context(), Settings{Conn: conn, CreateSchema: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.keeper.stop()
	stored := x.keeper.stored
	stored.known = false // as before the first pass
	left := func(what string, some, all bool) {
		t.Helper()
		if since, have := stored.left(); have != some || have && since.IsZero() != all {
			t.Errorf("%s: left since %s, %v", what, since, have)
		}
	}
	left("nothing is stored", false, false)
	batches := newForest(11, 30).pieces(4)
	export1(t, x, batches[0])
	left("no pass was made", true, true)
	pass := func() {
		t.Helper()
		if _, err := attributorOf(x).pass(t.Context(), stored.take()); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	left("the pass has not ended", true, true)
	stored.attributed()
	left("all are attributed", false, false)
	export1(t, x, batches[1])
	pass() // and is broken off
	left("a pass was broken off", true, false)
	export1(t, x, batches[2])
	export1(t, x, batches[3])
	left("more are stored", true, false)
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := Open(conn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sameFacts(t, c, "closed")
	if got := count(t, c, "SELECT count() FROM turn_facts AS f FINAL WHERE (tenant, trace_id) NOT IN (SELECT tenant, work FROM attribution)"); got != "0" {
		t.Errorf("%s turns have no attribution", got)
	}
}
