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

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server answers /metrics, /healthz, /readyz and /debug/pprof/. A nil server answers nothing.
type Server struct {
	http  *http.Server
	addr  string
	ready atomic.Bool
	ills  atomic.Pointer[func() []string]
	done  chan struct{}
}

// Listen serves the metrics on the address.
func Listen(addr string, m *Metrics) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{addr: l.Addr().String(), done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.Registry(), promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		if ills := s.ills.Load(); ills != nil {
			if list := (*ills)(); len(list) > 0 {
				http.Error(w, strings.Join(list, "\n"), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.ready.Store(false)
		}
	}()
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() string {
	if s == nil {
		return ""
	}
	return s.addr
}

// SetReady says whether the sidecar is ready.
func (s *Server) SetReady(ready bool) {
	if s != nil {
		s.ready.Store(ready)
	}
}

// SetReadinessChecks gives what /readyz asks: a sentence for each part that does not work.
func (s *Server) SetReadinessChecks(ills func() []string) {
	if s != nil {
		s.ills.Store(&ills)
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
