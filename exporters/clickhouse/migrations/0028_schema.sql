-- The schema of the first release: one server, a Replicated database or a cluster. The
-- columns of a table, and their comments, are those of core/msg/schema; a view repeats the
-- comments of its table for the columns that it has as they are.
CREATE TABLE IF NOT EXISTS {{table "messages"}}{{onCluster}}
(
{{columns "messages"}},
    INDEX idx_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_tool_call tool_call_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_fts lower(content) TYPE text(tokenizer = 'splitByNonAlpha'),
    INDEX idx_ingest ingest_ts TYPE minmax GRANULARITY 1
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, toStartOfHour(ts), session_id)
ORDER BY (tenant, toStartOfHour(ts), session_id, message_id, part_index){{ttl "messages"}}
SETTINGS {{settings}}, min_bytes_for_wide_part = 134217728
COMMENT 'Every normalized message. Read it with FINAL, or through v_messages';
{{distributed "messages" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "otel_traces"}}{{onCluster}}
(
{{columns "otel_traces"}},
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_session SessionId TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_span_attr_key mapKeys(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_span_attr_value mapValues(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_duration Duration TYPE minmax GRANULARITY 1
)
ENGINE = {{replacing "Ver, IsDeleted"}}
PARTITION BY toDate(Timestamp)
PRIMARY KEY (toDateTime(Timestamp), TraceId)
ORDER BY (toDateTime(Timestamp), TraceId, SpanId){{ttl "otel_traces"}}
SETTINGS {{settings}}, min_bytes_for_wide_part = 134217728
COMMENT 'Spans that have ended, in the columns of the OpenTelemetry collector. Read it with FINAL or final = 1';
{{distributed "otel_traces" "cityHash64(TraceId)"}};

CREATE TABLE IF NOT EXISTS {{table "otel_traces_trace_id_ts"}}{{onCluster}}
(
    TraceId String COMMENT 'Hex' CODEC(ZSTD(1)),
    Start   SimpleAggregateFunction(min, DateTime) COMMENT 'Of the first span' CODEC(Delta(4), ZSTD(1)),
    End     SimpleAggregateFunction(max, DateTime) COMMENT 'Start of the last span' CODEC(Delta(4), ZSTD(1)),
    Seen    SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'When a span was last stored; retention counts from here' CODEC(Delta(4), ZSTD(1))
)
ENGINE = {{aggregating}}
PARTITION BY toYYYYMM(Start)
ORDER BY TraceId{{ttl "otel_traces_trace_id_ts"}}
SETTINGS {{settings}}
COMMENT 'When a trace was, so that a search for its id need not read every day. The collector''s companion table';
{{distributed "otel_traces_trace_id_ts" "cityHash64(TraceId)"}};

CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "otel_traces_trace_id_ts_mv"}}{{onCluster}} TO {{table "otel_traces_trace_id_ts"}}
AS SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End, max(IngestTs) AS Seen
FROM {{table "otel_traces"}}
WHERE TraceId != '' AND IsDeleted = 0
GROUP BY TraceId;

CREATE TABLE IF NOT EXISTS {{table "tool_calls"}}{{onCluster}}
(
{{columns "tool_calls"}},
    INDEX idx_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, toStartOfHour(ts))
ORDER BY (tenant, toStartOfHour(ts), span_id){{ttl "tool_calls"}}
SETTINGS {{settings}}
COMMENT 'One row per tool call, delegations among them. Read it with FINAL, or through v_tool_calls';
{{distributed "tool_calls" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "delegations"}}{{onCluster}}
(
{{columns "delegations"}},
    INDEX idx_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, toStartOfHour(ts))
