package change

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// sample is two groups of values, whose sums of ranks are kept by cluster: a session in one of the groups.
type sample struct {
	sums   []float64 // of the centred midranks, by cluster; clusters of the second group last
	sizes  []int     // values of a cluster
	after  int       // clusters of the second group
	n      int       // values
	square float64   // of the sums, added up
}

// ranked is a value of a run or a cluster.
type ranked struct {
	value float64
	of    int
}

// midranks sorts the values and calls each with the rank of every one, less the middle: equal values have the
// mean of their ranks.
func midranks(list []ranked, each func(of int, rank float64)) {
	slices.SortFunc(list, func(a, b ranked) int { return cmp.Compare(a.value, b.value) })
	middle := float64(len(list)+1) / 2
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && list[j].value == list[i].value {
			j++
		}
		rank := float64(i+1+j)/2 - middle
		for ; i < j; i++ {
			each(list[i].of, rank)
		}
	}
}

// newSample ranks the values of two groups together.
func newSample(before, after []Observation) *sample {
	s := &sample{n: len(before) + len(after)}
	all := make([]ranked, 0, s.n)
	for _, group := range [...][]Observation{before, after} {
		clusters := make(map[string]int)
		for i := range group {
			c, known := clusters[group[i].Session]
			if !known {
				c = len(s.sizes)
				clusters[group[i].Session] = c
				s.sizes = append(s.sizes, 0)
			}
			s.sizes[c]++
			all = append(all, ranked{group[i].Value, c})
		}
		s.after = len(clusters)
	}
	s.sums = make([]float64, len(s.sizes))
	midranks(all, func(c int, rank float64) { s.sums[c] += rank })
	for _, x := range s.sums {
		s.square += x * x
	}
	return s
}

// score is the standardized sum of ranks of the second group, which is that large.
func (s *sample) score(sum float64, size int) float64 {
	p := float64(size) / float64(s.n)
	if v := p * (1 - p) * s.square; v > 0 {
		return sum / math.Sqrt(v)
	}
	return 0
}

// z is the score of the groups as they are.
func (s *sample) z() float64 {
	sum, size := 0.0, 0
	for c := len(s.sums) - s.after; c < len(s.sums); c++ {
		sum, size = sum+s.sums[c], size+s.sizes[c]
	}
	return s.score(sum, size)
}

// rejects reports whether the two-sided p-value is at most alpha. The normal approximation is asked first, then
// permutations of the clusters, 2/alpha of them.
func (s *sample) rejects(alpha float64) bool {
	z := math.Abs(s.z())
	if tail(z) > 10*alpha {
		return false
	}
	order := make([]int, len(s.sums))
	for i := range order {
		order[i] = i
	}
	pick := min(s.after, len(order)-s.after) // the smaller group is drawn: the score of the other one is the negative
	draws := int(math.Ceil(extreme/alpha)) - 1
	r := rand.New(rand.NewPCG(uint64(s.n), uint64(len(order)))) // the same data have the same answer
	for hits := 0; draws > 0; draws-- {
		sum, size := 0.0, 0
		for i := range pick {
			j := i + r.IntN(len(order)-i)
			order[i], order[j] = order[j], order[i]
			sum, size = sum+s.sums[order[i]], size+s.sizes[order[i]]
		}
		if math.Abs(s.score(sum, size)) >= z-1e-9 {
			if hits++; hits == extreme {
				return false
			}
		}
	}
	return true
}

// extreme is how many permutations as extreme as the data end the test.
const extreme = 2

// tail is the two-sided probability of a normal score.
func tail(z float64) float64 { return math.Erfc(z / math.Sqrt2) }

// hodgesLehmann returns the median of the differences between a value of after and one of before, and its 95 %
// interval. Both are not empty.
func hodgesLehmann(before, after []float64) (shift, low, high float64) {
	d := make([]float64, 0, len(before)*len(after))
	for _, a := range after {
		for _, b := range before {
			d = append(d, a-b)
		}
	}
	slices.Sort(d)
	m, n := float64(len(before)), float64(len(after))
	reach := 1.96 * math.Sqrt(m*n*(m+n+1)/12)
	at := func(i float64) float64 { return d[max(0, min(len(d)-1, int(i)))] }
	return (at((m*n-1)/2) + at(m*n/2)) / 2, at(m*n/2 - reach), at(m*n/2 + reach)
}

// Rank is the index of a quantile among n sorted values. It is one of them, as quantileExact of ClickHouse has it, by which
// boards, pages and queries of people name percentiles.
func Rank(q float64, n int) int { return min(int(q*float64(n)), n-1) }

// quantile is that of sorted values that are not empty.
func quantile(sorted []float64, q float64) float64 { return sorted[Rank(q, len(sorted))] }
