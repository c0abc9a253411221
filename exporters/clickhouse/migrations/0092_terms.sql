{{- /* The name under which core/price looks a model up. */ -}}
{{define "price_model"}}replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(lower(trimBoth({{.}})), '^.*/', ''),
            '^.*?anthropic\\.(.*?)(-v[0-9]+)?(:[0-9]+)?$', '\\1'), '\\[1m\\]$', ''), '(@default|[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)|-00[0-9])$', ''),
            '-preview-[0-9]{2}-([0-9]{2}|[0-9]{4})$', '-preview'), '^(claude-[a-z0-9-]*[0-9])\\.([0-9])', '\\1-\\2'){{end -}}
{{- /* The factor of the price p of a tier: 0 if the price has none for it. */ -}}
{{define "factor"}}if({{.}}.tier = '', 1., arrayProduct(t -> p.tiers[t], splitByChar('+', toString({{.}}.tier)))){{end -}}
{{- /* That of its prompt and of its answer: a long request is dearer. */ -}}
{{define "of_input"}}({{template "factor" .}} * if(p.long_over > 0 AND {{.}}.prompt_over >= p.long_over, p.long_input, 1.)){{end -}}
{{define "of_output"}}({{template "factor" .}} * if(p.long_over > 0 AND {{.}}.prompt_over >= p.long_over, p.long_output, 1.)){{end -}}
{{- /* The prices of the model of a row: a list of (valid_from, input, output, cache read, cache write, cache write of an hour, tiers, long_over, long_input, long_output, 1), in US dollars for a million tokens. */ -}}
{{define "prices"}}(SELECT CAST((groupArray(model), groupArray(list)), 'Map(String, Array(Tuple(DateTime(\'UTC\'), Float64, Float64, Float64, Float64, Float64, Map(String, Float64), UInt32, Float64, Float64, UInt8)))')
        FROM (SELECT model, arraySort(p -> p.1, groupArray((valid_from, input_usd_per_m, output_usd_per_m, cache_read_usd_per_m, cache_write_usd_per_m, cache_write_1h_usd_per_m, tiers, long_over, long_input, long_output, 1))) AS list
            FROM {{name "model_prices"}} FINAL GROUP BY model)) AS prices{{end -}}
{{define "price"}}arrayLast(p -> p.1 <= s.ts, prices[{{template "price_model" .}}]){{end -}}
{{define "status"}}toLowCardinality(multiIf(state = 'open', 'running', outcome IN ('error', 'cancelled'), outcome, 'ok')){{end -}}
{{- /* The times in which a span waited for a person, as msg.Span.Waited adds them up. */ -}}
{{define "waits"}}if(s.waited_ns = 0, CAST([], 'Array(Tuple(Int64, Int64))'), arrayFilter(w -> w.1 < w.2, arrayMap(
                w -> (greatest(w.1, toUnixTimestamp64Nano(s.ts)), if(w.2 = 0, toUnixTimestamp64Nano(s.ts) + toInt64(duration_ns), least(w.2, toUnixTimestamp64Nano(s.ts) + toInt64(duration_ns)))),
                arrayFold((w, x) -> multiIf(
                        x.2 IN ('earshot.wait_start', 'earshot.run_pause') AND x.3 IN ('', 'person') AND (empty(w) OR w[-1].2 != 0), arrayPushBack(w, (x.1, toInt64(0))),
                        x.2 IN ('earshot.wait_end', 'earshot.run_resume') AND notEmpty(w) AND w[-1].2 = 0, arrayPushBack(arrayPopBack(w), (w[-1].1, greatest(x.1, w[-1].1 + 1))),
                        w),
                    arrayZip(arrayMap(t -> toUnixTimestamp64Nano(t), s.events.time), CAST(s.events.name, 'Array(String)'), arrayMap(a -> CAST(a['earshot.waits_for'], 'String'), s.events.attributes)),
                    CAST([], 'Array(Tuple(Int64, Int64))'))))){{end -}}
