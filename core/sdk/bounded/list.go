package bounded

import "slices"

// Push appends to a list of at most limit members. The oldest, which is the first, is evicted.
func Push[T any](list []T, v T, limit int) []T {
	if len(list) >= limit {
		list = slices.Delete(list, 0, len(list)-limit+1)
	}
	return append(list, v)
}
