package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestHopIsBelowItsCall runs an MCP server, in a shell, under earshot wrap, and writes the transcript of
// the agent that called it. The sidecar reads the recording first, restarts, and reads the transcript:
// the server's work is below the call, in one trace, and earshot show prints its time. In the other
// order the tables are the same.
func TestHopIsBelowItsCall(t *testing.T) {
	const session = "5e550000-0000-4000-8000-0000000000e2"
	recorded := newHome(t)
	transcript := recorded.hop(session)
	recordings, _ := filepath.Glob(recorded.path("data/wrap/mcp/*.jsonl"))
	if len(recordings) != 1 {
		t.Fatalf("recordings %v", recordings)
	}
	name, recording := filepath.Base(recordings[0]), string(recorded.read(recordings[0][len(recorded.path(""))+1:]))
	read := func(order ...string) *home {
		h := newHome(t).configure("sources:", files("mcp", "mcp/*.jsonl"), files("claude-code", "claude-code/*.jsonl"))
		for _, format := range order {
			if format == "mcp" {
				h.write("mcp/"+name, recording)
			} else {
				h.write("claude-code/"+session+".jsonl", transcript)
			}
			h.drain()
		}
		return h
	}
	first, second := read("mcp", "claude-code"), read("claude-code", "mcp")
	got := first.query("SELECT c.tool_name, r.link_method, r.link_confidence, r.agent_name, r.trace_id = c.trace_id FROM (SELECT * FROM spans FINAL) r JOIN (SELECT * FROM spans FINAL) c ON r.parent_span_id = c.span_id WHERE r.format = 'mcp' AND r.kind = 'run'")
	if diff := cmp.Diff([]string{"mcp__bell__ring\tprompt\t90\tbell-tower\t1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, sql := range []string{
		"SELECT kind, format, ts, duration_ns, trace_id, span_id, parent_span_id, link_method, mapSort(attributes) FROM spans FINAL WHERE name != '' ORDER BY ALL",
		"SELECT format, kind, run_id, trace_id, span_id FROM messages FINAL ORDER BY ALL",
	} {
		rows := first.query(sql)
		if diff := cmp.Diff(rows, second.query(sql)); len(rows) == 0 || diff != "" {
			t.Errorf("%d rows, %s (-recording first +transcript first):\n%s", len(rows), sql, tail(diff))
		}
	}
	show := string(first.command("show", session))
	t.Log(show)
	if !strings.Contains(show, "hop bell-tower queue ") {
		t.Errorf("show prints no hop:\n%s", show)
	}
}

// hop calls a server under earshot wrap, and returns the transcript of its client.
func (h *home) hop(session string) (transcript string) {
	h.configure("sources:", files("mcp", "data/wrap/mcp/*.jsonl"))
	h.write("answers", `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"bell-tower","version":"1"}}}
{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"It rang."}],"isError":false}}
`)
	line := func(n int, fields string) {
		transcript += fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"cwd":"/srv","sessionId":%q,"version":"2.1.260","uuid":"line-%d","timestamp":%q,%s}`+"\n",
			session, n, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), fields)
	}
	c := exec.Command(filepath.Join(bin, "earshot"), "wrap", "-c", h.path("earshot.yaml"), "--", "/bin/sh", "-c", `read a; sed -n 1p "$0"; read b; sed -n 2p "$0"; cat`, h.path("answers"))
	in, err := c.StdinPipe()
	h.must(err)
	out, err := c.StdoutPipe()
	h.must(err)
	h.must(c.Start())
	answers := bufio.NewReader(out)
	ask := func(request string) {
		_, err := io.WriteString(in, request+"\n")
		h.must(err)
		_, err = answers.ReadString('\n')
		h.must(err)
	}
	ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"buoy-client","version":"1"}}}`)
	line(1, `"type":"user","promptId":"p1","message":{"role":"user","content":"Ring the bell"}`)
	line(2, `"type":"assistant","requestId":"req_1","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-small-1","content":[{"type":"tool_use","id":"toolu_ring","name":"mcp__bell__ring","input":{"times": 3, "loud": true}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":5}}`)
	ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ring","arguments":{"loud":true,"times":3}}}`)
	line(3, `"type":"user","promptId":"p1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_ring","content":"It rang."}]}`)
	line(4, `"type":"system","subtype":"turn_duration","durationMs":90`)
	h.must(in.Close())
	_, err = io.Copy(io.Discard, answers)
	h.must(err)
	h.must(c.Wait())
	return transcript
}
