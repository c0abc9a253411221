package otel

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
)

func TestContract(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		exporttest.Check(t, exporttest.Subject{
			New: func(t *testing.T, far *exporttest.Destination) export.Exporter {
				r := &receiver{http: func(w http.ResponseWriter, q *http.Request, r received) { answerHTTP(w, q, far, r) }}
				r.grpc = func(ctx context.Context, r received) (*coltracepb.ExportTraceServiceResponse, error) {
					return answerGRPC(ctx, far, r)
				}
				s := Settings{Protocol: protocol, MaxBytes: 4 << 10}
				if s.Endpoint = r.overHTTP(t); protocol == ProtocolGRPC {
					s.Endpoint = r.overGRPC(t)
				}
				x, err := New(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				return x
			},
			Takes: takes,
		})
	})
}

// TestContractOfASampler is TestContract of an exporter that samples, and keeps all.
func TestContractOfASampler(t *testing.T) {
	exporttest.Check(t, exporttest.Subject{
		New: func(t *testing.T, far *exporttest.Destination) export.Exporter {
			r := &receiver{http: func(w http.ResponseWriter, q *http.Request, r received) { answerHTTP(w, q, far, r) }}
			c := Type().New().(*Config)
			c.Endpoint, c.Sample, c.MaxBatchBytes = r.overHTTP(t), &Sample{Share: 1}, 4<<10
			x, err := c.NewExporter(t.Context(), export.Env{Name: "otlp", StateDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return x
		},
		Takes: takes,
	})
}

func takes(b *export.Batch) (out [][]string) {
	for i := range b.Spans {
		if exportable(b.Spans[i]) {
			out = append(out, []string{b.Spans[i].ID.String()})
		}
	}
	return out
}

func answerHTTP(w http.ResponseWriter, q *http.Request, far *exporttest.Destination, r received) {
	switch a := far.Answer(r.ids()); a {
	case exporttest.Busy:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case exporttest.Refused:
		w.WriteHeader(http.StatusBadRequest)
	case exporttest.Hung:
		<-q.Context().Done()
	default:
		far.Keep(r.ids())
		if a == exporttest.Lost {
			panic(http.ErrAbortHandler)
		}
		reply(w, &coltracepb.ExportTraceServiceResponse{})
	}
}

func answerGRPC(ctx context.Context, far *exporttest.Destination, r received) (*coltracepb.ExportTraceServiceResponse, error) {
	switch a := far.Answer(r.ids()); a {
	case exporttest.Busy:
		return nil, status.Error(codes.Unavailable, "busy")
	case exporttest.Refused:
		return nil, status.Error(codes.InvalidArgument, "not that one")
	case exporttest.Hung:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		far.Keep(r.ids())
		if a == exporttest.Lost {
			return nil, status.Error(codes.DeadlineExceeded, "lost")
		}
		return &coltracepb.ExportTraceServiceResponse{}, nil
	}
}
