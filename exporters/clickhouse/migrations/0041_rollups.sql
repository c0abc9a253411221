-- Counts by slots of time that are what the rows are, in place of tool_usage_1h: to that, a call
-- was added again under the name of an agent that became known later, and none was taken back.
CREATE TABLE IF NOT EXISTS {{name "rollup_hours"}}{{onCluster}}
(
    name   LowCardinality(String) COMMENT 'Table that has the rows; with all before it: no hour, for all of them',
    hour   DateTime('UTC') COMMENT 'Hour of the rows',
    until  DateTime64(3, 'UTC') COMMENT 'The rollups have every row of the hour that was stored before then',
    at     DateTime64(3, 'UTC') COMMENT 'When it was computed last',
    oldest DateTime64(3, 'UTC') COMMENT 'When the first of its rows was stored, at that time: once that one is past its retention the hour stays as it is'
)
ENGINE = {{everywhere "at"}}
ORDER BY (name, hour)
COMMENT 'Up to when each hour of the rollups is computed';

CREATE TABLE IF NOT EXISTS {{table "messages_rollup"}}{{onCluster}}
(
{{columns "messages_rollup"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
ORDER BY (tenant, step, ts, source, format, agent_name, kind, model){{ttl "messages_rollup"}}
SETTINGS {{settings}}
COMMENT 'Messages by slots of time, kept longer than they. Read it through v_messages_5m and v_messages_1h';
{{distributed "messages_rollup" "cityHash64(tenant, ts)"}};

CREATE TABLE IF NOT EXISTS {{table "tool_calls_rollup"}}{{onCluster}}
(
{{columns "tool_calls_rollup"}}
)
ENGINE = {{replacing "ver, is_deleted"}}
PARTITION BY toYYYYMM(ts)
ORDER BY (tenant, step, ts, source, format, tool_name, mcp_server, agent_name, model, is_delegation, internal){{ttl "tool_calls_rollup"}}
SETTINGS {{settings}}
COMMENT 'Tool calls by slots of time, kept longer than they. Read it through v_tool_calls_5m and v_tool_calls_1h';
{{distributed "tool_calls_rollup" "cityHash64(tenant, ts)"}};

ALTER TABLE {{table "spans"}}{{onCluster}} ADD INDEX IF NOT EXISTS idx_ingest ingest_ts TYPE minmax GRANULARITY 1;

{{while "tool_usage_1h"}}ALTER TABLE {{table "spans"}}{{onCluster}} MATERIALIZE INDEX idx_ingest SETTINGS mutations_sync = 0;

DROP VIEW IF EXISTS {{view "tool_usage_1h_mv"}}{{onCluster}} SYNC;

{{/* What the rows do not say any more. The hours that rows are left of are computed from them, unless
those that there were counted more. */ -}}
{{while "tool_usage_1h"}}INSERT INTO {{name "tool_calls_rollup"}} (tenant, step, ts, tool_name, agent_name, calls, errors, over_1s, over_10s, over_1m, sessions, seen, ver, is_deleted)
SELECT tenant, 3600, hour, tool_name, agent_name, uniqExactMerge(u.calls), uniqExactIfMerge(u.errors), uniqExactIfMerge(u.over_1s), uniqExactIfMerge(u.over_10s), uniqExactIfMerge(u.over_1m),
    uniqMergeState(u.sessions), max(u.seen), 1, 0
FROM {{name "tool_usage_1h"}} AS u
GROUP BY tenant, hour, tool_name, agent_name;

{{while "tool_usage_1h"}}INSERT INTO {{name "rollup_hours"}} (name, hour, until, at, oldest)
SELECT 'spans', hour, now64(3), now64(3), toDateTime64(1, 3, 'UTC')
FROM (SELECT hour, uniqExactMerge(u.calls) AS calls FROM {{name "tool_usage_1h"}} AS u GROUP BY hour) AS was
LEFT JOIN (SELECT toStartOfHour(ts) AS hour, count() AS calls FROM {{name "spans"}} FINAL WHERE kind IN ('tool', 'delegation') AND state != 'open' GROUP BY hour) AS is USING (hour)
WHERE is.calls < was.calls AND {{expired "spans" "hour"}};

DROP TABLE IF EXISTS {{name "tool_usage_1h"}}{{onCluster}} SYNC;

DROP TABLE IF EXISTS {{table "tool_usage_1h"}}{{onCluster}} SYNC;

{{/* Another program may have made it again meanwhile, in an earlier step. */ -}}
DROP VIEW IF EXISTS {{view "tool_usage_1h_mv"}}{{onCluster}} SYNC;

CREATE VIEW IF NOT EXISTS {{view "v_messages_5m"}}{{onCluster}}
AS {{rollup "messages_rollup" 300}}
COMMENT 'Messages by slots of five minutes. Add up what you do not group by';

ALTER TABLE {{view "v_messages_5m"}}{{onCluster}}
{{comments "messages_rollup" "tenant ts source format agent_name kind model messages failed hidden content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens sessions"}};

CREATE VIEW IF NOT EXISTS {{view "v_messages_1h"}}{{onCluster}}
AS {{rollup "messages_rollup" 3600}}
COMMENT 'Messages by hours. Add up what you do not group by';

ALTER TABLE {{view "v_messages_1h"}}{{onCluster}}
{{comments "messages_rollup" "tenant ts source format agent_name kind model messages failed hidden content_bytes input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens sessions"}};

CREATE VIEW IF NOT EXISTS {{view "v_tool_calls_5m"}}{{onCluster}}
AS {{rollup "tool_calls_rollup" 300}}
COMMENT 'Tool calls that have ended, by slots of five minutes. Add up what you do not group by';

ALTER TABLE {{view "v_tool_calls_5m"}}{{onCluster}}
{{comments "tool_calls_rollup" "tenant ts source format tool_name mcp_server agent_name model is_delegation internal calls errors cancelled retries over_1s over_10s over_1m duration_ns waited_ns args_bytes result_bytes longest_ns sessions"}};

CREATE VIEW IF NOT EXISTS {{view "v_tool_calls_1h"}}{{onCluster}}
AS {{rollup "tool_calls_rollup" 3600}}
COMMENT 'Tool calls that have ended, by hours. Add up what you do not group by';

ALTER TABLE {{view "v_tool_calls_1h"}}{{onCluster}}
{{comments "tool_calls_rollup" "tenant ts source format tool_name mcp_server agent_name model is_delegation internal calls errors cancelled retries over_1s over_10s over_1m duration_ns waited_ns args_bytes result_bytes longest_ns sessions"}};
