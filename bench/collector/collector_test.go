package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// bin is the directory of the executables: the collector, the sidecar and its store. They are
// built once.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "earshot-collector-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, args := range [][]string{{"build", "-o", dir, "."}, {"build", "-C", "../..", "-o", dir, "./cmd/earshot", "./cmd/earshot-store"}} {
		build := exec.Command("go", args...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
	}
	bin = dir
	return m.Run()
}

// buffer is the output of a process.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition.
func until(t *testing.T, condition string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("still waiting for ", condition)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// collector starts the collector and returns its addresses for gRPC and HTTP.
func collector(t *testing.T, to string) (grpc, http string) {
	t.Helper()
	grpc, http = freeAddress(t), freeAddress(t)
	config := filepath.Join(t.TempDir(), "collector.yaml")
	write(t, config, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, compression: none, sending_queue: {enabled: false}}}
service:
  telemetry: {metrics: {level: none}, logs: {level: warn}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_http]}
    metrics: {receivers: [otlp], exporters: [otlp_http]}
`, grpc, http, to))
	ctx, cancel := context.WithCancel(context.Background())
	cmd, out, done := exec.CommandContext(ctx, filepath.Join(bin, "collector"), "--config", config), &buffer{}, make(chan struct{})
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	for _, addr := range []string{grpc, http} {
		until(t, "the collector to listen", func() bool {
			select {
			case <-done:
				t.Fatalf("the collector has ended:\n%s", out)
			default:
			}
			c, err := net.DialTimeout("tcp", addr, time.Second)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	return grpc, http
}

// The session: a turn that calls a tool, which fails, and delegates to an agent, which answers;
// and a second turn.
const session = "5e550000-0000-4000-8000-00000000c011"

func line(kind string, n int, rest string) string {
	return fmt.Sprintf(`{"parentUuid":null,"userType":"external","cwd":"/srv/harbour","sessionId":%q,"version":"2.1.230","type":%q,"uuid":"c0de%04x-0000-4000-8000-000000000001","timestamp":"2026-11-02T10:00:%02d.000Z",%s}`+"\n",
		session, kind, n, n, rest)
}

func answer(id, content, stop string) string {
	return fmt.Sprintf(`"isSidechain":false,"requestId":"req_%s","message":{"id":%q,"type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[%s],"stop_reason":%q,"usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":40}}`, id, id, content, stop)
}

func transcript() string {
	return line("user", 1, `"isSidechain":false,"message":{"role":"user","content":"When can the ferry leave?"}`) +
		line("assistant", 3, answer("msg_01", `{"type":"tool_use","id":"toolu_tide","name":"mcp__almanac__tide_table","input":{"port":"Nordhavn"}}`, "tool_use")) +
		line("user", 4, `"isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_tide","is_error":true,"content":"no such port"}]}`) +
		line("assistant", 6, answer("msg_02", `{"type":"tool_use","id":"toolu_pilot","name":"Agent","input":{"description":"Ask the pilot","prompt":"When is low tide?","subagent_type":"pilot"}}`, "tool_use")) +
		line("user", 16, `"isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_pilot","content":"At noon."}]},"toolUseResult":{"status":"completed","agentId":"a1b2c3d4e5f60718"}`) +
		line("assistant", 18, answer("msg_03", `{"type":"text","text":"After noon."}`, "end_turn")) +
		line("system", 19, `"isSidechain":false,"subtype":"turn_duration","durationMs":18000`) +
		line("user", 30, `"isSidechain":false,"message":{"role":"user","content":"Thanks."}`) +
		line("assistant", 31, strings.Replace(answer("msg_04", `{"type":"text","text":"Fair winds."}`, "end_turn"), "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001", 1)) +
		line("system", 32, `"isSidechain":false,"subtype":"turn_duration","durationMs":2000`)
}

func pilot() string {
	return line("user", 7, `"isSidechain":true,"agentId":"a1b2c3d4e5f60718","message":{"role":"user","content":"When is low tide?"}`) +
		line("assistant", 15, strings.NewReplacer(`"isSidechain":false`, `"isSidechain":true,"agentId":"a1b2c3d4e5f60718","attributionAgent":"pilot"`, "claude-sonnet-4-5-20250929", "claude-opus-4-5-20251101").
			Replace(answer("msg_05", `{"type":"text","text":"At noon."}`, "end_turn")))
}

