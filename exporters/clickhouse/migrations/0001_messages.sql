CREATE TABLE IF NOT EXISTS {{table "messages"}}{{onCluster}}
(
    tenant             LowCardinality(String) COMMENT 'Owner of the data; default unless the source says otherwise' CODEC(ZSTD(1)),
    source             LowCardinality(String) COMMENT 'Name of the source in the configuration' CODEC(ZSTD(1)),
    format             LowCardinality(String) COMMENT 'Decoder that read it: agno, legion, claude-code, ...' CODEC(ZSTD(1)),
    ts                 DateTime64(9, 'UTC') COMMENT 'When it happened, by the protocol; attributes[time_precision] says how finely' CODEC(Delta(8), ZSTD(1)),
    session_id         String COMMENT 'The conversation' CODEC(ZSTD(1)),
    run_id             String COMMENT 'One invocation of one agent; empty when the format has no such thing' CODEC(ZSTD(1)),
    parent_run_id      String COMMENT 'The run that caused this one, on the first message of a child' CODEC(ZSTD(1)),
    message_id         FixedString(32) COMMENT 'Hash of protocol facts, in hex: the same in every replay' CODEC(ZSTD(1)),
    part_index         UInt16 DEFAULT 0 COMMENT 'Part of a message that is stored in parts; 0 today' CODEC(T64, ZSTD(1)),
    seq                UInt64 COMMENT 'Order in the stream; breaks ties of ts' CODEC(Delta(8), ZSTD(1)),
    parent_message_id  String COMMENT 'message_id of the message that this one answers, where the protocol tells' CODEC(ZSTD(1)),
    trace_id           String COMMENT 'TraceId of otel_traces, in hex' CODEC(ZSTD(1)),
    span_id            String COMMENT 'SpanId of otel_traces, in hex' CODEC(ZSTD(1)),
    agent_id           String COMMENT 'The id that the protocol gives the agent' CODEC(ZSTD(1)),
    agent_name         LowCardinality(String) COMMENT 'The agent that runs' CODEC(ZSTD(1)),
    agent_kind         LowCardinality(String) COMMENT 'agent, team, workflow or human' CODEC(ZSTD(1)),
    role               LowCardinality(String) COMMENT 'user, assistant, tool or system, in the protocol''s terms' CODEC(ZSTD(1)),
    kind               LowCardinality(String) COMMENT 'user, assistant, reasoning, tool_call, tool_result, delegation, delegation_result, plan, task, status, file, usage, system, error, stop, unknown' CODEC(ZSTD(1)),
    provider           LowCardinality(String) COMMENT 'gen_ai.provider.name' CODEC(ZSTD(1)),
    model              LowCardinality(String) COMMENT 'As the protocol names it' CODEC(ZSTD(1)),
    tool_name          LowCardinality(String) COMMENT 'The tool that is called or answers' CODEC(ZSTD(1)),
    tool_call_id       String COMMENT 'The protocol''s id of the call' CODEC(ZSTD(1)),
    tool_arguments     String COMMENT 'JSON where the protocol has JSON' CODEC(ZSTD(1)){{ttl "messages.tool_arguments"}},
    tool_result        String ALIAS if(kind IN ('tool_result', 'delegation_result'), content, '') COMMENT 'content of a result',
    delegate_to        LowCardinality(String) COMMENT 'The agent that work is handed to, by the name the caller used' CODEC(ZSTD(1)),
    delegate_task      String COMMENT 'The work that is handed over' CODEC(ZSTD(1)){{ttl "messages.delegate_task"}},
    child_run_id       String COMMENT 'The run that a delegation caused' CODEC(ZSTD(1)),
    link_method        LowCardinality(String) COMMENT 'How the child was found: native_id, meta_file, fork_id, traceparent, parent_run, order, prompt' CODEC(ZSTD(1)),
    finish_reason      LowCardinality(String) COMMENT 'Why the model or the run stopped' CODEC(ZSTD(1)),
    is_error           Bool COMMENT 'It reports a failure',
    complete           Bool COMMENT 'Nothing more will come; false for what was cut off',
    hidden             Bool COMMENT 'A user interface would not show it: handshakes, internal tools, bookkeeping',
    content            String COMMENT 'What was said, a tool''s result, an error''s message, the raw frame of an unknown message' CODEC(ZSTD(1)){{ttl "messages.content"}},
    content_bytes      UInt32 COMMENT 'Length of content; stays when content has expired' CODEC(T64, ZSTD(1)),
    content_ref        String DEFAULT '' COMMENT 'Where content is kept when it is not here; empty today' CODEC(ZSTD(1)),
    input_tokens       UInt64 COMMENT 'Tokens sent, neither read from nor written to a cache. The classes are exclusive: add them up' CODEC(T64, ZSTD(1)),
    output_tokens      UInt64 COMMENT 'Tokens answered, without reasoning' CODEC(T64, ZSTD(1)),
    cache_read_tokens  UInt64 COMMENT 'Tokens read from a cache' CODEC(T64, ZSTD(1)),
    cache_write_tokens UInt64 COMMENT 'Tokens written to a cache' CODEC(T64, ZSTD(1)),
    reasoning_tokens   UInt64 COMMENT 'Tokens of reasoning' CODEC(T64, ZSTD(1)),
    attributes         Map(LowCardinality(String), String) COMMENT 'All else that the protocol says' CODEC(ZSTD(1)),
    ingest_ts          DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When this row was stored; retention counts from here' CODEC(Delta(8), ZSTD(1)),
    ver                UInt64 COMMENT 'Of rows with the same key the highest stands' CODEC(Delta(8), ZSTD(1)),
    is_deleted         UInt8 COMMENT '1 takes back an earlier version' CODEC(ZSTD(1)),
    INDEX idx_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_tool_call tool_call_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_fts lower(content) TYPE text(tokenizer = 'splitByNonAlpha')
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, toStartOfHour(ts), session_id)
ORDER BY (tenant, toStartOfHour(ts), session_id, message_id, part_index){{ttl "messages"}}
SETTINGS {{settings}}, min_bytes_for_wide_part = 134217728
COMMENT 'Every normalized message. Read it with FINAL, or through v_messages';
{{distributed "messages" "cityHash64(session_id)"}}
