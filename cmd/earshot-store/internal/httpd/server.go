package httpd

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/engine"
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/sqltext"
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/standby"
)

// errStopping ends the statements that outlive a shutdown's patience.
var errStopping = errors.New("httpd: shutting down")

// Server answers HTTP requests from an engine. Its listener is a Unix socket in a directory that
// only its owner enters, so no web page and no other user reaches it.
type Server struct {
	eng   *engine.Engine
	guard *sqltext.Guard
	spool string // folder for results that wait_end_of_query holds back
	flush *flushes
	calm  *calm
	quiet *silence
	http  *http.Server
	conns standby.Conns
	stop  context.CancelCauseFunc
}

// Settings of a server.
type Settings struct {
	Spool   string        // an existing folder on a disk with room
	Silence time.Duration // see Server.Silent; 0: never
	Flushed Flushed       // of the program before
}

// New makes a server.
func New(eng *engine.Engine, settings Settings) *Server {
	ctx, stop := context.WithCancelCause(context.Background())
	s := &Server{eng: eng, guard: sqltext.NewGuard(eng.TableFunctions()), spool: settings.Spool, flush: newFlushes(settings.Flushed), calm: newCalm(eng.Trim), quiet: newSilence(settings.Silence, eng.Working), stop: stop}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    1 << 20,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	s.conns.Follow(s.http)
	s.http.RegisterOnShutdown(s.flush.close)
	s.http.RegisterOnShutdown(s.calm.close)
	s.http.RegisterOnShutdown(s.quiet.close)
	return s
}

// Silent sends, once, when no reader's statement has run for as long as the settings have it, no writer's for 75 seconds, and the
// engine has no work of its own.
func (s *Server) Silent() <-chan struct{} { return s.quiet.reached }

// Serve answers until Shutdown, then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(s.conns.Listener(l)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Leave answers the requests that have begun, and those that follow on the same connections at once, and returns copies of the
// connections without one, for another program. Serve has ended, and Shutdown follows.
func (s *Server) Leave(ctx context.Context) []int {
	s.flush.close() // writers wait long
	return s.conns.Take(ctx)
}

// Shutdown stops accepting and waits for the running statements, until ctx ends;
// then it kills them, and waits a moment for them to end. An error means that one
// is still running.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	s.stop(errStopping)
	if err == nil {
		return nil
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return s.http.Shutdown(grace)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ping":
		ok(w)
		return
	case "/flush":
		s.flush.serve(w, r)
		return
	case standby.Path:
		w.Write([]byte("no\n"))
		return
	case "/":
	default:
		http.Error(w, "There is no handle "+r.URL.Path, http.StatusNotFound)
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if r.URL.RawQuery == "" {
			ok(w)
			return
		}
	case http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "The method "+r.Method+" is not supported", http.StatusMethodNotAllowed)
		return
	}
	s.statement(w, r)
}

func ok(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.Write([]byte("Ok.\n"))
}

// statement answers a request that carries a statement.
func (s *Server) statement(w http.ResponseWriter, r *http.Request) {
	defer s.calm.statement()()
	end := s.quiet.statement()
	req, err := parse(r)
	h := w.Header()
	h.Set("X-ClickHouse-Server-Display-Name", "earshot-store")
	h.Set("X-ClickHouse-Timezone", s.eng.Timezone())
	if req == nil {
		req = &request{id: newID()}
	}
	defer func() { end(req.by) }()
	h.Set("X-ClickHouse-Query-Id", req.id)
	resp := newResponse(w, req, s.eng.Version(), s.spool)
	defer resp.close()
	if err == nil {
		err = s.run(r, req, resp)
	}
	if err == nil {
		err = resp.finish()
	}
	if err != nil {
		resp.fail(err)
	}
}
