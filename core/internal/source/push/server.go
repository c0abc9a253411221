package push

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/body"
)

// Server takes pushed bodies.
type Server struct {
	Settings
	ready chan struct{} // closed when addr is set
	addr  net.Addr

	rec        source.Recorder
	keys       *keys
	recordings *source.Recordings
	memory     body.Memory  // bytes of bodies that are being read
	open       atomic.Int64 // requests
	serving    sync.WaitGroup
}

// Addr waits until the server listens and returns its address; nil when ctx ends
// first.
func (s *Server) Addr(ctx context.Context) net.Addr {
	select {
	case <-s.ready:
		return s.addr
	case <-ctx.Done():
		return nil
	}
}

// Idle implements source.Listener: no request is being answered.
func (s *Server) Idle() bool { return s.open.Load() == 0 }

// Run implements source.Listener. It may be called once.
func (s *Server) Run(ctx context.Context, rec source.Recorder) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	s.rec, s.recordings, s.addr = rec, source.NewRecordings(rec, s.Logger), listener.Addr()
	s.keys.recall(ctx, s)
	serve, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		TLSConfig:         s.ServerTLS,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return serve },
	}
	close(s.ready)
	s.Logger.Info("push listens", "addr", s.addr.String(), "path", s.Path)
	err = source.Serve(ctx, s.Grace, source.Served{Server: server, Listener: listener})
	stop()
	s.serving.Wait()
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	return nil
}

// answer is the response to a request.
type answer struct {
	Status int    `json:"-"`
	Frames int    `json:"frames"`
	Error  string `json:"error,omitempty"`
	retry  bool   // it may go well later
}

func refuse(status int, format string, args ...any) *answer {
	return &answer{Status: status, Error: fmt.Sprintf(format, args...), retry: status == http.StatusServiceUnavailable}
}

func (a *answer) write(w http.ResponseWriter) {
	var b []byte
	var err error
	h := w.Header()
	if a.Error != "" {
		// Otherwise net/http reads the rest of the body first, however slowly it arrives.
		h.Set("Connection", "close")
		b, err = json.Marshal(struct {
			Error string `json:"error"`
		}{a.Error})
	} else {
		b, err = json.Marshal(a)
	}
	if err != nil {
		b = []byte(`{"error":"the answer cannot be written"}`)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)+1))
	if a.retry || a.Status == http.StatusConflict {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(append(b, '\n'))
}

// serve answers a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.serving.Add(1)
	s.open.Add(1)
	defer s.serving.Done()
	defer s.open.Add(-1)
	if a := s.admit(w, r); a != nil {
		a.write(w)
		return
	}
	s.take(w, r).write(w)
}

// admit returns why a request is not taken, before its body is read.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) *answer {
	switch {
	case !source.Authorized(r, s.Token):
		w.Header().Set("WWW-Authenticate", `Bearer realm="earshot"`)
		return refuse(http.StatusUnauthorized, "the bearer token is missing or wrong")
	case source.Rebound(r, s.Token):
		return refuse(http.StatusForbidden, "the request comes from a web page: it needs a token")
	case r.URL.Path != s.Path:
		return refuse(http.StatusNotFound, "nothing is taken at %q", r.URL.Path)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return refuse(http.StatusMethodNotAllowed, "only POST is taken")
	case r.ContentLength > int64(s.MaxBody):
		return tooLarge(int(s.MaxBody))
	}
	return nil
}

func tooLarge(limit int) *answer {
	return refuse(http.StatusRequestEntityTooLarge, "the body is larger than max_body, %d bytes", limit)
}
