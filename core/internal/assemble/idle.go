package assemble

import "time"

// A session that is silent is not held in memory: its state is in the store, and is
// read when its next message comes. Reading it takes a millisecond or two, so that one
// in which something is open, and which may go on at any moment, is held for longer.
const (
	holdOver = 5 * time.Second
	holdOpen = time.Minute
)

// mostWoken is how many sessions one look at what is silent reads: all that were open
// at a restart come due in the same moment.
const mostWoken = 100

// nap is what is held of a session in which something is open: when it was heard
// last, and when it has to be looked at because of that.
type nap struct{ touched, until time.Time }

// Resume notes that in a group of the store something is open, so that it is ended
// when it stays silent.
func (a *Assembler) Resume(key string, now time.Time) error {
	k, err := parseKey(key)
	if err != nil {
		return err
	}
	a.sleep(k, now, 0)
	return nil
}

// sleep notes that something is open in a group, which has been silent for so long.
// One whose time is over has nothing to wait for.
func (a *Assembler) sleep(k groupKey, touched time.Time, silent time.Duration) {
	first, last := min(a.settings.IdleRun, a.settings.IdleCall), max(a.settings.IdleRun, a.settings.IdleCall)
	switch {
	case silent < first:
		a.asleep[k] = nap{touched, touched.Add(first)}
	case silent < last:
		a.asleep[k] = nap{touched, touched.Add(last)}
	}
}

// Idle ends the runs of groups that have been silent for as long as the settings
// say, and lets go of the memory of groups that are silent. What the last so many
// calls of Seal gave is not in the store yet.
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
		silent := now.Sub(g.touched)
		g.idle(silent >= a.settings.IdleRun, silent >= a.settings.IdleCall)
		if g.dirty || silent < holdOver || g.sealed > a.seals-uncommitted {
			continue
		}
		if g.open() {
			if silent < holdOpen {
				continue
			}
			a.sleep(g.key, g.touched, silent)
		}
		delete(a.groups, key)
		if a.last == g {
			a.last = nil
		}
	}
	return nil
}

// Finish ends everything that is open, by rule; the spans come with the next
// Seal. A later message opens its run again.
func (a *Assembler) Finish() error {
	for key := range a.asleep {
		if _, err := a.group(key.tenant, key.format, key.session); err != nil {
			return err
		}
	}
	for _, g := range a.groups {
		g.idle(true, true)
	}
	return nil
}
