package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// otlpRows are what the tables have of telemetry that came over OTLP or lay in files.
var otlpRows = []string{
	"SELECT format, kind, role, agent_name, tool_name, model, input_tokens, output_tokens, hex(MD5(content)) FROM messages FINAL ORDER BY ALL",
	"SELECT format, run_id, name, status FROM spans FINAL ORDER BY ALL",
}

// TestOTLP: the telemetry of several agents, sent to one source over HTTP with kill -9 between acceptance and
// decoding and with requests that are sent twice, gives the rows of the same lines in files.
func TestOTLP(t *testing.T) {
	files := map[string][]string{
		"claude-code-otel": {"logs"}, "codex-otel": {"logs", "spans"}, "gemini-otel": {"logs"}, "copilot-otel": {"vscode"}, "otel-genai": {"tree", "events", "openinference"},
	}
	filed, sent := newHome(t), newHome(t)
	var sources, requests []string
	for format, cases := range files {
		for _, c := range cases {
			b, err := os.ReadFile(fixture(t, format+"/testdata/"+c+"/in.jsonl"))
			filed.must(err)
			var lines []string
			for line := range strings.Lines(string(b)) {
				if strings.HasPrefix(line, `{"resource`) { // cases have other shapes of files too
					lines = append(lines, line)
				}
			}
			if len(lines) == 0 {
				t.Fatalf("%s has no line of OTLP", format)
			}
			requests = append(requests, lines...)
			filed.write(format+"/"+c+".jsonl", strings.Join(lines, ""))
		}
		sources = append(sources, fmt.Sprintf("  - {name: %s, type: file, format: %s, paths: [%q]}", format, format, "DIR/"+format+"/*.jsonl"))
	}
	slices.Sort(sources)
	filed.configure(append([]string{"sources:"}, sources...)...)
	filed.drain()

	address := freeAddress(t)
	sent.configure("sources:", fmt.Sprintf("  - {name: otel, type: otlp, grpc: {listen: \"\"}, http: {listen: %q}}", address))
	p := sent.startRunning()
	half := len(requests) / 2
	for _, r := range requests[:half] {
		sent.export(address, r)
	}
	p.kill()
	p = sent.startRunning()
	for _, r := range requests[half-3:] { // the client has not seen the last responses
		sent.export(address, r)
	}
	defer filed.store()()
	for _, sql := range otlpRows {
		want := filed.query(sql)
		if len(want) < 10 {
			t.Fatalf("%d rows: %s", len(want), sql)
		}
		var got []string
		for end := time.Now().Add(time.Minute); time.Now().Before(end) && !slices.Equal(got, want); time.Sleep(200 * time.Millisecond) {
			got = sent.tryQuery(sql)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-files +OTLP):\n%s", sql, tail(diff))
		}
	}
	_ = p
}

// export sends a line to the endpoint of its signal.
func (h *home) export(address, line string) {
	h.Helper()
	path := "/v1/traces"
	for prefix, other := range map[string]string{`{"resourceLogs"`: "/v1/logs", `{"resourceMetrics"`: "/v1/metrics"} {
		if strings.HasPrefix(line, prefix) {
			path = other
		}
	}
	res, err := http.Post("http://"+address+path, "application/json", bytes.NewReader([]byte(line)))
	h.must(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		h.Fatalf("%s: %s: %s", path, res.Status, line[:min(len(line), 300)])
	}
}
