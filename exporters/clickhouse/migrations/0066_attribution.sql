-- Tokens by turn, and whose turn it was: the cost of a turn, with all agents below it, belongs to
-- who began it. The facts of turns are kept as long as the counts, so that changed rules apply to all of them.
CREATE TABLE IF NOT EXISTS {{table "usage_rollup"}}{{onCluster}}
(
{{columns "usage_rollup"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
ORDER BY (tenant, step, ts, source, format, agent_name, model, session_id, trace_id){{ttl "usage_rollup"}}
SETTINGS {{settings}}
COMMENT 'Tokens of turns by slots of time, kept longer than the messages. Read it through v_usage_5m, v_usage_1h and v_attributed_usage';
{{distributed "usage_rollup" "cityHash64(tenant, ts)"}};

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

CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "turn_facts_mv"}}{{onCluster}} TO {{table "turn_facts"}}
AS SELECT tenant, session_id, lower(hex(trace_id)) AS trace_id, ts AS began, source, format, agent_name, project, branch, agent_version, host, user,
    arrayFirst((t, a) -> a['earshot.link'] = 'delegation', links.trace_id, links.attributes) AS caller_trace, toDateTime(ingest_ts, 'UTC') AS seen, ver
FROM {{table "spans"}}
WHERE kind IN ('run', 'workflow') AND empty(parent_span_id) AND is_deleted = 0;

INSERT INTO {{name "turn_facts"}} (tenant, session_id, trace_id, began, source, format, agent_name, project, branch, agent_version, host, user, caller_trace, seen, ver)
SELECT tenant, session_id, lower(hex(s.trace_id)), ts, source, format, agent_name, project, branch, agent_version, host, user,
    arrayFirst((t, a) -> a['earshot.link'] = 'delegation', links.trace_id, links.attributes), toDateTime(ingest_ts, 'UTC'), ver
FROM {{name "spans"}} AS s FINAL
WHERE kind IN ('run', 'workflow') AND empty(parent_span_id);

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

{{define "kept"}}arrayFilter(k -> match(k, '^(header|resource|user|enduser|account|organi[sz]ation|org|team|department|cost|repository|git|service|deployment|host|workspace|email|originator)([._-]|Id$|Email$|$)') AND attributes[k] != '', mapKeys(attributes)){{end -}}
CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "session_attributes_mv"}}{{onCluster}} TO {{table "session_attributes"}}
AS SELECT tenant, session_id, k AS name, argMinState(attributes[k], (ts, seq)) AS value, max(ingest_ts) AS seen
FROM {{table "messages"}}
ARRAY JOIN {{template "kept"}} AS k
WHERE is_deleted = 0 AND kind IN ('user', 'status', 'system')
GROUP BY tenant, session_id, name;

INSERT INTO {{name "session_attributes"}} (tenant, session_id, name, value, seen)
SELECT tenant, session_id, k AS name, argMinState(attributes[k], (ts, seq)), max(ingest_ts)
FROM {{name "messages"}} FINAL
ARRAY JOIN {{template "kept"}} AS k
WHERE kind IN ('user', 'status', 'system')
GROUP BY tenant, session_id, name;

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

CREATE VIEW IF NOT EXISTS {{view "v_usage_5m"}}{{onCluster}}
AS {{rollup "usage_rollup" 300}}
COMMENT 'Tokens of turns by slots of five minutes. Add up what you do not group by';

ALTER TABLE {{view "v_usage_5m"}}{{onCluster}}
{{comments "usage_rollup" "tenant ts source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens sessions"}};

CREATE VIEW IF NOT EXISTS {{view "v_usage_1h"}}{{onCluster}}
AS {{rollup "usage_rollup" 3600}}
COMMENT 'Tokens of turns by hours. Add up what you do not group by';

ALTER TABLE {{view "v_usage_1h"}}{{onCluster}}
{{comments "usage_rollup" "tenant ts source format agent_name model session_id trace_id responses input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens sessions"}};

{{define "known"}}toLowCardinality(if({{.}} = '', 'unknown', toString({{.}}))) AS {{slice . 2}}{{end -}}
CREATE VIEW IF NOT EXISTS {{view "v_attributed_usage"}}{{onCluster}}
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
            + r.cache_read_tokens * p.cache_read_usd_per_m + r.cache_write_tokens * p.cache_write_usd_per_m) / 1e6, NULL) AS cost_usd
    FROM
    (
        SELECT tenant, ts, source, format, agent_name, model, session_id, trace_id, responses, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
            sipHash128(toString(tenant), if(trace_id = '', session_id, trace_id)) AS work,
            replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(lower(trimBoth(toString(model))), '^.*/', ''), '^.*?anthropic\\.(.*?)(-v1)?(:0)?$', '\\1'),
                '[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)$', '') AS price_model
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