ORDER BY (tenant, toStartOfHour(ts), span_id){{ttl "delegations"}}
SETTINGS {{settings}}
COMMENT 'One row per delegation of work to another agent. Read it with FINAL, or through v_delegations';
{{distributed "delegations" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "open_spans"}}{{onCluster}}
(
{{columns "open_spans"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toDate(ts)
ORDER BY (tenant, span_id){{ttl "open_spans"}}
SETTINGS {{settings}}
COMMENT 'Spans that are open now. Read it with FINAL, or through v_open_spans';
{{distributed "open_spans" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "findings"}}{{onCluster}}
(
{{columns "findings"}}
)
ENGINE = {{replacing "ver"}}
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, toStartOfHour(ts))
ORDER BY (tenant, toStartOfHour(ts), span_id, kind, ts){{ttl "findings"}}
SETTINGS {{settings}}
COMMENT 'Anomalies of runs: loops, error storms, fan-outs, silences. Each is reported again when it has doubled. Read it with FINAL, or through v_findings';
{{distributed "findings" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "dead_letters"}}{{onCluster}}
(
{{columns "dead_letters"}}
)
ENGINE = {{replacing "ver"}}
ORDER BY (tenant, source, dl_id){{ttl "dead_letters"}}
SETTINGS {{settings}}
COMMENT 'Input, and rows, that could not be decoded or stored. Read it with FINAL';
{{distributed "dead_letters" "cityHash64(dl_id)"}};

CREATE TABLE IF NOT EXISTS {{table "source_ledger"}}{{onCluster}}
(
{{columns "source_ledger"}}
)
ENGINE = {{replacing "ver"}}
ORDER BY (tenant, source, stream)
SETTINGS {{settings}}
COMMENT 'The account of every stream. Read it with FINAL';
{{distributed "source_ledger" "cityHash64(stream)"}};

CREATE TABLE IF NOT EXISTS {{table "streams"}}{{onCluster}}
(
{{columns "streams"}}
)
ENGINE = {{replacing "ver"}}
PARTITION BY toYYYYMM(started_at)
PRIMARY KEY (tenant, toStartOfHour(started_at))
ORDER BY (tenant, toStartOfHour(started_at), source, stream, started_at){{ttl "streams"}}
SETTINGS {{settings}}
COMMENT 'HTTP responses and connections that were read live, to their end: the caller, and their timing. Read it with FINAL, or through v_streams';
{{distributed "streams" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "sessions"}}{{onCluster}}
(
    tenant     LowCardinality(String) COMMENT 'Owner of the data',
    session_id String COMMENT 'The conversation' CODEC(ZSTD(1)),
    began      SimpleAggregateFunction(min, DateTime64(9, 'UTC')) COMMENT 'Time of its first message' CODEC(Delta(8), ZSTD(1)),
    latest     SimpleAggregateFunction(max, DateTime64(9, 'UTC')) COMMENT 'Time of its last message' CODEC(Delta(8), ZSTD(1)),
    first_at   SimpleAggregateFunction(min, Nullable(DateTime64(9, 'UTC'))) COMMENT 'Time of its first message that is not hidden and whose time is the protocol''s; null when there is none' CODEC(ZSTD(1)),
    last_at    SimpleAggregateFunction(max, Nullable(DateTime64(9, 'UTC'))) COMMENT 'Time of the last such message' CODEC(ZSTD(1)),
    asked      SimpleAggregateFunction(max, DateTime64(9, 'UTC')) COMMENT 'Time of its last prompt; 1970 when there is none' CODEC(Delta(8), ZSTD(1)),
    sources    SimpleAggregateFunction(groupUniqArrayArray, Array(String)) COMMENT 'Sources that it came from' CODEC(ZSTD(1)),
    formats    SimpleAggregateFunction(groupUniqArrayArray, Array(String)) COMMENT 'Decoders that read it' CODEC(ZSTD(1)),
    agents     SimpleAggregateFunction(groupUniqArrayArray, Array(String)) COMMENT 'Agents that have messages; an empty name for one without a name' CODEC(ZSTD(1)),
    models     SimpleAggregateFunction(groupUniqArrayArray, Array(String)) COMMENT 'Models that answered' CODEC(ZSTD(1)),
    seen       SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'When a message was last stored; retention counts from here' CODEC(Delta(4), ZSTD(1))
)
ENGINE = {{aggregating}}
PARTITION BY toYYYYMM(began)
ORDER BY (tenant, session_id){{ttl "sessions"}}
SETTINGS {{settings}}
COMMENT 'Times and participants of a conversation, so that a search for one need not read every message. Sets and bounds: a replay changes nothing. Read it through v_session_times';
{{distributed "sessions" "cityHash64(session_id)"}};

CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "sessions_mv"}}{{onCluster}} TO {{table "sessions"}}
AS SELECT tenant, session_id, min(ts) AS began, max(ts) AS latest, maxIf(ts, kind = 'user') AS asked,
    minOrNullIf(ts, NOT hidden AND attributes['time_precision'] != 'inferred') AS first_at,
    maxOrNullIf(ts, NOT hidden AND attributes['time_precision'] != 'inferred') AS last_at,
    groupUniqArray(toString(source)) AS sources, groupUniqArray(toString(format)) AS formats,
    groupUniqArrayIf(toString(agent_name), kind != 'user') AS agents, groupUniqArrayIf(toString(model), model != '') AS models,
    max(ingest_ts) AS seen
