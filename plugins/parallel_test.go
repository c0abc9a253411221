package plugins_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/plugins"
)

// TestDecodersShareNothing decodes the cases of every bundled decoder in several goroutines at a time, as a process
// with several lanes does. A decoder belongs to one goroutine, so what they could share, and the race detector
// would see, is of their package or of the SDK. The tests of each decoder need it no more.
func TestDecodersShareNothing(t *testing.T) {
	bundled := plugins.Bundled()
	for _, format := range slices.Sorted(maps.Keys(bundled)) {
		t.Run(format, func(t *testing.T) {
			cases, err := conformance.Load(os.DirFS(filepath.Join(format, "testdata")))
			if err != nil {
				t.Fatal(err)
			}
			factory := bundled[format]()
			var lanes sync.WaitGroup
			for range 3 {
				lanes.Go(func() {
					for _, c := range cases {
						got, err := conformance.Golden(t.Context(), conformance.NewLocal(factory), c)
						if err != nil || !bytes.Equal(got, c.Want) {
							t.Errorf("%s: %v, or other messages than alone", c.Name, err)
						}
					}
				})
			}
			lanes.Wait()
		})
	}
}
