{{- /* The prices of the model of a row: a list of (valid_from, input, output, cache read, cache write), in US dollars for a million tokens. */ -}}
{{define "prices"}}(SELECT CAST((groupArray(model), groupArray(list)), 'Map(String, Array(Tuple(DateTime(\'UTC\'), Float64, Float64, Float64, Float64)))')
        FROM (SELECT model, arraySort(groupArray((valid_from, input_usd_per_m, output_usd_per_m, cache_read_usd_per_m, cache_write_usd_per_m))) AS list FROM {{name "model_prices"}} FINAL GROUP BY model)) AS prices{{end -}}
{{define "price"}}arrayLast(p -> p.1 <= s.ts, prices[replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(lower(trimBoth(toString({{.}}))), '^.*/', ''), '^.*?anthropic\\.(.*?)(-v1)?(:0)?$', '\\1'),
        '[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)$', '')]){{end -}}
{{define "status"}}toLowCardinality(multiIf(state = 'open', 'running', outcome IN ('error', 'cancelled'), outcome, 'ok')){{end -}}
{{define "facts"}}argMinIfState(x.project, (x.ts, x.seq), toUInt8(x.project != '')) AS project, argMaxIfState(x.branch, (x.ts, x.seq), toUInt8(x.branch != '')) AS branch,
    argMaxIfState(x.title, (x.ts, x.seq), toUInt8(x.title != '')) AS title, argMaxIfState(x.agent_version, (x.ts, x.seq), toUInt8(x.agent_version != '')) AS agent_version,
    argMinIfState(x.host, (x.ts, x.seq), toUInt8(x.host != '')) AS host, argMaxIfState(x.user, (x.ts, x.seq), toUInt8(x.user != '')) AS user{{end -}}
{{add "spans" "project"}};

{{add "spans" "branch"}};

{{add "spans" "agent_version"}};

{{add "spans" "host"}};

{{add "spans" "user"}};

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

CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "session_facts_mv"}}{{onCluster}} TO {{table "session_facts"}}
AS SELECT tenant, session_id, min(x.ts) AS began, {{template "facts"}}, max(x.ingest_ts) AS seen
FROM
(
    SELECT tenant, session_id, ts, seq, ingest_ts, attributes['project'] AS project, attributes['branch'] AS branch, attributes['session_title'] AS title,
        attributes['agent_version'] AS agent_version, attributes['host'] AS host, attributes['user'] AS user
    FROM {{table "messages"}}
    WHERE is_deleted = 0 AND (kind IN ('user', 'status', 'system') OR mapContains(attributes, 'project') OR mapContains(attributes, 'agent_version'))
) AS x
WHERE concat(x.project, x.branch, x.title, x.agent_version, x.host, x.user) != ''
GROUP BY tenant, session_id;

CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "session_hosts_mv"}}{{onCluster}} TO {{table "session_facts"}}
AS SELECT tenant, session_id, min(x.ts) AS began, argMinIfState(toString(x.host), (x.ts, toUInt64(0)), toUInt8(1)) AS host, max(x.ingest_ts) AS seen
FROM {{table "spans"}} AS x
WHERE kind IN ('run', 'workflow') AND x.host != '' AND is_deleted = 0
GROUP BY tenant, session_id;

-- Rows of before have the facts under the protocols' own names.
INSERT INTO {{name "session_facts"}} (tenant, session_id, began, project, branch, title, agent_version, host, user, seen)
SELECT tenant, session_id, min(x.ts) AS began, {{template "facts"}}, max(x.ingest_ts) AS seen
FROM
(
    SELECT tenant, session_id, ts, seq, ingest_ts,
        coalesce(nullIf(attributes['project'], ''), nullIf(attributes['gitRoot'], ''), nullIf(attributes['cwd'], ''), if(attributes['type'] = 'session', attributes['directory'], '')) AS project,
        coalesce(nullIf(attributes['branch'], ''), nullIf(attributes['gitBranch'], ''), attributes['git_branch']) AS branch,
        multiIf(attributes['session_title'] != '', attributes['session_title'], attributes['type'] IN ('summary', 'ai-title', 'custom-title'), substringUTF8(content, 1, 200),
            attributes['type'] = 'session', attributes['title'], '') AS title,
        coalesce(nullIf(attributes['agent_version'], ''), nullIf(attributes['cli_version'], ''), nullIf(attributes['claude_code_version'], ''), nullIf(attributes['copilotVersion'], ''), attributes['version']) AS agent_version,
        attributes['host'] AS host, attributes['user'] AS user
    FROM {{name "messages"}} FINAL
    WHERE kind IN ('user', 'status')
) AS x
WHERE concat(x.project, x.branch, x.title, x.agent_version, x.host, x.user) != ''
GROUP BY tenant, session_id;

CREATE OR REPLACE VIEW {{view "v_session_facts"}}{{onCluster}}
AS SELECT tenant, session_id, argMinIfMerge(f.project) AS project, argMaxIfMerge(f.branch) AS branch, argMaxIfMerge(f.title) AS title,
    argMaxIfMerge(f.agent_version) AS agent_version, argMinIfMerge(f.host) AS host, argMaxIfMerge(f.user) AS user
FROM {{name "session_facts"}} AS f
GROUP BY tenant, session_id
COMMENT 'Where conversations take place: quick, however many messages they have. A conversation without any of these has no row';

