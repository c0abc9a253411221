package wrap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain is the tests, or one of the programs that they run.
func TestMain(m *testing.M) {
	switch os.Getenv("WRAP_TEST") {
	case "":
		goleak.VerifyTestMain(m)
	case "wrapper":
		settings := Settings{Dir: os.Getenv("WRAP_DIR"), Program: "echo", Redact: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("secret"), []byte("[redacted]")) }}
		r := NewRecorder(func() (Settings, error) { return settings, nil })
		_ = os.Setenv("WRAP_TEST", "program")
		state, err := Command{Args: os.Args, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Tap: r.Tap}.Run()
		r.Close()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(126)
		}
		Exit(state)
	case "program":
		program()
	}
}

// program is one of several, by its argument.
func program() {
	switch os.Args[1] {
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
		os.Exit(3)
	case "signal": // prints the ones that it gets, and ends by the last
		signals := make(chan os.Signal, 8)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGUSR1)
		fmt.Println("ready")
		for s := range signals {
			fmt.Println(s)
			if s == syscall.SIGINT {
				signal.Reset()
				fmt.Println("waiting")
				select {}
			}
		}
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "abort":
		_ = syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; kill -ABRT $$"}, os.Environ())
	case "child": // it ends, and a child of its own keeps its output open
		c := exec.Command("/bin/sleep", "30")
		c.Stdout = os.Stdout
		_ = c.Start()
		fmt.Println(c.Process.Pid)
	case "deaf": // closes its input, and works on
		_ = os.Stdin.Close()
		fmt.Println("closed")
		time.Sleep(300 * time.Millisecond)
	case "mute": // closes its output, and reads on
		_ = os.Stdout.Close()
		n, _ := io.Copy(io.Discard, os.Stdin)
		fmt.Fprintln(os.Stderr, n)
	}
	os.Exit(0)
}

// wrapped is the program under a wrapper.
func wrapped(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "WRAP_TEST=wrapper", "WRAP_DIR="+dir)
	return c
}

// bare is the program alone.
func bare(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "WRAP_TEST=program")
	return c
}

