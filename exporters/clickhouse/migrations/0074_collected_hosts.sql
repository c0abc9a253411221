-- The machines of conversations are collected with the facts of turns: as a view they cost each insert of spans a plan
-- and a part.
{{/* With a mark of its own: a sidecar of before, which moves the former mark, does not collect them. */ -}}
INSERT INTO {{name "rollup_hours"}} (name, until, at)
SELECT 'all facts and hosts', least(max(until), now64(3) - toIntervalHour(1)), now64(3)
FROM {{name "rollup_hours"}}
WHERE name = 'all facts'
HAVING count() > 0;

DROP VIEW IF EXISTS {{view "session_hosts_mv"}}{{onCluster}} SYNC;
