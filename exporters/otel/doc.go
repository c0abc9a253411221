// Package otel sends spans and metrics, and log events where contents are asked for, to
// an OpenTelemetry receiver, over OTLP on gRPC or HTTP.
//
// # What is sent
//
// Spans that have ended, by the protocol or by rule. An open span is not a span yet,
// and OTLP has no word to take one back or to correct one. A batch sends a span once, as
// it stands at the batch's end; a span that changes later is sent again. A receiver sees
//
//   - the same trace and span id again, with the same start: a run that was ended by
//     silence, or by its turn, and goes on after all; a call whose result comes after
//     silence ended it; a response of which more is told after it was thought complete; a
//     run whose response ends, or whose pace is heard, after it; a delegation whose child
//     is named, or goes on, behind its result. Of two the one with the later end, or with
//     more attributes, stands.
//   - the same span id under another trace: a child that was heard before anything named
//     its caller. The spans of the first trace stay at the receiver; they are whole, and
//     stand by themselves. In ClickHouse they are taken back.
//   - everything again: when a batch was accepted and the answer was lost, or the sidecar
//     was killed before it noted it, and after earshot backfill. The same in every bit.
//
// Nothing else is sent twice: core/internal/assemble TestSpansAreGivenOnce has the cases.
// Within a batch, TestABatchSendsASpanOnce. Receivers that keep one span per id (ClickHouse with ReplacingMergeTree, most others
// when they compact) show one; those that append show two.
//
// A resource is a source: service.name is the source's name, unless the settings
// say otherwise. See semconv.ServiceName for why it is not the agent.
//
// Bodies are not sent unless Settings.Content asks for them; a message's row in
// ClickHouse names its span. With Content a call has its arguments and, if it
// succeeded, its result; a chat what the model was given, what it answered, its
// instructions and its tools. Much of that comes in earlier batches than the span, so
// what was said last is kept in memory (talk.go); after a restart a span has what came
// since. The event gen_ai.client.inference.operation.details of each chat goes to the
// receiver's logs behind the request that has its span, and counts as a request of the
// batch: it is offered again until it is accepted. A receiver without logs is not asked
// a second time.
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
