package schema

// Comments of columns that many tables have.
const (
	ofTenant  = "Owner of the data"
	ofSource  = "Name of the source in the configuration"
	ofFormat  = "Decoder that read it"
	ofSession = "The conversation"
	ofTrace   = "TraceId of otel_traces"
	ofSpan    = "SpanId of otel_traces"
	ofIngest  = "When this row was stored; retention counts from here"
	ofVer     = "Of rows with the same key the one with the highest version is valid"
	ofGone    = "1 is a tombstone: it removes an earlier version"
)

// now is the default of the columns that retention counts from.
const now = "DEFAULT now64(3)"

// Tables are the tables that rows are written to, with their columns in the order of the
// table.
var Tables = []Table{
	messages,
	spans,
	{
		Name: "findings", Rows: "findingRows", Record: "f *finding",
		Doc: "findingRows builds rows of the table findings.",
		Columns: []Column{
			{Name: "tenant", Type: set, From: "f.span.Tenant", Comment: ofTenant},
			{Name: "ts", Type: nanos, From: "f.time", Comment: "Time of the message that completed it"},
			{Name: "source", Type: set, From: "f.span.Source", Comment: ofSource},
			{Name: "format", Type: set, From: "f.span.Format", Comment: ofFormat},
			{Name: "kind", Type: set, From: "f.kind", Comment: "repeat, ping_pong, error_storm, fan_out or silence"},
			{Name: "tool_name", Type: set, From: "f.tool", Comment: "The tool that was called last; empty for silence"},
			{Name: "agent_name", Type: set, From: "f.span.Agent.Name", Comment: "The agent that runs"},
			{Name: "count", Type: count, From: "f.count", Comment: "Calls, delegations in progress at once, or seconds of silence"},
			{Name: "session_id", Type: text, From: "f.span.Session", Comment: ofSession},
			{Name: "run_id", Type: text, From: "f.span.Run", Comment: "One invocation of one agent"},
			{Name: "trace_id", Type: text, From: "f.span.TraceID[:]", Comment: ofTrace},
			{Name: "span_id", Type: spanHex, From: "f.span.ID[:]", Comment: "SpanId of the run in otel_traces, or in open_spans while it runs"},
			{Name: "ingest_ts", Type: millis, Default: now, Comment: ofIngest},
			{Name: "ver", Type: ordered, From: "f.span.Ver", Comment: ofVer},
		},
	},
	{
		Name: "verdicts", Rows: "verdictRows", Record: "v *msg.Verdict",
		Doc: "verdictRows builds rows of the table verdicts.",
		Columns: []Column{
			{Name: "tenant", Type: set, From: "v.Tenant", Comment: ofTenant},
			{Name: "since", Type: nanos, From: "v.Since", Comment: "When that state of the work began: its last sign of life, or the beginning of the call"},
			{Name: "made_at", Type: millis, From: "v.At", Comment: "When the verdict was made"},
			{Name: "resolved_at", Type: millis, From: "v.Resolved", Comment: "When it was resolved; 1970 while it holds"},
			{Name: "resolution", Type: set, From: "v.Resolution", Comment: "progress, ended, or the verdict that followed"},
			{Name: "source", Type: set, From: "v.Source", Comment: ofSource},
			{Name: "format", Type: set, From: "v.Format", Comment: ofFormat},
			{Name: "verdict", Type: set, From: "v.Name", Comment: "model_silent, model_retrying, tool_running, waiting_permission, waiting_person, rate_limited, child_dead, orphan, zombie, never_started or looping"},
			{Name: "evidence", Type: text, From: "v.Evidence", Comment: "The reason in a sentence, as it was when the verdict was made"},
			{Name: "kind", Type: set, From: "v.Kind.String()", Comment: "Of the span: run, tool or delegation"},
			{Name: "agent_name", Type: set, From: "v.Agent", Comment: "The agent that runs"},
			{Name: "tool_name", Type: set, From: "v.Tool", Comment: "Of a call"},
			{Name: "path", Type: text, From: "v.Path", Comment: "From the top-level run down to the work, with the age of each step"},
			{Name: "words", Type: text, From: "v.Words", Comment: "The last text of the model, cut: what an agent writes is no fact"},
			{Name: "session_id", Type: text, From: "v.Session", Comment: ofSession},
			{Name: "run_id", Type: text, From: "v.Run", Comment: "One invocation of one agent"},
			{Name: "trace_id", Type: text, From: "v.TraceID[:]", Comment: ofTrace},
			{Name: "span_id", Type: spanHex, From: "v.Span[:]", Comment: "SpanId in otel_traces, or in open_spans while it is open"},
			{Name: "cause_span_id", Type: text, From: "v.Cause[:]", Comment: "The span below it that is the reason; empty: itself"},
			{Name: "ingest_ts", Type: millis, Default: now, Comment: ofIngest},
			{Name: "ver", Type: ordered, From: "v.Ver", Comment: ofVer},
		},
	},
	{
		Name: "dead_letters", Rows: "deadLetterRows", Record: "l *msg.DeadLetter",
		Doc: "deadLetterRows builds rows of the table dead_letters.",
		Columns: []Column{
			{Name: "tenant", Type: set, From: "l.Tenant", Comment: ofTenant},
			{Name: "source", Type: set, From: "l.Source", Comment: ofSource},
			{Name: "dl_id", Type: "FixedString(32)", From: "l.ID[:]", Comment: "Hash of the place, in hex: the same bytes are one dead letter however often they are read"},
			{Name: "format", Type: set, From: "l.Format", Comment: "Decoder that refused it"},
			{Name: "session_id", Type: text, From: "l.Session", Comment: "Where it is known"},
			{Name: "stage", Type: set, From: "l.Stage", Comment: "read, decode or export"},
			{Name: "reason", Type: set, From: "l.Reason", Comment: "invalid_json, wrong_type, too_long, refused_by_store, ..."},
			{Name: "error", Type: "String CODEC(ZSTD(3))", From: "l.Detail", Comment: "For a person"},
			{Name: "origin", Type: text, From: "l.Origin", Comment: "File path or URL"},
			{Name: "origin_offset", Type: bytes, From: "l.Offset", Comment: "Where in origin the bytes begin"},
			{Name: "payload", Type: "String CODEC(ZSTD(6))", From: "l.Payload", Comment: "The bytes, cut at the configured limit"},
			{Name: "payload_bytes", Type: count, From: "uint64(max(l.Bytes, 0))", Comment: "How many there were"},
			{Name: "payload_truncated", Type: flag, Default: "ALIAS length(payload) < payload_bytes", Comment: "payload was cut"},
			{Name: "seen_at", Type: millis, From: "l.Seen", Comment: "When it was quarantined; a replay moves it. Retention counts from here"},
			{Name: "resolved", Type: flag, From: "l.Resolved", Comment: "A later try succeeded"},
			{Name: "ver", Type: ordered, From: "l.Ver", Comment: ofVer},
		},
	},
	{
		Name: "source_ledger", Rows: "ledgerRows", Record: "l *msg.Ledger",
		Doc: "ledgerRows builds rows of the table source_ledger.",
		Columns: []Column{
			{Name: "tenant", Type: set, From: "l.Tenant", Comment: ofTenant},
			{Name: "source", Type: set, From: "l.Source", Comment: ofSource},
			{Name: "stream", Type: text, From: "l.Stream", Comment: "The stream's identity in its source"},
			{Name: "format", Type: set, From: "l.Format", Comment: "Decoder that reads it"},
			{Name: "origin", Type: text, From: "l.Origin", Comment: "File path or URL"},
			{Name: "read_bytes", Type: bytes, From: "l.Read", Comment: "Bytes read so far: read = decoded + quarantined + dropped"},
			{Name: "decoded_bytes", Type: bytes, From: "l.Decoded", Comment: "Bytes that became messages"},
			{Name: "quarantined_bytes", Type: bytes, From: "l.Quarantined", Comment: "Bytes that became dead letters"},
			{Name: "dropped_bytes", Type: bytes, From: "l.Dropped", Comment: "Bytes dropped for a stated reason"},
			{Name: "unaccounted_bytes", Type: "Int64", Default: "ALIAS read_bytes - decoded_bytes - quarantined_bytes - dropped_bytes", Comment: "Anything but 0 is a bug in Earshot"},
			{Name: "reason", Type: set, From: "l.Reason", Comment: "Of the last drop"},
			{Name: "dropped_at", Type: millis, From: "l.DroppedAt", Default: "DEFAULT 0", Comment: "When the last drop was read; 1970 when there was none"},
			{Name: "frames", Type: bytes, From: "l.Frames", Comment: "Frames so far"},
			{Name: "messages", Type: bytes, From: "l.Messages", Comment: "Messages so far"},
			{Name: "unknown", Type: bytes, From: "l.Unknown", Comment: "Messages of kind unknown so far"},
			{Name: "problems", Type: bytes, From: "l.Problems", Comment: "Frames, or parts of them, that could not be decoded so far"},
			{Name: "seen_at", Type: millis, From: "l.Seen", Comment: "When this account was written"},
			{Name: "since", Type: millis, From: "l.Since", Comment: "When the sidecar that wrote the account started to listen"},
			{Name: "ver", Type: ordered, From: "l.Ver", Comment: ofVer},
		},
	},
	{
		Name: "streams", Rows: "streamRows", Record: "s *msg.Stream",
		Doc: "streamRows builds rows of the table streams.",
		Columns: []Column{
			{Name: "tenant", Type: set, From: "s.Tenant", Comment: ofTenant},
			{Name: "source", Type: set, From: "s.Source", Comment: ofSource},
			{Name: "format", Type: set, From: "s.Format", Comment: "Decoder that reads it"},
			{Name: "stream", Type: text, From: "s.Stream", Comment: "The recording, as in source_ledger"},
			{Name: "started_at", Type: nanos, From: "s.Pace.Start", Comment: "When the request was sent"},
			{Name: "origin", Type: text, From: "s.Origin", Comment: "URL"},
			{Name: "method", Type: set, From: "s.Method", Comment: "Of the request; empty for a stream that was only resumed"},
			{Name: "status", Type: "UInt16", From: "uint16(s.Status)", Comment: "Of HTTP; 101 is a WebSocket"},
			{Name: "session_id", Type: text, From: "s.Session", Comment: "The first conversation in it"},
			{Name: "run_id", Type: text, From: "s.Run", Comment: "The first top-level run in it"},
			{Name: "chat_span_id", Type: text, From: "s.Chat[:]", Default: "DEFAULT ''", Comment: "Span of the model's response that it was; empty when it was several, or the protocol names none"},
			{Name: "remote_trace_id", Type: text, From: "s.RemoteTrace[:]", Comment: "Of the traceparent of the request; empty without one"},
			{Name: "remote_span_id", Type: text, From: "s.RemoteSpan[:]", Comment: "Of the traceparent of the request: the span of the caller"},
			{Name: "remote_state", Type: text, From: "s.RemoteState", Comment: "tracestate of the request"},
			{Name: "first_byte_ns", Type: count, From: "uint64(max(s.Pace.FirstByte, 0))", Comment: "From started_at to the head of the response"},
			{Name: "first_chunk_ns", Type: count, From: "uint64(max(s.Pace.FirstChunk, 0))", Comment: "From started_at to the first bytes of the body"},
			{Name: "first_event_ns", Type: count, From: "uint64(max(s.Pace.FirstEvent, 0))", Comment: "From started_at to the first event or message"},
			{Name: "total_ns", Type: count, From: "uint64(max(s.Pace.Total, 0))", Comment: "From started_at to the last byte"},
			{Name: "chunks", Type: count, From: "uint64(max(s.Pace.Chunks, 0))", Comment: "Reads that the body arrived in"},
			{Name: "bytes", Type: count, From: "uint64(max(s.Pace.Bytes, 0))", Comment: "Of the body, as it was sent"},
			{Name: "events", Type: count, From: "uint64(max(s.Pace.Events, 0))", Comment: "Events, lines or messages"},
			{Name: "longest_stall_ns", Type: count, From: "uint64(max(s.Pace.LongestStall, 0))", Comment: "Longest pause between two chunks"},
			{Name: "gap_p50_ns", Type: count, From: "uint64(max(s.Pace.GapP50, 0))", Comment: "Median pause between two chunks, rounded up to a power of two of microseconds"},
			{Name: "gap_p95_ns", Type: count, From: "uint64(max(s.Pace.GapP95, 0))", Comment: "95th percentile of them, rounded likewise"},
			{Name: "buffered", Type: flag, From: "s.Pace.Buffered", Comment: "All events of a slow response arrived at its end: a proxy on the way seems to buffer them"},
			{Name: "ingest_ts", Type: millis, Default: now, Comment: ofIngest},
			{Name: "ver", Type: ordered, From: "s.Ver", Comment: ofVer},
		},
	},
}
