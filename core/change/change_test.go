package change

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// steady is a series of n runs in sessions of that size, an hour apart; the runs of a session have that part of their variance
// in common.
func steady(r *rand.Rand, n, session int, likeness float64) Series {
	s := Series{Key: Key{Agent: "pilot", Model: "tern-2", Metric: "duration"}}
	v, shared := &Version{Client: "1"}, 0.0
	for i := range n {
		if i%session == 0 {
			shared = math.Sqrt(likeness) * r.NormFloat64()
		}
		x := shared + math.Sqrt(1-likeness)*r.NormFloat64()
		s.Observations = append(s.Observations, Observation{Time: start.Add(time.Duration(i) * time.Hour), Session: fmt.Sprint(i / session), Version: v, Value: 1000 * math.Exp(0.2*x)})
	}
	return s
}

func (s *Series) shift(from int, by float64) {
	for i := from; i < len(s.Observations); i++ {
		s.Observations[i].Value *= by
	}
}

func (s *Series) set(from, to int, c Component, value string) {
	for i := from; i < to; i++ {
		v := *s.Observations[i].Version
		v[c] = value
		s.Observations[i].Version = &v
	}
}

func find(list ...Series) []Change {
	end := start
	for _, s := range list {
		if last := s.Observations[len(s.Observations)-1].Time; last.After(end) {
			end = last
		}
	}
	out, _ := Find(list, Options{Now: end.Add(day), Budget: 0.05})
	return out
}

// brief are changes without their runs.
func brief(list []Change) (out []string) {
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s %v at %s found %s, %d and %d runs, ×%.2f (%.2f to %.2f)", c.Test, c.Since, c.At.Format(time.DateTime), c.Found.Format(time.DateTime), c.A.Runs, c.B.Runs, c.Ratio, c.Low, c.High))
	}
	return out
}

// TestLevel: the test rejects no more often than its level, whether or not the runs of a session are alike, and for values that
// are nearly all equal.
func TestLevel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, value := range map[string]func(float64) float64{
		"continuous": func(v float64) float64 { return v },
		"rare":       func(v float64) float64 { return math.Floor(v / 1400) }, // 5 % are not zero
	} {
		for _, likeness := range []float64{0, 0.5} {
			const trials, alpha = 4000, 0.02
			rejected := 0
			for range trials {
				s := steady(r, 125, 5, likeness)
				for i := range s.Observations {
					s.Observations[i].Value = value(s.Observations[i].Value)
				}
				if newSample(s.Observations[:100], s.Observations[100:]).rejects(alpha) {
					rejected++
				}
			}
			// Three standard deviations above the level.
			if most := alpha*trials + 3*math.Sqrt(alpha*trials); float64(rejected) > most {
				t.Errorf("%s, %g alike: rejected %d of %d at %g", name, likeness, rejected, trials, alpha)
			}
		}
	}
}

func TestFind(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	t.Run("a release", func(t *testing.T) {
		s := steady(r, 300, 3, 0.1)
		s.set(200, 300, Client, "2")
		s.set(0, 200, Tools, "a")
		s.set(200, 300, Tools, "b")
		s.shift(200, 1.3)
		got := find(s)
		if len(got) != 1 || !got[0].At.Equal(s.Observations[200].Time) || !slices.Equal(got[0].Since, []string{"client 2", "tools b"}) {
			t.Fatalf("%q", brief(got))
		}
		if c := got[0]; c.Low > 1.3 || c.High < 1.3 || c.A.Runs != 200 || c.A.Sessions != 67 {
			t.Errorf("%q", brief([]Change{c}))
		}
	})
	t.Run("a drift", func(t *testing.T) {
		s := steady(r, 400, 3, 0.1)
		s.shift(250, 0.7)
		got := find(s)
		if len(got) != 1 || got[0].Test != Drift || len(got[0].Since) != 0 || got[0].High > 0.8 {
			t.Fatalf("%q", brief(got))
		}
		if d := got[0].At.Sub(s.Observations[250].Time); max(d, -d) > 20*time.Hour {
			t.Errorf("off by %s", d)
		}
	})
	t.Run("two changes", func(t *testing.T) {
		s := steady(r, 500, 3, 0.1)
		s.shift(150, 1.5)
		s.shift(350, 1.5)
		if got := find(s); len(got) != 2 {
			t.Errorf("%q", brief(got))
		}
	})
	t.Run("nothing", func(t *testing.T) {
		s := steady(r, 300, 3, 0.1)
		s.set(200, 300, Client, "2")
		if got := find(s); len(got) != 0 {
			t.Errorf("%q", brief(got))
		}
	})
	t.Run("an alternative is no release", func(t *testing.T) {
		s := steady(r, 300, 1, 0)
		for i := 100; i < 300; i += 4 {
			s.set(i, i+1, Prompt, "b")
			s.Observations[i].Value *= 3
		}
		for _, c := range find(s) {
			if c.Test == Release {
				t.Errorf("%q", brief([]Change{c}))
			}
		}
	})
	t.Run("a new model", func(t *testing.T) {
		s := steady(r, 300, 3, 0.1)
		s.Pooled, s.Model = true, ""
		s.set(0, 200, Model, "tern-2")
		s.set(200, 300, Model, "tern-3")
		s.shift(200, 2)
		if got := find(s); len(got) != 1 || got[0].Since[0] != "model tern-3" {
			t.Errorf("%q", brief(got))
		}
	})
	t.Run("too small to matter", func(t *testing.T) {
		s := steady(r, 600, 1, 0)
		s.shift(400, 1.05)
		if got := find(s); len(got) != 0 {
			t.Errorf("%q", brief(got))
		}
	})
	t.Run("a share", func(t *testing.T) {
		s := steady(r, 400, 1, 0)
		s.Share = true
		for i := range s.Observations {
			s.Observations[i].Value = 0
			if i%50 == 0 || i > 300 && i%4 == 0 {
				s.Observations[i].Value = 1
			}
		}
		if got := find(s); len(got) != 1 || got[0].B.Mean < 0.2 || got[0].Ratio != 0 {
			t.Errorf("%q", brief(got))
		}
	})
}

