package clickhouse

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// readerSettings are a reader's. 2: reads and its own settings, which Grafana's plugin sends with queries. All versions of a row are in one partition.
const readerSettings = " SETTINGS readonly = 2, final = 1, do_not_merge_across_partitions_select_final = 1, max_execution_time = 60, max_memory_usage = 4000000000"

// Roles are the statements that an administrator of the server runs once, so that
// the sidecar need not be one: earshot_writer may make and fill the tables,
// earshot_reader may read them and sees one version of every row, and earshot_reader_NAME those of one of
// the Tenants. A sidecar with
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
		"CREATE SETTINGS PROFILE IF NOT EXISTS earshot_reader" + on + readerSettings + " TO earshot_reader",
	}
	for _, tenant := range s.Tenants {
		out = append(out, tenancy{s}.role(tenant)...)
	}
	if len(s.Tenants) > 0 { // a table with a policy may show nothing to those without one
		out = append(out, tenancy{s}.policy("earshot_every_tenant", "1", "earshot_writer, earshot_reader"))
	}
	if s.Cluster != "" { // for ON CLUSTER, and for Distributed tables
		out = append(out, grant("CLUSTER, REMOTE ON *.*", "earshot_writer"), grant("REMOTE ON *.*", "earshot_reader"))
	}
	return out
}

// tenantTables have rows of tenants, each with its column tenant; sharedTables have rows that all may read.
// The tenant's reader gets these and the views, which read them with the rights of the one who asks, and
// no other table: not the targets of materialized views by the view's name, and not agent_spans.
var (
	tenantTables = strings.Fields(`messages spans findings verdicts dead_letters source_ledger streams attribution changes budget_alerts
		sessions session_attributes session_facts run_setups turn_facts span_facts_by_day unknown_facts usage_facts
		messages_rollup pauses_rollup tool_calls_rollup usage_rollup`)
	sharedTables = strings.Fields("attribution_rules model_prices rollup_hours schema_migrations thresholds")
	tenantViews  = strings.Fields(`delegations messages_slots open_spans pauses_hours pauses_slots tool_calls tool_calls_slots otel_traces otel_traces_trace_id_ts
		v_agent_versions v_attributed_usage v_budget_alerts v_changes v_dead_letters v_delegations v_findings v_message_views v_messages v_messages_1h v_messages_5m
		v_open_spans v_runs v_session_facts v_session_times v_sessions v_sources v_span_facts v_spans v_streams v_tool_calls
		v_tool_calls_1h v_tool_calls_5m v_turns v_unknown v_usage v_usage_1h v_usage_5m v_verdicts`)
)

// tenancy keeps tenants apart.
type tenancy struct{ Schema }

// role are the statements for a reader of one tenant's rows.
func (s tenancy) role(tenant string) []string {
	name, on := quoteName("earshot_reader_"+tenant), s.onCluster()
	var grants []string
	for _, t := range s.stored(slices.Concat(tenantTables, sharedTables)) {
		grants = append(grants, "SELECT ON "+t)
	}
	for _, v := range tenantViews {
		grants = append(grants, "SELECT ON "+s.name(v))
	}
	return []string{
		"CREATE ROLE IF NOT EXISTS " + name + on,
		"GRANT" + on + " " + strings.Join(append(grants, "SELECT ON system.tables", "SELECT ON system.columns"), ", ") + " TO " + name,
		s.policy("earshot_tenant_"+tenant, "tenant = "+quoteText(tenant), name),
		"CREATE SETTINGS PROFILE IF NOT EXISTS " + name + on + readerSettings + " TO " + name,
	}
}

// policy is the statement that shows some rows of the tables with tenants to roles.
func (s tenancy) policy(name, rows, to string) string {
	on := strings.Join(s.stored(tenantTables), ", ")
	return "CREATE ROW POLICY IF NOT EXISTS " + quoteName(name) + s.onCluster() + " ON " + on + " USING " + rows + " TO " + to
}

// stored are the tables by name; on a cluster those with the rows too.
func (s tenancy) stored(tables []string) (out []string) {
	for _, t := range tables {
		out = append(out, s.name(t))
		if s.Cluster != "" {
			out = append(out, s.local(t))
		}
	}
	return out
}

// PrintRoles writes Roles as SQL that a client of ClickHouse runs.
func (s Schema) PrintRoles(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("-- Then, for each role that is used: CREATE USER name IDENTIFIED BY 'password' DEFAULT ROLE earshot_writer\n\n")
	for _, sql := range s.Roles() {
		fmt.Fprintf(&b, "%s;\n", sql)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("clickhouse: print roles: %w", err)
	}
	return nil
}
