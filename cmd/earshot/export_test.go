package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/interchange"
)

// TestExport exports a stored conversation in every format, and decodes its trajectory again.
func TestExport(t *testing.T) {
	h := newHome(t)
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	h.decoded("claude-code", ferry(t, "5ea7", "2.1.38", at, "Read", "time\"table\b</script>", 1, "Bash", "tide", 2))
	path := filepath.Join(t.TempDir(), "trajectory.json")
	h.run("export", "5ea", "--format", "atif", "--output", path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(string(text), '\b') {
		t.Error("a control character is written as it is")
	}
	var loose map[string]any
	if err := json.Unmarshal(text, &loose); err != nil {
		t.Fatal(err)
	}
	steps := loose["steps"].([]any)
	if len(steps) != 4 || loose["schema_version"] != "ATIF-v1.7" || loose["session_id"] != "5ea7" {
		t.Fatalf("the trajectory is %s", text)
	}
	final := loose["final_metrics"].(map[string]any)
	if final["total_prompt_tokens"] != 30.0 || final["total_completion_tokens"] != 15.0 || final["total_cost_usd"] == nil {
		t.Errorf("final metrics are %v", final)
	}
	out, _ := h.run("decode", "--format", "atif", path)
	if n := strings.Count(out, `"kind":"tool_call"`); n != 2 || strings.Count(out, `"kind":"tool_result"`) != 2 {
		t.Errorf("%d calls in %s", n, out)
	}

	out, _ = h.run("export", "5ea7", "--format", "sft")
	var chat interchange.Chat
	if err := json.Unmarshal([]byte(out), &chat); err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, m := range chat.Messages {
		roles = append(roles, m.Role)
	}
	if got := strings.Join(roles, " "); got != "user assistant tool assistant tool assistant" {
		t.Errorf("roles are %s", got)
	}

	for format, want := range map[string][]string{
		"otlp":          {`"key":"gen_ai.usage.input_tokens","value":{"intValue":"10"}`, `"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}`},
		"openinference": {`"stringValue":"AGENT"`, `"stringValue":"LLM"`, `"stringValue":"TOOL"`, `"key":"llm.token_count.prompt","value":{"intValue":"10"}`, `"key":"session.id","value":{"stringValue":"5ea7"}`},
		"jsonl":         {`"kind":"tool_call"`, `"kind":"usage"`},
	} {
		out, _ := h.run("export", "5ea7", "--format", format)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s has no %s:\n%s", format, w, out)
			}
		}
		for line := range strings.Lines(out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: no JSON: %s", format, line)
			}
		}
	}
	if _, _, err := h.try("export", "5ea7", "--format", "gull"); !isUsage(err) {
		t.Errorf("an unknown format: %v", err)
	}
}
