package push

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/body"
)

// maxKey is the length of the longest idempotency key and stream name.
const maxKey = 255

// maxTracestate is the length of the longest tracestate that is kept; vendors are to
// send no more than 512 bytes.
const maxTracestate = 4 << 10

// take reads, records and answers a request.
func (s *Server) take(w http.ResponseWriter, r *http.Request) *answer {
	shape := body.ShapeOf(r.Header.Get("Content-Type"))
	if shape == body.Opaque {
		return refuse(http.StatusUnsupportedMediaType, "content type %q: not one of application/json, application/x-ndjson, text/event-stream",
			body.Media(r.Header.Get("Content-Type")))
	}
	key, name := r.Header.Get("Idempotency-Key"), r.URL.Query().Get("stream")
	if len(key) > maxKey || len(name) > maxKey {
		return refuse(http.StatusBadRequest, "an idempotency key or stream name of more than %d bytes", maxKey)
	}
	in := &input{body.NewInput(&s.memory, int(s.MaxBody)), s, r, http.NewResponseController(w)}
	defer in.Release()
	if err := in.open(w); err != nil {
		return in.refused(err)
	}
	var data []byte
	hash := ""
	if shape != body.Events {
		_ = in.control.SetReadDeadline(time.Now().Add(s.BodyTimeout))
		var err error
		if data, err = in.All(0); err != nil {
			return in.refused(err)
		}
		if len(bytes.TrimSpace(data)) == 0 {
			return refuse(http.StatusBadRequest, "the body is empty")
		}
		sum := sha256.Sum256(data)
		hash = hex.EncodeToString(sum[:8])
	}
	if key != "" {
		sum := sha256.Sum256([]byte(key))
		key = hex.EncodeToString(sum[:12])
		before, done := s.keys.begin(key, hash)
		if before != nil {
			return before
		}
		a := s.record(r, in, shape, data, name, key, hash)
		done(a)
		return a
	}
	return s.record(r, in, shape, data, name, "", "")
}

// record records the body and returns the answer once it is safe.
func (s *Server) record(r *http.Request, in *input, shape body.Shape, data []byte, name, key, hash string) *answer {
	origin := url.URL{Scheme: "http", Host: s.Listen, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	if s.TLS != nil {
		origin.Scheme = "https"
	}
	id := source.ID{Origin: source.Address(&origin), Anchor: time.Now().UnixNano()}
	if name != "" {
		sum := sha256.Sum256([]byte(name))
		id.Key = "stream-" + hex.EncodeToString(sum[:16])
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.RecordTimeout)
	defer cancel()
	st, err := s.recordings.Take(ctx, s.Format, id)
	if err != nil {
		s.Logger.Warn("a request is not recorded", "error", err)
		return refuse(http.StatusServiceUnavailable, "it cannot be recorded now")
	}
	defer s.recordings.Release(st)
	if trace := r.Header.Get("Traceparent"); trace != "" && name == "" && len(trace) <= maxKey {
		facts := source.ResponseInfo{Method: r.Method, Traceparent: trace}
		if state := r.Header.Get("Tracestate"); len(state) <= maxTracestate {
			facts.Tracestate = state
		}
		if err := st.Mark(facts.Marshal()); err != nil {
			return in.refused(recordError{err})
		}
	}
	t := &taking{server: s, stream: st, cut: body.New(shape, int(s.MaxBody))}
	a := t.body(r.Context(), in, data)
	if a.Error != "" {
		return a
	}
	if name == "" {
		t.batch.Append(frame.Frame{Kind: frame.Close, At: time.Now().UnixNano()}, nil)
		if err := t.record(r.Context()); err != nil {
			return in.refused(err)
		}
	}
	if key != "" {
		if err := s.keys.mark(key, hash, a.Frames); err != nil {
			return in.refused(recordError{err})
		}
	}
	safe, cancel := context.WithTimeout(r.Context(), s.RecordTimeout)
	defer cancel()
	if err := st.Sync(safe); err != nil {
		return in.refused(recordError{err})
	}
	return a
}

// taking is a body on its way into a stream.
type taking struct {
	server *Server
	stream source.Recording
	cut    *body.Cutter
	batch  frame.Batch
	frames int
}

// body records a body that has come, or one that is still coming.
func (t *taking) body(ctx context.Context, in *input, data []byte) *answer {
	at := time.Now().UnixNano()
	t.cut.Feed(&t.batch, data, at)
	for buf, end := make([]byte, 32<<10), data != nil; !end; {
		_ = in.control.SetReadDeadline(time.Now().Add(t.server.IdleTimeout))
		n, err := in.Read(buf)
		at = time.Now().UnixNano()
		t.cut.Feed(&t.batch, buf[:n], at)
		e := in.Hold(2 * t.cut.Held())
		if e == nil {
			e = t.record(ctx)
		}
		if e != nil {
			return in.refused(e)
		}
		if end = err == io.EOF; err != nil && !end {
			t.cut.Finish(&t.batch, at, false)
			if e := t.record(context.WithoutCancel(ctx)); e != nil {
				return in.refused(e)
			}
			return in.refused(err)
		}
	}
	t.cut.Finish(&t.batch, at, true)
	if err := t.record(ctx); err != nil {
		return in.refused(err)
	}
	return &answer{Status: http.StatusOK, Frames: t.frames}
}

// record records the batch.
func (t *taking) record(ctx context.Context) error {
	defer t.batch.Reset()
	ctx, cancel := context.WithTimeout(ctx, t.server.RecordTimeout)
	defer cancel()
	for i := range t.batch.Frames {
		if err := t.stream.Record(ctx, &t.batch.Frames[i]); err != nil {
			return recordError{err}
		}
		if t.batch.Frames[i].Kind != frame.Close {
			t.frames++
		}
	}
	return nil
}

// recordError is a failure of ours, not of the request.
type recordError struct{ error }

func (e recordError) Unwrap() error { return e.error }

// input is the body of a request, its content encoding undone.
type input struct {
	*body.Input
	server  *Server
	request *http.Request
	control *http.ResponseController
}

// open begins to read.
func (in *input) open(w http.ResponseWriter) error {
	_ = in.control.SetReadDeadline(time.Now().Add(in.server.BodyTimeout))
	raw := http.MaxBytesReader(w, in.request.Body, int64(int(in.server.MaxBody)))
	return in.Open(in.request.Header.Get("Content-Encoding"), raw)
}

// refused describes the failure.
func (in *input) refused(err error) *answer {
	var ours recordError
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &ours), errors.Is(err, body.ErrMemory):
		in.server.Logger.Warn("a request is not recorded", "error", err)
		return refuse(http.StatusServiceUnavailable, "it cannot be recorded now")
	case errors.As(err, &tooBig), errors.Is(err, body.ErrTooLarge):
		return tooLarge(int(in.server.MaxBody))
	case errors.Is(err, body.ErrEncoding):
		return refuse(http.StatusUnsupportedMediaType, "%v", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the body came too slowly")
	}
	return refuse(http.StatusBadRequest, "%s", fmt.Sprintf("the body cannot be read: %v", err))
}
