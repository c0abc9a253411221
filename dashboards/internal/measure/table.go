package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/dashboards/board"
	"github.com/earshot-dev/earshot/dashboards/internal/boards"
	"github.com/earshot-dev/earshot/dashboards/internal/macro"
)

// ranges are the usual time ranges: the last hours, six of them as a dashboard opens,
// a day, and weeks. One that is longer than -days has all there is.
var ranges = []window{{"1h", time.Hour}, {"6h", 6 * time.Hour}, {"24h", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}, {"30d", month}, {"90d", 3 * month}}

// window is a range of time that ends with the latest message.
type window struct {
	name string
	last time.Duration
}

// panel is a query of a dashboard.
type panel struct {
	name, sql string
	least     time.Duration // width of a point
}

func panels() ([]panel, error) {
	var out []panel
	for _, d := range boards.All() {
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				out = append(out, panel{d.Title + " / variable " + v.Name, v.Definition, time.Minute})
			}
		}
		for _, p := range d.Panels {
			least := time.Minute
			if p.Interval != "" {
				var err error
				if least, err = time.ParseDuration(p.Interval); err != nil {
					return nil, fmt.Errorf("%s: %w", p.Title, err)
				}
			}
			for _, t := range p.Targets {
				out = append(out, panel{strings.TrimSuffix(d.Title+" / "+p.Title+" "+t.RefID, " A"), t.RawSQL, least})
			}
		}
	}
	return out, nil
}

// measured is the time of a panel in one of the ranges.
type measured struct {
	panel, window string
	rows          int
	p50, p95, cpu time.Duration
}

func (s *settings) measure(ctx context.Context, db *database) error {
	list, err := panels()
	if err != nil {
		return err
	}
	var end int64
	if err := db.scan(ctx, "SELECT toUnixTimestamp(max(ts)) FROM messages", &end); err != nil {
		return err
	}
	var trace, session string
	if err := db.scan(ctx, "SELECT trace_id, session_id FROM delegations WHERE trace_id != '' ORDER BY ts DESC LIMIT 1", &trace, &session); err != nil {
		return err
	}
	pid := storeProcess(s.dir)
	var out []measured
	for _, w := range ranges {
		runs := s.runs
		if w.last > 24*time.Hour {
			runs = max(runs/3, 1)
		}
		for _, p := range list {
			if !s.only.MatchString(p.name) {
				continue
			}
			to := time.Unix(end, 0).UTC()
			q := macro.Query{
				From: to.Add(-w.last), To: to, Interval: board.Interval(w.last/300, p.least),
				Variables: map[string]macro.Value{
					"format": {All: true}, "agent": {All: true}, "model": {All: true}, "tenant": {All: true}, "project": {All: true}, "version": {All: true}, "tool": {All: true},
					"trace_id": macro.Text(trace), "session": macro.Text(session), "search": macro.Text("lantern"), "steps": macro.Text("0"), "stuck": macro.Of("300000"),
				},
			}
			sql, err := q.Expand(p.sql)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			m := measured{panel: p.name, window: w.name}
			var took []time.Duration
			used := cpu(pid)
			for range runs {
				began := time.Now()
				answer, err := db.ask(ctx, "reader", sql)
				if err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				took = append(took, time.Since(began))
				m.rows = strings.Count(answer, "\n")
			}
			m.cpu = (cpu(pid) - used) / time.Duration(runs)
			slices.Sort(took)
			m.p50, m.p95 = at(took, 0.5), at(took, 0.95)
			out = append(out, m)
			fmt.Printf("%-4s %-60s %6d rows %6d ms p50 %6d ms p95 %6d ms cpu\n", m.window, m.panel, m.rows, m.p50.Milliseconds(), m.p95.Milliseconds(), m.cpu.Milliseconds())
		}
	}
	text, err := s.summary(ctx, db, out)
	if err != nil {
		return err
	}
	fmt.Print("\n", text)
	if s.report == "" {
		return nil
	}
	return os.WriteFile(s.report, []byte(text), 0o644)
}

// at returns a quantile of sorted times: the least with at most that share above it.
func at(sorted []time.Duration, q float64) time.Duration {
	n := int(q * float64(len(sorted)))
	return sorted[min(n, len(sorted)-1)]
}

// over counts the sorted times above a second.
func over(sorted []time.Duration) int {
	first, _ := slices.BinarySearch(sorted, time.Second+1)
	return len(sorted) - first
}

func (s *settings) summary(ctx context.Context, db *database, all []measured) (string, error) {
	var version string
	var messages, spans, calls, bytes, seed uint64
	if err := db.scan(ctx, "SELECT version(), (SELECT count() FROM messages), (SELECT count() FROM otel_traces), (SELECT count() FROM tool_calls), (SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'earshot'), (SELECT count() FROM seed.messages)",
		&version, &messages, &spans, &calls, &bytes, &seed); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Queries of the dashboards over %.1f million messages\n\n", float64(messages)/1e6)
	fmt.Fprintf(&b, "Written by `make bench-queries`. %.1f million spans, %.1f million tool calls, %d days of traffic, %.1f GB on disk. Engine %s, %s/%s, %d cores%s. "+
		"Each query ran %d times, over a week a third of that; the windows end with the latest message.\n"+
		"What went through the sidecar are %d messages; the engine made the others of them, as `dashboards/internal/measure` says.\n\n", float64(spans)/1e6, float64(calls)/1e6, s.days, float64(bytes)/1e9, version, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), load(), s.runs, seed)
	b.WriteString("| window | queries | wall, p50 of all | wall, p95 of all | over 1 s | CPU, p50 of all | CPU, p95 of all | over 1 s |\n|---|---|---|---|---|---|---|---|\n")
	for _, w := range ranges {
		var wall, cpu []time.Duration
		for _, m := range all {
			if m.window == w.name {
				wall, cpu = append(wall, m.p95), append(cpu, m.cpu)
			}
		}
		if len(wall) == 0 {
			continue
		}
		slices.Sort(wall)
		slices.Sort(cpu)
		fmt.Fprintf(&b, "| %s | %d | %d ms | %d ms | %d | %d ms | %d ms | %d |\n", w.name, len(wall), at(wall, 0.5).Milliseconds(), at(wall, 0.95).Milliseconds(), over(wall),
			at(cpu, 0.5).Milliseconds(), at(cpu, 0.95).Milliseconds(), over(cpu))
	}
	fmt.Fprintf(&b, "\nThe columns are milliseconds: p50 / p95 / CPU of the store for one run. Two idle cores need at least half of the CPU time.\n\n| panel | rows in %s |", ranges[min(2, len(ranges)-1)].name)
	for _, w := range ranges {
		fmt.Fprintf(&b, " %s |", w.name)
	}
	b.WriteString("\n|---|---:|" + strings.Repeat("---:|", len(ranges)) + "\n")
	per := len(all) / len(ranges)
	for i := range per {
		fmt.Fprintf(&b, "| %s | %d |", strings.TrimPrefix(all[i].panel, "Earshot / "), all[min(2, len(ranges)-1)*per+i].rows)
		for w := range ranges {
			m := all[w*per+i]
			fmt.Fprintf(&b, " %d / %d / %d |", m.p50.Milliseconds(), m.p95.Milliseconds(), m.cpu.Milliseconds())
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

// load is the load of the machine by other work.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	f := strings.Fields(string(b))
	if len(f) == 0 {
		return ""
	}
	return ", load " + f[0]
}
