// Package clickhouse stores batches in ClickHouse and reads them back.
//
// Export makes a job of the rows that a batch has for each table (jobs.go), cuts it into
// inserts (split.go) and sends their rows block by block (insert.go, package native). The
// columns of tables are described in core/msg/schema, from which the writers of rows
// (rows_gen.go) and the columns in the migrations follow; rows.go has the values that are
// more than a field. The schema is applied by numbered migrations. The first two are the
// baseline, all tables and all views (migrations/0092_tables.sql, 0093_views.sql): every database is
// made of them, on one server or a cluster, and one of an older version is refused.
//
// # Once
//
// A row is stored once, however often it is offered, by two means.
//
// A retry of a batch carries the same insert_deduplication_token, and the server
// drops it. So an insert whose answer was lost is run again without a thought. The token names the rows
// of the insert, not only its batch: the same token with other rows would drop
// those.
//
// A replay brings the same rows in other batches. Their sort keys are identities
// of the protocol (ids, and times that never change), so ReplacingMergeTree
// keeps the row with the highest ver, or none when that one is deleted. It does
// so when it merges; until then both rows are there, and a reader uses FINAL, or
// reads the views v_*. A value that is not identity, such as a name that becomes known
// later, is never part of a key.
//
// # Rollups
//
// messages_rollup, tool_calls_rollup and pauses_rollup count by slots of time (rollup.go), and
// usage_facts, span_facts_by_day and unknown_facts are copies of few rows (facts.go). Nothing is added to a
// slot: the hours that have new rows are computed again as a whole (hourly.go, roller.go). An hour has new rows when one
// has an ingest_ts that is not before the time up to which the hour is computed; that time is five
// minutes, or four times as long as an insert may take, before the computation, since a row is
// visible some time after its ingest_ts. So the server's clock must not go back by more. The
// views v_messages_5m, v_tool_calls_1h, v_usage, v_delegations, ... read the rows of hours that are not
// computed, so they are exact at any time.
//
// Where a migration adds a column to a rollup, all hours are computed again in the background, under a mark of their own. Views go by
// the mark of before, which follows, so that they do not read the rows of a month meanwhile; where a slot has none in it, a
// question reads the rows.
//
// # FINAL
//
// A row that has to be merged while it is read costs 0.2 µs, as much as ten of its columns. Parts whose keys do not overlap are
// not merged, nor is a partition of one part. The partition follows from the sort key in all tables of which a later version replaces a row, so readers merge
// each partition alone (do_not_merge_across_partitions_select_final). A conversation of two months has a row in each of sessions, session_facts and run_setups: these are
// read through views that group them. In a key that begins with a kind the granule in which a kind ends
// lies over that kind in all later parts: such a table is in partitions of a day, which are merged into one part when they are over
// (settled.go).
//
// # Few inserts
//
// Batches of a backlog are gathered (gather.go): encoded into a file, and sent as one insert a
// table. 34 inserts of 12 MB cost the engine twice as much as 9 of 60 MB, because their parts are
// merged at once. If the insert fails, the encoded rows are exported batch by batch, and cut to the
// row that is refused. They belong to the schema that wrote them: a migration that drops a table
// must not meet them, so it runs when the spool is empty, or keeps a view that takes inserts.
//
// # The cost of an insert
//
// Measured on the embedded engine with messages of 1.2 kB of varied text in
// batches of 10,000, processor time of the server for 60,000 rows:
//
//	columns and indexes as one would write them          4.5 s
//	full-text index built by merges only                 2.1 s
//	and first parts compact (below 128 MiB)              1.3 s
//	and content in ZSTD(1) instead of ZSTD(3)            1.0 s
//
// The index of a small part is thrown away by the first merge; a wide part of ten
// thousand rows is two hundred files, which took an eighth of the cost of a backlog's inserts: no part is wide before it was
// merged. The index of a large part is a quarter of that cost (500 MB of
// traffic: 1.5 of 5.6 s), and the merge of a day that is over throws it away as well: settled.go builds it then, also where a day is one part.
// Until then a search reads the contents. Batches of 20,000 take a third less than
// batches of 10,000. On the client's side see package native: a fifth of the
// processor time and a fiftieth of the allocations of the driver's row appends.
//
// The parts and statements of a small insert decide its cost: a materialized view is planned again in each (2 to 6 ms) and
// writes a part of a dozen files, if it has rows. Of 160 messages the three views that there were took two thirds of 72 ms. So no table has a
// view: what is derived of conversations is derived behind inserts, every five seconds at most while they follow each other
// (conversations.go), and the attribution collects its own facts (collect.go). These change nothing that could be measured: settings of
// the insert (threads, analyzer, compiled expressions), of the parts (marks of substreams, sizes of strings, sparse columns, uncompressed
// marks), and a view that selects few rows for others behind a table of the engine Null, because those behind it are planned all the same.
// BenchmarkLiveFlush measures it.
//
// # Traps
//
//   - clickhouse-go's InsertFormat takes bytes in any format, but compresses them
//     only with gzip, br and deflate. LZ4 and ZSTD frames are made here, with
//     decompress=1.
//   - net/http may read a request's body after the request has failed; see body.
//   - A connection into a database that is not there yet is refused, so an
//     exporter connects without one and names it in every statement.
//   - The driver wants https:// and secure=true both; the DSN here need not.
//   - ttl_only_drop_parts has no merge made for the TTL of a column: contents would stay in a part
//     that nothing is merged with.
//   - min_age_to_force_merge_seconds merges all partitions that it finds at once, and on a server only
//     when 25 threads have nothing to do. keeper.go merges one at a time.
//   - An insert of more than min_insert_block_size_bytes is cut into a large and a small part.
//   - TTLs count from when a row was stored. Counted from when it happened, the
//     first merge after a backfill would drop the backfill.
//   - One code (252) is for a table with too many parts, which passes, and for an
//     insert with too many partitions, which does not.
//
// # Limits
//
// Servers from MinServer on are supported; older ones are refused. A cluster's
// statements are checked for syntax and have not been run on one.
package clickhouse
