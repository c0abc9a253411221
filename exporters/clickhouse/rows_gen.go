// Code generated from core/msg/schema; DO NOT EDIT.

package clickhouse

import (
	"cmp"
	"encoding/hex"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
	"github.com/earshot-dev/earshot/exporters/clickhouse/internal/native"
)

// messageRows builds rows of the table messages.
type messageRows struct {
	table

	tenant           native.Dict
	source           native.Dict
	format           native.Dict
	ts               proto.ColDateTime64
	sessionID        native.Text
	runID            native.Text
	parentRunID      native.Text
	messageID        proto.ColFixedStr
	seq              proto.ColUInt64
	parentMessageID  native.Text
	traceID          native.Text
	spanID           native.Text
	agentID          native.Text
	agentName        native.Dict
	agentKind        native.Dict
	role             native.Dict
	kind             native.Dict
	provider         native.Dict
	model            native.Dict
	toolName         native.Dict
	toolCallID       native.Text
	toolArguments    native.Text
	delegateTo       native.Dict
	delegateTask     native.Text
	childRunID       native.Text
	linkMethod       native.Dict
	finishReason     native.Dict
	isError          proto.ColBool
	complete         proto.ColBool
	hidden           proto.ColBool
	content          native.Text
	contentBytes     proto.ColUInt32
	inputTokens      proto.ColUInt64
	outputTokens     proto.ColUInt64
	cacheReadTokens  proto.ColUInt64
	cacheWriteTokens proto.ColUInt64
	reasoningTokens  proto.ColUInt64
	attributes       native.Map
	ver              proto.ColUInt64
	isDeleted        proto.ColUInt8
}

func newMessageRows() *messageRows {
	r := &messageRows{
		ts:        proto.ColDateTime64{Precision: 9, PrecisionSet: true, Location: time.UTC},
		messageID: proto.ColFixedStr{Size: 32},
	}
	r.table = table{name: "messages", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant},
		{Name: "source", Column: &r.source},
		{Name: "format", Column: &r.format},
		{Name: "ts", Column: &r.ts},
		{Name: "session_id", Column: &r.sessionID},
		{Name: "run_id", Column: &r.runID},
		{Name: "parent_run_id", Column: &r.parentRunID},
		{Name: "message_id", Column: &r.messageID},
		{Name: "seq", Column: &r.seq},
		{Name: "parent_message_id", Column: &r.parentMessageID},
		{Name: "trace_id", Column: &r.traceID},
		{Name: "span_id", Column: &r.spanID},
		{Name: "agent_id", Column: &r.agentID},
		{Name: "agent_name", Column: &r.agentName},
		{Name: "agent_kind", Column: &r.agentKind},
		{Name: "role", Column: &r.role},
		{Name: "kind", Column: &r.kind},
		{Name: "provider", Column: &r.provider},
		{Name: "model", Column: &r.model},
		{Name: "tool_name", Column: &r.toolName},
		{Name: "tool_call_id", Column: &r.toolCallID},
		{Name: "tool_arguments", Column: &r.toolArguments},
		{Name: "delegate_to", Column: &r.delegateTo},
		{Name: "delegate_task", Column: &r.delegateTask},
		{Name: "child_run_id", Column: &r.childRunID},
		{Name: "link_method", Column: &r.linkMethod},
		{Name: "finish_reason", Column: &r.finishReason},
		{Name: "is_error", Column: &r.isError},
		{Name: "complete", Column: &r.complete},
		{Name: "hidden", Column: &r.hidden},
		{Name: "content", Column: &r.content},
		{Name: "content_bytes", Column: &r.contentBytes},
		{Name: "input_tokens", Column: &r.inputTokens},
		{Name: "output_tokens", Column: &r.outputTokens},
		{Name: "cache_read_tokens", Column: &r.cacheReadTokens},
		{Name: "cache_write_tokens", Column: &r.cacheWriteTokens},
		{Name: "reasoning_tokens", Column: &r.reasoningTokens},
		{Name: "attributes", Column: &r.attributes},
		{Name: "ver", Column: &r.ver},
		{Name: "is_deleted", Column: &r.isDeleted},
	})}
	return r
}

