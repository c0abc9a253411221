package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// root is the repository.
const root = "../.."

const (
	longSession  = "10a60000-0000-4000-8000-000000000001" // one turn of longSteps steps
	stuckSession = "57ac0000-0000-4000-8000-000000000001"
	busySession  = "b0570000-0000-4000-8000-000000000001"
	demoSession  = "c0ffee00-51d2-4f0b-8a3e-9d7b6c5a4e21"
)

// longSteps are the steps of the long trace. EARSHOT_LARGE_TRACE=100000 go test -run TestUI/trace has as many.
var longSteps = func() int {
	if n, err := strconv.Atoi(os.Getenv("EARSHOT_LARGE_TRACE")); err == nil {
		return n
	}
	return 10_000
}()

// world is a running `earshot ui` with its configuration and traffic.
type world struct {
	url, config, traffic string
}

// open sends traffic through the real binaries into an embedded store, and starts the pages
// over it.
func open(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{config: filepath.Join(dir, "demo", "earshot.yaml"), traffic: filepath.Join(dir, "demo", "traffic")}
	earshot(t, "demo", "--dir", filepath.Join(dir, "demo"))
	gen := exec.CommandContext(t.Context(), "go", "run", "./bench/cmd/gen", "-dir", filepath.Join(w.traffic, "legion"),
		"-sessions", "30", "-bytes", "3e6", "-max-content", "3000", "-start", time.Now().UTC().Add(-5*time.Hour).Format(time.RFC3339))
	gen.Dir = root
	gen.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := gen.CombinedOutput(); err != nil {
		t.Fatalf("gen: %v\n%s", err, out)
	}
	w.write(t, longSession, long(time.Now().Add(-4*time.Hour)))
	earshot(t, "run", "-c", w.config, "--until-idle", "3s")
	w.write(t, stuckSession, pending(stuckSession, time.Now().Add(-4*time.Minute), time.Minute))
	w.write(t, busySession, pending(busySession, time.Now().Add(-5*time.Second), time.Hour))

	w.url = serve(t, w)
	start(t, "run", "-c", w.config) // work is stuck only while a sidecar runs
	return w
}

// serve starts the pages, and returns their address.
func serve(t *testing.T, w *world) string {
	t.Helper()
	line, err := bufio.NewReader(start(t, "ui", "-c", w.config, "--listen", "127.0.0.1:0")).ReadString('\n')
	url := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(url, "http://") {
		t.Fatalf("earshot ui printed %q: %v", line, err)
	}
	return url
}

// start starts a command of the built binary, which is interrupted when the test ends, and
// returns its output.
func start(t *testing.T, args ...string) io.Reader {
	t.Helper()
	cmd := exec.Command(filepath.Join(root, "bin", "earshot"), args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("earshot %s: %v", args[0], err)
		}
	})
	return out
}

// earshot runs a command of the built binary.
func earshot(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin", "earshot"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("earshot %s: %v (make build makes it)\n%s", args[0], err, out)
	}
}

// write adds lines to a transcript of Claude Code.
func (w *world) write(t *testing.T, session string, lines []string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(w.traffic, "claude-code", session+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A transcript in the making.
type transcript struct {
	session string
	at      time.Time
	lines   []string
	parent  string
}

func (t *transcript) line(after time.Duration, kind string, message map[string]any) {
	t.at = t.at.Add(after)
	id := fmt.Sprintf("%s-%012d", t.session[:23], len(t.lines)+1)
	l := map[string]any{
		"sessionId": t.session, "uuid": id, "type": kind, "timestamp": t.at.UTC().Format("2006-01-02T15:04:05.000Z"),
		"version": "2.1.229", "cwd": "/srv/quay", "userType": "external", "isSidechain": false, "parentUuid": nil, "message": message,
	}
	if t.parent != "" {
		l["parentUuid"] = t.parent
	}
	t.parent = id
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // the texts are ours
	}
	t.lines = append(t.lines, string(b))
}

func (t *transcript) user(after time.Duration, content any) {
	t.line(after, "user", map[string]any{"role": "user", "content": content})
}

func (t *transcript) assistant(after time.Duration, id, stop string, block map[string]any) {
	t.line(after, "assistant", map[string]any{
		"id": id, "type": "message", "role": "assistant", "model": "claude-opus-4-5-20251101", "content": []any{block}, "stop_reason": stop,
		"usage": map[string]int{"input_tokens": 12, "output_tokens": 40, "cache_read_input_tokens": 9000},
	})
}

// oneFails is of how many calls of the long trace one fails.
const oneFails = 997

// long is a turn of longSteps steps, half of them tools, half of them model turns.
func long(at time.Time) []string {
	t := &transcript{session: longSession, at: at}
	t.user(0, "Weigh every crate of the quay and tell me which one is too heavy.")
	for n := range longSteps / 2 {
		call := fmt.Sprintf("toolu_crate_%d", n)
		t.assistant(400*time.Millisecond, fmt.Sprintf("msg_crate_%d", n), "tool_use",
			map[string]any{"type": "tool_use", "id": call, "name": "Bash", "input": map[string]string{"command": fmt.Sprintf("weigh --crate %d", n)}})
		t.user(600*time.Millisecond, []any{map[string]any{"type": "tool_result", "tool_use_id": call, "content": fmt.Sprintf("crate %d: %d kg", n, 40+n%17), "is_error": n%oneFails == oneFails-1}})
	}
	t.assistant(time.Second, "msg_crates", "end_turn", map[string]any{"type": "text", "text": "No crate is too heavy: the heaviest weighs 56 kg."})
	return t.lines
}

// pending is a turn whose last call has no answer: it is stuck when it is over its own timeout.
// A record that is read more than five minutes after it was written is history, and gets no verdict.
func pending(session string, at time.Time, timeout time.Duration) []string {
	t := &transcript{session: session, at: at}
	t.user(0, "Ask the crane whether it is free.")
	t.assistant(2*time.Second, "msg_crane", "tool_use",
		map[string]any{"type": "tool_use", "id": "toolu_crane", "name": "Bash", "input": map[string]any{"command": "curl http://crane.quay.example/state", "timeout": timeout.Milliseconds()}})
	return t.lines
}
