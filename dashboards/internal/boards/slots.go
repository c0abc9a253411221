package boards

import "strings"

// Over a long range, counts are read from slots of five minutes and not from the rows, and they
// add up to the same: the slots that the ends of the range cut are counted from the rows, and
// all of it is where a point in time is no multiple of a slot.
const (
	slotsFrom = "toDateTime(intDiv(toUnixTimestamp64Milli($__fromTime_ms) + 299999, 300000) * 300, 'UTC')"
	slotsTo   = "toDateTime(intDiv(toUnixTimestamp64Milli($__toTime_ms), 300000) * 300, 'UTC')"
	inSlots   = "ts >= " + slotsFrom + " AND ts < " + slotsTo
	cut       = "ts < " + slotsFrom + " OR ts >= " + slotsTo
	whole     = "$__interval_s % 300 = 0"
)

// counting are the columns of a table of slots, each with its value of a slot and of a row. The time is at, since
// a column that has the name of its source would replace that in conditions.
type counting struct {
	slots, rows             string // tables
	slotsFilter, rowsFilter string
	lacks                   []string // variables that slots do not have: when one is picked, the rows are read
	columns                 map[string][2]string
}

var countedMessages = counting{
	slots: "messages_slots", rows: "v_messages",
	columns: map[string][2]string{
		"at": {"ts", "toDateTime(ts, 'UTC')"}, "messages": {"messages", "toUInt64(1)"}, "visible": {"messages - hidden", "toInt64(NOT hidden)"}, "sessions": {"sessions", "initializeAggregation('uniqState', session_id)"},
	},
}

const active = "toUInt64(round((duration_ms - waited_ms) * 1e6))" // of a row of v_tool_calls, in nanoseconds

// countedCalls are calls that have ended, without delegations and the framework's own. A call that
// only waited for a person has no tool time: it is not in times.
var countedCalls = counting{
	slots: "tool_calls_slots", rows: "v_tool_calls", slotsFilter: " AND NOT is_delegation AND NOT internal", rowsFilter: " AND NOT is_delegation AND NOT internal AND status != 'running'",
	lacks: []string{"project", "version"},
	columns: map[string][2]string{
		"at": {"ts", "toDateTime(ts, 'UTC')"}, "calls": {"calls", "toUInt64(1)"}, "errors": {"errors", "toUInt64(status = 'error')"}, "cancelled": {"cancelled", "toUInt64(status = 'cancelled')"},
		"retries": {"retries", "toUInt64(attempt > 1)"}, "together": {"duration_ns - waited_ns", "toInt64(" + active + ")"}, "waited": {"waited_ns", "toUInt64(round(waited_ms * 1e6))"},
		"results": {"result_bytes", "toUInt64(result_bytes)"}, "largest": {"largest_result", "toUInt64(result_bytes)"},
		"longest":  {"active_ns[-1]", active},
		"times":    {"active_ns", "if(waits_for = '' OR waited_ms < duration_ms, [" + active + "], [])"},
		"sessions": {"sessions", "initializeAggregation('uniqState', session_id)"},
	},
}

// in is a table expression with those columns of the range. When points is set the query groups by
// points in time.
func (c counting) in(points bool, columns ...string) string {
	slots, rows := inSlots, cut
	if points {
		slots, rows = inSlots+" AND "+whole, cut+" OR NOT "+whole
	}
	slots, rows = slots+c.without(" AND "), rows+c.without(" OR NOT ")
	var ofSlot, ofRow []string
	for _, name := range columns {
		value, ok := c.columns[name]
		if !ok {
			value = [2]string{name, name}
		}
		for i, list := range []*[]string{&ofSlot, &ofRow} {
			v := value[i]
			if v != name {
				v += " AS " + name
			}
			*list = append(*list, v)
		}
	}
	return `(
  SELECT ` + strings.Join(ofSlot, ", ") + `
  FROM ` + c.slots + `
  WHERE ` + slots + c.slotsFilter + `
  UNION ALL
  SELECT ` + strings.Join(ofRow, ", ") + `
  FROM ` + c.rows + `
  WHERE ` + inRange + ` AND (` + rows + `)` + c.rowsFilter + picked(c.lacks...) + `)`
}

// without is the condition that no variable is picked that slots do not have.
func (c counting) without(before string) string {
	var b strings.Builder
	for _, v := range c.lacks {
		b.WriteString(before + "($__conditionalAll(1 = 0, $" + v + "))")
	}
	return b.String()
}

// slowest is the WITH of slow: the time that fifty calls of the slots took at least, and the hours of the slots that have such a call.
func (c counting) slowest(condition string) string {
	return `WITH (
  SELECT (if(count() < 50, 0, min(longest)), groupUniqArray(toStartOfHour(ts)))
  FROM (
    SELECT ts, active_ns[-1] AS longest
    FROM ` + c.slots + `
    WHERE ` + inSlots + c.without(" AND ") + c.slotsFilter + condition + `
    ORDER BY longest DESC LIMIT 50 WITH TIES)) AS slow`
}
