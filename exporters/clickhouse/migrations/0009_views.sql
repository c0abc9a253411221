CREATE OR REPLACE VIEW {{view "v_tool_calls"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, tool_name, tool_type, mcp_server, status, error_type,
    duration_ns / 1e6 AS duration_ms, args_bytes, result_bytes, is_delegation, internal, tool_call_id, trace_id, span_id,
    model
FROM {{name "tool_calls"}} FINAL
COMMENT 'Tool calls as they stand, durations in milliseconds';

CREATE OR REPLACE VIEW {{view "v_spans"}}{{onCluster}}
AS SELECT
    SpanAttributes['earshot.tenant'] AS tenant, ServiceName AS source, SpanAttributes['earshot.format'] AS format,
    Timestamp AS ts, SessionId AS session_id, SpanAttributes['earshot.run.id'] AS run_id,
    TraceId AS trace_id, SpanId AS span_id, ParentSpanId AS parent_span_id,
    multiIf(Operation = 'chat', 'chat',
        Operation = 'execute_tool' AND (SpanAttributes['earshot.delegate.to'] != '' OR SpanAttributes['earshot.child_run.id'] != ''), 'delegation',
        Operation = 'execute_tool', 'tool',
        Operation = 'invoke_workflow', 'workflow', 'run') AS kind,
    SpanName AS name, AgentName AS agent_name, ToolName AS tool_name, SpanAttributes['earshot.delegate.to'] AS delegate_to,
    SpanAttributes['gen_ai.request.model'] AS model,
    Duration / 1e6 AS duration_ms,
    if(SpanAttributes['earshot.outcome'] = '', 'unset', SpanAttributes['earshot.outcome']) AS status,
    if(SpanAttributes['error.type'] != '', SpanAttributes['error.type'], SpanAttributes['earshot.cancel.reason']) AS error_type,
    StatusMessage AS error,
    toFloat64OrNull(SpanAttributes['gen_ai.response.time_to_first_chunk']) * 1000 AS first_token_ms,
    toUInt64OrZero(SpanAttributes['gen_ai.usage.output_tokens']) AS output_tokens
FROM {{name "otel_traces"}} FINAL
COMMENT 'Spans that have ended, with the attributes that people ask for as columns. output_tokens of a run are those of its chats once more';

CREATE VIEW IF NOT EXISTS {{view "v_usage"}}{{onCluster}}
AS SELECT
    m.tenant AS tenant, m.source AS source, m.format AS format, m.ts AS ts, m.session_id AS session_id, m.run_id AS run_id, m.trace_id AS trace_id,
    m.agent_name AS agent_name, m.provider AS provider, m.model AS model,
    m.input_tokens AS input_tokens, m.output_tokens AS output_tokens, m.cache_read_tokens AS cache_read_tokens,
    m.cache_write_tokens AS cache_write_tokens, m.reasoning_tokens AS reasoning_tokens,
    m.input_tokens + m.output_tokens + m.cache_read_tokens + m.cache_write_tokens + m.reasoning_tokens AS tokens,
    p.model != '' AS has_price,
    (m.input_tokens * p.input_usd_per_m + (m.output_tokens + m.reasoning_tokens) * p.output_usd_per_m
        + m.cache_read_tokens * p.cache_read_usd_per_m + m.cache_write_tokens * p.cache_write_usd_per_m) / 1e6 AS cost_usd
FROM
(
    SELECT *,
        replaceRegexpOne(replaceRegexpOne(lower(model), '^.*/', ''), '(-[0-9]{8}|-[0-9]{4}-[0-9]{2}-[0-9]{2}|-latest)$', '') AS price_model,
        toDateTime(ts, 'UTC') AS at
    FROM {{name "messages"}} FINAL
    WHERE input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens > 0
) AS m
ASOF LEFT JOIN (SELECT * FROM {{name "model_prices"}} FINAL) AS p ON m.price_model = p.model AND m.at >= p.valid_from
COMMENT 'What was spent: every message that tells tokens, priced by model_prices. cost_usd is 0 where has_price is not true';

CREATE VIEW IF NOT EXISTS {{view "v_dead_letters"}}{{onCluster}}
AS SELECT
    tenant, source, format, seen_at AS ts, stage, reason, error, origin, origin_offset, session_id, payload_bytes, payload_truncated, resolved, payload, dl_id
FROM {{name "dead_letters"}} FINAL
COMMENT 'What could go no further, with its bytes';

CREATE VIEW IF NOT EXISTS {{view "v_sources"}}{{onCluster}}
AS SELECT
    tenant, source, min(format) AS format, count() AS streams,
    sum(read_bytes) AS read_bytes, sum(decoded_bytes) AS decoded_bytes, sum(quarantined_bytes) AS quarantined_bytes, sum(dropped_bytes) AS dropped_bytes,
    read_bytes - decoded_bytes - quarantined_bytes - dropped_bytes AS unaccounted_bytes,
    sum(frames) AS frames, sum(messages) AS messages, sum(unknown) AS unknown, sum(problems) AS problems, max(seen_at) AS last_seen
FROM {{name "source_ledger"}} FINAL
GROUP BY tenant, source
COMMENT 'The account of every source: read = decoded + quarantined + dropped, and unaccounted_bytes is 0';
