-- A person's decision is no failure. Redefines v_sessions: a later migration that redefines it keeps errors as it is here.
ALTER TABLE {{table "messages"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS failed Bool MATERIALIZED is_error AND attributes['error_type'] NOT IN ('denied', 'interrupted', 'cancelled') COMMENT 'It reports a failure; is_error also has what a person denied, interrupted or cancelled';

ALTER TABLE {{name "messages"}}{{onCluster}}
    ADD COLUMN IF NOT EXISTS failed Bool MATERIALIZED is_error AND attributes['error_type'] NOT IN ('denied', 'interrupted', 'cancelled') COMMENT 'It reports a failure; is_error also has what a person denied, interrupted or cancelled';

CREATE OR REPLACE VIEW {{view "v_sessions"}}{{onCluster}}
AS SELECT
    tenant, session_id, min(source) AS source, min(format) AS format,
    coalesce(minOrNullIf(ts, NOT hidden AND NOT inferred), min(ts)) AS started, coalesce(maxOrNullIf(ts, NOT hidden AND NOT inferred), max(ts)) AS last_message,
    dateDiff('millisecond', started, last_message) AS duration_ms,
    uniqExactIf(run_id, run_id != '') AS runs,
    count() AS messages,
    countIf(kind = 'user') AS user_messages,
    countIf(kind = 'tool_call') AS tool_calls,
    countIf(kind = 'delegation') AS delegations,
    countIf(failed) AS errors,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens, sum(reasoning_tokens) AS reasoning_tokens,
    arraySort(groupUniqArrayIf(agent_name, agent_name != '')) AS agents,
    arraySort(groupUniqArrayIf(model, model != '')) AS models
FROM {{name "messages"}} FINAL
GROUP BY tenant, session_id
COMMENT 'Conversations: what was said, called and spent in each';

ALTER TABLE {{view "v_sessions"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN session_id 'The conversation',
    COMMENT COLUMN source 'Name of the source in the configuration',
    COMMENT COLUMN format 'Decoder that read it',
    COMMENT COLUMN started 'Time of its first message that a reader sees and whose time the protocol gives; of its first when there is none',
    COMMENT COLUMN last_message 'Time of its last such message',
    COMMENT COLUMN duration_ms 'Milliseconds between the two',
    COMMENT COLUMN runs 'Invocations of agents',
    COMMENT COLUMN messages 'Messages of all kinds',
    COMMENT COLUMN user_messages 'Prompts, and messages that set an agent to work',
    COMMENT COLUMN tool_calls 'Calls of tools, delegations not among them',
    COMMENT COLUMN delegations 'Delegations to other agents',
    COMMENT COLUMN errors 'Messages that report a failure. What a person denied, interrupted or cancelled is none',
    COMMENT COLUMN input_tokens 'Tokens sent, neither read from nor written to a cache. The classes are exclusive: add them up',
    COMMENT COLUMN output_tokens 'Tokens answered, without reasoning',
    COMMENT COLUMN cache_read_tokens 'Tokens read from a cache',
    COMMENT COLUMN cache_write_tokens 'Tokens written to a cache',
    COMMENT COLUMN reasoning_tokens 'Tokens of reasoning',
    COMMENT COLUMN agents 'Agents that said something',
    COMMENT COLUMN models 'Models that answered'
