package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/change"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestChanges has turns of 20 days, and since version 2.1.224 the tool Bash takes 20 % longer.
func TestChanges(t *testing.T) {
	h := newHome(t)
	r := rand.New(rand.NewPCG(7, 7))
	seconds := func(median float64) int { return int(math.Round(median * math.Exp(0.15*r.NormFloat64()))) }
	const turns, before = 160, 100
	start := time.Now().UTC().Truncate(24 * time.Hour).Add(-20 * 24 * time.Hour)
	var paths []string
	var released time.Time
	for i := range turns {
		at := start.Add(time.Duration(i) * 3 * time.Hour)
		version, median := "2.1.223", 200.0
		if i >= before {
			version, median = "2.1.224", 240
		}
		if i == before {
			released = at
		}
		paths = append(paths, ferry(t, fmt.Sprintf("turn-%03d", i), version, at, "Read", "timetable", seconds(30), "Bash", "tide", seconds(median)))
	}
	h.decoded("claude-code", paths...)
	var got inspect.Changed
	h.json(&got, "changes", "--since", "14d")
	if got.Runs != turns {
		t.Errorf("%d runs, want %d", got.Runs, turns)
	}
	seen := map[string]inspect.ChangePoint{}
	for _, c := range got.Changes {
		seen[c.Kind+" "+c.Name+" "+c.Metric] = c
		if len(c.Since) != 1 || c.Since[0] != "client 2.1.224" || !c.At.Equal(released) || c.Test != change.Release {
			t.Errorf("%s: %s since %v at %s, want a release at %s", c.Title(), c.Test, c.Since, c.At, released)
		}
	}
	bash, agent := seen["tool Bash duration"], seen["agent  duration"]
	if len(seen) != 2 || bash.Low > 1.2 || bash.High < 1.2 || bash.A.Runs != before || bash.B.Runs != turns-before {
		t.Errorf("%d changes, of Bash %+v", len(seen), bash.Change)
	}
	if agent.Turns == 0 || agent.Time[0].Name != "Bash" {
		t.Fatalf("the agent's time: %+v", agent.Time)
	}
	// The parts of p95 add up to the difference of the two percentiles.
	if d := agent.B.P95 - agent.A.P95; math.Abs(sum(agent.P95Time)-d) > 1e-6 {
		t.Errorf("p95 differs by %g ms, its parts by %g: %+v", d, sum(agent.P95Time), agent.P95Time)
	}
	out, _ := h.run("changes", "--since", "14d")
	for _, want := range []string{"tool Bash", "since client 2.1.224", "100 runs before, 60 after", "in tool Bash"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	site := h.site()
	site.has("/changes?from=now-14d&to=now", "since client 2.1.224", "Where the time is", "100</td>", "/compare?a=")
	site.has("/changes?from=now-14d&to=now&agent=nobody", "Nothing changed")
	cfg, err := (&configFile{path: h.config}).load(false)
	if err != nil {
		t.Fatal(err)
	}
	var kept inspect.RunHistory
	asked := h.asked()
	for range 2 { // again, and there is no row more
		if n, err := storeChanges(t.Context(), cfg, h.x, &kept, time.Unix(max(agent.Found.Unix(), bash.Found.Unix()), 0).Add(time.Hour)); err != nil || n == 0 {
			t.Fatalf("%d stored: %v", n, err)
		}
	}
	if n := h.asked() - asked; n > 0 { // less: the engine was closed meanwhile, and counts again
		t.Errorf("the look for changes had rows flushed for it %d times: it counts as a person who reads", n)
	}
	if stored, _ := h.run("query", "SELECT kind, name, more, since FROM v_changes WHERE metric = 'duration' ORDER BY kind", "--format", "TSV"); stored != "agent\t\ttrue\t['client 2.1.224']\ntool\tBash\ttrue\t['client 2.1.224']\n" {
		t.Errorf("stored %q", stored)
	}
	versions, _ := h.run("query", "SELECT agent_version, runs FROM v_agent_versions ORDER BY first_run", "--format", "TSV")
	if versions != "2.1.223\t100\n2.1.224\t60\n" {
		t.Errorf("versions %q", versions)
	}
	for _, args := range [][]string{{"changes", "--since", "1s"}, {"changes", "--budget", "0"}, {"changes", "x"}} {
		if _, _, err := h.try(args...); !isUsage(err) {
			t.Errorf("%v: error %v", args, err)
		}
	}
}

// asked is for how many statements of readers the store has had rows flushed: a program that it does not know yet is told at once.
func (h *home) asked() int {
	h.Helper()
	cfg, err := (&configFile{path: h.config}).load(false)
	if err != nil {
		h.Fatal(err)
	}
	store, err := app.OpenStore(h.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		h.Fatal(err)
	}
	defer store.Close()
	socket := store.Socket()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	h.n++
	resp, err := client.Post(fmt.Sprintf("http://store/flush?writer=%d&done=0", h.n), "", nil)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	var n int
	if _, err := fmt.Fscan(resp.Body, &n); err != nil {
		h.Fatal(err)
	}
	return n
}

// TestChangesOfKeptRuns: a search that keeps its runs finds the changes of a new one, after any rows between the looks: runs that
// began late, are written again, removed or long, set-ups that follow, and agents of whose sessions some are left out.
func TestChangesOfKeptRuns(t *testing.T) {
	h, r := newHome(t), rand.New(rand.NewPCG(3, 9))
	q := h.reader()
	start := time.Now().UTC().Truncate(24 * time.Hour).Add(-30 * 24 * time.Hour)
	kept := &inspect.RunHistory{Late: time.Millisecond}
	var all []msg.Span // of runs
	found := 0
	for round := range 6 {
		var b export.Batch
		now := start.Add(time.Duration(round+1) * 72 * time.Hour)
		add := func(at time.Time, agent string, median float64) {
			n := len(all)
			turn := newTurn(fmt.Sprintf("s%d", n/3), at)
			took := median * math.Exp(0.1*r.NormFloat64())
			turn.run("r"+fmt.Sprint(n), "", agent, 0, took)
			for i := range 2 {
				turn.tool(fmt.Sprint("c", n, i), "r"+fmt.Sprint(n), "Bash", float64(i), float64(i)+took/3).Agent.Name = agent
			}
			for i := range turn.spans {
				turn.spans[i].Run, turn.spans[i].Client.Version = fmt.Sprint("r", n), fmt.Sprint("1.", round/3)
			}
			all, b.Spans = append(all, turn.spans[0]), append(b.Spans, exporttest.Records(turn.spans...)...)
		}
		median := 100.0
		if round >= 3 {
			median = 150
		}
		for i := range 60 {
			add(now.Add(-time.Duration(r.IntN(72*60))*time.Minute), fmt.Sprint("pilot", i%2), median)
		}
		if round == 4 {
			for range 2100 { // from now on sessions of it are left out
				add(now.Add(-time.Duration(r.IntN(72*60))*time.Minute), "busy", median)
			}
		}
		if round > 0 {
			add(now.Add(-5*24*time.Hour), "pilot0", 100) // late
			long := newTurn("long", now.Add(-4*24*time.Hour))
			long.run(fmt.Sprint("long", round), "", "pilot1", 0, 3*24*3600)
			long.spans[0].Run = fmt.Sprint("long", round)
			b.Spans = append(b.Spans, exporttest.Records(long.spans...)...)
			for range 3 {
				again := &all[r.IntN(len(all))]
				again.Ver++
				again.Tombstone, again.End = r.IntN(2) == 0, again.End+int64(time.Minute)
				b.Spans = append(b.Spans, new(*again))
			}
			of := all[r.IntN(len(all))]
			m := bodyMessage(of.Session, fmt.Sprint("p", round), time.Unix(0, of.Start), "You sail the ferry "+fmt.Sprint("no. ", []string{"one", "two"}[r.IntN(2)]), "")
			m.Kind, m.Role, m.Run = msg.System, msg.RoleSystem, of.Run
			b.Messages = append(b.Messages, new(m))
		}
		h.export(b)
		f := inspect.ChangedFilter{Since: 8 * 24 * time.Hour, Now: now, Agent: "pilot1"}
		got, err := kept.WhatChanged(t.Context(), q, f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := inspect.WhatChanged(t.Context(), q, f)
		if err != nil {
			t.Fatal(err)
		}
		found += len(want.Changes) // of one agent: the traces of each are read to explain it
		a, _ := json.Marshal(got)
		if b, _ := json.Marshal(want); string(a) != string(b) {
			t.Errorf("round %d: %d runs, one of %d, looks %+v, %d changes; a new search has %d, %d, %+v, %d", round, got.Runs, got.OneOf, got.Looks, len(got.Changes), want.Runs, want.OneOf, want.Looks, len(want.Changes))
		}
	}
	if found == 0 {
		t.Error("no change in the histories")
	}
}