FROM {{table "messages"}}
WHERE is_deleted = 0
GROUP BY tenant, session_id;

CREATE TABLE IF NOT EXISTS {{table "tool_usage_1h"}}{{onCluster}}
(
    tenant     LowCardinality(String) COMMENT 'Owner of the data',
    hour       DateTime('UTC') COMMENT 'Hour in which the calls began' CODEC(Delta(4), ZSTD(1)),
    tool_name  LowCardinality(String) COMMENT 'gen_ai.tool.name',
    agent_name LowCardinality(String) COMMENT 'The agent that called',
    calls      AggregateFunction(uniqExact, FixedString(16)) COMMENT 'uniqExactMerge(calls)',
    errors     AggregateFunction(uniqExactIf, FixedString(16), UInt8) COMMENT 'uniqExactIfMerge(errors)',
    over_1s    AggregateFunction(uniqExactIf, FixedString(16), UInt8) COMMENT 'Calls of a second or more: uniqExactIfMerge(over_1s)',
    over_10s   AggregateFunction(uniqExactIf, FixedString(16), UInt8) COMMENT 'Calls of ten seconds or more: uniqExactIfMerge(over_10s)',
    over_1m    AggregateFunction(uniqExactIf, FixedString(16), UInt8) COMMENT 'Calls of a minute or more: uniqExactIfMerge(over_1m)',
    sessions   AggregateFunction(uniq, String) COMMENT 'About: uniqMerge(sessions)',
    seen       SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'When a call was last stored; retention counts from here'
)
ENGINE = {{aggregating}}
PARTITION BY toYYYYMM(hour)
ORDER BY (tenant, tool_name, agent_name, hour){{ttl "tool_usage_1h"}}
SETTINGS {{settings}}
COMMENT 'Tool calls by hour, kept longer than the calls. Counts are of distinct span ids, so that a replay changes nothing; exact percentiles come from tool_calls';
{{distributed "tool_usage_1h" "cityHash64(tool_name)"}};

CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "tool_usage_1h_mv"}}{{onCluster}} TO {{table "tool_usage_1h"}}
AS SELECT tenant, toStartOfHour(ts) AS hour, tool_name, agent_name,
    uniqExactState(span_id) AS calls,
    uniqExactIfState(span_id, toUInt8(status = 'error')) AS errors,
    uniqExactIfState(span_id, toUInt8(duration_ns >= 1000000000)) AS over_1s,
    uniqExactIfState(span_id, toUInt8(duration_ns >= 10000000000)) AS over_10s,
    uniqExactIfState(span_id, toUInt8(duration_ns >= 60000000000)) AS over_1m,
    uniqState(session_id) AS sessions,
    max(ingest_ts) AS seen
FROM {{table "tool_calls"}}
WHERE status != 'running' AND is_deleted = 0
GROUP BY tenant, hour, tool_name, agent_name;

