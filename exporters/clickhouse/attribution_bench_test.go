package clickhouse

import (
	"testing"
	"time"
)

// BenchmarkAttributedUsage sums up a year of 800,000 turns, about those of 50 million messages, by team and user, a month
// of it, and derives the attribution of all of them again.
func BenchmarkAttributedUsage(b *testing.B) {
	x, c := exporter(b, nil)
	x.keeper.stop()
	exec := func(sql string) {
		b.Helper()
		if err := c.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	exec(`INSERT INTO usage_rollup (tenant, step, ts, source, format, agent_name, model, session_id, trace_id, responses, input_tokens, output_tokens, cache_read_tokens, sessions, seen, ver)
		SELECT 'default', arrayJoin([300, 3600]), toDateTime(1767225600 + intDiv(number * 39, 300) * 300, 'UTC'), 'claude', 'claude-code', 'claude-code', 'claude-opus-4-5', concat('session-', toString(intDiv(number, 40))),
			lower(hex(sipHash128(intDiv(number, 2)))), 20, 1000, 2000, 300000, arrayReduce('uniqState', ['s']), now(), 1 FROM numbers(1600000)`)
	exec(`INSERT INTO turn_facts (tenant, session_id, trace_id, began, source, format, agent_name, project, branch, user, host, seen, ver)
		SELECT 'default', concat('session-', toString(intDiv(number, 20))), lower(hex(sipHash128(number))), toDateTime64(1767225600 + number * 39, 9, 'UTC'), 'claude', 'claude-code', 'claude-code',
			concat('/srv/team', toString(intDiv(number, 20) % 40), '/repo', toString(intDiv(number, 20) % 900)), concat('user/AB-', toString(intDiv(number, 100))), concat('user', toString(intDiv(number, 20) % 300)), 'pier', now(), 1 FROM numbers(800000)`)
	if _, err := ApplyRules(b.Context(), c, x.schema, someRules); err != nil {
		b.Fatal(err)
	}
	for _, table := range []string{"usage_rollup", "turn_facts", "attribution"} {
		exec("OPTIMIZE TABLE " + table + " FINAL")
	}
	query := func(sql string) func(*testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				var n uint64
				if err := c.db.QueryRow(b.Context(), "SELECT count() FROM ("+sql+")").Scan(&n); err != nil || n < 40 {
					b.Fatal(n, err)
				}
			}
		}
	}
	const month = "ts >= toDateTime('2026-06-01', 'UTC') AND ts < toDateTime('2026-07-01', 'UTC')"
	b.Run("month", query("SELECT team, user, sum(tokens), sum(cost_usd) FROM v_attributed_usage WHERE "+month+" GROUP BY ALL"))
	b.Run("year", query("SELECT team, user, sum(tokens), sum(cost_usd) FROM v_attributed_usage GROUP BY ALL"))
	b.Run("rollup-alone", query("SELECT session_id, sum(input_tokens) FROM v_usage_5m WHERE "+month+" GROUP BY ALL"))
	b.Run("apply", func(b *testing.B) {
		for b.Loop() {
			if _, err := ApplyRules(b.Context(), c, x.schema, someRules); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pass", func(b *testing.B) { // of a minute without new facts
		p := attributorOf(x)
		r, err := p.latest(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := p.apply(b.Context(), r, time.Now().Add(time.Hour), time.Time{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
