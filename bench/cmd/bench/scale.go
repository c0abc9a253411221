package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/bench/gen"
)

// shape is traffic of a size in a number of files.
type shape struct {
	bytes    float64
	sessions int
}

// point is what Earshot took for a shape.
type point struct {
	shape
	total gen.Account
	f     figures
}

// scale measures how Earshot's figures grow with its input, and how long a line
// takes to be found by a query, and writes both with a picture.
func scale(ctx context.Context, o options, e *env) error {
	growth, err := e.points(ctx, o.seed, shape{o.size / 10, 100}, shape{o.size / 5, 100}, shape{o.size / 2, 100}, shape{o.size, 100})
	if err != nil {
		return err
	}
	files, err := e.points(ctx, o.seed, shape{0.28 * o.size, 1}, shape{o.size / 5, 100}, shape{o.size / 5, 1000}, shape{o.size / 5, 10_000})
	if err != nil {
		return err
	}
	lives := []live{{files: 1, rate: 20, lines: 400}, {files: 1000, rate: 500, lines: 10_000}}
	came := make([]arrivals, len(lives))
	for i, l := range lives {
		if came[i], err = latency(ctx, e, l); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "latency %5d files %4d lines/s  p50 %s p99 %s most %s\n", l.files, l.rate,
			ms(came[i].at(0.5)), ms(came[i].at(0.99)), ms(came[i].at(1)))
	}
	if o.report == "" {
		return nil
	}
	picture := strings.TrimSuffix(o.report, filepath.Ext(o.report)) + ".svg"
	if err := os.WriteFile(picture, []byte(curves(growth, files, lives, came)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(o.report, []byte(scaleReport(e, filepath.Base(picture), growth, files, lives, came)), 0o644)
}

// points runs Earshot on each shape.
func (e *env) points(ctx context.Context, seed uint64, shapes ...shape) ([]point, error) {
	var out []point
	for _, s := range shapes {
		var err error
		if e.corpus, err = makeCorpus(e.work, gen.Options{Bytes: int64(s.bytes), Sessions: s.sessions, Seed: seed}); err != nil {
			return nil, err
		}
		f, err := measure(ctx, e, subjects()[0])
		if err != nil {
			return nil, err
		}
		p := point{s, e.corpus.oracle.Total, f}
		fmt.Fprintf(os.Stderr, "scale   %s in %5d files  cpu %6.2fs peak %4d MiB   engine %6.2fs   others %2.0f %%\n",
			mb(p.total.Bytes), s.sessions, f.CPU.Seconds(), f.Peak>>20, f.Engine.CPU.Seconds(), 100*f.Others)
		out = append(out, p)
	}
	return out, nil
}

func mb(n int64) string             { return fmt.Sprintf("%d MB", (n+500_000)/1_000_000) }
func ms(d time.Duration) string     { return fmt.Sprintf("%d ms", d.Milliseconds()) }
func mib(n int64) float64           { return float64(n) / (1 << 20) }
func megabytes(n int64) float64     { return float64(n) / 1e6 }
func (p point) perHundred() float64 { return p.f.CPU.Seconds() / megabytes(p.total.Bytes) * 100 }

// scaleReport is the text beside the picture.
func scaleReport(e *env, picture string, growth, files []point, lives []live, came []arrivals) string {
	var b strings.Builder
	b.WriteString("# How Earshot grows with its input\n\n" +
		"Written by `go run ./bench/cmd/bench -scale`: one run each, Legion traffic, default settings, an empty engine of its own.\n" +
		"CPU and memory are those of the sidecar and its decoder, memory as the sum of each one's own peak.\n\n" +
		"![memory and CPU as the input grows, and latency](" + picture + ")\n\n")
	most := 0.0
	for _, p := range append(append([]point(nil), growth...), files...) {
		most = max(most, p.f.Others)
	}
	fmt.Fprintf(&b, "Other work took up to %.0f %% of the machine: seconds and latencies say less the more that was.\n\n", 100*most)
	fmt.Fprintf(&b, "Machine: %s. Versions: %s.\n\n", machine(), e.versions())
	table := func(title string, points []point) {
		fmt.Fprintf(&b, "## %s\n\n| traffic | files | messages | CPU | CPU of 100 MB | peak | engine CPU |\n|---|---|---|---|---|---|---|\n", title)
		for _, p := range points {
			fmt.Fprintf(&b, "| %s | %d | %d | %.2f s | %.2f s | %.0f MiB | %.2f s |\n", mb(p.total.Bytes), p.sessions, p.total.Messages,
				p.f.CPU.Seconds(), p.perHundred(), mib(p.f.Peak), p.f.Engine.CPU.Seconds())
		}
		b.WriteString("\n")
	}
	table("More of it", growth)
	table("In one file, and in many", files)
	b.WriteString("A session is no smaller than a turn, so ten thousand have more bytes than were asked for.\n\n")
	b.WriteString("## From append to queryable\n\n| files | lines a second | lines | p50 | p90 | p99 | most |\n|---|---|---|---|---|---|---|\n")
	for i, l := range lives {
		a := came[i]
		fmt.Fprintf(&b, "| %d | %d | %d | %s | %s | %s | %s |\n", l.files, l.rate, l.lines, ms(a.at(0.5)), ms(a.at(0.9)), ms(a.at(0.99)), ms(a.at(1)))
	}
	return b.String()
}
