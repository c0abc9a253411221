-- The user of a conversation is also the account that an agent's own telemetry, or a request, names.
{{- define "account"}}coalesce(nullIf(attributes['user'], ''), nullIf(attributes['user.email'], ''), nullIf(attributes['user.id'], ''), attributes['user_id']){{end -}}
{{define "facts"}}argMinIfState(x.project, (x.ts, x.seq), toUInt8(x.project != '')) AS project, argMaxIfState(x.branch, (x.ts, x.seq), toUInt8(x.branch != '')) AS branch,
    argMaxIfState(x.title, (x.ts, x.seq), toUInt8(x.title != '')) AS title, argMaxIfState(x.agent_version, (x.ts, x.seq), toUInt8(x.agent_version != '')) AS agent_version,
    argMinIfState(x.host, (x.ts, x.seq), toUInt8(x.host != '')) AS host, argMaxIfState(x.user, (x.ts, x.seq), toUInt8(x.user != '')) AS user{{end}}
ALTER TABLE {{view "session_facts_mv"}}{{onCluster}} MODIFY QUERY SELECT tenant, session_id, min(x.ts) AS began, {{template "facts"}}, max(x.ingest_ts) AS seen
FROM
(
    SELECT tenant, session_id, ts, seq, ingest_ts, attributes['project'] AS project, attributes['branch'] AS branch, attributes['session_title'] AS title,
        attributes['agent_version'] AS agent_version, attributes['host'] AS host, {{template "account"}} AS user
    FROM {{table "messages"}}
    WHERE is_deleted = 0 AND (kind IN ('user', 'status', 'system') OR mapContains(attributes, 'project') OR mapContains(attributes, 'agent_version'))
) AS x
WHERE concat(x.project, x.branch, x.title, x.agent_version, x.host, x.user) != ''
GROUP BY tenant, session_id;

INSERT INTO {{name "session_facts"}} (tenant, session_id, began, user, seen)
SELECT tenant, session_id, min(x.ts) AS began, argMaxIfState(x.user, (x.ts, x.seq), toUInt8(1)) AS user, max(x.ingest_ts)
FROM (SELECT tenant, session_id, ts, seq, ingest_ts, {{template "account"}} AS user FROM {{name "messages"}} FINAL WHERE kind IN ('user', 'status', 'system')) AS x
WHERE x.user != ''
GROUP BY tenant, session_id;
