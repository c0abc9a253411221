package change

import (
	"math"
	"slices"
)

// window ranks the last runs of a series once for all sizes of the after side: most looks see nothing, and
// cost no more than this.
type window struct {
	end    int
	rest   []float64 // centred midranks, by run
	square float64   // of the sums of a session, added up
	order  []ranked
	sums   map[string]float64
}

// of ranks the observations up to end, unless it has done so for the look before.
func (w *window) of(obs []Observation, end int) {
	if w.end == end && len(w.rest) == len(obs) {
		return
	}
	w.end, w.square = end, 0
	w.rest, w.order = slices.Grow(w.rest[:0], len(obs))[:len(obs)], w.order[:0]
	for i := range obs {
		w.order = append(w.order, ranked{obs[i].Value, i})
	}
	midranks(w.order, func(i int, rank float64) { w.rest[i] = rank })
	if w.sums == nil {
		w.sums = make(map[string]float64)
	}
	clear(w.sums)
	for i := range obs {
		w.sums[obs[i].Session] += w.rest[i]
	}
	for _, x := range w.sums {
		w.square += x * x
	}
}

// suspicious reports whether the last runs, so many, may differ from those before at that level.
func (w *window) suspicious(size int, alpha float64) bool {
	sum := 0.0
	for _, r := range w.rest[len(w.rest)-size:] {
		sum += r
	}
	p := float64(size) / float64(len(w.rest))
	v := p * (1 - p) * w.square
	return v > 0 && tail(math.Abs(sum)/math.Sqrt(v)) <= 100*alpha
}
