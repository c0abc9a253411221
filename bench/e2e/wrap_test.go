package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWrap runs an MCP server, in a shell, under earshot wrap while no sidecar runs. A sidecar that starts
// later stores the call, which has no secret on disk; and with a data directory that cannot be made the
// server answers all the same.
func TestWrap(t *testing.T) {
	h := newHome(t).configure("sources:", files("mcp", "data/wrap/mcp/*.jsonl")).fresh()
	const secret = "sk-ant-" + "api03-wrapped0wrapped0wrapped0wrapped0wrapped0wrapped0wrapped0wrapped0"
	requests := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"buoy-client","version":"1"}}}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ring","arguments":{"times":3,"key":"` + secret + `"}}}
`
	answers := `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"bell","version":"1"}}}
{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"It rang."}],"isError":false}}
`
	h.write("answers", answers)
	client := func() (string, string) {
		c := exec.Command(filepath.Join(bin, "earshot"), "wrap", "-c", h.path("earshot.yaml"), "--", "/bin/sh", "-c",
			`{ read a; sed -n 1p "$0"; read b; sed -n 2p "$0"; }; cat; echo end >&2; exit 7`, h.path("answers"))
		in, err := c.StdinPipe()
		h.must(err)
		out, err := c.StdoutPipe()
		h.must(err)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		h.must(c.Start())
		var got bytes.Buffer
		wait := func(line int) { // for that line of the answers
			for strings.Count(got.String(), "\n") < line {
				b := make([]byte, 4096)
				n, err := out.Read(b)
				got.Write(b[:n])
				if err != nil {
					h.Fatal(err, stderr.String())
				}
			}
		}
		for i, r := range strings.SplitAfter(strings.TrimSpace(requests), "\n") {
			_, err := io.WriteString(in, strings.TrimSpace(r)+"\n")
			h.must(err)
			wait(i + 1)
		}
		h.must(in.Close())
		_, err = io.Copy(&got, out)
		h.must(err)
		return got.String(), fmt.Sprint(c.Wait(), " ", stderr.String())
	}
	h.must(os.WriteFile(h.path("data"), nil, 0o600)) // in the place of the folder
	for _, round := range []string{"without a disk", "with one"} {
		if out, end := client(); out != answers || end != "exit status 7 end\n" {
			t.Errorf("%s: %q, %q", round, out, end)
		}
		if info, err := os.Stat(h.path("data")); err == nil && !info.IsDir() {
			h.must(os.Remove(h.path("data")))
		}
	}
	paths, _ := filepath.Glob(h.path("data/wrap/mcp/*-sh.jsonl"))
	if len(paths) != 1 {
		t.Fatalf("recordings: %v", paths)
	}
	recorded, err := os.ReadFile(paths[0])
	h.must(err)
	if bytes.Contains(recorded, []byte(secret)) || bytes.Count(recorded, []byte("\n")) != 4 {
		t.Errorf("%s", recorded)
	}
	h.drain()
	got := h.query(`SELECT kind, agent_name, tool_name, is_error, content, tool_arguments LIKE '%[redacted%' FROM messages FINAL WHERE kind IN ('tool_call', 'tool_result') ORDER BY kind`)
	if d := cmp.Diff([]string{"tool_call\tbell\tring\tfalse\t\t1", "tool_result\tbell\tring\tfalse\tIt rang.\t0"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	got = h.query(`SELECT count() FROM spans FINAL WHERE session_id LIKE '%-sh' AND tool_name = 'ring' AND state = 'closed' AND kind = 'tool'`)
	if len(got) != 1 || got[0] != "1" {
		t.Errorf("ended spans of the call: %q", got)
	}

	sessions := h.query("SELECT DISTINCT session_id FROM messages FINAL")
	if len(sessions) != 1 {
		t.Fatalf("conversations: %q", sessions)
	}
	if out := h.run("erase", "--session", sessions[0], "--yes"); !strings.Contains(out, "1 recordings of earshot wrap") {
		t.Errorf("an erasure:\n%s", out)
	}
	if _, err := os.Stat(paths[0]); err == nil {
		t.Error("the recording of the conversation that is erased is left")
	}
}
