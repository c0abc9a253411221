CREATE OR REPLACE VIEW {{view "v_usage"}}{{onCluster}}
AS SELECT
    m.tenant AS tenant, m.source AS source, m.format AS format, m.ts AS ts, m.session_id AS session_id, m.run_id AS run_id, m.trace_id AS trace_id,
    m.agent_name AS agent_name, m.provider AS provider, m.model AS model,
    m.input_tokens AS input_tokens, m.output_tokens AS output_tokens, m.cache_read_tokens AS cache_read_tokens,
    m.cache_write_tokens AS cache_write_tokens, m.reasoning_tokens AS reasoning_tokens,
    m.input_tokens + m.output_tokens + m.cache_read_tokens + m.cache_write_tokens + m.reasoning_tokens AS tokens,
    p.model != '' AS has_price,
    (m.input_tokens * p.input_usd_per_m + (m.output_tokens + m.reasoning_tokens) * p.output_usd_per_m
        + m.cache_read_tokens * p.cache_read_usd_per_m + m.cache_write_tokens * p.cache_write_usd_per_m) / 1e6 AS cost_usd
FROM
(
    SELECT *,
        replaceRegexpOne(replaceRegexpOne(replaceRegexpOne(lower(trimBoth(model)), '^.*/', ''), '^.*?anthropic\\.(.*?)(-v1)?(:0)?$', '\\1'),
            '[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)$', '') AS price_model,
        toDateTime(ts, 'UTC') AS at
    FROM {{name "messages"}} FINAL
    WHERE input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens > 0
) AS m
ASOF LEFT JOIN (SELECT * FROM {{name "model_prices"}} FINAL) AS p ON m.price_model = p.model AND m.at >= p.valid_from
COMMENT 'What was spent: every message that tells tokens, priced by model_prices. cost_usd is 0 where has_price is not true';

ALTER TABLE {{table "delegations"}}{{onCluster}} COMMENT COLUMN duration_ns 'Nanoseconds from call to result, or to the end of the run that it caused when nobody waited for that; 0 while running';

ALTER TABLE {{name "model_prices"}}{{onCluster}} COMMENT COLUMN ver 'Of rows with the same key the highest stands: 1 is the configured prices, which earshot writes; one that you insert stands before them'
