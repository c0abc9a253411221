package conformance

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/host"
)

// Exec runs a decoder that is an executable, as the sidecar does. One that has
// crashed is started again for the next stream.
type Exec struct {
	path    string
	args    []string
	grpc    bool // nothing crosses but over gRPC
	dir     string
	stderr  tail
	process *host.Process
	rpc     rpc
	desc    Description
}

var _ Subject = (*Exec)(nil)

// NewExec starts the executable with this process's environment. Close must be
// called.
func NewExec(ctx context.Context, path string, args ...string) (*Exec, error) {
	return newExec(ctx, "executable", &Exec{path: path, args: args})
}

// OverGRPC starts the executable once more and speaks to it over gRPC alone. It returns nil when that
// is how e is spoken to.
func (e *Exec) OverGRPC(ctx context.Context) (*Exec, error) {
	if c, is := e.rpc.conn.(*host.RPC); e.grpc || is && c.OverGRPC() {
		return nil, nil
	}
	return newExec(ctx, "executable over gRPC", &Exec{path: e.path, args: e.args, grpc: true})
}

func newExec(ctx context.Context, where string, e *Exec) (*Exec, error) {
	dir, err := os.MkdirTemp("", "earshot-test-") // mode 0700
	if err != nil {
		return nil, err
	}
	e.dir = dir
	if err := e.start(ctx); err != nil {
		e.Close()
		return nil, err
	}
	info := e.process.Info()
	e.desc = Description{Where: where, Info: info, Snapshots: e.process.Snapshots()}
	return e, nil
}

// startTimeout is more than a sidecar grants by default: no check is of the time that an interpreter takes to start on a busy machine.
const startTimeout = 30 * time.Second

func (e *Exec) start(ctx context.Context) error {
	e.stop()
	p, err := host.Start(ctx, host.Settings{
		Name: "under test", Path: e.path, Args: e.args, Env: os.Environ(), SocketDir: e.dir, Stderr: &e.stderr, GRPC: e.grpc,
		StartTimeout: startTimeout, CallTimeout: startTimeout,
	})
	if note := e.stderr.note(); err != nil && note != "" {
		// go-plugin's list of possible causes is for a process that is silent.
		cause, _, _ := strings.Cut(err.Error(), "\nThis usually means\n")
		return errors.New(cause + note)
	}
	if err != nil {
		return err
	}
	e.process = p
	c, err := p.Decode(context.Background())
	if err != nil {
		return err
	}
	e.rpc = rpc{conn: c, next: e.rpc.next, note: func() string {
		p.Died() // the connection may end before the last output of the process is read
		return e.stderr.note()
	}}
	return nil
}

func (e *Exec) stop() {
	if e.rpc.conn != nil {
		e.rpc.conn.Close()
	}
	if e.process != nil {
		e.process.Kill()
	}
	e.rpc, e.process = rpc{next: e.rpc.next}, nil // numbers of streams that are open still are not used again
}

// Describe implements Subject.
func (e *Exec) Describe() Description { return e.desc }

// Open implements Subject.
func (e *Exec) Open(ctx context.Context, s decoder.Stream, snapshot []byte) (Stream, error) {
	if e.process == nil || e.rpc.err != nil || e.process.Exited() {
		if err := e.start(ctx); err != nil {
			return nil, err
		}
	}
	return e.rpc.open(ctx, s, snapshot)
}

// Close ends the process and removes its socket's directory.
func (e *Exec) Close() {
	e.stop()
	_ = os.RemoveAll(e.dir)
}

// tail keeps the last tailSize bytes that are written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if n := len(t.buf) - tailSize; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	return len(b), nil
}

// note returns the stderr of the process, to be added to an error. The host starts a process
// that ends at once several times: text that it wrote each time is in the note once.
func (t *tail) note() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := string(bytes.ToValidUTF8(t.buf, []byte("?")))
	for n := 3; n > 1; n-- {
		if one := s[:len(s)/n]; s == strings.Repeat(one, n) {
			s = one
			break
		}
	}
	if s = strings.TrimSpace(s); s != "" {
		return "\nits stderr: " + s
	}
	return ""
}
