package boards

import "github.com/earshot-dev/earshot/dashboards/internal/grafana"

func tools() *grafana.Dashboard {
	d := grafana.New("earshot-tools", "Earshot / Tools", "Which tools agents call, how long they take, how often they fail, and how much they return.")
	d.Templating.List = choices("format", "agent", "model")
	chosen := where("format", "agent", "model") + "\n  AND NOT is_delegation AND NOT internal"
	done := chosen + "\n  AND status != 'running'"
	// A call that only waited for a person has no tool time, and in a call that asked
	// first the wait is not the tool's time.
	timed := done + "\n  AND (waits_for = '' OR waited_ms < duration_ms)"
	busiest := `
  AND tool_name IN (
    SELECT tool_name
    FROM v_tool_calls
    ` + chosen + `
    GROUP BY tool_name ORDER BY count() DESC, tool_name LIMIT 10)`

	d.Row(4,
		grafana.Stat("Calls", "Calls that began in this range, without delegations and the framework's own.", "short", sql(`
SELECT count() AS calls
FROM v_tool_calls
`+chosen)).Empty("none"),
		grafana.Stat("Failed", "Share of the finished calls that ended in an error. Denied and cancelled ones are no errors.", "percentunit", sql(`
SELECT countIf(status = 'error') / nullIf(count(), 0) AS failed
FROM v_tool_calls
`+done)).Warn(0.05, 0.2).Empty("no calls"),
		grafana.Stat("p95", "Nineteen of twenty finished calls took no longer. The time in which a person was waited for is not a tool's.", "ms", sql(`
SELECT quantileExactOrNull(0.95)(duration_ms - waited_ms) AS p95
FROM v_tool_calls
`+timed)).Empty("no calls"),
		grafana.Stat("Time in tools", "Durations of all finished calls, added up, without the time in which a person was waited for.", "ms", sql(`
SELECT sum(duration_ms - waited_ms) AS together
FROM v_tool_calls
`+done)).Empty("none"),
		grafana.Stat("Brought back", "Size of all results.", "bytes", sql(`
SELECT sum(result_bytes) AS results
FROM v_tool_calls
`+done)).Empty("none"),
		grafana.Stat("Running", "Running tool calls, independent of the time range.", "short", sql(`
SELECT count() AS running
FROM v_open_spans
WHERE kind = 'tool'`+picked("format", "agent"))).Empty("0"),
	)
	d.Row(8,
		grafana.Bars("Calls", "The ten tools with the most calls.", "short", sql(`
SELECT $__timeInterval(ts) AS time, tool_name AS tool, count() AS calls
FROM v_tool_calls
`+chosen+busiest+`
GROUP BY time, tool
ORDER BY time, tool`)).Every("1m").Empty("No tool was called in this range"),
		grafana.Bars("Errors", "Failed calls by tool.", "short", sql(`
SELECT $__timeInterval(ts) AS time, tool_name AS tool, count() AS errors
FROM v_tool_calls
`+chosen+`
  AND status = 'error'
GROUP BY time, tool
ORDER BY time, tool`)).Every("1m").Empty("No call failed in this range"),
	)
	d.Row(8,
		grafana.Series("p95 by tool", "The ten tools with the most calls.", "ms", sql(`
SELECT $__timeInterval(ts) AS time, tool_name AS tool, quantileExact(0.95)(duration_ms - waited_ms) AS p95
FROM v_tool_calls
`+timed+busiest+`
GROUP BY time, tool
ORDER BY time, tool`)).Every("1m").Empty("No call finished in this range"),
		grafana.Heatmap("How long calls take", "Finished calls by when they began and how long they took.", sql(`
SELECT $__timeInterval(ts) AS time,
`+buckets("(duration_ms - waited_ms)")+`
FROM v_tool_calls
`+timed+`
GROUP BY time
ORDER BY time`)).Every("5m").Empty("No call finished in this range"),
	)
	d.Row(10, grafana.Table("By tool", "Finished calls; their times without those in which a person was waited for. A retry is a call that follows a failed call of the same tool in the same run.", sql(`
SELECT tool_name AS Tool, count() AS Calls, countIf(status = 'error') / count() AS Failed, countIf(status = 'cancelled') AS Cancelled,
  countIf(before = 'error') AS Retries,
  quantileExact(0.5)(duration_ms - waited_ms) AS p50, quantileExact(0.95)(duration_ms - waited_ms) AS p95,
  quantileExact(0.99)(duration_ms - waited_ms) AS p99, max(duration_ms - waited_ms) AS Longest,
  sum(duration_ms - waited_ms) AS Together, sum(waited_ms) AS "Waited for a person", avg(result_bytes) AS "Mean result", max(result_bytes) AS "Largest result", uniqExact(session_id) AS Sessions
FROM (
  SELECT *, lagInFrame(status) OVER (PARTITION BY session_id, run_id, tool_name ORDER BY ts, span_id) AS before
  FROM v_tool_calls
  `+done+`)
GROUP BY Tool
ORDER BY Together DESC, Tool
LIMIT 200`)).Field("Failed", grafana.Unit("percentunit")).Field("p50", grafana.Unit("ms")).Field("p95", grafana.Unit("ms")).Field("p99", grafana.Unit("ms")).
		Field("Longest", grafana.Unit("ms")).Field("Together", grafana.Unit("ms"), grafana.Gauge()).Field("Waited for a person", grafana.Unit("ms")).
		Field("Mean result", grafana.Unit("bytes")).Field("Largest result", grafana.Unit("bytes")).
		Empty("No call finished in this range"))
	by := func(title, column, expression string) *grafana.Panel {
		return grafana.Table(title, "Finished calls, the most time first.", sql(`
SELECT `+expression+` AS "`+column+`", count() AS Calls, countIf(status = 'error') / count() AS Failed,
  quantileExact(0.95)(duration_ms - waited_ms) AS p95, sum(duration_ms - waited_ms) AS Together
FROM v_tool_calls
`+done+`
GROUP BY "`+column+`"
ORDER BY Together DESC, "`+column+`"
LIMIT 100`)).Field("Failed", grafana.Unit("percentunit")).Field("p95", grafana.Unit("ms")).Field("Together", grafana.Unit("ms")).
			Width(8).Empty("No call finished in this range")
	}
	d.Row(8,
		by("By agent", "Agent", agent),
		by("By model", "Model", "if(model = '', 'unknown', model)"),
		by("By MCP server", "Server", "if(mcp_server = '', 'none', mcp_server)"),
	)
	d.Row(9,
		grafana.Table("Slowest calls", "The fifty longest finished calls, without the time in which a person was waited for.", sql(`
SELECT ts AS Started, tool_name AS Tool, `+agent+` AS Agent, status AS Status, duration_ms - waited_ms AS Duration,
  waited_ms AS Waited, result_bytes AS Result,
  session_id AS Session, trace_id AS Trace
FROM v_tool_calls
`+done+`
ORDER BY Duration DESC, span_id
LIMIT 50`)).Field("Duration", grafana.Unit("ms"), grafana.Gauge()).Field("Waited", grafana.Unit("ms")).Field("Result", grafana.Unit("bytes")).Field("Status", grafana.Red("error")).
			Field("Trace", toTrace).Field("Session", toSession).Width(16).Empty("No call finished in this range"),
		grafana.BarGauge("Why calls end badly", "Failed and cancelled calls by reason.", "short", sql(`
SELECT concat(status, ' ', error_type) AS reason, count() AS calls
FROM v_tool_calls
`+done+`
  AND status IN ('error', 'cancelled')
GROUP BY reason
ORDER BY calls DESC, reason
LIMIT 20`)).Width(8).Empty("Every call succeeded"),
	)
	return d
}