// add appends a row.
func (r *messageRows) add(m *msg.Message) {
	r.tenant.Append(m.Host.Tenant)
	r.source.Append(m.Host.Source)
	r.format.Append(m.Host.Format)
	r.ts.AppendRaw(proto.DateTime64(m.Time))
	r.sessionID.AppendString(m.Session)
	r.runID.AppendString(m.Run)
	r.parentRunID.AppendString(m.ParentRun)
	r.messageID.Buf = hex.AppendEncode(r.messageID.Buf, m.Host.ID[:])
	r.seq.Append(m.Host.Seq)
	r.parentMessageID.AppendHex(m.Host.Parent[:])
	r.traceID.AppendHex(m.Host.TraceID[:])
	r.spanID.AppendHex(m.Host.SpanID[:])
	r.agentID.AppendString(m.Agent.ID)
	r.agentName.Append(m.Agent.Name)
	r.agentKind.Append(m.Agent.Kind.String())
	r.role.Append(m.Role.String())
	r.kind.Append(m.Kind.String())
	r.provider.Append(m.Provider)
	r.model.Append(m.Model)
	r.toolName.Append(m.Tool.Name)
	r.toolCallID.AppendString(m.Tool.ID())
	r.toolArguments.Append(m.Tool.Arguments)
	r.delegateTo.Append(m.Delegation.To)
	r.delegateTask.Append(m.Delegation.Task)
	r.childRunID.AppendString(m.Delegation.ChildRun)
	r.linkMethod.Append(m.Delegation.Link.String())
	r.finishReason.Append(m.FinishReason)
	r.isError.Append(m.IsError)
	r.complete.Append(m.Complete > msg.Partial)
	r.hidden.Append(m.Hidden)
	contentLen := r.content.Append(m.Content)
	r.contentBytes.Append(uint32(contentLen))
	r.inputTokens.Append(m.Usage.Input)
	r.outputTokens.Append(m.Usage.Output)
	r.cacheReadTokens.Append(m.Usage.CacheRead)
	r.cacheWriteTokens.Append(m.Usage.CacheWrite)
	r.reasoningTokens.Append(m.Usage.Reasoning)
	r.appendAttributes(m)
	r.ver.Append(rowVersion(m.Host.Ver, m.Host.Tombstone))
	r.isDeleted.Append(flag(m.Host.Tombstone))
}

// spanRows builds rows of the table spans.
//
// The sort key is the hour of the start, the session and the span id, and the id contains
// the session. The trace is not part of it: a span that moves to another trace has a higher
// version, which replaces the row, and the tombstone of the earlier trace has a lower one.
// The tombstone of an earlier start removes a row if the start was in another hour.
//
// An attribute of the conventions is a column, or follows from columns, or is in the map
// attributes; the view otel_traces has all of them in one map.
type spanRows struct {
	table
	profile *semconv.Profile

	tenant             native.Dict
	ts                 proto.ColDateTime64
	source             native.Dict
	format             native.Dict
	sessionID          native.Text
	unnamed            proto.ColBool
	runID              native.Text
	parentRunID        native.Text
	traceID            proto.ColFixedStr
	spanID             proto.ColFixedStr
	parentSpanID       proto.ColFixedStr
	kind               native.Dict
	state              native.Dict
	outcome            native.Dict
	errorType          native.Dict
	statusMessage      native.Text
	durationNs         proto.ColUInt64
	workedNs           proto.ColUInt64
	lastSeen           proto.ColDateTime64
	aliveAt            proto.ColDateTime64
	name               native.Dict
	agentID            native.Text
	agentName          native.Dict
	agentKind          native.Dict
	model              native.Dict
	requestModel       native.Dict
	responseModel      native.Dict
	provider           native.Dict
	responseID         native.Text
	finishReasons      native.Dict
	ended              native.Dict
	firstTokenNs       proto.ColUInt64
	inputTokens        proto.ColUInt64
	outputTokens       proto.ColUInt64
	cacheReadTokens    proto.ColUInt64
	cacheWriteTokens   proto.ColUInt64
	reasoningTokens    proto.ColUInt64
	cacheWrite1hTokens proto.ColUInt64
	tier               native.Dict
	statedPicodollars  proto.ColUInt64
	usageProvenance    native.Dict
	toolName           native.Dict
	mcpServer          native.Dict
	toolCallID         native.Text
	internal           proto.ColBool
	argsBytes          proto.ColUInt32
	argsShape          native.Dict
	resultBytes        proto.ColUInt32
	attempt            proto.ColUInt16
	resultTokens       proto.ColUInt32
	resultTokensFrom   native.Dict
	waitsFor           native.Dict
	waitedNs           proto.ColUInt64
	delegateTo         native.Dict
	delegateID         native.Text
	childRunID         native.Text
	linkMethod         native.Dict
	linkConfidence     proto.ColUInt8
	async              proto.ColBool
	convention         native.Dict
	attributes         native.Map
	eventsTime         *native.Array[*proto.ColDateTime64]
	eventsName         *native.Array[*native.Dict]
	eventsAttributes   *native.Array[*native.Map]
	linksTraceID       *native.Array[*native.Text]
	linksSpanID        *native.Array[*native.Text]
	linksState         *native.Array[*native.Text]
	linksAttributes    *native.Array[*native.Map]
	project            native.Dict
	branch             native.Dict
	agentVersion       native.Dict
	host               native.Dict
	user               native.Dict
	ver                proto.ColUInt64
	isDeleted          proto.ColUInt8
}

