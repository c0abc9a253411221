// Package store runs the embedded ClickHouse: it finds the earshot-store
// executable, starts it on a data directory, starts it again when it dies, and
// stops it. A store that already runs on the directory is used as it is, so that
// `earshot query` works beside a running sidecar and without one.
package store

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/retry"
)

// Settings of a store.
type Settings struct {
	Dir       string        // its data
	Binary    string        // the executable; empty: beside this one, else in PATH
	Engine    string        // library, its folder, or a clickhouse executable; empty: the library of this machine, else clickhouse in PATH
	MaxMemory int64         // bytes; 0: the store's default
	Standby   time.Duration // after so long without a reader's statement the engine is closed, until the next one; 0: never
	Logger    *slog.Logger
	// Fetch is where the fetch of a missing engine is announced. Without it a missing engine is an error.
	Fetch io.Writer
}

// Store is the store of a directory. It answers once it is started; its socket stays the same over restarts.
type Store struct {
	settings Settings
	socket   string
	release  func() // removes the short name of the socket

	again sync.Mutex // held while the store is made to answer again

	mu   sync.Mutex
	proc *process
	stop bool
}

// process is a running earshot-store.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	exited chan struct{}
	stderr *tail
}

// Open returns the store of the directory, started. The error of a store that does not start is its own
// error text.
func Open(ctx context.Context, s Settings) (*Store, error) {
	st, err := New(s)
	if err != nil {
		return nil, err
	}
	if err := st.Start(ctx); err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}

