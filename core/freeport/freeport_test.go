package freeport

import (
	"slices"
	"testing"
)

// TestLoopbacksDiffer: the addresses of many servers of one configuration are all different.
func TestLoopbacksDiffer(t *testing.T) {
	const n = 500 // found one by one, two are the same in 99 of 100 runs
	all, err := Loopbacks(n)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	if got := len(slices.Compact(all)); got != n {
		t.Errorf("%d of %d addresses differ", got, n)
	}
}
