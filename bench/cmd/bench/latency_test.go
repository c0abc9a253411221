package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestTallyIsFinerThanItsQuestions has numbers that arrive after 100 to 600 ms, and one of a hundred
// after 1.2 s, and questions of once a second and more: the quantiles are right to some
// hundredths of a second.
func TestTallyIsFinerThanItsQuestions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 3000 // a hundred a second
	began, arrives := make([]time.Time, n), make([]time.Time, n)
	start := time.Unix(1_800_000_000, 0)
	for i := range n {
		began[i] = start.Add(time.Duration(i) * 10 * time.Millisecond)
		after := 100*time.Millisecond + time.Duration(r.Int64N(int64(500*time.Millisecond)))
		if i%100 == 50 {
			after = 1200 * time.Millisecond
		}
		arrives[i] = began[i].Add(after)
	}
	tally, asked := newTally(n), 0
	for now := start; tally.left > 0; asked++ {
		now = now.Add(time.Second + time.Duration(r.Int64N(int64(300*time.Millisecond))))
		var there []string
		for i := range n {
			if !arrives[i].After(now) {
				there = append(there, fmt.Sprint(i))
			}
		}
		if _, err := tally.note(strings.Join(there, " "), now, func(i int) time.Time {
			if began[i].After(now) {
				return time.Time{}
			}
			return began[i]
		}); err != nil {
			t.Fatal(err)
		}
	}
	a := tally.arrivals()
	for share, want := range map[float64]time.Duration{0.1: 150 * time.Millisecond, 0.5: 350 * time.Millisecond, 0.9: 555 * time.Millisecond} {
		if got := a.at(share); got < want-60*time.Millisecond || got > want+60*time.Millisecond {
			t.Errorf("%v of them within %s, want %s", share, got, want)
		}
	}
	if got := a.at(1); got < 600*time.Millisecond || got > 1200*time.Millisecond {
		t.Errorf("most %s", got)
	}
	if asked > 35 {
		t.Errorf("%d questions in 31 s", asked)
	}
}

// TestQuestionsAreRare: two questions are a second apart at least.
func TestQuestionsAreRare(t *testing.T) {
	began := time.Now()
	pause(t.Context())
	if took := time.Since(began); took < time.Second {
		t.Errorf("a pause of %s", took)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	pause(ended)
}
