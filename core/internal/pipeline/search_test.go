package pipeline

import "testing"

// TestSearch: two crashes in overlapping ranges leave the part that they share to be decoded
// frame by frame; a frame is poison after two crashes with it alone, or three that a signal
// from outside ended.
func TestSearch(t *testing.T) {
	var x search
	proven := false
	for i, crash := range []struct {
		attempt attempt
		killed  bool
		from    int64
		to      int64
		crashes int
		proven  bool
	}{
		{attempt{from: 0, to: 50}, false, 0, 50, 1, false},
		{attempt{from: 50, to: 60}, false, 50, 60, 1, false}, // another range: the search begins again
		{attempt{from: 40, to: 50}, false, 40, 50, 1, false},
		{attempt{from: 60, to: 90}, false, 60, 90, 1, false},
		{attempt{from: 80, to: 99}, false, 80, 90, 2, false},
		{attempt{from: 80, to: 85, alone: true}, false, 80, 90, 2, false},
		{attempt{from: 85, to: 90, alone: true}, true, 80, 90, 2, false}, // another frame
		{attempt{from: 85, to: 90, alone: true}, true, 80, 90, 2, false},
		{attempt{from: 85, to: 90, alone: true}, true, 80, 90, 2, true},
		{attempt{step: atFlush, from: 85, to: 86, alone: true}, false, 80, 90, 2, false}, // another step
		{attempt{step: atFlush, from: 85, to: 86, alone: true}, false, 80, 90, 2, true},
	} {
		x, proven = x.crashed(crash.attempt, crash.killed)
		if x.from != crash.from || x.to != crash.to || x.crashes != crash.crashes || proven != crash.proven {
			t.Errorf("crash %d: %+v, proven %t", i, x, proven)
		}
	}
	if x = x.found(attempt{from: 85, to: 90}); x.from != 90 || x.alone != 0 {
		t.Errorf("behind the record: %+v", x)
	}
}
