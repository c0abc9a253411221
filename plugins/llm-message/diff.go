package llmmessage

// maxTable bounds the work of comparing two memories message by message.
const maxTable = 1 << 20

// newItems returns the indices of the messages in now that were not in was. A memory mostly
// loses messages at its front and in its middle and gains them at its end; a message that
// changed in between is new.
//
// The comparison keeps the longest common subsequence. With cutFront the memory was longer than
// the state keeps: its front is not new.
func newItems(was, now []uint64, cutFront bool) []int {
	prefix := 0
	for prefix < len(was) && prefix < len(now) && was[prefix] == now[prefix] {
		prefix++
	}
	a, b := was[prefix:], now[prefix:]
	kept := make([]bool, len(b))
	moved := make(map[uint64]int) // messages of a that are not kept
	if len(a) > 0 && len(a)*len(b) <= maxTable {
		common(a, b, kept, moved)
	} else {
		greedy(a, b, kept, moved)
	}
	last := -1
	for i, k := range kept {
		if k {
			last = i
		}
	}
	var out []int
	for i, k := range kept {
		switch {
		case k:
		case i < last && moved[b[i]] > 0: // it changed places
			moved[b[i]]--
		case cutFront && prefix == 0 && last >= 0 && i < firstKept(kept):
		default:
			out = append(out, prefix+i)
		}
	}
	return out
}

func firstKept(kept []bool) int {
	for i, k := range kept {
		if k {
			return i
		}
	}
	return len(kept)
}

// common marks the messages of b in a longest common subsequence with a.
func common(a, b []uint64, kept []bool, moved map[uint64]int) {
	width := len(b) + 1
	table := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i*width+j] = table[(i+1)*width+j+1] + 1
			} else {
				table[i*width+j] = max(table[(i+1)*width+j], table[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			kept[j] = true
			i, j = i+1, j+1
		case table[(i+1)*width+j] >= table[i*width+j+1]:
			moved[a[i]]++
			i++
		default:
			j++
		}
	}
	for ; i < len(a); i++ {
		moved[a[i]]++
	}
}

// greedy marks the messages of b that a has as often. It is for memories that are too long for
// a table of all pairs.
func greedy(a, b []uint64, kept []bool, moved map[uint64]int) {
	left := make(map[uint64]int, len(a))
	for _, h := range a {
		left[h]++
	}
	for j, h := range b {
		if left[h] > 0 {
			left[h]--
			kept[j] = true
		}
	}
}
