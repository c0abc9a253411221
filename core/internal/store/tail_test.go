package store

import (
	"fmt"
	"strings"
	"testing"
)

// TestTailHasTheReason: the report of a crash is longer than the part that is kept, and its reason is its first line.
func TestTailHasTheReason(t *testing.T) {
	var short, long tail
	_, _ = fmt.Fprint(&short, "earshot-store: no\n")
	if got := short.String(); got != "earshot-store: no" {
		t.Errorf("%q", got)
	}
	_, _ = fmt.Fprint(&long, "SIGABRT: abort\n")
	for i := range 1000 {
		_, _ = fmt.Fprintf(&long, "goroutine %d\n", i)
	}
	_, _ = fmt.Fprint(&long, "rip 0x0\n")
	got := long.String()
	if !strings.HasPrefix(got, "SIGABRT: abort\n") || !strings.HasSuffix(got, "\nrip 0x0") || !strings.Contains(got, "bytes …") || len(got) > 2*tailPart+40 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
