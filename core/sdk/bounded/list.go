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

// Use makes the element that fits the last one of the list, which is so in the order of use. If none fits, it
// adds the result of add; beyond the limit the one that was used longest ago is evicted.
func Use[T any](list []T, limit int, fits func(T) bool, add func() T) []T {
	i := slices.IndexFunc(list, fits)
	if i < 0 {
		return Push(list, add(), limit)
	}
	v := list[i]
	return append(slices.Delete(list, i, i+1), v)
}
