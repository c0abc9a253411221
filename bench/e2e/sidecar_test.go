package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bin is the directory of the executables: EARSHOT_TEST_BIN, or they are built. prepared is a home whose tables are there, and
// built is for what a test builds for others.
var bin, prepared, built string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(promptVariable) != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "earshot-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if bin = os.Getenv("EARSHOT_TEST_BIN"); bin == "" {
		bin = dir
		build := exec.Command("go", "build", "-o", bin, "github.com/earshot-dev/earshot/cmd/earshot", "github.com/earshot-dev/earshot/cmd/earshot-store")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
	}
	prepared, built = filepath.Join(dir, "prepared"), filepath.Join(dir, "built")
	if err := prepare(prepared); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// prepare makes the tables that homes begin with: to make them takes three quarters of the processor
// time of a first start.
func prepare(dir string) error {
	h := home{dir: dir}
	text := "data_dir: " + h.path("data") + "\ntelemetry: {listen: \"\"}\nsources:\n" + files("legion", "none/*.jsonl") + "\n"
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(h.path("earshot.yaml"), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600)); err != nil {
		return err
	}
	if out, err := exec.Command(filepath.Join(bin, "earshot"), "run", "--until-idle", "1ms", "-c", h.path("earshot.yaml")).CombinedOutput(); err != nil {
		return fmt.Errorf("prepare a store: %w\n%s", err, out)
	}
	return nil
}

// home is a data directory with a configuration and the traffic that it names.
type home struct {
	*testing.T
	dir     string
	env     []string  // of its processes, beside that of the tests
	asked   time.Time // by tryQuery, the last time
	started []*process
	rest    func() // stops the store that answer has started, unless that has ended
}

func newHome(t *testing.T) *home { return &home{T: t, dir: t.TempDir()} }

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }

func (h *home) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *home) write(name, data string) {
	h.Helper()
	h.must(os.MkdirAll(filepath.Dir(h.path(name)), 0o755))
	h.must(os.WriteFile(h.path(name), []byte(data), 0o644))
}

func (h *home) add(name, data string) {
	h.Helper()
	f, err := os.OpenFile(h.path(name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	h.must(err)
	_, err = f.WriteString(data)
	h.must(errors.Join(err, f.Close()))
}

// configure writes the configuration: sources and other lines. The tables are there.
func (h *home) configure(lines ...string) *home {
	h.Helper()
	text := strings.ReplaceAll(strings.Join(lines, "\n"), "DIR", h.dir) + "\n"
	if !strings.Contains(text, "telemetry:") {
		text = "telemetry: {listen: \"\"}\n" + text
	}
	h.write("earshot.yaml", "data_dir: "+h.path("data")+"\n"+text)
	if _, err := os.Stat(h.path("data")); errors.Is(err, fs.ErrNotExist) {
		h.prepareData(h.path("data"))
	}
	return h
}

// prepareData makes a data directory that has the tables.
func (h *home) prepareData(dir string) {
	h.Helper()
	h.must(os.Mkdir(dir, 0o700))
	if out, err := exec.Command("cp", "-a", filepath.Join(prepared, "data/store"), filepath.Join(dir, "store")).CombinedOutput(); err != nil {
		h.Fatalf("copy the prepared store: %v\n%s", err, out)
	}
}

// fresh removes the tables that configure has made: a first start makes them.
func (h *home) fresh() *home {
	h.must(os.RemoveAll(h.path("data")))
	return h
}

// files is a source for files of a format below the home.
func files(format, glob string) string {
	return fmt.Sprintf("  - {name: %s, type: file, format: %s, poll_interval: 1s, paths: [%q]}", format, format, "DIR/"+glob)
}

// process is a running earshot.
type process struct {
	*exec.Cmd
	out  lockedBuffer
	done chan struct{}
	err  error
}

// earshot is the command with these arguments, before -c.
func (h *home) earshot(args ...string) *exec.Cmd {
	c := exec.CommandContext(h.Context(), filepath.Join(bin, "earshot"), append(args, "-c", h.path("earshot.yaml"))...)
	c.Env = append(os.Environ(), h.env...)
	return c
}

// start starts earshot with these arguments, before -c. It is killed at the end of
// the test. It does not find the store of the queries before.
func (h *home) start(args ...string) *process {
	h.Helper()
	h.stopStore()
	p := &process{Cmd: exec.Command(filepath.Join(bin, "earshot"), append(args, "-c", h.path("earshot.yaml"))...), done: make(chan struct{})}
	p.Env = append(os.Environ(), h.env...)
	p.Stdout, p.Stderr = &p.out, &p.out
	h.started = append(h.started, p)
	h.must(p.Start())
	go func() { p.err = p.Wait(); close(p.done) }()
	h.Cleanup(func() { _ = p.Process.Kill(); <-p.done })
	return p
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// waitExit waits until the process exits and returns its output.
func (h *home) waitExit(p *process) string {
	h.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * time.Minute):
		_ = p.Process.Signal(syscall.SIGQUIT) // for the stacks of its goroutines
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
			p.kill()
		}
		h.Fatalf("%v does not end:\n%s", p.Args, &p.out)
	}
	if p.err != nil {
		h.Fatalf("%v: %v\n%s", p.Args, p.err, tail(p.out.String()))
	}
	return p.out.String()
}