// sidecar reads the session once and exports its spans and metrics to the endpoint.
func sidecar(t *testing.T, endpoint, protocol string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "p", session+".jsonl"), transcript())
	write(t, filepath.Join(dir, "p", session, "subagents", "agent-a1b2c3d4e5f60718.jsonl"), pilot())
	write(t, filepath.Join(dir, "earshot.yaml"), fmt.Sprintf(`
data_dir: %s/data
telemetry: {listen: ""}
sources: [{name: harbour, type: file, format: claude-code, paths: ["%s/p/**/*.jsonl"]}]
exporters: {otlp: {endpoint: %q, protocol: %s, resource: {deployment.environment.name: trial}}}
`, dir, dir, "http://"+endpoint, protocol))
	cmd := exec.Command(filepath.Join(bin, "earshot"), "run", "--until-idle", "500ms", "-c", filepath.Join(dir, "earshot.yaml"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("earshot: %v\n%s", err, out)
	}
}

// TestRealCollector has a sidecar export to a collector, over gRPC and over HTTP, and checks
// the collector's own export.
func TestRealCollector(t *testing.T) {
	for _, protocol := range []string{"grpc", "http"} {
		t.Run(protocol, func(t *testing.T) {
			r := newSink(t)
			grpc, http := collector(t, r.url)
			sidecar(t, map[string]string{"grpc": grpc, "http": http}[protocol], protocol)
			// The collector exports before it answers: everything has arrived.
			r.mu.Lock()
			defer r.mu.Unlock()
			checkSpans(t, r)
			checkMetrics(t, r)
		})
	}
}

func checkSpans(t *testing.T, r *sink) {
	names := make(map[string]int)
	for _, s := range r.spans {
		names[s.Name]++
	}
	want := map[string]int{
		"invoke_agent claude-code": 2, "invoke_agent pilot": 1, "execute_tool Agent": 1, "execute_tool mcp__almanac__tide_table": 1,
		"chat claude-sonnet-4-5-20250929": 3, "chat claude-haiku-4-5-20251001": 1, "chat claude-opus-4-5-20251101": 1,
	}
	if !maps.Equal(names, want) {
		t.Fatalf("spans %v", names)
	}
	for _, s := range r.spans {
		name := s.Name
		if s.scope != "github.com/earshot-dev/earshot" || s.schema != "https://opentelemetry.io/schemas/1.41.0" {
			t.Errorf("%s: scope %q, schema %q", name, s.scope, s.schema)
		}
		if fmt.Sprint(s.resource) != "map[deployment.environment.name:trial service.name:harbour]" {
			t.Errorf("%s: resource %v", name, s.resource)
		}
		if len(s.TraceId) != 16 || len(s.SpanId) != 8 || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s: trace %x, span %x, from %d to %d", name, s.TraceId, s.SpanId, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
	}
	has := func(name string, kind tracepb.Span_SpanKind, want map[string]any) {
		t.Helper()
		s := r.named(name)[0]
		if s.Kind != kind {
			t.Errorf("%s: kind %s", name, s.Kind)
		}
		got := attributes(s.Attributes)
		for k, v := range want {
			if fmt.Sprintf("%T %v", got[k], got[k]) != fmt.Sprintf("%T %v", v, v) {
				t.Errorf("%s: %s is %v, want %v", name, k, got[k], v)
			}
		}
	}
	has("chat claude-opus-4-5-20251101", tracepb.Span_SPAN_KIND_CLIENT, map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": nil, "gen_ai.response.model": "claude-opus-4-5-20251101", "gen_ai.response.id": "msg_05",
		"gen_ai.conversation.id": session, "gen_ai.usage.input_tokens": int64(3210), "gen_ai.usage.output_tokens": int64(40),
		"gen_ai.usage.cache_read.input_tokens": int64(3000), "gen_ai.usage.cache_creation.input_tokens": int64(200), "gen_ai.response.finish_reasons": []any{"end_turn"}, "error.type": nil,
	})
	has("execute_tool mcp__almanac__tide_table", tracepb.Span_SPAN_KIND_INTERNAL, map[string]any{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "mcp__almanac__tide_table", "gen_ai.tool.call.id": "toolu_tide", "gen_ai.tool.type": "extension",
		"mcp.method.name": "tools/call", "error.type": "tool_error",
	})
	has("execute_tool Agent", tracepb.Span_SPAN_KIND_INTERNAL, map[string]any{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "toolu_pilot", "earshot.delegate.to": "pilot", "earshot.child_run.id": "a1b2c3d4e5f60718", "earshot.link.method": "native_id", "error.type": nil,
	})
	has("invoke_agent pilot", tracepb.Span_SPAN_KIND_INTERNAL, map[string]any{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "pilot", "gen_ai.conversation.id": session,
	})
	if s := r.named("execute_tool mcp__almanac__tide_table")[0]; s.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || s.Status.GetMessage() != "no such port" {
		t.Errorf("status of the failed call: %v", s.Status)
	}
	if s := r.named("execute_tool Agent")[0]; s.Status.GetCode() != tracepb.Status_STATUS_CODE_UNSET {
		t.Errorf("status of the other call: %v", s.Status)
	}
	child, call := r.named("invoke_agent pilot")[0], r.named("execute_tool Agent")[0]
	if !bytes.Equal(child.ParentSpanId, call.SpanId) || !bytes.Equal(child.TraceId, call.TraceId) {
		t.Errorf("the child is below %x in %x, its call is %x in %x", child.ParentSpanId, child.TraceId, call.SpanId, call.TraceId)
	}
	turns := r.named("invoke_agent claude-code")
	if !bytes.Equal(turns[0].SpanId, call.ParentSpanId) || len(turns[0].Links) != 0 {
		t.Errorf("the first turn is %x, its call is below %x; links %v", turns[0].SpanId, call.ParentSpanId, turns[0].Links)
	}
	if l := turns[1].Links; len(l) != 1 || !bytes.Equal(l[0].TraceId, turns[0].TraceId) || !bytes.Equal(l[0].SpanId, turns[0].SpanId) {
		t.Errorf("the second turn has links %v", l)
	}
}

