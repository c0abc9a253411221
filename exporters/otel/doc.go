// Package otel sends spans and metrics to an OpenTelemetry receiver, over OTLP on
// gRPC or HTTP.
//
// # What is sent
//
// Spans that have ended, by the protocol or by rule. An open span is not a span
// yet, and OTLP has no word to take one back: spans under a trace that a late
// link proved wrong are sent again under the right one, and the old ones stay at
// the receiver. A run that was ended by silence and goes on after all is sent
// twice, with the same id and another end. ClickHouse has the exact picture.
//
// A resource is a source: service.name is the source's name, unless the settings
// say otherwise. See semconv.ServiceName for why it is not the agent.
//
// Bodies are not sent unless Settings.Content asks for them; a message's row in
// ClickHouse names its span. With Content a span carries what came in the same
// batch as its end: arguments and result of a call, the answer of a chat. A call
// that runs for long has its arguments in an earlier batch, and goes without.
//
// Metrics are what core/app measures of what was committed, cumulative, once for each
// source. A receiver that does not take them loses nothing but the time in between.
//
// # How
//
// Spans are built as OTLP protobufs and uploaded synchronously; nothing is
// queued here, and nothing is retried here: the pipeline offers the batch again.
// The SDK's batch processor would drop a batch that fails.
//
// Receivers refuse requests over their limit, 4 MiB by default, as a whole. So a
// batch is cut into requests by bytes, and a span that alone is too large loses
// its events and its largest attributes, and says how many (earshot.trimmed). A
// batch that is offered again goes on with the first request that was not
// accepted.
//
// A partial success is an answer for good: the receiver has rejected some spans
// and a retry would double the others. They are counted and logged.
//
// # Errors
//
// Only what blames the spans is permanent: 400, 413 and 422 over HTTP,
// InvalidArgument and a request too large over gRPC. A wrong token or path is
// somebody's to correct, and the spans wait. A receiver that says how long to
// wait (Retry-After, RetryInfo) is given that long.
package otel
