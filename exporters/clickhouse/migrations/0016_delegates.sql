ALTER TABLE {{table "delegations"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS delegate_id String DEFAULT '' COMMENT 'The id of the agent that takes over, where delegate_to is its display name' CODEC(ZSTD(1)) AFTER delegate_to;

ALTER TABLE {{name "delegations"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS delegate_id String DEFAULT '' COMMENT 'The id of the agent that takes over, where delegate_to is its display name' AFTER delegate_to;

CREATE OR REPLACE VIEW {{view "v_delegations"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, delegate_to, tool_name, status, error_type,
    duration_ns / 1e6 AS duration_ms, async, child_run_id, link_method, link_confidence, args_bytes, result_bytes,
    tool_call_id, trace_id, span_id, delegate_id
FROM {{name "delegations"}} FINAL
COMMENT 'Delegations as they stand, durations in milliseconds';

ALTER TABLE {{view "v_delegations"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN ts 'When the work was handed over',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN run_id 'The run of the agent that delegates',
    COMMENT COLUMN agent_name 'The agent that delegates',
    COMMENT COLUMN delegate_to 'The agent that takes over, by its display name where any is known, else as the caller wrote it',
    COMMENT COLUMN tool_name 'The tool that delegates',
    COMMENT COLUMN status 'ok, error, cancelled or running',
    COMMENT COLUMN error_type 'Why it failed or was cancelled',
    COMMENT COLUMN duration_ms 'Milliseconds from call to result; 0 while running',
    COMMENT COLUMN async 'The caller goes on meanwhile',
    COMMENT COLUMN child_run_id 'The run that it caused; empty when none was found',
    COMMENT COLUMN link_method 'How the child was found: native_id, meta_file, fork_id, traceparent, parent_run, order, prompt',
    COMMENT COLUMN link_confidence 'Percent; 0 when the method says it all',
    COMMENT COLUMN args_bytes 'Size of the arguments',
    COMMENT COLUMN result_bytes 'Size of the result',
    COMMENT COLUMN tool_call_id 'The protocol''s id of the call',
    COMMENT COLUMN trace_id 'TraceId of otel_traces',
    COMMENT COLUMN span_id 'SpanId of otel_traces',
    COMMENT COLUMN delegate_id 'The id of the agent that takes over, where delegate_to is its display name';
