package changes

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/change"
)

// Traffic is how the runs of a pair are distributed.
type Traffic struct {
	Spread   float64 // standard deviation of the logarithm of a value
	Likeness float64 // share of its variance that runs of one session have in common
	PerDay   float64 // runs of a working day; a day of the weekend has a third
	Session  float64 // runs of a session, on average
	Tail     float64 // share of the runs that take four times as long
	Release  int     // days from one version of the client to the next, on average; 0: never
}

// Usual is the traffic of the report.
var Usual = Traffic{Spread: 0.25, Likeness: 0.15, PerDay: 15, Session: 3, Tail: 0.02, Release: 14}

var began = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC) // a Monday

const day = 24 * time.Hour

// metric draws the value of a run from its normal score.
type metric struct {
	name  string
	share bool
	draw  func(score float64) float64
}

// metrics are the four of a pair.
func (t Traffic) metrics() []metric {
	return []metric{
		{"duration", false, func(x float64) float64 { return 8000 * math.Exp(t.Spread*x) }},
		{"tokens", false, func(x float64) float64 { return math.Round(20000 * math.Exp(2*t.Spread*x)) }},
		{"calls", false, func(x float64) float64 { return math.Round(6 * math.Exp(t.Spread*x)) }},
		{"errors", true, func(x float64) float64 {
			if x > 1.88 { // 3 % of the runs
				return 1
			}
			return 0
		}},
	}
}

// pair returns the four series of a pair over so many days.
func (t Traffic) pair(r *rand.Rand, name string, days int) []change.Series {
	list := t.metrics()
	out := make([]change.Series, len(list))
	for m := range list {
		out[m] = change.Series{Key: change.Key{Kind: "tool", Agent: "pilot", Name: name, Model: "tern-2", Metric: list[m].name}, Share: list[m].share}
	}
	release, version := 0, &change.Version{change.Client: "1.0.0"}
	if t.Release > 0 {
		release = 1 + r.IntN(2*t.Release)
	}
	sessions := 0
	for d := range days {
		if t.Release > 0 && d == release {
			sessions++
			version = &change.Version{change.Client: fmt.Sprintf("1.%d.0", sessions)}
			release = d + 1 + r.IntN(2*t.Release)
		}
		perDay := t.PerDay
		if d%7 >= 5 {
			perDay /= 3
		}
		for n := poisson(r, perDay); n > 0; {
			sessions++
			session, at := fmt.Sprintf("%s-%d", name, sessions), began.Add(time.Duration(d)*day+time.Duration(r.Int64N(int64(20*time.Hour))))
			size := min(n, 1+poisson(r, t.Session-1))
			n -= size
			shared := make([]float64, len(list))
			for m := range shared {
				shared[m] = math.Sqrt(t.Likeness) * r.NormFloat64()
			}
			for i := range size {
				slow := 0.0
				if r.Float64() < t.Tail {
					slow = math.Log(4) / t.Spread
				}
				for m := range list {
					score := shared[m] + math.Sqrt(1-t.Likeness)*r.NormFloat64()
					if m == 0 {
						score += slow
					}
					out[m].Observations = append(out[m].Observations, change.Observation{Time: at.Add(time.Duration(i) * 10 * time.Minute), Session: session, Version: version, Value: list[m].draw(score)})
				}
			}
		}
	}
	for m := range out {
		slices.SortStableFunc(out[m].Observations, func(a, b change.Observation) int { return a.Time.Compare(b.Time) })
	}
	return out
}

// poisson draws a count (Knuth's method).
func poisson(r *rand.Rand, mean float64) int {
	limit, p := math.Exp(-mean), r.Float64()
	n := 0
	for ; p > limit; n++ {
		p *= r.Float64()
	}
	return n
}

// Quiet counts the reports of changes in traffic without any.
type Quiet struct {
	Days, Pairs, Runs, Alarms int
	Looks                     change.Looks // of the last search
	Found                     []change.Change
}