func newSpanRows(p *semconv.Profile) *spanRows {
	r := &spanRows{
		ts:               proto.ColDateTime64{Precision: 9, PrecisionSet: true, Location: time.UTC},
		traceID:          proto.ColFixedStr{Size: 16},
		spanID:           proto.ColFixedStr{Size: 8},
		parentSpanID:     proto.ColFixedStr{Size: 8},
		lastSeen:         proto.ColDateTime64{Precision: 9, PrecisionSet: true, Location: time.UTC},
		aliveAt:          proto.ColDateTime64{Precision: 9, PrecisionSet: true, Location: time.UTC},
		eventsTime:       native.NewArray(&proto.ColDateTime64{Precision: 9, PrecisionSet: true, Location: time.UTC}),
		eventsName:       native.NewArray(&native.Dict{}),
		eventsAttributes: native.NewArray(&native.Map{}),
		linksTraceID:     native.NewArray(&native.Text{}),
		linksSpanID:      native.NewArray(&native.Text{}),
		linksState:       native.NewArray(&native.Text{}),
		linksAttributes:  native.NewArray(&native.Map{}),
		profile:          p,
	}
	r.table = table{name: "spans", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant},
		{Name: "ts", Column: &r.ts},
		{Name: "source", Column: &r.source},
		{Name: "format", Column: &r.format},
		{Name: "session_id", Column: &r.sessionID},
		{Name: "unnamed", Column: &r.unnamed},
		{Name: "run_id", Column: &r.runID},
		{Name: "parent_run_id", Column: &r.parentRunID},
		{Name: "trace_id", Column: &r.traceID},
		{Name: "span_id", Column: &r.spanID},
		{Name: "parent_span_id", Column: &r.parentSpanID},
		{Name: "kind", Column: &r.kind},
		{Name: "state", Column: &r.state},
		{Name: "outcome", Column: &r.outcome},
		{Name: "error_type", Column: &r.errorType},
		{Name: "status_message", Column: &r.statusMessage},
		{Name: "duration_ns", Column: &r.durationNs},
		{Name: "worked_ns", Column: &r.workedNs},
		{Name: "last_seen", Column: &r.lastSeen},
		{Name: "alive_at", Column: &r.aliveAt},
		{Name: "name", Column: &r.name},
		{Name: "agent_id", Column: &r.agentID},
		{Name: "agent_name", Column: &r.agentName},
		{Name: "agent_kind", Column: &r.agentKind},
		{Name: "model", Column: &r.model},
		{Name: "request_model", Column: &r.requestModel},
		{Name: "response_model", Column: &r.responseModel},
		{Name: "provider", Column: &r.provider},
		{Name: "response_id", Column: &r.responseID},
		{Name: "finish_reasons", Column: &r.finishReasons},
		{Name: "ended", Column: &r.ended},
		{Name: "first_token_ns", Column: &r.firstTokenNs},
		{Name: "input_tokens", Column: &r.inputTokens},
		{Name: "output_tokens", Column: &r.outputTokens},
		{Name: "cache_read_tokens", Column: &r.cacheReadTokens},
		{Name: "cache_write_tokens", Column: &r.cacheWriteTokens},
		{Name: "reasoning_tokens", Column: &r.reasoningTokens},
		{Name: "cache_write_1h_tokens", Column: &r.cacheWrite1hTokens},
		{Name: "tier", Column: &r.tier},
		{Name: "stated_picodollars", Column: &r.statedPicodollars},
		{Name: "usage_provenance", Column: &r.usageProvenance},
		{Name: "tool_name", Column: &r.toolName},
		{Name: "mcp_server", Column: &r.mcpServer},
		{Name: "tool_call_id", Column: &r.toolCallID},
		{Name: "internal", Column: &r.internal},
		{Name: "args_bytes", Column: &r.argsBytes},
		{Name: "args_shape", Column: &r.argsShape},
		{Name: "result_bytes", Column: &r.resultBytes},
		{Name: "attempt", Column: &r.attempt},
		{Name: "result_tokens", Column: &r.resultTokens},
		{Name: "result_tokens_from", Column: &r.resultTokensFrom},
		{Name: "waits_for", Column: &r.waitsFor},
		{Name: "waited_ns", Column: &r.waitedNs},
		{Name: "delegate_to", Column: &r.delegateTo},
		{Name: "delegate_id", Column: &r.delegateID},
		{Name: "child_run_id", Column: &r.childRunID},
		{Name: "link_method", Column: &r.linkMethod},
		{Name: "link_confidence", Column: &r.linkConfidence},
		{Name: "async", Column: &r.async},
		{Name: "convention", Column: &r.convention},
		{Name: "attributes", Column: &r.attributes},
		{Name: "events.time", Column: r.eventsTime},
		{Name: "events.name", Column: r.eventsName},
		{Name: "events.attributes", Column: r.eventsAttributes},
		{Name: "links.trace_id", Column: r.linksTraceID},
		{Name: "links.span_id", Column: r.linksSpanID},
		{Name: "links.state", Column: r.linksState},
		{Name: "links.attributes", Column: r.linksAttributes},
		{Name: "project", Column: &r.project},
		{Name: "branch", Column: &r.branch},
		{Name: "agent_version", Column: &r.agentVersion},
		{Name: "host", Column: &r.host},
		{Name: "user", Column: &r.user},
		{Name: "ver", Column: &r.ver},
		{Name: "is_deleted", Column: &r.isDeleted},
	})}
	return r
}

