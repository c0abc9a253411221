-- The tables of version 92, on one server, in a database of the engine Replicated, or on a cluster. A new database is made from this file and
-- 0093_views.sql, and a later migration changes them: but for comments these two files stay as they are (TestBaselineIsFixed).
--
-- Columns that are not written out are those of the table in core/msg/schema, with their comments.

-- Rows as they are stored, in batches. Of two with the same sort key the one with the higher version is valid.

-- Contents that are past their retention go when their part is merged, and a part that nothing is merged with stays for ever, because
-- ttl_only_drop_parts has no merge made for a column. Without it the server makes one, for each part at most once a day. A changed
-- retention is computed without writing the rows again.
--
-- The embedded store has a partition for each day, which is one part when it is over (settled.go). There an insert makes a part of few
-- files, however large it is: of a backlog's inserts the 194 files of a wide part took an eighth of the processor time. A merge makes
-- wide parts, column by column.
CREATE TABLE IF NOT EXISTS {{table "messages"}}{{onCluster}}
(
{{columns "messages"}},
    INDEX idx_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1,
{{if not byDay}}    INDEX idx_tool_call tool_call_id TYPE bloom_filter(0.001) GRANULARITY 1,
{{end}}    INDEX idx_fts lower(content) TYPE text(tokenizer = 'splitByNonAlpha'),
    INDEX idx_ingest ingest_ts TYPE minmax GRANULARITY 1
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY {{if byDay}}toDate(ts){{else}}toYYYYMM(ts){{end}}
PRIMARY KEY (tenant, toStartOfHour(ts), session_id)
ORDER BY (tenant, toStartOfHour(ts), session_id, message_id, part_index){{ttl "messages"}}
SETTINGS ttl_only_drop_parts = 0, merge_with_ttl_timeout = 86400, materialize_ttl_recalculate_only = 1, {{commonSettings}},
    {{if byDay}}min_bytes_for_wide_part = 26214400, min_level_for_wide_part = 1{{else}}min_bytes_for_wide_part = 134217728{{end}}
COMMENT 'Every normalized message. Read it with FINAL, or through v_messages';
{{distributed "messages" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "spans"}}{{onCluster}}
(
{{columns "spans"}},
    INDEX idx_trace lower(hex(trace_id)) TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_state state TYPE set(3) GRANULARITY 1,
    INDEX idx_ingest ingest_ts TYPE minmax GRANULARITY 1
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toDate(ts)
PRIMARY KEY (tenant, toStartOfHour(ts), session_id)
ORDER BY (tenant, toStartOfHour(ts), session_id, span_id){{ttl "spans"}}
SETTINGS {{settings}}, min_bytes_for_wide_part = 26214400
COMMENT 'Spans: runs, responses of models, calls, delegations; open ones too. Read it with FINAL, or through v_spans, v_tool_calls, v_delegations and v_open_spans';
{{distributed "spans" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "agent_spans"}}{{onCluster}}
(
{{columns "otel_traces"}},
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{replacing "Ver, IsDeleted"}}
PARTITION BY toDate(Timestamp)
PRIMARY KEY (toDateTime(Timestamp), TraceId)
ORDER BY (toDateTime(Timestamp), TraceId, SpanId){{ttl "agent_spans"}}
SETTINGS {{settings}}
COMMENT 'Spans that agents sent themselves, through a collector whose traces_table_name this is. otel_traces has them and ours';
{{distributed "agent_spans" "cityHash64(TraceId)"}};

-- A row and a later version of it are on one shard only if its sharding key never changes: the session of a response may, and so
-- findings and streams are not sharded by it.
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
{{distributed "findings" "cityHash64(span_id)"}};

-- Open work is stuck when there is a verdict on it, and not when it has been silent for a fixed time: a build of thirteen minutes is not
-- stuck, and a model that has not answered for four is.
CREATE TABLE IF NOT EXISTS {{table "verdicts"}}{{onCluster}}
(
{{columns "verdicts"}}
)
ENGINE = {{replacing "ver"}}
PARTITION BY toYYYYMM(since)
PRIMARY KEY (tenant, toStartOfHour(since))
ORDER BY (tenant, toStartOfHour(since), span_id, verdict, since){{ttl "verdicts"}}
SETTINGS {{settings}}
COMMENT 'Why nothing came of a run, a call or a delegation, and until when. Work without a row is healthy. Read it with FINAL, or through v_verdicts';
{{distributed "verdicts" "cityHash64(span_id)"}};

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
{{distributed "streams" "cityHash64(source, stream)"}};

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


-- Conversations and turns, derived behind inserts.

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

CREATE TABLE IF NOT EXISTS {{table "session_facts"}}{{onCluster}}
(
    tenant        LowCardinality(String) COMMENT 'Owner of the data',
    session_id    String COMMENT 'The conversation' CODEC(ZSTD(1)),
    began         SimpleAggregateFunction(min, DateTime64(9, 'UTC')) COMMENT 'Time of the first message that states a fact' CODEC(Delta(8), ZSTD(1)),
    project       AggregateFunction(argMinIf, String, Tuple(DateTime64(9, 'UTC'), UInt64), UInt8) COMMENT 'The first project: argMinIfMerge(project)',
    branch        AggregateFunction(argMaxIf, String, Tuple(DateTime64(9, 'UTC'), UInt64), UInt8) COMMENT 'The last branch: argMaxIfMerge(branch)',
    title         AggregateFunction(argMaxIf, String, Tuple(DateTime64(9, 'UTC'), UInt64), UInt8) COMMENT 'The last title: argMaxIfMerge(title)',
    agent_version AggregateFunction(argMaxIf, String, Tuple(DateTime64(9, 'UTC'), UInt64), UInt8) COMMENT 'The last version: argMaxIfMerge(agent_version)',
    host          AggregateFunction(argMinIf, String, Tuple(DateTime64(9, 'UTC'), UInt64), UInt8) COMMENT 'The first host: argMinIfMerge(host)',
    user          AggregateFunction(argMaxIf, String, Tuple(DateTime64(9, 'UTC'), UInt64), UInt8) COMMENT 'The last user: argMaxIfMerge(user)',
    seen          SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'When a fact was last stored; retention counts from here' CODEC(Delta(4), ZSTD(1))
)
ENGINE = {{aggregating}}
PARTITION BY toYYYYMM(began)
ORDER BY (tenant, session_id){{ttl "session_facts"}}
SETTINGS {{settings}}
COMMENT 'Project, branch, title, version, host and user of a conversation. A replay changes nothing. Read it through v_session_facts';
{{distributed "session_facts" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "run_setups"}}{{onCluster}}
(
    tenant     LowCardinality(String) COMMENT 'Owner of the data',
    session_id String COMMENT 'The conversation' CODEC(ZSTD(1)),
    run_id     String COMMENT 'One invocation of one agent; empty for what holds for all runs of the conversation' CODEC(ZSTD(1)),
    began      SimpleAggregateFunction(min, DateTime64(9, 'UTC')) COMMENT 'Time of the first message that states a part of it' CODEC(Delta(8), ZSTD(1)),
    prompt     AggregateFunction(argMinIf, String, Tuple(DateTime64(9, 'UTC'), UInt64), UInt8) COMMENT 'Hash of the first system prompt, its figures masked: argMinIfMerge(prompt)',
    tools      AggregateFunction(argMinIf, String, Tuple(DateTime64(9, 'UTC'), UInt64), UInt8) COMMENT 'Hash of the first definitions of tools: argMinIfMerge(tools)',
    effort     AggregateFunction(argMaxIf, String, Tuple(DateTime64(9, 'UTC'), UInt64), UInt8) COMMENT 'The last effort of reasoning that was asked for: argMaxIfMerge(effort)',
    seen       SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'When a part was last stored; retention counts from here' CODEC(Delta(4), ZSTD(1))
)
ENGINE = {{aggregating}}
PARTITION BY toYYYYMM(began)
ORDER BY (tenant, session_id, run_id){{ttl "run_setups"}}
SETTINGS {{settings}}
COMMENT 'System prompt, tools and effort of runs, the first two as hashes. A replay changes nothing. Read it through v_runs';
{{distributed "run_setups" "cityHash64(session_id)"}};

-- Kept as long as the counts of usage_rollup, so that changed rules apply to all of them.
CREATE TABLE IF NOT EXISTS {{table "turn_facts"}}{{onCluster}}
(
    tenant        LowCardinality(String) COMMENT 'Owner of the data',
    session_id    String COMMENT 'The conversation of its first run' CODEC(ZSTD(1)),
    trace_id      String COMMENT 'The turn: TraceId of otel_traces, in hex' CODEC(ZSTD(1)),
    began         DateTime64(9, 'UTC') COMMENT 'Start of its first run' CODEC(Delta(8), ZSTD(1)),
    source        LowCardinality(String) COMMENT 'Name of the source in the configuration',
    format        LowCardinality(String) COMMENT 'Decoder that read it',
    agent_name    LowCardinality(String) COMMENT 'The agent that the prompt is for',
    project       LowCardinality(String) COMMENT 'Directory of the project, as its first run states it',
    branch        LowCardinality(String) COMMENT 'Branch of its version control',
    agent_version LowCardinality(String) COMMENT 'Version of the program that the agent runs in',
    host          LowCardinality(String) COMMENT 'The machine of the agent where the protocol names it, else that of the sidecar',
    user          LowCardinality(String) COMMENT 'The account, where the protocol has one',
    caller_trace  String COMMENT 'The turn with the call that caused this one, where they have traces of their own; empty otherwise' CODEC(ZSTD(1)),
    seen          DateTime('UTC') COMMENT 'When it was last stored; retention counts from here' CODEC(Delta(4), ZSTD(1)),
    ver           UInt64 COMMENT 'Of rows with the same key the one with the highest version is valid' CODEC(Delta(8), ZSTD(1))
)
ENGINE = {{replacing "ver"}}
ORDER BY (tenant, session_id, trace_id){{ttl "turn_facts"}}
SETTINGS {{settings}}
COMMENT 'Facts of the first run of each turn, from which its attribution is derived. Read it with FINAL';
{{distributed "turn_facts" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "session_attributes"}}{{onCluster}}
(
    tenant     LowCardinality(String) COMMENT 'Owner of the data',
    session_id String COMMENT 'The conversation' CODEC(ZSTD(1)),
    name       LowCardinality(String) COMMENT 'Name of the attribute, as in attributes of messages',
    value      AggregateFunction(argMin, String, Tuple(DateTime64(9, 'UTC'), UInt64)) COMMENT 'Its first value: argMinMerge(value)',
    seen       SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'When it was last stored; retention counts from here' CODEC(Delta(4), ZSTD(1))
)
ENGINE = {{aggregating}}
ORDER BY (tenant, session_id, name){{ttl "session_attributes"}}
SETTINGS {{settings}}
COMMENT 'Attributes of conversations that can say who works: headers, accounts, repositories. A replay changes nothing';
{{distributed "session_attributes" "cityHash64(session_id)"}};


-- Counts by slots of time, and copies of the few rows that questions over weeks are about: each hour is computed as a whole.

CREATE TABLE IF NOT EXISTS {{name "rollup_hours"}}{{onCluster}}
(
    name   LowCardinality(String) COMMENT 'Table that has the rows; with all before it: no hour, for all of them',
    hour   DateTime('UTC') COMMENT 'Hour of the rows',
    until  DateTime64(3, 'UTC') COMMENT 'The rollups have every row of the hour that was stored before then',
    at     DateTime64(3, 'UTC') COMMENT 'When it was computed last',
    oldest DateTime64(3, 'UTC') COMMENT 'When the first of its rows was stored, at that time: once that one is past its retention the hour stays as it is'
)
ENGINE = {{everywhere "at"}}
ORDER BY (name, hour)
COMMENT 'Up to when each hour of the rollups is computed';

CREATE TABLE IF NOT EXISTS {{table "messages_rollup"}}{{onCluster}}
(
{{columns "messages_rollup"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
ORDER BY (tenant, step, ts, source, format, agent_name, kind, model){{ttl "messages_rollup"}}
SETTINGS {{settings}}
COMMENT 'Messages by slots of time, kept longer than they. Read it through v_messages_5m and v_messages_1h';
{{distributed "messages_rollup" "cityHash64(tenant, ts)"}};

CREATE TABLE IF NOT EXISTS {{table "tool_calls_rollup"}}{{onCluster}}
(
{{columns "tool_calls_rollup"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
ORDER BY (tenant, step, ts, source, format, tool_name, mcp_server, agent_name, model, is_delegation, internal){{ttl "tool_calls_rollup"}}
SETTINGS {{settings}}
COMMENT 'Tool calls by slots of time, kept longer than they. Read it through v_tool_calls_5m and v_tool_calls_1h';
{{distributed "tool_calls_rollup" "cityHash64(tenant, ts)"}};

CREATE TABLE IF NOT EXISTS {{table "pauses_rollup"}}{{onCluster}}
(
{{columns "pauses_rollup"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
ORDER BY (tenant, step, ts, source, format, agent_name, model){{ttl "pauses_rollup"}}
SETTINGS {{settings}}
COMMENT 'Pauses before messages of models, by slots of time. Computed from messages; read it through pauses_slots';
{{distributed "pauses_rollup" "cityHash64(tenant, ts)"}};

-- The cost of a turn, with all agents below it, belongs to who began it.
CREATE TABLE IF NOT EXISTS {{table "usage_rollup"}}{{onCluster}}
(
{{columns "usage_rollup"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, step, ts, source, format, agent_name, model, session_id, trace_id)
ORDER BY (tenant, step, ts, source, format, agent_name, model, session_id, trace_id, tier, prompt_over, stated){{ttl "usage_rollup"}}
SETTINGS {{settings}}
COMMENT 'Tokens of turns by slots of time, kept longer than the messages. Read it through v_usage_5m, v_usage_1h and v_attributed_usage';
{{distributed "usage_rollup" "cityHash64(tenant, ts)"}};

CREATE TABLE IF NOT EXISTS {{table "usage_facts"}}{{onCluster}}
(
{{columns "usage_facts"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, toStartOfHour(ts), session_id)
ORDER BY (tenant, toStartOfHour(ts), session_id, message_id, part_index){{ttl "usage_facts"}}
SETTINGS {{settings}}
COMMENT 'Messages that have counts of tokens. Computed from messages; read it through v_usage';
{{distributed "usage_facts" "cityHash64(session_id)"}};

-- A day is one part when it is over and read without a merge. In a partition of a month, with the kind first in the key, the end of a kind
-- in one part lies over all of it in the later parts, and all parts are merged for each question: half of its cost.
CREATE TABLE IF NOT EXISTS {{table "span_facts_by_day"}}{{onCluster}}
(
{{columns "span_facts_by_day"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toDate(ts)
PRIMARY KEY (tenant, kind, toStartOfHour(ts), session_id)
ORDER BY (tenant, kind, toStartOfHour(ts), session_id, span_id){{ttl "span_facts_by_day"}}
SETTINGS {{settings}}
COMMENT 'Delegations, roots of traces, steps of workflows, and responses whose first token is known. Computed from spans; read it through v_delegations and v_span_facts';
{{distributed "span_facts_by_day" "cityHash64(session_id)"}};

CREATE TABLE IF NOT EXISTS {{table "unknown_facts"}}{{onCluster}}
(
{{columns "unknown_facts"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, toStartOfHour(ts), session_id)
ORDER BY (tenant, toStartOfHour(ts), session_id, message_id, part_index){{ttl "unknown_facts"}}
SETTINGS {{settings}}
COMMENT 'Messages of types that no decoder knows. Computed from messages; read it through v_unknown';
{{distributed "unknown_facts" "cityHash64(session_id)"}};


-- What the program writes beside the traffic.

CREATE TABLE IF NOT EXISTS {{table "attribution"}}{{onCluster}}
(
    tenant     LowCardinality(String) COMMENT 'Owner of the data',
    work       String COMMENT 'trace_id of a turn; session_id for usage that is of no turn' CODEC(ZSTD(1)),
    id         FixedString(16) MATERIALIZED sipHash128(toString(tenant), work) COMMENT 'Hash of both, by which usage is joined: in a quarter of the time',
    began_by   String COMMENT 'The conversation that began the work' CODEC(ZSTD(1)),
    team       LowCardinality(String) COMMENT 'Dimension team; empty when no rule derives it, like the others',
    user       LowCardinality(String) COMMENT 'Dimension user',
    host       LowCardinality(String) COMMENT 'Dimension host',
    project    LowCardinality(String) COMMENT 'Dimension project',
    repository LowCardinality(String) COMMENT 'Dimension repository',
    branch     LowCardinality(String) COMMENT 'Dimension branch',
    ticket     LowCardinality(String) COMMENT 'Dimension ticket',
    more       Map(LowCardinality(String), String) COMMENT 'The other dimensions of the rules' CODEC(ZSTD(1)),
    seen       DateTime('UTC') COMMENT 'When the facts were last stored; retention counts from here' CODEC(Delta(4), ZSTD(1)),
    ver        UInt64 COMMENT 'When the rules were made, and when they were applied, in seconds: the highest is valid'
)
ENGINE = {{replacing "ver"}}
ORDER BY id{{ttl "attribution"}}
SETTINGS {{settings}}
COMMENT 'Whose work each turn is, by the rules of the section dimensions. earshot who apply derives it again. Read it with FINAL';
{{distributed "attribution" "cityHash64(work)"}};

CREATE TABLE IF NOT EXISTS {{name "attribution_rules"}}{{onCluster}}
(
    generation UInt64 COMMENT 'When the rules were written, in seconds: the latest are valid',
    rules      String COMMENT 'JSON',
    until      DateTime64(3, 'UTC') COMMENT 'They are applied to facts that were stored before then',
    at         DateTime64(3, 'UTC') COMMENT 'When they were applied last'
)
ENGINE = {{everywhere "at"}}
ORDER BY generation
COMMENT 'The rules that attribution follows. Earshot writes those of its configuration';

CREATE TABLE IF NOT EXISTS {{table "changes"}}{{onCluster}}
(
    tenant       LowCardinality(String) COMMENT 'Owner of the data',
    found        DateTime('UTC') COMMENT 'The look that found it' CODEC(Delta(4), ZSTD(1)),
    at           DateTime('UTC') COMMENT 'When the first run after the change began' CODEC(Delta(4), ZSTD(1)),
    kind         LowCardinality(String) COMMENT 'agent, tool or model: what has changed',
    agent_name   LowCardinality(String) COMMENT 'The agent; its format in brackets where it has no name',
    name         LowCardinality(String) COMMENT 'The tool, or the model that answers; empty for an agent',
    model        LowCardinality(String) COMMENT 'Of the runs; empty for all models together',
    metric       LowCardinality(String) COMMENT 'duration, errors, tokens or calls',
    test         LowCardinality(String) COMMENT 'release or drift: which look found it',
    since        Array(String) COMMENT 'Components of the version that are new from then on; empty without one' CODEC(ZSTD(1)),
    runs_before  UInt32 COMMENT 'Runs that were compared',
    runs_after   UInt32 COMMENT 'The same, from then on',
    p50_before   Float64 COMMENT 'Median: milliseconds, a share, tokens or calls',
    p50_after    Float64 COMMENT 'The same, from then on',
    p95_before   Float64 COMMENT '95th percentile',
    p95_after    Float64 COMMENT 'The same, from then on',
    mean_before  Float64 COMMENT 'Mean: what changes of a share',
    mean_after   Float64 COMMENT 'The same, from then on',
    ratio        Float64 COMMENT 'A typical value after, divided by one before; 0 for errors',
    ratio_low    Float64 COMMENT 'Of its 95 % interval; 0 where there is none',
    ratio_high   Float64 COMMENT 'The same, the other end',
    summary      String COMMENT 'The change in a sentence, with the parts of the critical path that the difference is in' CODEC(ZSTD(1)),
    trace_before String COMMENT 'TraceId of the run that is the median before',
    trace_after  String COMMENT 'The same, from then on',
    ingest_ts    DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When it was stored' CODEC(Delta(8), ZSTD(1)),
    ver          UInt64 COMMENT 'When it was computed, in microseconds: the highest is valid' CODEC(Delta(8), ZSTD(1))
)
ENGINE = {{replacing "ver"}}
PARTITION BY toYYYYMM(found)
ORDER BY (tenant, found, kind, agent_name, name, model, metric){{ttl "changes"}}
SETTINGS {{settings}}
COMMENT 'When agents, tools and models changed, as the sidecar finds it each hour. Read it through v_changes';
{{distributed "changes" "cityHash64(agent_name)"}};

CREATE TABLE IF NOT EXISTS {{table "budget_alerts"}}{{onCluster}}
(
    tenant     LowCardinality(String) COMMENT 'Owner of the data',
    budget     LowCardinality(String) COMMENT 'Its name in the configuration',
    alert      LowCardinality(String) COMMENT 'budget_fast, budget_slow or budget_spent',
    period     DateTime('UTC') COMMENT 'Begin of the day, week or month that the budget is of' CODEC(Delta(4), ZSTD(1)),
    until      DateTime('UTC') COMMENT 'End of the day, week or month that the budget is of; 1970 in a row of an older version',
    at         DateTime64(3, 'UTC') COMMENT 'When it began' CODEC(Delta(8), ZSTD(1)),
    resolved   Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended; null while it holds',
    resolution LowCardinality(String) COMMENT 'Why it ended',
    evidence   String COMMENT 'What was spent, in a sentence' CODEC(ZSTD(1)),
    ingest_ts  DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When it was stored' CODEC(Delta(8), ZSTD(1)),
    ver        UInt64 COMMENT 'The highest is valid' CODEC(Delta(8), ZSTD(1))
)
ENGINE = {{replacing "ver"}}
PARTITION BY toYYYYMM(period)
ORDER BY (tenant, budget, alert, period, at){{ttl "budget_alerts"}}
SETTINGS {{settings}}
COMMENT 'Alerts of budgets: when each began and ended. Read it through v_budget_alerts';
{{distributed "budget_alerts" "cityHash64(budget)"}};

CREATE TABLE IF NOT EXISTS {{name "model_prices"}}{{onCluster}}
(
    model                    String COMMENT 'Name of the model without its date: claude-sonnet-4-5 for claude-sonnet-4-5-20250929',
    valid_from               DateTime('UTC') COMMENT 'The price applies to tokens from then on, until the next row of the model',
    input_usd_per_m          Float64 COMMENT 'US dollars for a million input tokens',
    output_usd_per_m         Float64 COMMENT 'US dollars for a million output tokens; reasoning counts as output',
    cache_read_usd_per_m     Float64 COMMENT 'US dollars for a million tokens read from a cache',
    cache_write_usd_per_m    Float64 COMMENT 'US dollars for a million tokens written to a cache, at the shortest lifetime that is sold',
    cache_write_1h_usd_per_m Float64 DEFAULT cache_write_usd_per_m COMMENT 'US dollars for a million tokens written to a cache that keeps them for an hour; as cache_write_usd_per_m unless it is set',
    tiers                    Map(String, Float64) COMMENT 'Factors of all prices by tier of the service: batch, flex, priority, fast, us. A tier that is not among them has no price',
    long_over                UInt32 COMMENT 'Size of a prompt in tokens above which the whole request is dearer: 128000, 200000, 256000 or 272000; 0: none is',
    long_input               Float64 DEFAULT 1 COMMENT 'Factor of the prices of such a prompt',
    long_output              Float64 DEFAULT 1 COMMENT 'Factor of the price of its answer',
    origin                   String COMMENT 'Where the price is from, and when it was looked up',
    ver                      UInt64 DEFAULT toUnixTimestamp64Milli(now64(3)) COMMENT 'Of rows with the same key the one with the highest version is valid: 1 is the configured prices, which earshot writes; a row that you insert has precedence'
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
