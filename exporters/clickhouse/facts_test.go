package clickhouse

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestStoreWithoutFactsUpgrades: a store of the build before migration 70, with rollups that are
// computed, has facts, pauses and times of calls that agree with its rows, also when a
// migration was interrupted.
func TestStoreWithoutFactsUpgrades(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	h := &history{Rand: rand.New(rand.NewPCG(7, 1))}
	for range 6 {
		export1(t, x, h.next())
	}
	time.Sleep(2 * time.Millisecond)
	roll(t, rollerOf(x, 0))
	exec := func(sql string) {
		t.Helper()
		if err := x.conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%v in:\n%s", err, sql)
		}
	}
	for _, view := range []string{"messages_slots", "tool_calls_slots", "pauses_slots", "pauses_hours", "v_unknown", "v_span_facts", "v_usage", "v_delegations"} {
		exec("DROP VIEW " + x.schema.name(view))
	}
	for _, table := range []string{"usage_facts", "span_facts_by_day", "unknown_facts", "pauses_rollup"} {
		exec("DROP TABLE " + x.schema.name(table) + " SYNC")
	}
	exec("ALTER TABLE " + x.schema.name("tool_calls_rollup") + " DROP COLUMN largest_result, DROP COLUMN only_waited, DROP COLUMN active_ns")
	hours := x.schema.name("rollup_hours")
	exec("INSERT INTO " + hours + " SELECT if(startsWith(name, 'all '), 'all spans', 'spans'), hour, until, at, oldest FROM " + hours + " WHERE name IN ('calls', 'all calls')")
	exec("ALTER TABLE " + hours + " DELETE WHERE name NOT IN ('spans', 'all spans', 'messages', 'all messages') SETTINGS mutations_sync = 2")
	exec("ALTER TABLE " + x.schema.name("schema_migrations") + " DELETE WHERE version IN (70, 85, 89, 92) SETTINGS mutations_sync = 2")
	migrations, err := x.schema.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range migrations {
		if m.Version == 70 || m.Version == 89 { // interrupted
			for _, st := range m.Statements[:len(m.Statements)/2] {
				exec(st.SQL)
			}
		}
	}
	if _, err := x.schema.Apply(t.Context(), x.conn); err != nil {
		t.Fatal(err)
	}
	sameAsRows(t, c, "upgraded", "")
	if roll(t, rollerOf(x, 0)) == 0 {
		t.Error("nothing is computed after the upgrade")
	}
	sameAsRows(t, c, "upgraded and computed", "")
}
