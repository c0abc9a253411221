CREATE TABLE IF NOT EXISTS {{table "dead_letters"}}{{onCluster}}
(
    tenant            LowCardinality(String) COMMENT 'Owner of the data',
    source            LowCardinality(String) COMMENT 'Name of the source in the configuration',
    dl_id             FixedString(32) COMMENT 'Hash of the place, in hex: the same bytes are one letter however often they are read',
    format            LowCardinality(String) COMMENT 'Decoder that refused it',
    session_id        String COMMENT 'Where it is known' CODEC(ZSTD(1)),
    stage             LowCardinality(String) COMMENT 'read, decode or export',
    reason            LowCardinality(String) COMMENT 'invalid_json, wrong_type, too_long, refused_by_store, ...',
    error             String COMMENT 'For a person' CODEC(ZSTD(3)),
    origin            String COMMENT 'File path or URL' CODEC(ZSTD(1)),
    origin_offset     Int64 COMMENT 'Where in origin the bytes begin' CODEC(ZSTD(1)),
    payload           String COMMENT 'The bytes, cut at the configured limit' CODEC(ZSTD(6)),
    payload_bytes     UInt64 COMMENT 'How many there were' CODEC(T64, ZSTD(1)),
    payload_truncated Bool ALIAS length(payload) < payload_bytes COMMENT 'payload was cut',
    seen_at           DateTime64(3, 'UTC') COMMENT 'When it was set aside; a replay moves it. Retention counts from here' CODEC(Delta(8), ZSTD(1)),
    resolved          Bool COMMENT 'A later try succeeded',
    ver               UInt64 COMMENT 'Of rows with the same key the highest stands' CODEC(Delta(8), ZSTD(1))
)
ENGINE = {{replacing "ver"}}
ORDER BY (tenant, source, dl_id){{ttl "dead_letters"}}
SETTINGS {{settings}}
COMMENT 'Input, and rows, that could go no further. Read it with FINAL';
{{distributed "dead_letters" "cityHash64(dl_id)"}};

CREATE TABLE IF NOT EXISTS {{table "source_ledger"}}{{onCluster}}
(
    tenant            LowCardinality(String) COMMENT 'Owner of the data',
    source            LowCardinality(String) COMMENT 'Name of the source in the configuration',
    stream            String COMMENT 'The stream''s identity in its source' CODEC(ZSTD(1)),
    format            LowCardinality(String) COMMENT 'Decoder that reads it',
    origin            String COMMENT 'File path or URL' CODEC(ZSTD(1)),
    read_bytes        Int64 COMMENT 'Bytes read so far: read = decoded + quarantined + dropped' CODEC(ZSTD(1)),
    decoded_bytes     Int64 COMMENT 'Bytes that became messages' CODEC(ZSTD(1)),
    quarantined_bytes Int64 COMMENT 'Bytes that became dead letters' CODEC(ZSTD(1)),
    dropped_bytes     Int64 COMMENT 'Bytes dropped for a stated reason' CODEC(ZSTD(1)),
    unaccounted_bytes Int64 ALIAS read_bytes - decoded_bytes - quarantined_bytes - dropped_bytes COMMENT 'Anything but 0 is a bug in Earshot',
    reason            LowCardinality(String) COMMENT 'Of the last drop',
    frames            Int64 COMMENT 'Frames so far' CODEC(ZSTD(1)),
    messages          Int64 COMMENT 'Messages so far' CODEC(ZSTD(1)),
    unknown           Int64 COMMENT 'Messages of kind unknown so far' CODEC(ZSTD(1)),
    problems          Int64 COMMENT 'Frames or parts that could not be decoded so far' CODEC(ZSTD(1)),
    seen_at           DateTime64(3, 'UTC') COMMENT 'When the account was drawn' CODEC(Delta(8), ZSTD(1)),
    ver               UInt64 COMMENT 'Of rows with the same key the highest stands' CODEC(Delta(8), ZSTD(1))
)
ENGINE = {{replacing "ver"}}
ORDER BY (tenant, source, stream)
SETTINGS {{settings}}
COMMENT 'The account of every stream. Read it with FINAL';
{{distributed "source_ledger" "cityHash64(stream)"}}
