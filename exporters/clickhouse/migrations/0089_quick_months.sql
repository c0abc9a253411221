{{define "status"}}toLowCardinality(multiIf(state = 'open', 'running', outcome IN ('error', 'cancelled'), outcome, 'ok')){{end -}}
-- What a month is asked for is read from few rows: the records of types that no decoder knows, whose type is in the attributes of
-- messages that lie among all others, and the longest pauses, which were computed from the messages around them.
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

CREATE VIEW IF NOT EXISTS {{view "v_unknown"}}{{onCluster}}
AS SELECT tenant, source, format, ts, session_id, message_id, type
FROM ({{laterFacts "unknown_facts"}})
COMMENT 'Messages of types that no decoder knows';

ALTER TABLE {{view "v_unknown"}}{{onCluster}}
{{comments "unknown_facts" "tenant source format ts session_id message_id type"}};

{{add "pauses_rollup" "longest"}};

CREATE VIEW IF NOT EXISTS {{view "pauses_hours"}}{{onCluster}}
AS {{hours "pauses_rollup"}}
COMMENT 'The longest pauses before messages of models, by hours';

ALTER TABLE {{view "pauses_hours"}}{{onCluster}}
{{comments "pauses_rollup" "tenant ts source format agent_name model messages longest_us longest"}};

-- Facts of spans are in partitions of a day, which is one part when it is over and read without a merge. In a partition of a month,
-- with the kind first in the key, the end of a kind in one part lies over all of it in the later parts, and so all parts were merged
-- for each question: half of its cost.
CREATE TABLE IF NOT EXISTS {{name "schema_progress"}}{{onCluster}}
(
    version   UInt32 COMMENT 'Number of the migration',
    statement UInt32 COMMENT 'Number of its statement',
    day       Date COMMENT 'The rows of that day are copied',
    at        DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Since when'
)
ENGINE = {{everywhere "at"}}
ORDER BY (version, statement, day)
COMMENT 'Which days a migration that is under way has copied';

{{/* With a mark of its own, an hour back: what a sidecar of before computes meanwhile is in the former table. */ -}}
INSERT INTO {{name "rollup_hours"}} (name, until, at)
SELECT 'all facts of spans', least(max(until), now64(3) - toIntervalHour(1)), now64(3)
FROM {{name "rollup_hours"}}
WHERE name = 'all span_facts' AND (SELECT count() FROM {{name "rollup_hours"}} WHERE name = 'all facts of spans') = 0
HAVING count() > 0;

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

{{eachDay "ts" "span_facts"}}INSERT INTO {{name "span_facts_by_day"}} SELECT * FROM {{name "span_facts"}} WHERE {{copied "" "ts" ""}};

CREATE OR REPLACE VIEW {{view "v_delegations"}}{{onCluster}}
AS SELECT
    tenant, source, format, ts, session_id, run_id, agent_name, delegate_to, tool_name, {{template "status"}} AS status, error_type,
    if(worked_ns > 0, worked_ns, duration_ns) / 1e6 AS duration_ms, async, child_run_id, link_method, link_confidence, args_bytes, result_bytes,
    tool_call_id, lower(hex(trace_id)) AS trace_id, toFixedString(lower(hex(s.span_id)), 16) AS span_id, delegate_id,
    if(outcome = 'error', status_message, '') AS error, project, branch, agent_version, host, user, model, waits_for, s.trace_id AS trace_key
FROM ({{facts "span_facts_by_day"}}) AS s
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
    COMMENT COLUMN waits_for 'person: it waited for a person, or waits while it runs; empty otherwise',
    COMMENT COLUMN trace_key 'trace_id as its 16 bytes, by which rows are grouped in half of the time';

CREATE OR REPLACE VIEW {{view "v_span_facts"}}{{onCluster}}
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
    COMMENT COLUMN user 'The account, where the protocol has one',
    COMMENT COLUMN root 'It has no parent: as parent_span_id = \'\', without the hex of each';

DROP TABLE IF EXISTS {{name "span_facts"}}{{onCluster}} SYNC;

{{drop "span_facts"}};

DROP TABLE IF EXISTS {{name "schema_progress"}}{{onCluster}}
