CREATE TABLE IF NOT EXISTS {{table "tool_calls"}}{{onCluster}}
(
    tenant        LowCardinality(String) COMMENT 'Owner of the data',
    ts            DateTime64(9, 'UTC') COMMENT 'When the call began' CODEC(Delta(8), ZSTD(1)),
    source        LowCardinality(String) COMMENT 'Name of the source in the configuration',
    format        LowCardinality(String) COMMENT 'Decoder that read it',
    tool_name     LowCardinality(String) COMMENT 'gen_ai.tool.name',
    tool_type     LowCardinality(String) COMMENT 'extension for a tool of an MCP server, else function',
    mcp_server    LowCardinality(String) COMMENT 'MCP server that has the tool',
    agent_name    LowCardinality(String) COMMENT 'The agent that called',
    model         LowCardinality(String) COMMENT 'The model that asked for it, where it is known',
    session_id    String COMMENT 'The conversation' CODEC(ZSTD(1)),
    run_id        String COMMENT 'The run of the agent that called' CODEC(ZSTD(1)),
    trace_id      String COMMENT 'TraceId of otel_traces' CODEC(ZSTD(1)),
    span_id       FixedString(16) COMMENT 'SpanId of otel_traces' CODEC(ZSTD(1)),
    tool_call_id  String COMMENT 'The protocol''s id of the call' CODEC(ZSTD(1)),
    duration_ns   UInt64 COMMENT 'Nanoseconds from call to result; 0 while running' CODEC(T64, ZSTD(1)),
    status        LowCardinality(String) COMMENT 'ok, error, cancelled or running',
    error_type    LowCardinality(String) COMMENT 'Why it failed or was cancelled: timeout, denied, no_result, ...',
    args_bytes    UInt32 COMMENT 'Size of the arguments' CODEC(T64, ZSTD(1)),
    result_bytes  UInt32 COMMENT 'Size of the result' CODEC(T64, ZSTD(1)),
    is_delegation Bool COMMENT 'It hands work to another agent; see delegations',
    internal      Bool COMMENT 'The framework''s own machinery',
    ingest_ts     DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When this row was stored; retention counts from here' CODEC(Delta(8), ZSTD(1)),
    ver           UInt64 COMMENT 'Of rows with the same key the highest stands' CODEC(Delta(8), ZSTD(1)),
    is_deleted    UInt8 DEFAULT 0 COMMENT '1 takes back an earlier version' CODEC(ZSTD(1)),
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
    tenant          LowCardinality(String) COMMENT 'Owner of the data',
    ts              DateTime64(9, 'UTC') COMMENT 'When the work was handed over' CODEC(Delta(8), ZSTD(1)),
    source          LowCardinality(String) COMMENT 'Name of the source in the configuration',
    format          LowCardinality(String) COMMENT 'Decoder that read it',
    session_id      String COMMENT 'The conversation' CODEC(ZSTD(1)),
    run_id          String COMMENT 'The run of the agent that delegates' CODEC(ZSTD(1)),
    trace_id        String COMMENT 'TraceId of otel_traces' CODEC(ZSTD(1)),
    span_id         FixedString(16) COMMENT 'SpanId of otel_traces' CODEC(ZSTD(1)),
    tool_call_id    String COMMENT 'The protocol''s id of the call' CODEC(ZSTD(1)),
    tool_name       LowCardinality(String) COMMENT 'The tool that delegates',
    agent_name      LowCardinality(String) COMMENT 'The agent that delegates',
    delegate_to     LowCardinality(String) COMMENT 'The agent that takes over, by the name the caller used',
    child_run_id    String COMMENT 'The run that it caused; empty when none was found' CODEC(ZSTD(1)),
    link_method     LowCardinality(String) COMMENT 'How the child was found: native_id, meta_file, fork_id, traceparent, parent_run, order, prompt',
    link_confidence UInt8 COMMENT 'Percent; 0 when the method says it all' CODEC(ZSTD(1)),
    async           Bool COMMENT 'The caller goes on meanwhile',
    duration_ns     UInt64 COMMENT 'Nanoseconds from call to result; 0 while running' CODEC(T64, ZSTD(1)),
    status          LowCardinality(String) COMMENT 'ok, error, cancelled or running',
    error_type      LowCardinality(String) COMMENT 'Why it failed or was cancelled',
    args_bytes      UInt32 COMMENT 'Size of the arguments' CODEC(T64, ZSTD(1)),
    result_bytes    UInt32 COMMENT 'Size of the result' CODEC(T64, ZSTD(1)),
    ingest_ts       DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When this row was stored; retention counts from here' CODEC(Delta(8), ZSTD(1)),
    ver             UInt64 COMMENT 'Of rows with the same key the highest stands' CODEC(Delta(8), ZSTD(1)),
    is_deleted      UInt8 DEFAULT 0 COMMENT '1 takes back an earlier version' CODEC(ZSTD(1)),
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
    tenant         LowCardinality(String) COMMENT 'Owner of the data',
    ts             DateTime64(9, 'UTC') COMMENT 'When it began' CODEC(Delta(8), ZSTD(1)),
    last_seen      DateTime64(9, 'UTC') COMMENT 'Time of its last event' CODEC(Delta(8), ZSTD(1)),
    age_ms         Int64 ALIAS dateDiff('millisecond', ts, now64(9, 'UTC')) COMMENT 'Milliseconds since it began',
    silent_ms      Int64 ALIAS dateDiff('millisecond', last_seen, now64(9, 'UTC')) COMMENT 'Milliseconds since its last event',
    source         LowCardinality(String) COMMENT 'Name of the source in the configuration',
    format         LowCardinality(String) COMMENT 'Decoder that read it',
    kind           LowCardinality(String) COMMENT 'run, chat, tool, delegation or workflow',
    name           LowCardinality(String) COMMENT 'SpanName that it will have in otel_traces',
    session_id     String COMMENT 'The conversation' CODEC(ZSTD(1)),
    run_id         String COMMENT 'One invocation of one agent' CODEC(ZSTD(1)),
    trace_id       String COMMENT 'TraceId that it will have in otel_traces' CODEC(ZSTD(1)),
    span_id        FixedString(16) COMMENT 'SpanId that it will have in otel_traces' CODEC(ZSTD(1)),
    parent_span_id String COMMENT 'Empty for the root' CODEC(ZSTD(1)),
    agent_name     LowCardinality(String) COMMENT 'The agent that runs',
    tool_name      LowCardinality(String) COMMENT 'Of a tool call or a delegation',
    tool_call_id   String COMMENT 'The protocol''s id of the call' CODEC(ZSTD(1)),
    delegate_to    LowCardinality(String) COMMENT 'Of a delegation',
    ingest_ts      DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When this row was stored; retention counts from here' CODEC(Delta(8), ZSTD(1)),
    ver            UInt64 COMMENT 'Of rows with the same key the highest stands' CODEC(Delta(8), ZSTD(1)),
    is_deleted     UInt8 COMMENT '1 when the span has ended' CODEC(ZSTD(1))
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toDate(ts)
ORDER BY (tenant, span_id){{ttl "open_spans"}}
SETTINGS {{settings}}
COMMENT 'What is running now. Read it with FINAL, or through v_open_spans';
{{distributed "open_spans" "cityHash64(session_id)"}}
