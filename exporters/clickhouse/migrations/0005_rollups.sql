CREATE TABLE IF NOT EXISTS {{table "tool_usage_1h"}}{{onCluster}}
(
    tenant     LowCardinality(String) COMMENT 'Owner of the data',
    hour       DateTime('UTC') COMMENT 'Hour in which the calls began' CODEC(Delta(4), ZSTD(1)),
    tool_name  LowCardinality(String) COMMENT 'gen_ai.tool.name',
    agent_name LowCardinality(String) COMMENT 'The agent that called',
    calls      AggregateFunction(uniqExact, FixedString(16)) COMMENT 'uniqExactMerge(calls)',
    errors     AggregateFunction(uniqExactIf, FixedString(16), UInt8) COMMENT 'uniqExactIfMerge(errors)',
    over_1s    AggregateFunction(uniqExactIf, FixedString(16), UInt8) COMMENT 'Calls of a second or more: uniqExactIfMerge(over_1s)',
    over_10s   AggregateFunction(uniqExactIf, FixedString(16), UInt8) COMMENT 'Calls of ten seconds or more: uniqExactIfMerge(over_10s)',
    over_1m    AggregateFunction(uniqExactIf, FixedString(16), UInt8) COMMENT 'Calls of a minute or more: uniqExactIfMerge(over_1m)',
    sessions   AggregateFunction(uniq, String) COMMENT 'About: uniqMerge(sessions)',
    seen       SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'When a call was last stored; retention counts from here'
)
ENGINE = {{aggregating}}
PARTITION BY toYYYYMM(hour)
ORDER BY (tenant, tool_name, agent_name, hour){{ttl "tool_usage_1h"}}
SETTINGS {{settings}}
COMMENT 'Tool calls by hour, kept longer than the calls. Counts are of distinct span ids, so that a replay changes nothing; exact percentiles come from tool_calls';
{{distributed "tool_usage_1h" "cityHash64(tool_name)"}};

CREATE MATERIALIZED VIEW IF NOT EXISTS {{view "tool_usage_1h_mv"}}{{onCluster}} TO {{table "tool_usage_1h"}}
AS SELECT tenant, toStartOfHour(ts) AS hour, tool_name, agent_name,
    uniqExactState(span_id) AS calls,
    uniqExactIfState(span_id, toUInt8(status = 'error')) AS errors,
    uniqExactIfState(span_id, toUInt8(duration_ns >= 1000000000)) AS over_1s,
    uniqExactIfState(span_id, toUInt8(duration_ns >= 10000000000)) AS over_10s,
    uniqExactIfState(span_id, toUInt8(duration_ns >= 60000000000)) AS over_1m,
    uniqState(session_id) AS sessions,
    max(ingest_ts) AS seen
FROM {{table "tool_calls"}}
WHERE status != 'running' AND is_deleted = 0
GROUP BY tenant, hour, tool_name, agent_name;
