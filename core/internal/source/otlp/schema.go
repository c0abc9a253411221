package otlp

import (
	"strings"

	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// form is how a field is written in JSON.
type form uint8

const (
	formMessage  form = iota
	formText          // a string
	formHex           // bytes in hexadecimal: the ids
	formBase64        // other bytes
	formBool          // true or false
	formNumber        // an integer of at most 32 bits, or the number of an enum's value
	formQuoted        // an integer of 64 bits, as a string of digits
	formFloating      // a number with a fraction
)

// field is a field of a message of the protocol.
type field struct {
	head     string // `"traceId":`
	form     form
	kind     protoreflect.Kind
	wire     protowire.Type // of one value
	repeated bool
	bit      uint64 // of the field, or of its oneof
	message  *message
	values   protoreflect.EnumValueDescriptors // of an enum
}

// message is a message of the protocol, as its descriptor has it.
type message struct {
	name      string
	fields    []*field          // by number; nil: there is none
	names     map[string]*field // by name, as JSON has it and as the .proto has it
	attribute bool              // it is a KeyValue
}

// maxNumber bounds the numbers of fields: each has a bit.
const maxNumber = 63

// signal is traces, logs or metrics.
type signal struct {
	path    string // of OTLP/HTTP
	method  string // of gRPC
	request *message
	empty   proto.Message
	partial func(n int64, why string) proto.Message

	// The three levels of a request: resources, scopes and records.
	resources, scopes, records string
}

// signals returns the signals of OTLP that are read. Profiles are not stable yet.
func signals() []*signal {
	c := make(compiler)
	return []*signal{
		{
			path: "/v1/traces", method: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
			resources: "resourceSpans", scopes: "scopeSpans", records: "spans",
			request: c.message((*tracepb.ExportTraceServiceRequest)(nil)), empty: &tracepb.ExportTraceServiceRequest{},
			partial: func(n int64, why string) proto.Message {
				return &tracepb.ExportTraceServiceResponse{PartialSuccess: &tracepb.ExportTracePartialSuccess{RejectedSpans: n, ErrorMessage: why}}
			},
		}, {
			path: "/v1/logs", method: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
			resources: "resourceLogs", scopes: "scopeLogs", records: "logRecords",
			request: c.message((*logspb.ExportLogsServiceRequest)(nil)), empty: &logspb.ExportLogsServiceRequest{},
			partial: func(n int64, why string) proto.Message {
				return &logspb.ExportLogsServiceResponse{PartialSuccess: &logspb.ExportLogsPartialSuccess{RejectedLogRecords: n, ErrorMessage: why}}
			},
		}, {
			path: "/v1/metrics", method: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
			resources: "resourceMetrics", scopes: "scopeMetrics", records: "metrics",
			request: c.message((*metricspb.ExportMetricsServiceRequest)(nil)), empty: &metricspb.ExportMetricsServiceRequest{},
			partial: func(n int64, why string) proto.Message {
				return &metricspb.ExportMetricsServiceResponse{PartialSuccess: &metricspb.ExportMetricsPartialSuccess{RejectedDataPoints: n, ErrorMessage: why}}
			},
		},
	}
}

// compiler makes messages of descriptors, each once: an AnyValue may have AnyValues.
type compiler map[protoreflect.FullName]*message

var attributeName = (*commonpb.KeyValue)(nil).ProtoReflect().Descriptor().FullName()

func (c compiler) message(m proto.Message) *message { return c.compile(m.ProtoReflect().Descriptor()) }

func (c compiler) compile(d protoreflect.MessageDescriptor) *message {
	if m := c[d.FullName()]; m != nil {
		return m
	}
	m := &message{name: string(d.Name()), names: make(map[string]*field), attribute: d.FullName() == attributeName}
	c[d.FullName()] = m
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		n := int(fd.Number())
		if n > maxNumber {
			panic("otlp: field " + string(fd.FullName()) + " has a number beyond 63")
		}
		f := &field{head: `"` + fd.JSONName() + `":`, kind: fd.Kind(), repeated: fd.IsList(), bit: 1 << n}
		if o := fd.ContainingOneof(); o != nil {
			f.bit = 1 << o.Fields().Get(0).Number()
		}
		f.form, f.wire = formOf(fd)
		switch {
		case f.form == formMessage:
			f.message = c.compile(fd.Message())
		case fd.Enum() != nil:
			f.values = fd.Enum().Values()
		}
		for len(m.fields) <= n {
			m.fields = append(m.fields, nil)
		}
		m.fields[n] = f
		m.names[fd.JSONName()], m.names[string(fd.Name())] = f, f
	}
	return m
}

func formOf(fd protoreflect.FieldDescriptor) (form, protowire.Type) {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return formMessage, protowire.BytesType
	case protoreflect.StringKind:
		return formText, protowire.BytesType
	case protoreflect.BytesKind:
		if name := string(fd.Name()); strings.HasSuffix(name, "trace_id") || strings.HasSuffix(name, "span_id") {
			return formHex, protowire.BytesType
		}
		return formBase64, protowire.BytesType
	case protoreflect.BoolKind:
		return formBool, protowire.VarintType
	case protoreflect.Int32Kind, protoreflect.Uint32Kind, protoreflect.Sint32Kind, protoreflect.EnumKind:
		return formNumber, protowire.VarintType
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return formNumber, protowire.Fixed32Type
	case protoreflect.Int64Kind, protoreflect.Uint64Kind, protoreflect.Sint64Kind:
		return formQuoted, protowire.VarintType
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return formQuoted, protowire.Fixed64Type
	case protoreflect.DoubleKind:
		return formFloating, protowire.Fixed64Type
	case protoreflect.FloatKind:
		return formFloating, protowire.Fixed32Type
	}
	panic("otlp: field " + string(fd.FullName()) + " has a kind that OTLP had none of")
}

// name is the field's name in JSON.
func (f *field) name() string { return f.head[1 : len(f.head)-2] }
