ALTER TABLE {{table "tool_calls"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS args_shape LowCardinality(String) DEFAULT '' COMMENT 'Names and types of the arguments: command:string timeout:number; empty when they are no JSON object' CODEC(ZSTD(1)) AFTER internal,
    ADD COLUMN IF NOT EXISTS attempt UInt16 DEFAULT 1 COMMENT '1, or the how manyth try it is: calls of the tool failed one after the other right before' CODEC(T64, ZSTD(1)) AFTER args_shape,
    ADD COLUMN IF NOT EXISTS result_tokens UInt32 DEFAULT 0 COMMENT 'Tokens by which the result made every later request of its run longer; 0 while unknown' CODEC(T64, ZSTD(1)) AFTER attempt,
    ADD COLUMN IF NOT EXISTS result_tokens_from LowCardinality(String) DEFAULT '' COMMENT 'Where the counts behind result_tokens come from: provider, transcript_final, transcript_partial, estimated; empty when unknown' AFTER result_tokens;

ALTER TABLE {{name "tool_calls"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS args_shape LowCardinality(String) DEFAULT '' COMMENT 'Names and types of the arguments: command:string timeout:number; empty when they are no JSON object' AFTER internal,
    ADD COLUMN IF NOT EXISTS attempt UInt16 DEFAULT 1 COMMENT '1, or the how manyth try it is: calls of the tool failed one after the other right before' AFTER args_shape,
    ADD COLUMN IF NOT EXISTS result_tokens UInt32 DEFAULT 0 COMMENT 'Tokens by which the result made every later request of its run longer; 0 while unknown' AFTER attempt,
    ADD COLUMN IF NOT EXISTS result_tokens_from LowCardinality(String) DEFAULT '' COMMENT 'Where the counts behind result_tokens come from: provider, transcript_final, transcript_partial, estimated; empty when unknown' AFTER result_tokens;

CREATE OR REPLACE VIEW {{view "v_tool_calls"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, tool_name, tool_type, mcp_server, status, error_type,
    duration_ns / 1e6 AS duration_ms, args_bytes, result_bytes, is_delegation, internal, tool_call_id, trace_id, span_id,
    model, if(result_tokens_from = '', NULL, result_tokens) AS result_tokens, result_tokens_from, args_shape, attempt
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
    COMMENT COLUMN result_tokens_from 'Where the counts behind result_tokens come from: provider, transcript_final, transcript_partial (the answer before may have been longer), estimated; empty when unknown',
    COMMENT COLUMN args_shape 'Names and types of the arguments: command:string timeout:number; empty when they are no JSON object',
    COMMENT COLUMN attempt '1, or the how manyth try it is: calls of the tool failed one after the other right before';

ALTER TABLE {{table "streams"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS chat_span_id String DEFAULT '' COMMENT 'The span of the model''s response that it was; empty when it was several, or none that the protocol names' CODEC(ZSTD(1)) AFTER run_id;

ALTER TABLE {{name "streams"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS chat_span_id String DEFAULT '' COMMENT 'The span of the model''s response that it was; empty when it was several, or none that the protocol names' AFTER run_id;

CREATE OR REPLACE VIEW {{view "v_streams"}}{{onCluster}}
AS SELECT
    tenant, source, format, started_at AS ts, origin, method, status, session_id, run_id, remote_trace_id, remote_span_id,
    first_byte_ns / 1e6 AS first_byte_ms, if(events > 0, first_event_ns / 1e6, NULL) AS first_event_ms, total_ns / 1e6 AS duration_ms,
    chunks, bytes, events, longest_stall_ns / 1e6 AS longest_stall_ms, gap_p50_ns / 1e6 AS gap_p50_ms, gap_p95_ns / 1e6 AS gap_p95_ms,
    buffered, stream, chat_span_id
FROM {{name "streams"}} FINAL
COMMENT 'Responses and connections that were heard live, times in milliseconds';

ALTER TABLE {{view "v_streams"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that reads it',
    COMMENT COLUMN ts 'When the request was sent',
    COMMENT COLUMN origin 'URL',
    COMMENT COLUMN method 'Of the request; empty for a stream that was only taken up again',
    COMMENT COLUMN status 'Of HTTP; 101 is a WebSocket',
    COMMENT COLUMN session_id 'The conversation that it spoke of first',
    COMMENT COLUMN run_id 'The top-level run that it spoke of first',
    COMMENT COLUMN remote_trace_id 'Of the traceparent of the request; empty without one',
    COMMENT COLUMN remote_span_id 'Of the traceparent of the request: the span of whoever asked',
    COMMENT COLUMN first_byte_ms 'Milliseconds to the head of the response',
    COMMENT COLUMN first_event_ms 'Milliseconds to the first event or message; null when there was none',
    COMMENT COLUMN duration_ms 'Milliseconds to the last byte',
    COMMENT COLUMN chunks 'Reads that the body came in',
    COMMENT COLUMN bytes 'Of the body, as it was sent',
    COMMENT COLUMN events 'Events, lines or messages',
    COMMENT COLUMN longest_stall_ms 'Longest pause between two chunks, in milliseconds',
    COMMENT COLUMN gap_p50_ms 'Median pause between two chunks, in milliseconds',
    COMMENT COLUMN gap_p95_ms '95th percentile of them',
    COMMENT COLUMN buffered 'All events of a slow response came at its end: something on the way seems to hold them back',
    COMMENT COLUMN stream 'The recording, as in source_ledger',
    COMMENT COLUMN chat_span_id 'The span of the model''s response that it was; empty when it was several, or none that the protocol names'
