package main

import (
	"context"
	"fmt"
	"strings"
)

// stage is a row of the page: one part of the pipeline, alone.
type stage struct {
	name   string
	detail string
	bench  string // its name in the results
}

const (
	boundaryPkg = "core/internal/host"
	pipelinePkg = "core/internal/pipeline"
)

func stageBenchmarks() []benchmark {
	return []benchmark{
		{pipelinePkg, "^(BenchmarkTail|BenchmarkPipeline)$", "3x", 5},
		{pipelinePkg, "^BenchmarkSessions$", "1x", 3},
		{"core/internal/source/file", "^BenchmarkRead$", "20x", 3},
		{"core/frame/sse", "^BenchmarkFeed$/^deltas$", "0.3s", 3},
		{boundaryPkg, "^BenchmarkDecode$", "0.3s", 3},
		{"core/internal/assemble", "^BenchmarkApply$", "0.3s", 3},
		{"exporters/clickhouse", "^BenchmarkBlock$/^columns$", "0.3s", 3},
		{"exporters/clickhouse", "^BenchmarkInsert$", "20x", 3},
		{"core/internal/source/tap", "^BenchmarkSSE$", "50x", 1},
	}
}

func stageRows() []stage {
	return []stage{
		{"read", "the files' bytes into one buffer, 256 KiB at a time: the yardstick", "Read/bytes"},
		{"read and frame", "the source that tails them, to a sink that drops", "Read/source"},
		{"frame", "lines, of what is in memory", "Read/cut"},
		{"frame", "events of text/event-stream, of what is in memory", "Feed/deltas"},
		{"decode in process", "Legion lines, 512 to a batch", "Decode/inprocess"},
		{"decode out of process", "the same, streamed", "Decode/process/mtls=false/ahead=4/batch=512"},
		{"assemble", "decoded messages into spans", "Apply"},
		{"insert", "messages into the columns of a block", "Block/columns"},
		{"insert", "10,000 messages at a time into the engine", "Insert"},
		{"read to decode", "the pipeline's lanes, results dropped", "Tail/process"},
		{"read to decode", "the same with the decoder called in process", "Tail/inprocess"},
		{"read to batch", "spans and sealed batches as well, which are dropped", "Pipeline/process"},
		{"read to batch", "the same with the decoder called in process", "Pipeline/inprocess"},
	}
}

// stages runs the benchmarks of the parts and writes their results on one page.
func stages(ctx context.Context, o options, e *env) error {
	r := make(results)
	for _, b := range stageBenchmarks() {
		if err := r.run(ctx, b); err != nil {
			return err
		}
	}
	one := func(name, unit string) savedFigure { return spread(r[name][unit]) }
	share := spread(boundaryShares(r))
	return e.publish(o, stagesReport(e, r, share), map[string]savedFigure{
		"boundary": share, "boundary_ns": spread(boundaryCost(r)),
		"session_pause": one("Sessions/open=10000", "longest-ms"), "session_memory": sessionMemory(r),
		"tap_added": one("SSE", "added-p99-µs"), "tap_ratio": one("SSE", "p99/bare"),
	})
}

// boundaryCost is the cost that the decoder's process adds to the pipeline, in CPU-ns for a
// byte, run by run.
func boundaryCost(r results) (out []float64) {
	there, here := r["Pipeline/process"]["MB/cpu-s"], r["Pipeline/inprocess"]["MB/cpu-s"]
	for i := range min(len(there), len(here)) {
		out = append(out, 1e3/there[i]-1e3/here[i])
	}
	return out
}

// boundaryShares are those costs as shares of the pipeline's.
func boundaryShares(r results) []float64 {
	out := boundaryCost(r)
	for i := range out {
		out[i] *= r["Pipeline/process"]["MB/cpu-s"][i] / 1e3
	}
	return out
}

// sessionMemory is the memory of an open session among ten times as many, divided by that among
// few.
func sessionMemory(r results) savedFigure {
	few, many := r["Sessions/open=1000"]["KiB/session"], r["Sessions/open=10000"]["KiB/session"]
	var out []float64
	for i := range min(len(few), len(many)) {
		out = append(out, many[i]/few[i])
	}
	return spread(out)
}

