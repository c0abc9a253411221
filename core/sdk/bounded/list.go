package bounded

import "slices"

// Find returns the newest element that fits, or nil.
func Find[T any](list []*T, fits func(*T) bool) *T {
	for _, v := range slices.Backward(list) {
		if fits(v) {
			return v
		}
	}
	return nil
}

// Only returns the element that fits, unless several do.
func Only[T any](list []T, fits func(T) bool) (v T, ok bool) {
	i := slices.IndexFunc(list, fits)
	if i < 0 || slices.ContainsFunc(list[i+1:], fits) {
		return v, false
	}
	return list[i], true
}

// Take removes the first element that fits, and returns it.
func Take[T any](list *[]T, fits func(T) bool) (v T, ok bool) {
	i := slices.IndexFunc(*list, fits)
	if i < 0 {
		return v, false
	}
	v = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return v, true
}

// Push appends to a list of at most limit members. The oldest, which is the first, is evicted.
func Push[T any](list []T, v T, limit int) []T {
	if len(list) >= limit {
		list = slices.Delete(list, 0, len(list)-limit+1)
	}
	return append(list, v)
}

// Use returns the element that fits, as the last one of the list, which is so in the order of use. If none fits, that is the
// result of add; beyond the limit the one that was used longest ago is evicted, which evict sees before, unless it is nil.
func Use[T any](list *[]T, limit int, fits func(T) bool, add func() T, evict func(T)) T {
	if n := len(*list); n > 0 && fits((*list)[n-1]) {
		return (*list)[n-1]
	}
	v, ok := Take(list, fits)
	if !ok {
		if evict != nil && len(*list) >= limit {
			evict((*list)[0])
		}
		v = add()
	}
	*list = Push(*list, v, limit)
	return v
}

// All returns the elements that fit.
func All[T any](list []T, fits func(T) bool) (all []T) {
	for _, v := range list {
		if fits(v) {
			all = append(all, v)
		}
	}
	return all
}
