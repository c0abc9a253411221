package otel

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/earshot-dev/earshot/core/export"
)

// outcome is the error as the delivery queue classifies it.
type outcome struct {
	permanent bool
	wait      time.Duration
}

func seen(t *testing.T, err error) outcome {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	o := outcome{permanent: export.IsPermanent(err)}
	var after *export.RetryAfter
	if errors.As(err, &after) {
		o.wait = after.Wait
	}
	return o
}

func TestHTTPAnswers(t *testing.T) {
	for _, c := range []struct {
		status int
		after  string
		want   outcome
	}{
		{400, "", outcome{permanent: true}},
		{413, "", outcome{permanent: true}},
		{422, "", outcome{permanent: true}},
		{401, "", outcome{}},
		{403, "", outcome{}},
		{404, "", outcome{}},
		{405, "", outcome{}},
		{408, "", outcome{}},
		{429, "", outcome{}},
		{429, "7", outcome{wait: 7 * time.Second}},
		{500, "", outcome{}},
		{502, "", outcome{}},
		{503, "3", outcome{wait: 3 * time.Second}},
		{503, "soon", outcome{}},
		{504, "", outcome{}},
	} {
		r := &receiver{http: func(w http.ResponseWriter, _ *http.Request, _ received) {
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			http.Error(w, "says why", c.status)
		}}
		x := exporter(t, r, ProtocolHTTP, nil)
		err := x.Export(t.Context(), turn())
		if got := seen(t, err); got != c.want || !strings.Contains(err.Error(), "otel: upload 5 spans") {
			t.Errorf("%d %q: %+v, want %+v: %v", c.status, c.after, got, c.want, err)
		}
		if n := len(r.seen()); n != 1 {
			t.Errorf("%d: %d requests: the client tried again by itself", c.status, n)
		}
	}
}

