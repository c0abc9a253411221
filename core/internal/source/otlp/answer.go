package otlp

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/earshot-dev/earshot/core/internal/source/body"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

type jsonDoc = jsonv.Doc

// outcome is how a request ended, as both transports name it.
type outcome struct {
	http int
	grpc codes.Code
	// retry: the client is to send the same again.
	retry bool
}

var (
	invalid         = outcome{http: http.StatusBadRequest, grpc: codes.InvalidArgument}
	unauthenticated = outcome{http: http.StatusUnauthorized, grpc: codes.Unauthenticated}
	forbidden       = outcome{http: http.StatusForbidden, grpc: codes.PermissionDenied}
	unknownPath     = outcome{http: http.StatusNotFound, grpc: codes.Unimplemented}
	unknownMethod   = outcome{http: http.StatusMethodNotAllowed, grpc: codes.Unimplemented}
	unsupported     = outcome{http: http.StatusUnsupportedMediaType, grpc: codes.Unimplemented}
	slow            = outcome{http: http.StatusRequestTimeout, grpc: codes.InvalidArgument}
	tooLarge        = outcome{http: http.StatusRequestEntityTooLarge, grpc: codes.ResourceExhausted} // without RetryInfo: never again
	exhausted       = outcome{http: http.StatusTooManyRequests, grpc: codes.ResourceExhausted, retry: true}
	unavailable     = outcome{http: http.StatusServiceUnavailable, grpc: codes.Unavailable, retry: true}
)

// pause is how long a client is to wait before it sends a request again.
const pause = time.Second

// verdict is the response to a request; the zero value is a full success.
type verdict struct {
	outcome
	message  string
	rejected int64 // records of a partial success
}

func refuse(o outcome, format string, args ...any) *verdict {
	return &verdict{outcome: o, message: fmt.Sprintf(format, args...)}
}

func (v *verdict) ok() bool { return v.http == 0 }

// response is the message of a success.
func (v *verdict) response(g *signal) proto.Message {
	if v.rejected == 0 {
		return g.partial(0, "").ProtoReflect().New().Interface()
	}
	return g.partial(v.rejected, v.message)
}

// status is the message of a failure.
func (v *verdict) status() *status.Status {
	s := &status.Status{Code: int32(v.grpc), Message: v.message}
	if v.retry {
		if d, err := anypb.New(&errdetails.RetryInfo{RetryDelay: durationpb.New(pause)}); err == nil {
			s.Details = append(s.Details, d)
		}
	}
	return s
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// exchange is a request of OTLP/HTTP.
type exchange struct {
	*Server
	w http.ResponseWriter
	r *http.Request
}

const (
	mediaProtobuf = "application/x-protobuf"
	mediaJSON     = "application/json"
)

func (x exchange) serve() {
	g := x.signals[x.r.URL.Path]
	media := body.Media(x.r.Header.Get("Content-Type"))
	v := x.admit(x.r)
	switch {
	case v != nil:
		if v.http == http.StatusUnauthorized {
			x.w.Header().Set("WWW-Authenticate", `Bearer realm="earshot"`)
		}
	case g == nil || g.path != x.r.URL.Path:
		v = refuse(unknownPath, "nothing is taken at %q: traces go to /v1/traces, logs to /v1/logs, metrics to /v1/metrics", x.r.URL.Path)
	case x.r.Method != http.MethodPost:
		x.w.Header().Set("Allow", http.MethodPost)
		v = refuse(unknownMethod, "only POST is taken")
	case media != mediaProtobuf && media != mediaJSON:
		v = refuse(unsupported, "content type %q: neither %s nor %s", media, mediaProtobuf, mediaJSON)
	case x.r.ContentLength > int64(x.MaxBody):
		v = x.unread(body.ErrTooLarge)
	default:
		v = x.read(g, media == mediaJSON)
	}
	x.write(v, g, media == mediaJSON)
}

func (x exchange) read(g *signal, json bool) *verdict {
	in := body.NewInput(&x.memory, int(x.MaxBody))
	defer in.Release()
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(x.BodyTimeout))
	raw := http.MaxBytesReader(x.w, x.r.Body, int64(x.MaxBody))
	if err := in.Open(x.r.Header.Get("Content-Encoding"), raw); err != nil {
		return x.unread(err)
	}
	size := 0
	if body.Plain(x.r.Header.Get("Content-Encoding")) {
		size = int(max(x.r.ContentLength, 0))
	}
	return x.receive(x.r, g, in, size, json)
}

