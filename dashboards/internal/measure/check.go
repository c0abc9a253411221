package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// check compares the copies with the rows that the sidecar would have stored for as much
// traffic: every table has that multiple of the seed's rows, so have the tables of the
// materialized views, and a copied conversation reads as its original.
func (s *settings) check(ctx context.Context, db *database, n uint64) error {
	counts := map[string][2]string{
		"sessions":                {"SELECT uniqExact(session_id) FROM sessions", "SELECT uniqExact(session_id) FROM seed.messages"},
		"otel_traces_trace_id_ts": {"SELECT uniqExact(TraceId) FROM otel_traces_trace_id_ts", "SELECT uniqExact(trace_id) FROM seed.spans WHERE state != 'open'"},
		"v_tool_calls_1h":         {"SELECT sum(calls) FROM v_tool_calls_1h", "SELECT uniqExact(span_id) FROM seed.spans WHERE kind IN ('tool', 'delegation') AND state != 'open'"},
		"v_messages_5m":           {"SELECT sum(messages) FROM v_messages_5m", "SELECT count() FROM seed.messages"},
	}
	for _, c := range copied {
		counts[c.table] = [2]string{"SELECT count() FROM " + c.table + " FINAL", "SELECT count() FROM seed." + c.table}
	}
	var errs []error
	for table, of := range counts {
		var have, seed uint64
		if err := errors.Join(db.scan(ctx, of[0], &have), db.scan(ctx, of[1], &seed)); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
		if have != seed*n {
			errs = append(errs, fmt.Errorf("%s has %d, not %d times %d", table, have, n, seed))
		}
	}
	if n < 2 {
		return errors.Join(errs...)
	}
	var session string
	if err := db.scan(ctx, "SELECT session_id FROM seed.spans WHERE kind = 'delegation' AND child_run_id != '' GROUP BY session_id ORDER BY count() DESC, session_id LIMIT 1", &session); err != nil {
		return err
	}
	k := n / 2
	want, err := s.show(ctx, session, 0)
	if err != nil {
		return err
	}
	got, err := s.show(ctx, fmt.Sprint(session, "-", k), time.Duration(k*(uint64(s.spread()/time.Second)/n))*time.Second)
	if err != nil {
		return err
	}
	if got = strings.ReplaceAll(got, fmt.Sprint("-", k, `"`), `"`); got != want {
		errs = append(errs, fmt.Errorf("session %s does not read as its copy %d:\n%s\n%s", session, k, want, got))
	}
	return errors.Join(errs...)
}

var (
	hex  = regexp.MustCompile(`"([0-9a-f]{16}|[0-9a-f]{32})"`)
	when = regexp.MustCompile(`"20\d\d-[0-9T:.Z-]+"`)
)

// show is a conversation as earshot shows it, line by line, without its hashes and
// its times later by as much. The lines are sorted: of two calls that began at once
// the hash decides which is first.
func (s *settings) show(ctx context.Context, session string, later time.Duration) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.root, "bin", "earshot"), "show", session, "-c", s.config(), "-o", "json")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("show %s: %w", session, err)
	}
	text := when.ReplaceAllStringFunc(hex.ReplaceAllString(string(out), `"hash"`), func(at string) string {
		t, err := time.Parse(`"`+time.RFC3339Nano+`"`, at)
		if err != nil {
			return at
		}
		return t.Add(later).Format(`"` + time.RFC3339Nano + `"`)
	})
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}
