package clickhouse

import (
	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/exporters/clickhouse/internal/native"
)

// letterRows builds rows of the table dead_letters.
type letterRows struct {
	table

	tenant, source native.Dict
	id             native.Hex
	format         native.Dict
	session        native.Text
	stage, reason  native.Dict
	detail, origin native.Text
	offset         proto.ColInt64
	payload        native.Text
	bytes          proto.ColUInt64
	seen           native.Millis
	resolved       proto.ColBool
	ver            proto.ColUInt64
}

func newLetterRows() *letterRows {
	r := &letterRows{id: native.Hex{N: 16}, seen: native.Millis{Zone: "UTC"}}
	r.table = table{name: "dead_letters", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant}, {Name: "source", Column: &r.source}, {Name: "dl_id", Column: &r.id},
		{Name: "format", Column: &r.format}, {Name: "session_id", Column: &r.session},
		{Name: "stage", Column: &r.stage}, {Name: "reason", Column: &r.reason}, {Name: "error", Column: &r.detail},
		{Name: "origin", Column: &r.origin}, {Name: "origin_offset", Column: &r.offset},
		{Name: "payload", Column: &r.payload}, {Name: "payload_bytes", Column: &r.bytes},
		{Name: "seen_at", Column: &r.seen}, {Name: "resolved", Column: &r.resolved}, {Name: "ver", Column: &r.ver},
	})}
	return r
}

func (r *letterRows) add(l *msg.DeadLetter) {
	r.tenant.Append(l.Tenant)
	r.source.Append(l.Source)
	r.id.Append(l.ID[:])
	r.format.Append(l.Format)
	r.session.AppendString(l.Session)
	r.stage.Append(l.Stage)
	r.reason.Append(l.Reason)
	r.detail.AppendString(l.Detail)
	r.origin.AppendString(l.Origin)
	r.offset.Append(l.Offset)
	r.payload.AppendBytes(l.Payload)
	r.bytes.Append(uint64(max(l.Bytes, 0)))
	r.seen.Append(l.Seen)
	r.resolved.Append(l.Resolved)
	r.ver.Append(l.Ver)
}

// ledgerRows builds rows of the table source_ledger.
type ledgerRows struct {
	table

	tenant, source                      native.Dict
	stream                              native.Text
	format                              native.Dict
	origin                              native.Text
	read, decoded, quarantined, dropped proto.ColInt64
	reason                              native.Dict
	frames, messages, unknown, problems proto.ColInt64
	seen, since                         native.Millis
	ver                                 proto.ColUInt64
}

func newLedgerRows() *ledgerRows {
	r := &ledgerRows{seen: native.Millis{Zone: "UTC"}, since: native.Millis{Zone: "UTC"}}
	r.table = table{name: "source_ledger", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant}, {Name: "source", Column: &r.source}, {Name: "stream", Column: &r.stream},
		{Name: "format", Column: &r.format}, {Name: "origin", Column: &r.origin},
		{Name: "read_bytes", Column: &r.read}, {Name: "decoded_bytes", Column: &r.decoded},
		{Name: "quarantined_bytes", Column: &r.quarantined}, {Name: "dropped_bytes", Column: &r.dropped},
		{Name: "reason", Column: &r.reason}, {Name: "frames", Column: &r.frames}, {Name: "messages", Column: &r.messages},
		{Name: "unknown", Column: &r.unknown}, {Name: "problems", Column: &r.problems},
		{Name: "seen_at", Column: &r.seen}, {Name: "since", Column: &r.since}, {Name: "ver", Column: &r.ver},
	})}
	return r
}

func (r *ledgerRows) add(l *msg.Ledger) {
	r.tenant.Append(l.Tenant)
	r.source.Append(l.Source)
	r.stream.AppendString(l.Stream)
	r.format.Append(l.Format)
	r.origin.AppendString(l.Origin)
	r.read.Append(l.Read)
	r.decoded.Append(l.Decoded)
	r.quarantined.Append(l.Quarantined)
	r.dropped.Append(l.Dropped)
	r.reason.Append(l.Reason)
	r.frames.Append(l.Frames)
	r.messages.Append(l.Messages)
	r.unknown.Append(l.Unknown)
	r.problems.Append(l.Problems)
	r.seen.Append(l.Seen)
	r.since.Append(l.Since)
	r.ver.Append(l.Ver)
}
