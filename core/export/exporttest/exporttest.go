// Package exporttest checks an exporter against the contract of package export.
//
// The exporter's own tests simulate the destination, because they know its protocol. Check
// exports batches as the pipeline does: it repeats those that failed, and halves those that
// are refused for good, until the refused records are alone. Then, for every sequence of
// answers:
//
//	accepted ∪ dropped = sent, nothing is stored twice, only refused records are dropped
package exporttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// Answer is the destination's reaction to a request.
type Answer int

// The answers. A Busy destination refuses for now. Refused is for good, because of a record
// in the request. A Lost request was accepted, and its response was lost. A Hung request is
// not answered as long as the client waits.
const (
	Accepted Answer = iota
	Busy
	Refused
	Lost
	Hung
)

func (a Answer) String() string {
	return [...]string{"accepted", "busy", "refused", "lost", "hung"}[a]
}

// Destination is the simulated destination. The test's server gets the answer to each request from it,
// in any goroutine, and reports the records that it stores.
type Destination struct {
	mu     sync.Mutex
	answer func(request int, records []string) Answer
	n      int
	kept   []string
}

// Answer returns the answer to a request that holds these records.
func (f *Destination) Answer(records []string) Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return f.answer(f.n, records)
}

// Keep notes records that the destination has stored, after its own deduplication.
func (f *Destination) Keep(records []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, records...)
}

// Subject is the exporter that is tested.
type Subject struct {
	// New returns the exporter and starts its simulated destination, which ends with t.
	New func(t *testing.T, dest *Destination) export.Exporter
	// Takes returns the records of a batch that the exporter delivers, each as the list of
	// names that it has at the destination.
	Takes func(b *export.Batch) [][]string
	// Replaces means that the destination keeps one of two records of the same name.
	// Without it a record may be there twice, but only if it was sent again because a
	// response was lost or a batch was halved.
	Replaces bool
}

