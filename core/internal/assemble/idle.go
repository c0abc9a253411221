package assemble

import "time"

// A session that is silent is not held in memory: its state is in the store, and is
// read when its next message comes. Reading it takes a millisecond or two, so that one
// in which something is open, and which may go on at any moment, is held for longer.
const (
	holdOver = 5 * time.Second
	holdOpen = time.Minute
)

// settled is how long nothing of a session must have been read before it is looked at
// whether it is silent: of history that is being read the rest may follow.
const settled = 5 * time.Second

// mostWoken is how many sessions one look at what is silent reads: all that were open
// at a restart come due in the same moment.
const mostWoken = 100

// nap is what is held of a session in which something is open: when it was read
// last, and when it has to be looked at because of that.
type nap struct{ touched, until time.Time }

// Resume notes that in a group of the store something is open, so that it is ended
// when it is silent.
func (a *Assembler) Resume(key string, now time.Time) error {
	k, err := parseKey(key)
	if err != nil {
		return err
	}
	a.asleep[k] = nap{now, now.Add(a.settles())}
	return nil
}

// settles is settled, unless runs are to end sooner.
func (a *Assembler) settles() time.Duration {
	return min(settled, a.settings.IdleRun, a.settings.IdleCall)
}

// Idle ends the runs and calls that have been silent for as long as the settings say,
// and lets go of the memory of groups that are silent. What the last so many calls of
// Seal gave is not in the store yet.
func (a *Assembler) Idle(now time.Time, uncommitted int) error {
	woken := 0
	for key, n := range a.asleep {
		if now.Before(n.until) {
			continue
		}
		if woken++; woken > mostWoken {
			break
		}
		if _, err := a.group(key.tenant, key.format, key.session); err != nil {
			return err
		}
	}
	for key, g := range a.groups {
		unread := now.Sub(g.touched)
		if unread < a.settles() {
			continue
		}
		next := g.idle(now.UnixNano(), &a.settings)
		a.ended = a.ended || g.dirty
		if g.dirty || unread < holdOver || g.sealed > a.seals-uncommitted {
			continue
		}
		if next != 0 {
			if unread < holdOpen {
				continue
			}
			a.asleep[g.key] = nap{g.touched, time.Unix(0, next)}
		}
		delete(a.groups, key)
		if a.last == g {
			a.last = nil
		}
	}
	return nil
}

// Ended reports whether silence has ended something that Seal has not given yet.
func (a *Assembler) Ended() bool { return a.ended }

// Finish ends everything that is open, by rule; the spans come with the next
// Seal. A later message opens its run again.
func (a *Assembler) Finish() error {
	for key := range a.asleep {
		if _, err := a.group(key.tenant, key.format, key.session); err != nil {
			return err
		}
	}
	for _, g := range a.groups {
		for _, c := range g.Open {
			g.lose(c)
		}
		for _, r := range g.Runs {
			g.silence(r)
		}
	}
	return nil
}

// idle ends what has been silent for long enough: runs that wait for nothing, and
// calls and the runs that wait for them. It returns when the next is due, Unix ns;
// zero when nothing is open.
func (g *group) idle(now int64, s *Settings) (next int64) {
	due := func(since int64, after time.Duration) bool {
		t := min(since, now) + int64(after)
		if t > now && (next == 0 || t < next) {
			next = t
		}
		return t <= now
	}
	alive, waits := g.signs(), g.waiting(true)
	for _, c := range g.Open {
		if c.pending() && due(alive[c.Run], s.IdleCall) {
			g.lose(c)
		}
	}
	for _, r := range g.Runs {
		after := s.IdleRun
		if waits[r.ID] {
			after = s.IdleCall
		}
		if r.Ended == running && due(alive[r.ID], after) {
			g.silence(r)
		}
	}
	return next
}

// bygone are the running runs that had been silent for so long when they were read that
// silence is going to end them: nothing of them goes on now.
func (g *group) bygone(s *Settings) map[string]bool {
	var old map[string]bool
	alive, waits := g.signs(), g.waiting(true)
	for _, r := range g.Runs {
		after := s.IdleRun
		if waits[r.ID] {
			after = s.IdleCall
		}
		if r.Ended == running && g.touched.UnixNano()-alive[r.ID] >= int64(after) {
			if old == nil {
				old = make(map[string]bool)
			}
			old[r.ID] = true
		}
	}
	return old
}

// lose gives the result of a call up.
func (g *group) lose(c *call) {
	if !c.Lost {
		c.Lost, g.dirty = true, true
	}
}

// silence ends a run by silence.
func (g *group) silence(r *run) {
	if r.Ended == running {
		r.over(bySilence)
		g.dirty = true
	}
}

// signs has when each run, or one below it, gave its last sign of life.
func (g *group) signs() map[string]int64 {
	alive := make(map[string]int64, len(g.Runs))
	for _, r := range g.Runs {
		t := r.Alive
		if t == 0 { // of a state that does not have it
			t = r.Last
		}
		if r.Ended == running {
			t = max(t, g.Alive)
		}
		for up := r; up != nil && alive[up.ID] < t; up = g.Runs[up.Parent] {
			alive[up.ID] = t
		}
	}
	return alive
}