func TestGRPCAnswers(t *testing.T) {
	wait := func(code codes.Code, text string, d time.Duration) error {
		s, err := status.New(code, text).WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Err()
	}
	for _, c := range []struct {
		err  error
		want outcome
	}{
		{status.Error(codes.InvalidArgument, "spans"), outcome{permanent: true}},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), outcome{permanent: true}},
		{status.Error(codes.ResourceExhausted, "queue is full"), outcome{}},
		{wait(codes.ResourceExhausted, "queue is full", 5*time.Second), outcome{wait: 5 * time.Second}},
		{wait(codes.Unavailable, "busy", 2*time.Second), outcome{wait: 2 * time.Second}},
		{status.Error(codes.Unavailable, "busy"), outcome{}},
		{status.Error(codes.Unauthenticated, "token"), outcome{}},
		{status.Error(codes.PermissionDenied, "token"), outcome{}},
		{status.Error(codes.Unimplemented, "service"), outcome{}},
		{status.Error(codes.Internal, "bug"), outcome{}},
		{status.Error(codes.Aborted, ""), outcome{}},
		{status.Error(codes.DataLoss, ""), outcome{}},
	} {
		r := &receiver{grpc: func(context.Context, received) (*coltracepb.ExportTraceServiceResponse, error) { return nil, c.err }}
		x := exporter(t, r, ProtocolGRPC, nil)
		err := x.Export(t.Context(), turn())
		if got := seen(t, err); got != c.want {
			t.Errorf("%v: %+v, want %+v: %v", c.err, got, c.want, err)
		}
		if n := len(r.seen()); n != 1 {
			t.Errorf("%v: %d requests: the client tried again by itself", c.err, n)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		x, err := New(t.Context(), Settings{Endpoint: "http://127.0.0.1:1", Protocol: protocol})
		if err != nil {
			t.Fatal(err)
		}
		if got := seen(t, x.Export(t.Context(), turn())); got != (outcome{}) {
			t.Errorf("%+v", got)
		}
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestPartialSuccessIsFinal: the receiver has rejected some spans; a retry would
// double the others.
func TestPartialSuccessIsFinal(t *testing.T) {
	partial := &coltracepb.ExportTraceServiceResponse{
		PartialSuccess: &coltracepb.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "too old"},
	}
	for _, c := range []struct {
		name, protocol string
		receiver       *receiver
		rejected       int64
	}{
		{"protobuf", ProtocolHTTP, &receiver{http: func(w http.ResponseWriter, _ *http.Request, _ received) { reply(w, partial) }}, 2},
		{"json", ProtocolHTTP, &receiver{http: func(w http.ResponseWriter, _ *http.Request, _ received) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"},"new":1}`)
		}}, 2},
		{"grpc", ProtocolGRPC, &receiver{grpc: func(context.Context, received) (*coltracepb.ExportTraceServiceResponse, error) {
			return partial, nil
		}}, 2},
		{"no body", ProtocolHTTP, &receiver{http: func(w http.ResponseWriter, _ *http.Request, _ received) { w.WriteHeader(http.StatusAccepted) }}, 0},
		{"no reason", ProtocolGRPC, &receiver{grpc: func(context.Context, received) (*coltracepb.ExportTraceServiceResponse, error) {
			return &coltracepb.ExportTraceServiceResponse{PartialSuccess: &coltracepb.ExportTracePartialSuccess{RejectedSpans: 2}}, nil
		}}, 2},
		{"a warning", ProtocolHTTP, &receiver{http: func(w http.ResponseWriter, _ *http.Request, _ received) {
			reply(w, &coltracepb.ExportTraceServiceResponse{PartialSuccess: &coltracepb.ExportTracePartialSuccess{ErrorMessage: "too old"}})
		}}, 0},
		{"a page of a proxy", ProtocolHTTP, &receiver{http: func(w http.ResponseWriter, _ *http.Request, _ received) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = io.WriteString(w, "<html>")
		}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log strings.Builder
			x := exporter(t, c.receiver, c.protocol, func(s *Settings) { s.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			if err := x.Export(t.Context(), turn()); err != nil {
				t.Fatal(err)
			}
			logged := strings.Count(log.String(), "did not take all")
			if got := x.Stats(); got != (Stats{Sent: 5, Rejected: c.rejected}) || (logged == 1) != (c.rejected > 0 || c.name == "a warning") {
				t.Errorf("stats %+v, %s", got, log.String())
			}
			b := turn()
			b.ID, c.receiver.http, c.receiver.grpc = "next", nil, nil
			if err := x.Export(t.Context(), b); err != nil || len(c.receiver.seen()) != 2 || x.Stats() != (Stats{Sent: 10, Rejected: c.rejected}) || strings.Count(log.String(), "did not take all") != logged {
				t.Errorf("the next batch: %v after %d requests, %+v, %s", err, len(c.receiver.seen()), x.Stats(), log.String())
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	hang := &receiver{
		http: func(_ http.ResponseWriter, q *http.Request, _ received) { <-q.Context().Done() },
		grpc: func(ctx context.Context, _ received) (*coltracepb.ExportTraceServiceResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	eachProtocol(t, func(t *testing.T, protocol string) {
		x := exporter(t, hang, protocol, func(s *Settings) { s.Timeout = 100 * time.Millisecond })
		if got := seen(t, x.Export(t.Context(), turn())); got != (outcome{}) {
			t.Errorf("%+v", got)
		}
	})
}

// TestErrorsOfAContext: an error is the context's once that has ended, whatever the receiver answered before.
func TestErrorsOfAContext(t *testing.T) {
	failed, gone := errors.New("failed"), errors.New("gone")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for name, c := range map[string]struct {
		ctx      context.Context
		response response
		err      error
		want     outcome
		is       []error
	}{
		"an error":                {t.Context(), response{}, failed, outcome{}, []error{failed}},
		"a permanent one":         {t.Context(), response{permanent: true, wait: 1}, failed, outcome{permanent: true}, []error{failed}},
		"with a wait":             {t.Context(), response{wait: 1}, failed, outcome{wait: 1}, []error{failed}},
		"at the end":              {ended, response{permanent: true, wait: 1}, failed, outcome{}, []error{failed, gone}},
		"of the end":              {ended, response{permanent: true}, gone, outcome{}, []error{gone}},
		"accepted before the end": {ended, response{permanent: true}, nil, outcome{}, nil},
	} {
		err := c.response.error(c.ctx, c.err)
		if c.is == nil {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := seen(t, err); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		for _, is := range c.is {
			if !errors.Is(err, is) {
				t.Errorf("%s: %v is not %v", name, err, is)
			}
		}
		if err.Error() == "gone\ngone" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnAnswerIsOfItsRequest: an error is not classified by the answer to an earlier request.
func TestAnAnswerIsOfItsRequest(t *testing.T) {
	var status int
	var after string
	r := &receiver{http: func(w http.ResponseWriter, _ *http.Request, _ received) {
		w.Header().Set("Retry-After", after)
		w.Header().Set("Content-Length", "100") // more than it has
		w.WriteHeader(status)
	}}
	x := exporter(t, r, ProtocolHTTP, nil)
	for _, c := range []struct {
		status int
		after  string
		want   outcome
	}{{400, "", outcome{permanent: true}}, {503, "3", outcome{wait: 3 * time.Second}}, {500, "", outcome{}}, {200, "", outcome{}}} {
		status, after = c.status, c.after
		if got := seen(t, x.Export(t.Context(), turn())); got != c.want {
			t.Errorf("%d: %+v, want %+v", c.status, got, c.want)
		}
	}
}

// TestCloseEndsTheConnections of spans and of metrics.
func TestCloseEndsTheConnections(t *testing.T) {
	closed := make(chan struct{}, 2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { _, _ = io.Copy(io.Discard, q.Body) }))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()
	s := Settings{Endpoint: server.URL}
	x, err := New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMetrics(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	rm := &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: []metricdata.Metrics{{Name: "tokens", Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.DataPoint[int64]{{Value: 1}}}}}}}}
	if err := errors.Join(x.Export(t.Context(), turn()), m.Export(t.Context(), rm)); err != nil {
		t.Fatal(err)
	}
	for _, end := range []func(context.Context) error{x.Close, m.Shutdown} {
		if err := end(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Error("a connection is open")
		}
	}
}
