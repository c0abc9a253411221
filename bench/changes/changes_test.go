package changes

import "testing"

// TestQuiet is a small form of the quiet year: nothing changes in 20 pairs in 60 days, and two false alarms are expected at most.
func TestQuiet(t *testing.T) {
	for _, traffic := range []Traffic{Usual, rough} {
		q := traffic.QuietDays(3, 20, 60, 30)
		if q.Alarms > 4 { // more has a probability of 5 %, if two are expected
			t.Errorf("%d false alarms in %d runs", q.Alarms, q.Runs)
		}
		t.Logf("%d false alarms in %d runs", q.Alarms, q.Runs)
	}
}

// TestShiftIsFound: of shifts of 20 % that come with a version, nine of ten are found within 50 runs at a spread
// of 0.2, at the level of a search over 50 pairs.
func TestShiftIsFound(t *testing.T) {
	level := Usual.QuietDays(1, 50, 1, 1).Looks
	traffic := Usual
	traffic.Spread = 0.2
	if p := traffic.Shifted(5, 0.2, true, 40, level); p.Within[50] < 36 {
		t.Errorf("found within 50 runs: %d of %d", p.Within[50], p.Trials)
	}
	if p := traffic.Shifted(5, 0.2, false, 20, level); p.Within[100] < 17 {
		t.Errorf("without a version, found within 100 runs: %d of %d", p.Within[100], p.Trials)
	}
}
