-- The alerts of budgets, which were sent and kept nowhere.
CREATE TABLE IF NOT EXISTS {{table "budget_alerts"}}{{onCluster}}
(
    tenant     LowCardinality(String) COMMENT 'Owner of the data',
    budget     LowCardinality(String) COMMENT 'Its name in the configuration',
    alert      LowCardinality(String) COMMENT 'budget_fast, budget_slow or budget_spent',
    period     DateTime('UTC') COMMENT 'Begin of the day, week or month that the budget is of' CODEC(Delta(4), ZSTD(1)),
    at         DateTime64(3, 'UTC') COMMENT 'When it began' CODEC(Delta(8), ZSTD(1)),
    resolved   Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended; null while it holds',
    resolution LowCardinality(String) COMMENT 'Why it ended',
    evidence   String COMMENT 'What was spent, in a sentence' CODEC(ZSTD(1)),
    ingest_ts  DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When it was stored' CODEC(Delta(8), ZSTD(1)),
    ver        UInt64 COMMENT 'The highest is valid' CODEC(Delta(8), ZSTD(1))
)
ENGINE = {{replacing "ver"}}
PARTITION BY toYYYYMM(period)
ORDER BY (tenant, budget, alert, period, at){{ttl "budget_alerts"}}
SETTINGS {{settings}}
COMMENT 'Alerts of budgets: when each began and ended. Read it through v_budget_alerts';
{{distributed "budget_alerts" "cityHash64(budget)"}};

CREATE OR REPLACE VIEW {{view "v_budget_alerts"}}{{onCluster}}
AS SELECT tenant, budget, alert, period, at, resolved, resolution, evidence
FROM {{name "budget_alerts"}} FINAL
COMMENT 'Alerts of budgets: when each began, what it said, and when it ended';

ALTER TABLE {{view "v_budget_alerts"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN budget 'Its name in the configuration',
    COMMENT COLUMN alert 'budget_fast, budget_slow or budget_spent',
    COMMENT COLUMN period 'Begin of the day, week or month that the budget is of',
    COMMENT COLUMN at 'When it began',
    COMMENT COLUMN resolved 'When it ended; null while it holds',
    COMMENT COLUMN resolution 'Why it ended',
    COMMENT COLUMN evidence 'What was spent, in a sentence';
