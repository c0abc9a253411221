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
		same = append(same, []any{r.Model, time.Unix(max(r.From.Unix(), 0), 0), r.Input, r.Output, r.CacheRead, r.CacheWrite, r.CacheWrite1h, ofProgram})
	}
	row := func(model string, ver int, input float64) []any {
		return []any{model, time.Unix(0, 0), input, 2.0, 3.0, 4.0, same[0][6], ver}
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
