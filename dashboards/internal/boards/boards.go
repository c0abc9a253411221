// Package boards defines Earshot's dashboards and alert rules: the queries of their
// panels and how the panels draw the results.
//
// Queries read the views v_*, which hide older versions of rows, so that a replay
// changes no number. Quantiles are exact, for the same reason: a digest depends on
// the order in which rows arrive. Large counts of distinct values use uniq, which differs by one
// or two of ten thousands and whose estimate does not depend on the order. Sums are of integers:
// those of floats differ from run to run in the last digits.
//
// Two traps of the data source shape the SQL. Its parser of $__conditionalAll
// counts brackets without looking at quotes, so those in texts must be in pairs.
// And it takes over the links of every column that is called trace_id or traceID,
// so the columns with links are called Trace.
//
// Two traps of the engine do so too. It runs a scalar subquery even in the branch of an
// if that is not taken, so a query for the latest row has a WHERE that is false when it
// is not needed. And it runs a common table expression again for each reference.
package boards

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/dashboards/internal/grafana"
)

// All returns the dashboards.
func All() []*grafana.Dashboard {
	return []*grafana.Dashboard{delegations(), trace(), tools(), tokens(), sessions(), streaming(), self()}
}

// agent names who acts. Some formats never name the agent that a person talks to.
const agent = "if(agent_name = '', concat('(', format, ')'), agent_name)"

// delegate names who work is handed to.
const delegate = "if(delegate_to = '', '(unknown)', delegate_to)"

// pair names a delegation's two ends.
const pair = "concat(" + agent + ", ' → ', " + delegate + ")"

// inRange is the condition that a row of a view is in the range of time shown.
const inRange = "$__timeFilter_ms(ts)"

// picked is the condition that the variables of those names pick a row.
func picked(names ...string) string {
	column := map[string]string{"agent": agent, "version": "agent_version", "tool": "tool_name"}
	var b strings.Builder
	for _, n := range names {
		c := column[n]
		if c == "" {
			c = n
		}
		b.WriteString("\n  AND $__conditionalAll(" + c + " IN (" + items(n) + "), $" + n + ")")
	}
	return b.String()
}

// pickedOpen is picked for rows of v_open_spans, which lacks some of the columns.
func pickedOpen(names ...string) string {
	column := map[string]string{"model": "model", "project": "project", "version": "agent_version"}
	var b strings.Builder
	for _, n := range names {
		c := column[n]
		if c == "" {
			b.WriteString(picked(n))
			continue
		}
		b.WriteString("\n  AND $__conditionalAll(toString(span_id) IN (SELECT lower(hex(s.span_id)) FROM spans AS s FINAL WHERE state = 'open' AND " + c + " IN (" + items(n) + ")), $" + n + ")")
	}
	return b.String()
}

// A variable holds text of agents, or of the author of a link. Grafana escapes quotes in it and no
// backslashes, which are special to ClickHouse: so it is put between quotes with all but letters,
// digits and -_.~ encoded, and decoded in SQL.

// text is the value of a text box.
func text(name string) string { return "decodeURLComponent('${" + name + ":percentencode}')" }

// items are the picked values of a variable with choices, which Grafana writes as {a,b}. One that
// has a comma is found when it is the only one.
func items(name string) string {
	all := "replaceRegexpOne(" + text(name) + `, '(?s)^[{](.*)[}]$', '\\1')`
	return "arrayPushBack(splitByChar(',', " + all + "), " + all + ")"
}

// where is picked and inRange.
func where(names ...string) string { return "WHERE " + inRange + picked(names...) }