CREATE TABLE IF NOT EXISTS {{name "model_prices"}}{{onCluster}}
(
    model                String COMMENT 'Name of the model without its date: claude-sonnet-4-5 for claude-sonnet-4-5-20250929',
    valid_from           DateTime('UTC') COMMENT 'The price applies to tokens from then on, until the next row of the model',
    input_usd_per_m      Float64 COMMENT 'US dollars for a million input tokens',
    output_usd_per_m     Float64 COMMENT 'US dollars for a million output tokens; reasoning counts as output',
    cache_read_usd_per_m  Float64 COMMENT 'US dollars for a million tokens read from a cache',
    cache_write_usd_per_m Float64 COMMENT 'US dollars for a million tokens written to a cache, at the shortest lifetime that is sold',
    origin               String COMMENT 'Where the price is from, and when it was looked up',
    ver                  UInt64 DEFAULT toUnixTimestamp64Milli(now64(3)) COMMENT 'Of rows with the same key the one with the highest version is valid: 1 is the configured prices, which earshot writes; a row that you insert has precedence'
)
ENGINE = {{everywhere "ver"}}
ORDER BY (model, valid_from)
COMMENT 'Prices of models. Insert your own; v_usage uses them at once';

CREATE TABLE IF NOT EXISTS {{name "thresholds"}}{{onCluster}}
(
    name     String COMMENT 'silent or stuck',
    after_ms UInt64 COMMENT 'Milliseconds of silence after which a span is called that',
    ver      UInt64 DEFAULT toUnixTimestamp64Milli(now64(3)) COMMENT 'Of rows with the same name the one with the highest version is valid'
)
ENGINE = {{everywhere "ver"}}
ORDER BY name
COMMENT 'The silence after which v_open_spans calls a span silent or stuck. Earshot writes the configured values of the section now';

INSERT INTO {{name "thresholds"}} (name, after_ms, ver)
SELECT * FROM values('name String, after_ms UInt64, ver UInt64', ('silent', 60000, 0), ('stuck', 600000, 0));

