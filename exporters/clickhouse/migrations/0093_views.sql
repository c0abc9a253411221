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
{{- /* A dimension of who began the work. */ -}}
{{define "known"}}toLowCardinality(if({{.}} = '', 'unknown', toString({{.}}))) AS {{slice . 2}}{{end -}}
-- The views of version 93. Each names its columns with their types and comments; a later migration that changes one has the whole view again.
--
-- Columns that are not written out are those of a table in core/msg/schema.

-- Messages and conversations.

CREATE VIEW IF NOT EXISTS {{name "v_messages"}}{{onCluster}}
(
{{columnsOf "messages" "tenant source format"}},
    ts DateTime64(9, 'UTC') COMMENT 'When it happened, by the protocol',
{{columnsOf "messages" "session_id run_id parent_run_id seq message_id parent_message_id trace_id span_id agent_id agent_name agent_kind role kind provider model tool_name tool_call_id tool_arguments tool_result delegate_to delegate_task child_run_id link_method finish_reason is_error complete hidden content content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens attributes"}}
)
AS SELECT
    tenant, source, format, ts, session_id, run_id, parent_run_id, seq, message_id, parent_message_id, trace_id, span_id,
    agent_id, agent_name, agent_kind, role, kind, provider, model,
    tool_name, tool_call_id, tool_arguments, tool_result, delegate_to, delegate_task, child_run_id, link_method,
    finish_reason, is_error, complete, hidden, content, content_bytes,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, attributes
FROM {{name "messages"}} FINAL
COMMENT 'Messages, each once, in its latest version. Order a session by ts, seq';

-- Which views of a conversation have a message, and which of them a number of a span is of. A message is stored once and its text is
-- not kept: to write it again for each view that is read later would store that text again, so its span has the views.
CREATE VIEW IF NOT EXISTS {{name "v_message_views"}}{{onCluster}}
(
{{columnsOf "messages" "tenant source format"}},
    ts DateTime64(9, 'UTC') COMMENT 'When it happened, by the protocol',
{{columnsOf "messages" "session_id run_id trace_id span_id message_id kind agent_name tool_name tool_call_id hidden"}},
    seen_by Array(String) COMMENT 'Formats that have the message, the one whose words the row has first'
)
AS SELECT
    m.tenant AS tenant, m.source AS source, m.format AS format, m.ts AS ts, m.session_id AS session_id, m.run_id AS run_id, m.trace_id AS trace_id, m.span_id AS span_id,
    m.message_id AS message_id, m.kind AS kind, m.agent_name AS agent_name, m.tool_name AS tool_name, m.tool_call_id AS tool_call_id, m.hidden AS hidden,
    if(empty(s.seen_by), [toString(m.format)], s.seen_by) AS seen_by
FROM
(
    SELECT tenant, source, format, ts, session_id, run_id, trace_id, span_id, message_id, kind, agent_name, tool_name, tool_call_id, hidden FROM {{name "messages"}} FINAL
) AS m
LEFT ANY JOIN
(
    SELECT tenant, session_id, seen.1 AS message_id, seen.2 AS seen_by
    FROM (SELECT tenant, session_id, attributes['earshot.seen_by.messages'] AS views FROM {{name "spans"}} FINAL WHERE mapContains(attributes, 'earshot.seen_by.messages'))
    ARRAY JOIN JSONExtractKeysAndValues(views, 'Array(String)') AS seen
) AS s ON s.tenant = m.tenant AND s.session_id = m.session_id AND s.message_id = toString(m.message_id)
COMMENT 'Messages, each once, with the formats that have it. Ask for a session_id: it reads the spans of what it is asked for, too';

CREATE VIEW IF NOT EXISTS {{name "v_unknown"}}{{onCluster}}
(
{{columnsOf "unknown_facts" "tenant source format ts session_id message_id"}},
    type String COMMENT 'Type of the record, which the decoder does not know; unknown_fields for a record of which it does not know some fields'
)
AS SELECT tenant, source, format, ts, session_id, message_id, type
FROM ({{facts "unknown_facts"}})
COMMENT 'Messages of types that no decoder knows';

CREATE VIEW IF NOT EXISTS {{name "v_session_times"}}{{onCluster}}
(
    tenant LowCardinality(String) COMMENT 'Owner of the data',
    session_id String COMMENT 'The conversation',
    began DateTime64(9, 'UTC') COMMENT 'Time of its first message that is not hidden and whose time is the protocol''s; of its first when there is none',
    latest DateTime64(9, 'UTC') COMMENT 'Time of its last such message',
    asked SimpleAggregateFunction(max, DateTime64(9, 'UTC')) COMMENT 'Time of its last prompt; 1970 when there is none',
    sources Array(String) COMMENT 'Sources that it came from',
    formats Array(String) COMMENT 'Decoders that read it',
    agents Array(String) COMMENT 'Agents that have messages; an empty name for one without a name',
    models Array(String) COMMENT 'Models that answered'
)
AS SELECT
    tenant, session_id, coalesce(min(s.first_at), min(s.began)) AS began, coalesce(max(s.last_at), max(s.latest)) AS latest, max(s.asked) AS asked,
    groupUniqArrayArray(s.sources) AS sources, groupUniqArrayArray(s.formats) AS formats,
    groupUniqArrayArray(s.agents) AS agents, groupUniqArrayArray(s.models) AS models
FROM {{name "sessions"}} AS s
GROUP BY tenant, session_id
COMMENT 'Times and participants of conversations: quick, however many messages they have';

CREATE VIEW IF NOT EXISTS {{name "v_session_facts"}}{{onCluster}}
(
    tenant LowCardinality(String) COMMENT 'Owner of the data',
    session_id String COMMENT 'The conversation',
    project String COMMENT 'Directory of the project, as its first run states it',
    branch String COMMENT 'Branch of its version control, as its last run states it',
    title String COMMENT 'Title that the agent or the user gave it; empty without one',
    agent_version String COMMENT 'Version of the program that the agent runs in, in its last run',
    host String COMMENT 'The machine of the agent where the protocol names it, else that of the sidecar',
    user String COMMENT 'The account, where the protocol has one'
)
AS SELECT tenant, session_id, argMinIfMerge(f.project) AS project, argMaxIfMerge(f.branch) AS branch, argMaxIfMerge(f.title) AS title,
    argMaxIfMerge(f.agent_version) AS agent_version, argMinIfMerge(f.host) AS host, argMaxIfMerge(f.user) AS user
FROM {{name "session_facts"}} AS f
GROUP BY tenant, session_id
COMMENT 'Where conversations take place: quick, however many messages they have. A conversation without any of these has no row';

