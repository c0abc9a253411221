ALTER TABLE {{table "tool_calls"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS result_tokens UInt32 DEFAULT 0 COMMENT 'Tokens by which the result made every later request of its run longer; 0 while unknown' CODEC(T64, ZSTD(1)) AFTER internal,
    ADD COLUMN IF NOT EXISTS result_tokens_from LowCardinality(String) DEFAULT '' COMMENT 'Where the counts behind result_tokens come from: provider, transcript_final, transcript_partial, estimated; empty when unknown' AFTER result_tokens;

ALTER TABLE {{name "tool_calls"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS result_tokens UInt32 DEFAULT 0 COMMENT 'Tokens by which the result made every later request of its run longer; 0 while unknown' AFTER internal,
    ADD COLUMN IF NOT EXISTS result_tokens_from LowCardinality(String) DEFAULT '' COMMENT 'Where the counts behind result_tokens come from: provider, transcript_final, transcript_partial, estimated; empty when unknown' AFTER result_tokens;

CREATE OR REPLACE VIEW {{view "v_tool_calls"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, tool_name, tool_type, mcp_server, status, error_type,
    duration_ns / 1e6 AS duration_ms, args_bytes, result_bytes, is_delegation, internal, tool_call_id, trace_id, span_id,
    model, if(result_tokens_from = '', NULL, result_tokens) AS result_tokens, result_tokens_from
FROM {{name "tool_calls"}} FINAL
COMMENT 'Tool calls as they stand, durations in milliseconds';

ALTER TABLE {{view "v_tool_calls"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN ts 'When the call began',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN run_id 'The run of the agent that called',
    COMMENT COLUMN agent_name 'The agent that called',
    COMMENT COLUMN tool_name 'gen_ai.tool.name',
    COMMENT COLUMN tool_type 'extension for a tool of an MCP server, else function',
    COMMENT COLUMN mcp_server 'MCP server that has the tool',
    COMMENT COLUMN status 'ok, error, cancelled or running',
    COMMENT COLUMN error_type 'Why it failed or was cancelled: timeout, denied, no_result, ...',
    COMMENT COLUMN duration_ms 'Milliseconds from call to result; 0 while running',
    COMMENT COLUMN args_bytes 'Size of the arguments',
    COMMENT COLUMN result_bytes 'Size of the result',
    COMMENT COLUMN is_delegation 'It hands work to another agent; see delegations',
    COMMENT COLUMN internal 'The framework''s own machinery',
    COMMENT COLUMN tool_call_id 'The protocol''s id of the call',
    COMMENT COLUMN trace_id 'TraceId of otel_traces',
    COMMENT COLUMN span_id 'SpanId of otel_traces',
    COMMENT COLUMN model 'The model that asked for it, where it is known',
    COMMENT COLUMN result_tokens 'Tokens by which the result made every later request of its run longer, whatever else came with it; null when unknown: the last results of a run, usage that is missing, a compaction',
    COMMENT COLUMN result_tokens_from 'Where the counts behind result_tokens come from: provider, transcript_final, transcript_partial (the answer before may have been longer), estimated; empty when unknown';