// add appends a row.
func (r *spanRows) add(s *msg.Span) {
	r.tenant.Append(s.Tenant)
	r.ts.AppendRaw(proto.DateTime64(s.Start))
	r.source.Append(s.Source)
	r.format.Append(s.Format)
	r.sessionID.AppendString(s.Session)
	r.unnamed.Append(s.Unnamed)
	r.runID.AppendString(s.Run)
	r.parentRunID.AppendString(s.ParentRun)
	r.traceID.Append(s.TraceID[:])
	r.spanID.Append(s.ID[:])
	r.parentSpanID.Append(s.Parent[:])
	r.kind.Append(s.Kind.String())
	r.state.Append(s.State.String())
	r.outcome.Append(outcome(s))
	r.errorType.Append(s.ErrorType)
	r.statusMessage.AppendString(s.StatusMessage)
	r.durationNs.Append(duration(s))
	r.workedNs.Append(worked(s))
	r.lastSeen.AppendRaw(proto.DateTime64(whileOpen(s, s.LastSeen)))
	r.aliveAt.AppendRaw(proto.DateTime64(whileOpen(s, cmp.Or(s.Alive, s.LastSeen))))
	r.name.Append(r.profile.Name(s))
	r.agentID.AppendString(s.Agent.ID)
	r.agentName.Append(s.Agent.Name)
	r.agentKind.Append(s.Agent.Kind.String())
	r.model.Append(s.Model)
	r.appendAttributes(s)
	r.responseID.AppendString(s.ResponseID)
	r.ended.Append(s.Ended)
	r.firstTokenNs.Append(firstToken(s))
	r.inputTokens.Append(s.Usage.Input)
	r.outputTokens.Append(s.Usage.Output)
	r.cacheReadTokens.Append(s.Usage.CacheRead)
	r.cacheWriteTokens.Append(s.Usage.CacheWrite)
	r.reasoningTokens.Append(s.Usage.Reasoning)
	r.cacheWrite1hTokens.Append(s.Usage.CacheWrite1h)
	r.tier.Append(s.Usage.Tier)
	r.statedPicodollars.Append(s.Usage.Stated)
	r.usageProvenance.Append(s.Usage.Provenance.String())
	r.toolName.Append(s.Tool.Name)
	r.mcpServer.Append(s.Tool.Server)
	r.toolCallID.AppendString(s.Tool.ID())
	r.internal.Append(s.Tool.Internal)
	r.argsBytes.Append(s.ArgumentBytes)
	r.argsShape.Append(s.ArgumentShape)
	r.resultBytes.Append(s.ResultBytes)
	r.attempt.Append(s.Attempt)
	r.resultTokens.Append(s.ResultTokens)
	r.resultTokensFrom.Append(s.ResultTokensFrom.String())
	r.waitsFor.Append(s.WaitsFor())
	r.waitedNs.Append(uint64(s.Waited()))
	r.delegateTo.Append(s.Delegate.To)
	r.delegateID.AppendString(s.Delegate.ToID)
	r.childRunID.AppendString(s.Delegate.ChildRun)
	r.linkMethod.Append(s.Delegate.Link.String())
	r.linkConfidence.Append(s.Delegate.Confidence)
	r.async.Append(s.Delegate.Async)
	r.convention.Append(r.profile.String())
	r.appendEvents(s)
	r.appendLinks(s)
	r.project.Append(s.Client.Project)
	r.branch.Append(s.Client.Branch)
	r.agentVersion.Append(s.Client.Version)
	r.host.Append(s.Client.Host)
	r.user.Append(s.Client.User)
	r.ver.Append(spanVersion(s))
	r.isDeleted.Append(flag(s.Tombstone))
}

