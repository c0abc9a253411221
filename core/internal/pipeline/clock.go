package pipeline

import (
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/msg"
)

// Date dates a message whose protocol has no time for it, from facts that are the same in a
// replay: the protocol's last time, and when frames were first read. at is when the message's
// frame was; zero when a replay would read it at another time. The time that passed in
// reading counts, not the clock by which it was read: an hour of yesterday that is read in
// one second of today stays an hour of yesterday. first is the time of a message before any
// known time; Date reports whether it was used.
func Date(c *checkpoint.Clock, m *msg.Message, at, first int64) bool {
	if m.Time != 0 {
		c.Last, c.LastAt = m.Time, at
		return false
	}
	return infer(c, m, at, first)
}

// infer is Date for the provisional messages of a flush: it does not move the clock.
func infer(c *checkpoint.Clock, m *msg.Message, at, first int64) bool {
	if m.Time != 0 {
		return false
	}
	m.Precision = msg.Inferred
	switch {
	case c.Last != 0 && c.LastAt != 0 && at != 0:
		m.Time = c.Last + max(at-c.LastAt, 0)
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
