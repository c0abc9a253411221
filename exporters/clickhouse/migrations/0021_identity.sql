ALTER TABLE {{table "otel_traces"}}{{onCluster}}
    COMMENT COLUMN IsDeleted '1 takes back a span that was stored under another trace or with another start';

ALTER TABLE {{name "otel_traces"}}{{onCluster}}
    COMMENT COLUMN IsDeleted '1 takes back a span that was stored under another trace or with another start'
