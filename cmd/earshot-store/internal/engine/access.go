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

// writeAccess writes the configuration that holds the engine's user to the grants, and
// returns its path. The library reads both files while it opens the folder.
func writeAccess(path string) (string, error) {
	dir := filepath.Join(path, "access")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("engine: make folder of rights: %w", err)
	}
	queries := append([]string(nil), grants...)
	for _, e := range tableEngines {
		queries = append(queries, "GRANT TABLE ENGINE ON "+e)
	}
	users := "<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default><password/><networks><ip>::/0</ip></networks>" +
		"<profile>default</profile><quota>default</quota><grants><query>" + strings.Join(queries, "</query><query>") +
		"</query></grants></default></users></clickhouse>\n"
	usersFile, configFile := filepath.Join(dir, "users.xml"), filepath.Join(dir, "config.xml")
	var name strings.Builder
	if err := xml.EscapeText(&name, []byte(usersFile)); err != nil {
		return "", fmt.Errorf("engine: rights: %w", err)
	}
	config := "<clickhouse><users_config>" + name.String() + "</users_config></clickhouse>\n"
	for file, text := range map[string]string{usersFile: users, configFile: config} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("engine: write rights: %w", err)
		}
	}
	return configFile, nil
}
