package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// report is the whole report in Markdown.
func report(e *env, o options, all []series) string {
	var b strings.Builder
	a := e.corpus.oracle.Total
	b.WriteString("# Earshot and an OpenTelemetry Collector, side by side\n\n")
	b.WriteString("Written by `go run ./bench/cmd/bench`. Ratios are taken within a run and shown as median (least to most): below 1 is less than\n" +
		"the first subject of the table takes. CPU and memory are those of all processes of a subject, memory as the sum of each one's own peak.\n" +
		"The engine's are beside them: what it took until it rested, without the checks of its rows.\n\n")
	fmt.Fprintf(&b, "%d bytes of Legion traffic in %d sessions, %d lines, seed %d; %d runs, alternating, each on an engine of its own that is empty.\n",
		a.Bytes, o.sessions, a.Lines, o.seed, o.runs)
	fmt.Fprintf(&b, "Every run's rows were counted and their contents summed: Earshot's against what the generator meant (%d messages, %d calls),\n"+
		"the collector's against the lines (%d).\n\n", a.Messages, a.ToolCalls, e.corpus.lines)
	for _, s := range all {
		fmt.Fprintf(&b, "- %s: %s.\n", s.name, s.label)
	}
	if e.config != "" {
		fmt.Fprintf(&b, "\nEarshot was not at its default settings but had:\n\n    %s", e.config)
	}
	most := 0.0
	for _, s := range all {
		for _, f := range s.runs {
			most = max(most, f.Others)
		}
	}
	fmt.Fprintf(&b, "\nOther work took up to %.0f %% of the machine during a run; above %.0f %% wall times are not compared.\n", 100*most, 100*maxOthers)
	fmt.Fprintf(&b, "\nMachine: %s. Versions: %s.\n\n", machine(), e.versions())
	var stored, discarded []series
	for _, s := range all {
		if s.needsEngine {
			stored = append(stored, s)
		} else {
			discarded = append(discarded, s)
		}
	}
	for _, part := range []struct {
		title string
		all   []series
	}{{"Into ClickHouse", stored}, {"Into nothing", discarded}} {
		if len(part.all) > 0 {
			fmt.Fprintf(&b, "## %s\n\n%s\n", part.title, table(part.all))
		}
	}
	if len(stored) > 1 {
		b.WriteString("## Against the best of each figure\n\n" + best(stored))
	}
	return b.String()
}

// best compares the first subject with the best of the others, figure by figure.
func best(all []series) string {
	var b strings.Builder
	b.WriteString("| figure | " + all[0].name + " / best of the others | goal |\n|---|---|---|\n")
	goals := map[string]string{"CPU": "0.50", "wall": "0.55", "peak memory": "0.33", "engine CPU": "-", "engine memory": "-"}
	for _, m := range metrics() {
		least := leastOf(all[1:], m)
		if !valid(m, all...) {
			fmt.Fprintf(&b, "| %s | not valid: the machine was busy with other work | %s |\n", m.name, goals[m.name])
			continue
		}
		mid, low, high := middle(all[0].ratios(least, m))
		fmt.Fprintf(&b, "| %s | **%.2f** (%.2f to %.2f), %s | %s |\n", m.name, mid, low, high, least.name, goals[m.name])
	}
	return b.String()
}

// leastOf is the series with the least of a figure.
func leastOf(all []series, m metric) series {
	return slices.MinFunc(all, func(a, b series) int {
		x, _, _ := middle(a.values(m))
		y, _, _ := middle(b.values(m))
		return cmp.Compare(x, y)
	})
}

// compared are the figures of a comparison that the page of goals shows.
func compared(e *env, all []series) map[string]savedFigure {
	out := make(map[string]savedFigure)
	byName := make(map[string]series)
	var others []series
	for _, s := range all {
		byName[s.name] = s
		if s.needsEngine && s.name != "earshot" {
			others = append(others, s)
		}
	}
	cpu := metrics()[0]
	if tail, nop := byName["earshot-tail"], byName["collector-discard"]; len(tail.runs) > 0 && len(nop.runs) > 0 {
		out["tail"] = spread(nop.ratios(tail, cpu))
	}
	ours := byName["earshot"]
	if len(ours.runs) == 0 {
		return out
	}
	perByte := ours.values(cpu)
	for i := range perByte {
		perByte[i] *= 1e9 / float64(e.corpus.oracle.Total.Bytes)
	}
	out["cpu_ns"] = spread(perByte)
	if len(others) == 0 {
		return out
	}
	for _, m := range metrics()[:3] {
		k := spread(ours.ratios(leastOf(others, m), m))
		k.Busy = !valid(m, append(others, ours)...)
		out[m.name] = k
	}
	return out
}

func machine() string {
	model := ""
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, v, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model = ", " + strings.TrimSpace(v)
				break
			}
		}
	}
	return fmt.Sprintf("%s/%s, %d cores%s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model)
}

// version is the version that the measured Earshot reports.
func (e *env) version() string {
	b, _ := exec.Command(filepath.Join(e.bin, "earshot"), "version").Output()
	return strings.Join(strings.Fields(string(b)), " ")
}

func (e *env) versions() string {
	out := []string{runtime.Version()}
	for _, c := range [][]string{{e.bin + "/earshot", "version"}, {e.bin + "/earshot-store", "--version"}, {e.peer, "--version"}} {
		if b, err := exec.Command(c[0], c[1:]...).Output(); err == nil {
			line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
			out = append(out, line)
		}
	}
	return strings.Join(out, "; ")
}
