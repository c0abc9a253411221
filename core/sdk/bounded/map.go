package bounded

// Map is a map of at most limit entries. The oldest entry is evicted first; an entry that
// is set again keeps its place. One goroutine uses it.
type Map[K comparable, V any] struct {
	limit  int
	values map[K]V
	order  []K // the keys, as a ring once it is full
	oldest int // in order
}

// NewMap returns an empty map.
func NewMap[K comparable, V any](limit int) *Map[K, V] {
	return &Map[K, V]{limit: limit, values: make(map[K]V)}
}

// Get returns the value of a key.
func (m *Map[K, V]) Get(k K) (V, bool) {
	v, ok := m.values[k]
	return v, ok
}

// Set sets the value of a key.
func (m *Map[K, V]) Set(k K, v V) {
	if !m.Add(k, v) {
		m.values[k] = v
	}
}

// Add sets the value of a key that has none, and reports whether it did.
func (m *Map[K, V]) Add(k K, v V) bool {
	if _, known := m.values[k]; known {
		return false
	}
	if len(m.order) < m.limit {
		m.order = append(m.order, k)
	} else {
		delete(m.values, m.order[m.oldest])
		m.order[m.oldest] = k
		m.oldest = (m.oldest + 1) % m.limit
	}
	m.values[k] = v
	return true
}

// Len is the number of entries.
func (m *Map[K, V]) Len() int { return len(m.values) }
