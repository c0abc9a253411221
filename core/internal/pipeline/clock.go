package pipeline

import (
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/msg"
)

// Date dates a message whose protocol says no time, from what is known again in a replay:
// the protocol's last time, and when frames were first read. at is when the message's
// frame was; zero when a replay would read it at another time. What counts is how much
// time has passed in reading, not the clock by which it was read: an hour of yesterday
// that is read in one second of today stays an hour of yesterday. first stands in where
// nothing is known; Date reports whether it did.
func Date(c *checkpoint.Clock, m *msg.Message, at, first int64) bool {
	if m.Time != 0 {
		c.Last, c.Said = m.Time, at
		return false
	}
	return guess(c, m, at, first)
}

// guess is Date for what a flush gives: it moves no clock.
func guess(c *checkpoint.Clock, m *msg.Message, at, first int64) bool {
	if m.Time != 0 {
		return false
	}
	m.Precision = msg.Inferred
	switch {
	case c.Last != 0 && c.Said != 0 && at != 0:
		m.Time = c.Last + max(at-c.Said, 0)
	case at != 0:
		m.Time = at
	case c.Last != 0:
		m.Time = c.Last
	default:
		m.Time = first
		return true
	}
	return false
}
