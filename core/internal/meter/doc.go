// Package meter computes the metrics of the GenAI convention: committed batches enter, and
// figures of their spans and tokens leave at /metrics, with exemplars in OpenMetrics, and
// through the exporter over OTLP.
//
// # Which rows are counted
//
// Durations are those of spans that have ended; the counters of tokens are those
// of usage messages, which v_usage adds up; the histogram of tokens has a response
// as it was when it was first over. Record is called once for
// each batch, after its checkpoint is committed. A sidecar that is killed
// forgets its counters, as every process does, and its successor decodes again
// the frames that were not committed, which the first had not counted; so nothing
// is counted twice across a restart, and at most the last commit is not counted. A
// span that one process emits twice (its stream is decoded again because a late link
// moved it) is counted the first time, as long as it is among the last 32,000 spans;
// of a usage message whose tokens grow later, the difference is counted.
//
// A run that silence had ended and that goes on after all keeps its first
// duration here. ClickHouse has the exact picture.
//
// The figures stand for when things were read, not for when they happened: a
// history that is read at the first start is counted then.
//
// # Bounds
//
// Names of models, agents, tools and classes of errors come from outside and are
// bounded as all names of the traffic are (telemetry.Names). The SDK's limit of 2,000
// combinations is above that.
package meter
