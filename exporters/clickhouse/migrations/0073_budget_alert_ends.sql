-- An alert ends with its period, also if no sidecar checks the budget any more.
ALTER TABLE {{table "budget_alerts"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS until DateTime('UTC') COMMENT 'End of the day, week or month that the budget is of; 1970 in a row of an older version' AFTER period;
{{reshard "budget_alerts" "cityHash64(budget)"}};

CREATE OR REPLACE VIEW {{view "v_budget_alerts"}}{{onCluster}}
AS SELECT tenant, budget, alert, period, at, if(b.resolved IS NULL AND ends <= now(), toDateTime64(ends, 3, 'UTC'), b.resolved) AS resolved,
    if(b.resolved IS NULL AND ends <= now(), 'its period is over', toString(b.resolution)) AS resolution, evidence
FROM (SELECT *, if(until = 0, addMonths(period, 1), until) AS ends FROM {{name "budget_alerts"}} FINAL) AS b
COMMENT 'Alerts of budgets: when each began, what it said, and when it ended';

ALTER TABLE {{view "v_budget_alerts"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN budget 'Its name in the configuration',
    COMMENT COLUMN alert 'budget_fast, budget_slow or budget_spent',
    COMMENT COLUMN period 'Begin of the day, week or month that the budget is of',
    COMMENT COLUMN at 'When it began',
    COMMENT COLUMN resolved 'When it ended, at the latest with its period; null while it holds',
    COMMENT COLUMN resolution 'Why it ended',
    COMMENT COLUMN evidence 'What was spent, in a sentence';
