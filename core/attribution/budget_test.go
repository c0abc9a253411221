package attribution

import (
	"strings"
	"testing"
	"time"
)

// TestBurnRates holds the alerts against the windows of the SRE workbook: a budget of 720 dollars for the 30 days
// of a month is a dollar an hour.
func TestBurnRates(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	type burn struct {
		rate float64 // dollars an hour
		for_ time.Duration
		ago  time.Duration // until when
	}
	for name, c := range map[string]struct {
		spent  float64 // before all burns
		burns  []burn
		firing string
	}{
		"as planned":                             {170, []burn{{1, 72 * time.Hour, 0}}, ""},
		"an hour of 15":                          {250, []burn{{15, time.Hour, 0}}, "budget_fast"},
		"an hour of 14":                          {250, []burn{{14, time.Hour, 0}}, ""},
		"an hour of 15, half an hour ago":        {250, []burn{{15, time.Hour, 30 * time.Minute}}, ""},
		"six hours of 7":                         {250, []burn{{7, 6 * time.Hour, 0}}, "budget_fast"},
		"six hours of 7, an hour ago":            {250, []burn{{7, 6 * time.Hour, time.Hour}}, ""},
		"three days of 2":                        {250, []burn{{2, 72 * time.Hour, 0}}, "budget_slow"},
		"three days of 2, which the rest allows": {50, []burn{{1.2, 72 * time.Hour, 0}}, ""},
		"all of it":                              {720, nil, "budget_spent"},
		"all of it, and on":                      {720, []burn{{20, time.Hour, 0}}, "budget_spent"},
	} {
		t.Run(name, func(t *testing.T) {
			b := Budget{Name: "engines", USD: 720, Per: PerMonth, Where: map[string]string{"team": "engines"}}
			var spent []float64
			for i, from := range b.Begins(now) {
				sum := 0.0
				if i == 0 {
					sum = c.spent
				}
				for _, x := range c.burns {
					if d := now.Add(-x.ago).Sub(from); d > 0 {
						sum += x.rate * min(d, x.for_).Hours()
					}
				}
				spent = append(spent, sum)
			}
			alerts := b.Alerts(now, spent)
			var firing []string
			for _, a := range alerts {
				if a.Firing {
					firing = append(firing, a.Name)
				}
				if a.Firing && !strings.HasPrefix(a.Evidence, "engines (team engines) ") {
					t.Errorf("evidence %q", a.Evidence)
				}
			}
			if got := strings.Join(firing, " "); got != c.firing {
				t.Errorf("firing %q, want %q", got, c.firing)
			}
		})
	}
}

// TestPeriods are of the calendar, and a short one has fewer windows.
func TestPeriods(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 7, 0, 0, time.UTC) // a Sunday
	for per, want := range map[string]string{PerDay: "2026-03-01 2026-03-02", PerWeek: "2026-02-23 2026-03-02", PerMonth: "2026-03-01 2026-04-01"} {
		b := Budget{Tokens: 100, Per: per}
		from, to := b.Period(now)
		if got := from.Format(time.DateOnly) + " " + to.Format(time.DateOnly); got != want {
			t.Errorf("%s: %s, want %s", per, got, want)
		}
		begins := b.Begins(now)
		for _, at := range begins {
			if !at.Truncate(Slot).Equal(at) || at.After(now) {
				t.Errorf("%s: sums since %s", per, at)
			}
		}
		if n := map[string]int{PerDay: 5, PerWeek: 7, PerMonth: 7}[per]; len(begins) != n || len(b.Alerts(now, make([]float64, n))) != 3 {
			t.Errorf("%s: %d sums", per, len(begins))
		}
	}
}