ALTER TABLE {{view "v_session_facts"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN project 'Directory of the project, as its first run states it',
    COMMENT COLUMN branch 'Branch of its version control, as its last run states it',
    COMMENT COLUMN title 'Title that the agent or the user gave it; empty without one',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in, in its last run',
    COMMENT COLUMN host 'The machine of the agent where the protocol names it, else that of the sidecar',
    COMMENT COLUMN user 'The account, where the protocol has one';

CREATE OR REPLACE VIEW {{view "v_sessions"}}{{onCluster}}
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

ALTER TABLE {{view "v_sessions"}}{{onCluster}}
{{comments "messages" "session_id source input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"}},
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN started 'Time of its first message that is not hidden and whose time is the protocol''s; of its first when there is none',
    COMMENT COLUMN last_message 'Time of its last such message',
    COMMENT COLUMN duration_ms 'Milliseconds between the two',
    COMMENT COLUMN runs 'Invocations of agents',
    COMMENT COLUMN messages 'Messages of all kinds',
    COMMENT COLUMN user_messages 'Prompts, and messages that start a run',
    COMMENT COLUMN tool_calls 'Calls of tools, without delegations',
    COMMENT COLUMN delegations 'Delegations to other agents',
    COMMENT COLUMN errors 'Messages that report a failure. A call that a person denied, interrupted or cancelled is not one',
    COMMENT COLUMN agents 'Agents that have messages',
    COMMENT COLUMN models 'Models that answered',
    COMMENT COLUMN project 'Directory of the project, as its first run states it',
    COMMENT COLUMN branch 'Branch of its version control, as its last run states it',
    COMMENT COLUMN title 'Title that the agent or the user gave it; empty without one',
    COMMENT COLUMN agent_version 'Version of the program that the agent runs in, in its last run',
    COMMENT COLUMN host 'The machine of the agent where the protocol names it, else that of the sidecar',
    COMMENT COLUMN user 'The account, where the protocol has one';

CREATE OR REPLACE VIEW {{view "v_tool_calls"}}{{onCluster}}
AS WITH {{template "prices"}}
SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, tool_name, toLowCardinality(if(mcp_server = '', 'function', 'extension')) AS tool_type, mcp_server,
    {{template "status"}} AS status, error_type, duration_ns / 1e6 AS duration_ms, args_bytes, result_bytes, if(kind = 'delegation', true, false) AS is_delegation, internal, tool_call_id,
    lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id,
    model, if(result_tokens_from = '', NULL, s.result_tokens) AS result_tokens, result_tokens_from, args_shape, attempt,
    waits_for, waited_ns / 1e6 AS waited_ms,
    if(outcome = 'error', status_message, '') AS error, project, branch, agent_version, host, user,
    if(result_tokens_from = '' OR {{template "price" "s.model"}}.1 = toDateTime(0), NULL, s.result_tokens * {{template "price" "s.model"}}.2 / 1e6) AS cost_usd
FROM {{name "spans"}} AS s FINAL
WHERE kind IN ('tool', 'delegation')
COMMENT 'Tool calls, each once, in its latest version; durations in milliseconds';

ALTER TABLE {{view "v_tool_calls"}}{{onCluster}}
{{comments "tool_calls" "tenant source format ts session_id run_id agent_name tool_name tool_type mcp_server status error_type args_bytes result_bytes is_delegation internal tool_call_id trace_id span_id model args_shape attempt"}},
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
    COMMENT COLUMN cost_usd 'US dollars for which the model reads the result the first time: result_tokens at the price of input. Each later request of the run reads them again. Null when either is unknown';

CREATE OR REPLACE VIEW {{view "v_delegations"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, delegate_to, tool_name, {{template "status"}} AS status, error_type,
    if(worked_ns > 0, worked_ns, duration_ns) / 1e6 AS duration_ms, async, child_run_id, link_method, link_confidence, args_bytes, result_bytes,
    tool_call_id, lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id, delegate_id,
    if(outcome = 'error', status_message, '') AS error, project, branch, agent_version, host, user
FROM {{name "spans"}} AS s FINAL
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
    COMMENT COLUMN user 'The account, where the protocol has one';

CREATE OR REPLACE VIEW {{view "v_spans"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id,
    lower(hex(trace_id)) AS trace_id, lower(hex(s.span_id)) AS span_id, if(empty(s.parent_span_id), '', lower(hex(s.parent_span_id))) AS parent_span_id,
    kind, name, agent_name, if(kind IN ('tool', 'delegation'), tool_name, '') AS tool_name, delegate_to,
    if(response_model != '', response_model, request_model) AS model, duration_ns / 1e6 AS duration_ms,
    if(outcome = '', 'unset', outcome) AS status, multiIf(outcome NOT IN ('error', 'cancelled'), '', outcome = 'error' AND error_type = '', '_OTHER', error_type) AS error_type,
    if(outcome = 'error', status_message, '') AS error, if(first_token_ns > 0, first_token_ns / 1e6, NULL) AS first_token_ms,
    reasoning_tokens, output_tokens, project, branch, agent_version, host, user
FROM {{name "spans"}} AS s FINAL
WHERE state != 'open' AND name != ''
COMMENT 'Spans of Earshot that have ended, not those that an agent sent itself. Tokens of a run are those of its chats once more';

ALTER TABLE {{view "v_spans"}}{{onCluster}}
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
    sumOrNullIf((s.input_tokens * price.2 + (s.output_tokens + s.reasoning_tokens) * price.3 + s.cache_read_tokens * price.4 + s.cache_write_tokens * price.5) / 1e6, kind = 'chat' AND price.1 != toDateTime(0)) AS cost_usd,
    argMinIf(s.project, s.ts, top) AS project, argMinIf(s.branch, s.ts, top) AS branch, argMinIf(s.agent_version, s.ts, top) AS agent_version,
    argMinIf(s.host, s.ts, top) AS host, argMinIf(s.user, s.ts, top) AS user
FROM
(
    SELECT *, kind IN ('run', 'workflow') AS top, {{template "price" "if(s.response_model != '', s.response_model, s.request_model)"}} AS price
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
