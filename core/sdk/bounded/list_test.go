package bounded

import (
	"slices"
	"testing"
)

// TestPush: a list keeps its newest members, also under a lower limit.
func TestPush(t *testing.T) {
	var list []int
	for i := range 10 {
		list = Push(list, i, 4)
	}
	if !slices.Equal(list, []int{6, 7, 8, 9}) {
		t.Errorf("%v", list)
	}
	if list = Push(list, 10, 2); !slices.Equal(list, []int{9, 10}) {
		t.Errorf("%v under a lower limit", list)
	}
}
