package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// trajectory is an indented document of ATIF with a prompt and a number of answers, each with a call.
func trajectory(answers int) string {
	var b strings.Builder
	b.WriteString("{\n  \"schema_version\": \"ATIF-v1.7\",\n  \"session_id\": \"voyage\",\n  \"agent\": {\"name\": \"pilot\", \"version\": \"1\", \"model_name\": \"m-1\"},\n  \"steps\": [\n")
	b.WriteString("    {\"step_id\": 1, \"source\": \"user\", \"message\": \"sail on\", \"timestamp\": \"2026-11-02T10:00:00Z\"}")
	for n := 1; n <= answers; n++ {
		fmt.Fprintf(&b, ",\n    {\"step_id\": %d, \"source\": \"agent\", \"message\": \"knot %d\", \"timestamp\": \"2026-11-02T10:00:%02dZ\",\n", n+1, n, n)
		fmt.Fprintf(&b, "     \"tool_calls\": [{\"tool_call_id\": \"call_of_knot_%03d\", \"function_name\": \"log\", \"arguments\": {\"n\": %d}}],\n", n, n)
		fmt.Fprintf(&b, "     \"observation\": {\"results\": [{\"source_call_id\": \"call_of_knot_%03d\", \"content\": \"logged\"}]},\n", n)
		b.WriteString("     \"metrics\": {\"prompt_tokens\": 10, \"completion_tokens\": 3}}")
	}
	return b.String() + "\n  ]\n}\n"
}

// TestDocumentIsRewritten rewrites a document in place and by rename while the sidecar is killed: the tables
// are those of one pass over the last version.
func TestDocumentIsRewritten(t *testing.T) {
	const last = 4
	shown := []string{
		"SELECT session_id, run_id, kind, content, tool_name, tool_call_id, input_tokens, output_tokens, complete, ts FROM messages FINAL ORDER BY ALL",
		"SELECT tool_name, tool_call_id, status FROM v_tool_calls ORDER BY ALL",
		"SELECT error, payload FROM dead_letters",
	}
	configure := func() *home {
		return newHome(t).configure("sources:", files("atif", "trials/*.json"), "delivery: {flush_interval: 100ms}")
	}
	tables := func(h *home) (all string) {
		for _, sql := range shown {
			all += strings.Join(h.query(sql), "\n") + "\n\n"
		}
		return all
	}
	clean := configure()
	clean.write("trials/voyage.json", trajectory(last))
	clean.drain()
	want := tables(clean)
	if !strings.Contains(want, "knot 4") || !strings.HasSuffix(want, "ok\n\n\n\n") {
		t.Fatalf("one pass:\n%s", want)
	}

	h := configure()
	h.write("trials/voyage.json", trajectory(1))
	for version := 2; version <= last; version++ {
		p := h.startRunning()
		whole := trajectory(version)
		if version%2 == 0 { // in place, with the sidecar killed between the halves
			h.write("trials/voyage.json", whole[:len(whole)/2])
			time.Sleep(time.Duration(version*50) * time.Millisecond)
			p.kill()
			h.add("trials/voyage.json", whole[len(whole)/2:])
			continue
		}
		h.write("trials/voyage.tmp", whole)
		h.must(os.Rename(h.path("trials/voyage.tmp"), h.path("trials/voyage.json")))
		if version == 3 { // killed with its rows stored
			h.until("the third version", func() bool {
				return strings.Join(h.tryQuery("SELECT count() FROM messages FINAL WHERE content = 'knot 3'"), "") == "1"
			})
		}
		p.kill()
	}
	if out := h.drain(); strings.Contains(out, "is the format right?") {
		t.Errorf("the format is doubted:\n%s", out)
	}
	if got := tables(h); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