// New returns the store of the directory, which has its socket and its DSN but is not started: Start does
// that.
func New(s Settings) (*Store, error) {
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	socket, release, err := socketOf(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &Store{settings: s, socket: socket, release: release}, nil
}

// Start makes the store answer: the one that runs on the directory, or one that it starts.
func (s *Store) Start(ctx context.Context) error {
	deadline := time.Now().Add(15 * time.Second)
	for {
		if s.answers(ctx) {
			return nil
		}
		err := s.begin(ctx)
		if errors.Is(err, errNoEngine) && s.settings.Engine == "" {
			err = s.beginWithout(ctx, err)
		}
		if err == nil {
			return nil
		}
		// Another process may be starting or stopping one.
		if !strings.Contains(err.Error(), "in use by another") || time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("store: %w", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// othersTime is how long the store of another process that has ended is waited for: a sidecar starts its own again.
const othersTime = 2 * time.Second

// Again makes a store answer that has ended: it was killed, or was that of a sidecar which has ended.
func (s *Store) Again(ctx context.Context) error {
	s.again.Lock()
	defer s.again.Unlock()
	s.mu.Lock()
	own, stop := s.proc != nil, s.stop
	s.mu.Unlock()
	if stop {
		return errors.New("store: it is closed")
	}
	for end := time.Now().Add(othersTime); !own && time.Now().Before(end) && !s.answers(ctx); {
		if !retry.Wait(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
	return s.Start(ctx)
}

// Socket is the Unix socket on which the store answers.
func (s *Store) Socket() string { return s.socket }

// DSN names the database for the ClickHouse driver; user is default for a writer
// and reader for a reader.
func (s *Store) DSN(user, database string) string {
	return "http+unix://" + user + "@" + url.PathEscape(s.socket) + "/" + database
}

// Supervise restarts the store whenever it dies, until ctx ends. When the store belongs to
// another process, usually a reading command, it starts one of its own after that has ended.
func (s *Store) Supervise(ctx context.Context) {
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Second}
	for {
		s.mu.Lock()
		p := s.proc
		s.mu.Unlock()
		began := time.Now()
		if p == nil {
			if !s.others(ctx) {
				return
			}
			s.settings.Logger.Info("the store of another process has ended; starting our own")
		} else {
			select {
			case <-ctx.Done():
				return
			case <-p.exited:
			}
			s.mu.Lock()
			stop := s.stop
			s.mu.Unlock()
			if stop {
				return
			}
			s.settings.Logger.Error("store died, starting it again", "how", p.cmd.ProcessState.String(), "stderr", p.stderr.String())
		}
		if time.Since(began) > time.Minute {
			backoff.Reset()
		}
		for pause := backoff.Next(); ; {
			if !retry.Wait(ctx, pause) {
				return
			}
			err := s.start(ctx, waitForOthers)
			if err == nil {
				break
			}
			if s.answers(ctx) { // a reading command was faster, and keeps it for longer than that
				s.mu.Lock()
				s.proc = nil
				s.mu.Unlock()
				break
			}
			pause = backoff.Next()
			s.settings.Logger.Error("store does not start", "error", err, "retry_in", pause)
		}
	}
}

// others waits until the store of another process has ended. It returns false when
// ctx has ended before.
func (s *Store) others(ctx context.Context) bool {
	for missed := 0; missed < 2; {
		if !retry.Wait(ctx, 500*time.Millisecond) {
			return false
		}
		if s.answers(ctx) {
			missed = 0
		} else {
			missed++
		}
	}
	return ctx.Err() == nil
}

// A store is asked to end and has this time to do it; one that does not answer has less: it
// is stopped or hangs, and the rows that it accepted are with the kernel.
const (
	endTime     = 15 * time.Second
	hungEndTime = 2 * time.Second
)

// Close stops the store if it was started here.
func (s *Store) Close() {
	s.mu.Lock()
	s.stop = true
	p := s.proc
	s.mu.Unlock()
	defer s.release()
	if p == nil {
		return
	}
	wait := endTime
	ctx, cancel := context.WithTimeout(context.Background(), hungEndTime)
	if !s.answers(ctx) {
		wait = hungEndTime
	}
	cancel()
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.exited:
	case <-time.After(wait):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// exitNoEngine is the store's exit code where it finds no engine.
const exitNoEngine = 3

// errNoEngine means that the engine is not on this machine.
var errNoEngine = errors.New("no engine")

// noEngine is errNoEngine in the words of the store.
type noEngine struct{ text string }

func (e *noEngine) Error() string   { return e.text }
func (e *noEngine) Is(t error) bool { return t == errNoEngine }

// errSilent means that the store ended without an error text: it was killed.
var errSilent = errors.New("ended without an error text")

// begin starts the store, up to three times if it is killed meanwhile.
func (s *Store) begin(ctx context.Context) error {
	for n := 1; ; n++ {
		err := s.start(ctx, 0)
		if !errors.Is(err, errSilent) || n == 3 {
			return err
		}
	}
}

// beginWithout starts the store on a machine without the engine, which err reports: after a fetch, or else
// with the clickhouse executable in PATH.
func (s *Store) beginWithout(ctx context.Context, err error) error {
	if s.settings.Fetch != nil {
		if err = Fetch(ctx, s.settings); err == nil {
			return s.begin(ctx)
		}
	}
	path, missing := exec.LookPath("clickhouse")
	if missing != nil || ctx.Err() != nil {
		return err
	}
	s.settings.Logger.Info("there is no engine library: the store is a clickhouse server", "executable", path)
	s.settings.Engine = path
	return s.begin(ctx)
}

// waitForOthers is how long the store of a sidecar waits for those of reading commands, each of which
// has one of its own while the sidecar has none: without a wait, a row of them could keep it out.
const waitForOthers = 15 * time.Second

// start starts the store and waits until it answers. The store waits that long for another one
// to leave the directory.
func (s *Store) start(ctx context.Context, wait time.Duration) error {
	binary, err := find(s.settings.Binary)
	if err != nil {
		return err
	}
	args := []string{"--path", s.settings.Dir, "--socket", s.socket, "--watch-stdin", "--wait", wait.String()}
	if s.settings.Engine != "" {
		args = append(args, "--engine", s.settings.Engine)
	}
	if s.settings.MaxMemory > 0 {
		args = append(args, "--max-memory", strconv.FormatInt(s.settings.MaxMemory, 10))
	}
	if s.settings.Standby > 0 {
		args = append(args, "--standby", s.settings.Standby.String())
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = environment()
	cmd.SysProcAttr = ownGroup()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p := &process{cmd: cmd, stdin: stdin, exited: make(chan struct{}), stderr: &tail{}}
	cmd.Stderr = p.stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", binary, err)
	}
	line := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		r := bufio.NewReader(stdout)
		l, _ := r.ReadString('\n')
		line <- l
		_, _ = io.Copy(io.Discard, r)
	}()
	go func() {
		<-read // the pipe is closed by Wait
		_ = cmd.Wait()
		close(p.exited)
	}()
	fail := func(err error) error {
		_ = cmd.Process.Kill()
		<-p.exited
		return err
	}
	select {
	case l := <-line:
		if !strings.HasPrefix(l, "listening on ") {
			<-p.exited
			text := strings.TrimPrefix(p.stderr.String(), "earshot-store: ")
			switch {
			case p.cmd.ProcessState.ExitCode() == exitNoEngine:
				return &noEngine{text}
			case text != "":
				return errors.New(text)
			}
			return fmt.Errorf("%s %w", binary, errSilent)
		}
		s.mu.Lock()
		s.proc = p
		s.mu.Unlock()
		return nil
	case <-time.After(60 * time.Second):
		return fail(errors.New("it does not answer after a minute"))
	case <-ctx.Done():
		return fail(ctx.Err())
	}
}

// Check reports why an embedded store could not start: its executable or the engine is
// not here.
func Check(ctx context.Context, s Settings) error {
	path, err := find(s.Binary)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, path, "--check", "--engine", s.Engine).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %s", path, cmp.Or(strings.TrimPrefix(strings.TrimSpace(string(out)), "earshot-store: "), err.Error()))
	}
	return nil
}

// Engine names the engine of the executable beside this one or in PATH. It is empty without one.
func Engine(ctx context.Context) string {
	path, err := find("")
	if err != nil {
		return ""
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return ""
	}
	_, engine, _ := strings.Cut(strings.TrimSpace(string(out)), " engine ")
	return engine
}

// Fetch fetches the engine, unless it is on this machine, and announces that with its size. The first
// engine of a platform whose integrity is not in the release is pinned in the data directory.
func Fetch(ctx context.Context, s Settings) error {
	path, err := find(s.Binary)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, "--fetch", "--path", s.Dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it removes a half fetched archive
	cmd.WaitDelay = endTime
	cmd.Env = environment("PATH", "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "NODE_EXTRA_CA_CERTS",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NPM_TOKEN")
	for _, v := range os.Environ() {
		if strings.HasPrefix(strings.ToLower(v), "npm_config_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	stderr := &tail{}
	cmd.Stdout, cmd.Stderr = s.Fetch, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the ClickHouse engine is not on this machine and could not be fetched (%s): type `earshot store fetch` where there is a network, or name a ClickHouse server in exporters.clickhouse.dsn",
			cmp.Or(strings.TrimPrefix(stderr.String(), "earshot-store: "), err.Error()))
	}
	return nil
}

// find returns the path of the executable.
func find(binary string) (string, error) {
	if binary != "" {
		return binary, nil
	}
	if exe, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(exe), "earshot-store"); executable(beside) {
			return beside, nil
		}
	}
	path, err := exec.LookPath("earshot-store")
	if err != nil {
		return "", errors.New("the executable earshot-store is neither beside earshot nor in PATH: type `make build`, or name a ClickHouse server in exporters.clickhouse.dsn")
	}
	return path, nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// environment has the variables of this process that the store gets: where the engine is, and how it
// logs and counts time, and those that are named. Secrets of the sidecar are not among it.
func environment(more ...string) []string {
	var out []string
	for _, name := range append([]string{"EARSHOT_ENGINE_DIR", "XDG_CACHE_HOME", "HOME", "TZ", "TMPDIR", "GOCOVERDIR", "SYSTEMROOT"}, more...) {
		if v, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// answers reports whether a store runs on the socket. The socket is in a directory of this
// user's, and the process behind it is this user's, so it is no other's.
func (s *Store) answers(ctx context.Context) bool { return s.get(ctx, "/ping", "Ok.") }

// Standby reports whether the store has closed its engine because nothing was asked. The question does not open it,
// and a store whose data directory was removed or replaced opens it, and finds that out.
func (s *Store) Standby(ctx context.Context) bool { return s.get(ctx, "/standby", "yes") }

// get reports whether the answer to a request begins like this.
func (s *Store) get(ctx context.Context, path, begins string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	transport := s.transport()
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://store"+path, nil)
	if err != nil {
		return false
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 16))
	return resp.StatusCode == http.StatusOK && bytes.HasPrefix(body, []byte(begins))
}

// transport sends requests to the socket.
func (s *Store) transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
			if err != nil {
				return nil, err
			}
			if err := ownPeer(c); err != nil {
				c.Close()
				return nil, err
			}
			return c, nil
		},
		DisableCompression: true,
	}
}

