package boards

import "github.com/earshot-dev/earshot/dashboards/internal/grafana"

// found is the condition that a conversation has the words of the variable. They are looked for in the last
// day of the range, in its last week if fewer conversations than a list has them, and then in all of it.
var found = `(` + text("search") + ` = '' OR session_id = ` + text("search") + ` OR (tenant, session_id) IN (
    SELECT tenant, session_id
    FROM v_messages
    WHERE ` + hasWords + ` AND ts >= multiIf(` + enoughIn("1 DAY") + `, $__toTime_ms - INTERVAL 1 DAY, ` + enoughIn("7 DAY", "1 DAY") + `, $__toTime_ms - INTERVAL 7 DAY, $__fromTime_ms)))`

const mostConversations = "1000"

var hasWords = text("search") + ` != '' AND $__timeFilter_ms(ts) AND hasAllTokens(lower(content), tokens(lower(` + text("search") + `)))`

// enoughIn is whether enough conversations have the words in the end of the range. It is not
// looked up when there are enough in one of the shorter ends.
func enoughIn(end string, shorter ...string) string {
	not := ""
	for _, s := range shorter {
		not += " AND NOT " + enoughIn(s)
	}
	return `(SELECT uniq(tenant, session_id) >= ` + mostConversations + ` FROM v_messages WHERE ` + hasWords + ` AND ts >= $__toTime_ms - INTERVAL ` + end + not + `)`
}

// conversation is the conversation that is shown, of one tenant: the one that was picked, or
// the one that was asked something last in the range. When it was is looked up, so
// that nothing else is read. Of several tenants that have one of that id it is the picked one's, else the one that was asked last.
var conversation = `WITH (SELECT argMax((toString(tenant), session_id), (asked, session_id, tenant)) FROM sessions
    WHERE if(` + text("session") + ` != '', session_id = ` + text("session") + `, asked >= $__fromTime_ms AND asked <= $__toTime_ms)` + picked("tenant") + `) AS conversation,
  conversation.1 AS owner, conversation.2 AS shown,
  (SELECT min(began) - INTERVAL 1 HOUR FROM sessions WHERE tenant = owner AND session_id = shown) AS since,
  (SELECT max(latest) + INTERVAL 1 HOUR FROM sessions WHERE tenant = owner AND session_id = shown) AS until
`

// ofConversation is the condition for rows of that conversation.
var ofConversation = `tenant = owner AND session_id = shown AND ts >= since AND ts <= until`

// candidates are the conversations that a list of the latest may have. Only their
// messages are read, and only since the first of them began.
var candidates = `
    SELECT tenant, session_id, began
    FROM (
      SELECT tenant, session_id, min(s.began) AS began, coalesce(max(s.last_at), max(s.latest)) AS latest,
        groupUniqArrayArray(s.formats) AS formats, groupUniqArrayArray(s.agents) AS agents
      FROM sessions AS s
      WHERE ` + spoke + `
      GROUP BY tenant, session_id)
    WHERE 1` + picked("tenant") + `
      AND $__conditionalAll(hasAny(formats, ` + items("format") + `), $format)
      AND $__conditionalAll(hasAny(arrayMap(a -> if(a = '', concat('(', formats[1], ')'), a), agents), ` + items("agent") + `), $agent)
      AND ` + found + `
    ORDER BY latest DESC, session_id
    LIMIT ` + mostConversations

