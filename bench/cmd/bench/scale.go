package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/bench/gen"
)

// shape is traffic of a size in a number of files.
type shape struct {
	bytes    float64
	sessions int
}

// point is Earshot's cost for a shape.
type point struct {
	shape
	total gen.Account
	f     figures
}

// growth is Earshot's cost as its input grows.
type growth struct {
	more, files []point
	live        []liveTraffic
	arrived     []arrivals // of each of live
	streams     streamResult
}

// scale measures how Earshot's figures grow with its input, and the time from a line's write
// until a query finds it, and writes both with a picture.
func scale(ctx context.Context, o options, e *env) error {
	g := growth{live: []liveTraffic{{files: 1, rate: 20, lines: 400}, {files: 1000, rate: 500, lines: 10_000}, {files: 10_000, rate: 500, lines: 5000}}}
	parts := []struct {
		name string
		run  func() error
	}{
		{"growth", func() (err error) {
			g.more, err = e.points(ctx, o.seed, shape{o.size / 10, 100}, shape{o.size / 5, 100}, shape{o.size / 2, 100}, shape{o.size, 100})
			return err
		}},
		{"files", func() (err error) {
			g.files, err = e.points(ctx, o.seed, shape{0.28 * o.size, 1}, shape{o.size / 5, 100}, shape{o.size / 5, 1000}, shape{o.size / 5, 10_000})
			return err
		}},
		{"latency", func() error { return g.latencies(ctx, e) }},
		{"streams", func() (err error) {
			g.streams, err = stream(ctx, e, streaming{clients: 1000, rounds: 3, deltas: 45, lasts: 10 * time.Second})
			return err
		}},
	}
	ran := 0
	for _, p := range parts {
		if o.only == "" || slices.Contains(strings.Split(o.only, ","), p.name) {
			if err := p.run(); err != nil {
				return err
			}
			ran++
		}
	}
	if ran < len(parts) { // a run of some parts
		if ran == 0 {
			return fmt.Errorf("-only %s: no such part", o.only)
		}
		return nil
	}
	picture := strings.TrimSuffix(o.report, filepath.Ext(o.report)) + ".svg"
	if o.report != "" {
		if err := os.WriteFile(picture, []byte(g.picture()), 0o644); err != nil {
			return err
		}
	}
	return e.publish(o, g.report(e, filepath.Base(picture)), g.figures())
}

func (g *growth) latencies(ctx context.Context, e *env) error {
	for _, l := range g.live {
		a, err := latency(ctx, e, l)
		if err != nil {
			return err
		}
		g.arrived = append(g.arrived, a)
		fmt.Fprintf(os.Stderr, "latency %5d files %4d lines/s  p50 %s p99 %s most %s\n", l.files, l.rate, ms(a.at(0.5)), ms(a.at(0.99)), ms(a.at(1)))
	}
	return nil
}

// figures are the figures of the page of goals.
func (g growth) figures() map[string]savedFigure {
	most := g.more[len(g.more)-1]
	out := map[string]savedFigure{
		"growth":      spread([]float64{mib(most.f.Peak) / mib(g.more[0].f.Peak)}),
		"streams_p99": spread([]float64{g.streams.arrived.at(0.99).Seconds()}),
	}
	worst := 0.0
	for _, a := range g.arrived {
		worst = max(worst, a.at(0.99).Seconds())
	}
	out["latency"] = spread([]float64{worst})
	return out
}

// backlog measures Earshot with a hundredth, a tenth and all of the bytes. Each corpus is
// generated before its run and removed after it.
func backlog(ctx context.Context, o options, e *env) error {
	own := *e
	var points []point
	for _, size := range []float64{o.backlog / 100, o.backlog / 10, o.backlog} {
		dir, err := os.MkdirTemp(e.work, "backlog-")
		if err != nil {
			return err
		}
		own.work = dir
		p, err := own.points(ctx, o.seed, shape{size, o.sessions})
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
			return err
		}
		points = append(points, p...)
	}
	first, last := points[0], points[len(points)-1]
	text := fmt.Sprintf("# A backlog of %s\n\nWritten by `go run ./bench/cmd/bench -backlog %.0e`: Legion traffic that was there before Earshot started, default settings, an empty engine\n"+
		"of its own each. CPU and memory are those of the sidecar and its decoder, memory as the sum of each one's own peak. Rows were counted and\n"+
		"their contents summed.\n\nMachine: %s. Versions: %s.\nOther work took up to %.0f %% of the machine.\n\n%s",
		mb(last.total.Bytes), o.backlog, machine(), e.versions(), 100*others(points), pointsTable(points))
	return e.publish(o, text, map[string]savedFigure{"backlog": spread([]float64{mib(last.f.Peak) / mib(first.f.Peak)})})
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
		fmt.Fprintf(os.Stderr, "scale   %s in %5d files  cpu %6.2fs wall %6.2fs peak %4d MiB   engine %6.2fs   others %2.0f %%\n",
			mb(p.total.Bytes), s.sessions, f.CPU.Seconds(), f.Wall.Seconds(), f.Peak>>20, f.Engine.CPU.Seconds(), 100*f.Others)
		out = append(out, p)
	}
	return out, nil
}

