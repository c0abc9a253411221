package livetail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// ErrNotRunning means that no sidecar runs on a data directory.
var ErrNotRunning = errors.New("no sidecar runs there")

// note is the file in the data directory with the path of the socket. The socket is not there
// itself, because its path may have 108 bytes at most.
const note = "frames.addr"

// Server serves a Hub on a socket that only the sidecar's own user may open.
type Server struct {
	http *http.Server
	note string
	stop context.CancelFunc
	done chan struct{}
}

// Listen serves p on a socket in a directory of its own, and writes its path to the data
// directory.
func Listen(p *Hub, sockets, dataDir string) (*Server, error) {
	path := filepath.Join(sockets, "frames.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("frames: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{note: filepath.Join(dataDir, note), stop: stop, done: make(chan struct{})}
	if err := os.WriteFile(s.note, []byte(path), 0o600); err != nil {
		stop()
		_ = l.Close()
		return nil, fmt.Errorf("frames: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /frames", p)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l)
	}()
	return s, nil
}

// Close ends the server and the requests of its watchers.
func (s *Server) Close() {
	s.stop()
	_ = s.http.Close()
	<-s.done
	_ = os.Remove(s.note)
}

// Watch asks the sidecar on a data directory for frames; see ServeHTTP. It fails
// with ErrNotRunning when there is none.
func Watch(ctx context.Context, dataDir string, query url.Values) (io.ReadCloser, error) {
	path, err := os.ReadFile(filepath.Join(dataDir, note))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("frames: %w", err)
	}
	t := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", string(path))
		if err != nil { // it was killed
			return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
		}
		return c, nil
	}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://sidecar/frames?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	res, err := t.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, fmt.Errorf("frames: %s", res.Status)
	}
	return res.Body, nil
}
