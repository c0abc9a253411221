package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/bench/gen"
)

// legion writes generated sessions into a home that tails them.
func legion(t *testing.T, o gen.Options) (*home, gen.Account) {
	h := newHome(t).configure("sources:", files("legion", "sessions/*/messages.jsonl"))
	oracle, err := gen.Legion(o).Write(h.dir)
	h.must(err)
	// A blank line is accounted for with the line that follows it.
	files, err := filepath.Glob(h.path("sessions/*/messages.jsonl"))
	h.must(err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		h.must(err)
		oracle.Total.Bytes -= int64(len(data) - len(bytes.TrimRight(data, "\n")) - 1)
	}
	return h, oracle.Total
}

// wantOracle compares the tables with the generator's account.
func (h *home) wantOracle(a gen.Account) {
	h.Helper()
	var want []string
	for _, kind := range slices.Sorted(maps.Keys(a.Kinds)) {
		want = append(want, fmt.Sprintf("%s\t%d", kind, a.Kinds[kind]))
	}
	for _, c := range []struct {
		sql  string
		want []string
	}{
		{"SELECT kind, count() FROM messages GROUP BY kind ORDER BY kind", want},
		{"SELECT count(), countIf(is_error) FROM messages", []string{fmt.Sprint(a.Messages, "\t", a.Errors)}},
		{"SELECT count(), countIf(is_delegation) FROM tool_calls", []string{fmt.Sprint(a.ToolCalls, "\t", a.Delegations)}},
		{"SELECT count() FROM delegations", []string{fmt.Sprint(a.Delegations)}},
		{"SELECT sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(reasoning_tokens) FROM messages",
			[]string{fmt.Sprint(a.Input, "\t", a.Output, "\t", a.CacheRead, "\t", a.CacheWrite, "\t", a.Reasoning)}},
		{"SELECT sum(length(content)), sum(halfMD5(content)) FROM messages WHERE content != ''", []string{fmt.Sprint(a.ContentBytes, "\t", a.ContentSum)}},
		{"SELECT count() FROM dead_letters", []string{fmt.Sprint(a.Broken)}},
		{"SELECT uniqExact(trace_id, run_id) FROM messages WHERE run_id != ''", []string{fmt.Sprint(a.Runs)}},
		{"SELECT sum(read_bytes), sum(decoded_bytes + quarantined_bytes + dropped_bytes), sum(unaccounted_bytes) FROM source_ledger WHERE reason = ''",
			[]string{fmt.Sprint(a.Bytes, "\t", a.Bytes, "\t0")}},
	} {
		if diff := cmp.Diff(c.want, h.query(c.sql)); diff != "" {
			h.Errorf("%s (-want +got):\n%s", c.sql, diff)
		}
	}
}

// tables are the rows of the tables as strings, without the columns of the time of storing.
func (h *home) tables() map[string][]string {
	h.Helper()
	out := make(map[string][]string)
	for table, except := range map[string]string{
		"messages": "ingest_ts, ver", "tool_calls": "ingest_ts, ver", "delegations": "ingest_ts, ver", "otel_traces": "IngestTs, Ver",
		"dead_letters": "dl_id, seen_at, ver",
	} {
		out[table] = h.query("SELECT * EXCEPT (" + except + ") FROM " + table + " ORDER BY ALL")
	}
	return out
}

func (h *home) wantTables(want map[string][]string) {
	h.Helper()
	got := h.tables()
	for table := range want {
		if len(want[table]) == 0 {
			h.Errorf("%s is empty, so nothing was compared", table)
		}
		if diff := cmp.Diff(want[table], got[table]); diff != "" {
			h.Errorf("%s differs (-one clean pass +this):\n%s", table, tail(diff))
		}
	}
}

// TestMainJob is the product's main job: the agents' traffic is in the tables, all of it, once,
// and reading it again changes nothing.
func TestMainJob(t *testing.T) {
	h, want := legion(t, gen.Options{Sessions: 100, Bytes: 6e6, Seed: 3, Broken: 0.002, Repeated: 0.002})
	h.drain()
	h.wantOracle(want)
	first := h.tables()
	h.drain()
	count, err := h.queryCommand("SELECT count() FROM messages") // which starts the store
	h.must(err)
	if diff := cmp.Diff([]string{fmt.Sprint(want.Messages)}, count); diff != "" {
		t.Errorf("earshot query (-want +got):\n%s", diff)
	}
	h.wantTables(first)
}

// TestKilled kills the sidecar, its decoder or its store at random moments, over
// and over: the tables are those of one clean pass.
func TestKilled(t *testing.T) {
	options := gen.Options{Sessions: 20, Bytes: 2e6, Seed: 4, Broken: 0.02, Repeated: 0.002}
	clean, want := legion(t, options)
	clean.drain()
	clean.wantOracle(want)
	once := clean.tables()

	for _, c := range []struct {
		name string
		find func(p *process) []int
	}{
		{"sidecar", func(p *process) []int { return []int{p.Process.Pid} }},
		{"decoder", func(p *process) []int { return p.children("\x00decoder") }},
		{"store", func(p *process) []int { return p.children("earshot-store") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := legion(t, options)
			h.fresh() // it is killed while it makes its tables, too
			r := rand.New(rand.NewPCG(5, 0))
			for round := range 6 {
				p := h.start("run", "--until-idle", "300ms")
				// At once, before the sidecar can be done, and later, if it is not.
				victims := c.find(p)
				h.until("a process to kill", func() bool { victims = c.find(p); return len(victims) > 0 })
				time.Sleep(time.Duration(round*r.IntN(60)) * time.Millisecond)
				killAll(victims)
				select {
				case <-p.done:
				case <-time.After(time.Duration(r.IntN(600)) * time.Millisecond):
					killAll(c.find(p))
				}
				if c.name == "sidecar" {
					p.kill()
				} else {
					h.waitExit(p)
				}
			}
			h.drain()
			h.wantOracle(want)
			// Where the data directories are differs.
			h.wantTables(replaceDir(once, clean.dir, h.dir))
		})
	}
}

func killAll(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// replaceDir replaces one directory by another in the rows, which stay sorted because all paths
// have the same prefix.
func replaceDir(tables map[string][]string, from, to string) map[string][]string {
	out := make(map[string][]string, len(tables))
	for table, rows := range tables {
		for _, row := range rows {
			out[table] = append(out[table], strings.ReplaceAll(row, from, to))
		}
	}
	return out
}
