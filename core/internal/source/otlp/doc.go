// Package otlp receives the traces, logs and metrics that agents export with OpenTelemetry:
// OTLP over gRPC and over HTTP, in protobuf and in JSON, plain or compressed by gzip, zstd or
// deflate. Either address takes all of it.
//
// # Frames
//
// A frame is an ExportTraceServiceRequest, ExportLogsServiceRequest or ExportMetricsServiceRequest
// in OTLP's JSON, on one line, with one resource and one scope in it:
//
//	{"resourceLogs":[{"resource":{…},"schemaUrl":"…","scopeLogs":[{"scope":{…},"logRecords":[…]}]}]}
//
// Names of fields are in lowerCamelCase, ids are hexadecimal, integers of 64 bits strings of digits, enums
// numbers, also where the client has them in another form. Records that follow each other share a frame up to 256 KiB. The
// JSON is written from the encoded bytes, by tables that are made of the descriptors of
// go.opentelemetry.io/proto/otlp (schema.go): BenchmarkTranscript has it beside the library's values.
// Fields that the descriptors do not have are left out, as protobuf does; in JSON they stay.
//
// # Formats and streams
//
// A route names the format of a resource and scope (Route); the package knows none itself. The
// records of a resource in a format are one stream, in the order of arrival. Its key is
// a hash of the attributes in which processes and conversations differ (identity), so that a stream
// continues after a restart of Earshot. A stream ends when its resource has sent nothing for ten minutes, or
// when many others were used since (source.MaxRecordings): then its decoder emits the open messages.
//
// # Responses
//
//	HTTP  gRPC
//	200   OK                  every record is in the journal and survives a power cut; those that
//	                          are counted in partial_success are dead letters
//	400   INVALID_ARGUMENT    not OTLP: nothing was recorded, and a dead letter shows it
//	401   UNAUTHENTICATED     the bearer token is missing or wrong
//	404   UNIMPLEMENTED       another path or method
//	408   INVALID_ARGUMENT    the request arrived too slowly
//	413   RESOURCE_EXHAUSTED  larger than max_body, before or after it is decompressed
//	415   UNIMPLEMENTED       another content type or encoding
//	429   RESOURCE_EXHAUSTED  no memory now; Retry-After, RetryInfo
//	503   UNAVAILABLE         no room in the journal now; Retry-After, RetryInfo
//
// Clients send a request again after the last two, and after a connection that broke before the
// response. Some of its frames may then be recorded twice. The rows are the same: decoders make ids of
// the contents of the records, never of their positions.
//
// # Limits
//
// max_body bounds a request before and after it is decompressed. The bytes of all requests and
// of their frames are bounded together (Settings.MaxMemory), and so are the depth of values, the
// JSON of a record, and the part of a frame that all records share.
package otlp
