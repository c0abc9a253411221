package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table answers the queries of a session of n turns, each a run with one model turn,
// as rows of the columns that they ask for.
type table struct {
	turns    int
	timeless bool   // its turns began at the same time, and the order of their ids is another
	fail     string // fail every query that contains it
}

func (t table) first(turn int) int64 {
	if t.timeless {
		turn = 0
	}
	return began.Add(time.Duration(turn) * time.Second).UnixNano()
}

func (t table) trace(turn int) string {
	if t.timeless {
		turn = t.turns - turn
	}
	return fmt.Sprintf("%06d", turn)
}

var began = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

func (t table) Each(_ context.Context, sql string, _ map[string]string, row func([]any) error) error {
	if t.fail != "" && strings.Contains(sql, t.fail) {
		return errors.New("refused")
	}
	switch {
	case strings.Contains(sql, "SELECT DISTINCT session_id"):
		return row([]any{"s", "t"})
	case strings.Contains(sql, "uniqExactIf(trace_id"):
		return row([]any{"s", "t", "src", "f", []string{}, []string{}, began, began, uint64(t.turns), uint64(2 * t.turns), uint64(0), uint64(0), uint64(0), uint64(0), "go", "", "", "", "", ""})
	case strings.Contains(sql, "'forked_from'"):
		return row([]any{"the trunk"})
	case strings.Contains(sql, "earshot.hop"):
	case strings.Contains(sql, "FROM otel_traces FINAL\n\t\t\tWHERE"):
		for i := range t.turns {
			at := began.Add(time.Duration(i) * time.Second)
			for _, s := range [][3]string{{"r", "", "invoke_agent"}, {"c", "r", "chat"}} {
				parent := ""
				if s[1] != "" {
					parent = fmt.Sprint(s[1], i)
				}
				err := row([]any{t.first(i), uint64(i), t.trace(i), fmt.Sprint(s[0], i), parent, s[2], "", "gull", "", at, int64(time.Second), "", "", "", "", "m-1", "", "", "closed", "", "", []time.Time{}, []string{}, []map[string]string{}, []string{}, "", "", "", "", ""})
				if err != nil {
					return err
				}
			}
		}
	default:
		word := func(first int64, seq uint64, trace, span, kind, content string) error {
			return row([]any{first, seq, trace, span, kind, content, "", "", began, "gull", false, false, uint64(1), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), "", ""})
		}
		if err := word(0, 0, "", "", "assistant", "of no turn"); err != nil {
			return err
		}
		for i := range t.turns {
			at, trace, seq := t.first(i), t.trace(i), uint64(i)
			if err := errors.Join(word(at, seq, trace, fmt.Sprint("r", i), "user", fmt.Sprint("question ", i)), word(at, seq, trace, fmt.Sprint("c", i), "assistant", fmt.Sprint("answer ", i))); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestTurnsWithoutTimes has turns that began at the same time in the order of their
// messages.
func TestTurnsWithoutTimes(t *testing.T) {
	n := 0
	err := Each(t.Context(), table{turns: 20, timeless: true}, Ref{ID: "s"}, 100, func(*Session) error { return nil }, func(x *Turn) error {
		if n < 20 && (x.Prompt != fmt.Sprint("question ", n) || x.Answer != fmt.Sprint("answer ", n)) {
			t.Errorf("turn %d: %q, %q", n, x.Prompt, x.Answer)
		}
		n++
		return nil
	})
	if err != nil || n != 21 {
		t.Fatal(n, err)
	}
}

// TestTurnsOneByOne has each turn with its own prompt and answer, in order, and the
// messages of no turn behind them.
func TestTurnsOneByOne(t *testing.T) {
	n := 0
	err := Each(t.Context(), table{turns: 2000}, Ref{ID: "s"}, 100, func(s *Session) error { return nil }, func(x *Turn) error {
		if n < 2000 && (x.Prompt != fmt.Sprint("question ", n) || x.Answer != fmt.Sprint("answer ", n) || len(x.Steps) != 1 || x.Steps[0].Tokens.Input != 1) {
			t.Fatalf("turn %d: %+v", n, x)
		}
		if n == 2000 && (x.Root != nil || len(x.Steps) != 1 || x.Steps[0].Output != "of no turn") {
			t.Fatalf("the rest: %+v", x)
		}
		n++
		return nil
	})
	if err != nil || n != 2001 {
		t.Errorf("%d turns, %v", n, err)
	}
	c, err := Load(t.Context(), table{turns: 3}, Ref{ID: "s"}, 100)
	if err != nil || len(c.Turns) != 4 || c.Session.ID != "s" {
		t.Errorf("%+v %v", c, err)
	}
}

// TestAnswerInProgress has the text of a model whose span is not stored yet as the answer of its turn.
func TestAnswerInProgress(t *testing.T) {
	at := traceOrder{began: 1, trace: "t"}
	b := builder{texts: 100, at: at, steps: make(map[string]*Step), byID: make(map[string]*Turn)}
	b.add(&Step{SpanID: "r", Kind: "run", Status: "running"}, "gull")
	b.add(&Step{SpanID: "d", Kind: "delegation", Status: "running", parent: "r"}, "gull")
	b.add(&Step{SpanID: "s", Kind: "run", Status: "running", parent: "d"}, "tern")
	b.turns()
	for agent, text := range map[string]string{"gull": "High", "tern": "Low"} {
		b.addMessage(&messageRow{at: at, span: "c-" + agent, kind: "assistant", agent: agent, content: text})
	}
	b.addMessage(&messageRow{kind: "assistant", agent: "gull", content: "of no trace"})
	for _, kind := range []string{"user", "assistant", "plan"} {
		b.addMessage(&messageRow{at: traceOrder{trace: "u"}, span: "x", kind: kind, agent: "gull", content: kind})
	}
	if turn := b.roots[0]; turn.Answer != "High" || len(turn.Root.Steps) != 1 || len(b.steps["s"].Steps) != 1 || b.steps["s"].Steps[0].Output != "Low" {
		t.Errorf("%+v", turn)
	}
	if len(b.loose) != 1 || b.loose[0].Output != "of no trace" {
		t.Errorf("of no turn: %+v", b.loose)
	}
	if len(b.begun) != 1 || b.begun[0].Prompt != "user" || b.begun[0].Answer != "assistant" || len(b.begun[0].Steps) != 1 {
		t.Errorf("without a span: %+v", b.begun)
	}
}

// TestLongSessionTakesNoMemory writes a session of 20,000 messages and one of
// 200,000: the memory held meanwhile is the same.
func TestLongSessionTakesNoMemory(t *testing.T) {
	held := func(turns int) (most uint64) {
		n := 0
		err := Each(t.Context(), table{turns: turns}, Ref{ID: "s"}, 100, func(*Session) error { return nil }, func(*Turn) error {
			if n++; n%(turns/4) == 0 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return most
	}
	small, large := held(10_000), held(100_000)
	t.Logf("%d KiB and %d KiB", small>>10, large>>10)
	if large > 2*small {
		t.Errorf("%d bytes of heap for 20,000 messages, %d for 200,000", small, large)
	}
}

func TestRefusals(t *testing.T) {
	for _, fail := range []string{"SELECT DISTINCT", "'forked_from'", "uniqExactIf(trace_id", "FROM otel_traces FINAL\n\t\t\tWHERE", "FROM messages FINAL WHERE " + ofSession + ") AS m"} {
		if err := WriteSession(t.Context(), io.Discard, table{turns: 2000, fail: fail}, Ref{ID: "s"}, Style{}); err == nil {
			t.Errorf("%q failed, and nobody was told", fail)
		}
	}
	stop := errors.New("stop")
	err := Each(t.Context(), table{turns: 2000}, Ref{ID: "s"}, 100, func(*Session) error { return nil }, func(*Turn) error { return stop })
	if !errors.Is(err, stop) {
		t.Error(err)
	}
}
