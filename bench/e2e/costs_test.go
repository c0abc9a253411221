package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCostsAreThoseThatAreBilled has a response in the tier flex, the result of a batch, an answer whose provider states the cost, one
// that is billed by capacity, and a transcript in fast mode: views and commands have the same dollars.
func TestCostsAreThoseThatAreBilled(t *testing.T) {
	h := newHome(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch q.URL.Path {
		case "/v1/responses":
			fmt.Fprint(w, `{"id":"resp_flex","object":"response","created_at":1795900000,"status":"completed","model":"gpt-5-2025-08-07","service_tier":"flex","output":[{"type":"message","id":"m_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"At noon.","annotations":[]}]}],"usage":{"input_tokens":1000000,"output_tokens":100000,"total_tokens":1100000}}`)
		case "/v1/chat/completions":
			fmt.Fprint(w, `{"id":"gen-1","object":"chat.completion","created":1795900000,"model":"gull/tern-9","choices":[{"index":0,"message":{"role":"assistant","content":"At six."},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110,"cost":0.0125,"is_byok":false}}`)
		case "/v1/messages":
			fmt.Fprint(w, `{"id":"msg_capacity","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[{"type":"text","text":"At nine."}],"stop_reason":"end_turn","usage":{"input_tokens":100,"output_tokens":10,"service_tier":"priority"}}`)
		case "/v1/messages/batches/msgbatch_tide/results":
			w.Header().Set("Content-Type", "application/x-jsonl")
			fmt.Fprint(w, `{"custom_id":"tide-1","result":{"type":"succeeded","message":{"id":"msg_batch","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[{"type":"text","text":"At three."}],"stop_reason":"end_turn","usage":{"input_tokens":100000,"output_tokens":10000,"service_tier":"batch"}}}}`+"\n")
		}
	}))
	defer server.Close()
	tap := freeAddress(t)
	const fast = `"output_tokens":1000,"service_tier":"standard","inference_geo":"us","speed":"fast"`
	h.write("c/fast.jsonl", claudePrompt("fast", 1, "Tide?")+
		strings.NewReplacer("claude-sonnet-4-5-20250929", "claude-opus-4-8", `"output_tokens":1000`, fast).Replace(reply("fast", 2, "m_fast", text("Noon."), "end_turn", 1000, 0, 0, 1000))+
		claude("fast", "system", 3, `"isSidechain":false,"subtype":"turn_duration","durationMs":1000`))
	h.configure("sources:", providers(tap, server.URL)+"\n      - {path: \"/v1/messages/batches/*/results\", content_type: application/x-jsonl, format: anthropic-sse}", `  - {name: claude, type: file, format: claude-code, poll_interval: 1s, paths: ["DIR/c/*.jsonl"]}`)
	p := h.startRunning()
	question := `{"role":"user","content":"Tide?"}`
	h.post("http://"+tap+"/v1/responses", "application/json", []byte(`{"model":"gpt-5","service_tier":"flex","input":"Tide?"}`))
	h.post("http://"+tap+"/v1/chat/completions", "application/json", []byte(`{"model":"gull/tern-9","messages":[`+question+`]}`))
	h.post("http://"+tap+"/v1/messages", "application/json", []byte(`{"model":"claude-sonnet-4-5","max_tokens":99,"messages":[`+question+`]}`))
	answer, err := http.Get("http://" + tap + "/v1/messages/batches/msgbatch_tide/results")
	h.must(err)
	h.must(answer.Body.Close())

	want := []string{"\t?\tpriority", "list\t0.06600000\tfast+us", "list\t0.22500000\tbatch", "list\t1.12500000\tflex", "stated\t0.01250000\t"}
	var got []string
	defer func() { t.Log(got) }()
	for _, view := range []string{"v_usage", "v_attributed_usage"} {
		sql := "SELECT cost_from, ifNull(toDecimalString(cost_usd, 8), '?') AS cost, tier FROM " + view + " ORDER BY ALL"
		h.until(view, func() bool { got = h.tryQuery(sql); return cmp.Equal(want, got) })
	}
	turns := []string{"0.01250000\t0.01250000", "0.06600000\t0.00000000", "0.22500000\t0.00000000", "1.12500000\t0.00000000", "?\t0.00000000"}
	h.until("the turns", func() bool {
		got = h.tryQuery("SELECT ifNull(toDecimalString(cost_usd, 8), '?') AS cost, toDecimalString(stated_usd, 8) FROM v_turns ORDER BY cost")
		return cmp.Equal(turns, got)
	})
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	for session, want := range map[string]string{"fast": "$0.07", "msgbatch_tide": "$0.23"} { // half of the list price, rounded
		traces := h.query("SELECT trace_id FROM v_turns WHERE session_id LIKE '%" + session + "%'")
		if len(traces) != 1 {
			t.Fatalf("%s: %q", session, traces)
		}
		if out := h.run("show", "--trace", traces[0]); !strings.Contains(out, want) {
			t.Errorf("%s: no %s in:\n%s", session, want, out)
		}
	}
	priority := h.query("SELECT trace_id FROM v_turns WHERE cost_usd IS NULL")
	if out := h.run("show", "--trace", priority[0]); !strings.Contains(out, "?") || strings.Contains(out, "$") {
		t.Errorf("a tier without a price has one:\n%s", out)
	}
	out, err := exec.Command(filepath.Join(bin, "earshot"), "who", "--by", "format", "-c", h.path("earshot.yaml")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "$0.23+") {
		t.Errorf("who: %v\n%s", err, out)
	}
}