// choices returns the variables of those names, which picked knows.
func choices(names ...string) []grafana.Variable {
	all := map[string]grafana.Variable{
		"format": grafana.Choice("format", "Format", distinct("arrayJoin(formats)")),
		"agent":  grafana.Choice("agent", "Agent", spoken("if(agent_name = '', concat('(', format, ')'), agent_name)")),
		"model":  grafana.Choice("model", "Model", distinct("arrayJoin(models)")),
		"tenant": grafana.Choice("tenant", "Tenant", distinct("toString(tenant)")),

		"project": grafana.Choice("project", "Project", worked("project")),
		"version": grafana.Choice("version", "Agent version", worked("agent_version")),
		"tool":    grafana.Choice("tool", "Tool", worked("tool_name")),
	}
	out := []grafana.Variable{grafana.Datasource()}
	for _, n := range names {
		out = append(out, all[n])
	}
	return out
}

// spoke is the condition for rows of sessions with messages in the range.
// The table, not the view over it: that would first add up all conversations there
// ever were.
const spoke = "s.latest >= $__fromTime_ms AND s.began <= $__toTime_ms"

// distinct are the values that conversations in the range have, without reading
// their messages.
func distinct(what string) string {
	return sql(`
SELECT DISTINCT ` + what + ` AS value
FROM sessions AS s
WHERE ` + spoke + ` AND value != ''
ORDER BY value
LIMIT 500`)
}

// spoken are the values that messages in the range have, by slots. Conversations keep the name that an agent had before
// its own was known; slots do not.
func spoken(what string) string {
	return sql(`
SELECT DISTINCT ` + what + ` AS value
FROM messages_slots
WHERE ts >= $__fromTime_ms - INTERVAL 5 MINUTE AND ts <= $__toTime_ms AND messages > 0 AND kind != 'user' AND value != ''
ORDER BY value
LIMIT 500`)
}

// worked are the values that a column of the spans in the range has.
func worked(column string) string {
	return sql(`
SELECT DISTINCT toString(s.` + column + `) AS value
FROM spans AS s
WHERE s.ts >= $__fromTime_ms AND s.ts <= $__toTime_ms AND value != ''
ORDER BY value
LIMIT 500`)
}

// sql trims the line breaks around a query.
func sql(s string) string { return strings.TrimSpace(s) }

// The targets of links keep the data source and the range of time.
const carry = "&var-datasource=${datasource}&${__url_time_range}"

var (
	toTrace   = grafana.LinkTo("Show this trace", "/d/earshot-trace?var-trace_id=${__value.raw}"+carry)
	toSession = grafana.LinkTo("Show this conversation", "/d/earshot-sessions?var-session=${__value.raw}"+carry)
	// toTenantSession is for tables that have the tenant: several may have a conversation of the id.
	toTenantSession = grafana.LinkTo("Show this conversation", "/d/earshot-sessions?var-session=${__value.raw}&var-tenant=${__data.fields.Tenant}"+carry)
)

// durations are the sizes by which durations are counted, for a heatmap.
var durations = []struct{ name, ms string }{
	{"100 ms", "100"}, {"300 ms", "300"}, {"1 s", "1000"}, {"3 s", "3000"}, {"10 s", "10000"}, {"30 s", "30000"},
	{"1 min", "60000"}, {"3 min", "180000"}, {"10 min", "600000"}, {"30 min", "1800000"},
}

// buckets are columns that count durations by size.
func buckets(ms string) string {
	var b strings.Builder
	least := "-1"
	for _, x := range durations {
		b.WriteString("  countIf(" + ms + " > " + least + " AND " + ms + " <= " + x.ms + ") AS \"" + x.name + "\",\n")
		least = x.ms
	}
	b.WriteString("  countIf(" + ms + " > " + least + ") AS \"longer\"")
	return b.String()
}

// bucketsOf are the same columns, of a list of the counts.
func bucketsOf(counts string) string {
	var b strings.Builder
	for i, x := range durations {
		b.WriteString(counts + "[" + strconv.Itoa(i+1) + "] AS \"" + x.name + "\", ")
	}
	return b.String() + counts + "[" + strconv.Itoa(len(durations)+1) + "] AS \"longer\""
}

// failure is the condition for a failed message of v_messages: a call that a person
// denied, interrupted or cancelled is no failure.
const failure = "(is_error AND attributes['error_type'] NOT IN ('denied', 'interrupted', 'cancelled'))"
