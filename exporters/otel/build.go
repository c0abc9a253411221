package otel

import (
	"maps"
	"slices"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// spanFlags of spans and links: sampled, and known to have a parent in the same
// process.
const spanFlags = 0x101

// exportable reports whether the span is sent.
func exportable(s *msg.Span) bool { return s.State != msg.SpanOpen && !s.Tombstone && !s.Amends }

// span builds the OTLP form of a span.
func (x *Exporter) span(s *msg.Span) *tracepb.Span {
	p := x.settings.Profile
	out := &tracepb.Span{
		TraceId:           s.TraceID[:],
		SpanId:            s.ID[:],
		Flags:             spanFlags,
		Name:              valid(p.Name(s)),
		Kind:              tracepb.Span_SpanKind(p.Kind(s)),
		StartTimeUnixNano: uint64(max(s.Start, 0)),
		EndTimeUnixNano:   uint64(max(s.End, s.Start, 0)),
	}
	if !s.Parent.IsZero() {
		out.ParentSpanId = s.Parent[:]
	}
	add := func(key string, v semconv.Value) { out.Attributes = append(out.Attributes, pair(key, value(v))) }
	p.Attributes(s, add)
	semconv.Terms(s, add)
	out.Attributes = append(out.Attributes, pair(semconv.KeySpanKind, text(s.Kind.String())))
	if s.Model != "" {
		out.Attributes = append(out.Attributes, pair(semconv.KeyModel, text(s.Model)))
	}
	out.Attributes = append(out.Attributes, x.content(s)...)
	if code, text := p.Status(s); code != semconv.Unset {
		out.Status = &tracepb.Status{Code: tracepb.Status_StatusCode(code), Message: valid(text)}
	}
	for i := range s.Events {
		e := &s.Events[i]
		out.Events = append(out.Events, &tracepb.Span_Event{
			TimeUnixNano: uint64(max(e.Time, 0)), Name: valid(p.EventName(e)), Attributes: pairs(e.Attrs),
		})
	}
	for i := range s.Links {
		l := &s.Links[i]
		out.Links = append(out.Links, &tracepb.Span_Link{
			TraceId: l.TraceID[:], SpanId: l.SpanID[:], TraceState: valid(l.State), Attributes: pairs(l.Attrs), Flags: spanFlags,
		})
	}
	return out
}

// resource returns the resource attributes of the span's source.
func (x *Exporter) resource(s *msg.Span) *resourcepb.Resource {
	r := &resourcepb.Resource{}
	if _, given := x.settings.Resource[semconv.KeyService]; !given {
		r.Attributes = append(r.Attributes, pair(semconv.KeyService, text(semconv.ServiceName(s))))
	}
	for _, k := range slices.Sorted(maps.Keys(x.settings.Resource)) {
		r.Attributes = append(r.Attributes, pair(k, text(x.settings.Resource[k])))
	}
	return r
}

func pairs(attrs []msg.Attr) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, 0, len(attrs))
	for _, a := range attrs {
		out = append(out, pair(a.Key, text(a.Value)))
	}
	return out
}

func pair(key string, v *commonpb.AnyValue) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: valid(key), Value: v}
}

func text(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: valid(s)}}
}

func value(v semconv.Value) *commonpb.AnyValue {
	switch v.Kind {
	case semconv.IntValue:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v.Int}}
	case semconv.FloatValue:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v.Float}}
	case semconv.BoolValue:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v.Bool}}
	case semconv.StringsValue:
		list := &commonpb.ArrayValue{}
		for _, s := range v.Strings {
			list.Values = append(list.Values, text(s))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	}
	return text(v.Str)
}

// valid is s in valid UTF-8: a protobuf that has anything else in a string is
// not encoded, with every other span of its request.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
