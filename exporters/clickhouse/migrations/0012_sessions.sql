CREATE TABLE IF NOT EXISTS {{table "sessions"}}{{onCluster}}
(
    tenant     LowCardinality(String) COMMENT 'Owner of the data',
    session_id String COMMENT 'The conversation' CODEC(ZSTD(1)),
    began      SimpleAggregateFunction(min, DateTime64(9, 'UTC')) COMMENT 'Time of its first message' CODEC(Delta(8), ZSTD(1)),
    latest     SimpleAggregateFunction(max, DateTime64(9, 'UTC')) COMMENT 'Time of its last message' CODEC(Delta(8), ZSTD(1)),
    asked      SimpleAggregateFunction(max, DateTime64(9, 'UTC')) COMMENT 'Time of its last prompt; 1970 when there is none' CODEC(Delta(8), ZSTD(1)),
    sources    SimpleAggregateFunction(groupUniqArrayArray, Array(String)) COMMENT 'Sources that it came from' CODEC(ZSTD(1)),
    formats    SimpleAggregateFunction(groupUniqArrayArray, Array(String)) COMMENT 'Decoders that read it' CODEC(ZSTD(1)),
    agents     SimpleAggregateFunction(groupUniqArrayArray, Array(String)) COMMENT 'Agents that said something; an empty name for one that has none' CODEC(ZSTD(1)),
    models     SimpleAggregateFunction(groupUniqArrayArray, Array(String)) COMMENT 'Models that answered' CODEC(ZSTD(1)),
    seen       SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'When a message was last stored; retention counts from here' CODEC(Delta(4), ZSTD(1))
)
ENGINE = {{aggregating}}
PARTITION BY toYYYYMM(began)
ORDER BY (tenant, session_id){{ttl "sessions"}}
SETTINGS {{settings}}
COMMENT 'When a conversation was and who took part, so that a search for one need not read every message. Sets and bounds: a replay changes nothing. Read it through v_session_times';
{{distributed "sessions" "cityHash64(session_id)"}};

CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "sessions_mv"}}{{onCluster}} TO {{table "sessions"}}
AS SELECT tenant, session_id, min(ts) AS began, max(ts) AS latest, maxIf(ts, kind = 'user') AS asked,
    groupUniqArray(toString(source)) AS sources, groupUniqArray(toString(format)) AS formats,
    groupUniqArrayIf(toString(agent_name), kind != 'user') AS agents, groupUniqArrayIf(toString(model), model != '') AS models,
    max(ingest_ts) AS seen
FROM {{table "messages"}}
WHERE is_deleted = 0
GROUP BY tenant, session_id;

INSERT INTO {{name "sessions"}} (tenant, session_id, began, latest, asked, sources, formats, agents, models, seen)
SELECT tenant, session_id, min(ts), max(ts), maxIf(ts, kind = 'user'),
    groupUniqArray(toString(source)), groupUniqArray(toString(format)),
    groupUniqArrayIf(toString(agent_name), kind != 'user'), groupUniqArrayIf(toString(model), model != ''), max(ingest_ts)
FROM {{name "messages"}}
WHERE is_deleted = 0
GROUP BY tenant, session_id, toYYYYMM(ts);

CREATE VIEW IF NOT EXISTS {{view "v_session_times"}}{{onCluster}}
AS SELECT
    tenant, session_id, min(s.began) AS began, max(s.latest) AS latest, max(s.asked) AS asked,
    groupUniqArrayArray(s.sources) AS sources, groupUniqArrayArray(s.formats) AS formats,
    groupUniqArrayArray(s.agents) AS agents, groupUniqArrayArray(s.models) AS models
FROM {{name "sessions"}} AS s
GROUP BY tenant, session_id
COMMENT 'When conversations were and who took part: quick, however many messages they have';

ALTER TABLE {{table "messages"}}{{onCluster}} ADD INDEX IF NOT EXISTS idx_ingest ingest_ts TYPE minmax GRANULARITY 1;

ALTER TABLE {{table "messages"}}{{onCluster}} MATERIALIZE INDEX idx_ingest;