// write writes the response in the encoding of the request.
func (x exchange) write(v *verdict, g *signal, json bool) {
	var m proto.Message = v.status()
	code := v.http
	h := x.w.Header()
	if v.ok() {
		m, code = v.response(g), http.StatusOK
	} else if x.r.ProtoMajor == 1 {
		// Otherwise net/http reads the rest of the body first, however slowly it arrives.
		h.Set("Connection", "close")
	}
	marshal, media := proto.Marshal, mediaProtobuf
	if json {
		marshal, media = protojson.Marshal, mediaJSON
	}
	b, err := marshal(m)
	if err != nil {
		b = nil
	}
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	if v.retry {
		h.Set("Retry-After", strconv.Itoa(int(pause/time.Second)))
	}
	control := http.NewResponseController(x.w)
	drain := v.http == tooLarge.http && x.r.ProtoMajor == 1 && x.r.Header.Get("Expect") == "" && control.EnableFullDuplex() == nil
	x.w.WriteHeader(code)
	_, _ = x.w.Write(b)
	if drain && control.Flush() == nil {
		x.drain(control)
	}
}

// drainTime is how long the rest of a request that is too large may take.
const drainTime = 5 * time.Second

// drain reads the rest of a request that has its answer. A client that reads it once it has sent everything, as most do, would find its
// connection reset, and send the same again.
func (x exchange) drain(control *http.ResponseController) {
	if control.SetReadDeadline(time.Now().Add(drainTime)) == nil {
		_, _ = io.CopyN(io.Discard, x.r.Body, 4*int64(x.MaxBody))
	}
}

// call is a call of gRPC. OTLP has unary calls alone, which are one message each way in HTTP/2;
// they are served here and not by a gRPC server, so that a request counts its share of the
// memory before and after it is decompressed, and its bytes are read into place once.
type call struct {
	*Server
	w http.ResponseWriter
	r *http.Request
}

func (c call) serve() {
	h := c.w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Accept-Encoding", "identity, gzip, zstd, deflate")
	g := c.signals[c.r.URL.Path]
	v := c.admit(c.r)
	switch {
	case v != nil:
	case g == nil || g.method != c.r.URL.Path:
		v = refuse(unknownPath, "unknown method %s", c.r.URL.Path)
	case c.r.ProtoMajor != 2:
		v = refuse(unsupported, "gRPC needs HTTP/2")
	default:
		v = c.read(g)
	}
	c.write(v, g)
}

// frameHead is the length of the head of a message: whether it is compressed, and its length.
const frameHead = 5

func (c call) read(g *signal) *verdict {
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(c.BodyTimeout))
	var head [frameHead]byte
	if _, err := io.ReadFull(c.r.Body, head[:]); err != nil {
		return c.unread(err)
	}
	size := int64(binary.BigEndian.Uint32(head[1:]))
	if size > int64(c.MaxBody) {
		return c.unread(body.ErrTooLarge)
	}
	encoding := ""
	if head[0] != 0 {
		if encoding = c.r.Header.Get("Grpc-Encoding"); body.Plain(encoding) {
			return refuse(invalid, "a compressed message without grpc-encoding")
		}
	}
	plain := 0
	if encoding == "" {
		plain = int(size)
	}
	in := body.NewInput(&c.memory, int(c.MaxBody))
	defer in.Release()
	raw := &whole{c.r.Body, size}
	if err := in.Open(encoding, raw); err != nil {
		return c.unread(err)
	}
	return c.receive(c.r, g, in, plain, false)
}

// whole reads a message, whose length is known.
type whole struct {
	r    io.Reader
	left int64
}

func (m *whole) Read(p []byte) (int, error) {
	if m.left == 0 {
		return 0, io.EOF
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	if err == io.EOF && m.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if m.left == 0 {
		err = nil
	}
	return n, err
}

func (c call) write(v *verdict, g *signal) {
	h := c.w.Header()
	if v.ok() {
		if b, err := proto.Marshal(v.response(g)); err == nil {
			var head [frameHead]byte
			binary.BigEndian.PutUint32(head[1:], uint32(len(b)))
			_, _ = c.w.Write(append(head[:], b...))
		}
	} else {
		c.w.WriteHeader(http.StatusOK)
		if b, err := proto.Marshal(v.status()); err == nil {
			h.Set(http.TrailerPrefix+"Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(b))
		}
		h.Set(http.TrailerPrefix+"Grpc-Message", percent(v.message))
	}
	h.Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(int(v.grpc)))
}

// percent encodes a message for a header, as gRPC does.
func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
