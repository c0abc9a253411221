package tap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// Tap is a recording reverse proxy.
type Tap struct {
	Settings
	upstream *url.URL
	proxy    *httputil.ReverseProxy
	close    func() // the connections to the upstream
	memory   memory

	ready chan struct{} // closed when addr is set
	addr  net.Addr

	rec     source.Recorder
	keep    context.Context // ends when recording has to end
	running context.Context // ends when the tap is to end

	serving   sync.WaitGroup // requests
	recording sync.WaitGroup // streams
	open      atomic.Int64   // of both
	down      atomic.Bool    // the upstream did not answer last
	counts    counts
	histories histories
	order     order
	resume    map[string]*source.Resume // by format
}

// Counts counts the requests of a tap and the bytes that it lost.
type Counts struct {
	Requests int64 // passed on
	Recorded int64 // of them, those whose response was recorded
	Failed   int64 // without a response of the upstream
	Lost     int64 // bytes that were passed on and should have been recorded, but were not
}

type counts struct{ requests, recorded, failed, lost atomic.Int64 }

// Counts returns the counts since the start.
func (t *Tap) Counts() Counts {
	c := &t.counts
	return Counts{c.requests.Load(), c.recorded.Load(), c.failed.Load(), c.lost.Load()}
}

// Addr waits until the tap listens and returns its address; nil when ctx ends first.
func (t *Tap) Addr(ctx context.Context) net.Addr {
	select {
	case <-t.ready:
		return t.addr
	case <-ctx.Done():
		return nil
	}
}

// Idle implements source.Listener: no request is being served and no stream is
// being recorded.
func (t *Tap) Idle() bool { return t.open.Load() == 0 }

// contextKey is the type of the keys in a request's context.
type contextKey int

const (
	throughKey contextKey = iota // source.Chain
	exchangeKey
)

// Run implements source.Listener. It may be called once.
func (t *Tap) Run(ctx context.Context, rec source.Recorder) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", t.Listen)
	if err != nil {
		return fmt.Errorf("tap: %w", err)
	}
	if err := checkUpstream(ctx, t.upstream, listener.Addr()); err != nil {
		_ = listener.Close()
		return fmt.Errorf("tap: listen %s: %w", t.Listen, err)
	}
	// Serving and recording outlive ctx for a little while.
	serve, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	keep, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRecording()
	defer stopServing()
	t.rec, t.keep, t.running = rec, keep, ctx
	t.addr = listener.Addr()

	server := &http.Server{
		Handler:   http.HandlerFunc(t.serve),
		TLSConfig: t.ServerTLS,
		Protocols: protocols(true, true, true),
		// The upstream answers OPTIONS *.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            time.Minute,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: 10_000},
		ErrorLog:                     slog.NewLogLogger(t.Logger.Handler(), slog.LevelDebug),
		BaseContext:                  func(net.Listener) context.Context { return serve },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if through := t.Connections.Through(c); through != nil {
				return context.WithValue(ctx, throughKey, through)
			}
			return ctx
		},
	}
	close(t.ready)
	t.Logger.Info("tap listens", "addr", t.addr.String(), "upstream", source.Address(t.upstream))

	if err = source.Serve(ctx, t.Grace, source.Served{Server: server, Listener: listener}); err != nil {
		err = fmt.Errorf("tap: %w", err)
	}
	stopServing() // ends the upgraded connections, which are no longer the server's
	t.serving.Wait()
	t.close()
	patience := time.AfterFunc(t.Grace, stopRecording)
	defer patience.Stop()
	t.recording.Wait()
	return err
}

func protocols(h1, h2, h2c bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(h1)
	p.SetHTTP2(h2)
	p.SetUnencryptedHTTP2(h2c)
	return p
}

// serve passes one request on.
func (t *Tap) serve(w http.ResponseWriter, r *http.Request) {
	t.serving.Add(1)
	t.open.Add(1)
	defer t.serving.Done()
	defer t.open.Add(-1)
	t.counts.requests.Add(1)
	if through, ok := r.Context().Value(throughKey).(source.Chain); ok {
		if _, again := through[t]; again {
			t.counts.failed.Add(1)
			t.Logger.Warn("a request came back through its own tap", "path", r.URL.Path)
			http.Error(w, "earshot: this request has come through this tap before: its upstream leads back to it", http.StatusLoopDetected)
			return
		}
	}
	if t.wanted(r.URL.Path, hostname(r.Host)) {
		x := t.newExchange(r)
		defer x.end()
		r = r.WithContext(context.WithValue(r.Context(), exchangeKey, x))
		r.Body = x.request.body(r.Body)
		x.request.in = r.Body
	}
	// An answer may begin while the request is still being sent. Without this net/http
	// closes the request's body when the answer begins, and then the transport, which
	// may not have looked for its end yet, breaks off the answer.
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always is
	t.proxy.ServeHTTP(writer{w}, r)
}

// failed answers for an upstream that did not.
func (t *Tap) failed(w http.ResponseWriter, r *http.Request, err error) {
	t.counts.failed.Add(1)
	x, _ := r.Context().Value(exchangeKey).(*exchange)
	if r.Context().Err() != nil {
		if x != nil && t.running.Err() == nil {
			x.fail(0, source.FailureClosed, "the client closed the request before a response began")
		}
		panic(http.ErrAbortHandler) // the client has gone, or the tap is to end
	}
	if !t.down.Swap(true) { // once until it answers again
		t.Attempted(source.Address(t.upstream), err)
		t.Logger.Warn("the upstream does not answer", "upstream", source.Address(t.upstream), "error", err)
	}
	status, failure := http.StatusBadGateway, source.FailureNone
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		status, failure = http.StatusGatewayTimeout, source.FailureTimeout
	}
	text := "earshot: no answer from the upstream: " + err.Error() + "\n"
	if x != nil {
		x.fail(status, failure, cropped(err.Error()))
	}
	h, control := w.Header(), http.NewResponseController(w)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
	if x == nil || control.Flush() != nil || control.SetReadDeadline(time.Now().Add(requestTimeout)) != nil {
		return
	}
	x.request.rest() // the client has its answer
}
