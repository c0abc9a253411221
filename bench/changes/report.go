package changes

import (
	"fmt"
	"math"
	"strings"
)

// Options are the size of a measurement.
type Options struct {
	Pairs, Days, Trials int
	Seed                uint64
}

// rough is traffic that makes false alarms likely: wide values, and sessions that are alike.
var rough = Traffic{Spread: 0.6, Likeness: 0.4, PerDay: 15, Session: 5, Tail: 0.05, Release: 14}

// Report measures, and writes a page.
func Report(o Options) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`# Changes: power and false alarms

Written by `+"`go run ./bench/cmd/changes -write bench/changes.md`"+`, from simulated traffic with seed %d; docs/changes.md has the method.

The traffic: log-normal values; the spread is the standard deviation of the logarithm of a run's value. %.0f %% of the variance is common to the runs of
a session (%.0f on average), %.0f %% of the runs take four times as long, %.0f runs on a working day and a third on a day of the weekend, a new client
every %d days on average. Each pair has four series: duration, tokens, calls and errors (3 %% of the runs).
`, o.Seed, 100*Usual.Likeness, Usual.Session, 100*Usual.Tail, Usual.PerDay, Usual.Release)
	line("## False alarms\n\nNothing changes, and every 30 days the changes of these days are asked for, which finds what asking each hour does. The goal is less than one in 30 days over 50 pairs.\n")
	line("| traffic | pairs | days | runs | looks in 30 days | false alarms | in 30 days |\n|---|---|---|---|---|---|---|")
	var level = Usual.QuietDays(o.Seed, o.Pairs, 1, 1).Looks
	for _, q := range []struct {
		name string
		Traffic
	}{{"as above, spread 0.25", Usual}, {"spread 0.6, 40 % common to sessions of 5 runs, 5 % four times as long", rough}} {
		r := q.QuietDays(o.Seed, o.Pairs, o.Days, 30)
		line("| %s | %d | %d | %d | %d | %d | %.2f |", q.name, r.Pairs, r.Days, r.Runs, r.Looks.Releases+r.Looks.Drifts, r.Alarms, float64(r.Alarms)*30/float64(r.Days))
	}
	line("\n## Power\n\nHow many of %d shifts of the median are found within so many runs, at the level of a search over %d pairs. The last column is the share that no test with one\nlook at 50 runs can exceed, even of independent runs whose distribution it knows (Neyman and Pearson).\n", o.Trials, o.Pairs)
	line("| shift | spread (p95/p50) | with | 12 | 25 | 50 | 100 | 200 | bound at 50 |\n|---|---|---|---|---|---|---|---|---|")
	for _, c := range []struct {
		shift, spread float64
		release       bool
	}{
		{0.2, 0.15, true}, {0.2, 0.2, true}, {0.2, 0.25, true}, {0.2, 0.3, true}, {0.2, 0.4, true}, {0.2, 0.15, false}, {0.2, 0.2, false}, {0.2, 0.25, false}, {0.2, 0.3, false},
		{0.5, 0.4, true}, {0.5, 0.6, true}, {0.5, 0.4, false}, {1, 0.8, true}, {1, 0.8, false},
	} {
		t := Usual
		t.Spread = c.spread
		p := t.Shifted(o.Seed, c.shift, c.release, o.Trials, level)
		with, bound := "a new client", fmt.Sprintf("%.0f %%", 100*p.Best)
		if !c.release {
			with, bound = "nothing", ""
		}
		line("| +%.0f %% | %.2f (%.2f) | %s | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %s |", 100*c.shift, c.spread, math.Exp(1.645*c.spread), with,
			p.Percent(12), p.Percent(25), p.Percent(50), p.Percent(100), p.Percent(200), bound)
	}
	line("\nA change without a version is looked for at the end of a UTC day, so its run counts include those until then.")
	return b.String()
}
