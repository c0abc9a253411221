-- Whom a call waits for. Redefines the views v_tool_calls and v_open_spans: a later migration that redefines one of them
-- keeps its columns waits_for and waited_ms.
ALTER TABLE {{table "tool_calls"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS waits_for LowCardinality(String) DEFAULT '' COMMENT 'person: a person was waited for, or is while it runs; empty otherwise' AFTER internal,
    ADD COLUMN IF NOT EXISTS waited_ns UInt64 DEFAULT 0 COMMENT 'Nanoseconds of duration_ns that a person took; 0 while running' CODEC(T64, ZSTD(1)) AFTER waits_for;

ALTER TABLE {{name "tool_calls"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS waits_for LowCardinality(String) DEFAULT '' COMMENT 'person: a person was waited for, or is while it runs; empty otherwise' AFTER internal,
    ADD COLUMN IF NOT EXISTS waited_ns UInt64 DEFAULT 0 COMMENT 'Nanoseconds of duration_ns that a person took; 0 while running' AFTER waits_for;

ALTER TABLE {{table "open_spans"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS waits_for LowCardinality(String) DEFAULT '' COMMENT 'person: a person has to answer before it goes on; empty otherwise' AFTER delegate_to;

ALTER TABLE {{name "open_spans"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS waits_for LowCardinality(String) DEFAULT '' COMMENT 'person: a person has to answer before it goes on; empty otherwise' AFTER delegate_to;

CREATE OR REPLACE VIEW {{view "v_tool_calls"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, tool_name, tool_type, mcp_server, status, error_type,
    duration_ns / 1e6 AS duration_ms, args_bytes, result_bytes, is_delegation, internal, tool_call_id, trace_id, span_id,
    model, if(result_tokens_from = '', NULL, result_tokens) AS result_tokens, result_tokens_from, args_shape, attempt,
    waits_for, waited_ns / 1e6 AS waited_ms
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
    COMMENT COLUMN attempt '1, or the how manyth try it is: calls of the tool failed one after the other right before',
    COMMENT COLUMN waits_for 'person: while it runs, a person has to answer before it goes on; once it has ended, it waited for one for waited_ms; empty otherwise',
    COMMENT COLUMN waited_ms 'Milliseconds of duration_ms that a person took, which are not the tool''s; 0 while running';

CREATE OR REPLACE VIEW {{view "v_open_spans"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, last_seen, age_ms, silent_ms, kind, name, session_id, run_id, agent_name, tool_name, delegate_to,
    tool_call_id, trace_id, span_id, parent_span_id, waits_for
FROM {{name "open_spans"}} FINAL
COMMENT 'What is running now, and for how long';

ALTER TABLE {{view "v_open_spans"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN ts 'When it began',
    COMMENT COLUMN last_seen 'Time of its last event',
    COMMENT COLUMN age_ms 'Milliseconds since it began',
    COMMENT COLUMN silent_ms 'Milliseconds since its last event',
    COMMENT COLUMN kind 'run, chat, tool, delegation or workflow',
    COMMENT COLUMN name 'SpanName that it will have in otel_traces',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN run_id 'One invocation of one agent',
    COMMENT COLUMN agent_name 'The agent that runs',
    COMMENT COLUMN tool_name 'Of a tool call or a delegation',
    COMMENT COLUMN delegate_to 'Of a delegation',
    COMMENT COLUMN tool_call_id 'The protocol''s id of the call',
    COMMENT COLUMN trace_id 'TraceId that it will have in otel_traces',
    COMMENT COLUMN span_id 'SpanId that it will have in otel_traces',
    COMMENT COLUMN parent_span_id 'Empty for the root',
    COMMENT COLUMN waits_for 'person: a person has to answer before it goes on; empty otherwise';

ALTER TABLE {{table "delegations"}}{{onCluster}}
    COMMENT COLUMN duration_ns 'Nanoseconds that the work took: from the call to the end of the run that it caused, where that is told, else to the result; 0 while running';

ALTER TABLE {{name "delegations"}}{{onCluster}}
    COMMENT COLUMN duration_ns 'Nanoseconds that the work took: from the call to the end of the run that it caused, where that is told, else to the result; 0 while running';

ALTER TABLE {{view "v_delegations"}}{{onCluster}}
    COMMENT COLUMN duration_ms 'Milliseconds that the work took: from the call to the end of the run that it caused, where that is told, else to the result; 0 while running'
