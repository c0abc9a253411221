package otel

import "testing"

// TestHistoriesAreOrdered: a run that is used again is the last one, and no other run is there
// twice.
func TestHistoriesAreOrdered(t *testing.T) {
	var c contentCache
	for _, run := range []string{"a", "b", "c", "a"} {
		c.touch(runKey{run: run})
	}
	got := ""
	for _, k := range c.order {
		got += k.run
	}
	if got != "bca" {
		t.Errorf("the order is %s, want bca", got)
	}
}
