package verdict

import "time"

// Naps are the times during which the machine slept, oldest first: no agent worked then, so that they are
// no silence. Only the last ones are kept.
type Naps []nap

type nap struct{ from, to int64 }

const (
	maxNaps = 16
	minNap  = int64(time.Minute)
)

// Woke takes two times at which Earshot looked at its clock one after the other. It does so every second: if
// much more has passed, the machine slept, or its clock was set.
func (n *Naps) Woke(from, to int64) {
	if from == 0 || to-from < minNap {
		return
	}
	if len(*n) == maxNaps {
		*n = append((*n)[:0], (*n)[1:]...)
	}
	*n = append(*n, nap{from, to})
}

// After is when the machine has been awake for so long since a time.
func (n Naps) After(since, awake int64) int64 {
	at := since + awake
	for _, x := range n {
		if x.to > since && x.from < at {
			at += x.to - max(x.from, since)
		}
	}
	return at
}