func stagesReport(e *env, r results, share savedFigure) string {
	var b strings.Builder
	b.WriteString("# Stage by stage\n\n" +
		"Written by `go run ./bench/cmd/bench -stages`, which runs the Go benchmarks of the parts and shows the medians. Bytes are those of the\n" +
		"Legion lines that a stage works on; of the events, for text/event-stream; and of the messages' contents, 1.6 kB each, for inserting.\n" +
		"Allocations are the sidecar's, for each record: a line, an event, or a message. Where a stage has a second process, or\n" +
		"goroutines of its own, the CPU of all of it is counted.\n\n")
	fmt.Fprintf(&b, "Machine: %s. Version: %s.\n\n", machine(), e.version())
	b.WriteString("| stage | what | MB/s | MB per CPU-s | allocations of a record | benchmark |\n|---|---|--:|--:|--:|---|\n")
	for _, s := range stageRows() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", s.name, s.detail, show(r.median(s.bench, "MB/s")), show(r.perCPU(s.bench)), show(r.perRecord(s.bench)), s.bench)
	}
	b.WriteString("\n## The process boundary\n\n" +
		"One session of 8 MB through a decoder process: CPU-µs of both sides for a line (MB/s in brackets), by the lines of a batch. A call waits for each\n" +
		"answer; streamed are four requests under way, as in the pipeline.\n\n" +
		"| lines of a batch | call | streamed | call, mTLS | streamed, mTLS |\n|--:|--:|--:|--:|--:|\n")
	for _, n := range []int{1, 64, 512, 4096} {
		fmt.Fprintf(&b, "| %d", n)
		for _, way := range []string{"mtls=false/ahead=1", "mtls=false/ahead=4", "mtls=true/ahead=1", "mtls=true/ahead=4"} {
			name := fmt.Sprintf("Decode/process/%s/batch=%d", way, n)
			cpu, _ := r.median(name, "cpu-ns/frame")
			speed, _ := r.median(name, "MB/s")
			fmt.Fprintf(&b, " | %.1f (%.0f)", cpu/1e3, speed)
		}
		b.WriteString(" |\n")
	}
	here, _ := r.median("Decode/inprocess", "cpu-ns/frame")
	fmt.Fprintf(&b, "\nIn process: %.1f.\n\n", here/1e3)
	fmt.Fprintf(&b, "Of the CPU that the pipeline takes from files to batches, **%.2f** (%.2f to %.2f) is the boundary: what it takes less with the decoder called\n"+
		"in process (Pipeline/process, Pipeline/inprocess). The exporter's CPU is not in it; [goals](goals.md) has the share of the whole.\n\n", share.Value, share.Least, share.Most)
	b.WriteString("## Open sessions\n\nAs many files of a session each that goes on, and one session of ten times as many messages (BenchmarkSessions). A pause is the longest time that the one\n" +
		"goroutine that keeps the accounts took no call, asked every millisecond while they are read and when all of them have fallen silent at once.\n\n" +
		"| open | KiB that live of a session, decoder included | longest pause | longest stop of the garbage collector |\n|--:|--:|--:|--:|\n")
	for _, n := range []int{1000, 10_000} {
		name := fmt.Sprintf("Sessions/open=%d", n)
		fmt.Fprintf(&b, "| %d | %s | %s ms | %s ms |\n", n, show(r.median(name, "KiB/session")), show(r.median(name, "longest-ms")), show(r.median(name, "gc-ms")))
	}
	b.WriteString("\n")
	added, _ := r.median("SSE", "added-p99-µs")
	ratio, _ := r.median("SSE", "p99/bare")
	fmt.Fprintf(&b, "## The tap\n\n1,000 open streams (SSE, %s): the tap adds %.2f ms at p99 to an event, %.2f times what a bare reverse proxy adds.\n", "`core/internal/source/tap`", added/1e3, ratio)
	return b.String()
}

func show(v float64, ok bool) string {
	switch {
	case !ok:
		return ""
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// perCPU is megabytes for a second of CPU, of benchmarks that count it.
func (r results) perCPU(name string) (float64, bool) {
	if v, ok := r.median(name, "MB/cpu-s"); ok {
		return v, true
	}
	ns, ok := r.median(name, "cpu-ns/frame")
	if !ok {
		ns, ok = r.median(name, "cpu-ns/row")
	}
	records, _ := r.median(name, "records/op")
	speed, _ := r.median(name, "MB/s")
	op, _ := r.median(name, "ns/op")
	if !ok || records == 0 {
		return 0, false
	}
	return speed * op / (ns * records), true
}

func (r results) perRecord(name string) (float64, bool) {
	n, ok := r.median(name, "allocs/op")
	records, has := r.median(name, "records/op")
	if !ok || !has {
		return 0, false
	}
	return n / records, true
}
