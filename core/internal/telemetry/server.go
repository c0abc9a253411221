package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"
)

// Server serves /metrics, /healthz and /readyz, and /debug/pprof/ when asked to. The methods of a nil server do
// nothing.
type Server struct {
	http   *http.Server
	addr   string
	ready  atomic.Bool
	checks atomic.Pointer[func() []string]
	done   chan struct{}
}

// Listen serves the metrics on the address, with profiles or without.
func Listen(addr string, m *Metrics, profiles bool) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{addr: l.Addr().String(), done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		if checks := s.checks.Load(); checks != nil {
			if failed := (*checks)(); len(failed) > 0 {
				http.Error(w, strings.Join(failed, "\n"), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ok")
	})
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	}
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.ready.Store(false)
		}
	}()
	return s, nil
}

// Addr is the address that it listens on.
func (s *Server) Addr() string {
	if s == nil {
		return ""
	}
	return s.addr
}

// SetReady sets whether /readyz answers that the sidecar is ready.
func (s *Server) SetReady(ready bool) {
	if s != nil {
		s.ready.Store(ready)
	}
}

// SetReadinessChecks sets the function that /readyz calls: it returns a sentence for each part
// that does not work.
func (s *Server) SetReadinessChecks(checks func() []string) {
	if s != nil {
		s.checks.Store(&checks)
	}
}

// Close stops it.
func (s *Server) Close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = s.http.Shutdown(ctx)
	<-s.done
}
