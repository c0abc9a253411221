package macro

import (
	"strings"
	"testing"
	"time"
)

func query() Query {
	return Query{
		From: time.UnixMilli(1700000000123), To: time.UnixMilli(1700003600999), Interval: 90 * time.Second,
		Variables: map[string]Value{
			"all": {All: true, Items: []string{"a", "b"}}, "two": Of("x", "it's"), "one": Of("7"), "none": Of(""), "empty": {}, "box": Text(`x\')`),
		},
	}
}

func TestExpand(t *testing.T) {
	for in, want := range map[string]string{
		"SELECT 1":                                                            "SELECT 1",
		"$__fromTime, $__toTime":                                              "toDateTime(1700000000), toDateTime(1700003600)",
		"$__fromTime_ms $__toTime_ms":                                         "fromUnixTimestamp64Milli(1700000000123) fromUnixTimestamp64Milli(1700003600999)",
		"$__timeFilter(ts)":                                                   "ts >= toDateTime(1700000000) AND ts <= toDateTime(1700003600)",
		"$__timeFilter_ms( t.ts )":                                            "t.ts >= fromUnixTimestamp64Milli(1700000000123) AND t.ts <= fromUnixTimestamp64Milli(1700003600999)",
		"$__timeInterval(f(a, b))":                                            "toStartOfInterval(toDateTime(f(a, b)), INTERVAL 90 second)",
		"$__timeInterval(ts)":                                                 "toStartOfInterval(toDateTime(ts), INTERVAL 90 second)",
		"$__timeInterval_ms(ts)":                                              "toStartOfInterval(toDateTime64(ts, 3), INTERVAL 90000 millisecond)",
		"x / $__interval_s":                                                   "x / 90",
		"c IN (${two:singlequote})":                                           `c IN ('x','it\'s')`,
		"c > ${one} AND c > $one":                                             "c > 7 AND c > 7",
		"c IN (${two:percentencode}), ${box:percentencode}":                   "c IN (%7Bx%2Cit%27s%7D), x%5C%27%29",
		"${none:singlequote} = ''":                                            "'' = ''",
		"${empty:singlequote} = ''":                                           "'' = ''",
		"$__conditionalAll(c IN (${all:singlequote}), $all)":                  "1=1",
		"$__conditionalAll(c IN (${none:singlequote}), $none)":                "1=1",
		"$__conditionalAll(c IN (${two:singlequote}), $two) AND 1":            `c IN ('x','it\'s') AND 1`,
		"$__conditionalAll(f(a, concat('(', b, ')')) = '$one', $one)":         "f(a, concat('(', b, ')')) = '7'",
		"$__conditionalAll(a IN ($one), $one) $__conditionalAll(b = 1, $all)": "a IN (7) 1=1",
		"$__conditionalAll(concat('(', b) = 'x', $one)":                       "", // the plugin's parser gets lost as well
		"$__conditionalAll(a = 1)":                                            "", "$__conditionalAll(a = 1, $gone)": "", "c = ${two}": "", "c = ${two:csv}": "",
		"c = $gone": "", "c = ${gone:singlequote}": "", "$__timeGroup(ts, 5m)": "", "$__timeFilter()": "", "$__timeFilter(a, b)": "", "$__timeFilter(a": "", "$__fromTime(ts)": "",
	} {
		got, err := query().Expand(in)
		if want == "" {
			if err == nil || !strings.HasPrefix(err.Error(), "macro: ") {
				t.Errorf("%s: got %q, error %v", in, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s:\n got %q, error %v\nwant %q", in, got, err, want)
		}
	}
}

func TestNoIntervalIsLessThanASecond(t *testing.T) {
	q := query()
	q.Interval = 200 * time.Millisecond
	got, err := q.Expand("$__timeInterval(ts) $__interval_s $__timeInterval_ms(ts)")
	want := "toStartOfInterval(toDateTime(ts), INTERVAL 1 second) 1 toStartOfInterval(toDateTime64(ts, 3), INTERVAL 200 millisecond)"
	if err != nil || got != want {
		t.Errorf("got %q, error %v", got, err)
	}
}
