package clickhouse

import (
	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/exporters/clickhouse/internal/native"
)

// streamRows builds rows of the table streams.
type streamRows struct {
	table

	tenant, source, format                          native.Dict
	stream                                          native.Text
	started                                         native.Time
	origin                                          native.Text
	method                                          native.Dict
	status                                          proto.ColUInt16
	session, run, chat                              native.Text
	remoteTrace, remoteSpan, remoteState            native.Text
	firstByte, firstChunk, firstEvent, total        proto.ColUInt64
	chunks, bytes, events, longestStall, gap, gap95 proto.ColUInt64
	buffered                                        proto.ColBool
	ver                                             proto.ColUInt64
}

func newStreamRows() *streamRows {
	r := &streamRows{started: native.Time{Zone: "UTC"}}
	r.table = table{name: "streams", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant}, {Name: "source", Column: &r.source}, {Name: "format", Column: &r.format},
		{Name: "stream", Column: &r.stream}, {Name: "started_at", Column: &r.started}, {Name: "origin", Column: &r.origin},
		{Name: "method", Column: &r.method}, {Name: "status", Column: &r.status},
		{Name: "session_id", Column: &r.session}, {Name: "run_id", Column: &r.run}, {Name: "chat_span_id", Column: &r.chat},
		{Name: "remote_trace_id", Column: &r.remoteTrace}, {Name: "remote_span_id", Column: &r.remoteSpan}, {Name: "remote_state", Column: &r.remoteState},
		{Name: "first_byte_ns", Column: &r.firstByte}, {Name: "first_chunk_ns", Column: &r.firstChunk}, {Name: "first_event_ns", Column: &r.firstEvent},
		{Name: "total_ns", Column: &r.total}, {Name: "chunks", Column: &r.chunks}, {Name: "bytes", Column: &r.bytes}, {Name: "events", Column: &r.events},
		{Name: "longest_stall_ns", Column: &r.longestStall}, {Name: "gap_p50_ns", Column: &r.gap}, {Name: "gap_p95_ns", Column: &r.gap95},
		{Name: "buffered", Column: &r.buffered}, {Name: "ver", Column: &r.ver},
	})}
	return r
}

func (r *streamRows) add(s *msg.Stream) {
	r.tenant.Append(s.Tenant)
	r.source.Append(s.Source)
	r.format.Append(s.Format)
	r.stream.AppendString(s.Stream)
	r.started.Append(s.Pace.Start)
	r.origin.AppendString(s.Origin)
	r.method.Append(s.Method)
	r.status.Append(uint16(s.Status))
	r.session.AppendString(s.Session)
	r.run.AppendString(s.Run)
	r.chat.AppendHex(s.Chat[:])
	r.remoteTrace.AppendHex(s.RemoteTrace[:])
	r.remoteSpan.AppendHex(s.RemoteSpan[:])
	r.remoteState.AppendString(s.RemoteState)
	for _, c := range [...]struct {
		to *proto.ColUInt64
		n  int64
	}{
		{&r.firstByte, s.Pace.FirstByte}, {&r.firstChunk, s.Pace.FirstChunk}, {&r.firstEvent, s.Pace.FirstEvent}, {&r.total, s.Pace.Total},
		{&r.chunks, s.Pace.Chunks}, {&r.bytes, s.Pace.Bytes}, {&r.events, s.Pace.Events},
		{&r.longestStall, s.Pace.LongestStall}, {&r.gap, s.Pace.GapP50}, {&r.gap95, s.Pace.GapP95},
	} {
		c.to.Append(uint64(max(c.n, 0)))
	}
	r.buffered.Append(s.Pace.Buffered)
	r.ver.Append(s.Ver)
}
