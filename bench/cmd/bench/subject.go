package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/earshot-dev/earshot/bench/gen"
)

// subject is a system under test. It tails a corpus and stores the records in an engine or, if
// it has none, nowhere.
type subject struct {
	name  string
	label string // for the report
	// needsEngine is set for a subject that stores its records in an engine.
	needsEngine bool
	// command is the command line; dir is a new directory for its files.
	command func(e *env, dir string, db *engine) ([]string, error)
	// arrived is a query whose first column counts the records that have arrived, and the count
	// of all.
	arrived func(o *corpus) (sql string, all int64)
	// checks are queries, each with its expected row.
	checks func(o *corpus) [][2]string
	// output is a required part of the output, of a subject that stores nothing but counts.
	output func(o *corpus) string
	// exits is set for a subject that exits by itself once it has done its work.
	exits bool
}

// env has the directories of the executables and of the work.
type env struct {
	bin, peer, self, work string
	config                string // more lines of Earshot's configuration, for experiments
	corpus                *corpus
}

// corpus is generated traffic with its oracle.
type corpus struct {
	dir    string
	oracle *gen.Oracle
	lines  int64  // without blank ones
	size   int64  // bytes of the lines, without their newlines
	sum    uint64 // of the lines, as gen.Sum has it
	read   int64  // bytes up to the last newline that ends something
}

func subjects() []subject {
	return []subject{
		{
			name: "earshot", label: "Earshot: tail, decode in a process of its own, messages and spans, ClickHouse; default settings",
			needsEngine: true, exits: true, command: earshotCommand, arrived: earshotArrived, checks: earshotChecks,
		},
		{
			name: "collector", label: "Collector: filelog, json_parser, batch 10,000, clickhouseexporter without a queue",
			needsEngine: true, command: collectorCommand(directExporter), arrived: collectorArrived, checks: collectorChecks,
		},
		{
			name: "collector-queue", label: "Collector: the same with batches of 8,192, a queue of 1,000 batches and two consumers",
			needsEngine: true, command: collectorCommand(queuedExporter), arrived: collectorArrived, checks: collectorChecks,
		},
		{
			name: "earshot-tail", label: "Earshot: tail, frame and decode in a process of its own, and nothing more: what comes of it is dropped (`core/internal/pipeline` BenchmarkTail)",
			exits: true, command: tailCommand, output: tailOutput,
		},
		{
			name: "earshot-discard", label: "Earshot: as the first, with an exporter that takes everything and stores nothing",
			exits: true, command: discardCommand,
		},
		{
			name: "collector-discard", label: "Collector: filelog, json_parser, batch, nop exporter", command: collectorCommand(""),
		},
	}
}

func (e *env) earshotConfig(dir, dsn string) (string, error) {
	text := fmt.Sprintf("data_dir: %q\ntelemetry: {listen: \"127.0.0.1:0\"}\nsources:\n  - {name: legion, type: file, format: legion, paths: [%q]}\n",
		filepath.Join(dir, "data"), filepath.Join(e.corpus.dir, "sessions/*/messages.jsonl"))
	text += e.config
	if dsn != "" {
		text += fmt.Sprintf("exporters:\n  clickhouse: {dsn: %q}\n", dsn)
	}
	path := filepath.Join(dir, "earshot.yaml")
	return path, os.WriteFile(path, []byte(text), 0o644)
}

func earshotCommand(e *env, dir string, db *engine) ([]string, error) {
	path, err := e.earshotConfig(dir, db.dsn())
	return []string{filepath.Join(e.bin, "earshot"), "run", "-c", path, "--until-idle", "300ms"}, err
}

func discardCommand(e *env, dir string, _ *engine) ([]string, error) {
	path, err := e.earshotConfig(dir, "http://127.0.0.1:1/none")
	return []string{e.self, "discard", path}, err
}

// tailCommand runs the benchmark of the pipeline as far as the decoder's answers, on the
// corpus, once: it has the lanes to itself, which no package outside of core can have.
func tailCommand(e *env, dir string, _ *engine) ([]string, error) {
	test := filepath.Join(dir, "pipeline.test")
	if out, err := exec.Command("go", "test", "-c", "-o", test, "./"+pipelinePkg).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", pipelinePkg, err, out)
	}
	return []string{test, "-test.run", "^$", "-test.bench", "^BenchmarkTail$/^process$", "-test.benchtime", "1x",
		"-files", filepath.Join(e.corpus.dir, "sessions/*/messages.jsonl")}, nil
}

func tailOutput(o *corpus) string { return fmt.Sprintf(" %d records/op", o.lines) }

// earshotArrived queries the ledger of the streams, which is stored after the rows that it
// counts.
func earshotArrived(o *corpus) (string, int64) {
	return "SELECT sum(read_bytes) FROM earshot.source_ledger FINAL WHERE reason = ''", o.read
}

func earshotChecks(o *corpus) [][2]string {
	a := o.oracle.Total
	return [][2]string{
		{"SELECT count(), sum(length(content)), sum(halfMD5(content) * (content != '')) FROM earshot.messages FINAL",
			fmt.Sprint(a.Messages, "\t", a.ContentBytes, "\t", a.ContentSum)},
		{"SELECT count(), countIf(is_delegation) FROM earshot.tool_calls FINAL", fmt.Sprint(a.ToolCalls, "\t", a.Delegations)},
		{"SELECT sum(unaccounted_bytes) FROM earshot.source_ledger FINAL", "0"},
	}
}

const (
	directExporter = "    sending_queue: {enabled: false}\n"
	queuedExporter = "    sending_queue: {enabled: true, num_consumers: 2, queue_size: 1000}\n"
)

// collectorCommand runs the peer. exporter has the settings of its queue; with
// none it exports to nowhere.
func collectorCommand(exporter string) func(e *env, dir string, db *engine) ([]string, error) {
	return func(e *env, dir string, db *engine) ([]string, error) {
		var b strings.Builder
		fmt.Fprintf(&b, `receivers:
  file_log:
    include: [%q]
    start_at: beginning
    max_log_size: 16MiB
    operators:
      - {type: json_parser}
processors:
  batch: {send_batch_size: %d, send_batch_max_size: %[2]d, timeout: 1s}
exporters:
`, filepath.Join(e.corpus.dir, "sessions/*/messages.jsonl"), batchOf(exporter))
		to := "nop"
		if exporter == "" {
			b.WriteString("  nop: {}\n")
		} else {
			to = "clickhouse"
			fmt.Fprintf(&b, "  clickhouse:\n    endpoint: http://%s\n    username: default\n    database: otel\n    compress: none\n    async_insert: false\n    timeout: 60s\n%s", db.forwarder.Addr(), exporter)
		}
		fmt.Fprintf(&b, "service:\n  telemetry: {metrics: {level: none}, logs: {level: warn}}\n  pipelines:\n    logs: {receivers: [file_log], processors: [batch], exporters: [%s]}\n", to)
		path := filepath.Join(dir, "collector.yaml")
		return []string{e.peer, "--config", "file:" + path}, os.WriteFile(path, []byte(b.String()), 0o644)
	}
}

func batchOf(exporter string) int {
	if exporter == queuedExporter {
		return 8192
	}
	return 10_000
}

func collectorArrived(o *corpus) (string, int64) {
	return "SELECT count() FROM otel.otel_logs", o.lines
}

func collectorChecks(o *corpus) [][2]string {
	return [][2]string{{"SELECT count(), sum(length(Body)), sum(halfMD5(Body)) FROM otel.otel_logs", fmt.Sprint(o.lines, "\t", o.size, "\t", o.sum)}}
}
