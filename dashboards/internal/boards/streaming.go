package boards

import "github.com/earshot-dev/earshot/dashboards/internal/grafana"

// The pause before a message of a model is the time since the message before it in the same run, if that
// was less than a day ago: waiting for the first token, and thinking. A pause before a tool's result is the tool's.

// pausesOf are those in the slots of the array slots, which are of the condition. Of the conversations that have a message of a model in one, the
// messages of the slot's hour and of the day before are read, from the hour in which sessions has it begin: a window over all that other
// conversations have in it, or an hour of a conversation that had not begun, would cost a multiple. A conversation that sessions does not have yet has no first hour.
func pausesOf(condition string) string {
	const in = "kind IN ('assistant', 'reasoning', 'tool_call', 'delegation') AND toStartOfFiveMinutes(ts) IN (SELECT arrayJoin(slots))"
	const active = "messages WHERE toStartOfHour(ts) IN (SELECT arrayJoin(arrayDistinct(arrayMap(t -> toStartOfHour(t), slots)))) AND " + in
	return `
    SELECT ts, seq, format, agent_name, model, kind, session_id, pause_us
    FROM (
      SELECT *, dateDiff('microsecond', lagInFrame(ts, 1, ts) OVER (PARTITION BY tenant, session_id, run_id ORDER BY ts, seq), ts) AS since,
        toUInt64(if(since > 86400000000, 0, since)) AS pause_us
      FROM (
        SELECT tenant, ts, seq, format, agent_name, model, kind, session_id, run_id
        FROM messages FINAL
        PREWHERE (toStartOfHour(ts), session_id) IN (
          SELECT arrayJoin(arrayFilter(h -> h >= first, arrayDistinct(arrayFlatten(arrayMap(h -> arrayMap(i -> h - toIntervalHour(i), range(26)), hours))))), session_id
          FROM (SELECT session_id, groupUniqArray(toStartOfHour(ts)) AS hours FROM ` + active + ` GROUP BY session_id) AS a
          LEFT JOIN (SELECT session_id, toStartOfHour(min(began)) AS first FROM sessions WHERE session_id IN (SELECT session_id FROM ` + active + `) GROUP BY session_id) AS s USING session_id)
        WHERE run_id != '' AND kind NOT IN ('usage', 'stop', 'status')))
    WHERE ` + in + ` AND ` + condition
}

// The first slot and the last that have rows of the range.
const firstSlot, lastSlot = "toStartOfFiveMinutes(toDateTime($__fromTime_ms, 'UTC'))", "toStartOfFiveMinutes(toDateTime($__toTime_ms, 'UTC'))"

// wholeHours is the condition for the hours that are in the range as a whole.
func wholeHours(hour string) string {
	return hour + " >= toDateTime(intDiv(toUnixTimestamp64Milli($__fromTime_ms) + 3599999, 3600000) * 3600, 'UTC') AND " + hour + " < toStartOfHour(toDateTime($__toTime_ms, 'UTC'))"
}

// cutSlots are the slots that have rows which the table of slots leaves out.
func cutSlots(whole string) string {
	return "if(" + whole + ", [" + firstSlot + ", " + lastSlot + "], arrayMap(i -> " + firstSlot + " + toIntervalMinute(5 * i), range(toUInt32(intDiv(dateDiff('minute', " + firstSlot + ", " + lastSlot + "), 5) + 1))))"
}

// pauses is a table expression: the pauses of the range by slots, and where points is set by those that a
// point in time has whole.
func pauses(points bool) string {
	slots, rows, whole := inSlots, cut, whole
	if points {
		slots, rows = inSlots+" AND "+whole, cut+" OR NOT "+whole
	} else {
		whole = "true"
	}
	return `(
  SELECT ts AS at, format, agent_name, model, longest_us, pauses
  FROM pauses_slots
  WHERE ` + slots + `
  UNION ALL
  SELECT toDateTime(ts, 'UTC') AS at, format, agent_name, model, pause_us AS longest_us,
    arrayMap(i -> toUInt64(i = arrayFirstIndex(b -> pause_us <= b, arrayMap(ms -> ms * 1000, [100, 300, 1000, 3000, 10000, 30000, 60000, 180000, 600000, 1800000]))), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0]) AS pauses
  FROM (
    WITH ` + cutSlots(whole) + ` AS slots` + pausesOf(inRange+" AND ("+rows+")") + `))`
}