// NextRead waits until a statement is about to read, and returns how many have; done is the number
// that was returned last, for whose sake rows were flushed. It returns done again after ten seconds without
// any, and when it is called for the first time.
func (s *Store) NextRead(ctx context.Context, done uint64) (uint64, error) {
	transport := s.transport()
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://store/flush?writer=%d&done=%d", os.Getpid(), done), nil)
	if err != nil {
		return done, err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return done, fmt.Errorf("store: wait for reads: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 256))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %s", resp.Status, bytes.TrimSpace(body))
	}
	var n uint64
	if err == nil {
		n, err = strconv.ParseUint(string(bytes.TrimSpace(body)), 10, 64)
	}
	if err != nil {
		return done, fmt.Errorf("store: wait for reads: %w", err)
	}
	return n, nil
}

// maxSocket is the length of a socket's name that every system takes.
const maxSocket = 100

// socketOf is the name of the socket in a data directory. Where the name is too long for the
// system, it is a shorter one, through a link in a temporary directory that release removes, or the next
// start if this process is killed.
func socketOf(dir string) (socket string, release func(), err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, err
	}
	const name = "http.sock"
	if socket = filepath.Join(dir, name); len(socket) <= maxSocket {
		return socket, func() {}, nil
	}
	tmp, release, err := OwnedDir(os.TempDir())
	if err != nil {
		return "", nil, err
	}
	if err := os.Symlink(dir, filepath.Join(tmp, "d")); err != nil {
		release()
		return "", nil, err
	}
	return filepath.Join(tmp, "d", name), release, nil
}

// tail is a writer that keeps the first and the last 2 KiB: the report of a crash begins with its reason, and goes on with
// stacks and registers.
type tail struct {
	mu        sync.Mutex
	head, end []byte
	left      int // bytes between the two that were left out
}

const tailPart = 2 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	first := min(n, tailPart-len(t.head))
	t.head, b = append(t.head, b[:first]...), b[first:]
	t.end = append(t.end, b...)
	if over := len(t.end) - tailPart; over > 0 {
		t.end = append(t.end[:0], t.end[over:]...)
		t.left += over
	}
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	between := ""
	if t.left > 0 {
		between = fmt.Sprintf("\n… %d bytes …\n", t.left)
	}
	return strings.TrimSpace(string(t.head) + between + string(t.end))
}
