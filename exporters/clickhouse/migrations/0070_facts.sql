{{define "status"}}toLowCardinality(multiIf(state = 'open', 'running', outcome IN ('error', 'cancelled'), outcome, 'ok')){{end -}}
-- The rows that boards ask for over weeks, apart from the many that they are between: to read
-- the tokens of a month was to read every message of it. And all times of calls by slots, of which
-- a quantile is exact.
{{add "tool_calls_rollup" "largest_result"}};

{{add "tool_calls_rollup" "only_waited"}};

{{add "tool_calls_rollup" "active_ns"}};

{{/* All hours are computed again, but those of which rows are gone. */ -}}
INSERT INTO {{name "rollup_hours"}} (name, hour, until, at, oldest)
SELECT 'calls', hour, if({{expired "spans" "first"}}, last, toDateTime64(0, 3, 'UTC')), computed, first
FROM (SELECT hour, max(until) AS last, max(at) AS computed, min(oldest) AS first FROM {{name "rollup_hours"}} WHERE name = 'spans' GROUP BY hour);

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

CREATE TABLE IF NOT EXISTS {{table "span_facts"}}{{onCluster}}
(
{{columns "span_facts"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, kind, toStartOfHour(ts), session_id)
ORDER BY (tenant, kind, toStartOfHour(ts), session_id, span_id){{ttl "span_facts"}}
SETTINGS {{settings}}
COMMENT 'Delegations, roots of traces, steps of workflows, and responses whose first token is known. Computed from spans; read it through v_delegations and v_span_facts';
{{distributed "span_facts" "cityHash64(session_id)"}};

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

CREATE VIEW IF NOT EXISTS {{view "pauses_slots"}}{{onCluster}}
AS {{slots "pauses_rollup"}}
COMMENT 'Pauses before messages of models, by slots of five minutes. Add up what you do not group by';

ALTER TABLE {{view "pauses_slots"}}{{onCluster}}
{{comments "pauses_rollup" "tenant ts source format agent_name model messages longest_us pauses sessions"}};

CREATE VIEW IF NOT EXISTS {{view "messages_slots"}}{{onCluster}}
AS {{slots "messages_rollup"}}
COMMENT 'As v_messages_5m, with conversations that can be merged: uniqMerge(sessions)';

ALTER TABLE {{view "messages_slots"}}{{onCluster}}
{{comments "messages_rollup" "tenant ts source format agent_name kind model messages failed hidden content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens sessions"}};

CREATE VIEW IF NOT EXISTS {{view "tool_calls_slots"}}{{onCluster}}
AS {{slots "tool_calls_rollup"}}
COMMENT 'As v_tool_calls_5m, with the time of each call, and conversations that can be merged: uniqMerge(sessions)';

ALTER TABLE {{view "tool_calls_slots"}}{{onCluster}}
{{comments "tool_calls_rollup" "tenant ts source format tool_name mcp_server agent_name model is_delegation internal calls errors cancelled retries over_1s over_10s over_1m duration_ns waited_ns args_bytes result_bytes only_waited longest_ns largest_result active_ns sessions"}};

CREATE OR REPLACE VIEW {{view "v_messages_5m"}}{{onCluster}}
AS {{rollup "messages_rollup" 300}}
COMMENT 'Messages by slots of five minutes. Add up what you do not group by';

ALTER TABLE {{view "v_messages_5m"}}{{onCluster}}
{{comments "messages_rollup" "tenant ts source format agent_name kind model messages failed hidden content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens sessions"}};

CREATE OR REPLACE VIEW {{view "v_messages_1h"}}{{onCluster}}
AS {{rollup "messages_rollup" 3600}}
COMMENT 'Messages by hours. Add up what you do not group by';

ALTER TABLE {{view "v_messages_1h"}}{{onCluster}}
{{comments "messages_rollup" "tenant ts source format agent_name kind model messages failed hidden content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens sessions"}};

CREATE OR REPLACE VIEW {{view "v_tool_calls_5m"}}{{onCluster}}
AS {{rollup "tool_calls_rollup" 300}}
COMMENT 'Tool calls that have ended, by slots of five minutes. Add up what you do not group by';

ALTER TABLE {{view "v_tool_calls_5m"}}{{onCluster}}
{{comments "tool_calls_rollup" "tenant ts source format tool_name mcp_server agent_name model is_delegation internal calls errors cancelled retries over_1s over_10s over_1m duration_ns waited_ns args_bytes result_bytes longest_ns sessions"}};

CREATE OR REPLACE VIEW {{view "v_tool_calls_1h"}}{{onCluster}}
AS {{rollup "tool_calls_rollup" 3600}}
COMMENT 'Tool calls that have ended, by hours. Add up what you do not group by';

ALTER TABLE {{view "v_tool_calls_1h"}}{{onCluster}}
{{comments "tool_calls_rollup" "tenant ts source format tool_name mcp_server agent_name model is_delegation internal calls errors cancelled retries over_1s over_10s over_1m duration_ns waited_ns args_bytes result_bytes longest_ns sessions"}};

CREATE OR REPLACE VIEW {{view "v_usage"}}{{onCluster}}
AS SELECT
    m.tenant AS tenant, m.source AS source, m.format AS format, m.ts AS ts, m.session_id AS session_id, m.run_id AS run_id, m.trace_id AS trace_id,
    m.agent_name AS agent_name, m.provider AS provider, m.model AS model,
    m.input_tokens AS input_tokens, m.output_tokens AS output_tokens, m.cache_read_tokens AS cache_read_tokens,
    m.cache_write_tokens AS cache_write_tokens, m.reasoning_tokens AS reasoning_tokens,
    m.input_tokens + m.output_tokens + m.cache_read_tokens + m.cache_write_tokens + m.reasoning_tokens AS tokens,
    p.model != '' AS has_price, cost_picodollars / 1e12 AS cost_usd,
    if(p.model != '', toUInt128(m.input_tokens * p.input + (m.output_tokens + m.reasoning_tokens) * p.output + m.cache_read_tokens * p.cache_read + m.cache_write_tokens * p.cache_write), NULL) AS cost_picodollars
FROM
(
    SELECT *,
        replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(lower(trimBoth(model)), '^.*/', ''), '^.*?anthropic\\.(.*?)(-v1)?(:0)?$', '\\1'),
            '[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)$', '') AS price_model,
        toDateTime(ts, 'UTC') AS at
    FROM ({{facts "usage_facts"}})
) AS m
ASOF LEFT JOIN
(
    SELECT model, valid_from, toUInt64(round(input_usd_per_m * 1e6)) AS input, toUInt64(round(output_usd_per_m * 1e6)) AS output,
        toUInt64(round(cache_read_usd_per_m * 1e6)) AS cache_read, toUInt64(round(cache_write_usd_per_m * 1e6)) AS cache_write
    FROM {{name "model_prices"}} FINAL
) AS p ON m.price_model = p.model AND m.at >= p.valid_from
COMMENT 'Tokens and their cost: every message that has counts, priced by model_prices. The cost is null where the model has no price, so a sum is of what is known';

