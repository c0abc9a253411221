package chaos

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/freeport"
)

// tables are the tables that are compared, without the columns of the time of storing. A
// request whose answer was lost is sent and recorded again: its messages are the same, at a
// later position of the stream.
var tables = []struct{ name, except string }{
	{"messages", "ingest_ts, ver) REPLACE (if(source IN ('push', 'otel'), 0, seq) AS seq"}, {"tool_calls", "ingest_ts, ver"}, {"delegations", "ingest_ts, ver"}, {"otel_traces", "IngestTs, Ver"},
	{"dead_letters", "dl_id, seen_at, ver"},
}

// conversation is pushed in two requests, which are one stream.
var conversation = []string{
	`{"event":"agent.session_created","timestamp":"2026-11-02T10:00:00.100000","session_id":"c0ffee00-0000-4000-8000-000000000001","content":"Session created successfully","metadata":{"agent_name":"ferryman","connection_id":"q-1"},"seq":1,"event_id":"q-1-1"}
{"event":"agent.llm_message","timestamp":"2026-11-02T10:00:01.000000","session_id":"c0ffee00-0000-4000-8000-000000000001","content":{"messages":[{"role":"user","content":"Question: When does the last ferry leave?"}],"total_messages":1},"seq":2,"event_id":"q-1-2"}
{"event":"agent.tool_call","timestamp":"2026-11-02T10:00:02.000000","session_id":"c0ffee00-0000-4000-8000-000000000001","step_id":"step_0_timetable","content":"Calling tool: timetable","metadata":{"tool":"timetable","args":{"line":"north"},"status":"running","connection_id":"q-1"},"seq":3,"event_id":"q-1-3"}
`, `{"event":"agent.tool_result","timestamp":"2026-11-02T10:00:03.500000","session_id":"c0ffee00-0000-4000-8000-000000000001","step_id":"step_0_timetable","content":"22:40","metadata":{"tool":"timetable","status":"success","error":null,"connection_id":"q-1"},"seq":4,"event_id":"q-1-4"}
{"event":"agent.final_answer","timestamp":"2026-11-02T10:00:05.000000","session_id":"c0ffee00-0000-4000-8000-000000000001","content":"The last ferry leaves at 22:40.","metadata":{"connection_id":"q-1"},"seq":5,"event_id":"q-1-5"}
`}

// script is a little traffic of every kind, with the processes and endpoints that handle it.
type script struct {
	exe, dir, in, config string
	store                *process
	storeAddr, storePort string
	push, otlp           string // the ports that are pushed to, and that telemetry is sent to
	collector            *collector
	databases            int
}

func newScript(bin, dir string) (*script, error) {
	s := &script{exe: filepath.Join(bin, "earshot"), dir: dir, in: filepath.Join(dir, "in"), config: filepath.Join(dir, "earshot.yaml")}
	var err error
	if s.storeAddr, err = freeport.Loopback(); err != nil {
		return nil, err
	}
	push, err := freeport.Loopback()
	otlp, err2 := freeport.Loopback()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	s.storePort, s.push, s.otlp = port(s.storeAddr), port(push), port(otlp)
	_, lines, _ := gen.Legion(gen.Options{Sessions: 1, Bytes: 6e3, Seed: 11}).Session(0)
	half := bytes.IndexByte(lines[len(lines)/2:], '\n') + len(lines)/2 + 1
	lines = slices.Concat(lines[:half], []byte("{\"torn\": 1\n"), lines[half:])
	if err := errors.Join(os.MkdirAll(s.in, 0o700), os.WriteFile(filepath.Join(s.in, "messages.jsonl"), lines, 0o600)); err != nil {
		return nil, err
	}
	storeConfig := filepath.Join(dir, "store.yaml")
	err = os.WriteFile(storeConfig, fmt.Appendf(nil, "data_dir: %s\nstore: {listen: %q, writer_token: chaos}\ntelemetry: {listen: \"\"}\nsources: [{name: a, type: file, format: legion, paths: [/nowhere]}]\n",
		filepath.Join(dir, "store"), s.storeAddr), 0o600)
	if err != nil {
		return nil, err
	}
	if s.store, err = start(s.exe, "store", "-c", storeConfig); err != nil {
		return nil, err
	}
	s.collector = newCollector()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err = s.query("SELECT 1", ""); err == nil {
			return s, nil
		}
		if time.Now().After(end) {
			s.close()
			return nil, fmt.Errorf("the store does not answer: %w\n%s", err, s.store.out.tail())
		}
	}
}

func (s *script) close() {
	_ = s.store.interrupt(20 * time.Second) // its engine ends before it
	s.collector.Close()
}

