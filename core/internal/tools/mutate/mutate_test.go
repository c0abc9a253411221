package main

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

const tiny = `package tiny

import "errors"

const limit = 2 * 50

func Most(a, b int) int {
	if a < b {
		a = b
	}
	return a
}

func Small(n int) bool { return n > 0 && n < limit }

func Sum(list []int) (n int) {
	sums := make(map[int]int, len(list)+1)
	for i := 0; i < len(list); i++ {
		n += list[i]
		sums[i] = n
	}
	return n
}

func Half(n int) (int, error) {
	var err error
	if err = odd(n); err != nil {
		return 0, err
	}
	return n / 2, nil
}

func odd(n int) error {
	if n%2 == 1 {
		return errors.New("odd")
	}
	return nil
}

func Never(n int) int { return n * 2 }
`

const tinyTest = `package tiny

import "testing"

func TestTiny(t *testing.T) {
	if !Small(1) || !Small(99) || Small(100) || Small(-1) || Sum([]int{1, 2}) != 3 {
		t.Error("wrong")
	}
}

func TestHalf(t *testing.T) {
	if n, err := Half(4); n != 2 || err != nil {
		t.Error("wrong")
	}
	if n, err := Half(3); n != 0 || err == nil {
		t.Error("wrong")
	}
}
`

// TestChanges tries every change of a small package: those that survive are the ones that its tests do not see.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module tiny\n\ngo 1.26\n", "tiny.go": tiny, "tiny_test.go": tinyTest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Base(dir)
	var mu sync.Mutex
	var got []string
	m := run{module: dir, tests: ".", jobs: 2, report: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, line)
	}}
	s, err := m.mutate("./")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{
		name + "/tiny.go:14: >=, instead of >, in: func Small(n int) bool { return n > 0 && n < limit } (no test reaches it)", // Small(0)
		name + "/tiny.go:20: nothing, instead of sums[i] = n, in: sums[i] = n",
		name + "/tiny.go:40: /, instead of *, in: func Never(n int) int { return n * 2 } (no test reaches it)",
		name + "/tiny.go:8: !(a < b), instead of a < b, in: if a < b { (no test reaches it)",
		name + "/tiny.go:9: nothing, instead of a = b, in: a = b (no test reaches it)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("survived: %q\nwant %q", got, want)
	}
	if s.all != 13 || s.tried != s.all || s.survived != len(want) || s.unreached != 4 {
		t.Errorf("%+v", s)
	}
}

// TestWithin: the tests that a change may cost are the first ones, and one at least.
func TestWithin(t *testing.T) {
	list := []*test{{cost: 2}, {cost: 3}, {cost: 5}}
	for most, want := range map[time.Duration]int{0: 3, 1: 1, 2: 1, 4: 1, 5: 2, 9: 2, 10: 3} {
		if got := len(within(list, most)); got != want {
			t.Errorf("within %d: %d tests, want %d", most, got, want)
		}
	}
	if got := within(nil, 1); len(got) > 0 {
		t.Errorf("of none: %v", got)
	}
}