// Check runs every scenario against a new exporter.
func Check(t *testing.T, s Subject) {
	never := func(int, []string) Answer { return Accepted }
	for _, c := range []struct {
		name   string
		answer func(poison []string) func(int, []string) Answer
		poison int
		again  bool // records are sent again that are stored already
	}{
		{name: "succeeds", answer: func([]string) func(int, []string) Answer { return never }},
		{name: "busy at first", answer: func([]string) func(int, []string) Answer {
			return func(n int, _ []string) Answer { return pick(n <= 3, Busy, Accepted) }
		}},
		{name: "busy every other time", answer: func([]string) func(int, []string) Answer {
			return func(n int, _ []string) Answer { return pick(n%2 == 1, Busy, Accepted) }
		}},
		{name: "answers are lost", again: true, answer: func([]string) func(int, []string) Answer {
			return func(n int, _ []string) Answer { return pick(n%3 == 1, Lost, Accepted) }
		}},
		{name: "one record is refused", poison: 1, again: true, answer: refuses},
		{name: "some records are refused", poison: 5, again: true, answer: refuses},
		{name: "all of it at once", poison: 3, again: true, answer: func(poison []string) func(int, []string) Answer {
			const seed = 7
			r := rand.New(rand.NewPCG(seed, seed))
			refused := refuses(poison)
			return func(n int, records []string) Answer {
				switch r.IntN(4) {
				case 0:
					return Busy
				case 1:
					if refused(n, records) == Accepted {
						return Lost
					}
				}
				return refused(n, records)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dest := &Destination{}
			x := s.New(t, dest)
			batches := Batches(3, 40)
			var sent [][]string
			for _, b := range batches {
				sent = append(sent, s.Takes(b)...)
			}
			if len(sent) == 0 {
				t.Fatal("Takes returns no record of these batches: Check is for an exporter that delivers some of them to a destination")
			}
			var poison, blamed []string
			for i := range c.poison {
				record := sent[(i*37+11)%len(sent)]
				poison = append(poison, record[i%len(record)])
				blamed = append(blamed, record...)
			}
			dest.answer = c.answer(poison)

			var dropped []string
			for _, b := range batches {
				before := clone(b)
				d, err := deliver(t.Context(), x, b, s.Takes)
				if err != nil {
					t.Fatal(err)
				}
				dropped = append(dropped, slices.Concat(d...)...)
				if !reflect.DeepEqual(before, b) {
					t.Error("the batch was changed")
				}
			}
			if err := x.Close(t.Context()); err != nil {
				t.Error(err)
			}
			same(t, "dropped", dropped, blamed)
			kept := dest.kept
			if s.Replaces || c.again {
				slices.Sort(kept)
				kept = slices.Compact(kept)
			}
			// The other names of a dropped record may be stored, or not.
			blame := func(name string) bool { return slices.Contains(blamed, name) }
			for _, p := range poison {
				if slices.Contains(kept, p) {
					t.Errorf("%s was refused and is kept", p)
				}
			}
			same(t, "kept", slices.DeleteFunc(kept, blame), slices.DeleteFunc(slices.Concat(sent...), blame))
		})
	}
	t.Run("stops with its context", func(t *testing.T) { checkStops(t, s) })
	t.Run("nothing to deliver", func(t *testing.T) {
		dest := &Destination{answer: func(int, []string) Answer { t.Error("there was a request"); return Accepted }}
		x := s.New(t, dest)
		if err := x.Export(t.Context(), &export.Batch{ID: "empty"}); err != nil {
			t.Error(err)
		}
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// checkStops cancels an Export that waits for an answer.
func checkStops(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dest := &Destination{answer: func(int, []string) Answer { cancel(); return Hung }}
	x := s.New(t, dest)
	done := make(chan error, 1)
	b := Batches(1, 40)[0]
	go func() { done <- x.Export(ctx, b) }()
	select {
	case err := <-done:
		if err == nil || export.IsPermanent(err) || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Export continues after its context has ended")
	}
	dest.mu.Lock()
	dest.answer = func(int, []string) Answer { return Accepted }
	dest.mu.Unlock()
	if err := x.Export(t.Context(), b); err != nil {
		t.Errorf("after that: %v", err)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
	same(t, "accepted", dest.kept, slices.Concat(s.Takes(b)...))
}

// refuses refuses a request that has a poisoned record.
func refuses(poison []string) func(int, []string) Answer {
	return func(_ int, records []string) Answer {
		for _, p := range poison {
			if slices.Contains(records, p) {
				return Refused
			}
		}
		return Accepted
	}
}

func pick[T any](c bool, yes, no T) T {
	if c {
		return yes
	}
	return no
}

func same(t *testing.T, kind string, got, want []string) {
	t.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	want = slices.Compact(want)
	if slices.Equal(got, want) {
		return
	}
	var missing, extra []string
	for _, r := range want {
		if !slices.Contains(got, r) {
			missing = append(missing, r)
		}
	}
	for i, r := range got {
		if !slices.Contains(want, r) || i > 0 && got[i-1] == r {
			extra = append(extra, r)
		}
	}
	t.Errorf("%s: %d records, want %d; %d are missing, such as %v; %d too many, such as %v", kind, len(got), len(want),
		len(missing), missing[:min(len(missing), 3)], len(extra), extra[:min(len(extra), 3)])
}

// deliver exports a batch until it is accepted, or its last record is refused.
func deliver(ctx context.Context, x export.Exporter, b *export.Batch, takes func(*export.Batch) [][]string) (dropped [][]string, err error) {
	for try := 0; ; try++ {
		err := x.Export(ctx, b)
		var after *export.RetryAfter
		switch {
		case err == nil:
			return nil, nil
		case errors.As(err, &after) && after.Wait <= 0:
			return nil, fmt.Errorf("RetryAfter without a pause (%s): %w", after.Wait, err)
		case export.IsPermanent(err) && b.Len() == 1:
			return takes(b), nil
		case export.IsPermanent(err):
			for _, half := range halves(b) {
				d, err := deliver(ctx, x, half, takes)
				if err != nil {
					return nil, err
				}
				dropped = append(dropped, d...)
			}
			return dropped, nil
		case try == 100:
			return nil, fmt.Errorf("not accepted after %d tries: %w", try, err)
		}
	}
}

func halves(b *export.Batch) []*export.Batch {
	n := b.Len() / 2
	out := []*export.Batch{{ID: msg.HashKey(b.ID, "1")}, {ID: msg.HashKey(b.ID, "2")}}
	at := 0
	half := func() *export.Batch {
		at++
		return out[pick(at > n, 1, 0)]
	}
	for _, r := range b.Messages {
		h := half()
		h.Messages = append(h.Messages, r)
	}
	for _, r := range b.Spans {
		h := half()
		h.Spans = append(h.Spans, r)
	}
	for _, r := range b.DeadLetters {
		h := half()
		h.DeadLetters = append(h.DeadLetters, r)
	}
	for _, r := range b.Ledger {
		h := half()
		h.Ledger = append(h.Ledger, r)
	}
	for _, r := range b.Streams {
		h := half()
		h.Streams = append(h.Streams, r)
	}
	return out
}
