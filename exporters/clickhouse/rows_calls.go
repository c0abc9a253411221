package clickhouse

import (
	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
	"github.com/earshot-dev/earshot/exporters/clickhouse/internal/native"
)

// A call's row has no trace in its key: a span that moves to another trace keeps
// its id and gets a higher version, which replaces the row. What takes the earlier
// trace back (Span.Deleted) lies below that version. What takes an earlier start back
// takes a row away if the start was in another hour.

// callRows builds rows of the table tool_calls. The column ingest_ts is left to its
// default.
type callRows struct {
	table

	tenant, source, format     native.Dict
	ts                         native.Time
	toolName, toolType, server native.Dict
	agent, model               native.Dict
	session, run, trace        native.Text
	span                       native.Hex
	call                       native.Text
	duration                   proto.ColUInt64
	status, errorType          native.Dict
	argsBytes, resultBytes     proto.ColUInt32
	isDelegation, internal     proto.ColBool
	waitsFor                   native.Dict
	waited                     proto.ColUInt64
	argsShape                  native.Dict
	attempt                    proto.ColUInt16
	resultTokens               proto.ColUInt32
	resultTokensFrom           native.Dict
	ver                        proto.ColUInt64
	isDeleted                  proto.ColUInt8
}

func newCallRows() *callRows {
	r := &callRows{ts: native.Time{Zone: "UTC"}, span: native.Hex{N: 8}}
	r.table = table{name: "tool_calls", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant}, {Name: "ts", Column: &r.ts}, {Name: "source", Column: &r.source}, {Name: "format", Column: &r.format},
		{Name: "tool_name", Column: &r.toolName}, {Name: "tool_type", Column: &r.toolType}, {Name: "mcp_server", Column: &r.server},
		{Name: "agent_name", Column: &r.agent}, {Name: "model", Column: &r.model},
		{Name: "session_id", Column: &r.session}, {Name: "run_id", Column: &r.run},
		{Name: "trace_id", Column: &r.trace}, {Name: "span_id", Column: &r.span}, {Name: "tool_call_id", Column: &r.call},
		{Name: "duration_ns", Column: &r.duration}, {Name: "status", Column: &r.status}, {Name: "error_type", Column: &r.errorType},
		{Name: "args_bytes", Column: &r.argsBytes}, {Name: "result_bytes", Column: &r.resultBytes},
		{Name: "is_delegation", Column: &r.isDelegation}, {Name: "internal", Column: &r.internal},
		{Name: "waits_for", Column: &r.waitsFor}, {Name: "waited_ns", Column: &r.waited}, {Name: "args_shape", Column: &r.argsShape}, {Name: "attempt", Column: &r.attempt},
		{Name: "result_tokens", Column: &r.resultTokens}, {Name: "result_tokens_from", Column: &r.resultTokensFrom}, {Name: "ver", Column: &r.ver}, {Name: "is_deleted", Column: &r.isDeleted},
	})}
	return r
}

func (r *callRows) takes(s *msg.Span) bool {
	return s.Kind == msg.SpanTool || s.Kind == msg.SpanDelegation
}

func (r *callRows) add(s *msg.Span) {
	r.tenant.Append(s.Tenant)
	r.ts.Append(s.Start)
	r.source.Append(s.Source)
	r.format.Append(s.Format)
	r.toolName.Append(s.Tool.Name)
	r.toolType.Append(semconv.ToolType(&s.Tool))
	r.server.Append(s.Tool.Server)
	r.agent.Append(s.Agent.Name)
	r.model.Append(s.Model)
	r.session.AppendString(s.Session)
	r.run.AppendString(s.Run)
	r.trace.AppendHex(s.TraceID[:])
	r.span.Append(s.ID[:])
	r.call.AppendString(s.Tool.ID())
	r.duration.Append(duration(s))
	r.status.Append(status(s))
	r.errorType.Append(s.ErrorType)
	r.argsBytes.Append(s.ArgumentBytes)
	r.resultBytes.Append(s.ResultBytes)
	r.isDelegation.Append(s.Kind == msg.SpanDelegation)
	r.internal.Append(s.Tool.Internal)
	r.waitsFor.Append(s.WaitsFor())
	r.waited.Append(uint64(s.Waited()))
	r.argsShape.Append(s.ArgumentShape)
	r.attempt.Append(s.Attempt)
	r.resultTokens.Append(s.ResultTokens)
	r.resultTokensFrom.Append(s.ResultTokensFrom.String())
	ver, deleted := version(s.Ver, s.Tombstone)
	r.ver.Append(ver)
	r.isDeleted.Append(deleted)
}

