-- Which views of a conversation have a message, and which of them a number of a span is of. A message is stored once and its text is
-- not kept: to write it again for each view that is read later would store that text again, so its span has the views.
CREATE VIEW IF NOT EXISTS {{view "v_message_views"}}{{onCluster}}
AS SELECT
    m.tenant AS tenant, m.source AS source, m.format AS format, m.ts AS ts, m.session_id AS session_id, m.run_id AS run_id, m.trace_id AS trace_id, m.span_id AS span_id,
    m.message_id AS message_id, m.kind AS kind, m.agent_name AS agent_name, m.tool_name AS tool_name, m.tool_call_id AS tool_call_id, m.hidden AS hidden,
    if(empty(s.seen_by), [toString(m.format)], s.seen_by) AS seen_by
FROM
(
    SELECT tenant, source, format, ts, session_id, run_id, trace_id, span_id, message_id, kind, agent_name, tool_name, tool_call_id, hidden FROM {{name "messages"}} FINAL
) AS m
LEFT ANY JOIN
(
    SELECT tenant, session_id, seen.1 AS message_id, seen.2 AS seen_by
    FROM (SELECT tenant, session_id, attributes['earshot.seen_by.messages'] AS views FROM {{name "spans"}} FINAL WHERE mapContains(attributes, 'earshot.seen_by.messages'))
    ARRAY JOIN JSONExtractKeysAndValues(views, 'Array(String)') AS seen
) AS s ON s.tenant = m.tenant AND s.session_id = m.session_id AND s.message_id = toString(m.message_id)
COMMENT 'Messages, each once, with the formats that have it. Ask for a session_id: it reads the spans of what it is asked for, too';

ALTER TABLE {{view "v_message_views"}}{{onCluster}}
{{comments "messages" "tenant source format session_id run_id trace_id span_id message_id kind agent_name tool_name tool_call_id hidden"}},
    COMMENT COLUMN ts 'When it happened, by the protocol',
    COMMENT COLUMN seen_by 'Formats that have the message, the one whose words the row has first';

CREATE OR REPLACE VIEW {{view "v_spans"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id,
    lower(hex(trace_id)) AS trace_id, lower(hex(s.span_id)) AS span_id, if(empty(s.parent_span_id), '', lower(hex(s.parent_span_id))) AS parent_span_id,
    kind, name, agent_name, if(kind IN ('tool', 'delegation'), tool_name, '') AS tool_name, delegate_to,
    if(response_model != '', response_model, request_model) AS model, duration_ns / 1e6 AS duration_ms,
    if(outcome = '', 'unset', outcome) AS status, multiIf(outcome NOT IN ('error', 'cancelled'), '', outcome = 'error' AND error_type = '', '_OTHER', error_type) AS error_type,
    if(outcome = 'error', status_message, '') AS error, if(first_token_ns > 0, first_token_ns / 1e6, NULL) AS first_token_ms,
    reasoning_tokens, output_tokens, project, branch, agent_version, host, user,
    seen_by, attributes['earshot.tokens.from'] AS tokens_from, attributes['earshot.times.from'] AS times_from, attributes['earshot.conflict'] AS conflict,
    attributes['earshot.outcome.from'] AS outcome_from, attributes['earshot.first_token.from'] AS first_token_from
FROM {{name "spans"}} AS s FINAL
WHERE state != 'open' AND name != ''
COMMENT 'Spans of Earshot that have ended, not those that an agent sent itself. Tokens of a run are those of its chats once more';

ALTER TABLE {{view "v_spans"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN ts 'Start of the span',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN run_id 'The run that the span is part of',
    COMMENT COLUMN trace_id 'TraceId of otel_traces, in hex',
    COMMENT COLUMN span_id 'SpanId of otel_traces, in hex',
    COMMENT COLUMN parent_span_id 'SpanId of the parent; empty for the root',
    COMMENT COLUMN kind 'run, chat, tool, delegation or workflow',
    COMMENT COLUMN name 'SpanName',
    COMMENT COLUMN agent_name 'gen_ai.agent.name',
    COMMENT COLUMN tool_name 'gen_ai.tool.name',
    COMMENT COLUMN delegate_to 'The delegate: its display name where any is known, else as the caller wrote it',
    COMMENT COLUMN model 'gen_ai.response.model, or gen_ai.request.model where only that is known',
    COMMENT COLUMN duration_ms 'Milliseconds',
    COMMENT COLUMN status 'ok, error, cancelled, ... or unset',
    COMMENT COLUMN error_type 'Why it failed or was cancelled',
    COMMENT COLUMN error 'Message of a failure',
    COMMENT COLUMN first_token_ms 'Milliseconds from the request to the first token; null when unknown',
    COMMENT COLUMN reasoning_tokens 'Tokens of reasoning; of a run those of its chats once more',
    COMMENT COLUMN output_tokens 'Tokens answered, without reasoning; of a run those of its chats once more',
    COMMENT COLUMN project 'Directory of the project that the run works in; empty where the protocol has none',
    COMMENT COLUMN branch 'Branch of its version control',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in',
    COMMENT COLUMN host 'The machine of the agent where the protocol names it, else that of the sidecar',
    COMMENT COLUMN user 'The account, where the protocol has one',
    COMMENT COLUMN seen_by 'Formats that show the span, the one that its row is of first',
    COMMENT COLUMN tokens_from 'Format whose tokens they are; empty if only one has any',
    COMMENT COLUMN times_from 'Format whose start and end they are, if another than the first',
    COMMENT COLUMN conflict 'Tokens of each format, input/output/cache read/cache write, if they differ',
    COMMENT COLUMN outcome_from 'Format whose status it is, and whose end a run or a call has, if another than the first',
    COMMENT COLUMN first_token_from 'Format whose first_token_ms it is, if another than the first';
