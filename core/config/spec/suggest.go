package spec

import "strings"

// Suggest returns the one of known that word was probably meant to be, or "": it
// is at most two slips away (a letter missing, added, wrong, or two swapped), or
// one of them is the beginning of the other.
func Suggest(word string, known []string) string {
	const maxSlips = 2
	w := fold(word)
	if len(w) > 64 {
		return ""
	}
	best, bestSlips := "", min(maxSlips, len(w)/2)+1
	for _, k := range known {
		if d := slips(w, fold(k)); d < bestSlips {
			best, bestSlips = k, d
		}
	}
	if best != "" || len(w) < 2 {
		return best
	}
	for _, k := range known {
		if f := fold(k); k != "" && (strings.HasPrefix(f, w) || strings.HasPrefix(w, f)) {
			return k
		}
	}
	return ""
}

// DidYouMean is Suggest as a hint.
func DidYouMean(word string, known []string) string {
	if s := Suggest(word, known); s != "" {
		return `did you mean "` + s + `"?`
	}
	return ""
}

func fold(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "-", "_")
}

// slips is the edit distance of a and b, where two swapped neighbours are one
// edit (optimal string alignment).
func slips(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