// delegationRows builds rows of the table delegations.
type delegationRows struct {
	table

	tenant, source, format native.Dict
	ts                     native.Time
	session, run, trace    native.Text
	span                   native.Hex
	call                   native.Text
	toolName, agent, to    native.Dict
	toID, child            native.Text
	link                   native.Dict
	confidence             proto.ColUInt8
	async                  proto.ColBool
	duration               proto.ColUInt64
	status, errorType      native.Dict
	argsBytes, resultBytes proto.ColUInt32
	ver                    proto.ColUInt64
	isDeleted              proto.ColUInt8
}

func newDelegationRows() *delegationRows {
	r := &delegationRows{ts: native.Time{Zone: "UTC"}, span: native.Hex{N: 8}}
	r.table = table{name: "delegations", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant}, {Name: "ts", Column: &r.ts}, {Name: "source", Column: &r.source}, {Name: "format", Column: &r.format},
		{Name: "session_id", Column: &r.session}, {Name: "run_id", Column: &r.run},
		{Name: "trace_id", Column: &r.trace}, {Name: "span_id", Column: &r.span}, {Name: "tool_call_id", Column: &r.call},
		{Name: "tool_name", Column: &r.toolName}, {Name: "agent_name", Column: &r.agent}, {Name: "delegate_to", Column: &r.to},
		{Name: "delegate_id", Column: &r.toID}, {Name: "child_run_id", Column: &r.child}, {Name: "link_method", Column: &r.link}, {Name: "link_confidence", Column: &r.confidence},
		{Name: "async", Column: &r.async}, {Name: "duration_ns", Column: &r.duration},
		{Name: "status", Column: &r.status}, {Name: "error_type", Column: &r.errorType},
		{Name: "args_bytes", Column: &r.argsBytes}, {Name: "result_bytes", Column: &r.resultBytes}, {Name: "ver", Column: &r.ver}, {Name: "is_deleted", Column: &r.isDeleted},
	})}
	return r
}

func (r *delegationRows) takes(s *msg.Span) bool {
	return s.Kind == msg.SpanDelegation && !s.Amends
}

func (r *delegationRows) add(s *msg.Span) {
	r.tenant.Append(s.Tenant)
	r.ts.Append(s.Start)
	r.source.Append(s.Source)
	r.format.Append(s.Format)
	r.session.AppendString(s.Session)
	r.run.AppendString(s.Run)
	r.trace.AppendHex(s.TraceID[:])
	r.span.Append(s.ID[:])
	r.call.AppendString(s.Tool.ID())
	r.toolName.Append(s.Tool.Name)
	r.agent.Append(s.Agent.Name)
	r.to.Append(s.Delegate.To)
	r.toID.AppendString(s.Delegate.ToID)
	r.child.AppendString(s.Delegate.ChildRun)
	r.link.Append(s.Delegate.Link.String())
	r.confidence.Append(s.Delegate.Confidence)
	r.async.Append(s.Delegate.Async)
	r.duration.Append(worked(s))
	r.status.Append(status(s))
	r.errorType.Append(s.ErrorType)
	r.argsBytes.Append(s.ArgumentBytes)
	r.resultBytes.Append(s.ResultBytes)
	ver, deleted := version(s.Ver, s.Tombstone)
	r.ver.Append(ver)
	r.isDeleted.Append(deleted)
}

// duration is how long the work of an ended span took, in nanoseconds.
func duration(s *msg.Span) uint64 {
	if s.State == msg.SpanOpen {
		return 0
	}
	return uint64(max(s.End-s.Start, 0))
}

// worked is how long the work of a delegation took, which may have been done before
// its result was told, or go on after it: nanoseconds.
func worked(s *msg.Span) uint64 {
	if s.State != msg.SpanOpen && s.Worked > s.Start {
		return uint64(s.Worked - s.Start)
	}
	return duration(s)
}

// status is the column of that name. Work that has ended and of which nothing
// else is said is ok.
func status(s *msg.Span) string {
	switch {
	case s.State == msg.SpanOpen:
		return "running"
	case s.Outcome == msg.OutcomeError:
		return "error"
	case s.Outcome == msg.OutcomeCancelled:
		return "cancelled"
	}
	return "ok"
}
