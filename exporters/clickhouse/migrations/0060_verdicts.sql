-- Open work is stuck when there is a verdict on it, and no longer when it has been silent for a
-- fixed time: a build of thirteen minutes is not stuck, and a model that has not answered for four is.
CREATE TABLE IF NOT EXISTS {{table "verdicts"}}{{onCluster}}
(
{{columns "verdicts"}}
)
ENGINE = {{replacing "ver"}}
PARTITION BY toYYYYMM(since)
PRIMARY KEY (tenant, toStartOfHour(since))
ORDER BY (tenant, toStartOfHour(since), span_id, verdict, since){{ttl "verdicts"}}
SETTINGS {{settings}}
COMMENT 'Why nothing came of a run, a call or a delegation, and until when. Work without a row is healthy. Read it with FINAL, or through v_verdicts';
{{distributed "verdicts" "cityHash64(span_id)"}};

CREATE OR REPLACE VIEW {{view "v_open_spans"}}{{onCluster}}
AS WITH
    (SELECT argMax(after_ms, ver) FROM {{name "thresholds"}} WHERE name = 'silent') AS silent_after
SELECT
    tenant, source, format, ts, last_seen, age_ms, silent_ms, kind, name, session_id, run_id, agent_name, tool_name, delegate_to,
    tool_call_id, trace_id, span_id, parent_span_id, waits_for, leaf,
    ['running', 'silent', 'waiting', 'stuck'][if(leaf, own, greatest(1, minIf(own, leaf) OVER (PARTITION BY tenant, trace_id)))] AS state,
    verdict, evidence
FROM
(
    SELECT
        tenant, source, format, ts, last_seen, kind, name, session_id, run_id, agent_name, tool_name, delegate_to, tool_call_id, trace_id, span_id, parent_span_id, waits_for,
        greatest(0, dateDiff('millisecond', alive_at, now64(9, 'UTC'))) AS silent_ms,
        silent_ms + greatest(0, dateDiff('millisecond', ts, last_seen)) AS age_ms,
        toString(span_id) GLOBAL NOT IN (SELECT parent_span_id FROM {{name "open_spans"}} FINAL) AS leaf,
        if(v.found = '', 'healthy', v.found) AS verdict, v.why AS evidence,
        multiIf(waits_for != '' OR startsWith(verdict, 'waiting_') OR parent_span_id GLOBAL IN (SELECT toString(span_id) FROM {{name "open_spans"}} FINAL WHERE waits_for != ''), 3,
            verdict != 'healthy', 4, silent_ms >= silent_after, 2, 1) AS own
    FROM (SELECT * FROM {{name "open_spans"}} FINAL) AS s
    GLOBAL LEFT JOIN
    (
        SELECT toString(span_id) AS judged, toString(argMax(verdict, ver)) AS found, argMax(evidence, ver) AS why
        FROM {{name "verdicts"}} FINAL WHERE resolved_at = 0 GROUP BY judged
    ) AS v ON toString(s.span_id) = v.judged
)
COMMENT 'Spans that are open now, for how long, and the verdict on each';

ALTER TABLE {{view "v_open_spans"}}{{onCluster}}
{{comments "open_spans" "tenant source format ts last_seen kind name session_id run_id agent_name tool_name delegate_to tool_call_id trace_id span_id parent_span_id waits_for"}},
    COMMENT COLUMN age_ms 'Milliseconds since it began, independent of the sender''s clock',
    COMMENT COLUMN silent_ms 'Milliseconds since its last sign of life',
    COMMENT COLUMN leaf 'It has no open span below it: count these',
    COMMENT COLUMN state 'running, silent, waiting (for a person) or stuck (it has another verdict than healthy); for a span that is not a leaf the first of these that a leaf of its trace has',
    COMMENT COLUMN verdict 'healthy, or why nothing comes of it: see the table verdicts',
    COMMENT COLUMN evidence 'The reason of the verdict in a sentence; empty for healthy';

CREATE VIEW IF NOT EXISTS {{view "v_verdicts"}}{{onCluster}}
AS SELECT
    tenant, source, format, since, made_at, if(resolved_at = 0, NULL, resolved_at) AS resolved, resolution,
    resolved_at = 0 AND toString(span_id) GLOBAL IN (SELECT toString(span_id) FROM {{name "open_spans"}} FINAL) AS holds,
    verdict, evidence, kind, agent_name, tool_name, path, words, session_id, run_id, trace_id, span_id, cause_span_id
FROM {{name "verdicts"}} FINAL
COMMENT 'Verdicts on work, those that hold and those that are resolved';

ALTER TABLE {{view "v_verdicts"}}{{onCluster}}
{{comments "verdicts" "tenant source format since made_at resolution verdict evidence kind agent_name tool_name path words session_id run_id trace_id span_id cause_span_id"}},
    COMMENT COLUMN resolved 'When it was resolved; null while it holds',
    COMMENT COLUMN holds 'It is not resolved, and the work is still open';
