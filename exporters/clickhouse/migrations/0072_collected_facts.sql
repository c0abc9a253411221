-- The facts of turns and the attributes of conversations are collected by the attribution, which alone reads
-- them: as views they cost each insert a plan and a part, however few rows it had.
{{/* The rows of the last hour are collected once more, in case an insert met no view. */ -}}
INSERT INTO {{name "rollup_hours"}} (name, until, at)
SELECT 'all facts', now64(3) - toIntervalHour(1), now64(3)
FROM (SELECT 1 FROM {{name "messages"}} LIMIT 1 UNION ALL SELECT 1 FROM {{name "spans"}} LIMIT 1)
LIMIT 1;

DROP VIEW IF EXISTS {{view "turn_facts_mv"}}{{onCluster}} SYNC;

DROP VIEW IF EXISTS {{view "session_attributes_mv"}}{{onCluster}} SYNC;