// findingRows builds rows of the table findings.
type findingRows struct {
	table

	tenant    native.Dict
	ts        proto.ColDateTime64
	source    native.Dict
	format    native.Dict
	kind      native.Dict
	toolName  native.Dict
	agentName native.Dict
	count     proto.ColUInt64
	sessionID native.Text
	runID     native.Text
	traceID   native.Text
	spanID    proto.ColFixedStr
	ver       proto.ColUInt64
}

func newFindingRows() *findingRows {
	r := &findingRows{
		ts:     proto.ColDateTime64{Precision: 9, PrecisionSet: true, Location: time.UTC},
		spanID: proto.ColFixedStr{Size: 16},
	}
	r.table = table{name: "findings", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant},
		{Name: "ts", Column: &r.ts},
		{Name: "source", Column: &r.source},
		{Name: "format", Column: &r.format},
		{Name: "kind", Column: &r.kind},
		{Name: "tool_name", Column: &r.toolName},
		{Name: "agent_name", Column: &r.agentName},
		{Name: "count", Column: &r.count},
		{Name: "session_id", Column: &r.sessionID},
		{Name: "run_id", Column: &r.runID},
		{Name: "trace_id", Column: &r.traceID},
		{Name: "span_id", Column: &r.spanID},
		{Name: "ver", Column: &r.ver},
	})}
	return r
}

// add appends a row.
func (r *findingRows) add(f *finding) {
	r.tenant.Append(f.span.Tenant)
	r.ts.AppendRaw(proto.DateTime64(f.time))
	r.source.Append(f.span.Source)
	r.format.Append(f.span.Format)
	r.kind.Append(f.kind)
	r.toolName.Append(f.tool)
	r.agentName.Append(f.span.Agent.Name)
	r.count.Append(f.count)
	r.sessionID.AppendString(f.span.Session)
	r.runID.AppendString(f.span.Run)
	r.traceID.AppendHex(f.span.TraceID[:])
	r.spanID.Buf = hex.AppendEncode(r.spanID.Buf, f.span.ID[:])
	r.ver.Append(f.span.Ver)
}

// verdictRows builds rows of the table verdicts.
type verdictRows struct {
	table

	tenant      native.Dict
	since       proto.ColDateTime64
	madeAt      proto.ColDateTime64
	resolvedAt  proto.ColDateTime64
	resolution  native.Dict
	source      native.Dict
	format      native.Dict
	verdict     native.Dict
	evidence    native.Text
	kind        native.Dict
	agentName   native.Dict
	toolName    native.Dict
	path        native.Text
	words       native.Text
	sessionID   native.Text
	runID       native.Text
	traceID     native.Text
	spanID      proto.ColFixedStr
	causeSpanID native.Text
	ver         proto.ColUInt64
}

