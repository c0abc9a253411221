package clickhouse

import (
	"strconv"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// The writers of rows are generated: rows_gen.go has a type for each table, with a column
// for each line of core/msg/schema. Here is which spans a table takes, and the values that
// are more than a field.

// takes reports whether otel_traces has a row for the span: it has ended, or is a tombstone.
func (r *spanRows) takes(s *msg.Span) bool {
	return (s.State != msg.SpanOpen || s.Tombstone) && !s.Amends
}

func (r *callRows) takes(s *msg.Span) bool {
	return s.Kind == msg.SpanTool || s.Kind == msg.SpanDelegation
}

func (r *delegationRows) takes(s *msg.Span) bool {
	return s.Kind == msg.SpanDelegation && !s.Amends
}

func (r *openRows) takes(s *msg.Span) bool {
	return !s.Tombstone && (s.State == msg.SpanOpen || s.Shown)
}

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

// openVersion orders the rows of one span in open_spans: by the time of its last event, an
// end by silence behind the event that it followed, and the end by the protocol behind
// everything. Span.Ver would not do: by it a span that goes on after a silence is older than
// that silence.
func openVersion(s *msg.Span) uint64 {
	if s.State == msg.SpanClosed {
		return 1<<63 | 1
	}
	return uint64(max(s.LastSeen, 0))<<1 | uint64(flag(s.State == msg.SpanIdle))
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
// result, or go on after it: nanoseconds.
func worked(s *msg.Span) uint64 {
	if s.State != msg.SpanOpen && s.Worked > s.Start {
		return uint64(s.Worked - s.Start)
	}
	return duration(s)
}

// status is the column of that name. Work that has ended without an outcome is ok.
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

func (r *messageRows) appendAttributes(m *msg.Message) {
	m.EachAttribute(r.attributes.Append)
	r.attributes.EndRow()
}

func (r *spanRows) appendResource(s *msg.Span) {
	r.resourceAttributes.Append(semconv.KeyService, semconv.ServiceName(s))
	r.resourceAttributes.EndRow()
}

func (r *spanRows) appendAttributes(s *msg.Span) {
	r.profile.Attributes(s, func(key string, v semconv.Value) {
		r.spanAttributes.Keys.Append(key)
		r.scratch = v.AppendText(r.scratch[:0])
		r.spanAttributes.Values.AppendBytes(r.scratch)
	})
	r.spanAttributes.EndRow()
}

func (r *spanRows) appendStatus(s *msg.Span) {
	code, text := r.profile.Status(s)
	r.statusCode.Append(code.String())
	r.statusMessage.AppendString(text)
}

func (r *spanRows) appendEvents(s *msg.Span) {
	for i := range s.Events {
		e := &s.Events[i]
		r.eventsTimestamp.Of.AppendRaw(proto.DateTime64(e.Time))
		r.eventsName.Of.Append(r.profile.EventName(e))
		for _, a := range e.Attrs {
			r.eventsAttributes.Of.Append(a.Key, a.Value)
		}
		r.eventsAttributes.Of.EndRow()
	}
	r.eventsTimestamp.EndRow()
	r.eventsName.EndRow()
	r.eventsAttributes.EndRow()
}

func (r *spanRows) appendLinks(s *msg.Span) {
	for i := range s.Links {
		l := &s.Links[i]
		r.linksTraceId.Of.AppendHex(l.TraceID[:])
		r.linksSpanId.Of.AppendHex(l.SpanID[:])
		r.linksTraceState.Of.AppendString(l.State)
		for _, a := range l.Attrs {
			r.linksAttributes.Of.Append(a.Key, a.Value)
		}
		r.linksAttributes.Of.EndRow()
	}
	r.linksTraceId.EndRow()
	r.linksSpanId.EndRow()
	r.linksTraceState.EndRow()
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
func findings(spans []msg.Span) (list []finding) {
	for i := range spans {
		s := &spans[i]
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
