{{- /* How a message states the set-up of its run. Figures of a prompt are masked: a date in it is no other prompt. */ -}}
{{define "setup"}}(SELECT tenant, session_id, run_id, ts, seq, ingest_ts,
        if(kind = 'system' AND role = 'system' AND content != '', lower(hex(sipHash64(replaceRegexpAll(content, '[0-9]+', '0')))), '') AS prompt,
        if(kind = 'status' AND attributes['type'] = 'tool_definitions' AND content != '', lower(hex(sipHash64(content))), '') AS tools,
        coalesce(nullIf(attributes['request.reasoning'], ''), nullIf(attributes['effort'], ''), attributes['reasoning_effort']) AS effort{{end -}}
{{define "setups"}}argMinIfState(x.prompt, (x.ts, x.seq), toUInt8(x.prompt != '')) AS prompt, argMinIfState(x.tools, (x.ts, x.seq), toUInt8(x.tools != '')) AS tools,
    argMaxIfState(x.effort, (x.ts, x.seq), toUInt8(x.effort != '')) AS effort{{end -}}
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

CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "run_setups_mv"}}{{onCluster}} TO {{table "run_setups"}}
AS SELECT tenant, session_id, run_id, min(x.ts) AS began, {{template "setups"}}, max(x.ingest_ts) AS seen
FROM
{{template "setup"}}
    FROM {{table "messages"}}
    WHERE is_deleted = 0 AND kind IN ('system', 'status')) AS x
WHERE concat(x.prompt, x.tools, x.effort) != ''
GROUP BY tenant, session_id, run_id;

INSERT INTO {{name "run_setups"}} (tenant, session_id, run_id, began, prompt, tools, effort, seen)
SELECT tenant, session_id, run_id, min(x.ts) AS began, {{template "setups"}}, max(x.ingest_ts) AS seen
FROM
{{template "setup"}}
    FROM {{name "messages"}} FINAL
    WHERE kind IN ('system', 'status')) AS x
WHERE concat(x.prompt, x.tools, x.effort) != ''
GROUP BY tenant, session_id, run_id;

CREATE OR REPLACE VIEW {{view "v_runs"}}{{onCluster}}
AS SELECT
    s.tenant AS tenant, s.source AS source, s.format AS format, s.ts AS ts, s.session_id AS session_id, s.run_id AS run_id, s.parent_run_id AS parent_run_id,
    lower(hex(s.trace_id)) AS trace_id, lower(hex(s.span_id)) AS span_id, s.agent_name AS agent_name,
    if(s.response_model != '', s.response_model, s.request_model) AS model, s.agent_version AS agent_version,
    if(own.effort != '', own.effort, shared.effort) AS effort, if(own.prompt != '', own.prompt, shared.prompt) AS prompt, if(own.tools != '', own.tools, shared.tools) AS tools,
    if(concat(agent_version, model, effort, prompt, tools) = '', '', substring(lower(hex(sipHash64(toString(agent_version), toString(model), effort, prompt, tools))), 1, 12)) AS version,
    toLowCardinality(if(s.outcome IN ('error', 'cancelled'), s.outcome, 'ok')) AS status, s.error_type AS error_type, s.duration_ns / 1e6 AS duration_ms,
    s.input_tokens AS input_tokens, s.output_tokens AS output_tokens, s.cache_read_tokens AS cache_read_tokens, s.cache_write_tokens AS cache_write_tokens,
    s.reasoning_tokens AS reasoning_tokens, s.project AS project, s.branch AS branch, s.host AS host, s.user AS user
