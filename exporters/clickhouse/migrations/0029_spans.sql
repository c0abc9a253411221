{{- /* The rows of the former tables as rows of spans. Prefix "" copies a day of them, by the
parameter day; prefix "former_" copies the spans that another sidecar stored since. */ -}}
{{define "version"}}if(bitTest({{.}}, 55), {{.}}, bitOr(bitOr(bitAnd({{.}}, 18374686479671623680), bitShiftLeft(bitAnd({{.}}, 18014398509481983), 1)), toUInt64(bitTest({{.}}, 54)))){{end -}}
{{define "status"}}toLowCardinality(multiIf(state = 'open', 'running', outcome IN ('error', 'cancelled'), outcome, 'ok')){{end -}}
{{define "columns"}}(tenant, ts, source, format, session_id, unnamed, run_id, parent_run_id, trace_id, span_id, parent_span_id, kind, state, outcome, error_type, status_message,
    duration_ns, worked_ns, last_seen, alive_at, name, agent_id, agent_name, agent_kind, model, request_model, response_model, provider, response_id, finish_reasons, ended, first_token_ns,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, usage_provenance,
    tool_name, mcp_server, tool_call_id, internal, args_bytes, args_shape, result_bytes, attempt, result_tokens, result_tokens_from, waits_for, waited_ns,
    delegate_to, delegate_id, child_run_id, link_method, link_confidence, async, convention, attributes,
    `events.time`, `events.name`, `events.attributes`, `links.trace_id`, `links.span_id`, `links.state`, `links.attributes`, ingest_ts, ver, is_deleted){{end -}}
{{define "ended"}}INSERT INTO {{name "spans"}} {{template "columns"}}
WITH SpanAttributes AS a,
    toUInt64OrZero(a['gen_ai.usage.cache_read.input_tokens']) AS cache_read,
    toUInt64OrZero(a['gen_ai.usage.cache_creation.input_tokens']) + toUInt64OrZero(a['gen_ai.usage.cache_write.input_tokens']) AS cache_write,
    toUInt64OrZero(a['gen_ai.usage.reasoning.output_tokens']) AS reasoning,
    toUInt64OrZero(a['gen_ai.usage.input_tokens']) AS input, toUInt64OrZero(a['gen_ai.usage.output_tokens']) AS output,
    if(c.id != '' AND c.status != 'running', greatest(Ver, c.ver), Ver) AS newest