func streaming() *grafana.Dashboard {
	d := grafana.New("earshot-streaming", "Earshot / Streaming", "How soon models begin to answer, how fast they stream, and where they pause. Formats without a stream have no first token; their pauses between messages are here all the same.")
	d.Annotations.List = marks()
	d.Templating.List = choices("format", "agent", "model")
	vars := picked("format", "agent", "model")
	first := where("format", "agent", "model") + "\n  AND kind = 'chat' AND first_token_ms > 0"
	const none = "No response in this range has the time of its first token"
	const noLive = "No response in this range was captured live"
	const unfiltered = " The filters Agent and Model do not apply."
	filter := where("format")

	d.Row(4,
		grafana.Stat("First token, p50", "From the request to the first token.", "ms", sql(`
SELECT quantileExactOrNull(0.5)(first_token_ms) AS p50
FROM v_span_facts
`+first)).Compared(grafana.Lower).Empty("unknown").Width(6),
		grafana.Stat("First token, p95", "From the request to the first token.", "ms", sql(`
SELECT quantileExactOrNull(0.95)(first_token_ms) AS p95
FROM v_span_facts
`+first)).Compared(grafana.Lower).Empty("unknown").Width(6),
		grafana.Stat("Speed, p50", "Tokens a second between the first token and the end of a response.", "short", sql(`
SELECT quantileExactOrNull(0.5)((output_tokens + reasoning_tokens) * 1000 / (duration_ms - first_token_ms)) AS p50
FROM v_span_facts
`+first+`
  AND output_tokens + reasoning_tokens > 0 AND duration_ms > first_token_ms`)).Compared(grafana.Higher).Empty("unknown").Width(6),
		grafana.Stat("Longest wait for a model", "The longest pause before a message of a model, in this range.", "ms", sql(`
SELECT maxOrNull(longest_us) / 1000 AS wait
FROM `+pauses(false)+`
WHERE 1`+vars)).Compared(grafana.Lower).Empty("unknown").Width(6),
	)
	d.Row(8,
		grafana.Series("First token, p95 by model", "From the request to the first token.", "ms", sql(`
SELECT $__timeInterval(ts) AS time, model, quantileExact(0.95)(first_token_ms) AS p95
FROM v_span_facts
`+first+`
GROUP BY time, model
ORDER BY time, model`)).Every("1m").Empty(none),
		grafana.Series("Speed, p50 by model", "Tokens a second between the first token and the end of a response.", "short", sql(`
SELECT $__timeInterval(ts) AS time, model, quantileExact(0.5)((output_tokens + reasoning_tokens) * 1000 / (duration_ms - first_token_ms)) AS "tokens a second"
FROM v_span_facts
`+first+`
  AND output_tokens + reasoning_tokens > 0 AND duration_ms > first_token_ms
GROUP BY time, model
ORDER BY time, model`)).Every("1m").Empty(none),
	)
	d.Row(8,
		grafana.Heatmap("First token", "Responses by when they were asked for and how long the first token took.", sql(`
SELECT $__timeInterval(ts) AS time,
`+buckets("first_token_ms")+`
FROM v_span_facts
`+first+`
GROUP BY time
ORDER BY time`)).Every("5m").Empty(none),
		grafana.Heatmap("Pauses before a model's message", "Time since the message before it in the same run: waiting for the first token, and thinking.", sql(`
SELECT time, `+bucketsOf("counts")+`
FROM (
  SELECT $__timeInterval(at) AS time, sumForEach(pauses) AS counts
  FROM `+pauses(true)+`
  WHERE 1`+vars+`
  GROUP BY time)
ORDER BY time`)).Every("5m").Empty("No message of a model in this range"),
	)
	d.Row(4,
		grafana.Stat("First byte, p95", "From the request to the head of the response, as a tap or a client measures it."+unfiltered, "ms", sql(`
SELECT quantileExactOrNull(0.95)(first_byte_ms) AS p95
FROM v_streams
`+filter)).Compared(grafana.Lower).Empty("unknown").Width(6),
		grafana.Stat("Gap between chunks, p95", "Of the responses: the pause that 95 % of the pauses in 95 % of them do not exceed."+unfiltered, "ms", sql(`
SELECT quantileExactOrNull(0.95)(gap_p95_ms) AS p95
FROM v_streams
`+filter+`
  AND chunks > 1`)).Compared(grafana.Lower).Empty("unknown").Width(6),
		grafana.Stat("Longest stall", "The longest pause inside of one response."+unfiltered, "ms", sql(`
SELECT maxOrNull(longest_stall_ms) AS stall
FROM v_streams
`+filter)).Compared(grafana.Lower).Empty("unknown").Width(6),
		grafana.Stat("Buffered", "Slow responses whose events came all at once at their end: something between the agent and us seems to hold them back, such as a proxy that buffers or compresses."+unfiltered, "short", sql(`
SELECT countIf(buffered) AS responses
FROM v_streams
`+filter)).Compared(grafana.Lower).Empty("unknown").Width(6),
	)
	d.Row(8,
		grafana.Series("Longest stall of a response, p95 by source", "Pauses inside of a response, while its connection is open."+unfiltered, "ms", sql(`
SELECT $__timeInterval(ts) AS time, source, quantileExact(0.95)(longest_stall_ms) AS p95
FROM v_streams
`+filter+`
  AND chunks > 1
GROUP BY time, source
ORDER BY time, source`)).Every("1m").Empty(noLive),
		grafana.Series("Buffered responses by source", "Of a hundred responses, how many something on the way seems to have held back."+unfiltered, "percentunit", sql(`
SELECT $__timeInterval(ts) AS time, source, avg(buffered) AS buffered
FROM v_streams
`+filter+`
GROUP BY time, source
ORDER BY time, source`)).Every("1m").Empty(noLive),
	)
	d.Row(9, grafana.Table("Responses that stalled longest", "The fifty responses with the longest pause between two chunks."+unfiltered, sql(`
SELECT ts AS Asked, source AS Source, format AS Format, origin AS Origin, longest_stall_ms AS "Longest stall", gap_p95_ms AS "Gap, p95",
  first_event_ms AS "First event", duration_ms AS Duration, events AS Events, if(buffered, 'buffered', '') AS Held, session_id AS Session
FROM v_streams
`+filter+`
ORDER BY "Longest stall" DESC, stream, ts
LIMIT 50`)).Field("Longest stall", grafana.Unit("ms"), grafana.Gauge()).Field("Gap, p95", grafana.Unit("ms")).Field("First event", grafana.Unit("ms")).Field("Duration", grafana.Unit("ms")).
		Field("Session", toSession).Empty(noLive))
	d.Row(9, grafana.Table("Slowest first tokens", "The fifty responses that took longest to begin.", sql(`
SELECT ts AS Asked, model AS Model, `+agent+` AS Agent, first_token_ms AS "First token", duration_ms AS Duration, output_tokens + reasoning_tokens AS Tokens,
  session_id AS Session, trace_id AS Trace
FROM v_span_facts
`+first+`
ORDER BY "First token" DESC, Trace
LIMIT 50`)).Field("First token", grafana.Unit("ms"), grafana.Gauge()).Field("Duration", grafana.Unit("ms")).Field("Trace", toTrace).Field("Session", toSession).Empty(none))
	d.Row(9,
		grafana.Table("Longest pauses", "Messages of models that came long after the one before.", sql(`
WITH (
  SELECT (arraySlice(arraySort(x -> (-toInt64(x.us), x.ts, x.seq, x.session_id), groupArrayArray(longest)), 1, 50), groupUniqArrayIf(ts, empty(longest)))
  FROM (
    SELECT ts, longest
    FROM pauses_hours
    WHERE `+wholeHours("ts")+vars+`
    ORDER BY longest_us DESC LIMIT 50 WITH TIES)) AS known,
if(length(known.1) = 50, known.1[50].us, 0) AS least,
(
  SELECT groupArray(ts)
  FROM (
    SELECT ts, NOT has(known.2, toStartOfHour(ts)) AS cut, rank() OVER (PARTITION BY cut ORDER BY longest_us DESC) AS place
    FROM pauses_slots
    WHERE ts >= `+firstSlot+` AND ts <= `+lastSlot+` AND longest_us >= least AND (NOT (`+wholeHours("toStartOfHour(ts)")+`) OR has(known.2, toStartOfHour(ts)))`+vars+`)
  WHERE cut OR place <= 50) AS slots,
(
  SELECT arraySlice(arraySort(x -> (-toInt64(x.1), x.2, x.3, x.4), arrayConcat(known.1, groupArray((pause_us, ts, seq, session_id)))), 1, 50)
  FROM (
    SELECT *
    FROM (`+pausesOf("pause_us >= least AND "+inRange+vars)+`)
    ORDER BY pause_us DESC, ts, seq
    LIMIT 50)) AS longest
SELECT m.ts AS Time, l.x.1 / 1000 AS Pause, m.kind AS Kind, m.model AS Model, `+agent+` AS Agent, m.session_id AS Session, m.trace_id AS Trace
FROM v_messages AS m
JOIN (SELECT arrayJoin(longest) AS x) AS l ON m.session_id = l.x.4 AND m.ts = l.x.2 AND m.seq = l.x.3
WHERE (toStartOfHour(m.ts), m.session_id) IN (SELECT toStartOfHour(x.2), x.4 FROM (SELECT arrayJoin(longest) AS x)) AND m.ts IN (SELECT arrayJoin(longest).2)
ORDER BY Pause DESC, message_id
LIMIT 50`)).Field("Pause", grafana.Unit("ms"), grafana.Gauge()).Field("Trace", toTrace).Field("Session", toSession).Width(12).Empty("No message of a model in this range"),
		grafana.Table("Stalled now", "Open spans with a verdict that is neither healthy nor a wait for a person.", sql(`
SELECT kind AS Kind, name AS What, `+agent+` AS Agent, silent_ms AS Silent, age_ms AS Age, session_id AS Session, trace_id AS Trace
FROM v_open_spans
WHERE `+leaves("stuck")+pickedOpen("format", "agent", "model")+`
ORDER BY Silent DESC, Trace
LIMIT 50`)).Field("Silent", grafana.Unit("ms")).Field("Age", grafana.Unit("ms")).Field("Trace", toTrace).Field("Session", toSession).Width(12).Empty("Nothing is stalled"),
	)
	return d
}
