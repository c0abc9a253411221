package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/bench/proc"
)

// heldGoal is the memory of the sidecar and its decoders with 50,000 sessions, each a file of a few lines.
const heldGoal = 300 << 20

// held measures the memory that Earshot holds of n sessions that were read and may go on: while they are read, and
// when they have been silent for so long that their decoder has ended. The store is a process apart.
// With profile it leaves the profiles of the sidecar's heap in that directory.
func held(ctx context.Context, n int, profile string, e *env) (err error) {
	dir, err := os.MkdirTemp("", "earshot-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	size, err := writeSessions(filepath.Join(dir, "projects"), n)
	if err != nil {
		return err
	}
	db, err := startEngine(ctx, e.bin, dir)
	if err != nil {
		return err
	}
	defer db.close()
	p, err := startProfiled(dir, db, e)
	if err != nil {
		return err
	}
	defer p.kill()
	now := func() map[string]int64 {
		pss := make(map[string]int64)
		for _, pid := range descendants(p.cmd.Process.Pid) {
			pss[program(pid)] += proc.PSS(pid)
		}
		return pss
	}
	most := int64(0)
	for arrived := false; !arrived; {
		if err := rest(ctx, time.Second); err != nil {
			return err
		}
		most = max(most, sum(now()))
		got, err := db.query(ctx, "SELECT sum(read_bytes) FROM earshot.source_ledger FINAL WHERE reason = ''")
		arrived = err == nil && got[0] == fmt.Sprint(size)
		if p.ended() || time.Since(p.began) > subjectTimeout {
			return fmt.Errorf("%v of %d bytes arrived: %w\n%s", got, size, err, lastLines(p.log.String()))
		}
	}
	fmt.Fprintf(os.Stderr, "held %d sessions of %d bytes, read in %s: PSS at most %d MiB\n", n, size, time.Since(p.began).Round(time.Second), most>>20)
	for _, silent := range []time.Duration{20 * time.Second, silentFor} {
		if err := rest(ctx, silent); err != nil {
			return err
		}
		pss := now()
		most = sum(pss)
		fmt.Fprintf(os.Stderr, "after %s more: PSS %d MiB: sidecar %d, decoders %d\n", silent, most>>20, pss["sidecar"]>>20, pss["decoders"]>>20)
		if profile == "" {
			continue
		}
		if err := saveProfile(ctx, filepath.Join(dir, "data"), "heap?gc=1", filepath.Join(profile, "heap-"+silent.String())); err != nil {
			return err
		}
	}
	if most > heldGoal {
		return fmt.Errorf("held: %d MiB of %d sessions, the goal is %d", most>>20, n, int64(heldGoal)>>20)
	}
	return nil
}

// startProfiled starts a sidecar with data in dir, which reads the transcripts there and can be asked for profiles.
func startProfiled(dir string, db *engine, e *env) (*process, error) {
	config := filepath.Join(dir, "earshot.yaml")
	text := fmt.Sprintf("data_dir: %q\ntelemetry: {listen: \"127.0.0.1:0\", pprof: true}\nsources:\n  - {name: claude, type: file, format: claude-code, paths: [%q]}\nexporters:\n  clickhouse: {dsn: %q}\n%s",
		filepath.Join(dir, "data"), filepath.Join(dir, "projects/*/*.jsonl"), db.dsn(), e.config)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return start([]string{filepath.Join(e.bin, "earshot"), "run", "-c", config})
}

// writeSessions writes small transcripts of Claude Code, and returns their size.
func writeSessions(dir string, n int) (size int64, err error) {
	began := time.Now().Add(-time.Minute)
	for i := range n {
		b := transcript(i, began)
		path := filepath.Join(dir, fmt.Sprintf("project-%03d", i%100), fmt.Sprintf("5e550000-0000-4000-8000-%012x.jsonl", i))
		if i < 100 {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return 0, err
			}
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return 0, err
		}
		size += int64(len(b))
	}
	return size, nil
}

// transcript is a session with a prompt, a tool call, its result and an answer.
func transcript(n int, began time.Time) []byte {
	var b []byte
	parent := any(nil)
	line := func(kind string, message map[string]any) {
		uuid := fmt.Sprintf("c0de%04x-0000-4000-8000-%012x", len(b)&0xffff, n)
		message["role"] = kind
		text, _ := json.Marshal(map[string]any{
			"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": fmt.Sprintf("/srv/orchard-%d", n%100),
			"sessionId": fmt.Sprintf("5e550000-0000-4000-8000-%012x", n), "version": "2.1.230", "gitBranch": "main", "type": kind,
			"message": message, "uuid": uuid, "timestamp": began.UTC().Format("2006-01-02T15:04:05.000Z"),
		})
		b, parent, began = append(append(b, text...), '\n'), uuid, began.Add(time.Second)
	}
	answer := func(id, stop string, part map[string]any) {
		line("assistant", map[string]any{
			"id": fmt.Sprintf("msg_%s%d", id, n), "type": "message", "model": "claude-sonnet-4-5-20250929", "content": []any{part}, "stop_reason": stop,
			"usage": map[string]any{"input_tokens": 4, "output_tokens": 40},
		})
	}
	line("user", map[string]any{"content": fmt.Sprintf("How many pears are in basket %d?", n)})
	answer("a", "tool_use", map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", n), "name": "Bash", "input": map[string]any{"command": "ls baskets | wc -l"}})
	line("user", map[string]any{"content": []any{map[string]any{"type": "tool_result", "tool_use_id": fmt.Sprintf("toolu_%d", n), "content": "12"}}})
	answer("b", "end_turn", map[string]any{"type": "text", "text": strings.Repeat("There are twelve pears. ", 1+n%8)})
	return b
}

// saveProfile writes a profile of the sidecar with that data directory: its name, with parameters.
func saveProfile(ctx context.Context, data, name, to string) error {
	addr, err := os.ReadFile(filepath.Join(data, "metrics.addr"))
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+strings.TrimSpace(string(addr))+"/debug/pprof/"+name, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}
