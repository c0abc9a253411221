package mutants

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/decoder/decodertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The reference decoder passes each check.
func TestReference(t *testing.T) { decodertest.Run(t, Reference{}) }

func FuzzReference(f *testing.F) { decodertest.Fuzz(f, Reference{}) }

func BenchmarkReference(b *testing.B) { decodertest.Bench(b, Reference{}) }
