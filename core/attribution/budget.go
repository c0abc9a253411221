package attribution

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// Budget is how much the work of some may cost in a day, a week or a month.
type Budget struct {
	// Name in the alerts.
	Name string `yaml:"name"`
	// Whose work: the values of dimensions. Empty: all of it.
	Where map[string]string `yaml:"where"`
	// US dollars in a period. Tokens of models without a price do not count.
	USD int `yaml:"usd"`
	// In place of usd: tokens in a period.
	Tokens int `yaml:"tokens"`
	// day, week (from Monday) or month, in UTC.
	Per string `yaml:"per"`
}

// The periods of budgets.
const (
	PerDay   = "day"
	PerWeek  = "week"
	PerMonth = "month"
)

// SetDefaults implements spec.Defaults.
func (b *Budget) SetDefaults() { *b = Budget{Per: PerMonth} }

// Validate reports the mistakes of a budget of the configuration.
func (b *Budget) Validate(c *spec.Check) {
	c.Required("name", b.Name)
	c.OneOf("per", b.Per, PerDay, PerWeek, PerMonth)
	for _, name := range slices.Sorted(maps.Keys(b.Where)) {
		checkDimension(c, spec.Join("where", name), name)
	}
	switch {
	case b.USD < 0 || b.Tokens < 0:
		c.Report("usd", "must not be negative", "")
	case (b.USD == 0) == (b.Tokens == 0):
		c.Report("usd", "either usd or tokens is required", "")
	}
}

// Names of the alerts of a budget.
const (
	BudgetFast  = "budget_fast"
	BudgetSlow  = "budget_slow"
	BudgetSpent = "budget_spent"
)

// AlertNames are the alerts of a budget.
func AlertNames() []string { return []string{BudgetFast, BudgetSlow, BudgetSpent} }

// Slot is how finely usage is counted by time.
const Slot = 5 * time.Minute

// burnWindows are the multiwindow, multi-burn-rate alerts of the SRE workbook
// (https://sre.google/workbook/alerting-on-slos/, table 5-8), for 30 days. A burn rate of 1 spends the budget in
// its period. The short window is a twelfth of the long one, so that an alert ends soon after the burn.
var burnWindows = []struct {
	alert       string
	burn        float64
	long, short time.Duration
}{
	{BudgetFast, 14.4, time.Hour, 5 * time.Minute},
	{BudgetFast, 6, 6 * time.Hour, 30 * time.Minute},
	{BudgetSlow, 1, 72 * time.Hour, 6 * time.Hour},
}

// Period is the period that a time is in.
func (b *Budget) Period(now time.Time) (from, to time.Time) {
	now = now.UTC()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch b.Per {
	case PerDay:
		return day, day.AddDate(0, 0, 1)
	case PerWeek:
		monday := day.AddDate(0, 0, -(int(now.Weekday())+6)%7)
		return monday, monday.AddDate(0, 0, 7)
	}
	first := day.AddDate(0, 0, 1-now.Day())
	return first, first.AddDate(0, 1, 0)
}

// window scales a window of 30 days to the period, in whole slots.
func (b *Budget) window(d time.Duration) time.Duration {
	days := map[string]time.Duration{PerDay: 1, PerWeek: 7, PerMonth: 30}[b.Per]
	return max((d * days / 30).Round(Slot), Slot)
}

// Alert is the state of an alert of a budget.
type Alert struct {
	Name     string
	Firing   bool
	Evidence string // a sentence
}

// burnPair is a row of burnWindows in the period of a budget.
type burnPair struct {
	alert       string
	burn        float64
	window      time.Duration // the long one
	long, short time.Time     // begins
}

// pairs are the windows of the budget. One that is in its period the same as a faster one is left out.
func (b *Budget) pairs(now time.Time) (out []burnPair) {
	for _, w := range burnWindows {
		long, short := b.window(w.long), b.window(w.short)
		if long <= short || len(out) > 0 && long == out[len(out)-1].window {
			continue
		}
		out = append(out, burnPair{w.alert, w.burn, long, now.Add(-long).UTC().Truncate(Slot), now.Add(-short).UTC().Truncate(Slot)})
	}
	return out
}

// Begins are the begins of the slots from which on Alerts needs the sums.
func (b *Budget) Begins(now time.Time) []time.Time {
	from, _ := b.Period(now)
	out := []time.Time{from}
	for _, p := range b.pairs(now) {
		out = append(out, p.long, p.short)
	}
	return out
}

// Alerts evaluates a budget; spent has the dollars or tokens since each of Begins. A burn fires
// if both windows burn faster than its rate and the budget does not last for its period at the rate of
// the long one: a fast hour of a month that is nearly over, with half of the budget left, is no alert.
func (b *Budget) Alerts(now time.Time, spent []float64) []Alert {
	from, to := b.Period(now)
	period, left := float64(to.Sub(from)), float64(to.Sub(now))
	amount, used := float64(b.USD+b.Tokens), spent[0]
	whose := b.Name + b.of()
	all := Alert{Name: BudgetSpent, Firing: used >= amount, Evidence: fmt.Sprintf("%s has spent %s of %s since %s.", whose, b.text(used), b.text(amount), from.Format(time.DateOnly))}
	fast, slow := Alert{Name: BudgetFast}, Alert{Name: BudgetSlow}
	for i, p := range b.pairs(now) {
		rate := func(sum float64, begin time.Time) float64 { return sum / amount * period / float64(now.Sub(begin)) }
		burn, recent := rate(spent[1+2*i], p.long), rate(spent[2+2*i], p.short)
		a := &fast
		if p.alert == BudgetSlow {
			a = &slow
		}
		if a.Firing || fast.Firing || all.Firing || burn < p.burn || recent < p.burn || used+burn*left/period*amount <= amount {
			continue
		}
		a.Firing = true
		lasts := time.Duration((amount - used) / amount / burn * period).Round(time.Minute)
		a.Evidence = fmt.Sprintf("%s spends %.1f times as fast as its budget of %s a %s allows, in the last %s: %s of it is spent, and the rest lasts for %s.",
			whose, burn, b.text(amount), b.Per, p.window, percent(used/amount), lasts)
	}
	return []Alert{fast, slow, all}
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// text is an amount in words.
func (b *Budget) text(n float64) string {
	if b.USD > 0 {
		return fmt.Sprintf("$%.2f", n)
	}
	return fmt.Sprintf("%.0f tokens", n)
}

// of is whose budget it is.
func (b *Budget) of() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(b.Where)) {
		parts = append(parts, name+" "+b.Where[name])
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
