CREATE TABLE IF NOT EXISTS {{table "streams"}}{{onCluster}}
(
    tenant           LowCardinality(String) COMMENT 'Owner of the data',
    source           LowCardinality(String) COMMENT 'Name of the source in the configuration',
    format           LowCardinality(String) COMMENT 'Decoder that reads it',
    stream           String COMMENT 'The recording, as in source_ledger' CODEC(ZSTD(1)),
    started_at       DateTime64(9, 'UTC') COMMENT 'When the request was sent' CODEC(Delta(8), ZSTD(1)),
    origin           String COMMENT 'URL' CODEC(ZSTD(1)),
    method           LowCardinality(String) COMMENT 'Of the request; empty for a stream that was only taken up again',
    status           UInt16 COMMENT 'Of HTTP; 101 is a WebSocket',
    session_id       String COMMENT 'The conversation that it spoke of first' CODEC(ZSTD(1)),
    run_id           String COMMENT 'The top-level run that it spoke of first' CODEC(ZSTD(1)),
    remote_trace_id  String COMMENT 'Of the traceparent of the request; empty without one' CODEC(ZSTD(1)),
    remote_span_id   String COMMENT 'Of the traceparent of the request: the span of whoever asked' CODEC(ZSTD(1)),
    remote_state     String COMMENT 'tracestate of the request' CODEC(ZSTD(1)),
    first_byte_ns    UInt64 COMMENT 'From started_at to the head of the response' CODEC(T64, ZSTD(1)),
    first_chunk_ns   UInt64 COMMENT 'From started_at to the first bytes of the body' CODEC(T64, ZSTD(1)),
    first_event_ns   UInt64 COMMENT 'From started_at to the first event or message' CODEC(T64, ZSTD(1)),
    total_ns         UInt64 COMMENT 'From started_at to the last byte' CODEC(T64, ZSTD(1)),
    chunks           UInt64 COMMENT 'Reads that the body came in' CODEC(T64, ZSTD(1)),
    bytes            UInt64 COMMENT 'Of the body, as it was sent' CODEC(T64, ZSTD(1)),
    events           UInt64 COMMENT 'Events, lines or messages' CODEC(T64, ZSTD(1)),
    longest_stall_ns UInt64 COMMENT 'Longest pause between two chunks' CODEC(T64, ZSTD(1)),
    gap_p50_ns       UInt64 COMMENT 'Median pause between two chunks, rounded up to a power of two of microseconds' CODEC(T64, ZSTD(1)),
    gap_p95_ns       UInt64 COMMENT '95th percentile of them, rounded likewise' CODEC(T64, ZSTD(1)),
    buffered         Bool COMMENT 'All events of a slow response came at its end: something on the way seems to hold them back',
    ingest_ts        DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When this row was stored; retention counts from here' CODEC(Delta(8), ZSTD(1)),
    ver              UInt64 COMMENT 'Of rows with the same key the highest stands' CODEC(Delta(8), ZSTD(1))
)
ENGINE = {{replacing "ver"}}
PARTITION BY toYYYYMM(started_at)
PRIMARY KEY (tenant, toStartOfHour(started_at))
ORDER BY (tenant, toStartOfHour(started_at), source, stream, started_at){{ttl "streams"}}
SETTINGS {{settings}}
COMMENT 'Responses and connections that were heard live, to their end: who asked, and how they came. Read it with FINAL, or through v_streams';
{{distributed "streams" "cityHash64(session_id)"}};

CREATE VIEW IF NOT EXISTS {{view "v_streams"}}{{onCluster}}
AS SELECT
    tenant, source, format, started_at AS ts, origin, method, status, session_id, run_id, remote_trace_id, remote_span_id,
    first_byte_ns / 1e6 AS first_byte_ms, if(events > 0, first_event_ns / 1e6, NULL) AS first_event_ms, total_ns / 1e6 AS duration_ms,
    chunks, bytes, events, longest_stall_ns / 1e6 AS longest_stall_ms, gap_p50_ns / 1e6 AS gap_p50_ms, gap_p95_ns / 1e6 AS gap_p95_ms,
    buffered, stream
FROM {{name "streams"}} FINAL
COMMENT 'Responses and connections that were heard live, times in milliseconds';
