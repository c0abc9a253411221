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

func TestUse(t *testing.T) {
	var list []*int
	for _, n := range []int{1, 2, 3, 2, 4, 1} {
		list = Use(list, 3, func(v *int) bool { return *v == n }, func() *int { return &n })
	}
	var got []int
	for _, v := range list {
		got = append(got, *v)
	}
	if want := []int{2, 4, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFind(t *testing.T) {
	one, two := 1, 2
	before := two
	list := []*int{&one, &before, &two}
	if got := Find(list, func(v *int) bool { return *v == 2 }); got != &two {
		t.Errorf("%v", got)
	}
	if got := Find(list, func(v *int) bool { return *v == 3 }); got != nil {
		t.Errorf("%v of none", *got)
	}
}

func TestOnly(t *testing.T) {
	list := []int{1, 2, 3, 2}
	for v, want := range map[int]bool{1: true, 2: false, 3: true, 4: false} {
		if got, ok := Only(list, func(n int) bool { return n == v }); ok != want || ok && got != v {
			t.Errorf("%d: %d, %t", v, got, ok)
		}
	}
}

func TestTake(t *testing.T) {
	list := []int{1, 2, 3, 2}
	two := func(v int) bool { return v == 2 }
	for _, want := range [][]int{{1, 3, 2}, {1, 3}, {1, 3}} {
		if v, ok := Take(&list, two); ok && v != 2 || !slices.Equal(list, want) {
			t.Errorf("took %d, %t, and left %v, want %v", v, ok, list, want)
		}
	}
}
