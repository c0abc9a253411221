package boards

import "github.com/earshot-dev/earshot/dashboards/internal/grafana"

// waits are the pauses before each message of a model: the time since the message
// before it in the same run. A pause before a tool's result is the tool's.
const waits = `SELECT *, dateDiff('microsecond', before, ts) / 1000 AS wait_ms
  FROM (
    SELECT *, lagInFrame(ts, 1, ts) OVER (PARTITION BY session_id, run_id ORDER BY ts, seq) AS before
    FROM v_messages
    WHERE $__timeFilter_ms(ts) AND run_id != '' AND kind NOT IN ('usage', 'stop', 'status'))
  WHERE kind IN ('assistant', 'reasoning', 'tool_call', 'delegation')`

func streaming() *grafana.Dashboard {
	d := grafana.New("earshot-streaming", "Earshot / Streaming", "How soon models begin to answer, how fast they go on, and where they pause. Formats without a stream tell no first token; their pauses between messages are here all the same.")
	d.Templating.List = append(choices("format", "agent", "model"), stuckAfter())
	vars := picked("format", "agent", "model")
	first := where("format", "agent", "model") + "\n  AND kind = 'chat' AND first_token_ms > 0"
	const none = "No response in this range told when its first token came"

	d.Row(4,
		grafana.Stat("First token, p50", "From the request to the first token.", "ms", sql(`
SELECT quantileExactOrNull(0.5)(first_token_ms) AS p50
FROM v_spans
`+first)).Empty("unknown").Width(6),
		grafana.Stat("First token, p95", "From the request to the first token.", "ms", sql(`
SELECT quantileExactOrNull(0.95)(first_token_ms) AS p95
FROM v_spans
`+first)).Empty("unknown").Width(6),
		grafana.Stat("Speed, p50", "Tokens a second between the first token and the end of a response.", "short", sql(`
SELECT quantileExactOrNull(0.5)(output_tokens * 1000 / (duration_ms - first_token_ms)) AS p50
FROM v_spans
`+first+`
  AND output_tokens > 0 AND duration_ms > first_token_ms`)).Empty("unknown").Width(6),
		grafana.Stat("Longest wait for a model", "The longest pause before a message of a model, in this range.", "ms", sql(`
SELECT max(wait_ms) AS wait
FROM (
  `+waits+`)
WHERE 1`+vars)).Empty("unknown").Width(6),
	)
	d.Row(8,
		grafana.Series("First token, p95 by model", "From the request to the first token.", "ms", sql(`
SELECT $__timeInterval(ts) AS time, model, quantileExact(0.95)(first_token_ms) AS p95
FROM v_spans
`+first+`
GROUP BY time, model
ORDER BY time, model`)).Every("1m").Empty(none),
		grafana.Series("Speed, p50 by model", "Tokens a second between the first token and the end of a response.", "short", sql(`
SELECT $__timeInterval(ts) AS time, model, quantileExact(0.5)(output_tokens * 1000 / (duration_ms - first_token_ms)) AS "tokens a second"
FROM v_spans
`+first+`
  AND output_tokens > 0 AND duration_ms > first_token_ms
GROUP BY time, model
ORDER BY time, model`)).Every("1m").Empty(none),
	)
	d.Row(8,
		grafana.Heatmap("First token", "Responses by when they were asked for and how long the first token took.", sql(`
SELECT $__timeInterval(ts) AS time,
`+buckets("first_token_ms")+`
FROM v_spans
`+first+`
GROUP BY time
ORDER BY time`)).Every("5m").Empty(none),
		grafana.Heatmap("Pauses before a model's message", "Time since the message before it in the same run: waiting for the first token, and thinking.", sql(`
SELECT $__timeInterval(ts) AS time,
`+buckets("wait_ms")+`
FROM (
  `+waits+`)
WHERE 1`+vars+`
GROUP BY time
ORDER BY time`)).Every("5m").Empty("No message of a model in this range"),
	)
	d.Row(9, grafana.Table("Slowest first tokens", "The fifty responses that took longest to begin.", sql(`
SELECT ts AS Asked, model AS Model, `+agent+` AS Agent, first_token_ms AS "First token", duration_ms AS Duration, output_tokens AS Tokens,
  session_id AS Session, trace_id AS Trace
FROM v_spans
`+first+`
ORDER BY "First token" DESC, Trace
LIMIT 50`)).Field("First token", grafana.Unit("ms"), grafana.Gauge()).Field("Duration", grafana.Unit("ms")).Field("Trace", toTrace).Field("Session", toSession).Empty(none))
	d.Row(9,
		grafana.Table("Longest pauses", "Messages of models that came long after the one before.", sql(`
SELECT ts AS Time, wait_ms AS Pause, kind AS Kind, model AS Model, `+agent+` AS Agent, session_id AS Session, trace_id AS Trace
FROM (
  `+waits+`)
WHERE 1`+vars+`
ORDER BY Pause DESC, message_id
LIMIT 50`)).Field("Pause", grafana.Unit("ms"), grafana.Gauge()).Field("Trace", toTrace).Field("Session", toSession).Width(12).Empty("No message of a model in this range"),
		grafana.Table("Stalled now", "What runs and has said nothing for longer than the variable says.", sql(`
SELECT kind AS Kind, name AS What, `+agent+` AS Agent, silent_ms AS Silent, age_ms AS Age, session_id AS Session, trace_id AS Trace
FROM v_open_spans
WHERE `+stuck+picked("format", "agent")+`
ORDER BY Silent DESC, Trace
LIMIT 50`)).Field("Silent", grafana.Unit("ms")).Field("Age", grafana.Unit("ms")).Field("Trace", toTrace).Field("Session", toSession).Width(12).Empty("Nothing is stalled"),
	)
	return d
}
