package inspect

import "slices"

// maxDrift is how far apart the positions of two steps in their lists may be to be one pair,
// beside the difference of the lists' lengths: it bounds time and memory for long lists.
const maxDrift = 1000

// align pairs elements of two lists in their order: the pairs with the highest sum of scores. A score
// of zero is no pair. The positions of the pairs and of elements without one are returned in order,
// -1 for none; of the elements between two pairs, those of a are first.
func align[T any](a, b []T, score func(x, y T) int) (out [][2]int) {
	width := len(b) - len(a)
	lo := func(i int) int { return max(0, i+min(width, 0)-maxDrift) }
	hi := func(i int) int { return min(len(b), i+max(width, 0)+maxDrift) }
	best := make([][]int32, len(a)+1) // best[i][j-lo(i)]: of a[i:] and b[j:]
	at := func(i, j int) int32 {
		if j < lo(i) || j > hi(i) {
			return -1 << 30
		}
		return best[i][j-lo(i)]
	}
	for i := len(a); i >= 0; i-- {
		best[i] = make([]int32, hi(i)-lo(i)+1)
		for j := hi(i); j >= lo(i); j-- {
			var v int32
			if i < len(a) {
				v = max(v, at(i+1, j))
			}
			if j < len(b) {
				v = max(v, at(i, j+1))
			}
			if i < len(a) && j < len(b) {
				if s := score(a[i], b[j]); s > 0 {
					v = max(v, at(i+1, j+1)+int32(s))
				}
			}
			best[i][j-lo(i)] = v
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch v := at(i, j); {
		case i < len(a) && j < len(b) && score(a[i], b[j]) > 0 && v == at(i+1, j+1)+int32(score(a[i], b[j])):
			out = append(out, [2]int{i, j})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || v == at(i+1, j)):
			out = append(out, [2]int{i, -1})
			i++
		default:
			out = append(out, [2]int{-1, j})
			j++
		}
	}
	return slices.Clip(out)
}
