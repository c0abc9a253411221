{{- /* The name under which core/price looks a model up. */ -}}
{{define "price_model"}}replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(lower(trimBoth({{.}})), '^.*/', ''),
            '^.*?anthropic\\.(.*?)(-v[0-9]+)?(:[0-9]+)?$', '\\1'), '\\[1m\\]$', ''), '(@default|[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)|-00[0-9])$', ''),
            '-preview-[0-9]{2}-([0-9]{2}|[0-9]{4})$', '-preview'), '^(claude-[a-z0-9-]*[0-9])\\.([0-9])', '\\1-\\2'){{end -}}
{{- /* The prices of the model of a row, as those of v_turns. */ -}}
{{define "prices"}}(SELECT CAST((groupArray(model), groupArray(list)), 'Map(String, Array(Tuple(DateTime(\'UTC\'), Float64, Float64, Float64, Float64, Float64, Map(String, Float64), UInt32, Float64, Float64, UInt8)))')
        FROM (SELECT model, arraySort(p -> p.1, groupArray((valid_from, input_usd_per_m, output_usd_per_m, cache_read_usd_per_m, cache_write_usd_per_m, cache_write_1h_usd_per_m, tiers, long_over, long_input, long_output, 1))) AS list
            FROM {{name "model_prices"}} FINAL GROUP BY model)) AS prices{{end -}}
{{define "price"}}arrayLast(p -> p.1 <= s.ts, prices[{{template "price_model" .}}]){{end -}}
{{define "status"}}toLowCardinality(multiIf(state = 'open', 'running', outcome IN ('error', 'cancelled'), outcome, 'ok')){{end -}}
-- A result is read at the prices of the tier that its request is billed by. It had those of the standard tier.
CREATE OR REPLACE VIEW {{view "v_tool_calls"}}{{onCluster}}
AS WITH {{template "prices"}}, {{template "price" "toString(s.model)"}} AS price, if(s.tier = '', 1., arrayProduct(t -> price.7[t], splitByChar('+', toString(s.tier)))) AS factor
SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, tool_name, toLowCardinality(if(mcp_server = '', 'function', 'extension')) AS tool_type, mcp_server,
    {{template "status"}} AS status, error_type, duration_ns / 1e6 AS duration_ms, args_bytes, result_bytes, if(kind = 'delegation', true, false) AS is_delegation, internal, tool_call_id,
    lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id,
    model, tier, if(result_tokens_from = '', NULL, s.result_tokens) AS result_tokens, result_tokens_from, args_shape, attempt,
    waits_for, waited_ns / 1e6 AS waited_ms,
    if(outcome = 'error', status_message, '') AS error, project, branch, agent_version, host, user,
    if(result_tokens_from = '' OR price.11 = 0 OR factor = 0, NULL, s.result_tokens * price.2 * factor / 1e6) AS cost_usd
FROM {{name "spans"}} AS s FINAL
WHERE kind IN ('tool', 'delegation')
COMMENT 'Tool calls, each once, in its latest version; durations in milliseconds';

ALTER TABLE {{view "v_tool_calls"}}{{onCluster}}
{{comments "tool_calls" "tenant source format ts session_id run_id agent_name tool_name tool_type mcp_server status error_type args_bytes result_bytes is_delegation internal tool_call_id trace_id span_id model args_shape attempt"}},
    COMMENT COLUMN tier 'Tier of the service by which the first request that has the result is billed; empty at the standard tier, or where no request is known',
    COMMENT COLUMN duration_ms 'Milliseconds from call to result; 0 while running',
    COMMENT COLUMN result_tokens 'Tokens that the result added to every later request of its run; null when unknown: the last results of a run, usage that is missing, a compaction',
    COMMENT COLUMN result_tokens_from 'Provenance of the counts behind result_tokens: provider, transcript_final, transcript_partial (the answer before may have been longer), estimated; empty when unknown',
    COMMENT COLUMN waits_for 'person: while it runs, a person has to answer before it goes on; once it has ended, it waited for one for waited_ms; empty otherwise',
    COMMENT COLUMN waited_ms 'Milliseconds of duration_ms that a person took, which are not the tool''s; 0 while running',
    COMMENT COLUMN error 'Text of a failure',
    COMMENT COLUMN project 'Directory of the project that the run works in; empty where the protocol has none',
    COMMENT COLUMN branch 'Branch of its version control',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in',
    COMMENT COLUMN host 'The machine of the agent where the protocol names it, else that of the sidecar',
    COMMENT COLUMN user 'The account, where the protocol has one',
    COMMENT COLUMN cost_usd 'US dollars for which the model reads the result the first time: result_tokens at the price of input in the tier of the first request that has it. Each later request of the run reads them again. Null when either is unknown';
