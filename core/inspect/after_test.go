package inspect

import (
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "+0ms", 61 * time.Second: "+1m01s", -57 * time.Second: "−57s"} {
		if got := after(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
