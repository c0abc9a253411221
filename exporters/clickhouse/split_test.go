package clickhouse

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func splitJob(sizes []int, periods []int32) *job {
	j := &job{size: func(i int32) int { return sizes[i] }}
	for i := range sizes {
		j.rows = append(j.rows, int32(i))
	}
	if periods != nil {
		j.period = func(i int32) int32 { return periods[i] }
	}
	return j
}

func TestSplit(t *testing.T) {
	days := func(n, each int) []int32 {
		var out []int32
		for i := range n * each {
			out = append(out, int32(i%n))
		}
		return out
	}
	ones := func(n int) []int { return slices.Repeat([]int{1}, n) }
	for _, c := range []struct {
		name    string
		sizes   []int
		periods []int32
		limit   int
		want    []part
	}{
		{"nothing", nil, nil, 10, nil},
		{"one", []int{5}, nil, 10, []part{{0, 1}}},
		{"to the byte", []int{5, 5, 5}, nil, 10, []part{{0, 2}, {2, 3}}},
		{"one row over the limit", []int{50}, nil, 10, []part{{0, 1}}},
		{"a large row between small ones", []int{1, 50, 1}, nil, 10, []part{{0, 1}, {1, 2}, {2, 3}}},
		{"as many days as allowed", ones(180), days(90, 2), 1000, []part{{0, 180}}},
		{"a day more, sorted first", ones(182), days(91, 2), 1000, []part{{0, 180}, {180, 182}}},
		{"a year and a limit", ones(365), days(365, 1), 80, []part{{0, 80}, {80, 160}, {160, 240}, {240, 320}, {320, 365}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := splitJob(c.sizes, c.periods).split(c.limit); !slices.Equal(got, c.want) {
				t.Errorf("parts %v, want %v", got, c.want)
			}
		})
	}
}

// TestSplitKeepsEveryRow checks the invariants of a split, over random jobs:
// each row once, the limits kept, and the same parts when it is done again.
func TestSplitKeepsEveryRow(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		n, limit := r.IntN(2000), 100+r.IntN(1000)
		sizes, periods := make([]int, n), make([]int32, n)
		for i := range n {
			sizes[i], periods[i] = 1+r.IntN(200), int32(r.IntN(1+r.IntN(400)))
		}
		j, again := splitJob(sizes, periods), splitJob(sizes, periods)
		parts := j.split(limit)
		if !slices.Equal(parts, again.split(limit)) || !slices.Equal(j.rows, again.rows) {
			t.Fatalf("seed %d: another split of the same rows", seed)
		}
		at := 0
		for _, p := range parts {
			if p.from != at || p.to <= p.from {
				t.Fatalf("seed %d: part %v after row %d", seed, p, at)
			}
			at = p.to
			size, seen := 0, make(map[int32]bool)
			for _, i := range j.rows[p.from:p.to] {
				size += sizes[i]
				seen[periods[i]] = true
			}
			if size > limit && p.to-p.from > 1 || len(seen) > maxPartitions {
				t.Fatalf("seed %d: part %v has %d bytes of %d and %d partitions", seed, p, size, limit, len(seen))
			}
		}
		rows := slices.Clone(j.rows)
		slices.Sort(rows)
		if at != n || !slices.Equal(rows, splitJob(sizes, nil).rows) {
			t.Fatalf("seed %d: rows lost", seed)
		}
	}
}

func TestTokenNamesTheRows(t *testing.T) {
	seen := make(map[string]bool)
	for _, batch := range []string{"a", "b"} {
		for _, table := range []string{"messages", "tool_calls"} {
			for _, p := range []part{{0, 1}, {0, 2}, {1, 2}} {
				seen[p.token(batch, table)] = true
			}
		}
	}
	if len(seen) != 12 {
		t.Errorf("%d tokens for 12 sets of rows: %v", len(seen), seen)
	}
}

func TestPartitionsOfTimes(t *testing.T) {
	at := func(s string) int64 {
		x, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return x.UnixNano()
	}
	for _, c := range []struct {
		a, b       string
		day, month bool // the same one
	}{
		{"2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z", false, false},
		{"2026-01-01T00:00:00Z", "2026-01-31T23:59:59Z", false, true},
		{"2026-01-01T00:00:00Z", "2026-01-01T23:59:59Z", true, true},
		{"2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", false, false},
	} {
		if got := day(at(c.a)) == day(at(c.b)); got != c.day {
			t.Errorf("%s and %s on one day: %v", c.a, c.b, got)
		}
		if got := month(at(c.a)) == month(at(c.b)); got != c.month {
			t.Errorf("%s and %s in one month: %v", c.a, c.b, got)
		}
	}
}
