package standby

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Path is where a store answers whether it has no engine, yes or no. The question is no reason to open one.
const Path = "/standby"

// WriterHeader is in the requests of a program that stores rows: its statements are not reads.
const WriterHeader = "X-Earshot-Writer"

// answered begin the requests that need no engine.
var answered = []string{"GET " + Path + " ", "GET /ping ", "POST /flush?"}

// endTime is how long the requests that are answered here may take to end.
const endTime = time.Second

// waiting is a store without an engine.
type waiting struct {
	lost func() bool // the data folder is another one: the engine finds out

	statement chan struct{} // closed when there is one
	arrived   sync.Once
	read      bool   // the statement may be a reader's; not written any more when statement is closed
	direct    *queue // the connections that are answered here

	mu       sync.Mutex
	ends     bool                       // no connection is peeked at any more
	peeked   map[*net.UnixConn]struct{} // nothing was sent on them yet
	others   []*net.UnixConn            // that wait for the engine
	asked    uint64                     // the highest number of reads that a writer knows
	writers  map[string]struct{}        // that wait for a read
	accepted sync.WaitGroup
}

// Wait answers requests that need no engine until a statement arrives or ctx ends, on l and on connections that were accepted
// before. The state that it returns then has the connections, the statement's among them; they are open until the process
// becomes another program. lost reports that the data folder is not the one that was opened.
func Wait(ctx context.Context, l *net.UnixListener, accepted []net.Conn, lost func() bool) (*State, error) {
	w := &waiting{
		lost: lost, statement: make(chan struct{}), direct: &queue{conns: make(chan net.Conn), closed: make(chan struct{}), addr: l.Addr()},
		peeked: make(map[*net.UnixConn]struct{}), writers: make(map[string]struct{}),
	}
	server := &http.Server{Handler: http.HandlerFunc(w.serve), ReadHeaderTimeout: 10 * time.Second}
	server.SetKeepAlivesEnabled(false) // the next request may be a statement
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			w.direct.open.Done()
		}
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(w.direct) })
	for _, c := range accepted {
		if u, ok := c.(*net.UnixConn); ok && !w.ended(u) {
			w.accepted.Go(func() { w.place(u) })
		}
	}
	failed := make(chan error, 1)
	serving.Go(func() { failed <- w.accept(l) })
	var err error
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-w.statement:
	case err = <-failed:
	}
	w.end(false)
	w.mu.Lock()
	w.ends = true
	for c := range w.peeked {
		_ = c.SetReadDeadline(time.Now())
	}
	w.mu.Unlock()
	_ = l.SetDeadline(time.Now()) // ends accept
	w.accepted.Wait()
	w.direct.answered(endTime) // a server that shuts down drops the requests that it has just read
	_ = server.Close()
	serving.Wait()
	if err != nil {
		for _, c := range w.others {
			c.Close()
		}
		return nil, err
	}
	return w.state()
}

// state has copies of the connections: net closes its own in its time.
func (w *waiting) state() (*State, error) {
	s := &State{Asked: w.asked}
	for name := range w.writers {
		s.Writers = append(s.Writers, name)
	}
	for _, c := range w.others {
		_ = c.SetReadDeadline(time.Time{})
		fd, err := Descriptor(c)
		if err == nil {
			fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		}
		if err != nil {
			return nil, fmt.Errorf("standby: keep a connection: %w", err)
		}
		s.Connections = append(s.Connections, fd)
	}
	return s, nil
}

func (w *waiting) accept(l *net.UnixListener) error {
	for {
		c, err := l.AcceptUnix()
		if w.ended(c) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("standby: accept: %w", err)
		}
		w.accepted.Go(func() { w.place(c) })
	}
}

// ended reports whether Wait ends, and keeps a connection that was accepted meanwhile; else it is peeked at.
func (w *waiting) ended(c *net.UnixConn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case c == nil:
	case w.ends:
		w.others = append(w.others, c)
	default:
		w.peeked[c] = struct{}{}
	}
	return w.ends
}

// hold keeps a connection for the engine.
func (w *waiting) hold(c *net.UnixConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = append(w.others, c)
}

