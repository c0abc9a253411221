CREATE TABLE IF NOT EXISTS {{table "findings"}}{{onCluster}}
(
    tenant     LowCardinality(String) COMMENT 'Owner of the data',
    ts         DateTime64(9, 'UTC') COMMENT 'Time of the message that completed it' CODEC(Delta(8), ZSTD(1)),
    source     LowCardinality(String) COMMENT 'Name of the source in the configuration',
    format     LowCardinality(String) COMMENT 'Decoder that read it',
    kind       LowCardinality(String) COMMENT 'repeat, ping_pong, error_storm, fan_out or silence',
    tool_name  LowCardinality(String) COMMENT 'The tool that was called last; empty for silence',
    agent_name LowCardinality(String) COMMENT 'The agent that runs',
    count      UInt64 COMMENT 'Calls, delegations at work at once, or seconds of silence' CODEC(T64, ZSTD(1)),
    session_id String COMMENT 'The conversation' CODEC(ZSTD(1)),
    run_id     String COMMENT 'One invocation of one agent' CODEC(ZSTD(1)),
    trace_id   String COMMENT 'TraceId of otel_traces' CODEC(ZSTD(1)),
    span_id    FixedString(16) COMMENT 'SpanId of the run in otel_traces, or in open_spans while it runs' CODEC(ZSTD(1)),
    ingest_ts  DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When this row was stored; retention counts from here' CODEC(Delta(8), ZSTD(1)),
    ver        UInt64 COMMENT 'Of rows with the same key the highest stands' CODEC(Delta(8), ZSTD(1))
)
ENGINE = {{replacing "ver"}}
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, toStartOfHour(ts))
ORDER BY (tenant, toStartOfHour(ts), span_id, kind, ts){{ttl "findings"}}
SETTINGS {{settings}}
COMMENT 'Runs that go nowhere: loops, error storms, fan-outs, silences. Each is found again when it has doubled. Read it with FINAL, or through v_findings';
{{distributed "findings" "cityHash64(session_id)"}};

CREATE VIEW IF NOT EXISTS {{view "v_findings"}}{{onCluster}}
AS SELECT tenant, source, format, ts, kind, tool_name, agent_name, count, session_id, run_id, trace_id, span_id
FROM {{name "findings"}} FINAL
COMMENT 'Runs that go nowhere: loops, error storms, fan-outs, silences';
