package meter

// recent knows what was noted last: between one and two generations of ids.
type recent[V any] struct{ young, old map[uint64]V }

const generation = 1 << 15

func (r *recent[V]) get(id uint64) (V, bool) {
	v, ok := r.young[id]
	if !ok {
		v, ok = r.old[id]
	}
	return v, ok
}

func (r *recent[V]) set(id uint64, v V) {
	if r.young == nil || len(r.young) >= generation {
		r.young, r.old = make(map[uint64]V), r.young
	}
	r.young[id] = v
}

// add notes an id, and reports whether it is a new one.
func (r *recent[V]) add(id uint64, v V) bool {
	if _, known := r.get(id); known {
		return false
	}
	r.set(id, v)
	return true
}