// lookBack is how much the program reads before the range that is asked for.
const lookBack = 30 * day

// QuietDays searches for changes in traffic in which nothing changes, every so many days for those of these days. How often
// makes no difference (core/change TestAskingOftenFindsTheSame) but of time. The first 31 days are history.
func (t Traffic) QuietDays(seed uint64, pairs, days, every int) (q Quiet) {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []change.Series
	for p := range pairs {
		all = append(all, t.pair(r, fmt.Sprintf("tool-%02d", p), days+31)...)
	}
	q.Days, q.Pairs = days, pairs
	for i := range all {
		q.Runs += len(all[i].Observations) / len(t.metrics())
	}
	part := make([]change.Series, len(all))
	for d := every; d <= days; d += every {
		now := began.Add(time.Duration(d+31) * day)
		for i := range all {
			obs := all[i].Observations
			at := func(t time.Time) int {
				n, _ := slices.BinarySearchFunc(obs, t, func(o change.Observation, t time.Time) int { return o.Time.Compare(t) })
				return n
			}
			part[i] = all[i]
			part[i].Observations = obs[at(now.Add(-time.Duration(every)*day-lookBack)):at(now)]
		}
		found, looks := change.Find(part, change.Options{Since: now.Add(-time.Duration(every)*day + 1), Now: now})
		q.Alarms, q.Looks, q.Found = q.Alarms+len(found), looks, append(q.Found, found...)
	}
	return q
}

// Power is how often a shift of the median was found.
type Power struct {
	Spread, Shift float64
	Release       bool // the shift came with a version, else without
	Trials        int
	Within        map[int]int // trials in which it was found within so many runs, by the number
	Best          float64     // within 50, of a test that knows the distribution
}

// Shifted seeds a shift in so many trials. The level is that of a search over as many series as looks has.
func (t Traffic) Shifted(seed uint64, shift float64, release bool, trials int, looks change.Looks) Power {
	r := rand.New(rand.NewPCG(seed, 2))
	p := Power{Spread: t.Spread, Shift: shift, Release: release, Trials: trials, Within: make(map[int]int)}
	quiet := t
	quiet.Release = 0
	for range trials {
		s := quiet.pair(r, "shifted", 62)[0]
		at := slices.IndexFunc(s.Observations, func(o change.Observation) bool { return o.Time.After(began.Add(30 * day)) })
		version := &change.Version{change.Client: "2.0.0"}
		for i := at; i < len(s.Observations); i++ {
			s.Observations[i].Value *= 1 + shift
			if release {
				s.Observations[i].Version = version
			}
		}
		now := began.Add(62 * day)
		found, _ := change.Find([]change.Series{s}, change.Options{Now: now, Level: &looks})
		first := -1
		for _, c := range found { // the earliest last
			n := at
			for n < len(s.Observations) && !s.Observations[n].Time.After(c.Found) {
				n++
			}
			if c.Found.After(s.Observations[at].Time) && (first < 0 || n-at < first) {
				first = n - at
			}
		}
		for _, n := range []int{12, 25, 50, 75, 100, 200} {
			if first >= 0 && first <= n {
				p.Within[n]++
			}
		}
	}
	// Neyman and Pearson: no test of one look at 50 runs against 400 does better, of independent runs.
	p.Best = 1 - normal(quantileOf(looks.ReleaseLevels[2])-math.Log(1+shift)/t.Spread/math.Sqrt(1.0/50+1.0/400))
	return p
}

// normal is the distribution function of a normal score, and quantileOf the score of a two-sided level.
func normal(z float64) float64         { return math.Erfc(-z/math.Sqrt2) / 2 }
func quantileOf(alpha float64) float64 { return math.Sqrt2 * math.Erfinv(1-alpha) }

// Percent is how many trials found it within so many runs.
func (p Power) Percent(n int) float64 {
	return 100 * float64(p.Within[n]) / float64(cmp.Or(p.Trials, 1))
}
