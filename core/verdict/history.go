package verdict

import (
	"cmp"
	"container/list"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"
)

// History has the durations of work that ended well, by key: the last ones of each, for the
// keys that were used last.
//
// Its bound for the next duration is the distribution-free upper tolerance limit of Wilks
// (Annals of Mathematical Statistics 12, 1941; Hahn and Meeker, Statistical Intervals, 5.3): the
// smallest order statistic of n samples that is above the 0.95 quantile with 95 % confidence.
// That assumes no shape of the distribution. Below 59 samples no order statistic reaches that
// confidence, and the largest one is taken; below MinSamples there is no bound.
type History struct {
	keys  map[string]*samples
	used  list.List // the *samples of keys, the one that was used last in front
	clock uint64    // counts uses
	dirty bool

	texts map[string]string // keys and commands, that calls share
	buf   []byte
}

// The size of a history.
const (
	MinSamples = 8
	maxSamples = 128
	maxKeys    = 1024
	factor     = 1.5 // above the bound, because the next machine is busier
)

type samples struct {
	Took []float32 `json:"took"` // seconds, oldest first
	N    int       `json:"n"`    // that there were
	Used uint64    `json:"used"`

	key     string
	element *list.Element // in History.used
	bound   *Bound        // nil: to be computed
}

// NewHistory returns an empty history.
func NewHistory() *History { return &History{keys: make(map[string]*samples)} }

// Add adds a duration.
func (h *History) Add(key string, took int64) {
	if took < 0 || key == "" {
		return
	}
	s := h.keys[key]
	if s == nil {
		if len(h.keys) >= maxKeys {
			delete(h.keys, h.used.Remove(h.used.Back()).(*samples).key)
		}
		s = &samples{key: key}
		s.element = h.used.PushFront(s)
		h.keys[key] = s
	}
	if len(s.Took) >= maxSamples {
		s.Took = slices.Delete(s.Took, 0, 1)
	}
	s.Took = append(s.Took, float32(time.Duration(took).Seconds()))
	s.N++
	s.bound = nil
	h.used.MoveToFront(s.element)
	h.clock++
	s.Used = h.clock
	h.dirty = true
}

// AddAnswer adds how long a model took to answer.
func (h *History) AddAnswer(l Learned) {
	h.buf = append(append(h.buf[:0], "model "...), l.Model...)
	h.Add(h.intern(h.buf), l.Took)
}

// Bound is the bound of a key's history for the next duration.
type Bound struct {
	N       int   // samples; fewer than MinSamples make no bound
	Limit   int64 // ns; a duration above it is late
	Longest int64 // ns
}

// Bound returns the bound of a key.
func (h *History) Bound(key string) Bound {
	s := h.keys[key]
	if s == nil {
		return Bound{}
	}
	if s.bound == nil {
		b := s.compute()
		s.bound = &b
	}
	return *s.bound
}

func (s *samples) compute() Bound {
	b := Bound{N: len(s.Took)}
	if b.N < MinSamples {
		return b
	}
	sorted := slices.Sorted(slices.Values(s.Took))
	at := toleranceRank(b.N)
	b.Limit = int64(factor * float64(sorted[at]) * 1e9)
	b.Longest = int64(float64(sorted[b.N-1]) * 1e9)
	return b
}

// toleranceRank is the index, from 0, of the smallest order statistic of n that is above the
// 0.95 quantile with 95 % confidence; of the largest when none is. The number of samples below
// the quantile is binomial.
func toleranceRank(n int) int {
	const quantile, confidence = 0.95, 0.95
	sum := 0.0
	for below := range n {
		lg := func(x int) float64 { v, _ := math.Lgamma(float64(x + 1)); return v }
		sum += math.Exp(lg(n) - lg(below) - lg(n-below) + float64(below)*math.Log(quantile) + float64(n-below)*math.Log(1-quantile))
		if sum >= confidence { // P(below samples or fewer are below the quantile)
			return min(below, n-1)
		}
	}
	return n - 1
}

// Changed reports whether something was added since it was marshalled.
func (h *History) Changed() bool { return h.dirty }

// Marshal returns the history as bytes.
func (h *History) Marshal() ([]byte, error) {
	b, err := json.Marshal(h.keys)
	if err == nil {
		h.dirty = false
	}
	return b, err
}

// Unmarshal reads the bytes of Marshal.
func (h *History) Unmarshal(b []byte) error {
	keys := make(map[string]*samples)
	if err := json.Unmarshal(b, &keys); err != nil {
		return err
	}
	h.keys = keys
	h.used.Init()
	for _, key := range slices.SortedFunc(maps.Keys(keys), func(a, b string) int { return cmp.Compare(keys[a].Used, keys[b].Used) }) {
		s := keys[key]
		s.key, s.element = key, h.used.PushFront(s)
		h.clock = s.Used
	}
	return nil
}
