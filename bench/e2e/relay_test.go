package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// relayed are facts that a tree has on both sides of OTLP.
var relayed = []string{
	`SELECT s.session_id, s.run_id, s.kind, s.tool_name, s.ts, s.duration_ms, s.output_tokens, p.kind, p.run_id, p.tool_name
		FROM v_spans AS s LEFT JOIN v_spans AS p ON p.span_id = s.parent_span_id AND p.trace_id = s.trace_id ORDER BY ALL`,
	"SELECT session_id, run_id, kind, tool_call_id, hex(MD5(content)) FROM messages FINAL WHERE kind IN ('user', 'assistant', 'reasoning', 'tool_result', 'delegation_result') AND content != '' ORDER BY ALL",
}

// TestRelay: a sidecar sends transcripts to another one, whose store has the same tree, texts and tokens; a second
// receiver gets its signal, and a third one that is down delays neither.
func TestRelay(t *testing.T) {
	first, second := newHome(t), newHome(t)
	address := freeAddress(t)
	second.configure("sources:", fmt.Sprintf("  - {name: otel, type: otlp, grpc: {listen: \"\"}, http: {listen: %q}}", address))
	second.startRunning()
	var traces, others atomic.Int64
	vendor := first.agent(func(_ http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/v1/traces" && q.Header.Get("X-Vendor") == "v0" {
			traces.Add(1)
		} else {
			others.Add(1)
		}
	})
	for _, c := range []string{"claude-code/parallel_tools", "codex/spawn_v2", "codex/spawned", "codex/two_turns"} { // their runs end
		b, err := os.ReadFile(fixture(t, strings.Replace(c, "/", "/testdata/", 1)+"/in.jsonl"))
		first.must(err)
		first.write(c+".jsonl", string(b))
	}
	first.configure("sources:", files("claude-code", "claude-code/*.jsonl"), files("codex", "codex/*.jsonl"), "exporters:",
		fmt.Sprintf("  otlp: {endpoint: \"http://%s\", content: true, metrics_interval: 0s}", address),
		fmt.Sprintf("  otlp-vendor: {endpoint: %q, headers: {x-vendor: v0}, signals: [traces], content: true, metrics_interval: 100ms}", vendor),
		fmt.Sprintf("  otlp-down: {endpoint: \"http://%s\", metrics_interval: 0s}", freeAddress(t)))
	first.startRunning()
	first.until("the rows", func() bool { return len(first.tryQuery(relayed[1])) > 10 })
	for _, sql := range relayed {
		var want, got []string
		for end := time.Now().Add(time.Minute); time.Now().Before(end) && (len(got) < 5 || !slices.Equal(want, got)); time.Sleep(100 * time.Millisecond) {
			want, got = first.tryQuery(sql), second.tryQuery(sql)
		}
		if d := cmp.Diff(want, got); d != "" || len(got) < 5 {
			t.Errorf("%d rows: %s (-first +second):\n%s", len(got), sql, tail(d))
		}
	}
	if traces.Load() == 0 || others.Load() != 0 {
		t.Errorf("the vendor got %d requests of traces and %d others", traces.Load(), others.Load())
	}
}
