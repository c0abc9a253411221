package bounded

import "testing"

// TestOldestIsEvicted: a map keeps its newest entries, in the order in which they were added.
func TestOldestIsEvicted(t *testing.T) {
	const limit = 100
	m := NewMap[int, int](limit)
	for i := range 3 * limit {
		if !m.Add(i, i) {
			t.Fatalf("%d is known", i)
		}
		m.Set(i, -i)
	}
	if m.Len() != limit {
		t.Errorf("%d entries", m.Len())
	}
	for i := range 3 * limit {
		v, ok := m.Get(i)
		if kept := i >= 2*limit; ok != kept || kept && v != -i {
			t.Errorf("%d: %d, %t", i, v, ok)
		}
		if ok && m.Add(i, i) {
			t.Errorf("%d was added twice", i)
		}
	}
}