func newVerdictRows() *verdictRows {
	r := &verdictRows{
		since:      proto.ColDateTime64{Precision: 9, PrecisionSet: true, Location: time.UTC},
		madeAt:     proto.ColDateTime64{Precision: 3, PrecisionSet: true, Location: time.UTC},
		resolvedAt: proto.ColDateTime64{Precision: 3, PrecisionSet: true, Location: time.UTC},
		spanID:     proto.ColFixedStr{Size: 16},
	}
	r.table = table{name: "verdicts", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant},
		{Name: "since", Column: &r.since},
		{Name: "made_at", Column: &r.madeAt},
		{Name: "resolved_at", Column: &r.resolvedAt},
		{Name: "resolution", Column: &r.resolution},
		{Name: "source", Column: &r.source},
		{Name: "format", Column: &r.format},
		{Name: "verdict", Column: &r.verdict},
		{Name: "evidence", Column: &r.evidence},
		{Name: "kind", Column: &r.kind},
		{Name: "agent_name", Column: &r.agentName},
		{Name: "tool_name", Column: &r.toolName},
		{Name: "path", Column: &r.path},
		{Name: "words", Column: &r.words},
		{Name: "session_id", Column: &r.sessionID},
		{Name: "run_id", Column: &r.runID},
		{Name: "trace_id", Column: &r.traceID},
		{Name: "span_id", Column: &r.spanID},
		{Name: "cause_span_id", Column: &r.causeSpanID},
		{Name: "ver", Column: &r.ver},
	})}
	return r
}

// add appends a row.
func (r *verdictRows) add(v *msg.Verdict) {
	r.tenant.Append(v.Tenant)
	r.since.AppendRaw(proto.DateTime64(v.Since))
	r.madeAt.AppendRaw(proto.DateTime64(v.At / 1e6))
	r.resolvedAt.AppendRaw(proto.DateTime64(v.Resolved / 1e6))
	r.resolution.Append(v.Resolution)
	r.source.Append(v.Source)
	r.format.Append(v.Format)
	r.verdict.Append(v.Name)
	r.evidence.AppendString(v.Evidence)
	r.kind.Append(v.Kind.String())
	r.agentName.Append(v.Agent)
	r.toolName.Append(v.Tool)
	r.path.AppendString(v.Path)
	r.words.AppendString(v.Words)
	r.sessionID.AppendString(v.Session)
	r.runID.AppendString(v.Run)
	r.traceID.AppendHex(v.TraceID[:])
	r.spanID.Buf = hex.AppendEncode(r.spanID.Buf, v.Span[:])
	r.causeSpanID.AppendHex(v.Cause[:])
	r.ver.Append(v.Ver)
}

// deadLetterRows builds rows of the table dead_letters.
type deadLetterRows struct {
	table

	tenant       native.Dict
	source       native.Dict
	dlID         proto.ColFixedStr
	format       native.Dict
	sessionID    native.Text
	stage        native.Dict
	reason       native.Dict
	error        native.Text
	origin       native.Text
	originOffset proto.ColInt64
	payload      native.Text
	payloadBytes proto.ColUInt64
	seenAt       proto.ColDateTime64
	resolved     proto.ColBool
	ver          proto.ColUInt64
}

func newDeadLetterRows() *deadLetterRows {
	r := &deadLetterRows{
		dlID:   proto.ColFixedStr{Size: 32},
		seenAt: proto.ColDateTime64{Precision: 3, PrecisionSet: true, Location: time.UTC},
	}
	r.table = table{name: "dead_letters", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant},
		{Name: "source", Column: &r.source},
		{Name: "dl_id", Column: &r.dlID},
		{Name: "format", Column: &r.format},
		{Name: "session_id", Column: &r.sessionID},
		{Name: "stage", Column: &r.stage},
		{Name: "reason", Column: &r.reason},
		{Name: "error", Column: &r.error},
		{Name: "origin", Column: &r.origin},
		{Name: "origin_offset", Column: &r.originOffset},
		{Name: "payload", Column: &r.payload},
		{Name: "payload_bytes", Column: &r.payloadBytes},
		{Name: "seen_at", Column: &r.seenAt},
		{Name: "resolved", Column: &r.resolved},
		{Name: "ver", Column: &r.ver},
	})}
	return r
}

