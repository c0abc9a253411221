package otlp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var known = []Route{
	{Service: "claude-code*", Format: "claude-code-otel"},
	{Scope: "codex_*", Format: "codex-otel"},
	{Format: "otel-genai"},
}

type fixture struct {
	*testing.T
	server *Server
	rec    *recordtest.Recorder
	url    string
	conn   *grpc.ClientConn
	logs   collogspb.LogsServiceClient
	client *http.Client
}

func start(t *testing.T, rec *recordtest.Recorder, change ...func(*Settings)) *fixture {
	t.Helper()
	s := Settings{
		Env: source.Env{Name: "otel"}, Grace: 50 * time.Millisecond,
		Config: Config{GRPC: GRPC{"127.0.0.1:0"}, HTTP: HTTP{"127.0.0.1:0"}, known: known},
	}
	for _, c := range change {
		c(&s)
	}
	server, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	stop := rec.Run(t, server)
	g, h := server.Addrs(t.Context())
	conn, err := grpc.NewClient(g.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	f := &fixture{t, server, rec, "http://" + h.String(), conn, collogspb.NewLogsServiceClient(conn), &http.Client{Transport: transport, Timeout: 20 * time.Second}}
	t.Cleanup(func() {
		_ = conn.Close()
		transport.CloseIdleConnections()
		stop()
		if n := server.memory.Used(); n != 0 || !server.Idle() {
			t.Errorf("%d bytes of memory are not released, idle %v", n, server.Idle())
		}
	})
	return f
}

// post returns the status, Retry-After and body of a response.
func (f *fixture) post(path, media string, body []byte, headers ...string) (int, string, []byte) {
	f.Helper()
	q, err := http.NewRequestWithContext(f.Context(), "POST", f.url+path, bytes.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	q.Header.Set("Content-Type", media)
	for _, h := range headers {
		k, v, _ := strings.Cut(h, ": ")
		if q.Header.Set(k, v); k == "Host" {
			q.Host = v
		}
	}
	res, err := f.client.Do(q)
	if err != nil {
		f.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		f.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Retry-After"), b
}

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

// request is a request of n log records of a service.
func request(service string, n int) *collogspb.ExportLogsServiceRequest {
	var records []*logspb.LogRecord
	for i := range n {
		records = append(records, &logspb.LogRecord{
			TimeUnixNano: 1_760_000_000_000_000_000 + uint64(i), SeverityNumber: logspb.SeverityNumber_SEVERITY_NUMBER_INFO,
			Body: text("", "claude_code.api_request").Value, TraceId: []byte("0123456789abcdef"), SpanId: []byte("01234567"), Flags: 1,
			Attributes: []*commonpb.KeyValue{
				text("prompt", "say \"hi\"\n\u00e9"),
				{Key: "n", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(i)}}},
				{Key: "f", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 0.5}}},
				{Key: "b", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte{1, 2}}}},
				{Key: "l", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{{}, text("", "x").Value}}}}},
			},
		})
	}
	return &collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{
		Resource:  &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", service), text("service.instance.id", "i-1")}},
		ScopeLogs: []*logspb.ScopeLogs{{Scope: &commonpb.InstrumentationScope{Name: "s", Version: "1"}, LogRecords: records, SchemaUrl: "https://example.org/1"}},
		SchemaUrl: "https://example.org/2",
	}}}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// frames are the data of all frames.
func frames(all []recordtest.Stream) (out []string) {
	for _, s := range all {
		for i := range s.Frames {
			out = append(out, string(s.Frames[i].Data))
		}
	}
	return out
}

