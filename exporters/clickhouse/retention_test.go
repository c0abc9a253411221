package clickhouse

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRetentionOfTables: how long the rows of a table are kept, and the clause and the statement for it.
func TestRetentionOfTables(t *testing.T) {
	all := TTL{Bodies: 2 * testDay, Messages: 36 * time.Hour, Spans: 4 * testDay, Rollups: 5 * testDay}
	moved := all
	moved.Volume, moved.MoveAfter = "it's cold", testDay
	type form struct {
		what, clause, modify string
		kept                 time.Duration
	}
	const messages, spans = "ALTER TABLE `earshot`.`messages` ", "ALTER TABLE `earshot`.`spans` "
	for _, c := range []struct {
		name string
		ttl  TTL
		want []form
	}{
		{"each", all, []form{
			{"messages", "\nTTL toDateTime(ingest_ts) + toIntervalSecond(129600)", messages + "MODIFY TTL toDateTime(ingest_ts) + toIntervalSecond(129600)", 36 * time.Hour},
			{"messages.content", " TTL toDateTime(ingest_ts) + toIntervalDay(2)", messages + "MODIFY COLUMN `content` TTL toDateTime(ingest_ts) + toIntervalDay(2)", 36 * time.Hour},
			{"spans", "\nTTL toDateTime(ingest_ts) + toIntervalDay(4)", spans + "MODIFY TTL toDateTime(ingest_ts) + toIntervalDay(4)", 4 * testDay},
			{"messages_rollup", "\nTTL seen + toIntervalDay(5)", "ALTER TABLE `earshot`.`messages_rollup` MODIFY TTL seen + toIntervalDay(5)", 5 * testDay},
		}},
		{"for ever", TTL{}, []form{{"messages", "", messages + "REMOVE TTL", 0}, {"messages.content", "", messages + "MODIFY COLUMN `content` REMOVE TTL", 0}, {"spans", "", spans + "REMOVE TTL", 0}}},
		{"messages for ever", TTL{Spans: testDay}, []form{{"spans", "", spans + "REMOVE TTL", 0}, {"agent_spans", "\nTTL toDateTime(IngestTs) + toIntervalDay(1)", "ALTER TABLE `earshot`.`agent_spans` MODIFY TTL toDateTime(IngestTs) + toIntervalDay(1)", testDay}}},
		{"spans for ever", TTL{Messages: testDay}, []form{{"spans", "", spans + "REMOVE TTL", 0}, {"agent_spans", "", "ALTER TABLE `earshot`.`agent_spans` REMOVE TTL", 0}}},
		{"moved", moved, []form{
			{"spans", "\nTTL toDateTime(ingest_ts) + toIntervalDay(4), toDateTime(ingest_ts) + toIntervalDay(1) TO VOLUME 'it\\'s cold'", spans + "MODIFY TTL toDateTime(ingest_ts) + toIntervalDay(4), toDateTime(ingest_ts) + toIntervalDay(1) TO VOLUME 'it\\'s cold'", 4 * testDay},
			{"messages.content", " TTL toDateTime(ingest_ts) + toIntervalDay(2)", messages + "MODIFY COLUMN `content` TTL toDateTime(ingest_ts) + toIntervalDay(2)", 36 * time.Hour},
		}},
		{"moved, of no policy", TTL{MoveAfter: testDay}, []form{{"spans", "", spans + "REMOVE TTL", 0}}},
		{"to a volume, at no age", TTL{Volume: "cold"}, []form{{"spans", "", spans + "REMOVE TTL", 0}}},
	} {
		s := Schema{TTL: c.ttl}
		var got []form
		for _, w := range c.want {
			clause, err := s.ttlClause(w.what)
			if err != nil {
				t.Fatal(err)
			}
			r := retentions()[slices.IndexFunc(retentions(), func(r retention) bool { return r.table == w.what || r.table+"."+r.column == w.what })]
			got = append(got, form{w.what, clause, s.modify(r, r.expression(c.ttl)), c.ttl.kept(r.table)})
		}
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(form{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
	if _, err := (Schema{}).ttlClause("no_such"); err == nil {
		t.Error("a table without a retention has a clause")
	}
	if got := (TTL{Messages: testDay}).kept("thresholds"); got != 0 {
		t.Errorf("thresholds are kept for %s", got)
	}
}

// TestSettingsFollowTheConfiguration: which settings the tables of a server, a cluster and a durable store have, and which statements change those
// of tables that are there.
func TestSettingsFollowTheConfiguration(t *testing.T) {
	const synced = "MergeTree SETTINGS fsync_after_insert = 1, fsync_part_directory = 1"
	for _, c := range []struct {
		name, more string
		schema     Schema
		engine     string
		change     []string
	}{
		{"none", "", Schema{}, "MergeTree", nil},
		{"not durable any more", "", Schema{}, synced, []string{"ALTER TABLE `earshot`.`spans` RESET SETTING fsync_after_insert, fsync_part_directory"}},
		{"durable", ", fsync_after_insert = 1, fsync_part_directory = 1", Schema{Sync: true}, "MergeTree", []string{"ALTER TABLE `earshot`.`spans` MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1"}},
		{"durable as before", ", fsync_after_insert = 1, fsync_part_directory = 1", Schema{Sync: true}, synced, nil},
		{"tiers", ", storage_policy = 'tiers'", Schema{StoragePolicy: "tiers"}, "MergeTree", []string{"ALTER TABLE `earshot`.`spans` MODIFY SETTING storage_policy = 'tiers'"}},
		{"a cluster", ", replicated_deduplication_window = 100000", Schema{Cluster: "c"}, "MergeTree", []string{"ALTER TABLE `earshot`.`spans_local` ON CLUSTER 'c' MODIFY SETTING replicated_deduplication_window = 100000"}},
		{"replicated", ", replicated_deduplication_window = 100000", Schema{Replicated: true}, "MergeTree SETTINGS replicated_deduplication_window = 100000", nil},
	} {
		want := "auto_statistics_types = '', merge_selector_base = 10, non_replicated_deduplication_window = 1000" + c.more
		if c.schema.Cluster != "" || c.schema.Replicated {
			want = strings.Replace(want, "non_replicated_deduplication_window = 1000", "replicated_deduplication_window_seconds = 604800", 1)
		}
		if got := commonSettings(c.schema); got != want {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
		if d := cmp.Diff(c.change, changeSettings(c.schema, "spans", c.engine)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}
