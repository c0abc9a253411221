// Package tap is a reverse proxy in front of an agent server that records the
// traffic. Neither side is to notice.
//
// # Traffic
//
// Method, request target as it was written, host, status, headers, trailers,
// informational responses and the bytes of the bodies, flushed at every read. A
// client that goes away cancels the request at the agent server; a server that dies
// in the middle of a response breaks the client's too. The tap uses the client's
// version of HTTP towards the agent server: 1.1, or 2 with or without TLS. An
// upgraded connection is copied in both directions. An https:// upstream is reached through the proxy of the
// environment, and its certificate may be of an authority of the environment, as those of its clients.
//
// The differences: net/http writes the names of headers in their canonical case and
// sorts them, on which no HTTP implementation may depend; each connection has its own
// hop-by-hop headers (Connection, Keep-Alive, TE, Transfer-Encoding, Proxy-…); a server
// that cannot be reached is a 502 with a text instead of a refused connection. A host that is an address or localhost is replaced by
// the upstream's name when that is https, because certificates and virtual hosts go
// by name. Requests that net/http finds ambiguous, as smuggling needs them (two
// lengths, a length beside chunks, a space before a colon), are refused with 400
// and never reach the agent server. A connection that sends no request's head
// within a minute is closed; TCP's keep-alives detect a peer that is gone without
// closing its connection.
//
// # Recordings
//
// A stream for each response that a route, or the source's format, wants: its
// origin is the upstream URL of the request, its frames are
//
//	Request     the request's body, unless it is a GET or HEAD without one
//	Event       of text/event-stream, and of application/vnd.amazon.eventstream
//	Line        of NDJSON
//	Body        of JSON, and of any other type that a route asks for by name
//	Text,Binary of a WebSocket, FromClient or not, in the order of their bytes
//	Close       when the response, or the WebSocket, ended by its own protocol
//
// Without a route that names its content type, a response that no decoder can read
// (HTML, an image) is not recorded; if it is an error, the request's body is
// recorded without it. The content encoding (gzip, deflate, br, zstd) and
// permessage-deflate are decoded in the copy only.
//
// A request to which no response has begun after two seconds is recorded alone, so that an agent is seen to wait; the response, and
// the provider's id of the request in a Request frame without data, follow in the same stream. A request to which there is none, because the
// upstream cannot be reached, closes the connection or lets the client wait until it goes, is recorded too, with the failure in the
// State. For that the tap reads the rest that the upstream has left of the request's body, once the client has the 502, for a second at most.
//
// A response that resumes a run in the background is recorded behind the frames that this
// tap remembers of the run: see resume.go. That memory is bounded, and lost at a restart.
//
// Beside its frames a stream has a State, which is the JSON of source.ResponseInfo: the
// traceparent of the request, of which a span link can be made, the status, and how
// the response was paced. It is marked when the stream begins, if there is a
// traceparent, and when it ends.
//
// # Order
//
// What a client has of a response is recorded before the request that it sends next: a
// goroutine that records an exchange waits, for a second at most, for those that were answered before (order.go). So the ids of
// messages, which follow from the order of the exchanges where a protocol has none, follow from the traffic.
//
// # Fail-open
//
// The traffic only ever appends to a bounded queue. A goroutine of each stream takes
// from it, decodes and records, and may be slow, blocked or dead. When a
// stream's queue or the memory of the whole tap is full, the copy has a hole: it is
// recorded with Gap, the frame that it cut is recorded with a Reason, and recording
// goes on with the next event or line. A compressed body, a document and a
// WebSocket cannot be resumed in their middle; the rest of them is part of the hole.
//
// # Loops
//
// A tap whose upstream is its own address refuses to start. A tap that its own
// request reaches again through another tap answers 508: it knows both addresses of
// each of its connections to the upstream, and so do the taps with which it shares
// its Connections. So no header is needed. A loop through another process, or through an
// address that is translated on the way, is not seen.
package tap
