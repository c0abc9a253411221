package pipeline

import (
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestInferredTimesFollowTheProtocols dates messages without a time of their own in streams
// that are read live, a day later, and that have no time at all.
func TestInferredTimesFollowTheProtocols(t *testing.T) {
	const s, day = int64(time.Second), 24 * int64(time.Hour)
	type record struct{ time, at, want int64 }
	for name, list := range map[string][]record{
		"live":                          {{0, 100 * s, 100 * s}, {101 * s, 102 * s, 101 * s}, {0, 112 * s, 111 * s}, {115 * s, 116 * s, 115 * s}, {0, 116 * s, 115 * s}},
		"a day later":                   {{10 * s, day, 10 * s}, {19 * s, day + s/1000, 19 * s}, {0, day + s/500, 19*s + s/1000}},
		"a clock that is back":          {{10 * s, 9 * s, 10 * s}, {0, 8 * s, 10 * s}},
		"no time at all":                {{0, 7 * s, 7 * s}, {0, 8 * s, 8 * s}},
		"a file":                        {{0, 0, 5 * s}, {30 * s, 0, 30 * s}, {0, 0, 30 * s}},
		"the clock of an older version": {{0, 40 * s, 40 * s}},
	} {
		var c checkpoint.Clock
		if name == "the clock of an older version" {
			c.Last = 20 * s
		}
		for i, x := range list {
			m, open := msg.Message{Time: x.time, Precision: msg.Nanos}, msg.Message{Time: x.time}
			was := c
			infer(&c, &open, x.at, 5*s)
			if c != was {
				t.Errorf("%s: a flush moves the clock", name)
			}
			first := Date(&c, &m, x.at, 5*s)
			if m.Time != x.want || (m.Precision == msg.Inferred) != (x.time == 0) || first != (name == "a file" && i == 0) {
				t.Errorf("%s: %d: dated %d, want %d; %v, %v", name, i, m.Time, x.want, m.Precision, first)
			}
			if open.Time != m.Time {
				t.Errorf("%s: %d: a flush dates it %d", name, i, open.Time)
			}
		}
	}
}
