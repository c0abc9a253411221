// Package sse is a client of a stream of server-sent events: by GET, and by POST, which is
// how agents are called. A frame is an event; a stream is one response, or all responses of a
// run that is resumed.
//
// The client reconnects for ever, after a pause that doubles from one second to thirty with
// every failure, or that the server requests (retry:, Retry-After); half of it is random. A response that
// is no event stream is a failure like a refused connection, logged with its reason. The
// client stops for good when the server answers 204, as the standard demands, and when a stream
// has ended with the event [DONE].
//
// A connection without a byte for Settings.IdleTimeout, not even a comment, counts as half
// open and is closed.
//
// # Resumption
//
// Without resume and resume_request every connection is a stream of its own. With one of
// them all connections are one stream, over restarts too; its State, marked after every read,
// has the position from which the next request continues:
//
//	last_event_id   the Last-Event-ID header of the standard
//	auto            the request that the decoder describes for its format (decoder.Info)
//	resume_request  the request that the configuration describes (source.Resume)
//
// The last two are streams of one run. A run ends when the server ends it by its protocol
// (Resume.End) or answers 404 or 410. A run whose events have no number cannot be resumed; it
// is not requested again, because that would start another run.
//
// When a connection breaks, the bytes after the last whole event are dropped if the stream is
// resumed, since the server sends them again; otherwise they are a frame with the reason
// connection_lost.
package sse
