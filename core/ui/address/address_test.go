package address

import (
	"maps"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A Wednesday.
var noon = time.Date(2026, 3, 18, 12, 30, 15, 0, time.Local)

func parse(t *testing.T, s string) State {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	state, err := Parse(u, noon)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestRange(t *testing.T) {
	day := func(d, h, m, s int) time.Time { return time.Date(2026, 3, d, h, m, s, 0, time.Local) }
	for in, want := range map[Range]struct {
		from, to time.Time
		label    string
	}{
		{}:                                   {time.Unix(0, 0), noon, "All time"},
		{"now-6h", "now"}:                    {noon.Add(-6 * time.Hour), noon, "Last 6 hours"},
		{"now-6h", ""}:                       {noon.Add(-6 * time.Hour), noon, "Last 6 hours"},
		{"now-3d", "now"}:                    {day(15, 12, 30, 15), noon, "Last 3 days"},
		{"now/d", "now"}:                     {day(18, 0, 0, 0), noon, "Today"},
		{"now-1d/d", "now-1d/d"}:             {day(17, 0, 0, 0), day(18, 0, 0, 0).Add(-time.Millisecond), "now-1d/d to now-1d/d"},
		{"now/w", "now"}:                     {day(16, 0, 0, 0), noon, "now/w to now"},
		{"now-1d-2h", "now"}:                 {day(17, 10, 30, 15), noon, "now-1d-2h to now"},
		{"2026-03-01", "2026-03-02 10:00"}:   {day(1, 0, 0, 0), day(2, 10, 0, 0), "Mar 1 00:00:00 to Mar 2 10:00:00"},
		{"2026-03-01T08:00", "now-1h"}:       {day(1, 8, 0, 0), noon.Add(-time.Hour), "Mar 1 08:00:00 to now-1h"},
		{"1770000000000", "1770000060000"}:   {time.UnixMilli(1770000000000), time.UnixMilli(1770000060000), ""},
		{"2026-02-01T00:00:00Z", "now"}:      {time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), noon, ""},
		{"", "2026-03-02T10:00:00.5Z"}:       {time.Unix(0, 0), time.Date(2026, 3, 2, 10, 0, 0, 5e8, time.UTC), ""},
		{"2026-02-01T01:00:00+01:00", "now"}: {time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), noon, ""},
	} {
		from, to, err := in.At(noon)
		if err != nil || !from.Equal(want.from) || !to.Equal(want.to) {
			t.Errorf("%+v: %s to %s, %v; want %s to %s", in, from, to, err, want.from, want.to)
		}
		if got := in.Label(noon); want.label != "" && got != want.label {
			t.Errorf("%+v is called %q, want %q", in, got, want.label)
		}
	}
	for _, in := range []Range{{"yesterday", ""}, {"now-6", ""}, {"now-6q", ""}, {"now", "now-1h"}, {"", "31.12.2025"}, {"now-1h'--", ""}} {
		if from, to, err := in.At(noon); err == nil {
			t.Errorf("%+v is %s to %s", in, from, to)
		}
	}
}

// TestLinksHoldTheState: the content of an address survives on the page, and its range and filters on
// the next one.
func TestLinksHoldTheState(t *testing.T) {
	s := parse(t, "/slow?from=now-6h&to=now&agent=a%26b&agent=c&q=tide&tool=&agent=c")
	if got := s.String(); got != "/slow?agent=a%26b&agent=c&from=now-6h&q=tide&to=now" {
		t.Error(got)
	}
	for got, want := range map[string]string{
		s.To("/tools").String():                                          "/tools?agent=a%26b&agent=c&from=now-6h&to=now",
		s.With("q", "", "tool", "Bash").String():                         "/slow?agent=a%26b&agent=c&from=now-6h&to=now&tool=Bash",
		s.Without("agent", "c").Without("agent", "a&b").To("/").String(): "/?from=now-6h&to=now",
		s.In(Range{}).To("/").String():                                   "/?agent=a%26b&agent=c",
		s.Or(Range{"now-1h", "now"}).String():                            s.String(),
		s.In(Range{}).Or(Range{"now-1h", "now"}).String():                "/slow?agent=a%26b&agent=c&from=now-1h&q=tide&to=now",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got, want := s.Pairs("from", "to", "agent"), []Pair{{"q", "tide"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestValuesAreBound: nothing of an address is in the SQL.
func TestValuesAreBound(t *testing.T) {
	s := parse(t, "/?from=1770000000000&to=1770000060000&agent=x'+OR+1%3D1&agent=%5Cn&waiting=no&waiting=no&status=error&project=p")
	columns := Columns{"time": "ts", "agent": "agent_name", "waiting": "waited_ms > 0", "status": "status"}
	sql, params := s.Where(columns)
	want := "ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts <= fromUnixTimestamp64Milli({to_ms:Int64})" +
		" AND agent_name IN (decodeURLComponent({agent_0:String}), decodeURLComponent({agent_1:String})) AND status IN (decodeURLComponent({status_0:String}))" +
		" AND NOT (waited_ms > 0)"
	if sql != want {
		t.Errorf("%s\nwant\n%s", sql, want)
	}
	wantParams := map[string]string{"from_ms": "1770000000000", "to_ms": "1770000060000", "agent_0": "x%27%20OR%201=1", "agent_1": "%5Cn", "status_0": "error"}
	if !maps.Equal(params, wantParams) {
		t.Errorf("%v, want %v", params, wantParams)
	}
	sql, _ = s.Where(Columns{"time": "began", "until": "ended"})
	if want := "ended >= fromUnixTimestamp64Milli({from_ms:Int64}) AND began <= fromUnixTimestamp64Milli({to_ms:Int64})"; sql != want {
		t.Errorf("%s\nwant\n%s", sql, want)
	}
	if got := s.Unused(columns); len(got) != 1 || got[0] != (Pair{"project", "p"}) {
		t.Errorf("unused: %v", got)
	}
	if sql, params := parse(t, "/").Where(columns); sql != "1" || len(params) != 0 {
		t.Errorf("%s %v", sql, params)
	}
	if strings.Contains(sql, "OR 1") {
		t.Error(sql)
	}
}

// TestHoursBehindTheClockChange: of two hours with one name the hour of now is the later one, when it is now.
func TestHoursBehindTheClockChange(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip(err)
	}
	before := time.Local
	time.Local = zone
	defer func() { time.Local = before }()
	now := time.Date(2026, 11, 1, 6, 30, 12, 5, time.UTC) // 1:30 EST; 1:30 EDT was an hour ago
	for from, want := range map[string]time.Time{
		"now/h": now.Truncate(time.Hour), "now/m": now.Truncate(time.Minute), "now/s": now.Truncate(time.Second),
		"now-1h/h": now.Truncate(time.Hour).Add(-time.Hour), "now/d": time.Date(2026, 11, 1, 4, 0, 0, 0, time.UTC),
	} {
		got, to, err := Range{From: from, To: from}.At(now)
		if err != nil || !got.Equal(want) || from == "now/h" && !to.Equal(want.Add(time.Hour-time.Millisecond)) {
			t.Errorf("%s is %s to %s, want from %s: %v", from, got, to, want, err)
		}
	}
}
