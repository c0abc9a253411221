package otel

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/msg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is the default limit of a receiver, in bytes.
const limit = 4 << 20

// received is a request as a receiver sees it.
type received struct {
	header http.Header // of HTTP, or the metadata of gRPC
	bytes  int         // uncompressed
	spans  *coltracepb.ExportTraceServiceRequest
}

func (r received) ids() []string {
	var out []string
	for _, rs := range r.spans.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				out = append(out, msg.SpanID(s.SpanId).String())
			}
		}
	}
	return out
}

// receiver is an OTLP receiver over both protocols.
type receiver struct {
	coltracepb.UnimplementedTraceServiceServer
	mu          sync.Mutex
	requests    []received
	compression string // of the last request over gRPC
	logs        *logReceiver
	metrics     *metricsReceiver

	// http and grpc return the response; nil accepts everything.
	http func(w http.ResponseWriter, q *http.Request, r received)
	grpc func(ctx context.Context, r received) (*coltracepb.ExportTraceServiceResponse, error)
}

func (r *receiver) note(x received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, x)
}

func (r *receiver) seen() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// overHTTP starts the receiver and returns its endpoint.
func (r *receiver) overHTTP(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", r.serve)
	if r.logs != nil {
		mux.HandleFunc("POST /v1/logs", r.logs.serve)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	var in io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		in = z
	}
	body, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return // the client has gone
	}
	if len(body) > limit {
		http.Error(w, "request body too large", http.StatusRequestEntityTooLarge)
		return
	}
	x := received{header: q.Header, bytes: len(body), spans: &coltracepb.ExportTraceServiceRequest{}}
	if err := proto.Unmarshal(body, x.spans); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.note(x)
	if r.http != nil {
		r.http(w, q, x)
		return
	}
	reply(w, &coltracepb.ExportTraceServiceResponse{})
}

func reply(w http.ResponseWriter, res *coltracepb.ExportTraceServiceResponse) {
	b, err := proto.Marshal(res)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = io.Copy(w, bytes.NewReader(b))
}

// overGRPC starts the receiver, with gRPC's own limit of 4 MiB, and returns its
// endpoint.
func (r *receiver) overGRPC(t *testing.T, opts ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(append(opts, grpc.StatsHandler(r))...)
	coltracepb.RegisterTraceServiceServer(s, r)
	if r.logs != nil {
		collogspb.RegisterLogsServiceServer(s, r.logs)
	}
	if r.metrics != nil {
		colmetricspb.RegisterMetricsServiceServer(s, r.metrics)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { s.Stop(); wg.Wait() })
	return "http://" + l.Addr().String()
}

// HandleRPC notes how a request over gRPC was compressed.
func (r *receiver) HandleRPC(_ context.Context, s stats.RPCStats) {
	if h, ok := s.(*stats.InHeader); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.compression = h.Compression
	}
}

// The rest of stats.Handler.
func (r *receiver) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (r *receiver) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (r *receiver) HandleConn(context.Context, stats.ConnStats)                       {}

// Export implements the gRPC service.
func (r *receiver) Export(ctx context.Context, q *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	x := received{header: http.Header{}, bytes: proto.Size(q), spans: q}
	for k, v := range md {
		x.header[http.CanonicalHeaderKey(k)] = v
	}
	r.note(x)
	if r.grpc != nil {
		return r.grpc(ctx, x)
	}
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

// exporter returns an exporter to the receiver.
func exporter(t *testing.T, r *receiver, protocol string, set func(*Settings)) *Exporter {
	t.Helper()
	s := Settings{Protocol: protocol, Timeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	if protocol == ProtocolGRPC {
		s.Endpoint = r.overGRPC(t)
	} else {
		s.Endpoint = r.overHTTP(t)
	}
	if set != nil {
		set(&s)
	}
	x, err := New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return x
}

func eachProtocol(t *testing.T, f func(t *testing.T, protocol string)) {
	for _, p := range []string{ProtocolHTTP, ProtocolGRPC} {
		t.Run(p, func(t *testing.T) { f(t, p) })
	}
}

// onlySpan returns the only span of the only request.
func onlySpan(t *testing.T, r *receiver) *tracepb.Span {
	t.Helper()
	if n := len(r.seen()); n != 1 {
		t.Fatalf("%d requests", n)
	}
	q := r.seen()[0].spans
	if len(q.ResourceSpans) != 1 || len(q.ResourceSpans[0].ScopeSpans) != 1 || len(q.ResourceSpans[0].ScopeSpans[0].Spans) != 1 {
		t.Fatalf("not one span: %v", q)
	}
	return q.ResourceSpans[0].ScopeSpans[0].Spans[0]
}