func sessions() *grafana.Dashboard {
	d := grafana.New("earshot-sessions", "Earshot / Sessions", "Conversations: find one, and read it turn by turn.")
	d.Templating.List = append(choices("format", "agent", "tenant"),
		grafana.Text("search", "Words", "Conversations in which one message has all these words: of the last day, and of a longer time while they are fewer than a thousand"),
		grafana.Text("session", "Session", "The conversation below; the latest when empty. Where several tenants have one of that id, the picked tenant's"),
		grafana.OneOf("steps", "Internal steps", grafana.Option{Text: "hidden", Value: "0"}, grafana.Option{Text: "shown", Value: "1"}))
	chosen := where("format", "agent", "tenant")

	d.Row(8,
		grafana.Bars("Active conversations", "Conversations with a message, by when; one that is hidden counts, too.", "short", sql(`
SELECT time, format, sum(n) AS sessions
FROM (
  SELECT $__timeInterval(at) AS time, format, uniqMerge(sessions) AS n
  FROM `+countedMessages.in(true, "at", "tenant", "format", "agent_name", "sessions")+`
  WHERE 1`+picked("format", "agent", "tenant")+`
  GROUP BY time, tenant, format)
GROUP BY time, format
ORDER BY time, format`)).Every("5m").Empty("No messages in this range"),
		grafana.Bars("Messages", "By kind, without those that a conversation hides: handshakes, bookkeeping.", "short", sql(`
SELECT $__timeInterval(at) AS time, kind, sum(visible) AS messages
FROM `+countedMessages.in(true, "at", "tenant", "format", "agent_name", "kind", "visible")+`
WHERE 1`+picked("format", "agent", "tenant")+`
GROUP BY time, kind
HAVING messages > 0
ORDER BY time, kind`)).Every("5m").Empty("No messages in this range"),
	)
	d.Row(11, grafana.Table("Conversations", "With a message in this range; the numbers are of the range, Messages without hidden ones. Session shows it below; where several tenants have one of that id, pick the tenant as well.", sql(`
WITH (SELECT (groupArray((tenant, session_id)), min(began)) FROM (`+candidates+`)) AS latest_of_all
SELECT coalesce(maxOrNullIf(ts, NOT hidden AND attributes['time_precision'] != 'inferred'), max(ts)) AS Latest, session_id AS Session, tenant AS Tenant, any(format) AS Format,
  argMinIf(substringUTF8(content, 1, 160), (ts, seq), kind = 'user' AND NOT hidden AND content != '') AS "Begins with",
  uniqExactIf(trace_id, trace_id != '') AS Turns, countIf(NOT hidden) AS Messages, countIf(kind = 'tool_call') AS Tools, countIf(kind = 'delegation') AS Delegations,
  countIf(`+failure+`) AS Errors, sum(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens) AS Tokens,
  arrayStringConcat(arraySort(groupUniqArrayIf(agent_name, agent_name != '' AND kind != 'user')), ', ') AS Agents
FROM v_messages
`+chosen+`
  AND ts >= latest_of_all.2 AND (tenant, session_id) IN (SELECT arrayJoin(latest_of_all.1))
GROUP BY tenant, session_id
HAVING Messages > 0 OR Tokens > 0
ORDER BY Latest DESC, Session
LIMIT 500`)).Field("Session", grafana.LinkTo("Read it below", "/d/earshot-sessions?var-session=${__value.raw}"+carry), grafana.Columns(280)).
		Field("Begins with", grafana.Columns(420)).Field("Errors", grafana.Columns(80)).Empty("No conversation in this range, or none with these words"))

	d.Heading("One conversation")
	d.Row(8, grafana.Table("Turns", "One line for each time a person asked, or a message set the agent to work, also for a turn that still runs: it has no duration yet.", sql(conversation+`
SELECT row_number() OVER (ORDER BY t.ts, t.trace_id) AS Turn, t.ts AS Started, texts.prompt AS Asked, texts.answer AS Answer,
  if(t.status = 'running', NULL, t.duration_ms) AS Duration, t.status AS Status, t.responses AS Responses, t.tool_calls AS Tools, t.delegations AS Delegations,
  texts.tokens AS Tokens, owner AS Tenant, t.trace_id AS Trace
FROM (
  SELECT *
  FROM v_turns
  WHERE `+ofConversation+`) AS t
LEFT JOIN (
  SELECT trace_id,
    argMinIf(substringUTF8(content, 1, 300), (ts, seq), kind = 'user' AND NOT hidden) AS prompt,
    argMaxIf(substringUTF8(content, 1, 300), (ts, seq), kind = 'assistant' AND NOT hidden) AS answer,
    sum(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens) AS tokens
  FROM v_messages
  WHERE `+ofConversation+` AND trace_id != ''
  GROUP BY trace_id) AS texts ON texts.trace_id = t.trace_id
ORDER BY Turn
LIMIT 1000`)).Field("Duration", grafana.Unit("ms"), grafana.Gauge()).Field("Status", grafana.Red("error")).Field("Trace", toTrace, grafana.Columns(120)).
		Field("Asked", grafana.Columns(320)).Field("Answer", grafana.Columns(320)).Field("Turn", grafana.Columns(60)).Empty("No turn of this conversation is known"))
	d.Row(16, grafana.Table("Transcript", "Prompts and answers; the variable Internal steps shows the steps between them: reasoning, calls, results, delegations and the agents below.", sql(conversation+`
SELECT dense_rank() OVER (ORDER BY began, trace_id) AS Turn, ts AS Time, kind AS Kind, `+agent+` AS Agent, tool_name AS Tool,
  substringUTF8(multiIf(content != '', content, delegate_task != '', delegate_task, tool_arguments), 1, 4000) AS Text,
  `+failure+` AS Failed, trace_id AS Trace
FROM (
  SELECT *, min(ts) OVER (PARTITION BY trace_id) AS began,
    argMin(run_id, (ts, seq)) OVER (PARTITION BY trace_id) AS first_run,
    row_number() OVER (PARTITION BY trace_id, run_id, kind ORDER BY ts DESC, seq DESC) AS from_the_end
  FROM v_messages
  WHERE `+ofConversation+` AND trace_id != '' AND kind NOT IN ('usage', 'stop'))
WHERE `+text("steps")+` = '1' OR run_id = first_run AND NOT hidden AND (kind IN ('user', 'error') OR kind = 'assistant' AND from_the_end = 1)
ORDER BY ts, seq
LIMIT 2000`)).Field("Text", grafana.Columns(760)).Field("Trace", toTrace, grafana.Columns(120)).Field("Turn", grafana.Columns(60)).
		Field("Failed", grafana.Red("true"), grafana.Columns(80)).Field("Time", grafana.Columns(180)).Empty("No message in this conversation"))
	d.Row(8,
		grafana.Bars("Tokens of the conversation", "By class, at the time they were reported.", "short", sql(conversation+`
SELECT toStartOfMinute(ts) AS time, sum(input_tokens) AS "input", sum(cache_read_tokens) AS "read from cache", sum(cache_write_tokens) AS "written to cache",
  sum(output_tokens + reasoning_tokens) AS "output"
FROM v_usage
WHERE `+ofConversation+`
GROUP BY time
ORDER BY time`)).Empty("No tokens of this conversation are counted"),
		grafana.Table("Tools of the conversation", "Finished calls, without delegations and the framework's own; their times without those in which a person was waited for.", sql(conversation+`
SELECT tool_name AS Tool, count() AS Calls, countIf(status = 'error') AS Errors, max(duration_ms - waited_ms) AS Longest, sum(duration_ms - waited_ms) AS Total
FROM v_tool_calls
WHERE `+ofConversation+` AND status != 'running' AND NOT is_delegation AND NOT internal
GROUP BY Tool
ORDER BY Total DESC, Tool
LIMIT 100`)).Field("Longest", grafana.Unit("ms")).Field("Total", grafana.Unit("ms")).Width(12).Empty("No tool call of this conversation has ended"),
	)
	return d
}