// TestProgram compares a client's view of a program with that of the program under a wrapper.
func TestProgram(t *testing.T) {
	payload := bytes.Repeat([]byte("\x00\xff{\"a\":\r\n}\n no line end"), 40_000)
	for name, see := range map[string]func(t *testing.T, c *exec.Cmd) string{
		"echo": func(t *testing.T, c *exec.Cmd) string {
			c.Stdin = bytes.NewReader(payload)
			out, err := c.Output()
			return fmt.Sprint(bytes.Equal(out, payload), " ", err)
		},
		"signal": func(t *testing.T, c *exec.Cmd) string {
			out, err := c.StdoutPipe()
			if err != nil || c.Start() != nil {
				t.Fatal(err)
			}
			var seen strings.Builder
			for buf := make([]byte, 64); ; {
				n, err := out.Read(buf)
				if seen.Write(buf[:n]); err != nil {
					break
				}
				switch text := seen.String(); {
				case strings.HasSuffix(text, "ready\n"):
					_ = c.Process.Signal(syscall.SIGUSR1)
				case strings.HasSuffix(text, "signal 1\n"):
					_ = c.Process.Signal(syscall.SIGINT)
				case strings.HasSuffix(text, "waiting\n"):
					_ = c.Process.Signal(syscall.SIGTERM)
				}
			}
			return fmt.Sprint(seen.String(), c.Wait())
		},
		"kill":  func(_ *testing.T, c *exec.Cmd) string { return fmt.Sprint(c.Run()) },
		"abort": func(_ *testing.T, c *exec.Cmd) string { return fmt.Sprint(c.Run()) },
		"deaf": func(t *testing.T, c *exec.Cmd) string {
			in, err := c.StdinPipe()
			out, err2 := c.StdoutPipe()
			if err != nil || err2 != nil || c.Start() != nil {
				t.Fatal(err, err2)
			}
			b := make([]byte, 7)
			_, _ = io.ReadFull(out, b)
			for err == nil { // until the client notices
				_, err = in.Write(make([]byte, 1024))
			}
			return fmt.Sprint(string(b), strings.Contains(err.Error(), "broken pipe"), c.Wait())
		},
		"mute": func(t *testing.T, c *exec.Cmd) string {
			in, err := c.StdinPipe()
			out, err2 := c.StdoutPipe()
			var stderr bytes.Buffer
			c.Stderr = &stderr
			if err != nil || err2 != nil || c.Start() != nil {
				t.Fatal(err, err2)
			}
			_, readErr := out.Read(make([]byte, 1))
			_, _ = in.Write(make([]byte, 200_000))
			_ = in.Close()
			return fmt.Sprint(readErr, c.Wait(), stderr.String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if want, got := see(t, bare(name)), see(t, wrapped(t, t.TempDir(), name)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestChildKeepsTheOutput: a wrapper ends with its program though the output is still open.
func TestChildKeepsTheOutput(t *testing.T) {
	c := wrapped(t, t.TempDir(), "child")
	out, err := c.StdoutPipe()
	if err != nil || c.Start() != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(out) // returns when the wrapper ends
	var pid int
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	if syscall.Kill(pid, 0) != nil {
		t.Error("the child ended")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// TestTrafficPassesWithoutADisk: a folder that cannot be made, and a file that cannot grow.
func TestTrafficPassesWithoutADisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range []*exec.Cmd{
		wrapped(t, file, "echo"),
		exec.Command("/bin/sh", "-c", `ulimit -f 8; exec "$0" echo`, os.Args[0]), // SIGXFSZ is ignored by Go: EFBIG
	} {
		if c.Env == nil {
			c.Env = append(os.Environ(), "WRAP_TEST=wrapper", "WRAP_DIR="+dir)
		}
		payload := strings.Repeat(`{"jsonrpc":"2.0","method":"tools/call","params":{"text":"`+strings.Repeat("x", 1000)+`"}}`+"\n", 300)
		c.Stdin = strings.NewReader(payload)
		if out, err := c.Output(); string(out) != payload || fmt.Sprint(err) != "exit status 3" {
			t.Errorf("%d bytes of %d: %v", len(out), len(payload), err)
		}
	}
	for _, r := range records(t, dir) { // no half record
		if r.Dir == "" {
			t.Errorf("%+v", r)
		}
	}
}

type record struct {
	T     time.Time
	Dir   Direction
	Frame json.RawMessage
	Lost  int
}

// records reads the recordings of a folder.
func records(t *testing.T, dir string) (all []record) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			var r record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, r)
		}
	}
	return all
}

// TestRecords: messages of both directions, whole however they were cut, without secrets.
func TestRecords(t *testing.T) {
	dir := t.TempDir()
	c := wrapped(t, dir, "echo")
	c.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\r\n\nnot JSON \"secret\"\n" + `{"jsonrpc":"2.0","id":2}`)
	if out, err := c.Output(); fmt.Sprint(err) != "exit status 3" {
		t.Fatalf("%s %v", out, err)
	}
	var got []string
	for _, r := range records(t, dir) {
		got = append(got, string(r.Dir)+" "+string(r.Frame))
		if time.Since(r.T) > time.Hour || r.Lost > 0 {
			t.Errorf("%+v", r)
		}
	}
	var want []string
	for _, d := range []string{"in", "out"} {
		for _, m := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`, `"not JSON \"[redacted]\""`, `{"jsonrpc":"2.0","id":2}`} {
			want = append(want, d+" "+m)
		}
	}
	slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(a[:2], b[:2]) })
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if paths, _ := filepath.Glob(filepath.Join(dir, "acp", "*-echo.jsonl")); len(paths) != 1 {
		t.Error("the recording is not in the folder acp")
	}
}

// TestFormatOf has the first messages of each protocol.
func TestFormatOf(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`: "mcp",
		`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`:                       "mcp",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{}}}`:                     "mcp",
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`:            "acp",
		`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`:                                  "acp",
		`{"jsonrpc":"2.0","method":"session/update","params":{}}`:                                  "acp",
		`{"id":0,"method":"initialize","params":{"clientInfo":{"name":"x"}}}`:                      "codex-app-server",
		`{"jsonrpc":"2.0","id":5,"result":{}}`:                                                     "",
		`no JSON`:                                                                                  "",
	} {
		if got := formatOf([]byte(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestNoiseDoesNotEndTheRecording: a program that prints more than its client has sent, before the first message by which the format
// is known, is recorded from its first line on.
func TestNoiseDoesNotEndTheRecording(t *testing.T) {
	dir := t.TempDir()
	r := NewRecorder(func() (Settings, error) { return Settings{Dir: dir, Program: "noisy"}, nil })
	for range 3 * maxUnknown {
		r.Tap(In, []byte("starting up\n"))
		time.Sleep(time.Millisecond) // the recorder takes what there is at once
	}
	r.Tap(Out, []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`+"\n"))
	r.Close()
	files, _ := filepath.Glob(filepath.Join(dir, "mcp", "*.jsonl"))
	if len(files) != 1 {
		t.Fatalf("recordings: %v", files)
	}
	if b, err := os.ReadFile(files[0]); err != nil || bytes.Count(b, []byte("\n")) != 3*maxUnknown+1 {
		t.Errorf("%d records, %v", bytes.Count(b, []byte("\n")), err)
	}
}

// TestOldRecordingsAreRemoved keeps young ones and those that a wrapper writes.
func TestOldRecordingsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	var locked *os.File
	for name, age := range map[string]time.Duration{"young": time.Hour, "old": 2 * maxAge, "busy": 3 * maxAge} {
		f, err := os.Create(filepath.Join(dir, name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if name == "busy" {
			locked = f
			if err := lock(f); err != nil {
				t.Fatal(err)
			}
		} else {
			_ = f.Close()
		}
		if err := os.Chtimes(f.Name(), now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 { // sparse
		path := filepath.Join(dir, fmt.Sprintf("large-%d.jsonl", i))
		if err := os.WriteFile(path, nil, 0o600); err != nil || os.Truncate(path, maxFolder/2) != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-time.Duration(10-i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	removeOld(dir, now)
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if want := []string{"busy.jsonl", "large-1.jsonl", "large-2.jsonl", "young.jsonl"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
	_ = locked.Close()
}

// BenchmarkRoundTrip prints how long a message and its echo take, without a wrapper and with one, in
// turns: p50-added-us and p99-added-us are of one direction, half of the difference.
func BenchmarkRoundTrip(b *testing.B) {
	type side struct {
		in   io.WriteCloser
		out  io.Reader
		took []time.Duration
	}
	message := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"text":"` + strings.Repeat("y", 900) + `"}}}` + "\n")
	var sides []*side
	for _, c := range []*exec.Cmd{bare("echo"), wrapped(b, b.TempDir(), "echo")} {
		in, err := c.StdinPipe()
		out, err2 := c.StdoutPipe()
		if err != nil || err2 != nil || c.Start() != nil {
			b.Fatal(err, err2)
		}
		defer func() { _ = in.Close(); _ = c.Wait() }()
		sides = append(sides, &side{in: in, out: out})
	}
	answer := make([]byte, len(message))
	for i := range 2 * (b.N + 100) {
		s := sides[i%2]
		began := time.Now()
		if _, err := s.in.Write(message); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(s.out, answer); err != nil {
			b.Fatal(err)
		}
		if s.took = append(s.took, time.Since(began)); i < 200 { // warm
			s.took = s.took[:0]
		}
	}
	at := func(s *side, percent int) float64 {
		slices.Sort(s.took)
		return float64(s.took[len(s.took)*percent/100].Nanoseconds()) / 1e3
	}
	for _, p := range []int{50, 99} {
		b.ReportMetric((at(sides[1], p)-at(sides[0], p))/2, fmt.Sprintf("p%d-added-us", p))
	}
}
