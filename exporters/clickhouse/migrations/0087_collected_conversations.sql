-- The times, participants and facts of conversations, and the setups of runs, are derived every few seconds from the
-- messages that are new: as views of messages they were two thirds of the cost of an insert of live traffic.
{{/* With a mark of its own: a sidecar of before, which moves the former mark, does not derive them. */ -}}
INSERT INTO {{name "rollup_hours"}} (name, until, at)
SELECT 'all facts and conversations', least(max(until), now64(3) - toIntervalHour(1)), now64(3)
FROM {{name "rollup_hours"}}
WHERE name = 'all facts and hosts'
HAVING count() > 0;

DROP VIEW IF EXISTS {{view "sessions_mv"}}{{onCluster}} SYNC;

DROP VIEW IF EXISTS {{view "session_facts_mv"}}{{onCluster}} SYNC;

DROP VIEW IF EXISTS {{view "run_setups_mv"}}{{onCluster}} SYNC
