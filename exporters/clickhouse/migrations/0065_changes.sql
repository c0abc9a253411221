CREATE TABLE IF NOT EXISTS {{table "changes"}}{{onCluster}}
(
    tenant       LowCardinality(String) COMMENT 'Owner of the data',
    found        DateTime('UTC') COMMENT 'The look that found it' CODEC(Delta(4), ZSTD(1)),
    at           DateTime('UTC') COMMENT 'When the first run after the change began' CODEC(Delta(4), ZSTD(1)),
    kind         LowCardinality(String) COMMENT 'agent, tool or model: what has changed',
    agent_name   LowCardinality(String) COMMENT 'The agent; its format in brackets where it has no name',
    name         LowCardinality(String) COMMENT 'The tool, or the model that answers; empty for an agent',
    model        LowCardinality(String) COMMENT 'Of the runs; empty for all models together',
    metric       LowCardinality(String) COMMENT 'duration, errors, tokens or calls',
    test         LowCardinality(String) COMMENT 'release or drift: which look found it',
    since        Array(String) COMMENT 'Components of the version that are new from then on; empty without one' CODEC(ZSTD(1)),
    runs_before  UInt32 COMMENT 'Runs that were compared',
    runs_after   UInt32 COMMENT 'The same, from then on',
    p50_before   Float64 COMMENT 'Median: milliseconds, a share, tokens or calls',
    p50_after    Float64 COMMENT 'The same, from then on',
    p95_before   Float64 COMMENT '95th percentile',
    p95_after    Float64 COMMENT 'The same, from then on',
    mean_before  Float64 COMMENT 'Mean: what changes of a share',
    mean_after   Float64 COMMENT 'The same, from then on',
    ratio        Float64 COMMENT 'A typical value after, divided by one before; 0 for errors',
    ratio_low    Float64 COMMENT 'Of its 95 % interval; 0 where there is none',
    ratio_high   Float64 COMMENT 'The same, the other end',
    summary      String COMMENT 'The change in a sentence, with the parts of the critical path that the difference is in' CODEC(ZSTD(1)),
    trace_before String COMMENT 'TraceId of the run that is the median before',
    trace_after  String COMMENT 'The same, from then on',
    ingest_ts    DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When it was stored' CODEC(Delta(8), ZSTD(1)),
    ver          UInt64 COMMENT 'When it was computed, in microseconds: the highest is valid' CODEC(Delta(8), ZSTD(1))
)
ENGINE = {{replacing "ver"}}
PARTITION BY toYYYYMM(found)
ORDER BY (tenant, found, kind, agent_name, name, model, metric){{ttl "changes"}}
SETTINGS {{settings}}
COMMENT 'When agents, tools and models changed, as the sidecar finds it each hour. Read it through v_changes';
{{distributed "changes" "cityHash64(agent_name)"}};

CREATE OR REPLACE VIEW {{view "v_changes"}}{{onCluster}}
AS SELECT tenant, found, at, kind, agent_name, name, model, metric, test, since, runs_before, runs_after, p50_before, p50_after, p95_before, p95_after, mean_before, mean_after,
    ratio, ratio_low, ratio_high, if(if(ratio > 0, ratio > 1, mean_after > mean_before), true, false) AS more, summary, trace_before, trace_after
FROM {{name "changes"}} FINAL
COMMENT 'When agents, tools and models changed, with which version, and where the difference is';

ALTER TABLE {{view "v_changes"}}{{onCluster}}
    COMMENT COLUMN tenant 'Owner of the data',
    COMMENT COLUMN found 'The look that found it',
    COMMENT COLUMN at 'When the first run after the change began',
    COMMENT COLUMN kind 'agent, tool or model: what has changed',
    COMMENT COLUMN agent_name 'The agent; its format in brackets where it has no name',
    COMMENT COLUMN name 'The tool, or the model that answers; empty for an agent',
    COMMENT COLUMN model 'Of the runs; empty for all models together',
    COMMENT COLUMN metric 'duration, errors, tokens or calls',
    COMMENT COLUMN test 'release or drift: which look found it',
    COMMENT COLUMN since 'Components of the version that are new from then on; empty without one',
    COMMENT COLUMN runs_before 'Runs that were compared',
    COMMENT COLUMN runs_after 'The same, from then on',
    COMMENT COLUMN p50_before 'Median: milliseconds, a share, tokens or calls',
    COMMENT COLUMN p50_after 'The same, from then on',
    COMMENT COLUMN p95_before '95th percentile',
    COMMENT COLUMN p95_after 'The same, from then on',
    COMMENT COLUMN mean_before 'Mean: what changes of a share',
    COMMENT COLUMN mean_after 'The same, from then on',
    COMMENT COLUMN ratio 'A typical value after, divided by one before; 0 for errors',
    COMMENT COLUMN ratio_low 'Of its 95 % interval; 0 where there is none',
    COMMENT COLUMN ratio_high 'The same, the other end',
    COMMENT COLUMN more 'It is longer, or more, than before',
    COMMENT COLUMN summary 'The change in a sentence, with the parts of the critical path that the difference is in',
    COMMENT COLUMN trace_before 'TraceId of the run that is the median before',
    COMMENT COLUMN trace_after 'The same, from then on';
