package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/body"
)

// Server receives OTLP.
type Server struct {
	Settings
	router  *router
	signals map[string]*signal // by path and by method
	ready   chan struct{}      // closed when the addresses are set
	grpc    net.Addr           // nil: off
	http    net.Addr

	recordings  *source.Recordings
	transcripts sync.Pool    // of *transcript
	rooms       sync.Pool    // of *[]byte, for the bytes of requests
	memory      body.Memory  // of requests
	open        atomic.Int64 // requests
	serving     sync.WaitGroup
}

// Addr waits until the server listens and returns an address of it; nil when ctx ends first.
func (s *Server) Addr(ctx context.Context) net.Addr {
	g, h := s.Addrs(ctx)
	if h != nil {
		return h
	}
	return g
}

// Addrs waits until the server listens and returns its addresses, nil where it is off.
func (s *Server) Addrs(ctx context.Context) (grpc, http net.Addr) {
	select {
	case <-s.ready:
		return s.grpc, s.http
	case <-ctx.Done():
		return nil, nil
	}
}

// Idle implements source.Listener: no request is being answered.
func (s *Server) Idle() bool { return s.open.Load() == 0 }

// Run implements source.Listener. It may be called once.
func (s *Server) Run(ctx context.Context, rec source.Recorder) error {
	s.recordings = source.NewRecordings(rec, s.Logger)
	serve, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var servers []source.Served
	for _, l := range []struct {
		address string
		addr    *net.Addr
	}{{s.GRPC.Listen, &s.grpc}, {s.HTTP.Listen, &s.http}} {
		if l.address == "" {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
		if err != nil {
			for _, other := range servers {
				_ = other.Listener.Close()
			}
			return fmt.Errorf("otlp: %w", err)
		}
		*l.addr = listener.Addr()
		servers = append(servers, source.Served{Server: s.server(serve), Listener: listener})
	}
	close(s.ready)
	s.Logger.Info("otlp listens", "grpc", s.GRPC.Listen, "http", s.HTTP.Listen)
	s.serving.Go(func() { s.closeIdle(serve) })
	err := source.Serve(ctx, s.Grace, servers...)
	stop()
	s.serving.Wait()
	if err != nil {
		return fmt.Errorf("otlp: %w", err)
	}
	return nil
}

// closeIdle closes the streams of resources that send nothing, until ctx ends.
func (s *Server) closeIdle(ctx context.Context) {
	tick := time.NewTicker(s.IdleClose / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.recordings.CloseIdle(now.Add(-s.IdleClose))
		}
	}
}

// server is a server of one address. Each address takes gRPC and HTTP alike: a client that has
// the port of the other works too.
func (s *Server) server(ctx context.Context) *http.Server {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		TLSConfig:         s.ServerTLS.Clone(),
		Protocols:         &p,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 100},
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
}

// serve answers a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.serving.Add(1)
	s.open.Add(1)
	defer s.serving.Done()
	defer s.open.Add(-1)
	if media := body.Media(r.Header.Get("Content-Type")); media == "application/grpc" || media == "application/grpc+proto" {
		call{s, w, r}.serve()
		return
	}
	exchange{s, w, r}.serve()
}

// admit returns why a request is not read.
func (s *Server) admit(r *http.Request) *verdict {
	switch {
	case !source.Authorized(r, s.Token):
		return refuse(unauthenticated, "the bearer token is missing or wrong")
	case source.Rebound(r, s.Token):
		return refuse(forbidden, "the request comes from a web page: it needs a token")
	}
	return nil
}

// largestRoom is the most bytes of a request whose room is kept for another.
const largestRoom = 1 << 20

// receive reads a request, records it, and returns the response once it is safe.
func (s *Server) receive(r *http.Request, g *signal, in *body.Input, size int, json bool) *verdict {
	room, _ := s.rooms.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	defer s.rooms.Put(room)
	data, err := in.AllInto(*room, size)
	if cap(data) <= largestRoom {
		*room = data
	}
	if err != nil {
		return s.unread(err)
	}
	t, ok := s.transcripts.Get().(*transcript)
	if !ok {
		t = &transcript{router: s.router, most: maxGrowth * int(s.MaxBody), index: make(map[string]int)}
	}
	defer s.reuse(t)
	t.reset(g, func(n int) error { return in.Hold(in.Taken() + n) })
	read := t.protobuf
	if json {
		read = t.json
	}
	if err := read(data); err != nil {
		if errors.Is(err, body.ErrMemory) {
			return s.unread(err)
		}
		s.quarantine(r.Context(), g, data, json, err)
		if errors.Is(err, errTotal) {
			return refuse(tooLarge, "%v", err)
		}
		return refuse(invalid, "not a request of OTLP: %v", err)
	}
	return s.record(r.Context(), t)
}

// reuse keeps a transcript for another request, unless it is large.
func (s *Server) reuse(t *transcript) {
	const largest = 4 << 20
	if cap(t.buf) <= largest {
		t.doc, t.facts = jsonDoc{}, jsonDoc{}
		s.transcripts.Put(t)
	}
}

// unread is the response to a request whose body cannot be read.
func (s *Server) unread(err error) *verdict {
	var tooBig *http.MaxBytesError
	switch {
	case errors.Is(err, body.ErrMemory):
		s.Logger.Warn("a request is not recorded", "error", err)
		return refuse(exhausted, "%v", err)
	case errors.As(err, &tooBig), errors.Is(err, body.ErrTooLarge):
		return refuse(tooLarge, "the request is larger than max_body, %d bytes", int(s.MaxBody))
	case errors.Is(err, body.ErrEncoding):
		return refuse(unsupported, "%v", err)
	case isTimeout(err):
		return refuse(slow, "the request came too slowly")
	}
	return refuse(invalid, "the request cannot be read: %v", err)
}
