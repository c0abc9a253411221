// Package engine binds libchdb, ClickHouse as a library, without cgo.
//
// An Engine is one data folder, opened once per process. A Session is one
// connection of it and runs one statement at a time; statements of different
// sessions run in parallel. Opening a session costs some 0.3 ms, so callers take
// a fresh one for each request and throw it away: settings, USE and temporary
// tables of one client cannot reach another.
//
// Ownership: bytes from Rows.Next and Result.Bytes belong to the library and are
// valid until the next call on the same value. Every Session, Rows, Result and
// Inserter is closed by the caller; Close is safe to call twice.
//
// Cancellation: the context of Engine.Session covers everything done in
// the session. When it ends, the running statement is killed and its call
// returns the context's cause.
//
// # Traps of the library
//
// Measured with 26.7.3-stable.1 (it calls itself 26.7.2.1); the tests named after
// these facts fail when a newer library behaves otherwise.
//
//   - No call can be cancelled before it has returned its handle, and a whole
//     aggregation runs before that. So cancellation is a KILL QUERY from another
//     connection, and only ever ASYNC: KILL ... SYNC hangs, and the process then
//     does not end on SIGTERM.
//   - The query id is the library's own. Sessions are found in system.processes by
//     the setting query_cache_tag, which does nothing else here (the query result
//     cache has size 0).
//   - Settings of chdb_connect apply to that connection. A name it does not
//     know is dropped in silence, and a bad value fails the connect without a
//     word. Session checks names against system.settings and asks for the reason.
//   - chdb_stream_query takes SELECT only and fails with code 36 before it runs
//     anything else (ErrNotStreamable).
//   - It formats every block as a document of its own: three blocks of JSON are
//     three JSON documents. Only formats that can be concatenated may be streamed.
//   - A result that is held whole does not count towards max_memory_usage (6 GB
//     under a limit of 300 MB were seen); only max_result_bytes bounds it.
//   - An empty chunk ends a stream, so a format that writes nothing for a block of
//     rows (RawBLOB of empty strings, Null) must not be streamed either.
//   - chdb_classify_query_n recurses without looking at its stack, and a statement
//     of 200,000 levels ends the process. The parser's own limit of 1,000
//     prevents that unless max_parser_depth is raised, so sessions bound that setting.
//   - chdb_query runs several statements separated by semicolons; streaming does not.
//   - An INSERT with its rows in the statement text is cut at 256 KiB. Rows go
//     through an Inserter.
//   - An INSERT gathers blocks by rows, not by bytes, unless two settings
//     change that; every session sets them (64 MiB).
//   - A connection that streams an INSERT refuses everything else meanwhile.
//   - SYSTEM SHUTDOWN sends SIGTERM to the whole process group, a supervisor
//     included; package sqltext refuses it.
//   - async_insert does not apply to streamed inserts: they are acknowledged after
//     they are in the table, which is the stronger promise.
//   - The database "default" is an overlay that also resolves table names as file
//     names, below any readonly setting: SELECT * FROM `/etc/passwd` reads it.
//     Open renames the overlay, drops it, and makes "default" an
//     ordinary database.
//   - INTO OUTFILE is carried out by the library itself, readonly or not, and so
//     are the scalar function file() and DESCRIBE TABLE url(...). Package sqltext
//     is where readers are refused them.
//   - config.xml in the working directory, the home or /etc is picked up unless a
//     config file is named, so Open names its own. users_config in it is followed, so the
//     user default has the rights that Open grants and no others; a connection cannot
//     choose another user (--user is ignored, EXECUTE AS is disabled). user_files_path
//     is shown and has no effect.
//   - max_server_memory_usage refuses statements (code 241) but does not bound the
//     resident memory.
//   - The library leaves Go's signal handlers alone once
//     chdb_set_signal_handlers_enabled(0) was called before the first connect.
package engine
