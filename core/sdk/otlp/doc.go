// Package otlp is the common part of the decoders of OpenTelemetry: they state names and rules, and this
// package reads OTLP/JSON, holds the spans of a trace until their tree is known, and builds turns,
// responses and calls of it.
//
// A frame is one OTLP/JSON object: resourceSpans, resourceLogs or resourceMetrics. The forms of
// real files are accepted too: names in snake_case, ids in base64, names of enums, numbers as strings, spans
// as the JavaScript SDK prints them (times as [seconds, nanoseconds], attributes as an object), and an
// object that is the attributes of one span. Metrics repeat the facts of spans and logs, and are not read.
//
// A span ends before its parent, so a trace arrives from its leaves on, in any order, in several
// exports, and may arrive twice. So:
//
//   - A span is held until its ancestors are known up to the root of the trace; then all that are known
//     are emitted, in the order of their times. Flush emits the held ones.
//   - A parent that never arrives is rebuilt: when a trace has not grown for many frames, when too much
//     is held, and at the end of the stream. The run of a span without its parent has the id that the
//     parent's run would have, and its first message has the attribute "rebuilt".
//   - A span is one, however often it arrives: by the ids of trace and span.
//   - A response counts once: by its id; the tokens of an agent's span count only if no response
//     below it has any, because they are the sum of those.
//   - The session is that of the span, of its nearest ancestor, of any other span of the trace,
//     else the trace. While a session is not known, Flush emits spans only in a stream
//     that has never named one: a row in another session would never be replaced.
//   - Spans of others (HTTP, databases) are hidden status messages of the run that they are below, and are
//     otherwise dropped; the next message that begins a run has their number as the attribute "dropped_spans".
//
// A log record with the ids of a span adds to it. One without is a turn's own: a prompt begins a turn
// of its session, and the records after it are part of it.
package otlp