-- The cost of a response follows the tier of the service that it is billed by, the size of its prompt, and the cost that its own
-- record states.
ALTER TABLE {{name "model_prices"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS tiers Map(String, Float64) COMMENT 'Factors of all prices by tier of the service: batch, flex, priority, fast, us. A tier that is not among them has no price' AFTER cache_write_1h_usd_per_m,
    ADD COLUMN IF NOT EXISTS long_over UInt32 COMMENT 'Size of a prompt in tokens above which the whole request is dearer: 128000, 200000, 256000 or 272000; 0: none is' AFTER tiers,
    ADD COLUMN IF NOT EXISTS long_input Float64 DEFAULT 1 COMMENT 'Factor of the prices of such a prompt' AFTER long_over,
    ADD COLUMN IF NOT EXISTS long_output Float64 DEFAULT 1 COMMENT 'Factor of the price of its answer' AFTER long_input;

{{add "spans" "tier"}};

{{add "spans" "stated_picodollars"}};

{{add "usage_facts" "tier"}};

{{add "usage_facts" "prompt_over"}};

{{add "usage_facts" "stated_picodollars"}};

{{addKeys "usage_rollup" "tier" "prompt_over" "stated"}};

{{add "usage_rollup" "stated_picodollars"}};

{{/* Hours are computed again for the sizes of their prompts, but those of turns of which rows are gone. */ -}}
INSERT INTO {{name "rollup_hours"}} (name, hour, until, at, oldest)
SELECT 'turn costs', hour, if({{expired "messages" "first"}}, last, toDateTime64(0, 3, 'UTC')), computed, first
FROM (SELECT hour, max(until) AS last, max(at) AS computed, min(oldest) AS first FROM {{name "rollup_hours"}} WHERE name = 'turn tokens' GROUP BY hour);

CREATE OR REPLACE VIEW {{view "v_usage"}}{{onCluster}}
AS SELECT
    m.tenant AS tenant, m.source AS source, m.format AS format, m.ts AS ts, m.session_id AS session_id, m.run_id AS run_id, m.trace_id AS trace_id,
    m.agent_name AS agent_name, m.provider AS provider, m.model AS model, m.tier AS tier,
    m.input_tokens AS input_tokens, m.output_tokens AS output_tokens, m.cache_read_tokens AS cache_read_tokens,
    m.cache_write_tokens AS cache_write_tokens, m.reasoning_tokens AS reasoning_tokens, m.cache_write_1h_tokens AS cache_write_1h_tokens,
    m.input_tokens + m.output_tokens + m.cache_read_tokens + m.cache_write_tokens + m.reasoning_tokens AS tokens,
    m.stated_picodollars > 0 OR p.model != '' AND {{template "factor" "m"}} > 0 AS has_price,
    toLowCardinality(multiIf(m.stated_picodollars > 0, 'stated', has_price, 'list', '')) AS cost_from, cost_picodollars / 1e12 AS cost_usd,
    multiIf(m.stated_picodollars > 0, toUInt128(m.stated_picodollars), NOT has_price, NULL,
        toUInt128(m.input_tokens * toUInt64(round(p.input * {{template "of_input" "m"}})) + (m.output_tokens + m.reasoning_tokens) * toUInt64(round(p.output * {{template "of_output" "m"}})) + m.cache_read_tokens * toUInt64(round(p.cache_read * {{template "of_input" "m"}}))
            + (m.cache_write_tokens - least(m.cache_write_tokens, m.cache_write_1h_tokens)) * toUInt64(round(p.cache_write * {{template "of_input" "m"}}))
            + least(m.cache_write_tokens, m.cache_write_1h_tokens) * toUInt64(round(p.cache_write_1h * {{template "of_input" "m"}})))) AS cost_picodollars
FROM
(
    SELECT *,
        {{template "price_model" "model"}} AS price_model,
        toDateTime(ts, 'UTC') AS at
    FROM ({{laterFacts "usage_facts" "tier" "prompt_over" "stated_picodollars"}})
) AS m
ASOF LEFT JOIN
(
    SELECT model, valid_from, input_usd_per_m * 1e6 AS input, output_usd_per_m * 1e6 AS output, cache_read_usd_per_m * 1e6 AS cache_read, cache_write_usd_per_m * 1e6 AS cache_write,
        cache_write_1h_usd_per_m * 1e6 AS cache_write_1h, tiers, long_over, long_input, long_output
    FROM {{name "model_prices"}} FINAL
) AS p ON m.price_model = p.model AND m.at >= p.valid_from
COMMENT 'Tokens and their cost: every message that has counts, with the cost that its protocol states, or priced by model_prices. The cost is null where neither is known, so a sum is of what is known';

ALTER TABLE {{view "v_usage"}}{{onCluster}}
{{comments "messages" "tenant source format session_id run_id trace_id agent_name provider model input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
{{comments "usage_facts" "tier cache_write_1h_tokens"}},
    COMMENT COLUMN ts 'Time of the message that has the counts',
    COMMENT COLUMN tokens 'All classes together',
    COMMENT COLUMN has_price 'The cost is known: it is stated, or model_prices knows the model and the tier',
    COMMENT COLUMN cost_from 'stated: by the protocol, of this very response; list: at the prices of model_prices; empty: it is not known',
    COMMENT COLUMN cost_usd 'US dollars; null where the cost is not known',
    COMMENT COLUMN cost_picodollars 'cost_usd as an integer, of which a sum is exact: 10^12 are a US dollar';

CREATE OR REPLACE VIEW {{view "v_usage_5m"}}{{onCluster}}
AS {{rollup "usage_rollup" 300 "tier" "prompt_over" "stated" "cache_write_1h_tokens" "stated_picodollars"}}
COMMENT 'Tokens of turns by slots of five minutes. Add up what you do not group by';

ALTER TABLE {{view "v_usage_5m"}}{{onCluster}}
{{comments "usage_rollup" "tenant ts source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens tier prompt_over stated cache_write_1h_tokens stated_picodollars sessions"}};

CREATE OR REPLACE VIEW {{view "v_usage_1h"}}{{onCluster}}
AS {{rollup "usage_rollup" 3600 "tier" "prompt_over" "stated" "cache_write_1h_tokens" "stated_picodollars"}}
COMMENT 'Tokens of turns by hours. Add up what you do not group by';

ALTER TABLE {{view "v_usage_1h"}}{{onCluster}}
{{comments "usage_rollup" "tenant ts source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens tier prompt_over stated cache_write_1h_tokens stated_picodollars sessions"}};

{{define "known"}}toLowCardinality(if({{.}} = '', 'unknown', toString({{.}}))) AS {{slice . 2}}{{end -}}
CREATE OR REPLACE VIEW {{view "v_attributed_usage"}}{{onCluster}}
AS SELECT
    u.tenant AS tenant, u.ts AS ts, u.source AS source, u.format AS format, u.agent_name AS agent_name, u.model AS model, u.tier AS tier, u.session_id AS session_id, u.trace_id AS trace_id,
    {{template "known" "o.team"}}, {{template "known" "o.user"}}, {{template "known" "o.host"}}, {{template "known" "o.project"}},
    {{template "known" "o.repository"}}, {{template "known" "o.branch"}}, {{template "known" "o.ticket"}}, o.more AS more,
    if(o.began_by = '', u.session_id, o.began_by) AS began_by, u.responses AS responses,
    u.input_tokens AS input_tokens, u.output_tokens AS output_tokens, u.cache_read_tokens AS cache_read_tokens,
    u.cache_write_tokens AS cache_write_tokens, u.reasoning_tokens AS reasoning_tokens,
    u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens + u.reasoning_tokens AS tokens,
    u.has_price AS has_price, toLowCardinality(multiIf(u.stated, 'stated', u.has_price, 'list', '')) AS cost_from, u.cost_usd AS cost_usd
FROM
(
    SELECT r.*, r.stated OR p.model != '' AND {{template "factor" "r"}} > 0 AS has_price,
        multiIf(r.stated, r.stated_picodollars / 1e12, NOT has_price, NULL,
            ((r.input_tokens * p.input_usd_per_m + r.cache_read_tokens * p.cache_read_usd_per_m + (r.cache_write_tokens - least(r.cache_write_tokens, r.cache_write_1h_tokens)) * p.cache_write_usd_per_m
                + least(r.cache_write_tokens, r.cache_write_1h_tokens) * p.cache_write_1h_usd_per_m) * {{template "of_input" "r"}} + (r.output_tokens + r.reasoning_tokens) * p.output_usd_per_m * {{template "of_output" "r"}}) / 1e6) AS cost_usd
    FROM
    (
        SELECT tenant, ts, source, format, agent_name, model, session_id, trace_id, tier, prompt_over, stated, responses, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cache_write_1h_tokens, stated_picodollars,
            sipHash128(toString(tenant), if(trace_id = '', session_id, trace_id)) AS work,
            {{template "price_model" "toString(model)"}} AS price_model
        FROM {{name "v_usage_5m"}}
    ) AS r
    ASOF LEFT JOIN (SELECT * FROM {{name "model_prices"}} FINAL) AS p ON r.price_model = p.model AND r.ts >= p.valid_from
) AS u
GLOBAL ANY LEFT JOIN (SELECT id, began_by, team, user, host, project, repository, branch, ticket, more FROM {{name "attribution"}} FINAL) AS o ON u.work = o.id
COMMENT 'Tokens of turns by slots of five minutes, their cost, and the dimensions of who began the work. cost_usd is null where it is not known, so a sum is of what is known';

ALTER TABLE {{view "v_attributed_usage"}}{{onCluster}}
{{comments "usage_rollup" "tenant ts source format agent_name model tier session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
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
    COMMENT COLUMN has_price 'The cost is known: it is stated, or model_prices knows the model and the tier',
    COMMENT COLUMN cost_from 'stated: by the protocol, of these very responses; list: at the prices of model_prices when the slot began; empty: it is not known',
    COMMENT COLUMN cost_usd 'US dollars; null where the cost is not known';

CREATE OR REPLACE VIEW {{view "v_turns"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, trace_id, agent_name, model, status, error_type, error, duration_ms, waited_ms, responses, tool_calls, delegations, errors,
    called_input + rest_input AS input_tokens, called_output + rest_output AS output_tokens, called_read + rest_read AS cache_read_tokens,
    called_write + rest_write AS cache_write_tokens, called_reasoning + rest_reasoning AS reasoning_tokens,
    multiIf(called_input + called_output + called_read + called_write + called_reasoning = 0, cost_of_runs,
        rest_input + rest_output + rest_read + rest_write + rest_reasoning = 0, cost_of_responses,
        rest_stated > 0, ifNull(cost_of_responses, 0) + rest_stated,
        first_price.11 = 0 OR first_factor = 0, cost_of_responses,
        ifNull(cost_of_responses, 0) + (rest_input * first_price.2 + (rest_output + rest_reasoning) * first_price.3 + rest_read * first_price.4
            + (rest_write - least(rest_write, rest_write_1h)) * first_price.5 + least(rest_write, rest_write_1h) * first_price.6) * first_factor / 1e6) AS cost_usd,
    multiIf(called_input + called_output + called_read + called_write + called_reasoning = 0, stated_of_runs,
        rest_input + rest_output + rest_read + rest_write + rest_reasoning = 0, stated_of_responses, stated_of_responses + rest_stated) AS stated_usd,
    project, branch, agent_version, host, user
FROM
(
    WITH {{template "prices"}}
    SELECT
        tenant, any(s.source) AS source, any(s.format) AS format, min(s.ts) AS ts, session_id, argMinIf(s.run_id, (notEmpty(s.parent_span_id), s.ts), top) AS run_id, lower(hex(s.trace_id)) AS trace_id,
        argMinIf(s.agent_name, (notEmpty(s.parent_span_id), s.ts), top) AS agent_name, argMinIf(if(response_model != '', response_model, request_model), (notEmpty(s.parent_span_id), s.ts), top) AS model,
        argMinIf({{template "status"}}, (notEmpty(s.parent_span_id), s.ts), top) AS status, argMinIf(s.error_type, (notEmpty(s.parent_span_id), s.ts), top) AS error_type, argMinIf(if(outcome = 'error', status_message, ''), (notEmpty(s.parent_span_id), s.ts), top) AS error,
        argMinIf(duration_ns, (notEmpty(s.parent_span_id), s.ts), top) / 1e6 AS duration_ms, intervalLengthSumArray(arrayMap(w -> w.1, s.waits), arrayMap(w -> w.2, s.waits)) / 1e6 AS waited_ms,
        countIf(kind = 'chat') AS responses, countIf(kind = 'tool') AS tool_calls, countIf(kind = 'delegation') AS delegations, countIf(NOT top AND outcome = 'error') AS errors,
        sumIf(s.input_tokens, kind = 'chat') AS called_input, sumIf(s.output_tokens, kind = 'chat') AS called_output, sumIf(s.cache_read_tokens, kind = 'chat') AS called_read, sumIf(s.cache_write_tokens, kind = 'chat') AS called_write, sumIf(s.reasoning_tokens, kind = 'chat') AS called_reasoning, sumIf(s.cache_write_1h_tokens, kind = 'chat') AS called_write_1h,
        greatest(called_input, sumIf(s.input_tokens, top)) - called_input AS rest_input, greatest(called_output, sumIf(s.output_tokens, top)) - called_output AS rest_output, greatest(called_read, sumIf(s.cache_read_tokens, top)) - called_read AS rest_read, greatest(called_write, sumIf(s.cache_write_tokens, top)) - called_write AS rest_write, greatest(called_reasoning, sumIf(s.reasoning_tokens, top)) - called_reasoning AS rest_reasoning, greatest(called_write_1h, sumIf(s.cache_write_1h_tokens, top)) - called_write_1h AS rest_write_1h,
        sumIf(s.stated_picodollars, kind = 'chat') / 1e12 AS stated_of_responses, sumIf(s.stated_picodollars, top) / 1e12 AS stated_of_runs, (greatest(sumIf(s.stated_picodollars, top), sumIf(s.stated_picodollars, kind = 'chat')) - sumIf(s.stated_picodollars, kind = 'chat')) / 1e12 AS rest_stated,
        sumOrNullIf(s.cost, kind = 'chat' AND s.known) AS cost_of_responses, sumOrNullIf(s.cost, top AND s.known) AS cost_of_runs, argMinIf(s.price, (notEmpty(s.parent_span_id), s.ts), top) AS first_price, argMinIf(s.factor, (notEmpty(s.parent_span_id), s.ts), top) AS first_factor,
        argMinIf(s.project, (notEmpty(s.parent_span_id), s.ts), top) AS project, argMinIf(s.branch, (notEmpty(s.parent_span_id), s.ts), top) AS branch, argMinIf(s.agent_version, (notEmpty(s.parent_span_id), s.ts), top) AS agent_version, argMinIf(s.host, (notEmpty(s.parent_span_id), s.ts), top) AS host, argMinIf(s.user, (notEmpty(s.parent_span_id), s.ts), top) AS user
    FROM
    (
        SELECT *, kind IN ('run', 'workflow') AS top, {{template "waits"}} AS waits,
            {{template "price" "toString(if(s.response_model != '', s.response_model, s.request_model))"}} AS price,
            if(s.tier = '', 1., arrayProduct(t -> price.7[t], splitByChar('+', toString(s.tier)))) AS factor, s.stated_picodollars > 0 OR price.11 = 1 AND factor > 0 AS known,
            kind = 'chat' AND price.8 > 0 AND s.input_tokens + s.cache_read_tokens + s.cache_write_tokens > price.8 AS long,
            if(s.stated_picodollars > 0, s.stated_picodollars / 1e12,
                ((s.input_tokens * price.2 + s.cache_read_tokens * price.4 + (s.cache_write_tokens - least(s.cache_write_tokens, s.cache_write_1h_tokens)) * price.5
                    + least(s.cache_write_tokens, s.cache_write_1h_tokens) * price.6) * if(long, price.9, 1.) + (s.output_tokens + s.reasoning_tokens) * price.3 * if(long, price.10, 1.)) * factor / 1e6) AS cost
        FROM {{name "spans"}} AS s FINAL
        WHERE name != ''
    ) AS s
    GROUP BY tenant, session_id, s.trace_id
    HAVING countIf(top) > 0
)
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
    COMMENT COLUMN waited_ms 'Milliseconds in which a person was waited for; a time in which several calls wait counts once, and calls that run not yet',
    COMMENT COLUMN responses 'Responses of models',
    COMMENT COLUMN tool_calls 'Calls of tools, without delegations',
    COMMENT COLUMN delegations 'Delegations to other agents',
    COMMENT COLUMN errors 'Responses, calls and delegations that failed',
    COMMENT COLUMN input_tokens 'Tokens of its requests, neither read from nor written to a cache; of each class those of its responses, and what its runs report beyond them',
    COMMENT COLUMN output_tokens 'Tokens of its answers, without reasoning',
    COMMENT COLUMN cache_read_tokens 'Tokens read from a cache',
    COMMENT COLUMN cache_write_tokens 'Tokens written to a cache',
    COMMENT COLUMN reasoning_tokens 'Tokens of reasoning',
    COMMENT COLUMN cost_usd 'US dollars: of each response as its record states them, else at the prices of model_prices for its model, its tier and the size of its prompt; and those of what the runs report beyond responses, stated or at the price of the first run; null when no cost is known',
    COMMENT COLUMN stated_usd 'How many of cost_usd the protocol states; the others are at list prices',
    COMMENT COLUMN project 'Directory of the project that it works in; empty where the protocol has none',
    COMMENT COLUMN branch 'Branch of its version control',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in',
    COMMENT COLUMN host 'The machine of the agent where the protocol names it, else that of the sidecar',
    COMMENT COLUMN user 'The account, where the protocol has one';
