package clickhouse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/price"
)

const someRows = "SELECT concat(model, ' ', toString(toDate(valid_from)), ' ', toString(input_usd_per_m)) FROM model_prices FINAL ORDER BY model, valid_from"

// TestPricesAreThoseOfTheSettings: the table has the prices that the program
// computes with, and follows when they change; a row that a person inserted stays valid.
func TestPricesAreThoseOfTheSettings(t *testing.T) {
	table := func(text string) *price.Table {
		p, err := price.Parse(strings.NewReader("model,from,input,output,cache_read,cache_write\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	x, c := exporter(t, nil)
	want := ""
	for _, r := range price.Default().Rows() {
		want += fmt.Sprintf("%s %s %v\n", r.Model, time.Unix(max(r.From.Unix(), 0), 0).UTC().Format(time.DateOnly), r.Input)
	}
	if d := cmp.Diff(strings.TrimSpace(want), count(t, c, someRows)); d != "" {
		t.Errorf("a new database: -program +table:\n%s", d)
	}
	for _, step := range []struct{ insert, prices, want string }{
		{"", "tern-2,,1,2,3,4\ntern-2,2026-02-01,5,6,7,8", "tern-2 1970-01-01 1\ntern-2 2026-02-01 5"},
		{"('tern-2', 0, 9, 9, 9, 9, 'mine')", "tern-2,,1,2,3,4\ntern-3,,2,2,2,2", "tern-2 1970-01-01 9\ntern-3 1970-01-01 2"},
		{"('gull', 0, 7, 7, 7, 7, 'mine')", "tern-3,,3,2,2,2", "gull 1970-01-01 7\ntern-2 1970-01-01 9\ntern-3 1970-01-01 3"},
		{"", "", "gull 1970-01-01 7\ntern-2 1970-01-01 9"},
	} {
		if step.insert != "" {
			if err := c.Exec(t.Context(), "INSERT INTO model_prices (model, valid_from, input_usd_per_m, output_usd_per_m, cache_read_usd_per_m, cache_write_usd_per_m, origin) VALUES "+step.insert); err != nil {
				t.Fatal(err)
			}
		}
		x.settings.Prices = table(step.prices)
		for range 2 { // the second time there is nothing to do
			if err := x.writePrices(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(step.want, count(t, c, someRows)); d != "" {
			t.Errorf("%q: -want +got:\n%s", step.prices, d)
		}
	}
}

// TestViewCostsWhatTheProgramSays prices usage in both.
func TestViewCostsWhatTheProgramSays(t *testing.T) {
	x, c := exporter(t, nil)
	b := &export.Batch{ID: "usage"}
	want := ""
	for i, model := range []string{"claude-sonnet-4-5-20250929", "anthropic/claude-opus-4-1", "GPT-5", "gpt-4o-2024-11-20", "claude-opus-4-5", "claude-next-9",
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-opus-4-1-v1:0", "claude-sonnet-4-5@20250929", " gpt-5-latest ", "anthropic.claude-opus-4-5:0",
		"anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-opus-4-6@default", "claude-sonnet-4-5[1m]", "models/gemini-2.0-flash-001", "gemini-2.5-pro-preview-05-06",
		"google/gemini-2.5-flash-preview-09-2025", "claude-sonnet-4.5", "claude-3.7-sonnet", "gpt-5-high", "gpt-4.1-2025-04-14", "claude-next-4.5"} {
		for j, m := range sampleMessages(1) {
			m.Session, m.Kind, m.Model, m.Key = "s", msg.Usage, model, fmt.Sprint(model, j)
			m.Time += int64(i) * 1e9
			m.Usage = msg.Tokens{Input: 1000, Output: 200, CacheRead: 30_000, CacheWrite: 4000, Reasoning: 50, CacheWrite1h: uint64(i) * 300}
			m.Host.ID = msg.NewID("", "", "s", m.Key)
			b.Messages = append(b.Messages, new(m))
			p, ok := price.Default().Of(model, time.Unix(0, m.Time))
			cost := "unknown"
			if ok {
				cost = fmt.Sprintf("%.6f", p.Cost(price.Tokens{Input: 1000, Output: 200, CacheRead: 30_000, CacheWrite: 4000, Reasoning: 50, CacheWrite1h: uint64(i) * 300}))
			}
			want += fmt.Sprintf("%s %t %s\n", model, ok, cost)
		}
	}
	export1(t, x, b)
	const priced = "SELECT concat(model, ' ', if(has_price, 'true', 'false'), ' ', ifNull(toDecimalString(%s, 6), 'unknown')) FROM "
	for _, when := range []string{"of the rows", "of the facts and the rollup"} {
		got := count(t, c, fmt.Sprintf(priced, "cost_usd")+"v_usage ORDER BY ts")
		if d := cmp.Diff(strings.TrimSpace(want), got); d != "" {
			t.Errorf("%s: -program +view:\n%s", when, d)
		}
		sums := count(t, c, "SELECT model, round(sum(cost_usd) * 1e5) FROM v_usage GROUP BY model ORDER BY model")
		if got := count(t, c, "SELECT model, round(sum(cost_usd) * 1e5) FROM v_attributed_usage GROUP BY model ORDER BY model"); got != sums {
			t.Errorf("%s: v_usage has\n%s\nv_attributed_usage has\n%s", when, sums, got)
		}
		roll(t, rollerOf(x, 0))
	}
}

// TestPricesAreWrittenOnce: a table that has the prices of the program is left alone, also with rows of people in it; another one is emptied of those of
// programs, unless there are none.
func TestPricesAreWrittenOnce(t *testing.T) {
	prices, err := price.Parse(strings.NewReader("model,from,input,output,cache_read,cache_write\ngull,,1,2,3,4\ngull,2026-02-01,5,6,7,8"))
	if err != nil {
		t.Fatal(err)
	}
	var same [][]any
	for _, r := range prices.Rows() {
		same = append(same, []any{r.Model, time.Unix(max(r.From.Unix(), 0), 0), r.Input, r.Output, r.CacheRead, r.CacheWrite, r.CacheWrite1h, r.Tiers, r.Long.Over, r.Long.Input, r.Long.Output, ofProgram})
	}
	row := func(model string, ver int, input float64) []any {
		return []any{model, time.Unix(0, 0), input, 2.0, 3.0, 4.0, same[0][6], same[0][7], same[0][8], same[0][9], same[0][10], ver}
	}
	for _, c := range []struct {
		name   string
		rows   [][]any
		prices *price.Table
		want   string
	}{
		{"a new table", nil, prices, "INSERT"},
		{"the same", same, prices, ""},
		{"and one of a person", append(same[:2:2], row("tern", 1700000000, 9)), prices, ""},
		{"another price", append(same[1:2:2], row("gull", ofProgram, 9)), prices, "ALTER INSERT"},
		{"of a person", append(same[1:2:2], row("gull", 1700000000, 9)), prices, ""},
		{"one is missing", same[:1], prices, "ALTER INSERT"},
		{"all but those of a person", [][]any{row("tern", 1700000000, 9)}, prices, "INSERT"},
		{"one more", append(same[:2:2], row("tern", ofProgram, 9)), prices, "ALTER INSERT"},
		{"of an earlier program", append(same[:2:2], row("tern", 0, 9)), prices, "ALTER INSERT"},
		{"none any more", same, new(price.Table), "ALTER"},
		{"none", nil, new(price.Table), ""},
	} {
		conn, server := scriptedConn(func(string) ([][]any, error) { return c.rows, nil })
		x := doubleOf(conn)
		x.settings.Prices = c.prices
		if err := x.writePrices(t.Context()); err != nil {
			t.Error(err)
		}
		var got []string
		for _, sql := range server.statements() {
			got = append(got, strings.Fields(sql)[0])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for is, want := range map[int]int{60000: 0, 1000: 1} {
		conn, server := scriptedConn(func(string) ([][]any, error) { return [][]any{{is}}, nil })
		if err := doubleOf(conn).writeThresholds(t.Context()); err != nil || len(server.statements()) != want {
			t.Errorf("a threshold of %d ms: %v", is, err)
		}
	}
}

// TestViewsCostWhatIsBilled: the tier of the service, a long prompt and a stated cost decide the dollars of each view, as of the program, and a
// tier that has no price makes the cost unknown.
func TestViewsCostWhatIsBilled(t *testing.T) {
	x, c := exporter(t, nil)
	b := &export.Batch{ID: "terms"}
	var rows, turns []string
	for i, u := range []struct {
		model string
		of    msg.Tokens
		whole bool // of a run, not of a response
		want  string
	}{
		{"gpt-5", msg.Tokens{Input: 1_000_000, Output: 100_000}, false, "list 2.250000"},
		{"gpt-5", msg.Tokens{Input: 1_000_000, Output: 100_000, Tier: "flex"}, false, "list 1.125000"},
		{"gpt-5", msg.Tokens{Input: 1_000_000, Output: 100_000, Tier: "priority"}, false, "list 4.500000"},
		{"gpt-5", msg.Tokens{Input: 1_000_000, Output: 100_000, Tier: "scale"}, false, " unknown"},
		{"claude-opus-4-6", msg.Tokens{Input: 1000, CacheRead: 100_000, CacheWrite: 10_000, CacheWrite1h: 4000, Output: 1000, Tier: "batch+us"}, false, "list 0.086625"},
		{"claude-opus-4-6", msg.Tokens{Input: 1000, Output: 1000, Tier: "fast"}, false, "list 0.180000"},
		{"claude-sonnet-4-5", msg.Tokens{Input: 1000, CacheRead: 200_000, Output: 1000}, false, "list 0.148500"},
		{"claude-sonnet-4-5", msg.Tokens{Input: 1000, CacheRead: 200_000, Output: 1000}, true, "list 0.078000"},
		{"claude-sonnet-4-5", msg.Tokens{Input: 1000, CacheRead: 199_000, Output: 1000}, false, "list 0.077700"},
		{"gpt-5.4", msg.Tokens{Input: 272_001, Output: 1000}, false, "list 1.382505"},
		{"gpt-5", msg.Tokens{Input: 1_000_000, Output: 100_000, Stated: 123_456_000_000}, false, "stated 0.123456"},
		{"gull-1", msg.Tokens{Input: 5, Stated: 7_000_000}, false, "stated 0.000007"},
		{"gull-1", msg.Tokens{Input: 5}, false, " unknown"},
	} {
		session := fmt.Sprintf("s%02d", i)
		m := sampleMessages(1)[0]
		m.Session, m.Kind, m.Model, m.Key, m.Usage, m.ResponseID = session, msg.Usage, u.model, "usage", u.of, "r"
		m.Time = time.Date(2025, 12, 1, 9, 0, i, 0, time.UTC).UnixNano()
		m.Host.ID = msg.NewID("", "", session, m.Key)
		run := sampleSpan()
		run.Session, run.Kind, run.Start, run.End, run.Model, run.AskedModel, run.Usage, run.Parent, run.State = session, msg.SpanRun, m.Time, m.Time+9, u.model, "", u.of, msg.SpanID{}, msg.SpanClosed
		run.ID, run.TraceID = msg.NewSpanID("", "", session, run.Kind, "run"), msg.NewTraceID("", "", session, "run")
		chat := run
		chat.Kind, chat.ID, chat.Parent = msg.SpanChat, msg.NewSpanID("", "", session, msg.SpanChat, "chat"), run.ID
		if b.Spans = append(b.Spans, new(run)); u.whole {
			m.ResponseID = ""
		} else {
			b.Spans = append(b.Spans, new(chat))
		}
		b.Messages = append(b.Messages, new(m))
		rows, turns = append(rows, session+" "+u.want), append(turns, session+" "+u.want[strings.Index(u.want, " ")+1:])

		prompt := u.of.Input + u.of.CacheRead + u.of.CacheWrite
		if u.whole {
			prompt = 0
		}
		program := "unknown"
		if p, ok := price.Default().Of(u.model, time.Unix(0, m.Time)); ok {
			if p, ok = p.For(u.of.Tier, prompt); ok {
				program = fmt.Sprintf("%.6f", p.Cost(price.Tokens{Input: u.of.Input, Output: u.of.Output, CacheRead: u.of.CacheRead, CacheWrite: u.of.CacheWrite, CacheWrite1h: u.of.CacheWrite1h}))
			}
		}
		if u.of.Stated == 0 && !strings.HasSuffix(u.want, " "+program) {
			t.Errorf("%s %+v: the program says %s, want %s", u.model, u.of, program, u.want)
		}
	}
	export1(t, x, b)
	for _, when := range []string{"of the rows", "of the facts and the rollup"} {
		for _, view := range []string{"v_usage", "v_attributed_usage"} {
			got := count(t, c, "SELECT concat(session_id, ' ', cost_from, ' ', ifNull(toDecimalString(cost_usd, 6), 'unknown')) FROM "+view+" ORDER BY session_id")
			if d := cmp.Diff(strings.Join(rows, "\n"), got); d != "" {
				t.Errorf("%s, %s: -want +got:\n%s", view, when, d)
			}
		}
		roll(t, rollerOf(x, 0))
	}
	got := count(t, c, "SELECT concat(session_id, ' ', ifNull(toDecimalString(cost_usd, 6), 'unknown')) FROM v_turns ORDER BY session_id")
	if d := cmp.Diff(strings.Join(turns, "\n"), got); d != "" {
		t.Errorf("v_turns: -want +got:\n%s", d)
	}
	if got := count(t, c, "SELECT toDecimalString(sum(stated_usd), 6) FROM v_turns"); got != "0.123463" {
		t.Errorf("%s dollars of turns are stated", got)
	}
	if got := count(t, c, "SELECT sum(tokens) FROM v_attributed_usage WHERE NOT has_price"); got != "1100005" {
		t.Errorf("%s tokens have no price", got)
	}
}

// TestRestOfARunHasItsStatedCost: where a run states more than its responses, what it states beyond them is added, once.
func TestRestOfARunHasItsStatedCost(t *testing.T) {
	x, c := exporter(t, nil)
	run := sampleSpan()
	run.Session, run.Kind, run.Model, run.AskedModel, run.Parent, run.State, run.Usage = "s", msg.SpanRun, "gpt-5", "", msg.SpanID{}, msg.SpanClosed, msg.Tokens{Input: 3000, Stated: 5_000_000_000}
	run.ID = msg.NewSpanID("", "", "s", run.Kind, "run")
	chat := run
	chat.Kind, chat.ID, chat.Parent, chat.Usage = msg.SpanChat, msg.NewSpanID("", "", "s", msg.SpanChat, "chat"), run.ID, msg.Tokens{Input: 1000, Stated: 2_000_000_000}
	export1(t, x, &export.Batch{ID: "rest", Spans: []*msg.Span{&run, &chat}})
	if got := count(t, c, "SELECT concat(toDecimalString(cost_usd, 6), ' ', toDecimalString(stated_usd, 6)) FROM v_turns"); got != "0.005000 0.005000" {
		t.Error(got)
	}
}

// TestHoursAreComputedAgain: in a store whose hours an earlier build has computed without the sizes of prompts, costs are as they were until the hours are
// computed again, in the background, and a response that has a long prompt costs more then.
func TestHoursAreComputedAgain(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	exec := func(sql string) {
		t.Helper()
		if err := x.conn.Exec(t.Context(), strings.ReplaceAll(sql, "DB.", quoteName(x.schema.Database)+".")); err != nil {
			t.Fatalf("%v in:\n%s", err, sql)
		}
	}
	b := &export.Batch{ID: "long"}
	for i, read := range []uint64{200_000, 1000} {
		m := sampleMessages(1)[0]
		m.Session, m.Kind, m.Key, m.ResponseID = "s", msg.Usage, fmt.Sprint("usage", i), fmt.Sprint("r", i)
		m.Model = []string{"claude-sonnet-4-5", "claude-sonnet-4-5-20250929"}[i] // so that their rows differ without the sizes, too
		m.Usage = msg.Tokens{Input: 1000, CacheRead: read, Output: 1000}
		m.Time = time.Date(2025, 12, 1, 9, 0, i, 0, time.UTC).UnixNano()
		m.Host.ID = msg.NewID("", "", "s", m.Key)
		b.Messages = append(b.Messages, new(m))
	}
	export1(t, x, b)
	time.Sleep(2 * time.Millisecond)
	roll(t, rollerOf(x, 0))
	exec("ALTER TABLE DB.usage_facts UPDATE prompt_over = 0 WHERE 1 SETTINGS mutations_sync = 2")
	exec("CREATE TABLE DB.usage_rollup_before AS DB.usage_rollup")
	exec("INSERT INTO DB.usage_rollup_before SELECT * REPLACE (toUInt32(0) AS prompt_over) FROM DB.usage_rollup FINAL")
	exec("TRUNCATE TABLE DB.usage_rollup")
	exec("INSERT INTO DB.usage_rollup SELECT * FROM DB.usage_rollup_before")
	exec("DROP TABLE DB.usage_rollup_before")
	exec("ALTER TABLE DB.rollup_hours DELETE WHERE name IN ('turn costs', 'all turn costs', 'cost facts', 'all cost facts') SETTINGS mutations_sync = 2")
	for _, want := range []string{"0.096300", "0.166800"} { // 0.018 + 0.06 and, of the long one, twice the prompt and one and a half times the answer
		for _, view := range []string{"v_usage", "v_attributed_usage"} {
			if got := count(t, c, "SELECT toDecimalString(sum(cost_usd), 6) FROM "+view); got != want {
				t.Errorf("%s: %s, want %s", view, got, want)
			}
		}
		roll(t, rollerOf(x, 0))
	}
	if n := roll(t, rollerOf(x, 0)); n != 0 {
		t.Errorf("%d hours are computed again, without a new row", n)
	}
}