FROM (SELECT * FROM {{name "spans"}} FINAL WHERE kind = 'run' AND state != 'open' AND name != '') AS s
LEFT JOIN
(
    SELECT tenant, session_id, run_id, argMinIfMerge(x.prompt) AS prompt, argMinIfMerge(x.tools) AS tools, argMaxIfMerge(x.effort) AS effort
    FROM {{name "run_setups"}} AS x WHERE run_id != '' GROUP BY tenant, session_id, run_id
) AS own ON own.tenant = s.tenant AND own.session_id = s.session_id AND own.run_id = s.run_id
LEFT JOIN
(
    SELECT tenant, session_id, argMinIfMerge(x.prompt) AS prompt, argMinIfMerge(x.tools) AS tools, argMaxIfMerge(x.effort) AS effort
    FROM {{name "run_setups"}} AS x WHERE run_id = '' GROUP BY tenant, session_id
) AS shared ON shared.tenant = s.tenant AND shared.session_id = s.session_id
COMMENT 'Runs that have ended: one invocation of one agent each, with the version of the agent: a fingerprint of its client, model, effort, system prompt and tools';

ALTER TABLE {{view "v_runs"}}{{onCluster}}
{{comments "messages" "input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN ts 'When it began',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN run_id 'One invocation of one agent',
    COMMENT COLUMN parent_run_id 'The run that caused this one',
    COMMENT COLUMN trace_id 'TraceId of otel_traces, in hex',
    COMMENT COLUMN span_id 'SpanId of otel_traces, in hex',
    COMMENT COLUMN agent_name 'The agent that runs',
    COMMENT COLUMN model 'The model that answered, or that was asked for where only that is known',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in',
    COMMENT COLUMN effort 'Effort of reasoning that was asked for, in the provider''s words; empty where the protocol has none',
    COMMENT COLUMN prompt 'Hash of the system prompt, its figures masked; empty where it was not seen',
    COMMENT COLUMN tools 'Hash of the definitions of its tools; empty where they were not seen',
    COMMENT COLUMN version 'Fingerprint of agent_version, model, effort, prompt and tools; empty when none of them is known. See v_agent_versions',
    COMMENT COLUMN status 'ok, error or cancelled',
    COMMENT COLUMN error_type 'Why it failed or was cancelled',
    COMMENT COLUMN duration_ms 'Milliseconds',
    COMMENT COLUMN project 'Directory of the project that it works in; empty where the protocol has none',
    COMMENT COLUMN branch 'Branch of its version control',
    COMMENT COLUMN host 'The machine of the agent where the protocol names it, else that of the sidecar',
    COMMENT COLUMN user 'The account, where the protocol has one';

CREATE OR REPLACE VIEW {{view "v_agent_versions"}}{{onCluster}}
AS SELECT tenant, format, agent_name, version, any(r.agent_version) AS agent_version, any(r.model) AS model, any(r.effort) AS effort, any(r.prompt) AS prompt, any(r.tools) AS tools,
    min(r.ts) AS first_run, max(r.ts) AS last_run, count() AS runs, uniqExact(r.session_id) AS sessions, countIf(r.status = 'error') AS errors,
    quantileExact(0.5)(r.duration_ms) AS p50_ms, quantileExact(0.95)(r.duration_ms) AS p95_ms
FROM {{name "v_runs"}} AS r
WHERE version != ''
GROUP BY tenant, format, agent_name, version
COMMENT 'Versions of agents: what was heard of how each is set up, when it was used, and how its runs went';

ALTER TABLE {{view "v_agent_versions"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN agent_name 'The agent',
    COMMENT COLUMN version 'Fingerprint of the next five columns',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in',
    COMMENT COLUMN model 'The model that answered',
    COMMENT COLUMN effort 'Effort of reasoning that was asked for',
    COMMENT COLUMN prompt 'Hash of the system prompt, its figures masked',
    COMMENT COLUMN tools 'Hash of the definitions of its tools',
    COMMENT COLUMN first_run 'When its first run began',
    COMMENT COLUMN last_run 'When its last run began',
    COMMENT COLUMN runs 'Runs that have ended',
    COMMENT COLUMN sessions 'Conversations',
    COMMENT COLUMN errors 'Runs that failed',
    COMMENT COLUMN p50_ms 'Median of the durations, in milliseconds',
    COMMENT COLUMN p95_ms '95th percentile of the durations, in milliseconds';