func mb(n int64) string             { return fmt.Sprintf("%d MB", (n+500_000)/1_000_000) }
func ms(d time.Duration) string     { return fmt.Sprintf("%d ms", d.Milliseconds()) }
func mib(n int64) float64           { return float64(n) / (1 << 20) }
func megabytes(n int64) float64     { return float64(n) / 1e6 }
func (p point) perHundred() float64 { return p.f.CPU.Seconds() / megabytes(p.total.Bytes) * 100 }

// others is the most that other work took while the points were measured.
func others(points []point) (most float64) {
	for _, p := range points {
		most = max(most, p.f.Others)
	}
	return most
}

func pointsTable(points []point) string {
	var b strings.Builder
	b.WriteString("| traffic | files | messages | CPU | CPU of 100 MB | wall | peak | engine CPU |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range points {
		fmt.Fprintf(&b, "| %s | %d | %d | %.2f s | %.2f s | %.1f s | %.0f MiB | %.2f s |\n", mb(p.total.Bytes), p.sessions, p.total.Messages,
			p.f.CPU.Seconds(), p.perHundred(), p.f.Wall.Seconds(), mib(p.f.Peak), p.f.Engine.CPU.Seconds())
	}
	return b.String()
}

// report is the text beside the picture.
func (g growth) report(e *env, picture string) string {
	var b strings.Builder
	b.WriteString("# How Earshot grows with its input\n\n" +
		"Written by `go run ./bench/cmd/bench -scale`: one run each, Legion traffic, default settings, an empty engine of its own.\n" +
		"CPU and memory are those of the sidecar and its decoder, memory as the sum of each one's own peak. [A backlog of 10 GB](backlog.md) is apart.\n\n" +
		"![memory and CPU as the input grows, and latency](" + picture + ")\n\n")
	fmt.Fprintf(&b, "Other work took up to %.0f %% of the machine: seconds and latencies say less the more that was.\n\n",
		100*max(others(g.more), others(g.files), g.streams.others))
	fmt.Fprintf(&b, "Machine: %s. Versions: %s.\n\n", machine(), e.versions())
	b.WriteString("## More of it\n\n" + pointsTable(g.more) + "\n## In one file, and in many\n\n" + pointsTable(g.files) + "\n")
	b.WriteString("A session is no smaller than a turn, so ten thousand have more bytes than were asked for.\n\n")
	b.WriteString("## From append to queryable\n\n| files | lines a second | lines | p50 | p90 | p99 | most |\n|---|---|---|---|---|---|---|\n")
	for i, l := range g.live {
		a := g.arrived[i]
		fmt.Fprintf(&b, "| %d | %d | %d | %s | %s | %s | %s |\n", l.files, l.rate, l.lines, ms(a.at(0.5)), ms(a.at(0.9)), ms(a.at(0.99)), ms(a.at(1)))
	}
	s := g.streams
	fmt.Fprintf(&b, "\n## Live streams\n\nEarshot as a tap in front of a server that streams the events of `anthropic-sse` to %d clients, one response after another: %d responses\n"+
		"of %d events in %s each. Clients count the events that they get; prompts and answers were counted in the tables, the answers' contents summed.\n"+
		"Latency is that of an answer, from the event that ends it.\n\n", s.clients, s.responses(), s.deltas+framing, s.lasts)
	b.WriteString("| open at once | events a second | CPU of 1,000 events | peak | engine CPU | p50 | p90 | p99 | most |\n|---|---|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| %d | %.0f | %d ms | %.0f MiB | %.2f s | %s | %s | %s | %s |\n", s.open, float64(s.clients*(s.deltas+framing))/s.lasts.Seconds(),
		s.perThousand().Milliseconds(), mib(s.peak), s.engine.CPU.Seconds(), ms(s.arrived.at(0.5)), ms(s.arrived.at(0.9)), ms(s.arrived.at(0.99)), ms(s.arrived.at(1)))
	return b.String()
}
