-- Times that nobody wrote down are no times of a conversation, and silence counts from when somebody was at work.
-- Redefines the views sessions_mv, v_session_times and v_sessions.
ALTER TABLE {{table "messages"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS inferred Bool MATERIALIZED attributes['time_precision'] = 'inferred' COMMENT 'ts is not the protocol''s: the time of the message before, or of the file';

ALTER TABLE {{name "messages"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS inferred Bool MATERIALIZED attributes['time_precision'] = 'inferred' COMMENT 'ts is not the protocol''s: the time of the message before, or of the file';

ALTER TABLE {{table "sessions"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS first_at SimpleAggregateFunction(min, Nullable(DateTime64(9, 'UTC'))) COMMENT 'Time of its first message that a reader sees and whose time the protocol gives; null when there is none' CODEC(ZSTD(1)) AFTER latest,
    ADD COLUMN IF NOT EXISTS last_at SimpleAggregateFunction(max, Nullable(DateTime64(9, 'UTC'))) COMMENT 'Time of the last such message' CODEC(ZSTD(1)) AFTER first_at;

ALTER TABLE {{name "sessions"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS first_at SimpleAggregateFunction(min, Nullable(DateTime64(9, 'UTC'))) COMMENT 'Time of its first message that a reader sees and whose time the protocol gives; null when there is none' AFTER latest,
    ADD COLUMN IF NOT EXISTS last_at SimpleAggregateFunction(max, Nullable(DateTime64(9, 'UTC'))) COMMENT 'Time of the last such message' AFTER first_at;

ALTER TABLE {{view "sessions_mv"}}{{onCluster}} MODIFY QUERY
SELECT tenant, session_id, min(ts) AS began, max(ts) AS latest, maxIf(ts, kind = 'user') AS asked,
    minOrNullIf(ts, NOT hidden AND attributes['time_precision'] != 'inferred') AS first_at,
    maxOrNullIf(ts, NOT hidden AND attributes['time_precision'] != 'inferred') AS last_at,
    groupUniqArray(toString(source)) AS sources, groupUniqArray(toString(format)) AS formats,
    groupUniqArrayIf(toString(agent_name), kind != 'user') AS agents, groupUniqArrayIf(toString(model), model != '') AS models,
    max(ingest_ts) AS seen
FROM {{table "messages"}}
WHERE is_deleted = 0
GROUP BY tenant, session_id;

INSERT INTO {{name "sessions"}} (tenant, session_id, began, latest, asked, first_at, last_at, sources, formats, agents, models, seen)
SELECT tenant, session_id, min(ts), max(ts), maxIf(ts, kind = 'user'),
    minOrNullIf(ts, NOT hidden AND attributes['time_precision'] != 'inferred'), maxOrNullIf(ts, NOT hidden AND attributes['time_precision'] != 'inferred'),
    groupUniqArray(toString(source)), groupUniqArray(toString(format)),
    groupUniqArrayIf(toString(agent_name), kind != 'user'), groupUniqArrayIf(toString(model), model != ''), max(ingest_ts)
FROM {{name "messages"}}
WHERE is_deleted = 0
GROUP BY tenant, session_id, toYYYYMM(ts);

CREATE OR REPLACE VIEW {{view "v_session_times"}}{{onCluster}}
AS SELECT
    tenant, session_id, coalesce(min(s.first_at), min(s.began)) AS began, coalesce(max(s.last_at), max(s.latest)) AS latest, max(s.asked) AS asked,
    groupUniqArrayArray(s.sources) AS sources, groupUniqArrayArray(s.formats) AS formats,
    groupUniqArrayArray(s.agents) AS agents, groupUniqArrayArray(s.models) AS models
FROM {{name "sessions"}} AS s
GROUP BY tenant, session_id
COMMENT 'When conversations were and who took part: quick, however many messages they have';

ALTER TABLE {{view "v_session_times"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN began 'Time of its first message that a reader sees and whose time the protocol gives; of its first when there is none',
    COMMENT COLUMN latest 'Time of its last such message',
    COMMENT COLUMN asked 'Time of its last prompt; 1970 when there is none',
    COMMENT COLUMN sources 'Sources that it came from',
    COMMENT COLUMN formats 'Decoders that read it',
    COMMENT COLUMN agents 'Agents that said something; an empty name for one that has none',
    COMMENT COLUMN models 'Models that answered';

CREATE OR REPLACE VIEW {{view "v_sessions"}}{{onCluster}}
AS SELECT
    tenant, session_id, min(source) AS source, min(format) AS format,
    coalesce(minOrNullIf(ts, NOT hidden AND NOT inferred), min(ts)) AS started, coalesce(maxOrNullIf(ts, NOT hidden AND NOT inferred), max(ts)) AS last_message,
    dateDiff('millisecond', started, last_message) AS duration_ms,
    uniqExactIf(run_id, run_id != '') AS runs,
    count() AS messages,
    countIf(kind = 'user') AS user_messages,
    countIf(kind = 'tool_call') AS tool_calls,
    countIf(kind = 'delegation') AS delegations,
    countIf(is_error) AS errors,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens, sum(reasoning_tokens) AS reasoning_tokens,
    arraySort(groupUniqArrayIf(agent_name, agent_name != '')) AS agents,
    arraySort(groupUniqArrayIf(model, model != '')) AS models
FROM {{name "messages"}} FINAL
GROUP BY tenant, session_id
COMMENT 'Conversations: what was said, called and spent in each';

ALTER TABLE {{view "v_sessions"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN started 'Time of its first message that a reader sees and whose time the protocol gives; of its first when there is none',
    COMMENT COLUMN last_message 'Time of its last such message',
    COMMENT COLUMN duration_ms 'Milliseconds between the two',
    COMMENT COLUMN runs 'Invocations of agents',
    COMMENT COLUMN messages 'Messages of all kinds',
    COMMENT COLUMN user_messages 'Prompts, and messages that set an agent to work',
    COMMENT COLUMN tool_calls 'Calls of tools, delegations not among them',
    COMMENT COLUMN delegations 'Delegations to other agents',
    COMMENT COLUMN errors 'Messages that report a failure',
    COMMENT COLUMN input_tokens 'Tokens sent, neither read from nor written to a cache. The classes are exclusive: add them up',
    COMMENT COLUMN output_tokens 'Tokens answered, without reasoning',
    COMMENT COLUMN cache_read_tokens 'Tokens read from a cache',
    COMMENT COLUMN cache_write_tokens 'Tokens written to a cache',
    COMMENT COLUMN reasoning_tokens 'Tokens of reasoning',
    COMMENT COLUMN agents 'Agents that said something',
    COMMENT COLUMN models 'Models that answered';

ALTER TABLE {{table "open_spans"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS alive_at DateTime64(9, 'UTC') DEFAULT last_seen COMMENT 'When whoever works on it gave the last sign of life, by Earshot''s clock where it was heard live' CODEC(Delta(8), ZSTD(1)) AFTER last_seen;

ALTER TABLE {{name "open_spans"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS alive_at DateTime64(9, 'UTC') DEFAULT last_seen COMMENT 'When whoever works on it gave the last sign of life, by Earshot''s clock where it was heard live' AFTER last_seen;

ALTER TABLE {{table "source_ledger"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS since DateTime64(3, 'UTC') COMMENT 'When the sidecar that drew the account began to listen' CODEC(Delta(8), ZSTD(1)) AFTER seen_at;

ALTER TABLE {{name "source_ledger"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS since DateTime64(3, 'UTC') COMMENT 'When the sidecar that drew the account began to listen' AFTER seen_at;

CREATE TABLE IF NOT EXISTS {{name "thresholds"}}{{onCluster}}
(
    name     String COMMENT 'silent or stuck',
    after_ms UInt64 COMMENT 'Milliseconds of silence from which on work is called so',
    ver      UInt64 DEFAULT toUnixTimestamp64Milli(now64(3)) COMMENT 'Of rows with the same name the highest stands'
)
ENGINE = {{everywhere "ver"}}
ORDER BY name
COMMENT 'From when on v_open_spans calls work silent or stuck. Earshot writes what is configured in the section now';

INSERT INTO {{name "thresholds"}} (name, after_ms, ver)
SELECT * FROM values('name String, after_ms UInt64, ver UInt64', ('silent', 60000, 0), ('stuck', 600000, 0))
