package assemble

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// sends is a call that hands a text to another agent and does not wait for it.
func sends(run, call, to, text string, at int64) []msg.Message {
	begin, end := delegated(run, call, to, at), answered(run, call, at)
	begin.Precision, begin.Delegation.Async, begin.Delegation.CorrelationPrompt = msg.Millis, true, text
	return []msg.Message{begin, end}
}

// gets is the beginning of a run by the text of another agent.
func gets(run, from, text string, at int64) msg.Message {
	m := user(run, at)
	m.Precision, m.Signal, m.Delegation.CorrelationPrompt = msg.Millis, msg.RunStart, text
	m.Agent = msg.Agent{Name: from, Kind: msg.KindAgent}
	return m
}

var everyHow = []how{{}, {restarts: true}, {late: true}, {restarts: true, late: true}}

// sameRows plays the scripts in every order and returns the rows, which have to be the
// same each time.
func sameRows(t *testing.T, scripts []script) map[string]msg.Span {
	t.Helper()
	var want map[string]msg.Span
	for _, order := range interleavings(scripts) {
		for _, h := range everyHow {
			got := play(t, scripts, order, h)
			if want == nil {
				want = got
			}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(msg.Text{})); d != "" {
				t.Fatalf("order %v, %+v: -first +this:\n%s", order, h, d)
			}
		}
	}
	return want
}

func tracesOf(rows map[string]msg.Span) int {
	traces := make(map[msg.TraceID]bool)
	for _, s := range rows {
		traces[s.TraceID] = true
	}
	return len(traces)
}

// TestSentWorkLastsAsLongAsItsRun: the sender does not wait; the call lasts as long as the run
// in the other session, in any order of reading, and all is one tree.
func TestSentWorkLastsAsLongAsItsRun(t *testing.T) {
	rows := sameRows(t, []script{
		{"legion", "s1", [][]msg.Message{append([]msg.Message{user("a", 0)}, sends("a", "d", "wren", "count", 1)...), {stop("a", 3)}}},
		{"legion", "s2", [][]msg.Message{{gets("x", "heron", "count", 2), called("x", "t", "Grep", 10)}, {result("x", "t", 20), said("x", "r", 40)}, {stop("x", 43)}}},
	})
	if n := tracesOf(rows); n != 1 || len(rows) != 5 {
		t.Errorf("%d traces, %d rows", n, len(rows))
	}
	for _, s := range rows {
		switch {
		case s.Kind == msg.SpanDelegation:
			if d := s.Delegate; (s.Worked-t0)/sec != 43 || d.ChildRun != "x" || d.Link != msg.ByPrompt || d.Confidence != 80 {
				t.Errorf("the call worked until %d for %q by %s, %d %%", (s.Worked-t0)/sec, d.ChildRun, d.Link, d.Confidence)
			}
		case s.Kind == msg.SpanRun && s.Run == "x" && s.ParentRun != "a":
			t.Errorf("the run is of %q below run %q", s.Agent.Name, s.ParentRun)
		}
		if want := map[string]string{"a": "heron", "x": "wren"}[s.Run]; s.Agent.Name != want {
			t.Errorf("%s %s is of %q, want %q", s.Kind, s.ID, s.Agent.Name, want)
		}
	}
}

