-- What goes on now, and whether it runs, waits or is stuck: in one place. Redefines the view v_open_spans.
CREATE OR REPLACE VIEW {{view "v_open_spans"}}{{onCluster}}
AS WITH
    (SELECT argMax(after_ms, ver) FROM {{name "thresholds"}} WHERE name = 'silent') AS silent_after,
    (SELECT argMax(after_ms, ver) FROM {{name "thresholds"}} WHERE name = 'stuck') AS stuck_after
SELECT
    tenant, source, format, ts, last_seen, age_ms, silent_ms, kind, name, session_id, run_id, agent_name, tool_name, delegate_to,
    tool_call_id, trace_id, span_id, parent_span_id, waits_for, leaf,
    ['running', 'silent', 'waiting', 'stuck'][if(leaf, own, greatest(1, minIf(own, leaf) OVER (PARTITION BY tenant, trace_id)))] AS state
FROM
(
    SELECT
        tenant, source, format, ts, last_seen, kind, name, session_id, run_id, agent_name, tool_name, delegate_to, tool_call_id, trace_id, span_id, parent_span_id, waits_for,
        greatest(0, dateDiff('millisecond', alive_at, now64(9, 'UTC'))) AS silent_ms,
        silent_ms + greatest(0, dateDiff('millisecond', ts, last_seen)) AS age_ms,
        toString(span_id) GLOBAL NOT IN (SELECT parent_span_id FROM {{name "open_spans"}} FINAL) AS leaf,
        multiIf(waits_for != '' OR parent_span_id GLOBAL IN (SELECT toString(span_id) FROM {{name "open_spans"}} FINAL WHERE waits_for != ''), 3,
            silent_ms >= stuck_after, 4, silent_ms >= silent_after, 2, 1) AS own
    FROM {{name "open_spans"}} FINAL
)
COMMENT 'What goes on now, and for how long';

ALTER TABLE {{view "v_open_spans"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN ts 'When it began',
    COMMENT COLUMN last_seen 'Time of its last event',
    COMMENT COLUMN age_ms 'Milliseconds since it began, whatever the clock of its sender says',
    COMMENT COLUMN silent_ms 'Milliseconds since its last sign of life',
    COMMENT COLUMN kind 'run, chat, tool, delegation or workflow',
    COMMENT COLUMN name 'SpanName that it will have in otel_traces',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN run_id 'One invocation of one agent',
    COMMENT COLUMN agent_name 'The agent that runs',
    COMMENT COLUMN tool_name 'Of a tool call or a delegation',
    COMMENT COLUMN delegate_to 'Of a delegation',
    COMMENT COLUMN tool_call_id 'The protocol''s id of the call',
    COMMENT COLUMN trace_id 'TraceId that it will have in otel_traces',
    COMMENT COLUMN span_id 'SpanId that it will have in otel_traces',
    COMMENT COLUMN parent_span_id 'Empty for the root',
    COMMENT COLUMN waits_for 'person: a person has to answer before it goes on; empty otherwise',
    COMMENT COLUMN leaf 'It does not wait for something below it: count these',
    COMMENT COLUMN state 'running, silent, waiting (for a person) or stuck, by the table thresholds; of what is no leaf the first of these that a leaf of its trace is'
