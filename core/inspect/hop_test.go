package inspect

import (
	"testing"
	"time"
)

// TestHopText: the time of the server has that of the transport where one side was recorded, and the text names both.
func TestHopText(t *testing.T) {
	for want, h := range map[string]Hop{
		"queue 250ms · server and transport 2.0s · return 100ms · linked by native_id": {Link: "native_id", Queue: 250 * time.Millisecond, Server: 2 * time.Second, Return: 100 * time.Millisecond},
		"queue 250ms · transport 500ms · server 1.5s · linked by native_id":            {Link: "native_id", Queue: 250 * time.Millisecond, Transport: 500 * time.Millisecond, Server: 1500 * time.Millisecond},
	} {
		if got := h.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
