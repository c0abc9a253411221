package assemble

import (
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
)

// A session that is silent is evicted from memory: its state is in the store, and is reloaded
// with its next message. Reading it takes a millisecond or two, so that one in which
// something is open, and which may go on at any moment, is held for longer.
const (
	holdEnded = 5 * time.Second
	holdOpen  = time.Minute
	// manyHeld is from how many sessions in memory on all are held as those that have ended.
	manyHeld = 1024
)

// settled is how long no message of a session must have been read before the session may be
// silent, unless all history is read: of history that is being read the rest may follow.
const settled = 5 * time.Second

// maxReloaded is the number of sessions that one call of Idle reloads: all that were open at
// a restart are due at the same moment.
const maxReloaded = 100

// idleTimer is held for an evicted session in which something is open: when it was read last,
// when it is due because of that, and how it was judged: a session that is loaded with each
// record is not judged with each.
type idleTimer struct {
	read, due time.Time
	pace      pace
}

// Resume records that in a group of the store something is open, so that it ends when it is
// silent.
func (a *Assembler) Resume(key string, now time.Time) error {
	k, err := link.ParseKey(key)
	if err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	a.evicted[k] = idleTimer{read: now, due: now.Add(a.settles())}
	return nil
}

// settles is settled, unless runs are to end sooner.
func (a *Assembler) settles() time.Duration {
	return min(settled, a.settings.IdleRun, a.settings.IdleCall)
}

// Idle ends the runs and calls that have been silent for as long as the settings allow, and
// evicts the groups that are silent. The store does not have the states of the last
// uncommitted calls of Commit yet.
func (a *Assembler) Idle(now time.Time, uncommitted int) error {
	reloaded := 0
	for key, n := range a.evicted {
		if now.Before(n.due) {
			continue
		}
		if reloaded++; reloaded > maxReloaded {
			break
		}
		if _, err := a.group(key); err != nil {
			return err
		}
	}
	if now.Sub(a.learning.saved) >= saveEvery {
		a.learning.due, a.learning.saved = a.learning.History.Changed(), now
	}
	a.out.views.evict(uncommitted)
	a.copies.evict(uncommitted)
	hold := holdOpen
	if len(a.groups) > manyHeld {
		hold = holdEnded
	}
	read := a.settings.HistoryRead != nil && a.settings.HistoryRead()
	for key, g := range a.groups {
		unread := now.Sub(g.read)
		if unread < a.settles() && !read {
			a.judge(g, now)
			continue
		}
		next := g.idle(now.UnixNano(), &a.settings)
		a.ended = a.ended || g.dirty
		a.judge(g, now)
		if g.dirty || unread < holdEnded || g.committed > a.commits-uncommitted {
			continue
		}
		if next != 0 {
			if unread < hold {
				continue
			}
			if g.judgeAt != 0 {
				next = min(next, g.judgeAt)
			}
			a.evicted[g.key] = idleTimer{g.read, time.Unix(0, next), g.pace}
		}
		delete(a.groups, key)
		if a.last == g {
			a.last = nil
		}
	}
	return nil
}

// Ended reports whether silence has ended something that no commit has emitted yet.
func (a *Assembler) Ended() bool { return a.ended }

// Finish ends everything that is open, by rule; the next commit emits the spans. A later
// message opens its run again.
func (a *Assembler) Finish() error {
	for key := range a.evicted {
		if _, err := a.group(key); err != nil {
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

// closeStream ends the runs of a stream where they are, but not those that go on in another one: a model's
// client has its calls, or a person is asked.
func (g *group) closeStream(stream uint64) {
	restorer{g}.keepOpen(stream)
	delete(g.Turns, stream)
	if g.local {
		g.Claims.Close(stream)
		g.dirty = true
	}
	for _, r := range g.Runs {
		if r.Stream == stream && !(r.Judged.Live && r.Judged.Elsewhere(g.calling(r))) {
			g.silence(r)
		}
	}
}

// calling reports whether a call of the run has no result.
func (g *group) calling(r *run) bool {
	for _, c := range g.Open {
		if c.Run == r.ID && c.pending() {
			return true
		}
	}
	return false
}

// idle ends the runs and calls that have been silent for long enough: runs that wait for
// nothing, and calls and the runs that wait for them. It returns when the next is due, Unix ns; zero when nothing
// is open.
func (g *group) idle(now int64, s *Settings) (next int64) {
	due := func(since int64, after time.Duration) bool {
		t := g.learned.Naps.After(min(since, now), int64(after))
		if t > now && (next == 0 || t < next) {
			next = t
		}
		return t <= now
	}
	alive, waits := g.lastAlive(g.Alive), g.waiting(true)
	for _, c := range g.Open {
		if c.pending() && due(alive[c.Run], s.limit(!g.delegateEnded(c))) {
			g.lose(c)
		}
	}
	for _, r := range g.Runs {
		if r.Ended == running && due(alive[r.ID], s.limit(waits[r.ID])) {
			g.silence(r)
		}
	}
	return next
}

// delegateEnded reports whether the work of a call in the background has ended, so that at most a notice of it is to come.
func (rs *runs) delegateEnded(c *call) bool {
	if !c.Async || c.Worked == 0 {
		return false
	}
	for _, r := range rs.Runs {
		if (r.Call == c.ID || r.ID == c.Child) && r.Ended == running {
			return false
		}
	}
	return true
}

// limit is the longest silence of a run, which may wait for a call, and of a call, which may wait for work.
func (s *Settings) limit(waits bool) time.Duration {
	if waits {
		return s.IdleCall
	}
	return s.IdleRun
}

// past returns the running runs that had been silent for so long when they were read that
// silence is going to end them: nothing of them goes on now.
func (g *group) past(s *Settings) map[string]bool {
	var past map[string]bool
	alive, waits := g.lastAlive(g.Alive), g.waiting(true)
	for _, r := range g.Runs {
		if r.Ended == running && g.read.UnixNano() >= g.learned.Naps.After(alive[r.ID], int64(s.limit(waits[r.ID]))) {
			if past == nil {
				past = make(map[string]bool)
			}
			past[r.ID] = true
		}
	}
	return past
}

// lose stops the wait for the result of a call.
func (g *group) lose(c *call) {
	if !c.Lost {
		c.Lost, g.dirty = true, true
	}
}

// silence ends a run by silence.
func (g *group) silence(r *run) {
	if r.Ended == running {
		r.end(bySilence)
		g.dirty = true
	}
}

// lastAlive returns when each run, or one below it, was alive last; since is the time of the
// last message without a run, which keeps all running ones alive.
func (rs *runs) lastAlive(since int64) map[string]int64 {
	alive := make(map[string]int64, len(rs.Runs))
	for _, r := range rs.Runs {
		t := r.Alive
		if t == 0 { // a state of an older version
			t = r.Last
		}
		if r.Ended == running {
			t = max(t, since)
		}
		for up := r; up != nil && alive[up.ID] < t; up = rs.Runs[up.Parent] {
			alive[up.ID] = t
		}
	}
	return alive
}
