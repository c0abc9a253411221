package clickhouse

import (
	"strconv"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// The writers of rows are generated: rows_gen.go has a type for each table, with a column
// for each line of core/msg/schema. Here are the values that are more than a field.

// rowVersion returns the column ver of a message or a span. A tombstone carries the version
// that replaces the earlier row. Where both have one sort key they are one row, and the
// replacement must win: so the tombstone has the version just below, which is no lower than
// that of the row it removes.
func rowVersion(ver uint64, tombstone bool) uint64 {
	if !tombstone {
		return ver
	}
	return max(ver, 1) - 1
}

// Bits of Span.Ver, see package assemble: the revision of the decoder, the state, and below
// it the order of two versions of one state.
const (
	revisionBits = 0xff << 56
	closedBit    = 1 << 55
	orderBits    = 1<<54 - 1
)

// spanVersion returns the column ver of a span. By Span.Ver an open span is older than its
// end by silence, also when it continued later. In the table the one with the later event
// is the newer, and of two with the same event the end.
func spanVersion(s *msg.Span) uint64 {
	v := s.Ver
	if s.State != msg.SpanClosed && v&closedBit == 0 {
		v = v&revisionBits | v&orderBits<<1 | uint64(flag(s.State == msg.SpanIdle))
	}
	return rowVersion(v, s.Tombstone)
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// duration is how long the work of an ended span took, in nanoseconds.
func duration(s *msg.Span) uint64 {
	if s.State == msg.SpanOpen {
		return 0
	}
	return uint64(max(s.End-s.Start, 0))
}

// worked is how long the work of a delegation took, which may have been done before its
// result, or go on after it: nanoseconds; 0 when that is its duration.
func worked(s *msg.Span) uint64 {
	if s.State != msg.SpanOpen && s.Worked > s.Start {
		return uint64(s.Worked - s.Start)
	}
	return 0
}

// whileOpen is a time that an open span has and one that has ended does not need.
func whileOpen(s *msg.Span, t int64) int64 {
	if s.State != msg.SpanOpen {
		return 0
	}
	return t
}

// outcome is the column of that name.
func outcome(s *msg.Span) string {
	if s.Outcome == msg.OutcomeUnset {
		return ""
	}
	return s.Outcome.String()
}

// firstToken is how long a chat's first token took, in nanoseconds; 0 when that is unknown.
func firstToken(s *msg.Span) uint64 {
	if s.Kind != msg.SpanChat || s.FirstToken == 0 {
		return 0
	}
	return uint64(max(s.FirstToken-s.Start, 0))
}

func (r *messageRows) appendAttributes(m *msg.Message) {
	m.EachAttribute(r.attributes.Append)
	r.attributes.EndRow()
}

// appendAttributes appends the attributes that have a column by the conventions alone, and to
// the map those without a column.
func (r *spanRows) appendAttributes(s *msg.Span) {
	var request, response, provider, finish string
	r.profile.Attributes(s, func(key string, v semconv.Value) {
		switch key {
		case semconv.KeyRequestModel:
			request = v.Str
		case semconv.KeyResponseModel:
			response = v.Str
		case semconv.KeyProvider:
			provider = v.Str
		case semconv.KeyFinishReasons:
			finish = string(v.AppendText(r.scratch[:0]))
		default:
			if hasColumn(key) {
				return
			}
			r.attributes.Keys.Append(key)
			r.scratch = v.AppendText(r.scratch[:0])
			r.attributes.Values.AppendBytes(r.scratch)
		}
	})
	r.attributes.EndRow()
	r.requestModel.Append(request)
	r.responseModel.Append(response)
	r.provider.Append(provider)
	r.finishReasons.Append(finish)
}

// hasColumn reports whether the view otel_traces makes the attribute from columns.
func hasColumn(key string) bool {
	switch key {
	case semconv.KeyOperation, semconv.KeyConversation, semconv.KeyAgentName, semconv.KeyWorkflowName, semconv.KeyResponseID,
		semconv.KeyTimeToFirstChunk, semconv.KeyToolName, semconv.KeyToolType, semconv.KeyToolCallID, semconv.KeyMCPMethod, semconv.KeyMCPServer,
		semconv.KeyUsageInput, semconv.KeyUsageOutput, semconv.KeyUsageCacheRead, semconv.KeyUsageCacheCreation, semconv.KeyUsageCacheWrite,
		semconv.KeyUsageReasoning, semconv.KeyProvenance, semconv.KeyErrorType, semconv.KeyCancelReason, semconv.KeyOutcome, semconv.KeyWaitsFor,
		semconv.KeyTenant, semconv.KeySource, semconv.KeyFormat, semconv.KeySession, semconv.KeyRun, semconv.KeyParentRun, semconv.KeyEnded,
		semconv.KeyAgentOwnID, semconv.KeyAgentKind, semconv.KeyState, semconv.KeyDelegateTo, semconv.KeyDelegateAsync, semconv.KeyChildRun,
		semconv.KeyLinkMethod, semconv.KeyConfidence, semconv.KeyToolInternal, semconv.KeyArgumentBytes, semconv.KeyResultBytes:
		return true
	}
	return false
}

func (r *spanRows) appendEvents(s *msg.Span) {
	for i := range s.Events {
		e := &s.Events[i]
		r.eventsTime.Of.AppendRaw(proto.DateTime64(e.Time))
		r.eventsName.Of.Append(r.profile.EventName(e))
		for _, a := range e.Attrs {
			r.eventsAttributes.Of.Append(a.Key, a.Value)
		}
		r.eventsAttributes.Of.EndRow()
	}
	r.eventsTime.EndRow()
	r.eventsName.EndRow()
	r.eventsAttributes.EndRow()
}

func (r *spanRows) appendLinks(s *msg.Span) {
	for i := range s.Links {
		l := &s.Links[i]
		r.linksTraceID.Of.AppendHex(l.TraceID[:])
		r.linksSpanID.Of.AppendHex(l.SpanID[:])
		r.linksState.Of.AppendString(l.State)
		for _, a := range l.Attrs {
			r.linksAttributes.Of.Append(a.Key, a.Value)
		}
		r.linksAttributes.Of.EndRow()
	}
	r.linksTraceID.EndRow()
	r.linksSpanID.EndRow()
	r.linksState.EndRow()
	r.linksAttributes.EndRow()
}

// finding is an event of a run that reports an anomaly.
type finding struct {
	span       *msg.Span
	time       int64
	kind, tool string
	count      uint64
}

// findings returns those of the spans, of running ones as well: a loop is shown while it
// goes on. A tombstone is left out: another row with the same key follows.
func findings(spans []*msg.Span) (list []finding) {
	for _, s := range spans {
		for k := range s.Events {
			e := &s.Events[k]
			if e.Name != msg.EventFinding || s.Tombstone {
				continue
			}
			f := finding{span: s, time: e.Time}
			for _, a := range e.Attrs {
				switch a.Key {
				case msg.FindingKind:
					f.kind = a.Value
				case msg.FindingTool:
					f.tool = a.Value
				case msg.FindingCount:
					f.count, _ = strconv.ParseUint(a.Value, 10, 64) // written by the detector: always a number
				}
			}
			list = append(list, f)
		}
	}
	return list
}
