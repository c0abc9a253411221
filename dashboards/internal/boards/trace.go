package boards

import "github.com/earshot-dev/earshot/dashboards/internal/grafana"

// shown is the trace that is shown: the one that a link brought, or the latest in
// the range.
var shown = `if(` + text("trace_id") + ` != '', ` + text("trace_id") + `,
    (SELECT argMax(trace_id, (ts, trace_id)) FROM (
      SELECT ts, trace_id FROM v_span_facts
      WHERE ` + text("trace_id") + ` = '' AND $__timeFilter_ms(ts) AND root
      UNION ALL
      SELECT Timestamp AS ts, TraceId AS trace_id FROM agent_spans FINAL
      WHERE ` + text("trace_id") + ` = '' AND $__timeFilter_ms(Timestamp) AND ParentSpanId = '')))`

// ofTrace are the conditions for rows of that trace. Its time is looked up, so that the
// link works in any time range.
var ofTrace = `WITH ` + shown + ` AS shown,
  (SELECT (min(a), max(b) + 1) FROM (
    SELECT Start AS a, End AS b FROM otel_traces_trace_id_ts WHERE TraceId = shown
    UNION ALL
    SELECT toDateTime(ts, 'UTC'), toDateTime(ts, 'UTC') FROM open_spans FINAL WHERE trace_id = shown)) AS bounds, bounds.1 AS began, bounds.2 AS ended
`

// inTrace is the condition for spans, which begin by then.
var inTrace = `trace_id = shown AND ts >= began AND ts <= ended`

// steps is a table expression: the spans of the trace, those that run among them.
var steps = `(
  SELECT toString(kind) AS kind, status FROM v_spans WHERE ` + inTrace + `
  UNION ALL
  SELECT toString(kind), 'running' FROM open_spans FINAL WHERE trace_id = shown)`

// saidInTrace is the condition for messages, the last of which come when the last
// span ends; the table knows only when it begins.
var saidInTrace = `trace_id = shown AND ts >= began AND ts <= ended + INTERVAL 7 DAY`

// The types of a span's events and links, whose names are those of the trace panel. It takes times in milliseconds.
const (
	events     = "Array(Tuple(name String, timestamp Float64, fields Array(Map(String, String))))"
	references = `Array(Tuple("traceID" String, "spanID" String, tags Array(Map(String, String))))`
)

