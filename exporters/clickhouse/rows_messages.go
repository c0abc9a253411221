package clickhouse

import (
	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/exporters/clickhouse/internal/native"
)

// messageRows builds rows of the table messages. The columns part_index,
// content_ref and ingest_ts are left to their defaults.
type messageRows struct {
	table

	tenant, source, format           native.Dict
	ts                               native.Time
	session, run, parentRun          native.Text
	id                               native.Hex
	seq                              proto.ColUInt64
	parentMessage, trace, span       native.Text
	agentID                          native.Text
	agentName, agentKind             native.Dict
	role, kind, provider, model      native.Dict
	toolName                         native.Dict
	toolCall, toolArguments          native.Text
	delegateTo                       native.Dict
	delegateTask, childRun           native.Text
	linkMethod, finishReason         native.Dict
	isError, complete, hidden        proto.ColBool
	content                          native.Text
	contentBytes                     proto.ColUInt32
	input, output                    proto.ColUInt64
	cacheRead, cacheWrite, reasoning proto.ColUInt64
	attributes                       native.Map
	ver                              proto.ColUInt64
	isDeleted                        proto.ColUInt8

	attribute func(key, value string)
}

func newMessageRows() *messageRows {
	r := &messageRows{id: native.Hex{N: 16}, ts: native.Time{Zone: "UTC"}}
	r.attribute = r.attributes.Append
	r.table = table{name: "messages", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant}, {Name: "source", Column: &r.source}, {Name: "format", Column: &r.format},
		{Name: "ts", Column: &r.ts},
		{Name: "session_id", Column: &r.session}, {Name: "run_id", Column: &r.run}, {Name: "parent_run_id", Column: &r.parentRun},
		{Name: "message_id", Column: &r.id}, {Name: "seq", Column: &r.seq}, {Name: "parent_message_id", Column: &r.parentMessage},
		{Name: "trace_id", Column: &r.trace}, {Name: "span_id", Column: &r.span},
		{Name: "agent_id", Column: &r.agentID}, {Name: "agent_name", Column: &r.agentName}, {Name: "agent_kind", Column: &r.agentKind},
		{Name: "role", Column: &r.role}, {Name: "kind", Column: &r.kind},
		{Name: "provider", Column: &r.provider}, {Name: "model", Column: &r.model},
		{Name: "tool_name", Column: &r.toolName}, {Name: "tool_call_id", Column: &r.toolCall}, {Name: "tool_arguments", Column: &r.toolArguments},
		{Name: "delegate_to", Column: &r.delegateTo}, {Name: "delegate_task", Column: &r.delegateTask},
		{Name: "child_run_id", Column: &r.childRun}, {Name: "link_method", Column: &r.linkMethod},
		{Name: "finish_reason", Column: &r.finishReason},
		{Name: "is_error", Column: &r.isError}, {Name: "complete", Column: &r.complete}, {Name: "hidden", Column: &r.hidden},
		{Name: "content", Column: &r.content}, {Name: "content_bytes", Column: &r.contentBytes},
		{Name: "input_tokens", Column: &r.input}, {Name: "output_tokens", Column: &r.output},
		{Name: "cache_read_tokens", Column: &r.cacheRead}, {Name: "cache_write_tokens", Column: &r.cacheWrite},
		{Name: "reasoning_tokens", Column: &r.reasoning},
		{Name: "attributes", Column: &r.attributes}, {Name: "ver", Column: &r.ver}, {Name: "is_deleted", Column: &r.isDeleted},
	})}
	return r
}

// add appends m as a row and returns the bytes of its texts.
func (r *messageRows) add(m *msg.Message) int {
	h := &m.Host
	r.tenant.Append(h.Tenant)
	r.source.Append(h.Source)
	r.format.Append(h.Format)
	r.ts.Append(m.Time)
	r.session.AppendString(m.Session)
	r.run.AppendString(m.Run)
	r.parentRun.AppendString(m.ParentRun)
	r.id.Append(h.ID[:])
	r.seq.Append(h.Seq)
	r.parentMessage.AppendHex(h.Parent[:])
	r.trace.AppendHex(h.TraceID[:])
	r.span.AppendHex(h.SpanID[:])
	r.agentID.AppendString(m.Agent.ID)
	r.agentName.Append(m.Agent.Name)
	r.agentKind.Append(m.Agent.Kind.String())
	r.role.Append(m.Role.String())
	r.kind.Append(m.Kind.String())
	r.provider.Append(m.Provider)
	r.model.Append(m.Model)
	r.toolName.Append(m.Tool.Name)
	r.toolCall.AppendString(m.Tool.ID())
	n := r.toolArguments.Append(m.Tool.Arguments)
	r.delegateTo.Append(m.Delegation.To)
	n += r.delegateTask.Append(m.Delegation.Task)
	r.childRun.AppendString(m.Delegation.ChildRun)
	r.linkMethod.Append(m.Delegation.Link.String())
	r.finishReason.Append(m.FinishReason)
	r.isError.Append(m.IsError)
	r.complete.Append(m.Complete > msg.Partial)
	r.hidden.Append(m.Hidden)
	size := r.content.Append(m.Content)
	r.contentBytes.Append(uint32(size))
	r.input.Append(m.Usage.Input)
	r.output.Append(m.Usage.Output)
	r.cacheRead.Append(m.Usage.CacheRead)
	r.cacheWrite.Append(m.Usage.CacheWrite)
	r.reasoning.Append(m.Usage.Reasoning)
	m.EachAttribute(r.attribute)
	r.attributes.EndRow()
	ver, deleted := version(h.Ver, h.Tombstone)
	r.ver.Append(ver)
	r.isDeleted.Append(deleted)
	return n + size
}

// version returns the columns ver and is_deleted of a message or a span. One that
// takes back an earlier version carries the version that stands. Where both have one
// sort key they are one row, and the one that stands must win: so the take-back is
// given the version just below, which is no lower than what it takes back.
func version(ver uint64, deleted bool) (uint64, uint8) {
	if !deleted {
		return ver, 0
	}
	return max(ver, 1) - 1, 1
}
