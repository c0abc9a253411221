package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// Verdicts of open sessions of which each has a record every judgedPace, their goal in percent of the sidecar's
// CPU, and for how long it is measured.
const (
	judgedGoal = 2.0
	judgedPace = 10 * time.Second
	judgedFor  = 60 * time.Second
)

// judging are the functions that make verdicts; their callees count as well.
const judging = `assemble\.\(\*Assembler\)\.judge$|assemble\.handler\.(observeVerdict|learn)$|core/verdict\.`

// judged measures the share of verdicts in the CPU of the whole sidecar, by its profile, while n sessions of Claude Code
// are at work: each waits for a tool or its model, and has a record every judgedPace.
func judged(ctx context.Context, n int, e *env) error {
	dir, err := os.MkdirTemp("", "earshot-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := startEngine(ctx, e.bin, dir)
	if err != nil {
		return err
	}
	defer db.close()
	if err := writeOpen(dir, n, 0, n); err != nil {
		return err
	}
	p, err := startProfiled(dir, db, e)
	if err != nil {
		return err
	}
	defer p.kill()
	work, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() {
		const tick = 100 * time.Millisecond
		step := max(1, n*int(tick)/int(judgedPace))
		for at := n; ; at += step {
			if err := rest(work, tick); err != nil {
				return
			}
			if err := writeOpen(dir, n, at, at+step); err != nil {
				failed <- err
				return
			}
		}
	}()
	for open := 0; open < n*9/10; {
		if err := rest(ctx, time.Second); err != nil {
			return err
		}
		if got, err := db.query(ctx, "SELECT uniqExact(session_id) FROM earshot.v_open_spans WHERE kind = 'run'"); err == nil {
			open, _ = strconv.Atoi(got[0])
		}
		if p.ended() || time.Since(p.began) > subjectTimeout {
			return fmt.Errorf("%d of %d sessions are open\n%s", open, n, lastLines(p.log.String()))
		}
	}
	file := filepath.Join(dir, "cpu.pprof")
	if err := saveProfile(ctx, filepath.Join(dir, "data"), fmt.Sprintf("profile?seconds=%d", judgedFor/time.Second), file); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
	}
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-focus", judging, file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go tool pprof: %w: %s", err, out)
	}
	m := regexp.MustCompile(`Showing nodes accounting for \S+, ([0-9.]+)% of (\S+) total`).FindSubmatch(out)
	if m == nil {
		return fmt.Errorf("go tool pprof: %s", out)
	}
	share, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d open sessions, a record each in %s: the sidecar takes %s of CPU in %s, verdicts %.2f %% of it\n", n, judgedPace, m[2], judgedFor, share)
	if share > judgedGoal {
		return fmt.Errorf("judged: %.2f %%, the goal is %.1f", share, judgedGoal)
	}
	return nil
}

// writeOpen appends records from up to to of n sessions, which take turns: a prompt with a call at first, then its result, and the next call.
func writeOpen(dir string, n, from, to int) error {
	for at := from; at < to; at++ {
		i, round := at%n, at/n
		path := filepath.Join(dir, fmt.Sprintf("projects/project-%03d/5e550000-0000-4000-8000-%012x.jsonl", i%100, i))
		var b []byte
		line := func(seq int, kind string, message map[string]any) {
			uuid := func(k int) any {
				if k == 0 {
					return nil
				}
				return fmt.Sprintf("c0de%04x-0000-4000-8000-%012x", k, i)
			}
			message["role"] = kind
			text, _ := json.Marshal(map[string]any{
				"parentUuid": uuid(seq - 1), "isSidechain": false, "userType": "external", "cwd": "/srv/orchard", "sessionId": fmt.Sprintf("5e550000-0000-4000-8000-%012x", i),
				"version": "2.1.230", "type": kind, "message": message, "uuid": uuid(seq), "timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
			})
			b = append(append(b, text...), '\n')
		}
		call := func(seq, k int) {
			line(seq, "assistant", map[string]any{
				"id": fmt.Sprintf("msg_%d_%d", i, k), "type": "message", "model": "claude-sonnet-4-5-20250929", "stop_reason": "tool_use", "usage": map[string]any{"input_tokens": 4, "output_tokens": 40},
				"content": []any{map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d_%d", i, k), "name": "Bash", "input": map[string]any{"command": fmt.Sprint("weigh basket ", k)}}},
			})
		}
		switch {
		case round == 0:
			line(1, "user", map[string]any{"content": "Weigh the baskets."})
			call(2, 0)
		case round%2 == 1:
			line(round+2, "user", map[string]any{"content": []any{map[string]any{"type": "tool_result", "tool_use_id": fmt.Sprintf("toolu_%d_%d", i, round/2), "content": fmt.Sprint(round, " kg")}}})
		default:
			call(round+2, round/2)
		}
		if err := appendTo(path, b); err != nil {
			return err
		}
	}
	return nil
}

func appendTo(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
