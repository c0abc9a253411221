package otel

import (
	"iter"
	"slices"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// request is what goes in one upload.
type request struct {
	resources []*tracepb.ResourceSpans
	spans     int
}

// frame is what protobuf adds around a span, or around the spans of a resource,
// at the most: a tag and a length, three times nested.
const frame = 24

// shortName is how long the name of a span that is too large may be, in bytes.
const shortName = 256

// requests cuts the batch's spans into requests of at most MaxBytes, in order:
// the same ones whenever the same batch is offered. Each is built when it is
// asked for.
func (x *Exporter) requests(spans []msg.Span) iter.Seq[request] {
	return func(yield func(request) bool) {
		var r request
		size := 0
		bySource := make(map[string]*tracepb.ScopeSpans)
		stands := last(spans)
		for i := range spans {
			s := &spans[i]
			if !takes(s) || stands[key{s.TraceID, s.ID}] != i {
				continue
			}
			source := x.source(s)
			head := proto.Size(source) + 3*frame
			span := x.span(s)
			n := x.trim(span, x.settings.MaxBytes-head-frame) + frame
			if r.spans > 0 && size+n+head > x.settings.MaxBytes {
				if !yield(r) {
					return
				}
				r, size = request{}, 0
				clear(bySource)
			}
			scope := bySource[s.Source]
			if scope == nil {
				scope = &tracepb.ScopeSpans{Scope: source.ScopeSpans[0].Scope, SchemaUrl: source.ScopeSpans[0].SchemaUrl}
				bySource[s.Source] = scope
				r.resources = append(r.resources, &tracepb.ResourceSpans{Resource: source.Resource, ScopeSpans: []*tracepb.ScopeSpans{scope}})
				size += head
			}
			scope.Spans = append(scope.Spans, span)
			r.spans++
			size += n
		}
		if r.spans > 0 {
			yield(r)
		}
	}
}

// key tells spans apart for a receiver.
type key struct {
	trace msg.TraceID
	span  msg.SpanID
}

// last is where each span is told of last, be it that it is taken back: of what a batch
// says of a span only that is sent.
func last(spans []msg.Span) map[key]int {
	at := make(map[key]int, len(spans))
	for i := range spans {
		if s := &spans[i]; takes(s) || s.Tombstone {
			at[key{s.TraceID, s.ID}] = i
		}
	}
	return at
}

// source returns the resource and the scope of a span, without spans. It is
// shared and not to be changed.
func (x *Exporter) source(s *msg.Span) *tracepb.ResourceSpans {
	r := x.sources[s.Source]
	if r == nil {
		r = &tracepb.ResourceSpans{Resource: x.resource(s), ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: semconv.Scope}, SchemaUrl: x.settings.Profile.SchemaURL(),
		}}}
		x.sources[strings.Clone(s.Source)] = r
	}
	return r
}

// trim makes a span fit into limit bytes and returns its size. Events and links
// go first, a name is shortened (a protocol may name a tool at any length), then
// attributes go, the largest first; the operation's name stays.
func (x *Exporter) trim(s *tracepb.Span, limit int) int {
	size := proto.Size(s)
	if size <= limit {
		return size
	}
	note := pair(semconv.KeyTrimmed, value(semconv.Value{Kind: semconv.IntValue, Int: 1 << 40}))
	limit -= proto.Size(note) + 3*frame // the note, and the counts of what was dropped
	s.DroppedEventsCount, s.Events = uint32(len(s.Events)), nil
	s.DroppedLinksCount, s.Links = uint32(len(s.Links)), nil
	dropped := s.DroppedEventsCount + s.DroppedLinksCount
	if len(s.Name) > shortName {
		s.Name = valid(s.Name[:shortName])
		dropped++
	}
	for proto.Size(s) > limit {
		largest := -1
		for i, a := range s.Attributes {
			if a.Key != semconv.KeyOperation && (largest < 0 || proto.Size(a) > proto.Size(s.Attributes[largest])) {
				largest = i
			}
		}
		if largest < 0 {
			break
		}
		s.Attributes = slices.Delete(s.Attributes, largest, largest+1)
		s.DroppedAttributesCount++
	}
	dropped += s.DroppedAttributesCount
	note.Value = value(semconv.Value{Kind: semconv.IntValue, Int: int64(dropped)})
	s.Attributes = append(s.Attributes, note)
	x.stats.trimmed.Add(1)
	return proto.Size(s)
}