// add appends a row.
func (r *deadLetterRows) add(l *msg.DeadLetter) {
	r.tenant.Append(l.Tenant)
	r.source.Append(l.Source)
	r.dlID.Buf = hex.AppendEncode(r.dlID.Buf, l.ID[:])
	r.format.Append(l.Format)
	r.sessionID.AppendString(l.Session)
	r.stage.Append(l.Stage)
	r.reason.Append(l.Reason)
	r.error.AppendString(l.Detail)
	r.origin.AppendString(l.Origin)
	r.originOffset.Append(l.Offset)
	r.payload.AppendBytes(l.Payload)
	r.payloadBytes.Append(uint64(max(l.Bytes, 0)))
	r.seenAt.AppendRaw(proto.DateTime64(l.Seen / 1e6))
	r.resolved.Append(l.Resolved)
	r.ver.Append(l.Ver)
}

// ledgerRows builds rows of the table source_ledger.
type ledgerRows struct {
	table

	tenant           native.Dict
	source           native.Dict
	stream           native.Text
	format           native.Dict
	origin           native.Text
	readBytes        proto.ColInt64
	decodedBytes     proto.ColInt64
	quarantinedBytes proto.ColInt64
	droppedBytes     proto.ColInt64
	reason           native.Dict
	droppedAt        proto.ColDateTime64
	frames           proto.ColInt64
	messages         proto.ColInt64
	unknown          proto.ColInt64
	problems         proto.ColInt64
	seenAt           proto.ColDateTime64
	since            proto.ColDateTime64
	ver              proto.ColUInt64
}

func newLedgerRows() *ledgerRows {
	r := &ledgerRows{
		droppedAt: proto.ColDateTime64{Precision: 3, PrecisionSet: true, Location: time.UTC},
		seenAt:    proto.ColDateTime64{Precision: 3, PrecisionSet: true, Location: time.UTC},
		since:     proto.ColDateTime64{Precision: 3, PrecisionSet: true, Location: time.UTC},
	}
	r.table = table{name: "source_ledger", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant},
		{Name: "source", Column: &r.source},
		{Name: "stream", Column: &r.stream},
		{Name: "format", Column: &r.format},
		{Name: "origin", Column: &r.origin},
		{Name: "read_bytes", Column: &r.readBytes},
		{Name: "decoded_bytes", Column: &r.decodedBytes},
		{Name: "quarantined_bytes", Column: &r.quarantinedBytes},
		{Name: "dropped_bytes", Column: &r.droppedBytes},
		{Name: "reason", Column: &r.reason},
		{Name: "dropped_at", Column: &r.droppedAt},
		{Name: "frames", Column: &r.frames},
		{Name: "messages", Column: &r.messages},
		{Name: "unknown", Column: &r.unknown},
		{Name: "problems", Column: &r.problems},
		{Name: "seen_at", Column: &r.seenAt},
		{Name: "since", Column: &r.since},
		{Name: "ver", Column: &r.ver},
	})}
	return r
}

// add appends a row.
func (r *ledgerRows) add(l *msg.Ledger) {
	r.tenant.Append(l.Tenant)
	r.source.Append(l.Source)
	r.stream.AppendString(l.Stream)
	r.format.Append(l.Format)
	r.origin.AppendString(l.Origin)
	r.readBytes.Append(l.Read)
	r.decodedBytes.Append(l.Decoded)
	r.quarantinedBytes.Append(l.Quarantined)
	r.droppedBytes.Append(l.Dropped)
	r.reason.Append(l.Reason)
	r.droppedAt.AppendRaw(proto.DateTime64(l.DroppedAt / 1e6))
	r.frames.Append(l.Frames)
	r.messages.Append(l.Messages)
	r.unknown.Append(l.Unknown)
	r.problems.Append(l.Problems)
	r.seenAt.AppendRaw(proto.DateTime64(l.Seen / 1e6))
	r.since.AppendRaw(proto.DateTime64(l.Since / 1e6))
	r.ver.Append(l.Ver)
}

