package clickhouse

import (
	"strconv"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/exporters/clickhouse/internal/native"
)

// finding is an event of a run in which something was found.
type finding struct {
	span  *msg.Span
	event *msg.SpanEvent
}

// findings are those of the spans, of running ones as well: a loop is to be seen
// while it goes on. A span that is taken back has another row to come with the
// same key.
func findings(spans []msg.Span) (list []finding) {
	for i := range spans {
		s := &spans[i]
		for k := range s.Events {
			if s.Events[k].Name == msg.EventFinding && !s.Tombstone {
				list = append(list, finding{s, &s.Events[k]})
			}
		}
	}
	return list
}

// findingRows builds rows of the table findings.
type findingRows struct {
	table

	tenant, source, format native.Dict
	ts                     native.Time
	kind, tool, agent      native.Dict
	count                  proto.ColUInt64
	session, run, trace    native.Text
	span                   native.Hex
	ver                    proto.ColUInt64
}

func newFindingRows() *findingRows {
	r := &findingRows{ts: native.Time{Zone: "UTC"}, span: native.Hex{N: 8}}
	r.table = table{name: "findings", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant}, {Name: "ts", Column: &r.ts}, {Name: "source", Column: &r.source}, {Name: "format", Column: &r.format},
		{Name: "kind", Column: &r.kind}, {Name: "tool_name", Column: &r.tool}, {Name: "agent_name", Column: &r.agent}, {Name: "count", Column: &r.count},
		{Name: "session_id", Column: &r.session}, {Name: "run_id", Column: &r.run}, {Name: "trace_id", Column: &r.trace}, {Name: "span_id", Column: &r.span},
		{Name: "ver", Column: &r.ver},
	})}
	return r
}

func (r *findingRows) add(f finding) {
	s := f.span
	var kind, tool string
	var count uint64
	for _, a := range f.event.Attrs {
		switch a.Key {
		case msg.FindingKind:
			kind = a.Value
		case msg.FindingTool:
			tool = a.Value
		case msg.FindingCount:
			count, _ = strconv.ParseUint(a.Value, 10, 64) // ours: always a number
		}
	}
	r.tenant.Append(s.Tenant)
	r.ts.Append(f.event.Time)
	r.source.Append(s.Source)
	r.format.Append(s.Format)
	r.kind.Append(kind)
	r.tool.Append(tool)
	r.agent.Append(s.Agent.Name)
	r.count.Append(count)
	r.session.AppendString(s.Session)
	r.run.AppendString(s.Run)
	r.trace.AppendHex(s.TraceID[:])
	r.span.Append(s.ID[:])
	r.ver.Append(s.Ver)
}