// TestSDKs: everything that the exporters of OpenTelemetry's SDK send is recorded, and safe when they
// return.
func TestSDKs(t *testing.T) {
	for name, compress := range map[string]bool{"plain": false, "gzip": true} {
		t.Run(name, func(t *testing.T) {
			f := start(t, recordtest.New())
			ctx := t.Context()
			res := sdkresource.NewSchemaless(attribute.String("service.name", "parcel"))
			grpcOptions := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(f.conn.Target()), otlptracegrpc.WithInsecure()}
			httpOptions := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(f.url + "/v1/traces")}
			metricOptions := []otlpmetricgrpc.Option{otlpmetricgrpc.WithEndpoint(f.conn.Target()), otlpmetricgrpc.WithInsecure()}
			if compress {
				grpcOptions = append(grpcOptions, otlptracegrpc.WithCompressor("gzip"))
				httpOptions = append(httpOptions, otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
				metricOptions = append(metricOptions, otlpmetricgrpc.WithCompressor("gzip"))
			}
			overGRPC, err := otlptracegrpc.New(ctx, grpcOptions...)
			if err != nil {
				t.Fatal(err)
			}
			overHTTP, err := otlptracehttp.New(ctx, httpOptions...)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range []sdktrace.SpanExporter{overGRPC, overHTTP} {
				p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(e), sdktrace.WithResource(res))
				_, span := p.Tracer("agent").Start(ctx, fmt.Sprintf("chat %d", i))
				span.SetAttributes(attribute.String("gen_ai.conversation.id", "c1"), attribute.Int64("gen_ai.usage.input_tokens", 7))
				span.End()
				if err := p.Shutdown(ctx); err != nil {
					t.Fatal(err)
				}
			}
			metrics, err := otlpmetricgrpc.New(ctx, metricOptions...)
			if err != nil {
				t.Fatal(err)
			}
			mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics)), sdkmetric.WithResource(res))
			h, err := mp.Meter("agent").Float64Histogram("latency")
			if err != nil {
				t.Fatal(err)
			}
			h.Record(ctx, 1.5)
			if err := mp.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			streams := f.rec.Streams()
			if len(streams) != 1 || streams[0].Format != "otel-genai" || streams[0].Synced != len(streams[0].Frames) {
				t.Fatalf("%+v", streams)
			}
			all := frames(streams)
			if len(all) != 3 {
				t.Fatalf("%d frames: %s", len(all), all)
			}
			for i, want := range [][]string{
				{`{"resourceSpans":[{"resource":{`, `"name":"chat 0"`, `"scope":{"name":"agent"}`, `{"key":"gen_ai.usage.input_tokens","value":{"intValue":"7"}}`},
				{`"name":"chat 1"`}, {`{"resourceMetrics":[{`, `"bucketCounts":["0","1",`, `"explicitBounds":[0,5,`},
			} {
				for _, w := range want {
					if !strings.Contains(all[i], w) {
						t.Errorf("frame %d has no %s:\n%s", i, w, all[i])
					}
				}
			}
		})
	}
}

// TestEncodings: a request becomes the same frame over each transport and in each encoding, and the
// frame is the mapping of protobuf to JSON.
func TestEncodings(t *testing.T) {
	q := request("parcel", 2)
	raw := marshal(t, q)
	js, err := protojson.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	snake, err := protojson.MarshalOptions{UseProtoNames: true, Multiline: true}.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, recordtest.New())
	if _, err := f.logs.Export(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if _, err := f.logs.Export(t.Context(), q, grpc.UseCompressor("gzip")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		media   string
		body    []byte
		headers []string
		want    string
	}{
		{mediaProtobuf, raw, nil, ""},
		{mediaProtobuf, z.EncodeAll(raw, nil), []string{"Content-Encoding: zstd"}, ""},
		{mediaJSON, js, nil, "{}"},
		{mediaJSON, snake, nil, "{}"}, // ids in base64, names of enums
	} {
		if code, _, b := f.post("/v1/logs", c.media, c.body, c.headers...); code != 200 || string(b) != c.want {
			t.Errorf("%d %q", code, b)
		}
	}
	// Parts of a message, as some proxies join them.
	split := append(marshal(t, &logspb.ResourceLogs{Resource: q.ResourceLogs[0].Resource, SchemaUrl: "x"}), marshal(t, q.ResourceLogs[0])[len(marshal(t, &logspb.ResourceLogs{Resource: q.ResourceLogs[0].Resource})):]...)
	split = append([]byte{10, byte(len(split)&127 | 128), byte(len(split) >> 7)}, split...)
	if code, _, b := f.post("/v1/logs", mediaProtobuf, split); code != 200 {
		t.Errorf("%d %q", code, b)
	}
	all := frames(f.rec.Streams())
	if len(all) != 7 {
		t.Fatalf("%d frames", len(all))
	}
	for i := range all {
		if len(all[i]) != len(all[0]) || !equalJSON(t, all[i], all[0]) {
			t.Errorf("frame %d:\n%s\nwant\n%s", i, all[i], all[0])
		}
	}
	for _, want := range []string{
		`"traceId":"30313233343536373839616263646566"`, `"spanId":"3031323334353637"`, `"timeUnixNano":"1760000000000000000"`, `"severityNumber":9`,
		`{"stringValue":"say \"hi\"\n` + "\u00e9" + `"}`, `{"intValue":"1"}`, `{"doubleValue":0.5}`, `{"bytesValue":"AQI="}`, `{"arrayValue":{"values":[{},{"stringValue":"x"}]}}`,
	} {
		if !strings.Contains(all[0], want) {
			t.Errorf("no %s in %s", want, all[0])
		}
	}
	if strings.ContainsAny(all[0], "\n") {
		t.Error("more than one line")
	}
}

func equalJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// TestRoutes: each resource and scope has the format of the first route that matches, and its own
// stream, whose key a second process finds again.
func TestRoutes(t *testing.T) {
	q := &collogspb.ExportLogsServiceRequest{}
	for _, service := range []string{"claude-code", "claude-code-desktop", "parcel", "agent-x"} {
		q.ResourceLogs = append(q.ResourceLogs, request(service, 1).ResourceLogs...)
	}
	q.ResourceLogs[3].ScopeLogs = append(q.ResourceLogs[3].ScopeLogs, &logspb.ScopeLogs{
		Scope: &commonpb.InstrumentationScope{Name: "codex_core"}, LogRecords: q.ResourceLogs[0].ScopeLogs[0].LogRecords,
	})
	keys := func(change ...func(*Settings)) (out []string) {
		f := start(t, recordtest.New(), change...)
		if _, err := f.logs.Export(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		for _, s := range f.rec.Streams() {
			if len(s.Frames) != 1 || !strings.HasPrefix(s.Key, s.Format+"-") {
				t.Errorf("%+v", s)
			}
			out = append(out, s.Key)
		}
		return out
	}
	first := keys()
	var formats []string
	for _, k := range first {
		formats = append(formats, k[:strings.LastIndex(k, "-")])
	}
	if got := strings.Join(formats, " "); got != "claude-code-otel claude-code-otel codex-otel otel-genai otel-genai" {
		t.Error(got)
	}
	if second := keys(); strings.Join(second, " ") != strings.Join(first, " ") {
		t.Errorf("%s, want %s", second, first)
	}
	own := keys(func(s *Settings) {
		s.Format, s.Routes = "acme", []Route{{Service: "agent-?", Scope: "s", Format: "other"}}
	})
	if got := strings.Join(own, " "); strings.Count(got, "acme-") != 4 || strings.Count(got, "other-") != 1 {
		t.Error(got)
	}
}

// TestLargeRequests: many records become frames of a bounded size, none lost.
func TestLargeRequests(t *testing.T) {
	f := start(t, recordtest.New())
	const n = 5000
	if _, err := f.logs.Export(t.Context(), request("parcel", n)); err != nil {
		t.Fatal(err)
	}
	all := frames(f.rec.Streams())
	records := 0
	for _, s := range all {
		if len(s) > frameSize+4096 {
			t.Errorf("a frame of %d bytes", len(s))
		}
		var q collogspb.ExportLogsServiceRequest
		// protojson reads ids as base64, and hexadecimal is valid base64.
		if err := protojson.Unmarshal([]byte(s), &q); err != nil {
			t.Fatal(err)
		}
		records += len(q.ResourceLogs[0].ScopeLogs[0].LogRecords)
	}
	if len(all) < 8 || records != n {
		t.Errorf("%d frames, %d records", len(all), records)
	}
}

// TestInvalid: a body that is no request is refused with the reason, nothing of it is recorded, and it
// is a dead letter.
// TestLargeRequestsGetTheirAnswer: a client that sends all before it reads, as most do, sees that its request is too large. A connection that is
// closed before takes the answer with it, and exporters send such a request again.
func TestLargeRequestsGetTheirAnswer(t *testing.T) {
	const most = 4 << 20
	f := start(t, recordtest.New(), func(s *Settings) { s.MaxBody = most })
	for name, head := range map[string]string{"announced": fmt.Sprintf("Content-Length: %d", 3*most), "in chunks": "Transfer-Encoding: chunked"} {
		for range 2 { // without the wait some are answered in time
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			_, sent := fmt.Fprintf(c, "POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n\r\n", head)
			body := io.Reader(bytes.NewReader(bytes.Repeat([]byte(" "), 3*most)))
			if name == "in chunks" {
				body = io.MultiReader(strings.NewReader(fmt.Sprintf("%x\r\n", 3*most)), body, strings.NewReader("\r\n0\r\n\r\n"))
			}
			if sent == nil {
				_, sent = io.Copy(c, body)
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if sent != nil || err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Fatalf("%s: %v, %v, %v", name, resp, sent, err)
			}
			_ = resp.Body.Close()
			_ = c.Close()
		}
	}
}

func TestInvalid(t *testing.T) {
	deep := strings.Repeat(`{"arrayValue":{"values":[`, 2000)
	good := marshal(t, request("parcel", 3))
	nested := []byte{}
	for range 200 { // values within values
		nested = append([]byte{10, byte(len(nested)&127 | 128), byte(len(nested) >> 7)}, nested...)
		nested = append([]byte{42, byte(len(nested)&127 | 128), byte(len(nested) >> 7)}, nested...)
	}
	nestedRequest := &collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{{LogRecords: []*logspb.LogRecord{{}}}}}}}
	nestedRequest.ResourceLogs[0].ScopeLogs[0].LogRecords[0].ProtoReflect().SetUnknown(append([]byte{42, byte(len(nested)&127 | 128), byte(len(nested) >> 7)}, nested...))
	for name, c := range map[string]struct {
		path, media string
		body        []byte
		code        int
		message     string
	}{
		"cut off":    {"/v1/logs", mediaProtobuf, good[:len(good)-7], 400, "unexpected EOF"},
		"text":       {"/v1/logs", mediaProtobuf, []byte("hello world"), 400, ""},
		"UTF-8":      {"/v1/logs", mediaProtobuf, bytes.ReplaceAll(good, []byte("say"), []byte("\xff\xfe\xff")), 400, "not UTF-8"},
		"depth":      {"/v1/logs", mediaProtobuf, marshal(t, nestedRequest), 400, "nested deeper than 64"},
		"JSON":       {"/v1/logs", mediaJSON, []byte(`{"resourceLogs":[`), 400, ""},
		"JSON depth": {"/v1/logs", mediaJSON, []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` + deep), 400, ""},
		"JSON type":  {"/v1/logs", mediaJSON, []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":{}}]}]}]}`), 400, "LogRecord.timeUnixNano: not a number"},
		"JSON id":    {"/v1/traces", mediaJSON, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"xyz!"}]}]}]}`), 400, "Span.traceId: not an id"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, recordtest.New())
			code, retry, b := f.post(c.path, c.media, c.body)
			if code != c.code || retry != "" || !strings.Contains(string(b), c.message) {
				t.Errorf("%d %q %q", code, retry, b)
			}
			all := f.rec.Streams()
			if len(all) != 1 || len(all[0].Frames) != 1 || all[0].Frames[0].Reason != source.ReasonProtocol || all[0].Frames[0].Dropped != int64(len(c.body)) {
				t.Errorf("%+v", all)
			}
		})
	}
	f := start(t, recordtest.New())
	for want, c := range map[int][2]string{404: {"/v1/profiles", mediaJSON}, 415: {"/v1/logs", "text/plain"}} {
		if code, _, b := f.post(c[0], c[1], []byte("{}")); code != want {
			t.Errorf("%d %q, want %d", code, b, want)
		}
	}
	if code, _, b := f.post("/v1/logs", mediaJSON, []byte("{}")); code != 200 || len(f.rec.Streams()) != 0 {
		t.Errorf("an empty request: %d %q", code, b)
	}
	err := f.conn.Invoke(t.Context(), "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", request("x", 1), &collogspb.ExportLogsServiceResponse{})
	if status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
}

// TestBombs: a body that grows beyond max_body when it is decompressed is refused, and memory
// is bounded.
func TestBombs(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	q := request("parcel", 1)
	q.ResourceLogs[0].ScopeLogs[0].LogRecords[0].Body = text("", strings.Repeat("x", 3<<20)).Value
	raw := marshal(t, q)
	f := start(t, recordtest.New(), func(s *Settings) { s.MaxBody = 1 << 20 })
	code, retry, b := f.post("/v1/logs", mediaProtobuf, z.EncodeAll(raw, nil), "Content-Encoding: zstd")
	if code != 413 || retry != "" {
		t.Errorf("%d %q %q", code, retry, b)
	}
	_, err = f.logs.Export(t.Context(), q, grpc.UseCompressor("gzip"))
	if st := status.Convert(err); st.Code() != codes.ResourceExhausted || len(st.Details()) != 0 {
		t.Errorf("%v %v", err, st.Details())
	}
	// Each scope has the whole resource in its frame.
	q = request(strings.Repeat("x", 500<<10), 1)
	for range 100 {
		q.ResourceLogs[0].ScopeLogs = append(q.ResourceLogs[0].ScopeLogs, q.ResourceLogs[0].ScopeLogs[0])
	}
	if code, _, b := f.post("/v1/logs", mediaProtobuf, marshal(t, q)); code != 413 {
		t.Errorf("%d %q", code, b)
	}
	if n := f.server.memory.Used(); n != 0 {
		t.Errorf("%d bytes", n)
	}
}

// TestLongRecords: a record whose JSON is too long is a dead letter and a partial success; the
// others are recorded.
func TestLongRecords(t *testing.T) {
	f := start(t, recordtest.New())
	q := request("parcel", 3)
	q.ResourceLogs[0].ScopeLogs[0].LogRecords[1].Body = text("", strings.Repeat("\x01", 4<<20)).Value
	res, err := f.logs.Export(t.Context(), q)
	if err != nil || res.GetPartialSuccess().GetRejectedLogRecords() != 1 {
		t.Fatalf("%v %v", res, err)
	}
	s := f.rec.Streams()[0]
	if len(s.Frames) != 3 || s.Frames[1].Reason != "too_long" || len(s.Frames[1].Data) != kept {
		t.Errorf("%d frames", len(s.Frames))
	}
	for _, i := range []int{0, 2} {
		if !json.Valid(s.Frames[i].Data) {
			t.Errorf("frame %d: %s", i, s.Frames[i].Data)
		}
	}
}

// TestBackPressure: a journal without room is the protocol's code for "later", and so are too many requests
// at once; a request that the client sends again is recorded.
func TestBackPressure(t *testing.T) {
	rec := recordtest.New()
	f := start(t, rec, func(s *Settings) { s.RecordTimeout = 50 * time.Millisecond })
	release := rec.Hold()
	q := request("parcel", 1)
	code, retry, b := f.post("/v1/logs", mediaProtobuf, marshal(t, q))
	if code != 503 || retry != "1" {
		t.Errorf("%d %q %q", code, retry, b)
	}
	_, err := f.logs.Export(t.Context(), q)
	wantRetry(t, err, codes.Unavailable)
	release()
	rec.Fail(errors.New("disk full"))
	_, err = f.logs.Export(t.Context(), q)
	wantRetry(t, err, codes.Unavailable)
	rec.Fail(nil)
	if _, err = f.logs.Export(t.Context(), q); err != nil {
		t.Error(err)
	}
	if n := len(frames(rec.Streams())); n != 1 {
		t.Errorf("%d frames", n)
	}

	tight := start(t, recordtest.New(), func(s *Settings) { s.MaxMemory = 64 << 10 })
	large := request("parcel", 1000)
	code, retry, b = tight.post("/v1/logs", mediaProtobuf, marshal(t, large))
	if code != 429 || retry != "1" {
		t.Errorf("%d %q %q", code, retry, b)
	}
	_, err = tight.logs.Export(t.Context(), large)
	wantRetry(t, err, codes.ResourceExhausted)
	if _, err = tight.logs.Export(t.Context(), q); err != nil {
		t.Error(err)
	}
}

func wantRetry(t *testing.T, err error, code codes.Code) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != code || len(st.Details()) != 1 {
		t.Fatalf("%v %v", err, st.Details())
	}
	if d, ok := st.Details()[0].(*errdetails.RetryInfo); !ok || d.GetRetryDelay().AsDuration() <= 0 {
		t.Errorf("%v", st.Details())
	}
}

// TestToken: without the token nothing is read.
func TestToken(t *testing.T) {
	f := start(t, recordtest.New(), func(s *Settings) { s.Token = spec.NewSecret("sesame") })
	if code, _, _ := f.post("/v1/logs", mediaJSON, []byte("{}")); code != 401 {
		t.Error(code)
	}
	if code, _, _ := f.post("/v1/logs", mediaJSON, []byte("{}"), "Authorization: Bearer sesame"); code != 200 {
		t.Error(code)
	}
	if _, err := f.logs.Export(t.Context(), request("x", 1)); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer sesame")
	if _, err := f.logs.Export(ctx, request("x", 1)); err != nil {
		t.Error(err)
	}
}

// TestPagesAreRefused: a page whose name was led to this machine, which the browser takes for the listener's own, sends nothing.
func TestPagesAreRefused(t *testing.T) {
	f := start(t, recordtest.New())
	page := []string{"Host: page.example:4318", "Origin: http://page.example:4318", "Sec-Fetch-Site: same-origin"}
	body := marshal(t, request("forged", 1))
	if code, _, b := f.post("/v1/logs", mediaProtobuf, body, page...); code != 403 {
		t.Errorf("%d %q", code, b)
	}
	if n := len(f.rec.Streams()); n != 0 {
		t.Errorf("%d streams are recorded", n)
	}
	if code, _, b := f.post("/v1/logs", mediaProtobuf, body, page[0]); code != 200 { // an agent in a container
		t.Errorf("%d %q", code, b)
	}
	f = start(t, recordtest.New(), func(s *Settings) { s.Token = spec.NewSecret("sesame") })
	if code, _, b := f.post("/v1/logs", mediaProtobuf, body, append(page, "Authorization: Bearer sesame")...); code != 200 {
		t.Errorf("%d %q", code, b)
	}
}

// TestAtOnce: requests of the same resources in another order do not wait for each other.
func TestAtOnce(t *testing.T) {
	f := start(t, recordtest.New())
	a, b := request("a", 1), request("b", 1)
	ab := &collogspb.ExportLogsServiceRequest{ResourceLogs: append(a.ResourceLogs[:1:1], b.ResourceLogs...)}
	ba := &collogspb.ExportLogsServiceRequest{ResourceLogs: append(b.ResourceLogs[:1:1], a.ResourceLogs...)}
	const n = 50
	errs := make(chan error, n)
	for i := range n {
		q := ab
		if i%2 == 0 {
			q = ba
		}
		go func() {
			_, err := f.logs.Export(context.Background(), q)
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := len(frames(f.rec.Streams())); got != 2*n {
		t.Errorf("%d frames", got)
	}
}

// TestIdleClose: the stream of a resource that sends nothing is closed, and the next request opens it again.
func TestIdleClose(t *testing.T) {
	f := start(t, recordtest.New(), func(s *Settings) { s.IdleClose = 20 * time.Millisecond })
	for n := range 2 {
		if _, err := f.logs.Export(t.Context(), request("parcel", 1)); err != nil {
			t.Fatal(err)
		}
		f.rec.Want(t, "closed", func(s []recordtest.Stream) bool { return len(s) == n+1 && s[n].Closed })
	}
}