// TestAskingOftenFindsTheSame: a search each hour finds the changes that a single one does.
func TestAskingOftenFindsTheSame(t *testing.T) {
	s := steady(rand.New(rand.NewPCG(3, 3)), 300, 3, 0.1)
	s.set(200, 300, Client, "2")
	s.shift(200, 1.4)
	level := Looks{}
	for i := range sizes {
		level.ReleaseLevels[i], level.DriftLevels[i] = 1e-4, 1e-5
	}
	ask := func(runs int) []Change {
		part := s
		part.Observations = s.Observations[:runs]
		out, _ := Find([]Series{part}, Options{Now: s.Observations[runs-1].Time, Level: &level})
		return out
	}
	want := ask(300)
	if len(want) != 1 {
		t.Fatalf("%q", brief(want))
	}
	for runs := 30; runs <= 300; runs++ {
		got, due := ask(runs), !want[0].Found.After(s.Observations[runs-1].Time)
		if due != (len(got) == 1) || due && !got[0].Found.Equal(want[0].Found) {
			t.Fatalf("after %d runs: %q", runs, brief(got))
		}
	}
}

func TestHodgesLehmann(t *testing.T) {
	// The differences of {4, 6} and {1, 2, 3} are 1 2 3 3 4 5.
	if shift, low, high := hodgesLehmann([]float64{1, 2, 3}, []float64{4, 6}); shift != 3 || low > shift || high < shift {
		t.Errorf("%g (%g to %g)", shift, low, high)
	}
}

func BenchmarkFind(b *testing.B) {
	r := rand.New(rand.NewPCG(4, 4))
	var list []Series
	for range 200 {
		list = append(list, steady(r, 600, 3, 0.1))
	}
	for b.Loop() {
		Find(list, Options{Now: start.Add(600 * time.Hour)})
	}
}

// TestRank: percentiles of few values are those that quantileExact of ClickHouse has: the same work has the same number on boards and in SQL.
func TestRank(t *testing.T) {
	for _, c := range []struct {
		q       float64
		n, want int
	}{{0.5, 1, 0}, {0.95, 1, 0}, {0.5, 2, 1}, {0.5, 3, 1}, {0.5, 4, 2}, {0.95, 19, 18}, {0.95, 20, 19}, {0.95, 40, 38}, {1, 7, 6}} {
		if got := Rank(c.q, c.n); got != c.want {
			t.Errorf("quantile %g of %d values is the one at %d, want %d", c.q, c.n, got, c.want)
		}
	}
}

// TestNothingToCompare: with too few runs there is no look, which is another answer than that no look found a change; nor is an old one an answer.
func TestNothingToCompare(t *testing.T) {
	now := time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		runs int
		last time.Duration // of the last run, before now
		any  bool
	}{{7, day, false}, {MinBefore + MinAfter - 1, day, false}, {MinBefore + MinAfter, day, true}, {MinBefore + MinAfter, 20 * day, false}} {
		s := Series{Key: Key{Kind: "agent", Metric: "duration"}}
		for i := range c.runs {
			s.Observations = append(s.Observations, Observation{Time: now.Add(-c.last - time.Duration(c.runs-i)*time.Minute), Version: new(Version), Value: 10, Run: i})
		}
		if _, looks := Find([]Series{s}, Options{Since: now.Add(-7 * day), Now: now}); (looks.Recent > 0) != c.any {
			t.Errorf("%d runs until %s ago: %+v", c.runs, c.last, looks)
		}
	}
}
