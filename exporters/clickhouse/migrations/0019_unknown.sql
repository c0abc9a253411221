-- What is not known is null, and output_tokens is the same in every view. Redefines v_usage and v_spans: a later
-- migration that redefines one of them keeps cost_usd nullable, and output_tokens without reasoning.
CREATE OR REPLACE VIEW {{view "v_usage"}}{{onCluster}}
AS SELECT
    m.tenant AS tenant, m.source AS source, m.format AS format, m.ts AS ts, m.session_id AS session_id, m.run_id AS run_id, m.trace_id AS trace_id,
    m.agent_name AS agent_name, m.provider AS provider, m.model AS model,
    m.input_tokens AS input_tokens, m.output_tokens AS output_tokens, m.cache_read_tokens AS cache_read_tokens,
    m.cache_write_tokens AS cache_write_tokens, m.reasoning_tokens AS reasoning_tokens,
    m.input_tokens + m.output_tokens + m.cache_read_tokens + m.cache_write_tokens + m.reasoning_tokens AS tokens,
    p.model != '' AS has_price,
    if(p.model != '', (m.input_tokens * p.input_usd_per_m + (m.output_tokens + m.reasoning_tokens) * p.output_usd_per_m
        + m.cache_read_tokens * p.cache_read_usd_per_m + m.cache_write_tokens * p.cache_write_usd_per_m) / 1e6, NULL) AS cost_usd
FROM
(
    SELECT *,
        replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(lower(trimBoth(model)), '^.*/', ''), '^.*?anthropic\\.(.*?)(-v1)?(:0)?$', '\\1'),
            '[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)$', '') AS price_model,
        toDateTime(ts, 'UTC') AS at
    FROM {{name "messages"}} FINAL
    WHERE input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens > 0
) AS m
ASOF LEFT JOIN (SELECT * FROM {{name "model_prices"}} FINAL) AS p ON m.price_model = p.model AND m.at >= p.valid_from
COMMENT 'What was spent: every message that tells tokens, priced by model_prices. cost_usd is null where the model has no price, so a sum is what is known';

ALTER TABLE {{view "v_usage"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data; default unless the source says otherwise',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that read it: agno, legion, claude-code, ...',
    COMMENT COLUMN ts 'When the tokens were told',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN run_id 'One invocation of one agent; empty when the format has no such thing',
    COMMENT COLUMN trace_id 'TraceId of otel_traces, in hex',
    COMMENT COLUMN agent_name 'The agent that runs',
    COMMENT COLUMN provider 'gen_ai.provider.name',
    COMMENT COLUMN model 'As the protocol names it',
    COMMENT COLUMN input_tokens 'Tokens sent, neither read from nor written to a cache. The classes are exclusive: add them up',
    COMMENT COLUMN output_tokens 'Tokens answered, without reasoning',
    COMMENT COLUMN cache_read_tokens 'Tokens read from a cache',
    COMMENT COLUMN cache_write_tokens 'Tokens written to a cache',
    COMMENT COLUMN reasoning_tokens 'Tokens of reasoning',
    COMMENT COLUMN tokens 'All classes together',
    COMMENT COLUMN has_price 'model_prices knows the model',
    COMMENT COLUMN cost_usd 'US dollars at the prices of model_prices; null without a price';

CREATE OR REPLACE VIEW {{view "v_spans"}}{{onCluster}}
AS SELECT
    SpanAttributes['earshot.tenant'] AS tenant, ServiceName AS source, Format AS format,
    Timestamp AS ts, SessionId AS session_id, SpanAttributes['earshot.run.id'] AS run_id,
    TraceId AS trace_id, SpanId AS span_id, ParentSpanId AS parent_span_id,
    Kind AS kind, SpanName AS name, AgentName AS agent_name, ToolName AS tool_name, SpanAttributes['earshot.delegate.to'] AS delegate_to,
    Model AS model, Duration / 1e6 AS duration_ms,
    if(Outcome = '', 'unset', Outcome) AS status,
    if(SpanAttributes['error.type'] != '', SpanAttributes['error.type'], SpanAttributes['earshot.cancel.reason']) AS error_type,
    StatusMessage AS error, FirstToken * 1000 AS first_token_ms,
    toUInt64OrZero(SpanAttributes['gen_ai.usage.reasoning.output_tokens']) AS reasoning_tokens,
    OutputTokens - least(OutputTokens, reasoning_tokens) AS output_tokens
FROM {{name "otel_traces"}} FINAL
WHERE ScopeName = 'github.com/earshot-dev/earshot'
COMMENT 'Spans of Earshot that have ended, not those that an agent sent itself, with the attributes that people ask for as columns. Tokens of a run are those of its chats once more';

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
    COMMENT COLUMN reasoning_tokens 'Tokens of reasoning; of a run those of its chats once more',
    COMMENT COLUMN output_tokens 'Tokens answered, without reasoning; of a run those of its chats once more'