// streamRows builds rows of the table streams.
type streamRows struct {
	table

	tenant         native.Dict
	source         native.Dict
	format         native.Dict
	stream         native.Text
	startedAt      proto.ColDateTime64
	origin         native.Text
	method         native.Dict
	status         proto.ColUInt16
	sessionID      native.Text
	runID          native.Text
	chatSpanID     native.Text
	remoteTraceID  native.Text
	remoteSpanID   native.Text
	remoteState    native.Text
	firstByteNs    proto.ColUInt64
	firstChunkNs   proto.ColUInt64
	firstEventNs   proto.ColUInt64
	totalNs        proto.ColUInt64
	chunks         proto.ColUInt64
	bytes          proto.ColUInt64
	events         proto.ColUInt64
	longestStallNs proto.ColUInt64
	gapP50Ns       proto.ColUInt64
	gapP95Ns       proto.ColUInt64
	buffered       proto.ColBool
	ver            proto.ColUInt64
}

func newStreamRows() *streamRows {
	r := &streamRows{
		startedAt: proto.ColDateTime64{Precision: 9, PrecisionSet: true, Location: time.UTC},
	}
	r.table = table{name: "streams", block: native.NewBlock([]native.Named{
		{Name: "tenant", Column: &r.tenant},
		{Name: "source", Column: &r.source},
		{Name: "format", Column: &r.format},
		{Name: "stream", Column: &r.stream},
		{Name: "started_at", Column: &r.startedAt},
		{Name: "origin", Column: &r.origin},
		{Name: "method", Column: &r.method},
		{Name: "status", Column: &r.status},
		{Name: "session_id", Column: &r.sessionID},
		{Name: "run_id", Column: &r.runID},
		{Name: "chat_span_id", Column: &r.chatSpanID},
		{Name: "remote_trace_id", Column: &r.remoteTraceID},
		{Name: "remote_span_id", Column: &r.remoteSpanID},
		{Name: "remote_state", Column: &r.remoteState},
		{Name: "first_byte_ns", Column: &r.firstByteNs},
		{Name: "first_chunk_ns", Column: &r.firstChunkNs},
		{Name: "first_event_ns", Column: &r.firstEventNs},
		{Name: "total_ns", Column: &r.totalNs},
		{Name: "chunks", Column: &r.chunks},
		{Name: "bytes", Column: &r.bytes},
		{Name: "events", Column: &r.events},
		{Name: "longest_stall_ns", Column: &r.longestStallNs},
		{Name: "gap_p50_ns", Column: &r.gapP50Ns},
		{Name: "gap_p95_ns", Column: &r.gapP95Ns},
		{Name: "buffered", Column: &r.buffered},
		{Name: "ver", Column: &r.ver},
	})}
	return r
}

// add appends a row.
func (r *streamRows) add(s *msg.Stream) {
	r.tenant.Append(s.Tenant)
	r.source.Append(s.Source)
	r.format.Append(s.Format)
	r.stream.AppendString(s.Stream)
	r.startedAt.AppendRaw(proto.DateTime64(s.Pace.Start))
	r.origin.AppendString(s.Origin)
	r.method.Append(s.Method)
	r.status.Append(uint16(s.Status))
	r.sessionID.AppendString(s.Session)
	r.runID.AppendString(s.Run)
	r.chatSpanID.AppendHex(s.Chat[:])
	r.remoteTraceID.AppendHex(s.RemoteTrace[:])
	r.remoteSpanID.AppendHex(s.RemoteSpan[:])
	r.remoteState.AppendString(s.RemoteState)
	r.firstByteNs.Append(uint64(max(s.Pace.FirstByte, 0)))
	r.firstChunkNs.Append(uint64(max(s.Pace.FirstChunk, 0)))
	r.firstEventNs.Append(uint64(max(s.Pace.FirstEvent, 0)))
	r.totalNs.Append(uint64(max(s.Pace.Total, 0)))
	r.chunks.Append(uint64(max(s.Pace.Chunks, 0)))
	r.bytes.Append(uint64(max(s.Pace.Bytes, 0)))
	r.events.Append(uint64(max(s.Pace.Events, 0)))
	r.longestStallNs.Append(uint64(max(s.Pace.LongestStall, 0)))
	r.gapP50Ns.Append(uint64(max(s.Pace.GapP50, 0)))
	r.gapP95Ns.Append(uint64(max(s.Pace.GapP95, 0)))
	r.buffered.Append(s.Pace.Buffered)
	r.ver.Append(s.Ver)
}