SELECT a['earshot.tenant'], t.Timestamp, t.ServiceName, a['earshot.format'], t.SessionId, a['gen_ai.conversation.id'] = '', a['earshot.run.id'], a['earshot.parent_run.id'],
    unhex(t.TraceId), unhex(t.SpanId), unhex(t.ParentSpanId), if(d.id != '', 'delegation', toString(t.Kind)),
    if(a['earshot.span.state'] = '', 'closed', a['earshot.span.state']), a['earshot.outcome'],
    multiIf(c.id != '', toString(c.error_type), a['error.type'] = '_OTHER', '', a['error.type'] != '', a['error.type'], a['earshot.cancel.reason']), t.StatusMessage,
    t.Duration, if(d.id != '' AND d.duration_ns != t.Duration, d.duration_ns, 0), toDateTime64(0, 9, 'UTC'), toDateTime64(0, 9, 'UTC'),
    t.SpanName, a['earshot.agent.id'], a['gen_ai.agent.name'], a['earshot.agent.kind'], if(c.id != '', toString(c.model), toString(t.Model)),
    a['gen_ai.request.model'], a['gen_ai.response.model'], a['gen_ai.provider.name'], a['gen_ai.response.id'], a['gen_ai.response.finish_reasons'], a['earshot.run.finish_reason'],
    toUInt64(round(toFloat64OrZero(a['gen_ai.response.time_to_first_chunk']) * 1e9)),
    input - least(input, cache_read + cache_write), output - least(output, reasoning), cache_read, cache_write, reasoning, a['earshot.usage.provenance'],
    a['gen_ai.tool.name'], a['earshot.mcp.server'], a['gen_ai.tool.call.id'], a['earshot.tool.internal'] = 'true',
    toUInt32OrZero(a['earshot.tool.arguments.bytes']), c.args_shape, toUInt32OrZero(a['earshot.tool.result.bytes']), c.attempt, c.result_tokens, c.result_tokens_from,
    a['earshot.waits_for'], c.waited_ns,
    a['earshot.delegate.to'], d.delegate_id, a['earshot.child_run.id'], a['earshot.link.method'], toUInt8OrZero(a['earshot.link.confidence']), a['earshot.delegate.async'] = 'true',
    if(mapContains(a, 'gen_ai.usage.cache_write.input_tokens'), 'genai-latest', '1.41'),
    mapFilter((k, v) -> k NOT IN ('gen_ai.operation.name', 'gen_ai.conversation.id', 'gen_ai.agent.name', 'gen_ai.workflow.name', 'gen_ai.provider.name',
        'gen_ai.request.model', 'gen_ai.response.model', 'gen_ai.response.id', 'gen_ai.response.finish_reasons', 'gen_ai.response.time_to_first_chunk',
        'gen_ai.tool.name', 'gen_ai.tool.type', 'gen_ai.tool.call.id', 'gen_ai.usage.input_tokens', 'gen_ai.usage.output_tokens',
        'gen_ai.usage.cache_read.input_tokens', 'gen_ai.usage.cache_creation.input_tokens', 'gen_ai.usage.cache_write.input_tokens', 'gen_ai.usage.reasoning.output_tokens',
        'mcp.method.name', 'error.type', 'earshot.tenant', 'earshot.source', 'earshot.format', 'earshot.run.id', 'earshot.parent_run.id', 'earshot.session.id',
        'earshot.run.finish_reason', 'earshot.agent.id', 'earshot.agent.kind', 'earshot.span.state', 'earshot.outcome', 'earshot.cancel.reason', 'earshot.delegate.to',
        'earshot.delegate.async', 'earshot.waits_for', 'earshot.child_run.id', 'earshot.link.method', 'earshot.link.confidence', 'earshot.mcp.server',
        'earshot.tool.internal', 'earshot.tool.arguments.bytes', 'earshot.tool.result.bytes', 'earshot.usage.provenance'), a),
    t.`Events.Timestamp`, t.`Events.Name`, t.`Events.Attributes`, t.`Links.TraceId`, t.`Links.SpanId`, t.`Links.TraceState`, t.`Links.Attributes`,
    t.IngestTs, {{template "version" "newest"}}, 0
FROM (SELECT *, SessionId, Kind, Model FROM {{name (print . "otel_traces")}} FINAL WHERE ScopeName = 'github.com/earshot-dev/earshot' AND {{copied . "Timestamp" "SpanId"}}) AS t
LEFT JOIN (SELECT *, toString(span_id) AS id FROM {{name (print . "tool_calls")}} FINAL WHERE {{copied . "ts" "span_id"}}) AS c ON c.id = t.SpanId
LEFT JOIN (SELECT *, toString(span_id) AS id FROM {{name (print . "delegations")}} FINAL WHERE {{copied . "ts" "span_id"}}) AS d ON d.id = t.SpanId
SETTINGS join_use_nulls = 0, join_algorithm = 'grace_hash', max_insert_threads = 1, min_insert_block_size_rows = 250000{{end -}}
{{define "calls"}}INSERT INTO {{name "spans"}} {{template "columns"}}
SELECT c.tenant, c.ts, c.source, c.format, c.session_id, 0, c.run_id, '', unhex(c.trace_id), unhex(c.id), unhex(o.parent_span_id), if(c.is_delegation, 'delegation', 'tool'),
    multiIf(c.status = 'running', 'open', bitTest(c.ver, 54) AND NOT bitTest(c.ver, 55), 'idle', 'closed'), if(c.status = 'running', '', toString(c.status)), c.error_type, '',
    c.duration_ns, if(d.id != '' AND d.duration_ns != c.duration_ns, d.duration_ns, 0), if(c.status = 'running', greatest(o.last_seen, c.ts), toDateTime64(0, 9, 'UTC')), if(c.status = 'running', greatest(o.alive_at, c.ts), toDateTime64(0, 9, 'UTC')),
    o.name, '', c.agent_name, '', c.model, '', '', '', '', '', '', 0, 0, 0, 0, 0, 0, '',
    c.tool_name, c.mcp_server, c.tool_call_id, c.internal, c.args_bytes, c.args_shape, c.result_bytes, c.attempt, c.result_tokens, c.result_tokens_from, c.waits_for, c.waited_ns,
    d.delegate_to, d.delegate_id, d.child_run_id, d.link_method, d.link_confidence, d.async, '1.41', map(), [], [], [], [], [], [], [], c.ingest_ts, {{template "version" "c.ver"}}, 0