ALTER TABLE {{view "v_usage"}}{{onCluster}}
{{comments "messages" "tenant source format session_id run_id trace_id agent_name provider model input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    COMMENT COLUMN ts 'Time of the message that has the counts',
    COMMENT COLUMN tokens 'All classes together',
    COMMENT COLUMN has_price 'model_prices knows the model',
    COMMENT COLUMN cost_usd 'US dollars at the prices of model_prices; null without a price',
    COMMENT COLUMN cost_picodollars 'The same as an integer, of which a sum is exact: 10^12 are a US dollar';

CREATE OR REPLACE VIEW {{view "v_delegations"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, delegate_to, tool_name, {{template "status"}} AS status, error_type,
    if(worked_ns > 0, worked_ns, duration_ns) / 1e6 AS duration_ms, async, child_run_id, link_method, link_confidence, args_bytes, result_bytes,
    tool_call_id, lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id, delegate_id,
    if(outcome = 'error', status_message, '') AS error, project, branch, agent_version, host, user, model, waits_for
FROM ({{facts "span_facts"}}) AS s
WHERE kind = 'delegation'
COMMENT 'Delegations, each once, in its latest version; durations in milliseconds';

ALTER TABLE {{view "v_delegations"}}{{onCluster}}
{{comments "delegations" "tenant source format ts session_id run_id agent_name tool_name status error_type async child_run_id link_method link_confidence args_bytes result_bytes tool_call_id trace_id span_id delegate_id"}},
    COMMENT COLUMN delegate_to 'The delegate: its display name where any is known, else as the caller wrote it',
    COMMENT COLUMN duration_ms 'Milliseconds that the work took: from the call to the end of the child run, where that is known, else to the result; 0 while running',
    COMMENT COLUMN error 'Text of a failure',
    COMMENT COLUMN project 'Directory of the project that the run works in; empty where the protocol has none',
    COMMENT COLUMN branch 'Branch of its version control',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in',
    COMMENT COLUMN host 'The machine of the agent where the protocol names it, else that of the sidecar',
    COMMENT COLUMN user 'The account, where the protocol has one',
    COMMENT COLUMN model 'The model that requested it, where it is known',
    COMMENT COLUMN waits_for 'person: it waited for a person, or waits while it runs; empty otherwise';

CREATE VIEW IF NOT EXISTS {{view "v_span_facts"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id,
    lower(hex(trace_id)) AS trace_id, lower(hex(s.span_id)) AS span_id, if(empty(s.parent_span_id), '', lower(hex(s.parent_span_id))) AS parent_span_id,
    kind, name, agent_name, if(kind IN ('tool', 'delegation'), tool_name, '') AS tool_name, delegate_to,
    if(response_model != '', response_model, request_model) AS model, duration_ns / 1e6 AS duration_ms,
    if(outcome = '', 'unset', outcome) AS status, multiIf(outcome NOT IN ('error', 'cancelled'), '', outcome = 'error' AND error_type = '', '_OTHER', error_type) AS error_type,
    if(outcome = 'error', status_message, '') AS error, if(first_token_ns > 0, first_token_ns / 1e6, NULL) AS first_token_ms,
    reasoning_tokens, output_tokens, project, branch, agent_version, host, user
FROM ({{facts "span_facts"}}) AS s
WHERE state != 'open' AND name != ''
COMMENT 'Of v_spans the delegations, the roots of traces, the steps of workflows, and the responses whose first token is known: quick over long ranges';

ALTER TABLE {{view "v_span_facts"}}{{onCluster}}
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
    COMMENT COLUMN output_tokens 'Tokens answered, without reasoning; of a run those of its chats once more',
    COMMENT COLUMN project 'Directory of the project that the run works in; empty where the protocol has none',
    COMMENT COLUMN branch 'Branch of its version control',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in',
    COMMENT COLUMN host 'The machine of the agent where the protocol names it, else that of the sidecar',
    COMMENT COLUMN user 'The account, where the protocol has one';
