package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	b := Backoff{Min: time.Second, Max: 30 * time.Second}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		want *= time.Second
		if got := b.Next(); got < want/2 || got > want {
			t.Errorf("pause %d is %s, want %s to %s", i, got, want/2, want)
		}
	}
	for range 1000 {
		if got := b.Next(); got < 15*time.Second || got > 30*time.Second {
			t.Fatalf("pause %s", got)
		}
	}
	if b.Reset(); b.Next() > time.Second {
		t.Error("not reset")
	}
	if got := (&Backoff{Min: time.Second, Max: time.Millisecond}).Next(); got > time.Millisecond {
		t.Errorf("%s is above the limit", got)
	}
	if got := (&Backoff{}).Next(); got != 0 {
		t.Errorf("zero waits %s", got)
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if !Wait(t.Context(), time.Hour) || time.Since(begun) != time.Hour {
			t.Errorf("waited %s", time.Since(begun))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		begun = time.Now()
		if Wait(ctx, time.Hour) || time.Since(begun) != time.Minute {
			t.Errorf("waited %s", time.Since(begun))
		}
		if Wait(ctx, 0) {
			t.Error("a context that has ended still runs")
		}
	})
}

func TestParseAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0": 0, "-3": 0, "soon": 0, "99999999999999": 0,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second,
		"Fri, 02 Jan 2026 03:04:00 GMT": 0,
	} {
		if got := ParseAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
