package otel

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/retry"
)

// response is the receiver's response to the last request. The clients of otlptrace
// wrap it into errors that cannot be taken apart, so the transport and the interceptor
// read it before they do. There is one request at a time.
type response struct {
	permanent bool
	wait      time.Duration
	rejected  int64  // spans of a partial success
	message   string // of a partial success
}

// maxResponse bounds the bytes read of a response.
const maxResponse = 1 << 20

// error classifies err as export.Exporter requires: permanent, retryable, retryable after
// a wait.
func (a *response) error(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return nil
	case cause != nil && !errors.Is(err, cause):
		return errors.Join(err, cause)
	case cause != nil:
		return err
	case a.permanent:
		return export.Permanent(err)
	case a.wait > 0:
		return &export.RetryAfter{Err: err, Wait: a.wait}
	}
	return err
}

func (a *response) partial(p *coltracepb.ExportTracePartialSuccess) {
	if p != nil {
		a.rejected, a.message = p.GetRejectedSpans(), p.GetErrorMessage()
	}
}

// transport records responses over HTTP.
type transport struct {
	*http.Transport
	response *response
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch res.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		t.response.permanent = true
	}
	if res.StatusCode/100 != 2 {
		t.response.wait = retry.ParseAfter(res.Header.Get("Retry-After"), time.Now())
		return res, nil
	}
	// The client would return an error for a partial success, and for a body that it
	// cannot parse, although the spans are accepted.
	body, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if closed := res.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(nil))
	var success coltracepb.ExportTraceServiceResponse // that of logs has the same fields
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch kind {
	case "application/x-protobuf":
		err = proto.Unmarshal(body, &success)
	case "application/json":
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(body, &success)
	}
	if err == nil {
		t.response.partial(success.GetPartialSuccess())
	}
	return res, nil
}

// intercept records responses over gRPC.
func (a *response) intercept(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, c, opts...)
	if err == nil {
		if r, ok := reply.(*coltracepb.ExportTraceServiceResponse); ok {
			a.partial(r.GetPartialSuccess())
			r.PartialSuccess = nil
		}
		if r, ok := reply.(*collogspb.ExportLogsServiceResponse); ok {
			a.rejected, a.message = r.GetPartialSuccess().GetRejectedLogRecords(), r.GetPartialSuccess().GetErrorMessage()
		}
		return nil
	}
	s := status.Convert(err)
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			a.wait = info.GetRetryDelay().AsDuration()
		}
	}
	switch s.Code() {
	case codes.InvalidArgument:
		a.permanent = true
	case codes.ResourceExhausted: // a request over the limit, or a receiver that is full
		a.permanent = a.wait == 0 && strings.Contains(s.Message(), "larger than max")
	}
	return err
}
