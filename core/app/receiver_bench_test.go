package app

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/freeport"
	"github.com/earshot-dev/earshot/core/internal/journal"
	"github.com/earshot-dev/earshot/core/internal/redact"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/otlp"
)

var receiverRuns = flag.Int("otlp.runs", 5, "runs of each receiver in TestReceiverBesideCollector")

var receiverProfile = flag.String("otlp.profile", "", "file for the CPU profile of Earshot's receiver in TestReceiverBesideCollector, which then measures no other")

// Variables of the environment: the collector to compare with, and the directory of the process
// that is the receiver alone.
const (
	envCollector = "BENCH_OTLP"
	envReceiver  = "BENCH_OTLP_RECEIVER"
)

// TestReceiverAlone is the process that TestReceiverBesideCollector measures: the receiver, the redaction and
// the journal, as a run has them, and nothing behind.
func TestReceiverAlone(t *testing.T) {
	dir := os.Getenv(envReceiver)
	if dir == "" {
		t.Skip("part of make bench-otlp")
	}
	j, err := journal.Open(journal.Settings{Dir: dir, MaxSize: 64 << 20, SegmentSize: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := redact.New(redact.Settings{Builtin: true})
	if err != nil {
		t.Fatal(err)
	}
	c := otlp.Config{GRPC: otlp.GRPC{Listen: "127.0.0.1:0"}, MaxBody: 16 << 20}
	s, err := otlp.New(otlp.Settings{Config: c, Env: source.Env{Name: "otel", Format: "claude-code-otel", Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() { fmt.Printf("\nlistens %s\n", s.Addr(ctx)) }()
	if err := s.Run(ctx, secrets.Recorder(j.Recorder("otel"))); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// TestReceiverBesideCollector sends the same log records to Earshot's receiver and to the collector's, alternately,
// and prints how many each takes in a second of CPU time.
func TestReceiverBesideCollector(t *testing.T) {
	collector := os.Getenv(envCollector)
	if collector == "" {
		t.Skip("make bench-otlp")
	}
	bodies := agentRequests(t)
	rates := make(map[string][]float64)
	names := []string{"earshot, journal", "collector, dropped", "collector, file"}
	if *receiverProfile != "" {
		names = names[:1]
	}
	for i := range *receiverRuns {
		for _, name := range names {
			rate := measureReceiver(t, name, collector, bodies)
			rates[name] = append(rates[name], rate)
			t.Logf("run %d: %-20s %8.0f log records per CPU-second", i+1, name, rate)
		}
	}
	median := func(name string) float64 {
		slices.Sort(rates[name])
		return rates[name][len(rates[name])/2]
	}
	own := median(names[0])
	for _, name := range names[1:] {
		t.Logf("median: earshot %.0f, %s %.0f: ratio %.2f", own, name, median(name), own/median(name))
	}
}

const recordsPerRequest = 500

// agentRequests are requests of four processes of a coding agent, encoded.
func agentRequests(t *testing.T) (out [][]byte) {
	text := func(key, value string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
	}
	for process := range 4 {
		var records []*logspb.LogRecord
		for i := range recordsPerRequest {
			at := 1_760_000_000_000_000_000 + uint64(i)
			r := &logspb.LogRecord{TimeUnixNano: at, ObservedTimeUnixNano: at, Body: text("", "claude_code.api_request").Value, Attributes: []*commonpb.KeyValue{
				text("session.id", fmt.Sprintf("5f0c2b1e-7d41-4a53-9b6e-%012d", process)), text("prompt.id", fmt.Sprintf("0d3a1f60-41aa-4a53-9b6e-%012d", i/10)),
				text("event.timestamp", "2026-03-01T10:00:00.000Z"),
				{Key: "event.sequence", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(i)}}},
				text("user.id", "user-1"), text("terminal.type", "xterm"),
			}}
			switch i % 4 {
			case 0, 1:
				r.Attributes = append(r.Attributes, text("event.name", "api_request"), text("model", "model-large"), text("cost_usd", "0.0123"), text("duration_ms", "5123"),
					text("input_tokens", "12"), text("output_tokens", "345"), text("cache_read_tokens", "45678"), text("cache_creation_tokens", "910"), text("request_id", fmt.Sprintf("req_%024d", i)))
			case 2:
				r.Attributes = append(r.Attributes, text("event.name", "tool_result"), text("tool_name", "Bash"), text("success", "true"), text("duration_ms", "83"),
					text("tool_use_id", fmt.Sprintf("toolu_%024d", i)), text("tool_parameters", `{"command":"go test ./parcel/...","description":"run the tests"}`))
			default:
				r.Attributes = append(r.Attributes, text("event.name", "tool_decision"), text("decision", "accept"), text("source", "config"), text("tool_name", "Bash"))
			}
			records = append(records, r)
		}
		q := &collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{
			Resource:  &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "claude-code"), text("service.version", "2.1.0"), text("host.name", fmt.Sprintf("h%d", process))}},
			ScopeLogs: []*logspb.ScopeLogs{{Scope: &commonpb.InstrumentationScope{Name: "com.anthropic.claude_code.events", Version: "2.1.0"}, LogRecords: records}},
		}}}
		b, err := proto.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// measureReceiver starts a receiver and returns how many records it takes in a second of CPU time.
func measureReceiver(t *testing.T, name, collector string, bodies [][]byte) float64 {
	dir := t.TempDir()
	var cmd *exec.Cmd
	address := ""
	if strings.HasPrefix(name, "earshot") {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(exe, "-test.run", "^TestReceiverAlone$", "-test.v")
		if *receiverProfile != "" {
			cmd.Args = append(cmd.Args, "-test.cpuprofile", *receiverProfile)
		}
		cmd.Env = append(os.Environ(), envReceiver+"="+dir)
	} else {
		var err error
		if address, err = freeport.Loopback(); err != nil {
			t.Fatal(err)
		}
		keep := ""
		if strings.HasSuffix(name, "file") {
			keep = "    path: " + filepath.Join(dir, "logs.jsonl") + "\n"
		}
		config := filepath.Join(dir, "collector.yaml")
		text := "receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: " + address + "\nexporters:\n  keep:\n" + keep +
			"service:\n  telemetry:\n    metrics:\n      level: none\n    logs:\n      level: error\n  pipelines:\n    logs:\n      receivers: [otlp]\n      exporters: [keep]\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(collector, "--config", config)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		address, _ = strings.CutPrefix(lines.Text(), "listens ")
		if address == lines.Text() {
			address = ""
		}
	}
	return drive(t, address, cmd.Process.Pid, bodies)
}

// drive sends for some seconds, over four connections, and returns records per CPU-second.
func drive(t *testing.T, address string, pid int, bodies [][]byte) float64 {
	const warm, requests = 40, 400
	send := func(conn *grpc.ClientConn, body []byte) error {
		var res collogspb.ExportLogsServiceResponse
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return conn.Invoke(ctx, collogspb.LogsService_Export_FullMethodName, encodedRequest(body), &res, grpc.ForceCodec(requestCodec{}), grpc.WaitForReady(true))
	}
	all := func(n int) {
		var wg sync.WaitGroup
		for _, body := range bodies {
			conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				defer conn.Close()
				for range n {
					if err := send(conn, body); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	all(warm)
	before := cpuOf(t, pid)
	all(requests)
	return float64(requests*len(bodies)*recordsPerRequest) / (cpuOf(t, pid) - before).Seconds()
}

// cpuOf is the CPU time that a process has used.
func cpuOf(t *testing.T, pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// encodedRequest is a request that is not encoded again each time.
type encodedRequest []byte

type requestCodec struct{}

func (requestCodec) Name() string { return "proto" }

func (requestCodec) Marshal(v any) ([]byte, error) { return v.(encodedRequest), nil }

func (requestCodec) Unmarshal(b []byte, v any) error { return proto.Unmarshal(b, v.(proto.Message)) }