func checkMetrics(t *testing.T, r *sink) {
	want := []string{"earshot.delegation.duration", "earshot.execute_tool.duration", "earshot.invoke_agent.duration", "earshot.tokens", "gen_ai.client.operation.duration", "gen_ai.client.token.usage"}
	if got := slices.Sorted(maps.Keys(r.metrics)); !slices.Equal(got, want) {
		t.Fatalf("metrics %q", got)
	}
	for name, m := range r.metrics {
		if fmt.Sprint(m.resource) != "map[deployment.environment.name:trial service.name:harbour]" {
			t.Errorf("%s: resource %v", name, m.resource)
		}
	}
	sum := func(name, key, value string) (n uint64, total float64, exemplars int) {
		h := r.metrics[name].GetHistogram()
		if h.GetAggregationTemporality() != metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
			t.Errorf("%s: %s", name, h.GetAggregationTemporality())
		}
		for _, p := range h.GetDataPoints() {
			if attributes(p.Attributes)[key] == value {
				n, total, exemplars = n+p.Count, total+p.GetSum(), exemplars+len(p.Exemplars)
			}
		}
		return n, total, exemplars
	}
	for _, x := range []struct {
		name, key, value string
		n                uint64
		sum              float64
	}{
		{"gen_ai.client.operation.duration", "gen_ai.response.model", "claude-opus-4-5-20251101", 1, 8},
		{"gen_ai.client.token.usage", "gen_ai.token.type", "input", 5, 5 * 3210},
		{"gen_ai.client.token.usage", "gen_ai.token.type", "output", 5, 5 * 40},
		{"earshot.execute_tool.duration", "error.type", "tool_error", 1, 1},
		{"earshot.delegation.duration", "earshot.delegate.to", "pilot", 1, 10},
		{"earshot.invoke_agent.duration", "gen_ai.agent.name", "pilot", 1, 8},
	} {
		if n, total, _ := sum(x.name, x.key, x.value); n != x.n || total != x.sum {
			t.Errorf("%s of %s: %d values, %v together, want %d and %v", x.name, x.value, n, total, x.n, x.sum)
		}
	}
	call := r.named("execute_tool Agent")[0]
	for _, p := range r.metrics["earshot.delegation.duration"].GetHistogram().DataPoints {
		if len(p.Exemplars) != 1 || !bytes.Equal(p.Exemplars[0].SpanId, call.SpanId) || !bytes.Equal(p.Exemplars[0].TraceId, call.TraceId) {
			t.Errorf("exemplars of the delegation: %v", p.Exemplars)
		}
	}
	classes := make(map[any]int64)
	for _, p := range r.metrics["earshot.tokens"].GetSum().GetDataPoints() {
		classes[attributes(p.Attributes)["earshot.token.class"]] += p.GetAsInt()
	}
	if fmt.Sprint(classes) != "map[cache_read:15000 cache_write:1000 input:50 output:200]" {
		t.Errorf("tokens by class: %v", classes)
	}
}
