package otel

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/semconv"
)

// logs uploads log records, as otlptrace.Client does spans.
type logs struct {
	upload func(ctx context.Context, q *collogspb.ExportLogsServiceRequest) error
	close  func() error
	// refused is set when the receiver has no logs endpoint (no such path, no such
	// service). No log records are sent after that.
	refused bool
}

// errNoLogs is the error of a receiver without a logs endpoint.
type errNoLogs struct{ error }

func (x *Exporter) dialLogsHTTP(u *url.URL, t *transport) {
	to := signalURL(u, "/v1/logs")
	client := &http.Client{Transport: t, Timeout: x.settings.Timeout}
	x.logs.close = func() error { return nil }
	x.logs.upload = func(ctx context.Context, q *collogspb.ExportLogsServiceRequest) error {
		body, err := x.settings.body(q)
		if err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
		if err != nil {
			return err
		}
		for k, v := range x.settings.Headers {
			r.Header.Set(k, v)
		}
		r.Header.Set("Content-Type", "application/x-protobuf")
		if x.settings.Compression == CompressionGzip {
			r.Header.Set("Content-Encoding", "gzip")
		}
		res, err := client.Do(r)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxResponse))
		if err := res.Body.Close(); err != nil {
			return err
		}
		switch res.StatusCode {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			return errNoLogs{fmt.Errorf("%s: %s", to, res.Status)}
		}
		if res.StatusCode/100 != 2 {
			return fmt.Errorf("%s: %s", to, res.Status)
		}
		return nil
	}
}

// body encodes a request for HTTP.
func (s *Settings) body(q proto.Message) ([]byte, error) {
	b, err := proto.Marshal(q)
	if err != nil || s.Compression != CompressionGzip {
		return b, err
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}

func (x *Exporter) dialLogsGRPC(u *url.URL) error {
	secure := insecure.NewCredentials()
	if u.Scheme == "https" {
		secure = credentials.NewTLS(x.settings.TLS)
	}
	conn, err := grpc.NewClient(u.Host, grpc.WithTransportCredentials(secure), grpc.WithUnaryInterceptor(x.response.intercept), x.settings.reconnect())
	if err != nil {
		return err
	}
	var opts []grpc.CallOption
	if x.settings.Compression == CompressionGzip {
		opts = append(opts, grpc.UseCompressor(CompressionGzip))
	}
	client := collogspb.NewLogsServiceClient(conn)
	x.logs.close = conn.Close
	x.logs.upload = func(ctx context.Context, q *collogspb.ExportLogsServiceRequest) error {
		ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, metadata.New(x.settings.Headers)), x.settings.Timeout)
		defer cancel()
		_, err := client.Export(ctx, q, opts...)
		if status.Code(err) == codes.Unimplemented {
			return errNoLogs{err}
		}
		return err
	}
	return nil
}

// records are the log records of a request's spans, in requests of at most MaxBytes: an
// event for each response of a model.
func (x *Exporter) records(resources []*tracepb.ResourceSpans) (out []*collogspb.ExportLogsServiceRequest) {
	var q *collogspb.ExportLogsServiceRequest
	size := 0
	for _, rs := range resources {
		head := proto.Size(logsOf(rs)) + 3*overhead
		var scope *logspb.ScopeLogs
		for _, s := range rs.ScopeSpans[0].Spans {
			if s.Kind != tracepb.Span_SPAN_KIND_CLIENT {
				continue
			}
			record := x.record(s, true)
			if proto.Size(record)+head+overhead > x.settings.MaxBytes {
				record = x.record(s, false)
			}
			n := proto.Size(record) + overhead
			if q == nil || size+n+head > x.settings.MaxBytes {
				q, scope, size = &collogspb.ExportLogsServiceRequest{}, nil, 0
				out = append(out, q)
			}
			if scope == nil {
				to := logsOf(rs)
				scope, q.ResourceLogs = to.ScopeLogs[0], append(q.ResourceLogs, to)
				size += head
			}
			scope.LogRecords = append(scope.LogRecords, record)
			size += n
		}
	}
	return out
}

// logsOf is the head of the log records of a source: those of its spans.
func logsOf(rs *tracepb.ResourceSpans) *logspb.ResourceLogs {
	scope := rs.ScopeSpans[0]
	return &logspb.ResourceLogs{Resource: rs.Resource, ScopeLogs: []*logspb.ScopeLogs{{Scope: scope.Scope, SchemaUrl: scope.SchemaUrl}}}
}

// severityDebug is the event's severity in the newest convention; 1.41 has none.
const severityDebug = 5

// record returns the event of a response: the attributes of its span, with the messages
// as structured values instead of JSON if structured is set.
func (x *Exporter) record(s *tracepb.Span, structured bool) *logspb.LogRecord {
	r := &logspb.LogRecord{
		TimeUnixNano: s.EndTimeUnixNano, ObservedTimeUnixNano: s.EndTimeUnixNano, EventName: semconv.EventDetails,
		TraceId: s.TraceId, SpanId: s.SpanId, Flags: 1,
	}
	if x.settings.Profile.Latest() {
		r.SeverityNumber = severityDebug
	}
	for _, a := range s.Attributes {
		switch a.Key {
		case semconv.KeyInputMessages, semconv.KeyOutputMessages, semconv.KeyInstructions, semconv.KeyToolDefinitions:
			var v any
			d := json.NewDecoder(strings.NewReader(a.Value.GetStringValue()))
			d.UseNumber()
			if structured && d.Decode(&v) == nil {
				a = pair(a.Key, structure(v))
			}
		}
		r.Attributes = append(r.Attributes, a)
	}
	return r
}

// structure is JSON as a value of OTLP.
func structure(v any) *commonpb.AnyValue {
	switch v := v.(type) {
	case map[string]any:
		out := &commonpb.KeyValueList{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out.Values = append(out.Values, pair(k, structure(v[k])))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: out}}
	case []any:
		out := &commonpb.ArrayValue{}
		for _, e := range v {
			out.Values = append(out.Values, structure(e))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: out}}
	case bool:
		return value(semconv.Value{Kind: semconv.BoolValue, Bool: v})
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return value(semconv.Value{Kind: semconv.IntValue, Int: n})
		}
		if f, err := v.Float64(); err == nil {
			return value(semconv.Value{Kind: semconv.FloatValue, Float: f})
		}
		return text(v.String())
	case string:
		return text(v)
	}
	return &commonpb.AnyValue{} // null
}
