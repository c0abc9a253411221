package change

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// Component is a part of a version.
type Component int

// The components of a version: the set-up of an agent, as far as its traffic shows it.
const (
	Client Component = iota // version of the agent's program
	Model
	Effort // how much reasoning was asked for
	Prompt // hash of the system prompt
	Tools  // hash of the definitions of the tools
	components
)

func (c Component) String() string {
	return [components]string{"client", "model", "effort", "prompt", "tools"}[c]
}

// Version is the values of the components of a run; empty where they are not known.
type Version [components]string

// Key names a series.
type Key struct {
	Tenant string `json:"tenant"`
	Kind   string `json:"kind"` // agent, tool or model
	Agent  string `json:"agent"`
	Name   string `json:"name,omitempty"`  // the tool, or the model that answers
	Model  string `json:"model,omitempty"` // of the runs; empty for a series of all models
	Metric string `json:"metric"`
}

// Observation is the value of one run.
type Observation struct {
	Time    time.Time // when the run began
	Session string
	Version *Version
	Value   float64
	Run     int // of the caller's list
}

// Series is the values of a key in the order of time.
type Series struct {
	Key
	Share        bool // values are parts of 1
	Pooled       bool // of the runs of all models: it is tested for new models only, and the series of a model for the rest
	Observations []Observation
}

// Options are the range and the bounds of a search. The zero values of the bounds are the defaults.
type Options struct {
	// Changes found from Since up to Now are returned; the observations may begin earlier.
	Since, Now time.Time
	Budget     float64 // false alarms that are expected in 30 days, of all series; 1
	MinShift   float64 // the least relative shift; 0.1. Of a share the least difference is a fifth of it
	// Level is the level of each look, where it is not to follow from Budget and the looks that there are.
	Level *Looks
}

// Side are the runs before or after a change.
type Side struct {
	Runs     int       `json:"runs"`
	Sessions int       `json:"sessions"`
	Median   float64   `json:"p50"`
	P95      float64   `json:"p95"` // see Rank
	Mean     float64   `json:"mean"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`

	Sample []Observation `json:"-"`
}

// Change is a point from which on a series is different.
type Change struct {
	Key
	Test  string    `json:"test"`  // release or drift: which one found it
	At    time.Time `json:"at"`    // the first run of the after side
	Found time.Time `json:"found"` // the look that found it
	// Since are the version components that are new from At on, each as "client 2.1.224". The point that a drift look finds is
	// at a new version if one is in its 99.9 % confidence set.
	Since []string `json:"since"`
	A     Side     `json:"before"`
	B     Side     `json:"after"`
	// Ratio is the shift: a typical value after, divided by one before. Low and High are its 95 % interval, zero where
	// the values have zeros. Of a share it is zero: compare the means.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"ratio_low"`
	High  float64 `json:"ratio_high"`
	Share bool    `json:"share"`
	P     float64 `json:"p"` // of the normal approximation, of the look that found it
}

// The tests.
const (
	Release = "release"
	Drift   = "drift"
)

const (
	MinBefore = 25  // runs before a point
	MinAfter  = 12  // after it
	maxBefore = 400 // before it
	day       = 24 * time.Hour
	month     = 30 * day
	// confident is how much lower than the highest the square of a score may be for its point to be in the 99.9 % confidence
	// set of the change (Siegmund 1988): the x with (1 - exp(-x/2))² = 0.999.
	confident = 15.2
)

// sizes are the numbers of runs after a point at which it is tested, and weights their parts of the budget.
var (
	sizes   = [...]int{MinAfter, 25, 50, 100, 200}
	weights = [...]float64{0.1, 0.2, 0.4, 0.2, 0.1}
)

const (
	ofReleases = 0.75 // of the budget
	// The highest levels, of few looks.
	maxRelease = 0.001
	maxDrift   = 0.0001
)

