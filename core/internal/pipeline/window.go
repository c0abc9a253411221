package pipeline

import (
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/msg"
)

const (
	// firstTime is before the first transcript of any agent: a clock with an earlier time was never
	// set. It is 2015-01-01 in Unix ns.
	firstTime = 1420070400 * int64(time.Second)
	// maxAhead is how far a time may be ahead of the clock by which it was read.
	maxAhead = 48 * time.Hour
	// maxDays bounds the days that a stream has from before it was first read: the store has a
	// partition for each.
	maxDays = 390
)

// AttrClockTime is the attribute with the protocol's own time of a message whose time cannot
// be right.
const AttrClockTime = "clock_time"

// bound takes a time from a message that the store must not receive: before firstTime, ahead
// of the clock, or of one day more than a stream may have. The message is dated like one
// without a time and keeps the protocol's as an attribute. read is when its frame was read.
// Days since the stream was first read do not count: they come no faster than they pass.
//
// The days are part of the checkpoint: a replay from it ends at the same times.
func bound(rec *checkpoint.Stream, m *msg.Message, read int64) {
	if m.Time == 0 {
		return
	}
	if m.Time >= firstTime && (read == 0 || m.Time <= max(read, rec.Anchor)+int64(maxAhead)) {
		if rec.Anchor >= firstTime && m.Time >= rec.Anchor-int64(maxAhead) {
			return
		}
		day := int32(m.Time / int64(24*time.Hour))
		if n := len(rec.Days); n > 0 && rec.Days[n-1] == day || slices.Contains(rec.Days, day) {
			return
		}
		if len(rec.Days) < maxDays {
			rec.Days = append(rec.Days, day)
			return
		}
	}
	m.SetAttr(AttrClockTime, time.Unix(0, m.Time).UTC().Format(msg.TimeFormat))
	m.Time = 0
}
