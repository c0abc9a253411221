package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestUp starts everything on a new home directory with the transcripts of two agents, without a
// configuration: the page names the newest conversation, a new line is followed, a second start shows the
// pages of the first, commands without a configuration read the same data, and an interrupt ends
// every process.
func TestUp(t *testing.T) {
	h := newHome(t)
	now := time.Now().UTC()
	claude := func(n int, age time.Duration, text string) string {
		at := now.Add(-age).Format("2006-01-02T15:04:05.000Z")
		return fmt.Sprintf(`{"type":"user","uuid":"u%[1]d","sessionId":"%08[1]d-0000-4000-8000-000000000001","timestamp":"%[2]s","cwd":"/work","version":"2.1.0","message":{"role":"user","content":"%[3]s"}}`+"\n", n, at, text)
	}
	for i := range 30 {
		h.write(fmt.Sprintf(".claude/projects/-work-p%d/%08d-0000-4000-8000-000000000001.jsonl", i%3, i), claude(i, time.Duration(i+1)*time.Hour, fmt.Sprintf("Trim sail %d.", i)))
	}
	// The file of a sub-agent is read before that of its caller, and once more when the call is known.
	for name, file := range map[string]string{"main_with_agent": ".jsonl", "subagent_file": "/subagents/agent-a1b2c3d4e5f60718.jsonl"} {
		text, err := os.ReadFile("../../plugins/claude-code/testdata/" + name + "/in.jsonl")
		h.must(err)
		h.write(".claude/projects/-srv/5e550000-0000-4000-8000-0000000000a1"+file, string(text))
	}
	h.write(".codex/sessions/2026/11/02/rollout-2026-11-02T10-00-00-0199.jsonl", fmt.Sprintf(
		`{"timestamp":"%[1]s","type":"session_meta","payload":{"id":"0199","timestamp":"%[1]s","cwd":"/work","originator":"codex_cli_rs","cli_version":"0.60.0"}}`+"\n"+
			`{"timestamp":"%[1]s","type":"event_msg","payload":{"type":"user_message","message":"Coil the rope."}}`+"\n", now.Add(-48*time.Hour).Format("2006-01-02T15:04:05.000Z")))
	h.write(".gemini/tmp/ab12/chats/session-2025-10-27T10-00-8f21.json", fmt.Sprintf(`{"sessionId":"8f21","projectHash":"ab12","startTime":%[1]q,"lastUpdated":%[1]q,"messages":[`+
		`{"id":"m1","timestamp":%[1]q,"type":"user","content":"Splice the line."}]}`, now.Add(-72*time.Hour).Format("2006-01-02T15:04:05.000Z")))
	env := append(os.Environ(), "HOME="+h.dir, "XDG_DATA_HOME="+h.path("share"), "XDG_CONFIG_HOME="+h.path("config"), "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "EARSHOT_CONFIG=")
	if cache, err := os.UserCacheDir(); err == nil {
		env = append(env, "XDG_CACHE_HOME="+cache) // the engine
	}
	start := func(args ...string) *process {
		p := &process{Cmd: exec.Command(filepath.Join(bin, "earshot"), args...), done: make(chan struct{})}
		p.Dir, p.Env = h.dir, env
		p.Stdout, p.Stderr = &p.out, &p.out
		h.must(p.Start())
		go func() { p.err = p.Wait(); close(p.done) }()
		h.Cleanup(func() { _ = p.Process.Kill(); <-p.done })
		return p
	}
	page := func(address string) string {
		resp, err := (&http.Client{Timeout: 10 * time.Second}).Get(address)
		if err != nil {
			return ""
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}

	p := start("up", "--no-open", "--listen", "127.0.0.1:0")
	line := regexp.MustCompile(`(?m)^http://127\.0\.0\.1:\d+/$`)
	address := ""
	h.until("the address of the pages", func() bool {
		address = line.FindString(p.out.String())
		return address != ""
	})
	for _, want := range []string{`Claude Code  31 conversations in 4 projects`, `Codex        1 conversation,`, `Gemini CLI   1 conversation in 1 project`, "Followed too, without a conversation yet: Qwen Code, ", "Wrapped MCP"} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &p.out)
		}
	}
	h.until("the newest conversation", func() bool { return strings.Contains(page(address), "Trim sail 0.") })
	h.until("the end of the backlog", func() bool { return strings.Contains(p.out.String(), "Up to date") })
	if out := h.waitExit(start("sessions", "-o", "json")); strings.Count(out, "Trim sail ") < 30 || !strings.Contains(out, "Splice the line.") {
		t.Errorf("sessions when all is up to date:\n%s", out)
	}
	h.add(".claude/projects/-work-p0/00000000-0000-4000-8000-000000000001.jsonl", claude(31, 0, "Reef the mainsail."))
	h.write(".claude/projects/-work-p9/00000099-0000-4000-8000-000000000001.jsonl", claude(99, 0, "Drop the anchor."))
	h.until("a new conversation", func() bool { return strings.Contains(page(address), "Drop the anchor.") })

	second := start("up", "--no-open")
	if out := h.waitExit(second); !strings.Contains(out, "runs already") || line.FindString(out) != address {
		t.Errorf("the second one:\n%s", out)
	}
	if out := h.waitExit(start("sessions", "-o", "json")); !strings.Contains(out, "Coil the rope.") {
		t.Errorf("sessions without a configuration:\n%s", out)
	}
	if out := h.waitExit(start("doctor")); !strings.Contains(out, "books claude-code") || !strings.Contains(out, "books gemini-cli") || strings.Contains(out, "note  books") {
		t.Errorf("doctor without a configuration:\n%s", out)
	}
	if out := h.waitExit(start("erase", "--session", "00000003-0000-4000-8000-000000000001")); !strings.Contains(out, "nothing is erased yet") {
		t.Errorf("erase without a configuration:\n%s", out)
	}
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	if left := p.children("earshot"); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if _, err := os.Stat(h.path("share/earshot/page.addr")); err == nil {
		t.Error("the note of the page's address is left")
	}
	if _, err := os.Stat(h.path("earshot-data")); err == nil {
		t.Error("data lie in the working directory")
	}
}
