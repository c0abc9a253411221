{{define "columns"}}
    ADD COLUMN IF NOT EXISTS Kind LowCardinality(String) MATERIALIZED multiIf(SpanAttributes['gen_ai.operation.name'] = 'chat', 'chat',
        SpanAttributes['gen_ai.operation.name'] = 'execute_tool' AND (SpanAttributes['earshot.delegate.to'] != '' OR SpanAttributes['earshot.child_run.id'] != ''), 'delegation',
        SpanAttributes['gen_ai.operation.name'] = 'execute_tool', 'tool',
        SpanAttributes['gen_ai.operation.name'] = 'invoke_workflow', 'workflow', 'run') COMMENT 'run, chat, tool, delegation or workflow',
    ADD COLUMN IF NOT EXISTS Format LowCardinality(String) MATERIALIZED SpanAttributes['earshot.format'] COMMENT 'earshot.format',
    ADD COLUMN IF NOT EXISTS Model LowCardinality(String) MATERIALIZED SpanAttributes['gen_ai.request.model'] COMMENT 'gen_ai.request.model',
    ADD COLUMN IF NOT EXISTS Outcome LowCardinality(String) MATERIALIZED SpanAttributes['earshot.outcome'] COMMENT 'earshot.outcome',
    ADD COLUMN IF NOT EXISTS FirstToken Nullable(Float64) MATERIALIZED toFloat64OrNull(SpanAttributes['gen_ai.response.time_to_first_chunk']) COMMENT 'gen_ai.response.time_to_first_chunk: seconds; null when unknown',
    ADD COLUMN IF NOT EXISTS OutputTokens UInt64 MATERIALIZED toUInt64OrZero(SpanAttributes['gen_ai.usage.output_tokens']) COMMENT 'gen_ai.usage.output_tokens'{{end -}}
ALTER TABLE {{table "otel_traces"}}{{onCluster}}{{template "columns"}};

ALTER TABLE {{name "otel_traces"}}{{onCluster}}{{template "columns"}};

ALTER TABLE {{table "otel_traces"}}{{onCluster}}
    MATERIALIZE COLUMN Kind,
    MATERIALIZE COLUMN Format,
    MATERIALIZE COLUMN Model,
    MATERIALIZE COLUMN Outcome,
    MATERIALIZE COLUMN FirstToken,
    MATERIALIZE COLUMN OutputTokens;

CREATE OR REPLACE VIEW {{view "v_spans"}}{{onCluster}}
AS SELECT
    SpanAttributes['earshot.tenant'] AS tenant, ServiceName AS source, Format AS format,
    Timestamp AS ts, SessionId AS session_id, SpanAttributes['earshot.run.id'] AS run_id,
    TraceId AS trace_id, SpanId AS span_id, ParentSpanId AS parent_span_id,
    Kind AS kind, SpanName AS name, AgentName AS agent_name, ToolName AS tool_name, SpanAttributes['earshot.delegate.to'] AS delegate_to,
    Model AS model, Duration / 1e6 AS duration_ms,
    if(Outcome = '', 'unset', Outcome) AS status,
    if(SpanAttributes['error.type'] != '', SpanAttributes['error.type'], SpanAttributes['earshot.cancel.reason']) AS error_type,
    StatusMessage AS error, FirstToken * 1000 AS first_token_ms, OutputTokens AS output_tokens
FROM {{name "otel_traces"}} FINAL
WHERE ScopeName = 'github.com/earshot-dev/earshot'
COMMENT 'Spans of Earshot that have ended, not those that an agent sent itself, with the attributes that people ask for as columns. output_tokens of a run are those of its chats once more';

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
    COMMENT COLUMN delegate_to 'The agent that takes over, by the name the caller used',
    COMMENT COLUMN model 'gen_ai.request.model',
    COMMENT COLUMN duration_ms 'Milliseconds',
    COMMENT COLUMN status 'ok, error, cancelled, ... or unset',
    COMMENT COLUMN error_type 'Why it failed or was cancelled',
    COMMENT COLUMN error 'Message of a failure',
    COMMENT COLUMN first_token_ms 'Milliseconds from the request to the first token; null when unknown',
    COMMENT COLUMN output_tokens 'Tokens answered, reasoning among them; of a run those of its chats once more'