// place finds out who answers a connection.
func (w *waiting) place(c *net.UnixConn) {
	begins, err := peek(c)
	w.mu.Lock()
	delete(w.peeked, c)
	w.mu.Unlock()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // another one has sent a statement
		w.hold(c)
		return
	case err != nil:
		c.Close()
		return
	}
	for _, a := range answered {
		if strings.HasPrefix(begins, a) {
			if !w.direct.put(c) {
				w.hold(c)
			}
			return
		}
	}
	w.hold(c)
	w.end(!ofWriter(c, begins))
}

// end ends the wait, for a statement that may be a reader's or for one that is not.
func (w *waiting) end(read bool) {
	w.arrived.Do(func() {
		w.read = read
		close(w.statement)
	})
}

// headWaits is how many milliseconds the rest of a request's head is waited for: one of more than 4 KiB is sent in parts.
const headWaits = 20

// ofWriter reports whether the request that begins like this is a writer's. One whose head is long in coming may be a reader's.
func ofWriter(c *net.UnixConn, begins string) bool {
	for range headWaits {
		if head, _, whole := strings.Cut(begins, "\r\n\r\n"); whole {
			return strings.Contains(head, "\r\n"+WriterHeader+": ")
		}
		time.Sleep(time.Millisecond)
		more, err := peek(c)
		if err != nil {
			return false
		}
		begins = more
	}
	return false
}

// peek returns the first bytes of a request and leaves them to be read. They may be fewer than it takes to
// recognize it, which costs the start of an engine.
func peek(c *net.UnixConn) (string, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return "", err
	}
	var b [16 << 10]byte
	n := 0
	failed := raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK)
		return err != unix.EAGAIN && err != unix.EINTR
	})
	switch {
	case failed != nil:
		return "", failed
	case err != nil:
		return "", err
	case n == 0:
		return "", net.ErrClosed
	}
	return string(b[:n]), nil
}

// serve answers a request that needs no engine.
func (w *waiting) serve(out http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case Path:
		if w.lost() {
			fmt.Fprintln(out, "no")
			w.end(false)
			return
		}
		fmt.Fprintln(out, "yes")
	case "/ping":
		fmt.Fprintln(out, "Ok.")
	case "/flush":
		w.flush(out, r)
	default:
		http.NotFound(out, r)
	}
}

// flush has a writer wait for a statement; it flushes while the engine starts, unless the statement is a writer's. Until then
// there is no reader, which it does not ask again.
func (w *waiting) flush(out http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	done, err := strconv.ParseUint(values.Get("done"), 10, 64)
	if err != nil {
		http.Error(out, "POST /flush?writer=NAME&done=N, with the number of the last answer", http.StatusBadRequest)
		return
	}
	name := values.Get("writer")
	w.mu.Lock()
	w.writers[name] = struct{}{}
	w.mu.Unlock()
	select {
	case <-w.statement:
		if w.read {
			done++
		}
		w.mu.Lock()
		w.asked = max(w.asked, done)
		w.mu.Unlock()
		fmt.Fprintln(out, done)
	case <-r.Context().Done():
		w.mu.Lock()
		delete(w.writers, name)
		w.mu.Unlock()
	}
}

// queue is the listener of connections that were accepted already.
type queue struct {
	open   sync.WaitGroup
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

// put adds a connection; it returns false when the queue is closed.
func (q *queue) put(c net.Conn) bool {
	q.open.Add(1)
	select {
	case q.conns <- c:
		return true
	case <-q.closed:
		q.open.Done()
		return false
	}
}

// answered waits until the connections are closed, for so long. Nothing is put any more.
func (q *queue) answered(patience time.Duration) {
	done := make(chan struct{})
	go func() {
		q.open.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr implements net.Listener.
func (q *queue) Addr() net.Addr { return q.addr }

// Resumed is a listener that first accepts the connections of a state.
func Resumed(l net.Listener, accepted []net.Conn) net.Listener {
	return &resumed{Listener: l, accepted: accepted}
}

type resumed struct {
	net.Listener
	accepted []net.Conn
}

// Accept implements net.Listener. One goroutine accepts.
func (r *resumed) Accept() (net.Conn, error) {
	if len(r.accepted) > 0 {
		c := r.accepted[0]
		r.accepted = r.accepted[1:]
		return c, nil
	}
	c, err := r.Listener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) { // a server would try again
		err = net.ErrClosed
	}
	return c, err
}
