-- Contents that are past their retention go when their part is merged, and a part that nothing is
-- merged with stays for ever, because ttl_only_drop_parts has no merge made for a column. Without
-- it the server makes one, for each part at most once a day. A changed retention is computed
-- without writing the rows again.
ALTER TABLE {{table "messages"}}{{onCluster}}
    MODIFY SETTING ttl_only_drop_parts = 0, merge_with_ttl_timeout = 86400, materialize_ttl_recalculate_only = 1