CREATE VIEW IF NOT EXISTS {{name "v_sessions"}}{{onCluster}}
(
    tenant LowCardinality(String) COMMENT 'Owner of the data',
{{columnsOf "messages" "session_id"}},
    source String COMMENT 'Name of the source in the configuration',
    format String COMMENT 'Decoder that read it',
    started DateTime64(9, 'UTC') COMMENT 'Time of its first message that is not hidden and whose time is the protocol''s; of its first when there is none',
    last_message DateTime64(9, 'UTC') COMMENT 'Time of its last such message',
    duration_ms Int64 COMMENT 'Milliseconds between the two',
    runs UInt64 COMMENT 'Invocations of agents',
    messages UInt64 COMMENT 'Messages of all kinds',
    user_messages UInt64 COMMENT 'Prompts, and messages that start a run',
    tool_calls UInt64 COMMENT 'Calls of tools, without delegations',
    delegations UInt64 COMMENT 'Delegations to other agents',
    errors UInt64 COMMENT 'Messages that report a failure. A call that a person denied, interrupted or cancelled is not one',
{{columnsOf "messages" "input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    agents Array(String) COMMENT 'Agents that have messages',
    models Array(String) COMMENT 'Models that answered',
    project String COMMENT 'Directory of the project, as its first run states it',
    branch String COMMENT 'Branch of its version control, as its last run states it',
    title String COMMENT 'Title that the agent or the user gave it; empty without one',
    agent_version String COMMENT 'Version of the program that the agent runs in, in its last run',
    host String COMMENT 'The machine of the agent where the protocol names it, else that of the sidecar',
    user String COMMENT 'The account, where the protocol has one'
)
AS SELECT
    s.tenant AS tenant, s.session_id AS session_id, s.source AS source, s.format AS format, s.started AS started, s.last_message AS last_message, s.duration_ms AS duration_ms,
    s.runs AS runs, s.messages AS messages, s.user_messages AS user_messages, s.tool_calls AS tool_calls, s.delegations AS delegations, s.errors AS errors,
    s.input_tokens AS input_tokens, s.output_tokens AS output_tokens, s.cache_read_tokens AS cache_read_tokens, s.cache_write_tokens AS cache_write_tokens, s.reasoning_tokens AS reasoning_tokens,
    s.agents AS agents, s.models AS models,
    f.project AS project, f.branch AS branch, f.title AS title, f.agent_version AS agent_version, f.host AS host, f.user AS user
FROM
(
    SELECT
        tenant, session_id, min(source) AS source, min(format) AS format,
        coalesce(minOrNullIf(ts, NOT hidden AND NOT inferred), min(ts)) AS started, coalesce(maxOrNullIf(ts, NOT hidden AND NOT inferred), max(ts)) AS last_message,
        dateDiff('millisecond', started, last_message) AS duration_ms,
        uniqExactIf(run_id, run_id != '') AS runs,
        count() AS messages,
        countIf(kind = 'user') AS user_messages,
        countIf(kind = 'tool_call') AS tool_calls,
        countIf(kind = 'delegation') AS delegations,
        countIf(failed) AS errors,
        sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
        sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens, sum(reasoning_tokens) AS reasoning_tokens,
        arraySort(groupUniqArrayIf(agent_name, agent_name != '')) AS agents,
        arraySort(groupUniqArrayIf(model, model != '')) AS models
    FROM {{name "messages"}} FINAL
    GROUP BY tenant, session_id
) AS s
LEFT JOIN {{name "v_session_facts"}} AS f ON f.tenant = s.tenant AND f.session_id = s.session_id
COMMENT 'Conversations: counts of the messages, calls, errors and tokens of each, and where it took place';

CREATE VIEW IF NOT EXISTS {{name "v_runs"}}{{onCluster}}
(
    tenant LowCardinality(String) COMMENT 'Owner of the data',
    source LowCardinality(String) COMMENT 'Name of the source in the configuration',
    format LowCardinality(String) COMMENT 'Decoder that read it',
    ts DateTime64(9, 'UTC') COMMENT 'When it began',
    session_id String COMMENT 'The conversation',
    run_id String COMMENT 'One invocation of one agent',
    parent_run_id String COMMENT 'The run that caused this one',
    trace_id String COMMENT 'TraceId of otel_traces, in hex',
    span_id String COMMENT 'SpanId of otel_traces, in hex',
    agent_name LowCardinality(String) COMMENT 'The agent that runs',
    model String COMMENT 'The model that answered, or that was asked for where only that is known',
    agent_version LowCardinality(String) COMMENT 'Version of the program that the agent runs in',
    effort String COMMENT 'Effort of reasoning that was asked for, in the provider''s words; empty where the protocol has none',
    prompt String COMMENT 'Hash of the system prompt, its figures masked; empty where it was not seen',
    tools String COMMENT 'Hash of the definitions of its tools; empty where they were not seen',
    version String COMMENT 'Fingerprint of agent_version, model, effort, prompt and tools; empty when none of them is known. See v_agent_versions',
    status LowCardinality(String) COMMENT 'ok, error or cancelled',
    error_type LowCardinality(String) COMMENT 'Why it failed or was cancelled',
    duration_ms Float64 COMMENT 'Milliseconds',
{{columnsOf "messages" "input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    project LowCardinality(String) COMMENT 'Directory of the project that it works in; empty where the protocol has none',
    branch LowCardinality(String) COMMENT 'Branch of its version control',
    host LowCardinality(String) COMMENT 'The machine of the agent where the protocol names it, else that of the sidecar',
    user LowCardinality(String) COMMENT 'The account, where the protocol has one'
)
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

CREATE VIEW IF NOT EXISTS {{name "v_agent_versions"}}{{onCluster}}
(
    tenant LowCardinality(String) COMMENT 'Owner of the data',
    format LowCardinality(String) COMMENT 'Decoder that read it',
    agent_name LowCardinality(String) COMMENT 'The agent',
    version String COMMENT 'Fingerprint of the next five columns',
    agent_version String COMMENT 'Version of the program that the agent runs in',
    model String COMMENT 'The model that answered',
    effort String COMMENT 'Effort of reasoning that was asked for',
    prompt String COMMENT 'Hash of the system prompt, its figures masked',
    tools String COMMENT 'Hash of the definitions of its tools',
    first_run DateTime64(9, 'UTC') COMMENT 'When its first run began',
    last_run DateTime64(9, 'UTC') COMMENT 'When its last run began',
    runs UInt64 COMMENT 'Runs that have ended',
    sessions UInt64 COMMENT 'Conversations',
    errors UInt64 COMMENT 'Runs that failed',
    p50_ms Float64 COMMENT 'Median of the durations, in milliseconds',
    p95_ms Float64 COMMENT '95th percentile of the durations, in milliseconds'
)
AS SELECT tenant, format, agent_name, version, any(r.agent_version) AS agent_version, any(r.model) AS model, any(r.effort) AS effort, any(r.prompt) AS prompt, any(r.tools) AS tools,
    min(r.ts) AS first_run, max(r.ts) AS last_run, count() AS runs, uniqExact(r.session_id) AS sessions, countIf(r.status = 'error') AS errors,
    quantileExact(0.5)(r.duration_ms) AS p50_ms, quantileExact(0.95)(r.duration_ms) AS p95_ms
FROM {{name "v_runs"}} AS r
WHERE version != ''
GROUP BY tenant, format, agent_name, version
COMMENT 'Versions of agents: what was heard of how each is set up, when it was used, and how its runs went';

CREATE VIEW IF NOT EXISTS {{name "v_changes"}}{{onCluster}}
(
    tenant LowCardinality(String) COMMENT 'Owner of the data',
    found DateTime('UTC') COMMENT 'The look that found it',
    at DateTime('UTC') COMMENT 'When the first run after the change began',
    kind LowCardinality(String) COMMENT 'agent, tool or model: what has changed',
    agent_name LowCardinality(String) COMMENT 'The agent; its format in brackets where it has no name',
    name LowCardinality(String) COMMENT 'The tool, or the model that answers; empty for an agent',
    model LowCardinality(String) COMMENT 'Of the runs; empty for all models together',
    metric LowCardinality(String) COMMENT 'duration, errors, tokens or calls',
    test LowCardinality(String) COMMENT 'release or drift: which look found it',
    since Array(String) COMMENT 'Components of the version that are new from then on; empty without one',
    runs_before UInt32 COMMENT 'Runs that were compared',
    runs_after UInt32 COMMENT 'The same, from then on',
    p50_before Float64 COMMENT 'Median: milliseconds, a share, tokens or calls',
    p50_after Float64 COMMENT 'The same, from then on',
    p95_before Float64 COMMENT '95th percentile',
    p95_after Float64 COMMENT 'The same, from then on',
    mean_before Float64 COMMENT 'Mean: what changes of a share',
    mean_after Float64 COMMENT 'The same, from then on',
    ratio Float64 COMMENT 'A typical value after, divided by one before; 0 for errors',
    ratio_low Float64 COMMENT 'Of its 95 % interval; 0 where there is none',
    ratio_high Float64 COMMENT 'The same, the other end',
    more Bool COMMENT 'It is longer, or more, than before',
    summary String COMMENT 'The change in a sentence, with the parts of the critical path that the difference is in',
    trace_before String COMMENT 'TraceId of the run that is the median before',
    trace_after String COMMENT 'The same, from then on'
)
AS SELECT tenant, found, at, kind, agent_name, name, model, metric, test, since, runs_before, runs_after, p50_before, p50_after, p95_before, p95_after, mean_before, mean_after,
    ratio, ratio_low, ratio_high, if(if(ratio > 0, ratio > 1, mean_after > mean_before), true, false) AS more, summary, trace_before, trace_after
FROM {{name "changes"}} FINAL
COMMENT 'When agents, tools and models changed, with which version, and where the difference is';

-- Spans.

CREATE VIEW IF NOT EXISTS {{name "v_spans"}}{{onCluster}}
(
    tenant LowCardinality(String) COMMENT 'Owner of the data',
    source LowCardinality(String) COMMENT 'Name of the source in the configuration',
    format LowCardinality(String) COMMENT 'Decoder that read it',
    ts DateTime64(9, 'UTC') COMMENT 'Start of the span',
    session_id String COMMENT 'The conversation',
    run_id String COMMENT 'The run that the span is part of',
    trace_id String COMMENT 'TraceId of otel_traces, in hex',
    span_id String COMMENT 'SpanId of otel_traces, in hex',
    parent_span_id String COMMENT 'SpanId of the parent; empty for the root',
    kind LowCardinality(String) COMMENT 'run, chat, tool, delegation or workflow',
    name LowCardinality(String) COMMENT 'SpanName',
    agent_name LowCardinality(String) COMMENT 'gen_ai.agent.name',
    tool_name String COMMENT 'gen_ai.tool.name',
    delegate_to LowCardinality(String) COMMENT 'The delegate: its display name where any is known, else as the caller wrote it',
    model String COMMENT 'gen_ai.response.model, or gen_ai.request.model where only that is known',
    duration_ms Float64 COMMENT 'Milliseconds',
    status String COMMENT 'ok, error, cancelled, ... or unset',
    error_type String COMMENT 'Why it failed or was cancelled',
    error String COMMENT 'Message of a failure',
    first_token_ms Nullable(Float64) COMMENT 'Milliseconds from the request to the first token; null when unknown',
    reasoning_tokens UInt64 COMMENT 'Tokens of reasoning; of a run those of its chats once more',
    output_tokens UInt64 COMMENT 'Tokens answered, without reasoning; of a run those of its chats once more',
    project LowCardinality(String) COMMENT 'Directory of the project that the run works in; empty where the protocol has none',
    branch LowCardinality(String) COMMENT 'Branch of its version control',
    agent_version LowCardinality(String) COMMENT 'Version of the program that the agent runs in',
    host LowCardinality(String) COMMENT 'The machine of the agent where the protocol names it, else that of the sidecar',
    user LowCardinality(String) COMMENT 'The account, where the protocol has one',
    seen_by Array(String) COMMENT 'Formats that show the span, the one that its row is of first',
    tokens_from String COMMENT 'Format whose tokens they are; empty if only one has any',
    times_from String COMMENT 'Format whose start and end they are, if another than the first',
    conflict String COMMENT 'Tokens of each format, input/output/cache read/cache write, if they differ',
    outcome_from String COMMENT 'Format whose status it is, and whose end a run or a call has, if another than the first',
    first_token_from String COMMENT 'Format whose first_token_ms it is, if another than the first'
)
AS SELECT
    tenant, source, format, ts, session_id, run_id,
    lower(hex(trace_id)) AS trace_id, lower(hex(s.span_id)) AS span_id, if(empty(s.parent_span_id), '', lower(hex(s.parent_span_id))) AS parent_span_id,
    kind, name, agent_name, if(kind IN ('tool', 'delegation'), tool_name, '') AS tool_name, delegate_to,
    if(response_model != '', response_model, request_model) AS model, duration_ns / 1e6 AS duration_ms,
    if(outcome = '', 'unset', outcome) AS status, multiIf(outcome NOT IN ('error', 'cancelled'), '', outcome = 'error' AND error_type = '', '_OTHER', error_type) AS error_type,
    if(outcome = 'error', status_message, '') AS error, if(first_token_ns > 0, first_token_ns / 1e6, NULL) AS first_token_ms,
    reasoning_tokens, output_tokens, project, branch, agent_version, host, user,
    seen_by, attributes['earshot.tokens.from'] AS tokens_from, attributes['earshot.times.from'] AS times_from, attributes['earshot.conflict'] AS conflict,
    attributes['earshot.outcome.from'] AS outcome_from, attributes['earshot.first_token.from'] AS first_token_from
FROM {{name "spans"}} AS s FINAL
WHERE state != 'open' AND name != ''
COMMENT 'Spans of Earshot that have ended, not those that an agent sent itself. Tokens of a run are those of its chats once more';

CREATE VIEW IF NOT EXISTS {{name "v_turns"}}{{onCluster}}
(
    tenant LowCardinality(String) COMMENT 'Owner of the data',
    source String COMMENT 'Name of the source in the configuration',
    format String COMMENT 'Decoder that read it',
    ts DateTime64(9, 'UTC') COMMENT 'When it began',
    session_id String COMMENT 'The conversation',
    run_id String COMMENT 'Its first run, which the agent, the model and the outcome are of',
    trace_id String COMMENT 'TraceId of otel_traces, in hex',
    agent_name String COMMENT 'The agent that the prompt is for',
    model String COMMENT 'The model that answered, or that was asked for where only that is known',
    status String COMMENT 'running, ok, error or cancelled',
    error_type String COMMENT 'Why it failed or was cancelled',
    error String COMMENT 'Text of a failure',
    duration_ms Float64 COMMENT 'Milliseconds of its first run; 0 while running',
    waited_ms Float64 COMMENT 'Milliseconds in which a person was waited for; a time in which several calls wait counts once, and calls that run not yet',
    responses UInt64 COMMENT 'Responses of models',
    tool_calls UInt64 COMMENT 'Calls of tools, without delegations',
    delegations UInt64 COMMENT 'Delegations to other agents',
    errors UInt64 COMMENT 'Responses, calls and delegations that failed',
    input_tokens Int64 COMMENT 'Tokens of its requests, neither read from nor written to a cache; of each class those of its responses, and what its runs report beyond them',
    output_tokens Int64 COMMENT 'Tokens of its answers, without reasoning',
    cache_read_tokens Int64 COMMENT 'Tokens read from a cache',
    cache_write_tokens Int64 COMMENT 'Tokens written to a cache',
    reasoning_tokens Int64 COMMENT 'Tokens of reasoning',
    cost_usd Nullable(Float64) COMMENT 'US dollars: of each response as its record states them, else at the prices of model_prices for its model, its tier and the size of its prompt; and those of what the runs report beyond responses, stated or at the price of the first run; null when no cost is known',
    stated_usd Float64 COMMENT 'How many of cost_usd the protocol states; the others are at list prices',
    project String COMMENT 'Directory of the project that it works in; empty where the protocol has none',
    branch String COMMENT 'Branch of its version control',
    agent_version String COMMENT 'Version of the program that the agent runs in',
    host String COMMENT 'The machine of the agent where the protocol names it, else that of the sidecar',
    user String COMMENT 'The account, where the protocol has one'
)
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

-- Replaced where it is: in version 92 it was another one.
CREATE OR REPLACE VIEW {{name "v_tool_calls"}}{{onCluster}}
(
{{columnsOf "tool_calls" "tenant source format ts session_id run_id agent_name tool_name tool_type mcp_server status error_type"}},
    duration_ms Float64 COMMENT 'Milliseconds from call to result; 0 while running',
{{columnsOf "tool_calls" "args_bytes result_bytes is_delegation internal tool_call_id trace_id span_id model"}},
    tier LowCardinality(String) COMMENT 'Tier of the service by which the first request that has the result is billed; empty at the standard tier, or where no request is known',
    result_tokens Nullable(UInt32) COMMENT 'Tokens that the result added to every later request of its run; null when unknown: the last results of a run, usage that is missing, a compaction',
    result_tokens_from LowCardinality(String) COMMENT 'Provenance of the counts behind result_tokens: provider, transcript_final, transcript_partial (the answer before may have been longer), estimated; empty when unknown',
{{columnsOf "tool_calls" "args_shape attempt"}},
    waits_for LowCardinality(String) COMMENT 'person: while it runs, a person has to answer before it goes on; once it has ended, it waited for one for waited_ms; empty otherwise',
    waited_ms Float64 COMMENT 'Milliseconds of duration_ms that a person took, which are not the tool''s; 0 while running',
    error String COMMENT 'Text of a failure',
    project LowCardinality(String) COMMENT 'Directory of the project that the run works in; empty where the protocol has none',
    branch LowCardinality(String) COMMENT 'Branch of its version control',
    agent_version LowCardinality(String) COMMENT 'Version of the program that the agent runs in',
    host LowCardinality(String) COMMENT 'The machine of the agent where the protocol names it, else that of the sidecar',
    user LowCardinality(String) COMMENT 'The account, where the protocol has one',
    cost_usd Nullable(Float64) COMMENT 'US dollars for which the model reads the result the first time: result_tokens at the price of input in the tier of the first request that has it. Each later request of the run reads them again. Null when either is unknown'
)
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

CREATE VIEW IF NOT EXISTS {{name "v_delegations"}}{{onCluster}}
(
{{columnsOf "delegations" "tenant source format ts session_id run_id agent_name"}},
    delegate_to LowCardinality(String) COMMENT 'The delegate: its display name where any is known, else as the caller wrote it',
{{columnsOf "delegations" "tool_name status error_type"}},
    duration_ms Float64 COMMENT 'Milliseconds that the work took: from the call to the end of the child run, where that is known, else to the result; 0 while running',
{{columnsOf "delegations" "async child_run_id link_method link_confidence args_bytes result_bytes tool_call_id trace_id span_id delegate_id"}},
    error String COMMENT 'Text of a failure',
    project LowCardinality(String) COMMENT 'Directory of the project that the run works in; empty where the protocol has none',
    branch LowCardinality(String) COMMENT 'Branch of its version control',
    agent_version LowCardinality(String) COMMENT 'Version of the program that the agent runs in',
    host LowCardinality(String) COMMENT 'The machine of the agent where the protocol names it, else that of the sidecar',
    user LowCardinality(String) COMMENT 'The account, where the protocol has one',
    model LowCardinality(String) COMMENT 'The model that requested it, where it is known',
    waits_for LowCardinality(String) COMMENT 'person: it waited for a person, or waits while it runs; empty otherwise',
    trace_key FixedString(16) COMMENT 'trace_id as its 16 bytes, by which rows are grouped in half of the time'
)
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, delegate_to, tool_name, {{template "status"}} AS status, error_type,
    if(worked_ns > 0, worked_ns, duration_ns) / 1e6 AS duration_ms, async, child_run_id, link_method, link_confidence, args_bytes, result_bytes,
    tool_call_id, lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id, delegate_id,
    if(outcome = 'error', status_message, '') AS error, project, branch, agent_version, host, user, model, waits_for, s.trace_id AS trace_key
FROM ({{facts "span_facts_by_day"}}) AS s
WHERE kind = 'delegation'
COMMENT 'Delegations, each once, in its latest version; durations in milliseconds';

CREATE VIEW IF NOT EXISTS {{name "v_span_facts"}}{{onCluster}}
(
    tenant LowCardinality(String) COMMENT 'Owner of the data',
    source LowCardinality(String) COMMENT 'Name of the source in the configuration',
    format LowCardinality(String) COMMENT 'Decoder that read it',
    ts DateTime64(9, 'UTC') COMMENT 'Start of the span',
    session_id String COMMENT 'The conversation',
    run_id String COMMENT 'The run that the span is part of',
    trace_id String COMMENT 'TraceId of otel_traces, in hex',
    span_id String COMMENT 'SpanId of otel_traces, in hex',
    parent_span_id String COMMENT 'SpanId of the parent; empty for the root',
    kind LowCardinality(String) COMMENT 'run, chat, tool, delegation or workflow',
    name LowCardinality(String) COMMENT 'SpanName',
    agent_name LowCardinality(String) COMMENT 'gen_ai.agent.name',
    tool_name String COMMENT 'gen_ai.tool.name',
    delegate_to LowCardinality(String) COMMENT 'The delegate: its display name where any is known, else as the caller wrote it',
    model String COMMENT 'gen_ai.response.model, or gen_ai.request.model where only that is known',
    duration_ms Float64 COMMENT 'Milliseconds',
    status String COMMENT 'ok, error, cancelled, ... or unset',
    error_type String COMMENT 'Why it failed or was cancelled',
    error String COMMENT 'Message of a failure',
    first_token_ms Nullable(Float64) COMMENT 'Milliseconds from the request to the first token; null when unknown',
    reasoning_tokens UInt64 COMMENT 'Tokens of reasoning; of a run those of its chats once more',
    output_tokens UInt64 COMMENT 'Tokens answered, without reasoning; of a run those of its chats once more',
    project LowCardinality(String) COMMENT 'Directory of the project that the run works in; empty where the protocol has none',
    branch LowCardinality(String) COMMENT 'Branch of its version control',
    agent_version LowCardinality(String) COMMENT 'Version of the program that the agent runs in',
    host LowCardinality(String) COMMENT 'The machine of the agent where the protocol names it, else that of the sidecar',
    user LowCardinality(String) COMMENT 'The account, where the protocol has one',
    root UInt8 COMMENT 'It has no parent: as parent_span_id = '''', without the hex of each'
)
AS SELECT
    tenant, source, format, ts, session_id, run_id,
    lower(hex(trace_id)) AS trace_id, lower(hex(s.span_id)) AS span_id, if(empty(s.parent_span_id), '', lower(hex(s.parent_span_id))) AS parent_span_id,
    kind, name, agent_name, if(kind IN ('tool', 'delegation'), tool_name, '') AS tool_name, delegate_to,
    if(response_model != '', response_model, request_model) AS model, duration_ns / 1e6 AS duration_ms,
    if(outcome = '', 'unset', outcome) AS status, multiIf(outcome NOT IN ('error', 'cancelled'), '', outcome = 'error' AND error_type = '', '_OTHER', error_type) AS error_type,
    if(outcome = 'error', status_message, '') AS error, if(first_token_ns > 0, first_token_ns / 1e6, NULL) AS first_token_ms,
    reasoning_tokens, output_tokens, project, branch, agent_version, host, user, empty(s.parent_span_id) AS root
FROM ({{facts "span_facts_by_day"}}) AS s
WHERE state != 'open' AND name != ''
COMMENT 'Of v_spans the delegations, the roots of traces, the steps of workflows, and the responses whose first token is known: quick over long ranges';

-- Spans in the columns of the OpenTelemetry collector, and calls, delegations and open spans each in a table of their own, as other programs read them.

CREATE VIEW IF NOT EXISTS {{name "otel_traces"}}{{onCluster}}
(
    Timestamp DateTime64(9, 'UTC') COMMENT 'Start of the span',
{{columnsOf "otel_traces" "TraceId SpanId ParentSpanId TraceState SpanName SpanKind ServiceName ResourceAttributes ScopeName ScopeVersion SpanAttributes Duration StatusCode StatusMessage"}},
    `Events.Timestamp` Array(DateTime64(9, 'UTC')) COMMENT 'Retries, pauses, waits for permission, errors',
{{columnsOf "otel_traces" "Events.Name Events.Attributes Links.TraceId Links.SpanId Links.TraceState Links.Attributes Ver IsDeleted IngestTs Operation AgentName"}},
    ToolName String COMMENT 'gen_ai.tool.name',
{{columnsOf "otel_traces" "SessionId Kind Format"}},
    Model String COMMENT 'gen_ai.response.model: the model that answered; gen_ai.request.model where only the requested one is known',
{{columnsOf "otel_traces" "Outcome FirstToken OutputTokens"}},
    State String COMMENT 'earshot.span.state: idle (ended by silence) or closed',
    Async Bool COMMENT 'earshot.delegate.async: the caller goes on meanwhile',
    DelegateTo String COMMENT 'earshot.delegate.to'
)
AS SELECT
    toDateTime64(ts, 9) AS Timestamp, lower(hex(trace_id)) AS TraceId, lower(hex(span_id)) AS SpanId,
    if(empty(parent_span_id), '', lower(hex(parent_span_id))) AS ParentSpanId, '' AS TraceState,
    name AS SpanName, toLowCardinality(if(kind = 'chat', 'Client', 'Internal')) AS SpanKind, source AS ServiceName,
    CAST(map('service.name', source), 'Map(LowCardinality(String), String)') AS ResourceAttributes, 'github.com/earshot-dev/earshot' AS ScopeName, '' AS ScopeVersion,
    CAST(mapConcat(mapFilter((k, v) -> v != '', map(
        'gen_ai.operation.name', toString(Operation), 'gen_ai.conversation.id', if(unnamed, '', session_id), 'gen_ai.agent.name', agent_name,
        'earshot.tenant', tenant, 'earshot.source', source, 'earshot.format', format, 'earshot.session.id', session_id, 'earshot.run.id', run_id, 'earshot.parent_run.id', parent_run_id,
        'earshot.agent.id', agent_id, 'earshot.agent.kind', agent_kind, 'earshot.span.state', state,
        'earshot.outcome', outcome, 'error.type', multiIf(outcome != 'error', '', error_type = '', '_OTHER', error_type), 'earshot.cancel.reason', if(outcome = 'cancelled', error_type, ''),
        'earshot.waits_for', waits_for, 'earshot.delegate.to', delegate_to, 'earshot.child_run.id', child_run_id, 'earshot.link.method', link_method,
        'earshot.link.confidence', if(link_confidence > 0, toString(link_confidence), ''), 'earshot.delegate.async', if(async, 'true', ''))),
        if(kind IN ('tool', 'delegation'), mapFilter((k, v) -> v != '', map(
            'gen_ai.tool.name', tool_name, 'gen_ai.tool.call.id', tool_call_id, 'gen_ai.tool.type', if(mcp_server = '', 'function', 'extension'),
            'mcp.method.name', if(mcp_server = '', '', 'tools/call'), 'earshot.mcp.server', mcp_server, 'earshot.tool.internal', if(internal, 'true', ''),
            'earshot.tool.arguments.bytes', if(args_bytes > 0, toString(args_bytes), ''), 'earshot.tool.result.bytes', if(result_bytes > 0, toString(result_bytes), ''))),
        mapFilter((k, v) -> v != '', map(
            'gen_ai.provider.name', provider, 'gen_ai.request.model', request_model, 'gen_ai.response.model', response_model,
            'gen_ai.response.id', if(kind = 'chat', response_id, ''), 'gen_ai.response.finish_reasons', finish_reasons, 'gen_ai.workflow.name', if(kind = 'workflow', agent_name, ''),
            'earshot.run.finish_reason', if(kind IN ('run', 'workflow'), ended, ''),
            'gen_ai.response.time_to_first_chunk', if(first_token_ns > 0, toString(first_token_ns / 1e9), ''),
            'gen_ai.usage.input_tokens', if(used, toString(input_tokens + cache_read_tokens + cache_write_tokens), ''),
            'gen_ai.usage.output_tokens', if(used, toString(OutputTokens), ''),
            'gen_ai.usage.cache_read.input_tokens', if(cache_read_tokens > 0 AND cached, toString(cache_read_tokens), ''),
            if(convention = '1.41', 'gen_ai.usage.cache_creation.input_tokens', 'gen_ai.usage.cache_write.input_tokens'), if(cache_write_tokens > 0 AND cached, toString(cache_write_tokens), ''),
            'gen_ai.usage.reasoning.output_tokens', if(reasoning_tokens > 0, toString(reasoning_tokens), ''),
            'earshot.usage.provenance', if(used, toString(usage_provenance), '')))),
        attributes), 'Map(LowCardinality(String), String)') AS SpanAttributes,
    duration_ns AS Duration, toLowCardinality(if(outcome = 'error', 'Error', 'Unset')) AS StatusCode, if(outcome = 'error', status_message, '') AS StatusMessage,
    arrayMap(t -> toDateTime64(t, 9), `events.time`) AS `Events.Timestamp`, `events.name` AS `Events.Name`, `events.attributes` AS `Events.Attributes`,
    `links.trace_id` AS `Links.TraceId`, `links.span_id` AS `Links.SpanId`, `links.state` AS `Links.TraceState`, `links.attributes` AS `Links.Attributes`,
    ver AS Ver, is_deleted AS IsDeleted, ingest_ts AS IngestTs,
    toLowCardinality(multiIf(kind = 'chat', 'chat', kind IN ('tool', 'delegation'), 'execute_tool', kind = 'workflow', 'invoke_workflow', 'invoke_agent')) AS Operation,
    agent_name AS AgentName, if(kind IN ('tool', 'delegation'), tool_name, '') AS ToolName, session_id AS SessionId, kind AS Kind, format AS Format,
    if(response_model != '', response_model, request_model) AS Model, outcome AS Outcome, if(first_token_ns > 0, first_token_ns / 1e9, NULL) AS FirstToken,
    if(used, output_tokens + reasoning_tokens, 0) AS OutputTokens, state AS State, async AS Async, delegate_to AS DelegateTo
FROM
(
    SELECT *, kind IN ('run', 'chat', 'workflow') AND input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens > 0 AS used,
        kind = 'chat' OR convention = '1.41' AS cached
    FROM {{name "spans"}} FINAL WHERE state != 'open' AND name != ''
)
UNION ALL
SELECT
    Timestamp, TraceId, SpanId, ParentSpanId, TraceState, SpanName, SpanKind, ServiceName, ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes, Duration, StatusCode, StatusMessage,
    `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`, Ver, IsDeleted, IngestTs,
    Operation, AgentName, ToolName, SessionId, Kind, Format, Model, Outcome, FirstToken, OutputTokens, '' AS State, false AS Async, '' AS DelegateTo
FROM {{name "agent_spans"}} FINAL
COMMENT 'Spans that have ended, in the columns of the OpenTelemetry collector: ours, and those of agent_spans. Each once, in its latest version';

CREATE VIEW IF NOT EXISTS {{name "otel_traces_trace_id_ts"}}{{onCluster}}
(
    TraceId String COMMENT 'Hex',
    Start DateTime('UTC') COMMENT 'Of the first span',
    End DateTime('UTC') COMMENT 'Start of the last span',
    Seen DateTime('UTC') COMMENT 'When a span was last stored'
)
AS SELECT lower(hex(trace_id)) AS TraceId, toDateTime(min(ts)) AS Start, toDateTime(max(ts)) AS End, toDateTime(max(ingest_ts), 'UTC') AS Seen
FROM {{name "spans"}} WHERE state != 'open' AND name != '' AND is_deleted = 0 GROUP BY TraceId
UNION ALL
SELECT TraceId, toDateTime(min(Timestamp)) AS Start, toDateTime(max(Timestamp)) AS End, toDateTime(max(IngestTs), 'UTC') AS Seen
FROM {{name "agent_spans"}} WHERE TraceId != '' AND IsDeleted = 0 GROUP BY TraceId
COMMENT 'When a trace was. The collector''s companion table';

CREATE VIEW IF NOT EXISTS {{name "tool_calls"}}{{onCluster}}
(
{{columnsOf "tool_calls" "tenant ts source format tool_name tool_type mcp_server agent_name model session_id run_id trace_id span_id tool_call_id duration_ns status error_type args_bytes result_bytes is_delegation internal waits_for waited_ns args_shape attempt result_tokens result_tokens_from ingest_ts ver is_deleted"}}
)
AS SELECT
    tenant, ts, source, format, tool_name, toLowCardinality(if(mcp_server = '', 'function', 'extension')) AS tool_type, mcp_server, agent_name, model, session_id, run_id,
    lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id, tool_call_id, duration_ns, {{template "status"}} AS status, error_type,
    args_bytes, result_bytes, if(kind = 'delegation', true, false) AS is_delegation, internal, waits_for, waited_ns, args_shape, attempt, result_tokens, result_tokens_from, ingest_ts, ver, is_deleted
FROM {{name "spans"}} AS s FINAL
WHERE kind IN ('tool', 'delegation')
COMMENT 'One row per tool call, delegations among them';

CREATE VIEW IF NOT EXISTS {{name "delegations"}}{{onCluster}}
(
{{columnsOf "delegations" "tenant ts source format session_id run_id trace_id span_id tool_call_id tool_name agent_name delegate_to delegate_id child_run_id link_method link_confidence async duration_ns status error_type args_bytes result_bytes ingest_ts ver is_deleted"}}
)
AS SELECT
    tenant, ts, source, format, session_id, run_id, lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id, tool_call_id, tool_name, agent_name,
    delegate_to, delegate_id, child_run_id, link_method, link_confidence, async, if(s.worked_ns > 0, s.worked_ns, s.duration_ns) AS duration_ns, {{template "status"}} AS status, error_type,
    args_bytes, result_bytes, ingest_ts, ver, is_deleted
FROM {{name "spans"}} AS s FINAL
WHERE kind = 'delegation'
COMMENT 'One row per delegation of work to another agent';

CREATE VIEW IF NOT EXISTS {{name "open_spans"}}{{onCluster}}
(
{{columnsOf "open_spans" "tenant ts last_seen alive_at age_ms silent_ms source format kind name session_id run_id trace_id span_id parent_span_id agent_name tool_name tool_call_id delegate_to waits_for ingest_ts ver is_deleted"}}
)
AS SELECT
    tenant, ts, last_seen, alive_at, dateDiff('millisecond', ts, now64(9, 'UTC')) AS age_ms, dateDiff('millisecond', last_seen, now64(9, 'UTC')) AS silent_ms,
    source, format, kind, name, session_id, run_id, lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id,
    if(empty(s.parent_span_id), '', lower(hex(s.parent_span_id))) AS parent_span_id, agent_name, tool_name, tool_call_id, delegate_to, waits_for, ingest_ts, ver, is_deleted
FROM {{name "spans"}} AS s FINAL
WHERE state = 'open' AND name != ''
COMMENT 'Spans that are open now';

-- Work that is open, and what is wrong with it.

CREATE VIEW IF NOT EXISTS {{name "v_open_spans"}}{{onCluster}}
(
{{columnsOf "open_spans" "tenant source format ts last_seen"}},
    age_ms Int64 COMMENT 'Milliseconds since it began, independent of the sender''s clock',
    silent_ms Int64 COMMENT 'Milliseconds since its last sign of life',
{{columnsOf "open_spans" "kind name session_id run_id agent_name tool_name delegate_to tool_call_id trace_id span_id parent_span_id waits_for"}},
    leaf UInt8 COMMENT 'It has no open span below it: count these',
    state String COMMENT 'running, silent, waiting (for a person) or stuck (it has another verdict than healthy); for a span that is not a leaf the first of these that a leaf of its trace has',
    verdict String COMMENT 'healthy, or why nothing comes of it: see the table verdicts',
    evidence String COMMENT 'The reason of the verdict in a sentence, as it was when the verdict was made; empty for healthy',
    judged_ms Int64 COMMENT 'Milliseconds since the verdict was made; 0 for healthy'
)
AS WITH
    (SELECT argMax(after_ms, ver) FROM {{name "thresholds"}} WHERE name = 'silent') AS silent_after
SELECT
    tenant, source, format, ts, last_seen, age_ms, silent_ms, kind, name, session_id, run_id, agent_name, tool_name, delegate_to,
    tool_call_id, trace_id, span_id, parent_span_id, waits_for, leaf,
    ['running', 'silent', 'waiting', 'stuck'][if(leaf, own, greatest(1, minIf(own, leaf) OVER (PARTITION BY tenant, trace_id)))] AS state,
    verdict, evidence, judged_ms
FROM
(
    SELECT
        tenant, source, format, ts, last_seen, kind, name, session_id, run_id, agent_name, tool_name, delegate_to, tool_call_id, trace_id, span_id, parent_span_id, waits_for,
        greatest(0, dateDiff('millisecond', alive_at, now64(9, 'UTC'))) AS silent_ms,
        silent_ms + greatest(0, dateDiff('millisecond', ts, last_seen)) AS age_ms,
        toString(span_id) GLOBAL NOT IN (SELECT parent_span_id FROM {{name "open_spans"}} FINAL) AS leaf,
        if(v.found = '', 'healthy', v.found) AS verdict, v.why AS evidence,
        if(v.found = '', 0, greatest(0, dateDiff('millisecond', v.at, now64(3, 'UTC')))) AS judged_ms,
        multiIf(waits_for != '' OR startsWith(verdict, 'waiting_') OR parent_span_id GLOBAL IN (SELECT toString(span_id) FROM {{name "open_spans"}} FINAL WHERE waits_for != ''), 3,
            verdict != 'healthy', 4, silent_ms >= silent_after, 2, 1) AS own
    FROM (SELECT * FROM {{name "open_spans"}} FINAL) AS s
    GLOBAL LEFT JOIN
    (
        SELECT toString(span_id) AS judged, toString(argMax(verdict, ver)) AS found, argMax(evidence, ver) AS why, argMax(made_at, ver) AS at
        FROM {{name "verdicts"}} FINAL WHERE resolved_at = 0 GROUP BY judged
    ) AS v ON toString(s.span_id) = v.judged
)
COMMENT 'Spans that are open now, for how long, and the verdict on each';

CREATE VIEW IF NOT EXISTS {{name "v_verdicts"}}{{onCluster}}
(
{{columnsOf "verdicts" "tenant source format since made_at"}},
    resolved Nullable(DateTime64(3, 'UTC')) COMMENT 'When it was resolved; null while it holds',
{{columnsOf "verdicts" "resolution"}},
    holds UInt8 COMMENT 'It is not resolved, and the work is still open',
{{columnsOf "verdicts" "verdict evidence kind agent_name tool_name path words session_id run_id trace_id span_id cause_span_id"}}
)
AS SELECT
    tenant, source, format, since, made_at, if(resolved_at = 0, NULL, resolved_at) AS resolved, resolution,
    resolved_at = 0 AND toString(span_id) GLOBAL IN (SELECT toString(span_id) FROM {{name "open_spans"}} FINAL) AS holds,
    verdict, evidence, kind, agent_name, tool_name, path, words, session_id, run_id, trace_id, span_id, cause_span_id
FROM {{name "verdicts"}} FINAL
COMMENT 'Verdicts on work, those that hold and those that are resolved';

CREATE VIEW IF NOT EXISTS {{name "v_findings"}}{{onCluster}}
(
{{columnsOf "findings" "tenant source format ts kind tool_name agent_name count session_id run_id trace_id span_id"}}
)
AS SELECT tenant, source, format, ts, kind, tool_name, agent_name, count, session_id, run_id, trace_id, span_id
FROM {{name "findings"}} FINAL
COMMENT 'Anomalies of runs: loops, error storms, fan-outs, silences';

-- Counts by slots of time: of the hours that are computed from the tables, and of the others from the rows.

CREATE VIEW IF NOT EXISTS {{name "messages_slots"}}{{onCluster}}
(
{{columnsOf "messages_rollup" "tenant ts source format agent_name kind model messages failed hidden content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens sessions"}}
)
AS {{slots "messages_rollup"}}
COMMENT 'As v_messages_5m, with conversations that can be merged: uniqMerge(sessions)';

CREATE VIEW IF NOT EXISTS {{name "v_messages_5m"}}{{onCluster}}
(
{{columnsOf "messages_rollup" "tenant ts source format agent_name kind model messages failed hidden content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    sessions UInt64 COMMENT 'Conversations, about. Of a view do not add them up; of the table take uniqMerge(sessions)'
)
AS {{rollup "messages_rollup" 300 "source format agent_name kind model messages failed hidden content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}}
COMMENT 'Messages by slots of five minutes. Add up what you do not group by';

CREATE VIEW IF NOT EXISTS {{name "v_messages_1h"}}{{onCluster}}
(
{{columnsOf "messages_rollup" "tenant ts source format agent_name kind model messages failed hidden content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    sessions UInt64 COMMENT 'Conversations, about. Of a view do not add them up; of the table take uniqMerge(sessions)'
)
AS {{rollup "messages_rollup" 3600 "source format agent_name kind model messages failed hidden content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}}
COMMENT 'Messages by hours. Add up what you do not group by';

CREATE VIEW IF NOT EXISTS {{name "tool_calls_slots"}}{{onCluster}}
(
{{columnsOf "tool_calls_rollup" "tenant ts source format tool_name mcp_server agent_name model is_delegation internal calls errors cancelled retries over_1s over_10s over_1m duration_ns waited_ns args_bytes result_bytes only_waited longest_ns largest_result active_ns sessions"}}
)
AS {{slots "tool_calls_rollup"}}
COMMENT 'As v_tool_calls_5m, with the time of each call, and conversations that can be merged: uniqMerge(sessions)';

CREATE VIEW IF NOT EXISTS {{name "v_tool_calls_5m"}}{{onCluster}}
(
{{columnsOf "tool_calls_rollup" "tenant ts source format tool_name mcp_server agent_name model is_delegation internal calls errors cancelled retries over_1s over_10s over_1m duration_ns waited_ns args_bytes result_bytes longest_ns"}},
    sessions UInt64 COMMENT 'Conversations, about. Of a view do not add them up; of the table take uniqMerge(sessions)'
)
AS {{rollup "tool_calls_rollup" 300 "source format tool_name mcp_server agent_name model is_delegation internal calls errors cancelled retries over_1s over_10s over_1m duration_ns waited_ns args_bytes result_bytes longest_ns"}}
COMMENT 'Tool calls that have ended, by slots of five minutes. Add up what you do not group by';

CREATE VIEW IF NOT EXISTS {{name "v_tool_calls_1h"}}{{onCluster}}
(
{{columnsOf "tool_calls_rollup" "tenant ts source format tool_name mcp_server agent_name model is_delegation internal calls errors cancelled retries over_1s over_10s over_1m duration_ns waited_ns args_bytes result_bytes longest_ns"}},
    sessions UInt64 COMMENT 'Conversations, about. Of a view do not add them up; of the table take uniqMerge(sessions)'
)
AS {{rollup "tool_calls_rollup" 3600 "source format tool_name mcp_server agent_name model is_delegation internal calls errors cancelled retries over_1s over_10s over_1m duration_ns waited_ns args_bytes result_bytes longest_ns"}}
COMMENT 'Tool calls that have ended, by hours. Add up what you do not group by';

CREATE VIEW IF NOT EXISTS {{name "pauses_slots"}}{{onCluster}}
(
{{columnsOf "pauses_rollup" "tenant ts source format agent_name model messages longest_us pauses sessions"}}
)
AS {{slots "pauses_rollup"}}
COMMENT 'Pauses before messages of models, by slots of five minutes. Add up what you do not group by';

CREATE VIEW IF NOT EXISTS {{name "pauses_hours"}}{{onCluster}}
(
{{columnsOf "pauses_rollup" "tenant ts source format agent_name model messages longest_us longest"}}
)
AS {{hours "pauses_rollup"}}
COMMENT 'The longest pauses before messages of models, by hours';

-- Tokens, and their cost.

CREATE VIEW IF NOT EXISTS {{name "v_usage"}}{{onCluster}}
(
{{columnsOf "messages" "tenant source format"}},
    ts DateTime64(9, 'UTC') COMMENT 'Time of the message that has the counts',
{{columnsOf "messages" "session_id run_id trace_id agent_name provider model"}},
{{columnsOf "usage_facts" "tier"}},
{{columnsOf "messages" "input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
{{columnsOf "usage_facts" "cache_write_1h_tokens"}},
    tokens UInt64 COMMENT 'All classes together',
    has_price UInt8 COMMENT 'The cost is known: it is stated, or model_prices knows the model and the tier',
    cost_from LowCardinality(String) COMMENT 'stated: by the protocol, of this very response; list: at the prices of model_prices; empty: it is not known',
    cost_usd Nullable(Float64) COMMENT 'US dollars; null where the cost is not known',
    cost_picodollars Nullable(UInt128) COMMENT 'cost_usd as an integer, of which a sum is exact: 10^12 are a US dollar'
)
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
    FROM ({{facts "usage_facts"}})
) AS m
ASOF LEFT JOIN
(
    SELECT model, valid_from, input_usd_per_m * 1e6 AS input, output_usd_per_m * 1e6 AS output, cache_read_usd_per_m * 1e6 AS cache_read, cache_write_usd_per_m * 1e6 AS cache_write,
        cache_write_1h_usd_per_m * 1e6 AS cache_write_1h, tiers, long_over, long_input, long_output
    FROM {{name "model_prices"}} FINAL
) AS p ON m.price_model = p.model AND m.at >= p.valid_from
COMMENT 'Tokens and their cost: every message that has counts, with the cost that its protocol states, or priced by model_prices. The cost is null where neither is known, so a sum is of what is known';

CREATE VIEW IF NOT EXISTS {{name "v_usage_5m"}}{{onCluster}}
(
{{columnsOf "usage_rollup" "tenant ts source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens tier prompt_over stated cache_write_1h_tokens stated_picodollars"}},
    sessions UInt64 COMMENT 'Conversations, about. Of a view do not add them up; of the table take uniqMerge(sessions)'
)
AS {{rollup "usage_rollup" 300 "source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens tier prompt_over stated cache_write_1h_tokens stated_picodollars"}}
COMMENT 'Tokens of turns by slots of five minutes. Add up what you do not group by';

CREATE VIEW IF NOT EXISTS {{name "v_usage_1h"}}{{onCluster}}
(
{{columnsOf "usage_rollup" "tenant ts source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens tier prompt_over stated cache_write_1h_tokens stated_picodollars"}},
    sessions UInt64 COMMENT 'Conversations, about. Of a view do not add them up; of the table take uniqMerge(sessions)'
)
AS {{rollup "usage_rollup" 3600 "source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens tier prompt_over stated cache_write_1h_tokens stated_picodollars"}}
COMMENT 'Tokens of turns by hours. Add up what you do not group by';

CREATE VIEW IF NOT EXISTS {{name "v_attributed_usage"}}{{onCluster}}
(
{{columnsOf "usage_rollup" "tenant ts source format agent_name model tier session_id trace_id"}},
    team LowCardinality(String) COMMENT 'Dimension team of the turn that began the work; unknown when no rule derives it, like the others',
    user LowCardinality(String) COMMENT 'Dimension user',
    host LowCardinality(String) COMMENT 'Dimension host',
    project LowCardinality(String) COMMENT 'Dimension project',
    repository LowCardinality(String) COMMENT 'Dimension repository',
    branch LowCardinality(String) COMMENT 'Dimension branch',
    ticket LowCardinality(String) COMMENT 'Dimension ticket',
    more Map(LowCardinality(String), String) COMMENT 'The other dimensions of the rules, by name',
    began_by String COMMENT 'The conversation that began the work',
{{columnsOf "usage_rollup" "responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    tokens UInt64 COMMENT 'All classes together',
    has_price Bool COMMENT 'The cost is known: it is stated, or model_prices knows the model and the tier',
    cost_from LowCardinality(String) COMMENT 'stated: by the protocol, of these very responses; list: at the prices of model_prices when the slot began; empty: it is not known',
    cost_usd Nullable(Float64) COMMENT 'US dollars; null where the cost is not known'
)
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

CREATE VIEW IF NOT EXISTS {{name "v_budget_alerts"}}{{onCluster}}
(
    tenant LowCardinality(String) COMMENT 'Owner of the data',
    budget LowCardinality(String) COMMENT 'Its name in the configuration',
    alert LowCardinality(String) COMMENT 'budget_fast, budget_slow or budget_spent',
    period DateTime('UTC') COMMENT 'Begin of the day, week or month that the budget is of',
    at DateTime64(3, 'UTC') COMMENT 'When it began',
    resolved Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended, at the latest with its period; null while it holds',
    resolution String COMMENT 'Why it ended',
    evidence String COMMENT 'What was spent, in a sentence'
)
AS SELECT tenant, budget, alert, period, at, if(b.resolved IS NULL AND ends <= now(), toDateTime64(ends, 3, 'UTC'), b.resolved) AS resolved,
    if(b.resolved IS NULL AND ends <= now(), 'its period is over', toString(b.resolution)) AS resolution, evidence
FROM (SELECT *, if(until = 0, addMonths(period, 1), until) AS ends FROM {{name "budget_alerts"}} FINAL) AS b
COMMENT 'Alerts of budgets: when each began, what it said, and when it ended';

-- Sources.

CREATE VIEW IF NOT EXISTS {{name "v_sources"}}{{onCluster}}
(
{{columnsOf "source_ledger" "tenant source"}},
    format String COMMENT 'Decoder that reads it',
    streams UInt64 COMMENT 'Files, connections and journals that it consists of',
{{columnsOf "source_ledger" "read_bytes decoded_bytes quarantined_bytes dropped_bytes"}},
    unaccounted_bytes Int64 COMMENT 'Read, and neither decoded nor quarantined nor dropped; anything but 0 is a bug',
{{columnsOf "source_ledger" "frames messages unknown problems"}},
    last_seen DateTime64(3, 'UTC') COMMENT 'When an account was last written'
)
AS SELECT
    tenant, source, min(format) AS format, count() AS streams,
    sum(read_bytes) AS read_bytes, sum(decoded_bytes) AS decoded_bytes, sum(quarantined_bytes) AS quarantined_bytes, sum(dropped_bytes) AS dropped_bytes,
    read_bytes - decoded_bytes - quarantined_bytes - dropped_bytes AS unaccounted_bytes,
    sum(frames) AS frames, sum(messages) AS messages, sum(unknown) AS unknown, sum(problems) AS problems, max(seen_at) AS last_seen
FROM {{name "source_ledger"}} FINAL
GROUP BY tenant, source
COMMENT 'The account of every source: read = decoded + quarantined + dropped, and unaccounted_bytes is 0';

CREATE VIEW IF NOT EXISTS {{name "v_streams"}}{{onCluster}}
(
{{columnsOf "streams" "tenant source format"}},
    ts DateTime64(9, 'UTC') COMMENT 'When the request was sent',
{{columnsOf "streams" "origin method status session_id run_id remote_trace_id remote_span_id"}},
    first_byte_ms Float64 COMMENT 'Milliseconds to the head of the response',
    first_event_ms Nullable(Float64) COMMENT 'Milliseconds to the first event or message; null when there was none',
    duration_ms Float64 COMMENT 'Milliseconds to the last byte',
{{columnsOf "streams" "chunks bytes events"}},
    longest_stall_ms Float64 COMMENT 'Longest pause between two chunks, in milliseconds',
    gap_p50_ms Float64 COMMENT 'Median pause between two chunks, in milliseconds',
    gap_p95_ms Float64 COMMENT '95th percentile of them',
{{columnsOf "streams" "buffered stream chat_span_id"}}
)
AS SELECT
    tenant, source, format, started_at AS ts, origin, method, status, session_id, run_id, remote_trace_id, remote_span_id,
    first_byte_ns / 1e6 AS first_byte_ms, if(events > 0, first_event_ns / 1e6, NULL) AS first_event_ms, total_ns / 1e6 AS duration_ms,
    chunks, bytes, events, longest_stall_ns / 1e6 AS longest_stall_ms, gap_p50_ns / 1e6 AS gap_p50_ms, gap_p95_ns / 1e6 AS gap_p95_ms,
    buffered, stream, chat_span_id
FROM {{name "streams"}} FINAL
COMMENT 'HTTP responses and connections that were read live, times in milliseconds';

CREATE VIEW IF NOT EXISTS {{name "v_dead_letters"}}{{onCluster}}
(
{{columnsOf "dead_letters" "tenant source format"}},
    ts DateTime64(3, 'UTC') COMMENT 'When it was quarantined',
{{columnsOf "dead_letters" "stage reason error origin origin_offset session_id payload_bytes payload_truncated resolved payload dl_id"}}
)
AS SELECT
    tenant, source, format, seen_at AS ts, stage, reason, error, origin, origin_offset, session_id, payload_bytes, payload_truncated, resolved, payload, dl_id
FROM {{name "dead_letters"}} FINAL
COMMENT 'Input, and rows, that could not be decoded or stored, with their bytes';