func trace() *grafana.Dashboard {
	d := grafana.New("earshot-trace", "Earshot / Trace", "One turn: its waterfall, where its time was spent, and its messages.")
	d.Templating.List = append(choices(), grafana.Text("trace_id", "Trace", "A trace id; the latest turn of the range when empty"))
	d.Refresh = ""

	d.Row(3,
		grafana.Stat("Duration", "From the prompt to the end of the turn, or until now while it runs.", "ms", sql(ofTrace+`
SELECT duration
FROM (
  SELECT ts, duration_ms AS duration FROM v_spans WHERE `+inTrace+` AND parent_span_id = ''
  UNION ALL
  SELECT ts, toFloat64(age_ms) FROM v_open_spans WHERE trace_id = shown AND parent_span_id = '')
ORDER BY ts LIMIT 1`)).Empty("not found"),
		grafana.Stat("Spans", "Steps: runs, responses of models, tool calls, delegations; those that run, too.", "short", sql(ofTrace+`
SELECT count() AS spans
FROM `+steps)).Empty("0"),
		grafana.Stat("Failed", "Spans that ended in an error.", "short", sql(ofTrace+`
SELECT countIf(status = 'error') AS failed
FROM `+steps)).Warn(1, 5).Empty("0"),
		grafana.Stat("Agents", "Runs of agents in this turn; those that run, too.", "short", sql(ofTrace+`
SELECT countIf(kind = 'run') AS runs
FROM `+steps)).Empty("0"),
		grafana.Stat("Tokens", "Tokens of the turn and of all agents below it, each counted once.", "short", sql(ofTrace+`
SELECT sum(tokens) AS tokens
FROM v_usage
WHERE `+saidInTrace)).Empty("unknown"),
		grafana.Stat("Cost", "As the records of responses state it, else at list prices; models and tiers without a price are left out.", "currencyUSD", sql(ofTrace+`
SELECT sum(cost_picodollars) / 1e12 AS cost
FROM v_usage
WHERE `+saidInTrace)).Empty("unknown"),
	)
	d.Row(18, grafana.Traces("Waterfall", "Spans that have ended, and those that still run as long as they are old.", sql(ofTrace+`
SELECT TraceId AS traceID, SpanId AS spanID, ParentSpanId AS parentSpanID, if(AgentName = '', ServiceName, AgentName) AS serviceName,
  SpanName AS operationName, toUnixTimestamp64Micro(Timestamp) / 1000 AS startTime, Duration / 1e6 AS duration,
  arrayMap(k -> map('key', k, 'value', SpanAttributes[k]), mapKeys(SpanAttributes)) AS tags,
  arrayMap(k -> map('key', k, 'value', ResourceAttributes[k]), mapKeys(ResourceAttributes)) AS serviceTags,
  if(StatusCode = 'Error', 2, 0) AS statusCode, StatusMessage AS statusMessage, lower(SpanKind) AS kind,
  arrayMap((name, at, of) -> (name, toUnixTimestamp64Micro(toDateTime64(at, 6)) / 1000, arrayMap(k -> map('key', k, 'value', of[k]), mapKeys(of))), Events.Name, Events.Timestamp, Events.Attributes)::`+events+` AS logs,
  arrayMap((trace, span, of) -> (trace, span, arrayMap(k -> map('key', k, 'value', of[k]), mapKeys(of))), Links.TraceId, Links.SpanId, Links.Attributes)::`+references+` AS references
FROM otel_traces FINAL
WHERE TraceId = shown AND Timestamp >= began AND Timestamp <= ended
UNION ALL
SELECT trace_id AS traceID, toString(span_id) AS spanID, parent_span_id AS parentSpanID, if(agent_name = '', source, agent_name) AS serviceName,
  concat(name, ' (running)') AS operationName, toUnixTimestamp64Micro(ts) / 1000 AS startTime, toFloat64(age_ms) AS duration,
  [map('key', 'earshot.span.state', 'value', 'open'), map('key', 'silent_ms', 'value', toString(silent_ms))] AS tags,
  [map('key', 'service.name', 'value', toString(source))] AS serviceTags,
  0 AS statusCode, '' AS statusMessage, 'internal' AS kind, []::`+events+` AS logs, []::`+references+` AS references
FROM v_open_spans
WHERE trace_id = shown
ORDER BY startTime, spanID
LIMIT 10000`)).Empty("No such trace"))
	d.Row(9,
		grafana.Table("Critical path", "The steps that the turn waited for, in order. A span's time here is the part of it that nothing below it accounts for, a person's turn included; the column adds up to the turn's duration. Calls with \"or\" between them were reported together, and which of them took the time is not known. Work in the background is here only where somebody waited for it, and steps that still run are not.", sql(criticalPath+`
SELECT fromUnixTimestamp64Nano(min(since + off)) AS Since, repeat('· ', minIf(depth, NOT own)) || any(label) AS What, any(agent) AS Agent, any(kind) AS Kind,
  any(status) AS Status, sumIf(until - since, own) / 1e6 AS Time, sumIf(until - since, NOT own) / 1e6 AS Total, sum(waited) / 1e6 AS "Waited for a person"
FROM visits
GROUP BY id, visit
ORDER BY Since, minIf(depth, NOT own), What
LIMIT 1000`)).Field("Time", grafana.Unit("ms"), grafana.Gauge()).Field("Total", grafana.Unit("ms")).Field("Waited for a person", grafana.Unit("ms")).
			Field("Status", grafana.Red("error")).Width(16).Empty("No step of this trace has ended"),
		grafana.BarGauge("Where the time went", "The critical path by bucket: models streaming, tools, agents between their steps, a person who was waited for.", "ms", sql(criticalPath+`
SELECT part.1 AS what, sum(part.2) / 1e6 AS time
FROM (SELECT arrayJoin([(concat(kind, ' ', agent), until - since - waited), ('waiting for a person', waited)]) AS part FROM visits WHERE own)
GROUP BY what
HAVING time > 0
ORDER BY time DESC, what
LIMIT 25`)).Width(8).Empty("No step of this trace has ended"),
	)
	d.Row(14, grafana.Table("Messages", "The messages of this turn, of all agents, in order; long texts are cut.", sql(ofTrace+`
SELECT ts AS Time, kind AS Kind, `+agent+` AS Agent, if(tool_name = '', model, tool_name) AS "Tool or model",
  substringUTF8(multiIf(content != '', content, delegate_task != '', delegate_task, tool_arguments), 1, 1000) AS Text,
  `+failure+` AS Failed, session_id AS Session
FROM v_messages
WHERE `+saidInTrace+` AND kind NOT IN ('status', 'usage', 'stop')
ORDER BY ts, seq
LIMIT 2000`)).Field("Text", grafana.Columns(700)).Field("Session", toSession, grafana.Columns(120)).Field("Kind", grafana.Columns(130)).
		Field("Time", grafana.Columns(180)).Field("Failed", grafana.Red("true")).Empty("No message in this trace"))
	d.Row(8, grafana.Table("Turns in this range", "The latest turns, to pick another.", sql(`
SELECT ts AS Started, `+agent+` AS Agent, status AS Status, duration_ms AS Duration, model AS Model, session_id AS Session, trace_id AS Trace
FROM v_span_facts
WHERE `+inRange+` AND root AND ts >= (
  SELECT min(ts)
  FROM (
    SELECT ts
    FROM v_span_facts
    WHERE `+inRange+` AND root
    ORDER BY ts DESC LIMIT 100))
ORDER BY Started DESC, Trace
LIMIT 100`)).Field("Duration", grafana.Unit("ms")).Field("Status", grafana.Red("error")).Field("Trace", toTrace).Field("Session", toSession).
		Empty("No turn in this range"))
	return d
}
