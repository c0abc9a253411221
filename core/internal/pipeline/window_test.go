package pipeline

import (
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestTimesAreBounded dates a transcript of 20,000 days, with clocks that were never set and
// ones that are ahead among them: the store gets a bounded number of days, every message
// keeps the time of its protocol, and a replay from the checkpoint ends at the same times.
func TestTimesAreBounded(t *testing.T) {
	read := time.Date(2030, 5, 6, 7, 8, 9, 0, time.UTC)
	var wrong []time.Time
	for i := range 20000 {
		wrong = append(wrong, read.AddDate(0, 0, i-15000))
	}
	wrong = append(wrong, time.Date(1970, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
	run := func(rec *checkpoint.Stream, list []time.Time, read time.Time) (out []msg.Message) {
		for _, at := range list {
			m := msg.Message{Time: at.UnixNano(), Precision: msg.Seconds}
			bound(rec, &m, read.UnixNano())
			Date(&rec.Clock, &m, 0, rec.Anchor)
			out = append(out, m)
		}
		return out
	}
	rec := checkpoint.Stream{Anchor: read.UnixNano()}
	first := run(&rec, wrong[:8000], read)
	saved := rec
	all := append(first, run(&rec, wrong[8000:], read)...)
	days := make(map[int64]bool)
	for i, m := range all {
		days[m.Time/int64(24*time.Hour)] = true
		got := m.Attr(AttrClockTime)
		switch kept := m.Time == wrong[i].UnixNano(); {
		case kept && (got != "" || m.Precision != msg.Seconds):
			t.Fatalf("%v: marked as %q, %v", wrong[i], got, m.Precision)
		case !kept && (got != wrong[i].Format(msg.TimeFormat) || m.Precision != msg.Inferred):
			t.Fatalf("%v: dated %d, marked as %q, %v", wrong[i], m.Time, got, m.Precision)
		}
	}
	if n := len(days); n < 300 || n > 400 {
		t.Errorf("%d days", n)
	}
	for i, m := range run(&saved, wrong[8000:], read.Add(time.Hour)) {
		if m.Time != all[8000+i].Time {
			t.Fatalf("%v: a replay dates it %d, not %d", wrong[8000+i], m.Time, all[8000+i].Time)
		}
	}

	// A stream that lives for years has its own times, of any number of days.
	live := checkpoint.Stream{Anchor: read.UnixNano()}
	for i := range 1500 {
		at := read.AddDate(0, 0, i)
		if m := run(&live, []time.Time{at}, at.Add(time.Second))[0]; m.Time != at.UnixNano() {
			t.Fatalf("day %d of a live stream: dated %v", i, time.Unix(0, m.Time))
		}
	}
}
