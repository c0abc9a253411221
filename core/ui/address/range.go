package address

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Range is a range of time as an address writes it, in Grafana's words: relative to now
// (now, now-6h, now-1d/d), a time of RFC 3339, a time of this machine's clock
// (2006-01-02 15:04:05, seconds and time of day may be absent), or milliseconds since 1970.
// A From that is "all" or empty is the beginning of all, an empty To is now.
type Range struct{ From, To string }

// All reports whether the range has no beginning: every row is in it.
func (r Range) All() bool { return r.From == "" || r.From == "all" }

// Relative reports whether the range ends now, so that a later look shows later rows.
func (r Range) Relative() bool { return r.To == "" || strings.HasPrefix(r.To, "now") }

// At returns the times that the range has at the time now. A rounded time (/d) is rounded down
// in From and up in To. All of time begins in 1970.
func (r Range) At(now time.Time) (from, to time.Time, err error) {
	from, to = time.Unix(0, 0), now
	if !r.All() {
		if from, err = parseTime(r.From, now, false); err != nil {
			return from, to, fmt.Errorf("from: %w", err)
		}
	}
	if r.To != "" {
		if to, err = parseTime(r.To, now, true); err != nil {
			return from, to, fmt.Errorf("to: %w", err)
		}
	}
	if !from.Before(to) {
		return from, to, fmt.Errorf("the range of time ends before it begins: from %s to %s", from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return from, to, nil
}

// Preset is a range that people pick by name.
type Preset struct {
	Name string
	Range
}

// Presets are the ranges that every page offers.
func Presets() []Preset {
	return []Preset{
		{"Last 15 minutes", Range{"now-15m", "now"}}, {"Last hour", Range{"now-1h", "now"}}, {"Last 6 hours", Range{"now-6h", "now"}},
		{"Last 24 hours", Range{"now-24h", "now"}}, {"Today", Range{"now/d", "now"}}, {"Last 7 days", Range{"now-7d", "now"}},
		{"Last 30 days", Range{"now-30d", "now"}}, {"Last 90 days", Range{"now-90d", "now"}}, {"Last year", Range{"now-1y", "now"}}, {"All time", Range{"all", ""}},
	}
}

// Label names the range for people, in this machine's time.
func (r Range) Label(now time.Time) string {
	to := r.To
	if to == "" {
		to = "now"
	}
	if r.All() && to == "now" {
		return "All time"
	}
	for _, p := range Presets() {
		if p.From == r.From && p.To == to {
			return p.Name
		}
	}
	if m := lastN.FindStringSubmatch(r.From); m != nil && to == "now" {
		n, _ := strconv.Atoi(m[1])
		if n == 1 {
			return "Last " + unitNames[m[2]]
		}
		return fmt.Sprintf("Last %d %ss", n, unitNames[m[2]])
	}
	from, until, err := r.At(now)
	if err != nil {
		return r.From + " to " + to
	}
	format := func(t time.Time, word string) string {
		if strings.HasPrefix(word, "now") {
			return word
		}
		if t = t.Local(); t.Year() == now.Local().Year() {
			return t.Format("Jan 2 15:04:05")
		}
		return t.Format("2006-01-02 15:04:05")
	}
	if r.All() {
		return "Until " + format(until, to)
	}
	return format(from, r.From) + " to " + format(until, to)
}

var (
	lastN     = regexp.MustCompile(`^now-(\d+)([smhdwMy])$`)
	relative  = regexp.MustCompile(`^now((?:[-+]\d{1,6}[smhdwMy])*)(?:/([smhdwMy]))?$`)
	offset    = regexp.MustCompile(`([-+])(\d+)([smhdwMy])`)
	millis    = regexp.MustCompile(`^-?\d{10,14}$`)
	unitNames = map[string]string{"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "M": "month", "y": "year"}
)

// parseTime reads a time as Range describes it.
func parseTime(s string, now time.Time, up bool) (time.Time, error) {
	s = strings.TrimSpace(s)
	if m := relative.FindStringSubmatch(s); m != nil {
		t := now.Local()
		for _, o := range offset.FindAllStringSubmatch(m[1], -1) {
			n, err := strconv.Atoi(o[1] + o[2])
			if err != nil {
				return t, fmt.Errorf("%q: %w", s, err)
			}
			t = shift(t, n, o[3])
		}
		if m[2] == "" {
			return t, nil
		}
		t = truncate(t, m[2])
		if up {
			t = shift(t, 1, m[2]).Add(-time.Millisecond)
		}
		return t, nil
	}
	if millis.MatchString(s) {
		ms, err := strconv.ParseInt(s, 10, 64)
		return time.UnixMilli(ms), err
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return now, fmt.Errorf("%q is no time: write it as now-6h, 2006-01-02 15:04, 2006-01-02T15:04:05Z or as milliseconds since 1970", s)
}

func shift(t time.Time, n int, unit string) time.Time {
	switch unit {
	case "s":
		return t.Add(time.Duration(n) * time.Second)
	case "m":
		return t.Add(time.Duration(n) * time.Minute)
	case "h":
		return t.Add(time.Duration(n) * time.Hour)
	case "d":
		return t.AddDate(0, 0, n)
	case "w":
		return t.AddDate(0, 0, 7*n)
	case "M":
		return t.AddDate(0, n, 0)
	}
	return t.AddDate(n, 0, 0)
}

func truncate(t time.Time, unit string) time.Time {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	switch unit {
	case "y":
		month, day, hour, minute, second = 1, 1, 0, 0, 0
	case "M":
		day, hour, minute, second = 1, 0, 0, 0
	case "w":
		day, hour, minute, second = day-(int(t.Weekday())+6)%7, 0, 0, 0 // weeks begin on Monday
	case "d":
		hour, minute, second = 0, 0, 0
	case "h": // by the time since it began: two hours have one name at a change of the clock
		return t.Add(-time.Duration(minute)*time.Minute - time.Duration(second)*time.Second - time.Duration(t.Nanosecond()))
	case "m":
		return t.Add(-time.Duration(second)*time.Second - time.Duration(t.Nanosecond()))
	case "s":
		return t.Add(-time.Duration(t.Nanosecond()))
	}
	return time.Date(year, month, day, hour, minute, second, 0, t.Location())
}
