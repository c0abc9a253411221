CREATE TABLE IF NOT EXISTS {{table "otel_traces"}}{{onCluster}}
(
    Timestamp          DateTime64(9) COMMENT 'Start of the span' CODEC(Delta(8), ZSTD(1)),
    TraceId            String COMMENT 'Hex; one trace per top-level run' CODEC(ZSTD(1)),
    SpanId             String COMMENT 'Hex' CODEC(ZSTD(1)),
    ParentSpanId       String COMMENT 'Hex; empty for the root' CODEC(ZSTD(1)),
    TraceState         String COMMENT 'Empty: no protocol gives one' CODEC(ZSTD(1)),
    SpanName           LowCardinality(String) COMMENT 'invoke_agent, chat, execute_tool or invoke_workflow, and its target' CODEC(ZSTD(1)),
    SpanKind           LowCardinality(String) COMMENT 'Client for a chat, else Internal' CODEC(ZSTD(1)),
    ServiceName        LowCardinality(String) COMMENT 'The source' CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) COMMENT 'service.name' CODEC(ZSTD(1)),
    ScopeName          String COMMENT 'Instrumentation scope' CODEC(ZSTD(1)),
    ScopeVersion       String COMMENT 'Empty: a newer program writes the same row' CODEC(ZSTD(1)),
    SpanAttributes     Map(LowCardinality(String), String) COMMENT 'gen_ai.* and earshot.*' CODEC(ZSTD(1)),
    Duration           UInt64 COMMENT 'Nanoseconds' CODEC(ZSTD(1)),
    StatusCode         LowCardinality(String) COMMENT 'Error for a failure, else Unset' CODEC(ZSTD(1)),
    StatusMessage      String COMMENT 'Of an Error' CODEC(ZSTD(1)),
    Events Nested
    (
        Timestamp  DateTime64(9),
        Name       LowCardinality(String),
        Attributes Map(LowCardinality(String), String)
    ) COMMENT 'Retries, pauses, waits for permission, errors' CODEC(ZSTD(1)),
    Links Nested
    (
        TraceId    String,
        SpanId     String,
        TraceState String,
        Attributes Map(LowCardinality(String), String)
    ) COMMENT 'The previous turn of the session, a forked session' CODEC(ZSTD(1)),
    Ver                UInt64 COMMENT 'Of rows with the same key the highest stands' CODEC(Delta(8), ZSTD(1)),
    IsDeleted          UInt8 COMMENT '1 takes back a span that was stored under another trace' CODEC(ZSTD(1)),
    IngestTs           DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When this row was stored; retention counts from here' CODEC(Delta(8), ZSTD(1)),
    Operation          LowCardinality(String) MATERIALIZED SpanAttributes['gen_ai.operation.name'] COMMENT 'gen_ai.operation.name',
    AgentName          LowCardinality(String) MATERIALIZED SpanAttributes['gen_ai.agent.name'] COMMENT 'gen_ai.agent.name',
    ToolName           LowCardinality(String) MATERIALIZED SpanAttributes['gen_ai.tool.name'] COMMENT 'gen_ai.tool.name',
    SessionId          String MATERIALIZED SpanAttributes['gen_ai.conversation.id'] COMMENT 'gen_ai.conversation.id',
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
