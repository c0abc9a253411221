package engine

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// grants are the rights of the engine's only user, on tables and their metadata alone:
// without SOURCES and with these table engines, the engine itself refuses each table function and
// each engine that reaches a file, a network or a program.
var grants = []string{
	"GRANT SHOW, SELECT, INSERT, ALTER, CREATE DATABASE, CREATE TABLE, CREATE VIEW, CREATE TEMPORARY TABLE, CHECK, DROP, UNDROP TABLE, " +
		"TRUNCATE, OPTIMIZE, KILL QUERY, MOVE PARTITION BETWEEN SHARDS, INTROSPECTION, SET DEFINER, " +
		"SYSTEM MERGES, SYSTEM TTL MERGES, SYSTEM MOVES, SYSTEM FLUSH, SYSTEM DROP CACHE, SYSTEM VIEWS, SYSTEM SYNC FILE CACHE ON *.*",
}

// tableEngines are those that keep their rows inside of the data folder or in memory.
var tableEngines = []string{
	"MergeTree", "ReplacingMergeTree", "SummingMergeTree", "AggregatingMergeTree", "CollapsingMergeTree", "VersionedCollapsingMergeTree",
	"CoalescingMergeTree", "Memory", "Null", "Log", "TinyLog", "StripeLog", "Join", "Set", "Buffer", "Merge",
}

// calm has the engine look less often whether there is something to do, because it idles most of the
// time: at its memory, 20 times a second by default, at the merges of each table, twice
// a second (an insert wakes it), and at the parts that a merge has replaced, once a second. An erasure
// waits until these are removed, which is looked at every forty seconds by default.
const calm = "<memory_worker_period_ms>500</memory_worker_period_ms>" +
	"<background_processing_pool_thread_sleep_seconds_if_nothing_to_do>5</background_processing_pool_thread_sleep_seconds_if_nothing_to_do>" +
	"<merge_tree><merge_tree_clear_old_parts_interval_seconds>10</merge_tree_clear_old_parts_interval_seconds>" +
	"<cleanup_delay_period>5</cleanup_delay_period><max_cleanup_delay_period>5</max_cleanup_delay_period><cleanup_delay_period_random_add>0</cleanup_delay_period_random_add></merge_tree>"

// Grants are the statements with the rights of the user that writes.
func Grants() []string {
	queries := append([]string(nil), grants...)
	for _, e := range tableEngines {
		queries = append(queries, "GRANT TABLE ENGINE ON "+e)
	}
	return queries
}

// writeAccess writes the configuration that holds the engine's user to the grants, and
// returns its path. The library reads both files while it opens the folder.
func writeAccess(path string) (string, error) {
	dir := filepath.Join(path, "access")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("engine: make folder of rights: %w", err)
	}
	users := "<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default><password/><networks><ip>::/0</ip></networks>" +
		"<profile>default</profile><quota>default</quota><grants><query>" + strings.Join(Grants(), "</query><query>") +
		"</query></grants></default></users></clickhouse>\n"
	usersFile, configFile := filepath.Join(dir, "users.xml"), filepath.Join(dir, "config.xml")
	var name strings.Builder
	if err := xml.EscapeText(&name, []byte(usersFile)); err != nil {
		return "", fmt.Errorf("engine: rights: %w", err)
	}
	config := "<clickhouse><users_config>" + name.String() + "</users_config>" + calm + "</clickhouse>\n"
	for file, text := range map[string]string{usersFile: users, configFile: config} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("engine: write rights: %w", err)
		}
	}
	return configFile, nil
}
