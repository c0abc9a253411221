package ui

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
)

// canned answers every query with the rows of the first text that it contains.
type canned map[string][][]any

func (c canned) Each(_ context.Context, sql string, _ map[string]string, row func([]any) error) error {
	for part, rows := range c {
		if !strings.Contains(sql, part) {
			continue
		}
		for _, r := range rows {
			if len(r) == 0 {
				return errors.New("the store is down")
			}
			if err := row(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func get(t *testing.T, q inspect.Querier, host, path string) *httptest.ResponseRecorder {
	t.Helper()
	u, err := New(q)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "http://"+host+path, nil)
	w := httptest.NewRecorder()
	u.ServeHTTP(w, r)
	return w
}

const local = "127.0.0.1:8090"

func TestOnlyThisMachineIsAnswered(t *testing.T) {
	for host, want := range map[string]int{
		local: 200, "localhost": 200, "localhost:1": 200, "[::1]:80": 200, "127.8.9.1": 200,
		"evil.example": 421, "evil.example:8090": 421, "10.0.0.1": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
	} {
		if got := get(t, canned{}, host, "/").Code; got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
}

func TestForeignTextStaysText(t *testing.T) {
	w := get(t, canned{"v_tool_calls": {{"<script>alert(1)</script>", uint64(3), uint64(1), 1.0, 2.0, 3.0, 6.0}}}, local, "/tools")
	if body := w.Body.String(); strings.Contains(body, "<script>alert") || !strings.Contains(body, "&lt;script&gt;alert") {
		t.Errorf("page:\n%s", body)
	}
	if p := w.Header().Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
		t.Errorf("policy %q", p)
	}
}

func TestPages(t *testing.T) {
	open := [][]any{
		{"tool", "execute_tool sound", "pilot", "s1", int64(900_000), int64(600_000), uint8(1)},
		{"run", "invoke_agent pilot", "pilot", "s1", int64(900_000), int64(600_000), uint8(0)},
	}
	for path, c := range map[string]struct {
		q    canned
		code int
		want []string
	}{
		"/":                 {canned{}, 200, []string{"Nothing was heard yet"}},
		"/?search=tide":     {canned{}, 200, []string{"No conversation has “tide”", `value="tide"`}},
		"/tools":            {canned{}, 200, []string{"No tool call has ended yet"}},
		"/now":              {canned{"v_open_spans": open}, 200, []string{"execute_tool sound", "15m00s", "10m00s", "stuck"}},
		"/session/x":        {canned{}, 404, []string{"Not Found"}},
		"/assets/style.css": {canned{}, 200, []string{"color-scheme: light dark"}},
		"/assets/keys.js":   {canned{}, 200, []string{"use strict"}},
		"/assets/":          {canned{}, 404, nil},
		"/elsewhere":        {canned{}, 404, nil},
	} {
		w := get(t, c.q, local, path)
		if w.Code != c.code {
			t.Errorf("%s: %d, want %d", path, w.Code, c.code)
		}
		for _, want := range c.want {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: no %q in\n%s", path, want, w.Body)
			}
		}
	}
	if w := get(t, canned{"v_open_spans": open}, local, "/now"); strings.Count(w.Body.String(), ">stuck<") != 1 {
		t.Errorf("what waits for something below it is not stuck:\n%s", w.Body)
	}
	if w := get(t, canned{"v_tool_calls": {{}}}, local, "/tools"); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "the store is down") {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
	if w := get(t, canned{"messages": {{}}}, local, "/session/x"); w.Code != http.StatusBadGateway {
		t.Errorf("a store that is down is no conversation that is not there: %d", w.Code)
	}
	if w := get(t, canned{"v_tool_calls": {{"a", "b"}}}, local, "/tools"); w.Code != http.StatusBadGateway {
		t.Errorf("rows of another shape: %d", w.Code)
	}
}

// TestCriticalPathAddsUp makes trees whose steps overlap, reach over their
// parents and have no length.
func TestCriticalPathAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 14))
	zero := time.Unix(1_800_000_000, 0)
	var tree func(depth int) *inspect.Step
	tree = func(depth int) *inspect.Step {
		s := &inspect.Step{Started: zero.Add(time.Duration(rng.IntN(1000)) * time.Millisecond), Duration: time.Duration(rng.IntN(1000)) * time.Millisecond}
		for range rng.IntN(4) * min(depth, 1) {
			s.Steps = append(s.Steps, tree(depth-1))
		}
		return s
	}
	for n := range 2000 {
		root := tree(4)
		on := make(map[*inspect.Step]time.Duration)
		criticalPath(root, root.Started, root.Started.Add(root.Duration), on)
		var sum time.Duration
		for s, d := range on {
			if d < 0 || d > s.Duration {
				t.Fatalf("tree %d: %s of a step of %s", n, d, s.Duration)
			}
			sum += d
		}
		if sum != root.Duration {
			t.Fatalf("tree %d: adds up to %s, not %s", n, sum, root.Duration)
		}
	}
}

// TestManySteps: a turn of ten thousand steps is a page all the same.
func TestManySteps(t *testing.T) {
	zero := time.Unix(1_800_000_000, 0)
	root := &inspect.Step{Started: zero, Duration: 10_000 * time.Second}
	for n := range 10_000 {
		root.Steps = append(root.Steps, &inspect.Step{Kind: "tool", Name: fmt.Sprint("t", n), Started: zero.Add(time.Duration(n) * time.Second), Duration: time.Second})
	}
	u, err := New(canned{})
	if err != nil {
		t.Fatal(err)
	}
	turn := newTurn(1, &inspect.Turn{Started: zero, Root: root, Steps: root.Steps})
	w := httptest.NewRecorder()
	u.page("session.html", func(*http.Request) (any, error) { return sessionPage{Title: "s", Turns: []turnPage{turn}}, nil })(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if n := strings.Count(w.Body.String(), "<rect "); w.Code != 200 || n != 10_000 || w.Body.Len() > 8<<20 {
		t.Errorf("%d: %d bars in %d bytes", w.Code, n, w.Body.Len())
	}
	last := turn.Steps[9_999]
	if last.X+last.Width > 1000.001 || last.X < 0 {
		t.Errorf("the last bar is at %v, %v wide", last.X, last.Width)
	}
}