CREATE VIEW IF NOT EXISTS {{view "v_messages"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, parent_run_id, seq, message_id, parent_message_id, trace_id, span_id,
    agent_id, agent_name, agent_kind, role, kind, provider, model,
    tool_name, tool_call_id, tool_arguments, tool_result, delegate_to, delegate_task, child_run_id, link_method,
    finish_reason, is_error, complete, hidden, content, content_bytes,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, attributes
FROM {{name "messages"}} FINAL
COMMENT 'Messages, each once, in its latest version. Order a session by ts, seq';

ALTER TABLE {{view "v_messages"}}{{onCluster}}
{{comments "messages" "tenant source format session_id run_id parent_run_id seq message_id parent_message_id trace_id span_id agent_id agent_name agent_kind role kind provider model tool_name tool_call_id tool_arguments tool_result delegate_to delegate_task child_run_id link_method finish_reason is_error complete hidden content content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens attributes"}},
    COMMENT COLUMN ts 'When it happened, by the protocol';

CREATE VIEW IF NOT EXISTS {{view "v_session_times"}}{{onCluster}}
AS SELECT
    tenant, session_id, coalesce(min(s.first_at), min(s.began)) AS began, coalesce(max(s.last_at), max(s.latest)) AS latest, max(s.asked) AS asked,
    groupUniqArrayArray(s.sources) AS sources, groupUniqArrayArray(s.formats) AS formats,
    groupUniqArrayArray(s.agents) AS agents, groupUniqArrayArray(s.models) AS models
FROM {{name "sessions"}} AS s
GROUP BY tenant, session_id
COMMENT 'Times and participants of conversations: quick, however many messages they have';

ALTER TABLE {{view "v_session_times"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN began 'Time of its first message that is not hidden and whose time is the protocol''s; of its first when there is none',
    COMMENT COLUMN latest 'Time of its last such message',
    COMMENT COLUMN asked 'Time of its last prompt; 1970 when there is none',
    COMMENT COLUMN sources 'Sources that it came from',
    COMMENT COLUMN formats 'Decoders that read it',
    COMMENT COLUMN agents 'Agents that have messages; an empty name for one without a name',
    COMMENT COLUMN models 'Models that answered';

CREATE VIEW IF NOT EXISTS {{view "v_sessions"}}{{onCluster}}
AS SELECT
    tenant, session_id, min(source) AS source, min(format) AS format,
    coalesce(minOrNullIf(ts, NOT hidden AND NOT inferred), min(ts)) AS started, coalesce(maxOrNullIf(ts, NOT hidden AND NOT inferred), max(ts)) AS last_message,
    dateDiff('millisecond', started, last_message) AS duration_ms,
    uniqExactIf(run_id, run_id != '') AS runs,
    count() AS messages,
    countIf(kind = 'user') AS user_messages,
    countIf(kind = 'tool_call') AS tool_calls,
    countIf(kind = 'delegation') AS delegations,
    countIf(failed) AS errors,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens, sum(reasoning_tokens) AS reasoning_tokens,
    arraySort(groupUniqArrayIf(agent_name, agent_name != '')) AS agents,
    arraySort(groupUniqArrayIf(model, model != '')) AS models
FROM {{name "messages"}} FINAL
GROUP BY tenant, session_id
COMMENT 'Conversations: counts of the messages, calls, errors and tokens of each';

ALTER TABLE {{view "v_sessions"}}{{onCluster}}
{{comments "messages" "session_id source input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN started 'Time of its first message that is not hidden and whose time is the protocol''s; of its first when there is none',
    COMMENT COLUMN last_message 'Time of its last such message',
    COMMENT COLUMN duration_ms 'Milliseconds between the two',
    COMMENT COLUMN runs 'Invocations of agents',
    COMMENT COLUMN messages 'Messages of all kinds',
    COMMENT COLUMN user_messages 'Prompts, and messages that start a run',
    COMMENT COLUMN tool_calls 'Calls of tools, without delegations',
    COMMENT COLUMN delegations 'Delegations to other agents',
    COMMENT COLUMN errors 'Messages that report a failure. A call that a person denied, interrupted or cancelled is not one',
    COMMENT COLUMN agents 'Agents that have messages',
    COMMENT COLUMN models 'Models that answered';

CREATE VIEW IF NOT EXISTS {{view "v_tool_calls"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, tool_name, tool_type, mcp_server, status, error_type,
    duration_ns / 1e6 AS duration_ms, args_bytes, result_bytes, is_delegation, internal, tool_call_id, trace_id, span_id,
    model, if(result_tokens_from = '', NULL, result_tokens) AS result_tokens, result_tokens_from, args_shape, attempt,
    waits_for, waited_ns / 1e6 AS waited_ms
FROM {{name "tool_calls"}} FINAL
COMMENT 'Tool calls, each once, in its latest version; durations in milliseconds';

ALTER TABLE {{view "v_tool_calls"}}{{onCluster}}
{{comments "tool_calls" "tenant source format ts session_id run_id agent_name tool_name tool_type mcp_server status error_type args_bytes result_bytes is_delegation internal tool_call_id trace_id span_id model args_shape attempt"}},
    COMMENT COLUMN duration_ms 'Milliseconds from call to result; 0 while running',
    COMMENT COLUMN result_tokens 'Tokens that the result added to every later request of its run; null when unknown: the last results of a run, usage that is missing, a compaction',
    COMMENT COLUMN result_tokens_from 'Provenance of the counts behind result_tokens: provider, transcript_final, transcript_partial (the answer before may have been longer), estimated; empty when unknown',
    COMMENT COLUMN waits_for 'person: while it runs, a person has to answer before it goes on; once it has ended, it waited for one for waited_ms; empty otherwise',
    COMMENT COLUMN waited_ms 'Milliseconds of duration_ms that a person took, which are not the tool''s; 0 while running';

CREATE VIEW IF NOT EXISTS {{view "v_delegations"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, delegate_to, tool_name, status, error_type,
    duration_ns / 1e6 AS duration_ms, async, child_run_id, link_method, link_confidence, args_bytes, result_bytes,
    tool_call_id, trace_id, span_id, delegate_id
FROM {{name "delegations"}} FINAL
COMMENT 'Delegations, each once, in its latest version; durations in milliseconds';

ALTER TABLE {{view "v_delegations"}}{{onCluster}}
{{comments "delegations" "tenant source format ts session_id run_id agent_name tool_name status error_type async child_run_id link_method link_confidence args_bytes result_bytes tool_call_id trace_id span_id delegate_id"}},
    COMMENT COLUMN delegate_to 'The delegate: its display name where any is known, else as the caller wrote it',
    COMMENT COLUMN duration_ms 'Milliseconds that the work took: from the call to the end of the child run, where that is known, else to the result; 0 while running';

CREATE VIEW IF NOT EXISTS {{view "v_open_spans"}}{{onCluster}}
AS WITH
    (SELECT argMax(after_ms, ver) FROM {{name "thresholds"}} WHERE name = 'silent') AS silent_after,
    (SELECT argMax(after_ms, ver) FROM {{name "thresholds"}} WHERE name = 'stuck') AS stuck_after
SELECT
    tenant, source, format, ts, last_seen, age_ms, silent_ms, kind, name, session_id, run_id, agent_name, tool_name, delegate_to,
    tool_call_id, trace_id, span_id, parent_span_id, waits_for, leaf,
    ['running', 'silent', 'waiting', 'stuck'][if(leaf, own, greatest(1, minIf(own, leaf) OVER (PARTITION BY tenant, trace_id)))] AS state
FROM
(
    SELECT
        tenant, source, format, ts, last_seen, kind, name, session_id, run_id, agent_name, tool_name, delegate_to, tool_call_id, trace_id, span_id, parent_span_id, waits_for,
        greatest(0, dateDiff('millisecond', alive_at, now64(9, 'UTC'))) AS silent_ms,
        silent_ms + greatest(0, dateDiff('millisecond', ts, last_seen)) AS age_ms,
        toString(span_id) GLOBAL NOT IN (SELECT parent_span_id FROM {{name "open_spans"}} FINAL) AS leaf,
        multiIf(waits_for != '' OR parent_span_id GLOBAL IN (SELECT toString(span_id) FROM {{name "open_spans"}} FINAL WHERE waits_for != ''), 3,
            silent_ms >= stuck_after, 4, silent_ms >= silent_after, 2, 1) AS own
    FROM {{name "open_spans"}} FINAL
)
COMMENT 'Spans that are open now, and for how long';

ALTER TABLE {{view "v_open_spans"}}{{onCluster}}
{{comments "open_spans" "tenant source format ts last_seen kind name session_id run_id agent_name tool_name delegate_to tool_call_id trace_id span_id parent_span_id waits_for"}},
    COMMENT COLUMN age_ms 'Milliseconds since it began, independent of the sender''s clock',
    COMMENT COLUMN silent_ms 'Milliseconds since its last sign of life',
    COMMENT COLUMN leaf 'It has no open span below it: count these',
    COMMENT COLUMN state 'running, silent, waiting (for a person) or stuck, by the table thresholds; for a span that is not a leaf the first of these that a leaf of its trace has';

CREATE VIEW IF NOT EXISTS {{view "v_findings"}}{{onCluster}}
AS SELECT tenant, source, format, ts, kind, tool_name, agent_name, count, session_id, run_id, trace_id, span_id
FROM {{name "findings"}} FINAL
COMMENT 'Anomalies of runs: loops, error storms, fan-outs, silences';

ALTER TABLE {{view "v_findings"}}{{onCluster}}
{{comments "findings" "tenant source format ts kind tool_name agent_name count session_id run_id trace_id span_id"}};

CREATE VIEW IF NOT EXISTS {{view "v_spans"}}{{onCluster}}
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
COMMENT 'Spans of Earshot that have ended, not those that an agent sent itself, with the most used attributes as columns. Tokens of a run are those of its chats once more';

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

CREATE VIEW IF NOT EXISTS {{view "v_usage"}}{{onCluster}}
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
COMMENT 'Tokens and their cost: every message that has counts, priced by model_prices. cost_usd is null where the model has no price, so a sum is of what is known';

ALTER TABLE {{view "v_usage"}}{{onCluster}}
{{comments "messages" "tenant source format session_id run_id trace_id agent_name provider model input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    COMMENT COLUMN ts 'Time of the message that has the counts',
    COMMENT COLUMN tokens 'All classes together',
    COMMENT COLUMN has_price 'model_prices knows the model',
    COMMENT COLUMN cost_usd 'US dollars at the prices of model_prices; null without a price';

CREATE VIEW IF NOT EXISTS {{view "v_streams"}}{{onCluster}}
AS SELECT
    tenant, source, format, started_at AS ts, origin, method, status, session_id, run_id, remote_trace_id, remote_span_id,
    first_byte_ns / 1e6 AS first_byte_ms, if(events > 0, first_event_ns / 1e6, NULL) AS first_event_ms, total_ns / 1e6 AS duration_ms,
    chunks, bytes, events, longest_stall_ns / 1e6 AS longest_stall_ms, gap_p50_ns / 1e6 AS gap_p50_ms, gap_p95_ns / 1e6 AS gap_p95_ms,
    buffered, stream, chat_span_id
FROM {{name "streams"}} FINAL
COMMENT 'HTTP responses and connections that were read live, times in milliseconds';

ALTER TABLE {{view "v_streams"}}{{onCluster}}
{{comments "streams" "tenant source format origin method status session_id run_id remote_trace_id remote_span_id chunks bytes events buffered stream chat_span_id"}},
    COMMENT COLUMN ts 'When the request was sent',
    COMMENT COLUMN first_byte_ms 'Milliseconds to the head of the response',
    COMMENT COLUMN first_event_ms 'Milliseconds to the first event or message; null when there was none',
    COMMENT COLUMN duration_ms 'Milliseconds to the last byte',
    COMMENT COLUMN longest_stall_ms 'Longest pause between two chunks, in milliseconds',
    COMMENT COLUMN gap_p50_ms 'Median pause between two chunks, in milliseconds',
    COMMENT COLUMN gap_p95_ms '95th percentile of them';

CREATE VIEW IF NOT EXISTS {{view "v_dead_letters"}}{{onCluster}}
AS SELECT
    tenant, source, format, seen_at AS ts, stage, reason, error, origin, origin_offset, session_id, payload_bytes, payload_truncated, resolved, payload, dl_id
FROM {{name "dead_letters"}} FINAL
COMMENT 'Input, and rows, that could not be decoded or stored, with their bytes';

ALTER TABLE {{view "v_dead_letters"}}{{onCluster}}
{{comments "dead_letters" "tenant source format stage reason error origin origin_offset session_id payload_bytes payload_truncated resolved payload dl_id"}},
    COMMENT COLUMN ts 'When it was quarantined';

CREATE VIEW IF NOT EXISTS {{view "v_sources"}}{{onCluster}}
AS SELECT
    tenant, source, min(format) AS format, count() AS streams,
    sum(read_bytes) AS read_bytes, sum(decoded_bytes) AS decoded_bytes, sum(quarantined_bytes) AS quarantined_bytes, sum(dropped_bytes) AS dropped_bytes,
    read_bytes - decoded_bytes - quarantined_bytes - dropped_bytes AS unaccounted_bytes,
    sum(frames) AS frames, sum(messages) AS messages, sum(unknown) AS unknown, sum(problems) AS problems, max(seen_at) AS last_seen
FROM {{name "source_ledger"}} FINAL
GROUP BY tenant, source
COMMENT 'The account of every source: read = decoded + quarantined + dropped, and unaccounted_bytes is 0';

ALTER TABLE {{view "v_sources"}}{{onCluster}}
{{comments "source_ledger" "tenant source format read_bytes decoded_bytes quarantined_bytes dropped_bytes frames messages unknown problems"}},
    COMMENT COLUMN streams 'Files, connections and journals that it consists of',
    COMMENT COLUMN unaccounted_bytes 'Read, and neither decoded nor quarantined nor dropped; anything but 0 is a bug',
    COMMENT COLUMN last_seen 'When an account was last written'
