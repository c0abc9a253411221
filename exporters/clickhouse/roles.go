package clickhouse

import (
	"bytes"
	"fmt"
	"io"
)

// Roles are the statements that an administrator of the server runs once, so that
// the sidecar need not be one: earshot_writer may make and fill the tables,
// earshot_reader may read them and sees one version of every row. A sidecar with
// create_schema: false does with the first grant of the writer. The embedded store
// has its two users built in and takes none of this.
func (s Schema) Roles() []string {
	database := quoteName(s.withDefaults().Database)
	on := s.onCluster()
	grant := func(what, to string) string { return "GRANT" + on + " " + what + " TO " + to }
	out := []string{
		"CREATE ROLE IF NOT EXISTS earshot_writer" + on,
		grant("SELECT, INSERT ON "+database+".*", "earshot_writer"),
		grant("SELECT ON system.tables", "earshot_writer"),
		grant("SELECT ON system.columns", "earshot_writer"), // these three for earshot erase
		grant("SELECT ON system.parts", "earshot_writer"),
		grant("OPTIMIZE ON "+database+".*", "earshot_writer"),
		grant("CREATE DATABASE, CREATE TABLE, DROP TABLE, CREATE VIEW, DROP VIEW, ALTER TABLE, ALTER VIEW ON "+database+".*", "earshot_writer"),
		"CREATE ROLE IF NOT EXISTS earshot_reader" + on,
		grant("SELECT ON "+database+".*", "earshot_reader"),
		grant("SELECT ON system.tables", "earshot_reader"),
		grant("SELECT ON system.columns", "earshot_reader"),
		grant("SELECT ON system.parts", "earshot_reader"),
		// 2: reads and its own settings, which Grafana's plugin sends with queries.
		"CREATE SETTINGS PROFILE IF NOT EXISTS earshot_reader" + on + " SETTINGS readonly = 2, final = 1, max_execution_time = 60, max_memory_usage = 4000000000 TO earshot_reader",
	}
	if s.Cluster != "" { // for ON CLUSTER, and for Distributed tables
		out = append(out, grant("CLUSTER, REMOTE ON *.*", "earshot_writer"), grant("REMOTE ON *.*", "earshot_reader"))
	}
	return out
}

// PrintRoles writes Roles as SQL that a client of ClickHouse runs.
func (s Schema) PrintRoles(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("-- Then, for each of the two: CREATE USER name IDENTIFIED BY 'password' DEFAULT ROLE earshot_writer\n\n")
	for _, sql := range s.Roles() {
		fmt.Fprintf(&b, "%s;\n", sql)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("clickhouse: print roles: %w", err)
	}
	return nil
}
