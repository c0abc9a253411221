{{- /* The name under which core/price looks a model up. */ -}}
{{define "price_model"}}replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(lower(trimBoth({{.}})), '^.*/', ''),
            '^.*?anthropic\\.(.*?)(-v[0-9]+)?(:[0-9]+)?$', '\\1'), '\\[1m\\]$', ''), '(@default|[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)|-00[0-9])$', ''),
            '-preview-[0-9]{2}-([0-9]{2}|[0-9]{4})$', '-preview'), '^(claude-[a-z0-9-]*[0-9])\\.([0-9])', '\\1-\\2'){{end -}}
{{- /* The prices of the model of a row, as those of v_tool_calls. */ -}}
{{define "prices"}}(SELECT CAST((groupArray(model), groupArray(list)), 'Map(String, Array(Tuple(DateTime(\'UTC\'), Float64, Float64, Float64, Float64, Float64, UInt8)))')
        FROM (SELECT model, arraySort(groupArray((valid_from, input_usd_per_m, output_usd_per_m, cache_read_usd_per_m, cache_write_usd_per_m, cache_write_1h_usd_per_m, 1))) AS list
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
-- The account of a stream has when bytes were dropped last, and why: an alert on all that were ever dropped had no end.
{{add "source_ledger" "dropped_at"}};

-- A time in which several calls of a turn wait for a person is one wait, not several.
CREATE OR REPLACE VIEW {{view "v_turns"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, trace_id, agent_name, model, status, error_type, error, duration_ms, waited_ms, responses, tool_calls, delegations, errors,
    called_input + rest_input AS input_tokens, called_output + rest_output AS output_tokens, called_read + rest_read AS cache_read_tokens,
    called_write + rest_write AS cache_write_tokens, called_reasoning + rest_reasoning AS reasoning_tokens,
    multiIf(called_input + called_output + called_read + called_write + called_reasoning = 0, cost_of_runs,
        first_price.7 = 0 OR rest_input + rest_output + rest_read + rest_write + rest_reasoning = 0, cost_of_responses,
        ifNull(cost_of_responses, 0) + (rest_input * first_price.2 + (rest_output + rest_reasoning) * first_price.3 + rest_read * first_price.4
            + (rest_write - least(rest_write, rest_write_1h)) * first_price.5 + least(rest_write, rest_write_1h) * first_price.6) / 1e6) AS cost_usd,
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
        sumOrNullIf(s.cost, kind = 'chat' AND price.7 = 1) AS cost_of_responses, sumOrNullIf(s.cost, top AND price.7 = 1) AS cost_of_runs, argMinIf(s.price, (notEmpty(s.parent_span_id), s.ts), top) AS first_price,
        argMinIf(s.project, (notEmpty(s.parent_span_id), s.ts), top) AS project, argMinIf(s.branch, (notEmpty(s.parent_span_id), s.ts), top) AS branch, argMinIf(s.agent_version, (notEmpty(s.parent_span_id), s.ts), top) AS agent_version, argMinIf(s.host, (notEmpty(s.parent_span_id), s.ts), top) AS host, argMinIf(s.user, (notEmpty(s.parent_span_id), s.ts), top) AS user
    FROM
    (
        SELECT *, kind IN ('run', 'workflow') AS top, {{template "waits"}} AS waits,
            {{template "price" "toString(if(s.response_model != '', s.response_model, s.request_model))"}} AS price,
            (s.input_tokens * price.2 + (s.output_tokens + s.reasoning_tokens) * price.3 + s.cache_read_tokens * price.4
                + (s.cache_write_tokens - least(s.cache_write_tokens, s.cache_write_1h_tokens)) * price.5 + least(s.cache_write_tokens, s.cache_write_1h_tokens) * price.6) / 1e6 AS cost
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
    COMMENT COLUMN cost_usd 'US dollars at the prices of model_prices, of the responses whose model has one, and what the runs report beyond responses at the price of the first run; null when no price is known',
    COMMENT COLUMN project 'Directory of the project that it works in; empty where the protocol has none',
    COMMENT COLUMN branch 'Branch of its version control',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in',
    COMMENT COLUMN host 'The machine of the agent where the protocol names it, else that of the sidecar',
    COMMENT COLUMN user 'The account, where the protocol has one';
