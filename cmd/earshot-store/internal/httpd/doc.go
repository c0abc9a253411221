// Package httpd serves an engine over ClickHouse's HTTP interface.
//
// Every request is a session of its own. A statement with rows behind it is
// streamed into the engine, a SELECT in a format that can be cut is streamed out
// of it, one in a format of files (Parquet) goes through a file of the spool, and
// everything else is held by the engine until it is sent. When the client goes
// away the statement is killed.
//
// Two users exist, with any password: default may run statements that stay inside of the database, reader
// is held to reading (see engine.Open and sqltext.Guard). GET never changes anything, as in ClickHouse.
//
// A writer may hold rows back while there is no reader (flushes.go): a statement that is about to read
// wakes it, and waits for its flush, 250 ms at most. Statements with the header X-Earshot-Writer
// are no reads.
//
// The differences from a server: session_id, roles, external tables and
// INTO OUTFILE are refused with code 48 or 358, never ignored; progress headers
// are not sent; query_id does not reach the engine, it shows in system.processes
// as Settings['query_cache_tag'].
//
// Errors carry ClickHouse's text, code header and status. One that occurs after
// the first byte of the body is framed at its end as ClickHouse frames it,
//
//	\r\n__exception__\r\n<tag>\r\n<text>\n<length> <tag>\r\n__exception__\r\n
//
// with the tag of the header X-ClickHouse-Exception-Tag, and the connection is
// then cut, so that no client can take the body for a whole one.
package httpd
