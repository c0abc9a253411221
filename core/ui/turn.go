package ui

import (
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
)

// turnPage is a turn as the page shows it.
type turnPage struct {
	*inspect.Turn
	Number   int
	Duration time.Duration
	Steps    []step // all of them, in the order of the waterfall
}

// step is a line of the waterfall. X and Width are in thousandths of the turn.
type step struct {
	*inspect.Step
	Depth    int
	X, Width float64
	Critical time.Duration // of the critical path, what this step accounts for alone
}

func newTurn(number int, t *inspect.Turn) turnPage {
	out := turnPage{Turn: t, Number: number}
	critical := make(map[*inspect.Step]time.Duration)
	if t.Root != nil {
		out.Duration = t.Root.Duration
		criticalPath(t.Root, t.Root.Started, t.Root.Started.Add(t.Root.Duration), critical)
	}
	scale := 1000 / max(out.Duration.Seconds(), 1e-9)
	var add func(list []*inspect.Step, depth int)
	add = func(list []*inspect.Step, depth int) {
		for _, s := range list {
			x := min(max(s.Started.Sub(t.Started).Seconds()*scale, 0), 999)
			width := min(max(s.Duration.Seconds()*scale, 1), 1000-x)
			out.Steps = append(out.Steps, step{s, depth, x, width, critical[s]})
			add(s.Steps, depth+1)
		}
	}
	add(t.Steps, 0)
	return out
}

// criticalPath goes back from the end of a step: the one below it that ended
// last is what it waited for, then the one that ended last before that one began;
// what is left is the step's own. The parts add up to the whole.
func criticalPath(s *inspect.Step, since, until time.Time, on map[*inspect.Step]time.Duration) {
	below := slices.Clone(s.Steps)
	end := func(c *inspect.Step) time.Time { return c.Started.Add(c.Duration) }
	slices.SortStableFunc(below, func(a, b *inspect.Step) int { return end(b).Compare(end(a)) })
	at := until
	for _, c := range below {
		from, to := c.Started, end(c)
		if from.Before(since) {
			from = since
		}
		if to.After(at) {
			to = at
		}
		if !from.Before(to) {
			continue
		}
		on[s] += at.Sub(to)
		criticalPath(c, from, to, on)
		at = from
	}
	on[s] += at.Sub(since)
}