// Find returns the changes of the series, those found last first.
func Find(list []Series, o Options) (out []Change, looks Looks) {
	o.Budget, o.MinShift = cmp.Or(o.Budget, 1), cmp.Or(o.MinShift, 0.1)
	looks.Series = len(list)
	all := make([][]look, len(list))
	var counts struct{ releases, drifts [len(sizes)]int }
	from := o.Now
	for i := range list {
		all[i] = list[i].looks(o.Now)
		for _, l := range all[i] {
			if !l.at.Before(o.Since) {
				looks.Recent++
			}
			if l.release != nil {
				counts.releases[l.size]++
			} else {
				counts.drifts[l.size]++
			}
		}
		if obs := list[i].Observations; len(obs) > 0 && obs[0].Time.Before(from) {
			from = obs[0].Time
		}
	}
	months := max(float64(o.Now.Sub(from))/float64(month), 1.0/30)
	for n := range sizes {
		bound := func(part, most float64, looks int) float64 {
			return min(most, o.Budget*part*weights[n]*months/float64(max(looks, 1)))
		}
		looks.Releases, looks.Drifts = looks.Releases+counts.releases[n], looks.Drifts+counts.drifts[n]
		looks.ReleaseLevels[n], looks.DriftLevels[n] = bound(ofReleases, maxRelease, counts.releases[n]), bound(1-ofReleases, maxDrift, counts.drifts[n])
	}
	if o.Level != nil {
		looks.ReleaseLevels, looks.DriftLevels = o.Level.ReleaseLevels, o.Level.DriftLevels
	}
	for i := range list {
		for _, c := range list[i].find(all[i], looks, o) {
			if !c.Found.Before(o.Since) {
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int {
		return cmp.Or(b.Found.Compare(a.Found), b.At.Compare(a.At), strings.Compare(a.Agent, b.Agent), strings.Compare(a.Name, b.Name), strings.Compare(a.Metric, b.Metric))
	})
	return out, looks
}

// Looks are the tests that were made, and the level of one by the number of its runs, in the order of sizes.
type Looks struct {
	Series        int                 `json:"series"`
	Releases      int                 `json:"release_looks"`
	Drifts        int                 `json:"drift_looks"`
	Recent        int                 `json:"recent_looks"` // those since Options.Since: without any, no change could be found
	ReleaseLevels [len(sizes)]float64 `json:"release_levels"`
	DriftLevels   [len(sizes)]float64 `json:"drift_levels"`
}

// release is a value of components that is new in a series.
type release struct {
	names []string
	runs  []int // with the value
}

// look is a place at which a series is tested.
type look struct {
	at      time.Time
	first   int      // of the after side
	end     int      // after the last run that is looked at
	size    int      // index in sizes: the runs of the after side
	release *release // nil for drift
}

// looks are the looks at a series in the order of time.
func (s *Series) looks(now time.Time) (out []look) {
	obs := s.Observations
	for _, r := range s.releases() {
		for size, n := range sizes {
			if n > len(r.runs) {
				break
			}
			last := r.runs[n-1]
			if last-r.runs[0]+1 > 2*n { // less than half of the runs have it: an alternative, and no successor
				continue
			}
			out = append(out, look{at: obs[last].Time, first: r.runs[0], end: last + 1, size: size, release: r})
		}
	}
	if s.Pooled {
		return out
	}
	for i := range obs {
		if i+1 < len(obs) && obs[i].Time.Truncate(day).Equal(obs[i+1].Time.Truncate(day)) {
			continue
		}
		at := obs[i].Time.Truncate(day).Add(day)
		if at.After(now) {
			break
		}
		for size, n := range sizes {
			if i+1-n >= MinBefore {
				out = append(out, look{at: at, first: i + 1 - n, end: i + 1, size: size})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b look) int { return a.at.Compare(b.at) })
	return out
}

// releases are the new values of components, each set of runs once.
func (s *Series) releases() (out []*release) {
	same := make(map[[2]int]*release) // by the first run and the one at which it is first looked at
	for c := range components {
		if s.Pooled != (c == Model) {
			continue
		}
		runs, first := make(map[string][]int), -1
		for i := range s.Observations {
			v := s.Observations[i].Version[c]
			if v == "" {
				continue
			}
			if first < 0 {
				first = i
			}
			runs[v] = append(runs[v], i)
		}
		for v, list := range runs {
			if len(list) < sizes[0] || list[0] < MinBefore || list[0] == first {
				continue
			}
			k, name := [2]int{list[0], list[sizes[0]-1]}, c.String()+" "+v
			if r := same[k]; r != nil {
				r.names = append(r.names, name)
				continue
			}
			same[k] = &release{names: []string{name}, runs: list}
			out = append(out, same[k])
		}
	}
	slices.SortFunc(out, func(a, b *release) int {
		return cmp.Or(cmp.Compare(a.runs[0], b.runs[0]), slices.Compare(a.runs, b.runs))
	})
	for _, r := range out {
		slices.Sort(r.names)
	}
	return out
}

// find tests a series at its looks, in their order.
func (s *Series) find(looks []look, level Looks, o Options) (out []Change) {
	start := 0
	var w window
	for _, l := range looks {
		if l.first-start < MinBefore {
			continue
		}
		alpha := level.DriftLevels[l.size]
		var before, after []Observation
		if l.release != nil {
			alpha = level.ReleaseLevels[l.size]
			for _, i := range l.release.runs[:sizes[l.size]] {
				after = append(after, s.Observations[i])
			}
		} else {
			if w.of(s.Observations[max(start, l.end-maxBefore-sizes[len(sizes)-1]):l.end], l.end); !w.suspicious(sizes[l.size], alpha) {
				continue
			}
			after = s.Observations[l.first:l.end]
		}
		before = s.Observations[max(start, l.first-maxBefore):l.first]
		x := newSample(before, after)
		if !x.rejects(alpha) {
			continue
		}
		c := Change{Key: s.Key, Test: Drift, Found: l.at, Share: s.Share, P: tail(math.Abs(x.z())), Since: []string{}}
		at := l.first
		if l.release != nil {
			c.Test, c.Since = Release, l.release.names
			c.A, c.B = side(before), side(s.with(l.release, maxBefore))
		} else {
			at, c.Since = s.locate(start, l.end)
			c.A, c.B = side(s.Observations[max(start, at-maxBefore):at]), side(s.Observations[at:l.end])
		}
		c.At = s.Observations[at].Time
		if !c.measure(o.MinShift) {
			continue
		}
		if n := len(out); n > 0 {
			s.extend(&out[n-1], start, at, o)
		}
		start = at
		out = append(out, c)
	}
	if n := len(out); n > 0 {
		s.extend(&out[n-1], start, len(s.Observations), o)
	}
	return out
}

// extend measures a drift again, with all runs up to the next change.
func (s *Series) extend(c *Change, start, end int, o Options) {
	if c.Test == Drift {
		c.B = side(s.Observations[start:min(end, start+maxBefore)])
		c.measure(o.MinShift)
	}
}

// with returns the observations of a release, at most n.
func (s *Series) with(r *release, n int) (out []Observation) {
	for _, i := range r.runs[:min(n, len(r.runs))] {
		out = append(out, s.Observations[i])
	}
	return out
}

// locate returns the first run of the after side with the highest score; or that of the releases in its confidence set the
// score of which is highest, with its names.
func (s *Series) locate(start, end int) (at int, since []string) {
	from := max(start, end-maxBefore-sizes[len(sizes)-1])
	obs := s.Observations[from:end]
	scores := make([]float64, len(obs))
	best := sizes[0]
	for i := sizes[0]; i <= len(obs)-sizes[0]; i++ {
		z := newSample(obs[:i], obs[i:]).z()
		if scores[i] = z * z; scores[i] > scores[best] {
			best = i
		}
	}
	at, since = from+best, []string{}
	highest := scores[best] - confident
	for _, r := range s.releases() {
		if i := r.runs[0] - from; i >= 0 && i < len(scores) && scores[i] > 0 && scores[i] >= highest {
			at, since, highest = r.runs[0], r.names, scores[i]
		}
	}
	return at, since
}

func side(obs []Observation) Side {
	s := Side{Runs: len(obs), Sample: obs, From: obs[0].Time, To: obs[len(obs)-1].Time}
	values, sessions := values(obs), make(map[string]bool)
	for i := range obs {
		sessions[obs[i].Session] = true
		s.Mean += obs[i].Value / float64(len(obs))
	}
	slices.Sort(values)
	s.Sessions, s.Median, s.P95 = len(sessions), quantile(values, 0.5), quantile(values, 0.95)
	return s
}

func values(obs []Observation) []float64 {
	out := make([]float64, len(obs))
	for i := range obs {
		out[i] = obs[i].Value
	}
	return out
}

// measure sets the shift, and reports whether it is large enough.
func (c *Change) measure(least float64) bool {
	if c.Share {
		return math.Abs(c.B.Mean-c.A.Mean) >= least/5
	}
	a, b := values(c.A.Sample), values(c.B.Sample)
	if slices.Min(a) <= 0 || slices.Min(b) <= 0 {
		if c.A.Mean <= 0 {
			return c.B.Mean > 0
		}
		c.Ratio = c.B.Mean / c.A.Mean
	} else {
		for _, list := range [...][]float64{a, b} {
			for i := range list {
				list[i] = math.Log(list[i])
			}
		}
		shift, low, high := hodgesLehmann(a, b)
		c.Ratio, c.Low, c.High = math.Exp(shift), math.Exp(low), math.Exp(high)
	}
	return math.Abs(c.Ratio-1) >= least
}
