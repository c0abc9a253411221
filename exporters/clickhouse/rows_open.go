package clickhouse

import (
	"cmp"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
	"github.com/earshot-dev/earshot/exporters/clickhouse/internal/native"
)

// openRows builds rows of the table open_spans: spans that are running, and the
// end of those that were shown there.
type openRows struct {
	table
	profile *semconv.Profile

	tenant, source, format native.Dict
	ts, lastSeen, alive    native.Time
	kind, name             native.Dict
	session, run, trace    native.Text
	span                   native.Hex
	parent                 native.Text
	agent, tool            native.Dict
	call                   native.Text
	to, waitsFor           native.Dict
	ver                    proto.ColUInt64
	isDeleted              proto.ColUInt8
}

func newOpenRows(p *semconv.Profile) *openRows {
	r := &openRows{profile: p, ts: native.Time{Zone: "UTC"}, lastSeen: native.Time{Zone: "UTC"}, alive: native.Time{Zone: "UTC"}, span: native.Hex{N: 8}}
	r.table = table{name: "open_spans", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant}, {Name: "ts", Column: &r.ts}, {Name: "last_seen", Column: &r.lastSeen}, {Name: "alive_at", Column: &r.alive},
		{Name: "source", Column: &r.source}, {Name: "format", Column: &r.format},
		{Name: "kind", Column: &r.kind}, {Name: "name", Column: &r.name},
		{Name: "session_id", Column: &r.session}, {Name: "run_id", Column: &r.run},
		{Name: "trace_id", Column: &r.trace}, {Name: "span_id", Column: &r.span}, {Name: "parent_span_id", Column: &r.parent},
		{Name: "agent_name", Column: &r.agent}, {Name: "tool_name", Column: &r.tool}, {Name: "tool_call_id", Column: &r.call},
		{Name: "delegate_to", Column: &r.to}, {Name: "waits_for", Column: &r.waitsFor},
		{Name: "ver", Column: &r.ver}, {Name: "is_deleted", Column: &r.isDeleted},
	})}
	return r
}

func (r *openRows) takes(s *msg.Span) bool {
	return !s.Tombstone && (s.State == msg.SpanOpen || s.Shown)
}

func (r *openRows) add(s *msg.Span) {
	r.tenant.Append(s.Tenant)
	r.ts.Append(s.Start)
	r.lastSeen.Append(s.LastSeen)
	r.alive.Append(cmp.Or(s.Alive, s.LastSeen))
	r.source.Append(s.Source)
	r.format.Append(s.Format)
	r.kind.Append(s.Kind.String())
	r.name.Append(r.profile.Name(s))
	r.session.AppendString(s.Session)
	r.run.AppendString(s.Run)
	r.trace.AppendHex(s.TraceID[:])
	r.span.Append(s.ID[:])
	r.parent.AppendHex(s.Parent[:])
	r.agent.Append(s.Agent.Name)
	r.tool.Append(s.Tool.Name)
	r.call.AppendString(s.Tool.ID())
	r.to.Append(s.Delegate.To)
	r.waitsFor.Append(s.WaitsFor())
	r.ver.Append(openVersion(s))
	r.isDeleted.Append(flag(s.State != msg.SpanOpen))
}

// openVersion orders what is said of one span here: by the time of its last
// event, an end by silence behind the event that it followed, and the end that
// the protocol told behind everything. Span.Ver would not do: by it a span that
// goes on after a silence is older than that silence.
func openVersion(s *msg.Span) uint64 {
	if s.State == msg.SpanClosed {
		return 1<<63 | 1
	}
	return uint64(max(s.LastSeen, 0))<<1 | uint64(flag(s.State == msg.SpanIdle))
}
