-- How old the evidence of a verdict is: it has the figures of its moment, and stands beside an age that grows.
CREATE OR REPLACE VIEW {{view "v_open_spans"}}{{onCluster}}
AS WITH
    (SELECT argMax(after_ms, ver) FROM {{name "thresholds"}} WHERE name = 'silent') AS silent_after
SELECT
    tenant, source, format, ts, last_seen, age_ms, silent_ms, kind, name, session_id, run_id, agent_name, tool_name, delegate_to,
    tool_call_id, trace_id, span_id, parent_span_id, waits_for, leaf,
    ['running', 'silent', 'waiting', 'stuck'][if(leaf, own, greatest(1, minIf(own, leaf) OVER (PARTITION BY tenant, trace_id)))] AS state,
    verdict, evidence, judged_ms
FROM
(
    SELECT
        tenant, source, format, ts, last_seen, kind, name, session_id, run_id, agent_name, tool_name, delegate_to, tool_call_id, trace_id, span_id, parent_span_id, waits_for,
        greatest(0, dateDiff('millisecond', alive_at, now64(9, 'UTC'))) AS silent_ms,
        silent_ms + greatest(0, dateDiff('millisecond', ts, last_seen)) AS age_ms,
        toString(span_id) GLOBAL NOT IN (SELECT parent_span_id FROM {{name "open_spans"}} FINAL) AS leaf,
        if(v.found = '', 'healthy', v.found) AS verdict, v.why AS evidence,
        if(v.found = '', 0, greatest(0, dateDiff('millisecond', v.at, now64(3, 'UTC')))) AS judged_ms,
        multiIf(waits_for != '' OR startsWith(verdict, 'waiting_') OR parent_span_id GLOBAL IN (SELECT toString(span_id) FROM {{name "open_spans"}} FINAL WHERE waits_for != ''), 3,
            verdict != 'healthy', 4, silent_ms >= silent_after, 2, 1) AS own
    FROM (SELECT * FROM {{name "open_spans"}} FINAL) AS s
    GLOBAL LEFT JOIN
    (
        SELECT toString(span_id) AS judged, toString(argMax(verdict, ver)) AS found, argMax(evidence, ver) AS why, argMax(made_at, ver) AS at
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
    COMMENT COLUMN evidence 'The reason of the verdict in a sentence, as it was when the verdict was made; empty for healthy',
    COMMENT COLUMN judged_ms 'Milliseconds since the verdict was made; 0 for healthy';