// drain runs the sidecar until everything is stored.
func (h *home) drain() string {
	h.Helper()
	return h.waitExit(h.start("run", "--until-idle", "300ms"))
}

// until waits for a condition. It rests twice as long as the condition takes: a query is a process, which
// would take the processor from the work that it waits for.
func (h *home) until(condition string, cond func() bool) {
	h.Helper()
	end := time.Now().Add(2 * time.Minute)
	for {
		began := time.Now()
		if cond() {
			return
		}
		if time.Now().After(end) {
			h.Fatal("still waiting for ", condition)
		}
		time.Sleep(max(20*time.Millisecond, 2*time.Since(began)))
	}
}

// query returns the rows of a query, a string each with tabs between the columns.
func (h *home) query(sql string) []string {
	h.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		rows, err := h.answer(sql)
		if err == nil {
			return rows
		}
		if errors.As(err, new(refusedQuery)) || time.Now().After(end) {
			h.Fatal(err)
		}
	}
}

// tryQuery is query without an error, for conditions. It rests between two questions, because each one has rows flushed.
func (h *home) tryQuery(sql string) []string {
	time.Sleep(time.Until(h.asked.Add(250 * time.Millisecond)))
	defer func() { h.asked = time.Now() }()
	rows, _ := h.answer(sql)
	return rows
}

// refusedQuery is the store's error about a query.
type refusedQuery struct{ sql, text string }

func (r refusedQuery) Error() string { return r.sql + ": " + r.text }

// answer asks the store itself, and not by a process for each question, which would take the processor from what is tested. Where
// nothing runs it starts the store, which stays for further questions and commands.
func (h *home) answer(sql string) ([]string, error) {
	h.Helper()
	h.serve()
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", h.path("data/store/http.sock"))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://store/?user=default&database=earshot&final=1&default_format=TSV", strings.NewReader(sql))
	h.must(err)
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refusedQuery{sql, string(b)}
	}
	return rowsOf(string(b)), nil
}

// queryCommand is the output of earshot query, as query returns it.
func (h *home) queryCommand(sql string) ([]string, error) {
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(bin, "earshot"), "query", "-c", h.path("earshot.yaml"), "--format", "TabSeparated", sql)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", sql, err, stderr.Bytes())
	}
	return rowsOf(string(out)), nil
}

// rowsOf are the lines of an output.
func rowsOf(text string) []string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// store starts the store.
func (h *home) store() (stop func()) {
	h.Helper()
	p := h.start("store")
	h.until("the store", func() bool {
		return strings.Contains(p.out.String(), "unix:") || strings.Contains(p.out.String(), "http://")
	})
	return func() {
		_ = p.Process.Signal(os.Interrupt)
		<-p.done
	}
}

// serve starts the store if nothing runs, until another process of the home starts.
func (h *home) serve() {
	h.Helper()
	for _, p := range h.started {
		select {
		case <-p.done:
		default:
			return
		}
	}
	h.rest = h.store()
	h.Cleanup(h.stopStore)
}

// stopStore stops the store that serve has started.
func (h *home) stopStore() {
	if h.rest != nil {
		h.rest()
		h.rest = nil
	}
}

// ask sends a statement to the store that listens on a socket.
func (h *home) ask(socket, sql string) string {
	h.Helper()
	// Where a sidecar found the store of a reading command, which has ended, it is about to start its own.
	dial := func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if c, err = (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil || time.Now().After(end) {
				return c, err
			}
		}
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	resp, err := client.Post("http://store/?user=default&database=earshot&default_format=TSV", "text/plain", strings.NewReader(sql))
	h.must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	h.must(err)
	if resp.StatusCode != http.StatusOK {
		h.Fatalf("%s: %s", sql, b)
	}
	return string(b)
}

// children are the child processes of p with a text in their command line.
func (p *process) children(with string) []int {
	var found []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var pid, parent int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		_, after, _ := bytes.Cut(stat, []byte(") "))
		var state string
		if _, err := fmt.Sscan(string(after), &state, &parent); err != nil || parent != p.Process.Pid {
			continue
		}
		if line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && bytes.Contains(line, []byte(with)) {
			found = append(found, pid)
		}
	}
	return found
}

func tail(s string) string {
	if len(s) > 4000 {
		s = "...\n" + s[len(s)-4000:]
	}
	return s
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
