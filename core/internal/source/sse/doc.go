// Package sse listens to a stream of server-sent events as a client: by GET, and by
// POST, which is how agents are asked.
//
// It connects again for ever, after a pause that grows from one second to thirty
// with every failure, or that the server has asked for (retry:); half of it is
// random. An answer that is no event stream is a failure like a refused
// connection, with a clear word in the log. It stops for good when the server
// answers 204, as the standard says, and when a stream has ended with the event
// [DONE], by which agents say that there is no more.
//
// A connection on which nothing is heard for Settings.IdleTimeout, not even a
// comment, is taken for half open and given up.
//
// # Resumption
//
// Without Resume every connection is a stream of its own. With it all connections
// are one stream, over restarts too; its State, marked after every read, says where
// to go on:
//
//	last_event_id  the Last-Event-ID header of the standard
//	agno           POST .../runs/{run_id}/resume with the form fields
//	               last_event_index and session_id, for events that carry a run_id
//	               and an event_index
//	letta          starting_after, the seq_id of the last event: as a parameter of a
//	               GET, in the JSON body of a POST. A stream that was begun elsewhere
//	               is resumed at POST .../runs/{run_id}/stream.
//
// The last two are streams of one run: they are over when the server ends them
// properly or no longer knows the run. A run whose events carry no number cannot be
// resumed; it is not asked for again, because asking would start another.
//
// What follows the last whole event when a connection breaks is not recorded when
// the stream is resumed, since it comes again; otherwise it is set aside with the
// reason connection_lost.
package sse
