package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRunCommand runs a command whose provider is an invented server, without any configuration, once alone
// and once beside earshot up: its calls are rows afterwards, and its input, output, signals and status are
// its own. Without a store it runs unrecorded.
func TestRunCommand(t *testing.T) {
	h := newHome(t)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/gate/v1/messages" || r.Header.Get("X-Api-Key") != "k" {
			http.NotFound(w, r)
			return
		}
		text := "Aye, trim it."
		if strings.Contains(string(body), "anchor") {
			text = "Aye, drop it."
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"msg_%d","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":5}}`, len(body), text)
	}))
	defer provider.Close()
	self, err := os.Executable()
	h.must(err)
	env := append(os.Environ(), "HOME="+h.dir, "XDG_DATA_HOME="+h.path("share"), "XDG_CONFIG_HOME="+h.path("config"), "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "EARSHOT_CONFIG=",
		"ANTHROPIC_BASE_URL="+provider.URL+"/gate", "POST="+self)
	if cache, err := os.UserCacheDir(); err == nil {
		env = append(env, "XDG_CACHE_HOME="+cache) // the engine
	}
	start := func(stdin string, args ...string) *process {
		p := &process{Cmd: exec.Command(filepath.Join(bin, "earshot"), args...), done: make(chan struct{})}
		p.Dir, p.Env, p.Stdin = h.dir, env, strings.NewReader(stdin)
		p.Stdout, p.Stderr = &p.out, &p.out
		h.must(p.Start())
		go func() { p.err = p.Wait(); close(p.done) }()
		h.Cleanup(func() { _ = p.Process.Kill(); <-p.done })
		return p
	}
	status := func(p *process, want int) string {
		t.Helper()
		<-p.done
		if got := p.ProcessState.ExitCode(); got != want {
			t.Errorf("status %d, want %d:\n%s", got, want, &p.out)
		}
		return p.out.String()
	}
	h.write("agent.sh", `read prompt
case "$ANTHROPIC_BASE_URL" in http://127.0.0.1:*/gate) ;; *) echo "base $ANTHROPIC_BASE_URL" ;; esac
EARSHOT_E2E_PROMPT="$prompt" "$POST" -test.run '^TestPost$' >answer.txt || cat answer.txt
echo "heard $prompt"
exit 7
`)
	if out := status(start("Trim the sail.\n", "run", "--", "sh", "agent.sh"), 7); out != "heard Trim the sail.\n" {
		t.Errorf("the command's output:\n%s", out)
	}
	if out := status(start("", "sessions", "-o", "json"), 0); !strings.Contains(out, "Trim the sail.") {
		t.Errorf("its call is in no row:\n%s", out)
	}
	up := start("", "up", "--no-open", "--listen", "127.0.0.1:0")
	h.until("the pages", func() bool { return strings.Contains(up.out.String(), "http://127.0.0.1:") })
	status(start("Drop the anchor.\n", "run", "--", "sh", "agent.sh"), 7)
	if out := status(start("", "query", "SELECT content FROM v_messages WHERE content LIKE 'Aye, %' ORDER BY content"), 0); !strings.Contains(out, "drop it") || !strings.Contains(out, "trim it") {
		t.Errorf("rows:\n%s", out)
	}
	h.must(up.Process.Signal(os.Interrupt))
	h.waitExit(up)

	p := start("", "run", "--", "sh", "-c", `trap 'echo term; exit 3' TERM; echo on; while :; do sleep 0.05; done`)
	h.until("the command", func() bool { return strings.Contains(p.out.String(), "on") })
	h.must(p.Process.Signal(syscall.SIGTERM))
	if out := status(p, 3); out != "on\nterm\n" {
		t.Errorf("signalled:\n%s", out)
	}
	status(start("", "run", "--", "sh", "-c", "kill -9 $$"), 128+9)
	h.write("earshot.yaml", "data_dir: other\nstore: {binary: /nowhere}\nsources: [{name: a, type: file, format: legion, paths: [x]}]\n")
	if out := status(start("", "run", "--", "sh", "-c", `echo "$ANTHROPIC_BASE_URL"; exit 5`), 5); strings.Count(out, "\n") != 2 ||
		!strings.HasPrefix(out, "earshot: sh is not recorded: ") || !strings.HasSuffix(out, "\n"+provider.URL+"/gate\n") {
		t.Errorf("without a store:\n%s", out)
	}
}

// promptVariable makes the test binary that program.
const promptVariable = "EARSHOT_E2E_PROMPT"

// TestPost is the program of the command of TestRunCommand: it calls the provider.
func TestPost(t *testing.T) {
	prompt := os.Getenv(promptVariable)
	if prompt == "" {
		t.Skip("not the command")
	}
	body := fmt.Sprintf(`{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":%q}]}`, prompt)
	r, err := http.NewRequest(http.MethodPost, os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", "k")
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), "Aye,") {
		t.Fatalf("%s: %s %v", resp.Status, b, err)
	}
}
