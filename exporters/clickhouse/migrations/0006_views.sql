CREATE VIEW IF NOT EXISTS {{view "v_messages"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, parent_run_id, seq, message_id, parent_message_id, trace_id, span_id,
    agent_id, agent_name, agent_kind, role, kind, provider, model,
    tool_name, tool_call_id, tool_arguments, tool_result, delegate_to, delegate_task, child_run_id, link_method,
    finish_reason, is_error, complete, hidden, content, content_bytes,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, attributes
FROM {{name "messages"}} FINAL
COMMENT 'Messages as they stand: each once, in its latest version. Order a session by ts, seq';

CREATE VIEW IF NOT EXISTS {{view "v_sessions"}}{{onCluster}}
AS SELECT
    tenant, session_id, min(source) AS source, min(format) AS format,
    min(ts) AS started, max(ts) AS last_message, dateDiff('millisecond', started, last_message) AS duration_ms,
    uniqExactIf(run_id, run_id != '') AS runs,
    count() AS messages,
    countIf(kind = 'user') AS user_messages,
    countIf(kind = 'tool_call') AS tool_calls,
    countIf(kind = 'delegation') AS delegations,
    countIf(is_error) AS errors,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens, sum(reasoning_tokens) AS reasoning_tokens,
    arraySort(groupUniqArrayIf(agent_name, agent_name != '')) AS agents,
    arraySort(groupUniqArrayIf(model, model != '')) AS models
FROM {{name "messages"}} FINAL
GROUP BY tenant, session_id
COMMENT 'Conversations: what was said, called and spent in each';

CREATE VIEW IF NOT EXISTS {{view "v_tool_calls"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, tool_name, tool_type, mcp_server, status, error_type,
    duration_ns / 1e6 AS duration_ms, args_bytes, result_bytes, is_delegation, internal, tool_call_id, trace_id, span_id
FROM {{name "tool_calls"}} FINAL
COMMENT 'Tool calls as they stand, durations in milliseconds';

CREATE VIEW IF NOT EXISTS {{view "v_delegations"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, delegate_to, tool_name, status, error_type,
    duration_ns / 1e6 AS duration_ms, async, child_run_id, link_method, link_confidence, args_bytes, result_bytes,
    tool_call_id, trace_id, span_id
FROM {{name "delegations"}} FINAL
COMMENT 'Delegations as they stand, durations in milliseconds';

CREATE VIEW IF NOT EXISTS {{view "v_open_spans"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, last_seen, age_ms, silent_ms, kind, name, session_id, run_id, agent_name, tool_name, delegate_to,
    tool_call_id, trace_id, span_id, parent_span_id
FROM {{name "open_spans"}} FINAL
COMMENT 'What is running now, and for how long';
