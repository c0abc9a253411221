package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// claudeSession is a session of Claude Code that runs Codex in a shell; output is the shell's
// output.
func claudeSession(session, prompt, output string) string {
	use := fmt.Sprintf(`{"type":"tool_use","id":"toolu_%s","name":"Bash","input":{"command":%q}}`, session, `codex exec --full-auto "`+prompt+`" 2>&1`)
	return claudePrompt(session, 1, "Ask Codex.") + reply(session, 2, "m_"+session, use, "tool_use", 10, 0, 0, 50) +
		claude(session, "user", 40, fmt.Sprintf(`"isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%s","content":%q}]},"toolUseResult":{"stdout":%q,"stderr":""}`, session, output, output)) +
		reply(session, 41, "n_"+session, text("Done."), "end_turn", 10, 75, 0, 3) + claude(session, "system", 42, `"isSidechain":false,"subtype":"turn_duration","durationMs":1000`)
}

// codexThread is the thread that it runs.
func codexThread(thread, turn string) string {
	s := strings.Replace(codexMeta(3, thread, ""), `"source":"cli"`, `"source":"exec"`, 1) + codexTurn(4, turn, "At noon.", 0, 1000, 0, 20)
	return strings.ReplaceAll(s, "T11:00:", "T10:00:")
}

// TestClaudeCodeRunsCodex: three sessions of Claude Code run Codex. Of one the thread's
// transcript is read first, of one last, with a restart in between, and of one both at
// once; one has no name of the thread in its output. Each is one tree, and every command
// that reads shows it so.
func TestClaudeCodeRunsCodex(t *testing.T) {
	const thread = "019d0000-0000-7000-8000-0000000000f%d"
	h := newHome(t).configure("sources:", files("claude-code", "c/*.jsonl"), files("codex", "x/*.jsonl"))
	id := func(n int) string { return fmt.Sprintf(thread, n) }
	header := func(n int) string { return "OpenAI Codex v0.146.0\nsession id: " + id(n) + "\nAt noon." }
	parent := func(n int, output string) {
		h.write(fmt.Sprintf("c/caller%d.jsonl", n), claudeSession(fmt.Sprint("caller", n), fmt.Sprintf("When is ebb%d?", n), output))
	}
	child := func(n int) {
		h.write("x/rollout-2026-11-02T10-00-03-"+id(n)+".jsonl", codexThread(id(n), fmt.Sprint("ebb", n)))
	}
	child(1)
	parent(2, header(2))
	h.drain()
	parent(1, header(1))
	child(2)
	parent(3, "At noon.") // stderr went elsewhere
	child(3)
	h.drain()
	for n, link := range map[int]string{1: "native_id", 2: "native_id", 3: "prompt"} {
		got := h.query(fmt.Sprintf(`SELECT uniqExact(TraceId), countIf(ParentSpanId = ''), count(), anyIf(SpanAttributes['earshot.link.method'], AgentName = 'codex' AND SpanName LIKE 'invoke%%')
			FROM otel_traces FINAL WHERE SessionId IN ('caller%d', '%s')`, n, id(n)))
		if want := "1\t1\t6\t" + link; len(got) != 1 || got[0] != want {
			t.Errorf("%d: traces, roots, spans, link: %q, want %q", n, got, want)
		}
		got = h.query(fmt.Sprintf(`SELECT d.delegate_to, d.link_method, d.link_confidence, uniqExact(m.session_id), sum(m.output_tokens), uniqExact(m.trace_id = d.trace_id) = 1
			FROM delegations AS d FINAL INNER JOIN messages AS m FINAL ON m.run_id = d.child_run_id WHERE d.session_id = 'caller%d' GROUP BY ALL`, n))
		confidence := map[string]int{"native_id": 0, "prompt": 80}[link]
		if want := fmt.Sprintf("codex\t%s\t%d\t1\t20\ttrue", link, confidence); len(got) != 1 || strings.Replace(got[0], "\t1\t20\t1", "\t1\t20\ttrue", 1) != want {
			t.Errorf("%d: the delegation's row: %q, want %q", n, got, want)
		}
		got = h.query(fmt.Sprintf("SELECT result_tokens, result_tokens_from FROM v_tool_calls WHERE session_id = 'caller%d'", n))
		if len(got) != 1 || got[0] != "25\ttranscript_final" {
			t.Errorf("%d: the result adds %q", n, got)
		}
		var slow []struct {
			DelegateTo string           `json:"delegate_to"`
			BlameMS    map[string]int64 `json:"blame_ms"`
			Spent      struct {
				Tokens struct {
					Input int64 `json:"input"`
				} `json:"tokens"`
			} `json:"spent"`
		}
		h.must(json.Unmarshal(h.command("slow", "--since", "87600h", "--session", fmt.Sprint("caller", n), "-o", "json"), &slow))
		if len(slow) != 1 || slow[0].DelegateTo != "codex" || slow[0].Spent.Tokens.Input != 1000 || slow[0].BlameMS["sub_agent"] == 38000 {
			t.Errorf("%d: slow -o json: %+v", n, slow)
		}
		turn := string(h.command("show", id(n)))
		if !strings.Contains(turn, "At noon.") || !strings.Contains(turn, fmt.Sprintf("When is ebb%d?", n)) {
			t.Errorf("%d: show of the thread's session:\n%s", n, turn)
		}
	}
	trace := h.query("SELECT any(trace_id) FROM delegations WHERE session_id = 'caller1'")[0]
	if out := string(h.command("show", "--trace", trace)); !strings.Contains(out, "gpt-5") {
		t.Errorf("show --trace:\n%s", out)
	}
	if out := string(h.command("explain", trace)); !strings.Contains(out, "agent codex") {
		t.Errorf("explain:\n%s", out)
	}
}

// command runs earshot and returns its output.
func (h *home) command(args ...string) []byte {
	h.Helper()
	var stderr bytes.Buffer
	c := h.earshot(args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		h.Fatalf("%v: %v\n%s", args, err, stderr.Bytes())
	}
	return out
}