// pass runs two sidecars on a fresh data directory and database: one that is killed, with the
// collector down, and one that ends when everything is stored. It returns the stored rows by
// table, and the hits of the first sidecar: nil if it was not killed at the target.
func (s *script) pass(ctx context.Context, at *target) (stored map[string]string, hits map[string]int, err error) {
	s.databases++
	db := fmt.Sprintf("pass%d", s.databases)
	defer func() {
		_, dropErr := s.query("DROP DATABASE IF EXISTS "+db, "")
		err = errors.Join(err, dropErr, s.storeLives())
	}()
	s.collector.reset()
	err = errors.Join(os.RemoveAll(filepath.Join(s.dir, "data")), os.WriteFile(s.config, fmt.Appendf(nil, `data_dir: %s
telemetry: {listen: ""}
delivery: {retry_min: 50ms, retry_max: 100ms, flush_interval: 50ms}
exporters:
  clickhouse: {dsn: "http://default:chaos@%s/%s", compression: none}
  otlp: {endpoint: %q}
sources:
  - {name: files, type: file, format: legion, poll_interval: 1s, paths: [%q]}
  - {name: push, type: http, format: llm-message, listen: "127.0.0.1:%s"}
  - {name: otel, type: otlp, format: otel-genai, grpc: {listen: ""}, http: {listen: "127.0.0.1:%s"}}
`, filepath.Join(s.dir, "data"), s.storeAddr, db, s.collector.URL, s.in+"/*.jsonl", s.push, s.otlp), 0o600))
	if err != nil {
		return nil, nil, err
	}
	if err := s.earshot("schema", "apply", "-c", s.config); err != nil {
		return nil, nil, err
	}

	pushing, stop := context.WithCancel(ctx)
	defer stop()
	pushed := make(chan struct{})
	go func() { defer close(pushed); s.sendAll(pushing) }()
	defer func() { stop(); <-pushed }()
	if hits, err = s.runSidecar(ctx, at, pushed); err != nil {
		return nil, nil, err
	}
	s.collector.here.Store(true)
	if err := s.earshot("run", "-c", s.config, "--until-idle", "400ms"); err != nil {
		return nil, nil, err
	}
	select {
	case <-pushed:
	default:
		return nil, nil, errors.New("not all was accepted from the client")
	}
	stored = map[string]string{"spans at the collector": s.collector.text()}
	for _, t := range tables {
		if stored[t.name], err = s.query("SELECT * EXCEPT ("+t.except+") FROM "+t.name+" FINAL ORDER BY ALL", db); err != nil {
			return nil, nil, err
		}
	}
	bad, err := s.query("SELECT source, stream, unaccounted_bytes FROM source_ledger FINAL WHERE unaccounted_bytes != 0", db)
	stored["unaccounted bytes"] = bad
	return stored, hits, err
}

// storeLives returns an error when the process of the store has ended: commands and sidecars outlive that, and nobody kills it here.
func (s *script) storeLives() error {
	if out := s.store.out.String(); strings.Contains(out, "store died") || strings.Contains(out, "store does not start") {
		return fmt.Errorf("the store ended: %s", out)
	}
	return nil
}

// earshot runs a command to its end.
func (s *script) earshot(args ...string) error {
	p, err := start(s.exe, args...)
	if err != nil {
		return err
	}
	if err := p.stop(time.Minute); err != nil {
		return fmt.Errorf("%v: %w\n%s", args, err, p.out.tail())
	}
	return nil
}

// query asks the store.
func (s *script) query(sql, db string) (string, error) {
	q := url.Values{"query": {sql + " FORMAT TSV"}, "database": {db}, "user": {"default"}, "password": {"chaos"}}
	if db == "" {
		q.Del("database")
	}
	if strings.HasPrefix(sql, "DROP") {
		q.Set("query", sql)
	}
	resp, err := http.Post("http://"+s.storeAddr+"/?"+q.Encode(), "", nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", resp.Status, b)
	}
	return string(b), err
}

// sendAll pushes the conversation and sends two records of telemetry, each request until it is accepted.
func (s *script) sendAll(ctx context.Context) {
	// Connections are not kept: those to a sidecar that was killed are of no use.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	accepted := func(url, body string, header http.Header) {
		for ctx.Err() == nil && post(client, url, body, header) != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
	for i, body := range conversation {
		accepted("http://127.0.0.1:"+s.push+"/?stream=ferry", body, http.Header{"Content-Type": {"application/x-ndjson"}, "Idempotency-Key": {fmt.Sprint("part ", i)}})
		accepted("http://127.0.0.1:"+s.otlp+"/v1/logs", logRecord(i), nil)
	}
}

// collector is an OTLP receiver that may be down.
type collector struct {
	*httptest.Server
	here  atomic.Bool
	mu    sync.Mutex
	spans map[string]string // by trace and span
}

func newCollector() *collector {
	c := &collector{spans: make(map[string]string)}
	c.Server = httptest.NewServer(c)
	return c
}

func (c *collector) reset() {
	c.here.Store(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.spans)
}

// ServeHTTP receives spans over HTTP. A span that arrives twice has the same ids, and counts
// once.
func (c *collector) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if !c.here.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var r coltracepb.ExportTraceServiceRequest
	b, err := body(q)
	if err != nil || strings.HasSuffix(q.URL.Path, "/traces") && proto.Unmarshal(b, &r) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range r.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				c.spans[fmt.Sprintf("%x %x", s.TraceId, s.SpanId)] = fmt.Sprintf("%s %x %d-%d %s", s.Name, s.ParentSpanId, s.StartTimeUnixNano, s.EndTimeUnixNano, s.Status)
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// text is the received spans as text.
func (c *collector) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for id, s := range c.spans {
		lines = append(lines, id+" "+s+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func body(q *http.Request) ([]byte, error) {
	r := io.Reader(q.Body)
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			return nil, err
		}
		r = z
	}
	return io.ReadAll(r)
}
