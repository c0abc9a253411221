package spec

import (
	"math"
	"testing"
	"testing/quick"
	"time"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "5s": 5 * time.Second, "500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute,
		"168h": 168 * time.Hour, "-1s": -time.Second, "1.5h": 90 * time.Minute, "10us": 10 * time.Microsecond, "7ns": 7,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%q: %v, %v; want %v", text, time.Duration(d), err, want)
		}
	}
	for _, text := range []string{"", "5", "s", "5 s", "5d", "1m 5s", "999999999h", "5S"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: parsed as %v", text, d)
		}
	}
	for _, text := range []string{"0s", "5s", "500ms", "90m", "168h", "2160h", "100us", "1ns", "-5s"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != text {
			t.Errorf("%q came back as %q, %v", text, d, err)
		}
	}
	back := func(d Duration) bool {
		var again Duration
		text, _ := d.MarshalText()
		return again.UnmarshalText(text) == nil && again == d
	}
	if err := quick.Check(back, nil); err != nil {
		t.Error(err)
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "0B": 0, "1B": 1, "512B": 512, "1KiB": 1024, "64MiB": 64 << 20, "4GiB": 4 << 30, "2TiB": 2 << 40,
		"1KB": 1000, "10GB": 10e9, "3TB": 3e12, "1.5GiB": 3 << 29, "0.5KB": 500, "5 MiB": 5 << 20,
		"9223372036854775807B": math.MaxInt64,
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || int64(s) != want {
			t.Errorf("%q: %d, %v; want %d", text, int64(s), err, want)
		}
	}
	for _, text := range []string{
		"", "5", "00", "-5MiB", "+5MiB", "MiB", "B", "5mib", "5 mb", "5M", "5Gi", "1e3KB", "0x10KB", "1/2KB", "1.2.3KB", ".KB",
		"0.3B", "9223372036854775808B", "9999999999TiB", "0.00000000000000000000000000000000001KB", "1 0KB", "5KiB ",
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: parsed as %d", text, int64(s))
		}
	}
	for _, text := range []string{"0", "512B", "64MiB", "4GiB", "10GB", "20MB", "1000KiB", "1500B", "9223372036854775807B"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%q came back as %q, %v", text, s, err)
		}
	}
	back := func(n int64) bool {
		s, again := Size(n&math.MaxInt64), Size(-1)
		text, _ := s.MarshalText()
		return again.UnmarshalText(text) == nil && again == s
	}
	if err := quick.Check(back, nil); err != nil {
		t.Error(err)
	}
}
