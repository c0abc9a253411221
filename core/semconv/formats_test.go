package semconv

import (
	"os"
	"testing"
)

// TestBundledFormatsAreKnown fails for a bundled decoder without an entry in formats.
func TestBundledFormatsAreKnown(t *testing.T) {
	dirs, err := os.ReadDir("../../plugins")
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, d := range dirs {
		if _, err := os.Stat("../../plugins/" + d.Name() + "/testdata"); err != nil {
			continue
		}
		known++
		if formats[d.Name()].model == unknown {
			t.Errorf("formats in formats.go has no model for %s: asked (also where the format names none) or answered", d.Name())
		}
	}
	if known != len(formats) {
		t.Errorf("%d decoders, %d formats", known, len(formats))
	}
}
