{{- /* The name under which core/price looks a model up. */ -}}
{{define "price_model"}}replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(lower(trimBoth({{.}})), '^.*/', ''),
            '^.*?anthropic\\.(.*?)(-v[0-9]+)?(:[0-9]+)?$', '\\1'), '\\[1m\\]$', ''), '(@default|[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)|-00[0-9])$', ''),
            '-preview-[0-9]{2}-([0-9]{2}|[0-9]{4})$', '-preview'), '^(claude-[a-z0-9-]*[0-9])\\.([0-9])', '\\1-\\2'){{end -}}
{{- /* The prices of the model of a row: a list of (valid_from, input, output, cache read, cache write, cache write of an hour, 1), in US dollars for a million tokens. */ -}}
{{define "prices"}}(SELECT CAST((groupArray(model), groupArray(list)), 'Map(String, Array(Tuple(DateTime(\'UTC\'), Float64, Float64, Float64, Float64, Float64, UInt8)))')
        FROM (SELECT model, arraySort(groupArray((valid_from, input_usd_per_m, output_usd_per_m, cache_read_usd_per_m, cache_write_usd_per_m, cache_write_1h_usd_per_m, 1))) AS list
            FROM {{name "model_prices"}} FINAL GROUP BY model)) AS prices{{end -}}
{{define "price"}}arrayLast(p -> p.1 <= s.ts, prices[{{template "price_model" .}}]){{end -}}
{{define "status"}}toLowCardinality(multiIf(state = 'open', 'running', outcome IN ('error', 'cancelled'), outcome, 'ok')){{end -}}
-- Tokens that a cache keeps for an hour cost more than those that it keeps for five minutes, and models are found by
-- more of the names that they are sold under.
ALTER TABLE {{name "model_prices"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS cache_write_1h_usd_per_m Float64 DEFAULT cache_write_usd_per_m COMMENT 'US dollars for a million tokens written to a cache that keeps them for an hour; as cache_write_usd_per_m unless it is set' AFTER cache_write_usd_per_m;

{{add "spans" "cache_write_1h_tokens"}};

{{add "usage_facts" "cache_write_1h_tokens"}};

{{add "usage_rollup" "cache_write_1h_tokens"}};

{{/* All hours of turns are computed again, but those of which rows are gone; all usage facts are compared again. */ -}}
INSERT INTO {{name "rollup_hours"}} (name, hour, until, at, oldest)
SELECT 'turn tokens', hour, if({{expired "messages" "first"}}, last, toDateTime64(0, 3, 'UTC')), computed, first
FROM (SELECT hour, max(until) AS last, max(at) AS computed, min(oldest) AS first FROM {{name "rollup_hours"}} WHERE name = 'turns' GROUP BY hour);

CREATE OR REPLACE VIEW {{view "v_usage"}}{{onCluster}}
AS SELECT
    m.tenant AS tenant, m.source AS source, m.format AS format, m.ts AS ts, m.session_id AS session_id, m.run_id AS run_id, m.trace_id AS trace_id,
    m.agent_name AS agent_name, m.provider AS provider, m.model AS model,
    m.input_tokens AS input_tokens, m.output_tokens AS output_tokens, m.cache_read_tokens AS cache_read_tokens,
    m.cache_write_tokens AS cache_write_tokens, m.reasoning_tokens AS reasoning_tokens, m.cache_write_1h_tokens AS cache_write_1h_tokens,
    m.input_tokens + m.output_tokens + m.cache_read_tokens + m.cache_write_tokens + m.reasoning_tokens AS tokens,
    p.model != '' AS has_price, cost_picodollars / 1e12 AS cost_usd,
    if(p.model != '', toUInt128(m.input_tokens * p.input + (m.output_tokens + m.reasoning_tokens) * p.output + m.cache_read_tokens * p.cache_read
        + (m.cache_write_tokens - least(m.cache_write_tokens, m.cache_write_1h_tokens)) * p.cache_write + least(m.cache_write_tokens, m.cache_write_1h_tokens) * p.cache_write_1h), NULL) AS cost_picodollars
FROM
(
    SELECT *,
        {{template "price_model" "model"}} AS price_model,
        toDateTime(ts, 'UTC') AS at
    FROM ({{laterFacts "usage_facts"}})
) AS m
ASOF LEFT JOIN
(
    SELECT model, valid_from, toUInt64(round(input_usd_per_m * 1e6)) AS input, toUInt64(round(output_usd_per_m * 1e6)) AS output,
        toUInt64(round(cache_read_usd_per_m * 1e6)) AS cache_read, toUInt64(round(cache_write_usd_per_m * 1e6)) AS cache_write,
        toUInt64(round(cache_write_1h_usd_per_m * 1e6)) AS cache_write_1h
    FROM {{name "model_prices"}} FINAL
) AS p ON m.price_model = p.model AND m.at >= p.valid_from
COMMENT 'Tokens and their cost: every message that has counts, priced by model_prices. The cost is null where the model has no price, so a sum is of what is known';

ALTER TABLE {{view "v_usage"}}{{onCluster}}
{{comments "messages" "tenant source format session_id run_id trace_id agent_name provider model input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    COMMENT COLUMN cache_write_1h_tokens 'How many of cache_write_tokens are kept for an hour, which costs more',
    COMMENT COLUMN ts 'Time of the message that has the counts',
    COMMENT COLUMN tokens 'All classes together',
    COMMENT COLUMN has_price 'model_prices knows the model',
    COMMENT COLUMN cost_usd 'US dollars at the prices of model_prices; null without a price',
    COMMENT COLUMN cost_picodollars 'The same as an integer, of which a sum is exact: 10^12 are a US dollar';

CREATE OR REPLACE VIEW {{view "v_usage_5m"}}{{onCluster}}
AS {{rollup "usage_rollup" 300 "cache_write_1h_tokens"}}
COMMENT 'Tokens of turns by slots of five minutes. Add up what you do not group by';

ALTER TABLE {{view "v_usage_5m"}}{{onCluster}}
{{comments "usage_rollup" "tenant ts source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens cache_write_1h_tokens sessions"}};

CREATE OR REPLACE VIEW {{view "v_usage_1h"}}{{onCluster}}
AS {{rollup "usage_rollup" 3600 "cache_write_1h_tokens"}}
COMMENT 'Tokens of turns by hours. Add up what you do not group by';

ALTER TABLE {{view "v_usage_1h"}}{{onCluster}}
{{comments "usage_rollup" "tenant ts source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens cache_write_1h_tokens sessions"}};

{{define "known"}}toLowCardinality(if({{.}} = '', 'unknown', toString({{.}}))) AS {{slice . 2}}{{end -}}
CREATE OR REPLACE VIEW {{view "v_attributed_usage"}}{{onCluster}}
AS SELECT
    u.tenant AS tenant, u.ts AS ts, u.source AS source, u.format AS format, u.agent_name AS agent_name, u.model AS model, u.session_id AS session_id, u.trace_id AS trace_id,
    {{template "known" "o.team"}}, {{template "known" "o.user"}}, {{template "known" "o.host"}}, {{template "known" "o.project"}},
    {{template "known" "o.repository"}}, {{template "known" "o.branch"}}, {{template "known" "o.ticket"}}, o.more AS more,
    if(o.began_by = '', u.session_id, o.began_by) AS began_by, u.responses AS responses,
    u.input_tokens AS input_tokens, u.output_tokens AS output_tokens, u.cache_read_tokens AS cache_read_tokens,
    u.cache_write_tokens AS cache_write_tokens, u.reasoning_tokens AS reasoning_tokens,
    u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens + u.reasoning_tokens AS tokens,
    u.has_price AS has_price, u.cost_usd AS cost_usd
FROM
(
    SELECT r.*, p.model != '' AS has_price,
        if(p.model != '', (r.input_tokens * p.input_usd_per_m + (r.output_tokens + r.reasoning_tokens) * p.output_usd_per_m
            + r.cache_read_tokens * p.cache_read_usd_per_m + (r.cache_write_tokens - least(r.cache_write_tokens, r.cache_write_1h_tokens)) * p.cache_write_usd_per_m
            + least(r.cache_write_tokens, r.cache_write_1h_tokens) * p.cache_write_1h_usd_per_m) / 1e6, NULL) AS cost_usd
    FROM
    (
        SELECT tenant, ts, source, format, agent_name, model, session_id, trace_id, responses, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cache_write_1h_tokens,
            sipHash128(toString(tenant), if(trace_id = '', session_id, trace_id)) AS work,
            {{template "price_model" "toString(model)"}} AS price_model
        FROM {{name "v_usage_5m"}}
    ) AS r
    ASOF LEFT JOIN (SELECT * FROM {{name "model_prices"}} FINAL) AS p ON r.price_model = p.model AND r.ts >= p.valid_from
) AS u
GLOBAL ANY LEFT JOIN (SELECT id, began_by, team, user, host, project, repository, branch, ticket, more FROM {{name "attribution"}} FINAL) AS o ON u.work = o.id
COMMENT 'Tokens of turns by slots of five minutes, their cost, and the dimensions of who began the work. cost_usd is null where the model has no price, so a sum is of what is known';

ALTER TABLE {{view "v_attributed_usage"}}{{onCluster}}
{{comments "usage_rollup" "tenant ts source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    COMMENT COLUMN team 'Dimension team of the turn that began the work; unknown when no rule derives it, like the others',
    COMMENT COLUMN user 'Dimension user',
    COMMENT COLUMN host 'Dimension host',
    COMMENT COLUMN project 'Dimension project',
    COMMENT COLUMN repository 'Dimension repository',
    COMMENT COLUMN branch 'Dimension branch',
    COMMENT COLUMN ticket 'Dimension ticket',
    COMMENT COLUMN more 'The other dimensions of the rules, by name',
    COMMENT COLUMN began_by 'The conversation that began the work',
    COMMENT COLUMN tokens 'All classes together',
    COMMENT COLUMN has_price 'model_prices knows the model',
    COMMENT COLUMN cost_usd 'US dollars at the prices of model_prices when the slot began; null without a price';

CREATE OR REPLACE VIEW {{view "v_turns"}}{{onCluster}}
AS WITH {{template "prices"}}
SELECT
    tenant, any(s.source) AS source, any(s.format) AS format, min(s.ts) AS ts, session_id, argMinIf(s.run_id, s.ts, top) AS run_id, lower(hex(s.trace_id)) AS trace_id,
    argMinIf(s.agent_name, s.ts, top) AS agent_name, argMinIf(if(response_model != '', response_model, request_model), s.ts, top) AS model,
    argMinIf({{template "status"}}, s.ts, top) AS status, argMinIf(s.error_type, s.ts, top) AS error_type, argMinIf(if(outcome = 'error', status_message, ''), s.ts, top) AS error,
    argMinIf(duration_ns, s.ts, top) / 1e6 AS duration_ms, sum(s.waited_ns) / 1e6 AS waited_ms,
    countIf(kind = 'chat') AS responses, countIf(kind = 'tool') AS tool_calls, countIf(kind = 'delegation') AS delegations, countIf(kind != 'run' AND outcome = 'error') AS errors,
    sumIf(s.input_tokens, kind = 'chat') AS input_tokens, sumIf(s.output_tokens, kind = 'chat') AS output_tokens, sumIf(s.cache_read_tokens, kind = 'chat') AS cache_read_tokens,
    sumIf(s.cache_write_tokens, kind = 'chat') AS cache_write_tokens, sumIf(s.reasoning_tokens, kind = 'chat') AS reasoning_tokens,
    sumOrNullIf((s.input_tokens * price.2 + (s.output_tokens + s.reasoning_tokens) * price.3 + s.cache_read_tokens * price.4
        + (s.cache_write_tokens - least(s.cache_write_tokens, s.cache_write_1h_tokens)) * price.5 + least(s.cache_write_tokens, s.cache_write_1h_tokens) * price.6) / 1e6, kind = 'chat' AND price.7 = 1) AS cost_usd,
    argMinIf(s.project, s.ts, top) AS project, argMinIf(s.branch, s.ts, top) AS branch, argMinIf(s.agent_version, s.ts, top) AS agent_version,
    argMinIf(s.host, s.ts, top) AS host, argMinIf(s.user, s.ts, top) AS user
FROM
(
    SELECT *, kind IN ('run', 'workflow') AS top, {{template "price" "toString(if(s.response_model != '', s.response_model, s.request_model))"}} AS price
    FROM {{name "spans"}} AS s FINAL
    WHERE name != ''
) AS s
GROUP BY tenant, session_id, s.trace_id
HAVING countIf(top) > 0
COMMENT 'Turns: what an agent did on one prompt, with the agents below it. One row is a trace of a conversation';

ALTER TABLE {{view "v_turns"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN ts 'When it began',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN run_id 'Its first run, which the agent, the model and the outcome are of',
    COMMENT COLUMN trace_id 'TraceId of otel_traces, in hex',
    COMMENT COLUMN agent_name 'The agent that the prompt is for',
    COMMENT COLUMN model 'The model that answered, or that was asked for where only that is known',
    COMMENT COLUMN status 'running, ok, error or cancelled',
    COMMENT COLUMN error_type 'Why it failed or was cancelled',
    COMMENT COLUMN error 'Text of a failure',
    COMMENT COLUMN duration_ms 'Milliseconds of its first run; 0 while running',
    COMMENT COLUMN waited_ms 'Milliseconds that calls waited for a person',
    COMMENT COLUMN responses 'Responses of models',
    COMMENT COLUMN tool_calls 'Calls of tools, without delegations',
    COMMENT COLUMN delegations 'Delegations to other agents',
    COMMENT COLUMN errors 'Responses, calls and delegations that failed',
    COMMENT COLUMN input_tokens 'Tokens of its requests, neither read from nor written to a cache',
    COMMENT COLUMN output_tokens 'Tokens of its answers, without reasoning',
    COMMENT COLUMN cache_read_tokens 'Tokens read from a cache',
    COMMENT COLUMN cache_write_tokens 'Tokens written to a cache',
    COMMENT COLUMN reasoning_tokens 'Tokens of reasoning',
    COMMENT COLUMN cost_usd 'US dollars at the prices of model_prices, of the responses whose model has one; null when none has',
    COMMENT COLUMN project 'Directory of the project that it works in; empty where the protocol has none',
    COMMENT COLUMN branch 'Branch of its version control',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in',
    COMMENT COLUMN host 'The machine of the agent where the protocol names it, else that of the sidecar',
    COMMENT COLUMN user 'The account, where the protocol has one';