FROM (SELECT *, toString(span_id) AS id FROM {{name (print . "tool_calls")}} FINAL WHERE {{copied . "ts" "span_id"}}
    AND id GLOBAL NOT IN (SELECT SpanId FROM {{name (print . "otel_traces")}} FINAL WHERE {{copied . "Timestamp" "SpanId"}})) AS c
LEFT JOIN (SELECT *, toString(span_id) AS id FROM {{name (print . "delegations")}} FINAL WHERE {{copied . "ts" "span_id"}}) AS d ON d.id = c.id
LEFT JOIN (SELECT *, toString(span_id) AS id FROM {{name (print . "open_spans")}} FINAL WHERE {{copied . "ts" "span_id"}}) AS o ON o.id = c.id
SETTINGS join_use_nulls = 0, join_algorithm = 'grace_hash', max_insert_threads = 1, min_insert_block_size_rows = 250000{{end -}}
{{define "open"}}INSERT INTO {{name "spans"}} {{template "columns"}}
SELECT o.tenant, o.ts, o.source, o.format, o.session_id, 0, o.run_id, '', unhex(o.trace_id), unhex(o.id), unhex(o.parent_span_id), o.kind, 'open', '', '', '',
    0, 0, o.last_seen, o.alive_at, o.name, '', o.agent_name, '', '', '', '', '', '', '', '', 0, 0, 0, 0, 0, 0, '',
    o.tool_name, '', o.tool_call_id, 0, 0, '', 0, 0, 0, '', o.waits_for, 0, o.delegate_to, '', '', '', 0, 0, '1.41', map(), [], [], [], [], [], [], [], o.ingest_ts,
    bitOr(bitAnd({{template "version" "t.Ver"}}, 18442240474082181120), bitShiftLeft(bitAnd(toUInt64(toUnixTimestamp64Micro(o.last_seen)), 2251799813685247), 1)), 0
FROM (SELECT *, toString(span_id) AS id FROM {{name (print . "open_spans")}} FINAL WHERE {{copied . "ts" "span_id"}}) AS o
LEFT JOIN (SELECT SpanId, Ver FROM {{name (print . "otel_traces")}} FINAL WHERE {{copied . "Timestamp" "SpanId"}}) AS t ON t.SpanId = o.id
WHERE o.kind NOT IN ('tool', 'delegation') OR t.SpanId != ''
SETTINGS join_use_nulls = 0{{end -}}
{{define "agents"}}INSERT INTO {{name "agent_spans"}}
SELECT * FROM {{name (print . "otel_traces")}} FINAL
WHERE ScopeName != 'github.com/earshot-dev/earshot' AND {{copied . "Timestamp" "SpanId"}}{{end -}}

-- One table for all spans. The names and columns of the four that it replaces are views.
CREATE TABLE IF NOT EXISTS {{name "schema_progress"}}{{onCluster}}
(
    version   UInt32 COMMENT 'Number of the migration',
    statement UInt32 COMMENT 'Number of its statement',
    day       Date COMMENT 'The rows of that day are copied',
    at        DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Since when'
)
ENGINE = {{everywhere "at"}}
ORDER BY (version, statement, day)
COMMENT 'Which days a migration that is under way has copied';

INSERT INTO {{name "schema_progress"}} (version, statement, day, at)
SELECT 29, 0, '1970-01-01', now64(3) - 60
WHERE (SELECT count() FROM {{name "schema_progress"}}) = 0;

