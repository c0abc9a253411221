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

// TestUse: the list is in the order of use, and the element that was used longest ago is seen when it is evicted.
func TestUse(t *testing.T) {
	var list []*int
	var evicted, got []int
	for _, n := range []int{1, 2, 3, 3, 2, 4, 1} {
		v := Use(&list, 3, func(v *int) bool { return *v == n }, func() *int { return &n }, func(v *int) { evicted = append(evicted, *v) })
		if *v != n || list[len(list)-1] != v {
			t.Errorf("%d is used, and %d is the last", n, *list[len(list)-1])
		}
	}
	for _, v := range list {
		got = append(got, *v)
	}
	if want := []int{2, 4, 1}; !slices.Equal(got, want) || !slices.Equal(evicted, []int{1, 3}) {
		t.Errorf("%v, want %v; %v evicted", got, want, evicted)
	}
}

func TestAll(t *testing.T) {
	odd := func(n int) bool { return n%2 == 1 }
	if got := All([]int{1, 2, 3}, odd); !slices.Equal(got, []int{1, 3}) || All([]int{2}, odd) != nil {
		t.Errorf("%v", got)
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
