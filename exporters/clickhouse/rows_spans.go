package clickhouse

import (
	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
	"github.com/earshot-dev/earshot/exporters/clickhouse/internal/native"
)

// spanRows builds rows of the table otel_traces: spans that have ended, and
// those that are taken back.
//
// The sort key is start, trace and span id. It leaves out the collector's
// ServiceName and SpanName, which for us may change with a later version of a
// span: an agent's name becomes known, the same conversation is read through
// another source.
type spanRows struct {
	table
	profile *semconv.Profile

	ts                              native.Time
	trace, span, parent, traceState native.Text
	name, kind, service             native.Dict
	resource                        native.Map
	scopeName, scopeVersion         native.Text
	attributes                      native.Map
	duration                        proto.ColUInt64
	status                          native.Dict
	statusMessage                   native.Text
	eventTime                       *native.Array[*native.Time]
	eventName                       *native.Array[*native.Dict]
	eventAttrs                      *native.Array[*native.Map]
	linkTrace, linkSpan, linkState  *native.Array[*native.Text]
	linkAttrs                       *native.Array[*native.Map]
	ver                             proto.ColUInt64
	isDeleted                       proto.ColUInt8

	attribute func(key string, v semconv.Value)
	text      []byte
}

func newSpanRows(p *semconv.Profile) *spanRows {
	r := &spanRows{
		profile:    p,
		eventTime:  native.NewArray(&native.Time{}),
		eventName:  native.NewArray(&native.Dict{}),
		eventAttrs: native.NewArray(&native.Map{}),
		linkTrace:  native.NewArray(&native.Text{}),
		linkSpan:   native.NewArray(&native.Text{}),
		linkState:  native.NewArray(&native.Text{}),
		linkAttrs:  native.NewArray(&native.Map{}),
	}
	r.attribute = func(key string, v semconv.Value) {
		r.attributes.Keys.Append(key)
		r.text = v.AppendText(r.text[:0])
		r.attributes.Values.AppendBytes(r.text)
	}
	r.table = table{name: "otel_traces", block: native.NewBlock([]native.Named{
		{Name: "Timestamp", Column: &r.ts},
		{Name: "TraceId", Column: &r.trace}, {Name: "SpanId", Column: &r.span}, {Name: "ParentSpanId", Column: &r.parent},
		{Name: "TraceState", Column: &r.traceState},
		{Name: "SpanName", Column: &r.name}, {Name: "SpanKind", Column: &r.kind}, {Name: "ServiceName", Column: &r.service},
		{Name: "ResourceAttributes", Column: &r.resource},
		{Name: "ScopeName", Column: &r.scopeName}, {Name: "ScopeVersion", Column: &r.scopeVersion},
		{Name: "SpanAttributes", Column: &r.attributes}, {Name: "Duration", Column: &r.duration},
		{Name: "StatusCode", Column: &r.status}, {Name: "StatusMessage", Column: &r.statusMessage},
		{Name: "Events.Timestamp", Column: r.eventTime}, {Name: "Events.Name", Column: r.eventName},
		{Name: "Events.Attributes", Column: r.eventAttrs},
		{Name: "Links.TraceId", Column: r.linkTrace}, {Name: "Links.SpanId", Column: r.linkSpan},
		{Name: "Links.TraceState", Column: r.linkState}, {Name: "Links.Attributes", Column: r.linkAttrs},
		{Name: "Ver", Column: &r.ver}, {Name: "IsDeleted", Column: &r.isDeleted},
	})}
	return r
}

func (r *spanRows) takes(s *msg.Span) bool {
	return (s.State != msg.SpanOpen || s.Tombstone) && !s.Amends
}

func (r *spanRows) add(s *msg.Span) {
	code, text := r.profile.Status(s)
	service := semconv.ServiceName(s)
	r.ts.Append(s.Start)
	r.trace.AppendHex(s.TraceID[:])
	r.span.AppendHex(s.ID[:])
	r.parent.AppendHex(s.Parent[:])
	r.traceState.AppendString("")
	r.name.Append(r.profile.Name(s))
	r.kind.Append(r.profile.Kind(s).String())
	r.service.Append(service)
	r.resource.Append(semconv.KeyService, service)
	r.resource.EndRow()
	r.scopeName.AppendString(semconv.Scope)
	r.scopeVersion.AppendString("")
	r.profile.Attributes(s, r.attribute)
	r.attributes.EndRow()
	r.duration.Append(uint64(max(s.End-s.Start, 0)))
	r.status.Append(code.String())
	r.statusMessage.AppendString(text)
	r.events(s)
	r.links(s)
	ver, deleted := version(s.Ver, s.Tombstone)
	r.ver.Append(ver)
	r.isDeleted.Append(deleted)
}

func (r *spanRows) events(s *msg.Span) {
	for i := range s.Events {
		e := &s.Events[i]
		r.eventTime.Of.Append(e.Time)
		r.eventName.Of.Append(r.profile.EventName(e))
		for _, a := range e.Attrs {
			r.eventAttrs.Of.Append(a.Key, a.Value)
		}
		r.eventAttrs.Of.EndRow()
	}
	r.eventTime.EndRow()
	r.eventName.EndRow()
	r.eventAttrs.EndRow()
}

func (r *spanRows) links(s *msg.Span) {
	for i := range s.Links {
		l := &s.Links[i]
		r.linkTrace.Of.AppendHex(l.TraceID[:])
		r.linkSpan.Of.AppendHex(l.SpanID[:])
		r.linkState.Of.AppendString(l.State)
		for _, a := range l.Attrs {
			r.linkAttrs.Of.Append(a.Key, a.Value)
		}
		r.linkAttrs.Of.EndRow()
	}
	r.linkTrace.EndRow()
	r.linkSpan.EndRow()
	r.linkState.EndRow()
	r.linkAttrs.EndRow()
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