// TestSentTwice: equal texts at different times are paired in the order of time, and one that
// no agent took up has caused no run.
func TestSentTwice(t *testing.T) {
	pairs := func(rows map[string]msg.Span) map[string]string {
		out := make(map[string]string)
		for _, s := range rows {
			if s.Kind == msg.SpanDelegation {
				out[s.Tool.CallID] = s.Delegate.ChildRun
			}
		}
		return out
	}
	call := func(n, at int64) []msg.Message { return sends("a", fmt.Sprint("d", n), "wren", "count", at) }
	for name, c := range map[string]struct {
		calls [][]msg.Message
		runs  []int64
		want  map[string]string
	}{
		"one after the other": {[][]msg.Message{call(1, 1), call(2, 60)}, []int64{2, 61}, map[string]string{"d1": "x0", "d2": "x1"}},
		"at once":             {[][]msg.Message{call(1, 1), call(2, 2)}, []int64{3, 4}, map[string]string{"d1": "x0", "d2": "x1"}},
		"the first is lost":   {[][]msg.Message{call(1, 1), call(2, 60)}, []int64{61}, map[string]string{"d1": "", "d2": "x0"}},
		"the last is lost":    {[][]msg.Message{call(1, 1), call(2, 60)}, []int64{2}, map[string]string{"d1": "x0", "d2": ""}},
		"it was busy":         {[][]msg.Message{call(1, 1), call(2, 10)}, []int64{100, 101}, map[string]string{"d1": "x0", "d2": "x1"}},
		"too late":            {[][]msg.Message{call(1, 1)}, []int64{4000}, map[string]string{"d1": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			caller := script{"legion", "s1", append([][]msg.Message{{user("a", 0)}}, c.calls...)}
			other := script{"legion", "s2", nil}
			for i, at := range c.runs {
				run := fmt.Sprint("x", i)
				other.parts = append(other.parts, []msg.Message{gets(run, "heron", "count", at), stop(run, at+5)})
			}
			if d := cmp.Diff(c.want, pairs(sameRows(t, []script{caller, other}))); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestSentInCircles: two agents send each other one text after another. It is one tree, of
// runs that were evicted long before the other side is read, and each trace that they left has
// tombstones only.
func TestSentInCircles(t *testing.T) {
	const rounds = 30
	texts := func(n int) string { return fmt.Sprint("text ", n) }
	a := script{"legion", "s1", [][]msg.Message{append([]msg.Message{user("a0", 0)}, sends("a0", "c0", "wren", texts(0), 1)...)}}
	b := script{"legion", "s2", nil}
	for n := range rounds {
		at, ra, rb := int64(20*n), fmt.Sprint("a", n+1), fmt.Sprint("b", n)
		b.parts = append(b.parts, append(append([]msg.Message{gets(rb, "heron", texts(2*n), at+2)}, sends(rb, "d"+rb, "heron", texts(2*n+1), at+8)...), stop(rb, at+9)))
		part := []msg.Message{gets(ra, "wren", texts(2*n+1), at+9)}
		if n+1 < rounds {
			part = append(part, sends(ra, "c"+ra, "wren", texts(2*n+2), at+20)...)
		}
		a.parts = append(a.parts, append(part, stop(ra, at+21)))
	}
	orders := map[string][]string{"one first": nil, "the other first": nil, "mixed": nil, "in turns": nil}
	for _, first := range []int{0, 1} {
		var order []string
		for _, s := range []int{first, 1 - first} {
			for p := range [][]script{{a}, {b}}[s][0].parts {
				order = append(order, fmt.Sprintf("%d.%d", s, p))
			}
		}
		orders[map[int]string{0: "one first", 1: "the other first"}[first]] = order
	}
	next, left := [2]int{}, [2]int{len(a.parts), len(b.parts)}
	r := rand.New(rand.NewPCG(3, 4))
	for left[0]+left[1] > 0 {
		s := r.IntN(2)
		if left[s] == 0 {
			s = 1 - s
		}
		orders["mixed"] = append(orders["mixed"], fmt.Sprintf("%d.%d", s, next[s]))
		next[s]++
		left[s]--
	}
	for n := range rounds {
		orders["in turns"] = append(orders["in turns"], fmt.Sprintf("0.%d", n), fmt.Sprintf("1.%d", n))
	}
	orders["in turns"] = append(orders["in turns"], fmt.Sprintf("0.%d", rounds))
	var want map[string]msg.Span
	for _, name := range []string{"in turns", "one first", "the other first", "mixed"} {
		for _, h := range everyHow {
			got := play(t, []script{a, b}, orders[name], h)
			if want == nil {
				want = got
				if n := tracesOf(got); n != 1 {
					t.Errorf("%d traces", n)
				}
			}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(msg.Text{})); d != "" {
				t.Fatalf("%s, %+v: -first +this:\n%.3000s", name, h, d)
			}
		}
	}
}
