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

// otlpRows select the rows of telemetry that came over OTLP or lay in files.
var otlpRows = []string{
	"SELECT format, kind, role, agent_name, tool_name, model, input_tokens, output_tokens, hex(MD5(content)) FROM messages FINAL ORDER BY ALL",
	"SELECT format, kind, name, state, input_tokens, output_tokens FROM spans FINAL ORDER BY ALL",
}

// TestOTLP: the telemetry of several agents, sent to one source over HTTP with kill -9 between acceptance and
// decoding and with requests that are sent twice, becomes the rows of the same lines in files.
func TestOTLP(t *testing.T) {
	agents := []struct {
		format, service string
		cases           []string
	}{
		{"otel-genai", "harbour-desk", []string{"tree", "openinference"}},
		{"claude-code-otel", "claude-code", []string{"both", "logs"}},
		{"codex-otel", "codex_exec", []string{"logs", "spans"}},
		{"gemini-otel", "gemini-cli", []string{"logs"}},
		{"copilot-otel", "copilot-chat", []string{"vscode"}},
	}
	filed, sent := newHome(t), newHome(t)
	var sources, requests []string
	for _, a := range agents {
		format := a.format
		for _, c := range a.cases {
			b, err := os.ReadFile(fixture(t, format+"/testdata/"+c+"/in.jsonl"))
			filed.must(err)
			var lines []string
			for line := range strings.Lines(string(b)) {
				if strings.HasPrefix(line, `{"resource`) { // cases have other shapes of files too
					lines = append(lines, strings.ReplaceAll(line, `"harbour-desk"`, fmt.Sprintf("%q", a.service)))
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
	filed.configure(append([]string{"sources:"}, sources...)...)
	filed.drain()

	address := freeAddress(t)
	sent.configure("sources:", fmt.Sprintf("  - {name: otel, type: otlp, grpc: {listen: \"\"}, http: {listen: %q}}", address))
	p := sent.startRunning()
	const half = 3 // in the middle of the first agent
	for _, r := range requests[:half] {
		sent.export(address, r)
	}
	p.kill()
	sent.startRunning()
	for _, r := range requests[half-2:] { // the client has not seen the last responses
		sent.export(address, r)
	}
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
