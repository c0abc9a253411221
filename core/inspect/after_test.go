package inspect

import (
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "+0ms", 61 * time.Second: "+1m01s", -57 * time.Second: "−57s", -300 * time.Microsecond: "+0ms"} {
		if got := after(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

// TestSpan: a duration is rounded to the unit that it is shown in: no minute is "60s", no difference "+0ms".
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 999900 * time.Microsecond: "999ms", time.Second: "1.0s", 9940 * time.Millisecond: "9.9s", 9960 * time.Millisecond: "10s", 59400 * time.Millisecond: "59s",
		59600 * time.Millisecond: "1m00s", 61900 * time.Millisecond: "1m01s", 47*time.Hour + 59*time.Minute: "47h59m", 50 * time.Hour: "2d02h", -3 * time.Second: "-3.0s",
	} {
		if got := Span(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	for ms, want := range map[float64]string{0: "0", 0.4: "0", -0.9: "0", 1: "+1ms", -1500: "−1.5s", 59_700: "+1m00s"} {
		if got := Signed(ms); got != want {
			t.Errorf("%g ms: %q, want %q", ms, got, want)
		}
	}
}

// TestPercent: a part that is not all of a whole is not 100 % of it.
func TestPercent(t *testing.T) {
	for want, of := range map[string][2]int64{"0%": {0, 10}, "<1%": {1, 1000}, "99%": {994, 1000}, ">99%": {996, 1000}, "100%": {1000, 1000}} {
		if got := percent(of[0], of[1]); got != want {
			t.Errorf("%d of %d is %s, want %s", of[0], of[1], got, want)
		}
	}
}
