// Package push receives traffic that agents send themselves, in POST requests to one path.
//
//	Content-Type                    frames
//	application/json, */*+json      one Body
//	application/x-ndjson, jsonl     a Line for each line
//	text/event-stream               an Event for each event, as it arrives
//
// Content-Encoding may be gzip, deflate, br or zstd. max_body bounds a body before
// and after it is decoded.
//
// # Responses
//
//	200  {"frames": n}: everything is recorded and survives a power cut
//	400  the body is empty, or its encoding is wrong
//	401  the bearer token is missing or wrong
//	403  the request is of a web page, and there is no token (source.Rebound)
//	404, 405, 415  another path, method or content type
//	408  the body arrived too slowly
//	409  a request with the same idempotency key is being answered
//	413  the body is larger than max_body
//	422  the idempotency key was used for another body
//	503  it cannot be recorded now; Retry-After has the wait
//
// Every response is JSON; an error is {"error": "..."}. JSON and NDJSON are recorded
// when the whole body has arrived, so that an error means that nothing was recorded
// (with 503, that some of it may be). Events are recorded as they arrive: the events
// before an error are recorded.
//
// # Idempotency
//
// A repeated request with an Idempotency-Key gets the first response again, and is not
// recorded again. The last 10,000 keys are remembered, over a restart the last
// 256.
//
// # Streams
//
// Each request is a stream, unless its query has stream=NAME: then all requests with
// that name are one stream in the order of their arrival, for conversations that are
// pushed piece by piece. Without it a decoder cannot join the records of two requests.
//
// The traceparent of a request that is a stream is kept with it (source.ResponseInfo).
package push