CREATE TABLE IF NOT EXISTS {{table "spans"}}{{onCluster}}
(
{{columns "spans"}},
    INDEX idx_trace lower(hex(trace_id)) TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_state state TYPE set(3) GRANULARITY 1
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toDate(ts)
PRIMARY KEY (tenant, toStartOfHour(ts), session_id)
ORDER BY (tenant, toStartOfHour(ts), session_id, span_id){{ttl "spans"}}
SETTINGS {{settings}}, min_bytes_for_wide_part = 26214400
COMMENT 'Spans: runs, responses of models, calls, delegations; open ones too. Read it with FINAL, or through v_spans, v_tool_calls, v_delegations and v_open_spans';
{{distributed "spans" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "agent_spans"}}{{onCluster}}
(
{{columns "otel_traces"}},
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{replacing "Ver, IsDeleted"}}
PARTITION BY toDate(Timestamp)
PRIMARY KEY (toDateTime(Timestamp), TraceId)
ORDER BY (toDateTime(Timestamp), TraceId, SpanId){{ttl "agent_spans"}}
SETTINGS {{settings}}
COMMENT 'Spans that agents sent themselves, through a collector whose traces_table_name this is. otel_traces has them and ours';
{{distributed "agent_spans" "cityHash64(TraceId)"}};

{{eachDay "Timestamp" "otel_traces" "tool_calls" "delegations" "open_spans"}}{{template "ended" ""}};

{{eachDay "ts" "tool_calls" "otel_traces" "delegations" "open_spans"}}{{template "calls" ""}};

{{eachDay "ts" "open_spans" "otel_traces" "tool_calls" "delegations"}}{{template "open" ""}};

{{eachDay "Timestamp" "otel_traces" "tool_calls" "delegations" "open_spans"}}{{template "agents" ""}};

DROP VIEW IF EXISTS {{view "otel_traces_trace_id_ts_mv"}}{{onCluster}};

DROP VIEW IF EXISTS {{view "tool_usage_1h_mv"}}{{onCluster}};

{{while "otel_traces_trace_id_ts"}}DROP TABLE IF EXISTS {{name "otel_traces_trace_id_ts"}}{{onCluster}};

{{while "open_spans"}}RENAME TABLE {{name "open_spans"}} TO {{name "former_open_spans"}}{{onCluster}};

{{while "delegations"}}RENAME TABLE {{name "delegations"}} TO {{name "former_delegations"}}{{onCluster}};

{{while "tool_calls"}}RENAME TABLE {{name "tool_calls"}} TO {{name "former_tool_calls"}}{{onCluster}};

{{while "otel_traces"}}RENAME TABLE {{name "otel_traces"}} TO {{name "former_otel_traces"}}{{onCluster}};

CREATE VIEW IF NOT EXISTS {{view "otel_traces"}}{{onCluster}}
AS SELECT
    toDateTime64(ts, 9) AS Timestamp, lower(hex(trace_id)) AS TraceId, lower(hex(span_id)) AS SpanId,
    if(empty(parent_span_id), '', lower(hex(parent_span_id))) AS ParentSpanId, '' AS TraceState,
    name AS SpanName, toLowCardinality(if(kind = 'chat', 'Client', 'Internal')) AS SpanKind, source AS ServiceName,
    CAST(map('service.name', source), 'Map(LowCardinality(String), String)') AS ResourceAttributes, 'github.com/earshot-dev/earshot' AS ScopeName, '' AS ScopeVersion,
    CAST(mapConcat(mapFilter((k, v) -> v != '', map(
        'gen_ai.operation.name', toString(Operation), 'gen_ai.conversation.id', if(unnamed, '', session_id), 'gen_ai.agent.name', agent_name,
        'earshot.tenant', tenant, 'earshot.source', source, 'earshot.format', format, 'earshot.session.id', session_id, 'earshot.run.id', run_id, 'earshot.parent_run.id', parent_run_id,
        'earshot.agent.id', agent_id, 'earshot.agent.kind', agent_kind, 'earshot.span.state', state,
        'earshot.outcome', outcome, 'error.type', multiIf(outcome != 'error', '', error_type = '', '_OTHER', error_type), 'earshot.cancel.reason', if(outcome = 'cancelled', error_type, ''),
        'earshot.waits_for', waits_for, 'earshot.delegate.to', delegate_to, 'earshot.child_run.id', child_run_id, 'earshot.link.method', link_method,
        'earshot.link.confidence', if(link_confidence > 0, toString(link_confidence), ''), 'earshot.delegate.async', if(async, 'true', ''))),
        if(kind IN ('tool', 'delegation'), mapFilter((k, v) -> v != '', map(
            'gen_ai.tool.name', tool_name, 'gen_ai.tool.call.id', tool_call_id, 'gen_ai.tool.type', if(mcp_server = '', 'function', 'extension'),
            'mcp.method.name', if(mcp_server = '', '', 'tools/call'), 'earshot.mcp.server', mcp_server, 'earshot.tool.internal', if(internal, 'true', ''),
            'earshot.tool.arguments.bytes', if(args_bytes > 0, toString(args_bytes), ''), 'earshot.tool.result.bytes', if(result_bytes > 0, toString(result_bytes), ''))),
        mapFilter((k, v) -> v != '', map(
            'gen_ai.provider.name', provider, 'gen_ai.request.model', request_model, 'gen_ai.response.model', response_model,
            'gen_ai.response.id', if(kind = 'chat', response_id, ''), 'gen_ai.response.finish_reasons', finish_reasons, 'gen_ai.workflow.name', if(kind = 'workflow', agent_name, ''),
            'earshot.run.finish_reason', if(kind IN ('run', 'workflow'), ended, ''),
            'gen_ai.response.time_to_first_chunk', if(first_token_ns > 0, toString(first_token_ns / 1e9), ''),
            'gen_ai.usage.input_tokens', if(used, toString(input_tokens + cache_read_tokens + cache_write_tokens), ''),
            'gen_ai.usage.output_tokens', if(used, toString(OutputTokens), ''),
            'gen_ai.usage.cache_read.input_tokens', if(cache_read_tokens > 0 AND cached, toString(cache_read_tokens), ''),
            if(convention = '1.41', 'gen_ai.usage.cache_creation.input_tokens', 'gen_ai.usage.cache_write.input_tokens'), if(cache_write_tokens > 0 AND cached, toString(cache_write_tokens), ''),
            'gen_ai.usage.reasoning.output_tokens', if(reasoning_tokens > 0, toString(reasoning_tokens), ''),
            'earshot.usage.provenance', if(used, toString(usage_provenance), '')))),
        attributes), 'Map(LowCardinality(String), String)') AS SpanAttributes,
    duration_ns AS Duration, toLowCardinality(if(outcome = 'error', 'Error', 'Unset')) AS StatusCode, if(outcome = 'error', status_message, '') AS StatusMessage,
    arrayMap(t -> toDateTime64(t, 9), `events.time`) AS `Events.Timestamp`, `events.name` AS `Events.Name`, `events.attributes` AS `Events.Attributes`,
    `links.trace_id` AS `Links.TraceId`, `links.span_id` AS `Links.SpanId`, `links.state` AS `Links.TraceState`, `links.attributes` AS `Links.Attributes`,
    ver AS Ver, is_deleted AS IsDeleted, ingest_ts AS IngestTs,
    toLowCardinality(multiIf(kind = 'chat', 'chat', kind IN ('tool', 'delegation'), 'execute_tool', kind = 'workflow', 'invoke_workflow', 'invoke_agent')) AS Operation,
    agent_name AS AgentName, if(kind IN ('tool', 'delegation'), tool_name, '') AS ToolName, session_id AS SessionId, kind AS Kind, format AS Format,
    if(response_model != '', response_model, request_model) AS Model, outcome AS Outcome, if(first_token_ns > 0, first_token_ns / 1e9, NULL) AS FirstToken,
    if(used, output_tokens + reasoning_tokens, 0) AS OutputTokens, state AS State, async AS Async, delegate_to AS DelegateTo
FROM
(
    SELECT *, kind IN ('run', 'chat', 'workflow') AND input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens > 0 AS used,
        kind = 'chat' OR convention = '1.41' AS cached
    FROM {{name "spans"}} FINAL WHERE state != 'open' AND name != ''
)
UNION ALL
SELECT
    Timestamp, TraceId, SpanId, ParentSpanId, TraceState, SpanName, SpanKind, ServiceName, ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes, Duration, StatusCode, StatusMessage,
    `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`, Ver, IsDeleted, IngestTs,
    Operation, AgentName, ToolName, SessionId, Kind, Format, Model, Outcome, FirstToken, OutputTokens, '' AS State, false AS Async, '' AS DelegateTo
FROM {{name "agent_spans"}} FINAL
COMMENT 'Spans that have ended, in the columns of the OpenTelemetry collector: ours, and those of agent_spans. Each once, in its latest version';

ALTER TABLE {{view "otel_traces"}}{{onCluster}}
{{comments "otel_traces" "Timestamp TraceId SpanId ParentSpanId TraceState SpanName SpanKind ServiceName ResourceAttributes ScopeName ScopeVersion SpanAttributes Duration StatusCode StatusMessage Events.Timestamp Events.Name Events.Attributes Links.TraceId Links.SpanId Links.TraceState Links.Attributes Ver IsDeleted IngestTs Operation AgentName ToolName SessionId Kind Format Model Outcome FirstToken OutputTokens"}},
    COMMENT COLUMN State 'earshot.span.state: idle (ended by silence) or closed',
    COMMENT COLUMN Async 'earshot.delegate.async: the caller goes on meanwhile',
    COMMENT COLUMN DelegateTo 'earshot.delegate.to';

CREATE VIEW IF NOT EXISTS {{view "otel_traces_trace_id_ts"}}{{onCluster}}
AS SELECT lower(hex(trace_id)) AS TraceId, toDateTime(min(ts)) AS Start, toDateTime(max(ts)) AS End, toDateTime(max(ingest_ts), 'UTC') AS Seen
FROM {{name "spans"}} WHERE state != 'open' AND name != '' AND is_deleted = 0 GROUP BY TraceId
UNION ALL
SELECT TraceId, toDateTime(min(Timestamp)) AS Start, toDateTime(max(Timestamp)) AS End, toDateTime(max(IngestTs), 'UTC') AS Seen
FROM {{name "agent_spans"}} WHERE TraceId != '' AND IsDeleted = 0 GROUP BY TraceId
COMMENT 'When a trace was. The collector''s companion table';

ALTER TABLE {{view "otel_traces_trace_id_ts"}}{{onCluster}}
    COMMENT COLUMN TraceId 'Hex',
    COMMENT COLUMN Start 'Of the first span',
    COMMENT COLUMN End 'Start of the last span',
    COMMENT COLUMN Seen 'When a span was last stored';

CREATE VIEW IF NOT EXISTS {{view "tool_calls"}}{{onCluster}}
AS SELECT
    tenant, ts, source, format, tool_name, toLowCardinality(if(mcp_server = '', 'function', 'extension')) AS tool_type, mcp_server, agent_name, model, session_id, run_id,
    lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id, tool_call_id, duration_ns, {{template "status"}} AS status, error_type,
    args_bytes, result_bytes, if(kind = 'delegation', true, false) AS is_delegation, internal, waits_for, waited_ns, args_shape, attempt, result_tokens, result_tokens_from, ingest_ts, ver, is_deleted
FROM {{name "spans"}} AS s FINAL
WHERE kind IN ('tool', 'delegation')
COMMENT 'One row per tool call, delegations among them';

ALTER TABLE {{view "tool_calls"}}{{onCluster}}
{{comments "tool_calls" "tenant ts source format tool_name tool_type mcp_server agent_name model session_id run_id trace_id span_id tool_call_id duration_ns status error_type args_bytes result_bytes is_delegation internal waits_for waited_ns args_shape attempt result_tokens result_tokens_from ingest_ts ver is_deleted"}};

CREATE VIEW IF NOT EXISTS {{view "delegations"}}{{onCluster}}
AS SELECT
    tenant, ts, source, format, session_id, run_id, lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id, tool_call_id, tool_name, agent_name,
    delegate_to, delegate_id, child_run_id, link_method, link_confidence, async, if(s.worked_ns > 0, s.worked_ns, s.duration_ns) AS duration_ns, {{template "status"}} AS status, error_type,
    args_bytes, result_bytes, ingest_ts, ver, is_deleted
FROM {{name "spans"}} AS s FINAL
WHERE kind = 'delegation'
COMMENT 'One row per delegation of work to another agent';

ALTER TABLE {{view "delegations"}}{{onCluster}}
{{comments "delegations" "tenant ts source format session_id run_id trace_id span_id tool_call_id tool_name agent_name delegate_to delegate_id child_run_id link_method link_confidence async duration_ns status error_type args_bytes result_bytes ingest_ts ver is_deleted"}};

CREATE VIEW IF NOT EXISTS {{view "open_spans"}}{{onCluster}}
AS SELECT
    tenant, ts, last_seen, alive_at, dateDiff('millisecond', ts, now64(9, 'UTC')) AS age_ms, dateDiff('millisecond', last_seen, now64(9, 'UTC')) AS silent_ms,
    source, format, kind, name, session_id, run_id, lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id,
    if(empty(s.parent_span_id), '', lower(hex(s.parent_span_id))) AS parent_span_id, agent_name, tool_name, tool_call_id, delegate_to, waits_for, ingest_ts, ver, is_deleted
FROM {{name "spans"}} AS s FINAL
WHERE state = 'open' AND name != ''
COMMENT 'Spans that are open now';

ALTER TABLE {{view "open_spans"}}{{onCluster}}
{{comments "open_spans" "tenant ts last_seen alive_at age_ms silent_ms source format kind name session_id run_id trace_id span_id parent_span_id agent_name tool_name tool_call_id delegate_to waits_for ingest_ts ver is_deleted"}};

{{while "former_otel_traces" "former_tool_calls" "former_delegations" "former_open_spans"}}{{template "ended" "former_"}};

{{while "former_tool_calls" "former_otel_traces" "former_delegations" "former_open_spans"}}{{template "calls" "former_"}};

{{while "former_open_spans" "former_otel_traces" "former_tool_calls" "former_delegations"}}{{template "open" "former_"}};

{{while "former_otel_traces" "former_tool_calls" "former_delegations" "former_open_spans"}}{{template "agents" "former_"}};

{{drop "otel_traces_trace_id_ts"}};

{{drop "otel_traces"}};

{{drop "tool_calls"}};

{{drop "delegations"}};

{{drop "open_spans"}};

DROP TABLE IF EXISTS {{name "schema_progress"}}{{onCluster}};

CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "tool_usage_1h_mv"}}{{onCluster}} TO {{table "tool_usage_1h"}}
AS SELECT tenant, toStartOfHour(ts) AS hour, tool_name, agent_name,
    uniqExactState(toFixedString(lower(hex(span_id)), 16)) AS calls,
    uniqExactIfState(toFixedString(lower(hex(span_id)), 16), toUInt8(outcome = 'error')) AS errors,
    uniqExactIfState(toFixedString(lower(hex(span_id)), 16), toUInt8(duration_ns >= 1000000000)) AS over_1s,
    uniqExactIfState(toFixedString(lower(hex(span_id)), 16), toUInt8(duration_ns >= 10000000000)) AS over_10s,
    uniqExactIfState(toFixedString(lower(hex(span_id)), 16), toUInt8(duration_ns >= 60000000000)) AS over_1m,
    uniqState(session_id) AS sessions,
    max(ingest_ts) AS seen
FROM {{table "spans"}}
WHERE kind IN ('tool', 'delegation') AND state != 'open' AND is_deleted = 0
GROUP BY tenant, hour, tool_name, agent_name;

CREATE OR REPLACE VIEW {{view "v_spans"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id,
    lower(hex(trace_id)) AS trace_id, lower(hex(s.span_id)) AS span_id, if(empty(s.parent_span_id), '', lower(hex(s.parent_span_id))) AS parent_span_id,
    kind, name, agent_name, if(kind IN ('tool', 'delegation'), tool_name, '') AS tool_name, delegate_to,
    if(response_model != '', response_model, request_model) AS model, duration_ns / 1e6 AS duration_ms,
    if(outcome = '', 'unset', outcome) AS status, multiIf(outcome NOT IN ('error', 'cancelled'), '', outcome = 'error' AND error_type = '', '_OTHER', error_type) AS error_type,
    if(outcome = 'error', status_message, '') AS error, if(first_token_ns > 0, first_token_ns / 1e6, NULL) AS first_token_ms,
    reasoning_tokens, output_tokens
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
    COMMENT COLUMN output_tokens 'Tokens answered, without reasoning; of a run those of its chats once more';
