-- Contents that are past their retention go when their part is merged, and a part that nothing is
-- merged with stays for ever, because ttl_only_drop_parts has no merge made for a column. Without
-- it the server makes one, for each part at most once a day. A changed retention is computed
-- without writing the rows again.
--
-- A row and a later version of it have the same sort key. Sharded by a column that a later version
-- may change, as the session of a response is, they would be on two shards, and both stay.
ALTER TABLE {{table "messages"}}{{onCluster}}
    MODIFY SETTING ttl_only_drop_parts = 0, merge_with_ttl_timeout = 86400, materialize_ttl_recalculate_only = 1;

{{reshard "streams" "cityHash64(source, stream)"}};

{{reshard "findings" "cityHash64(span_id)"}}
