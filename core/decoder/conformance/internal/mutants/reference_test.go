package mutants

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/decoder/decodertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The good decoder passes everything.
func TestParrot(t *testing.T) { decodertest.Run(t, Reference{}) }

func FuzzParrot(f *testing.F) { decodertest.Fuzz(f, Reference{}) }

func BenchmarkParrot(b *testing.B) { decodertest.Bench(b, Reference{}) }
