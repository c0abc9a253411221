package agno

import (
	"testing"

	"github.com/earshot-dev/earshot/core/decoder/decodertest"
)

func TestConformance(t *testing.T) { decodertest.Run(t, New()) }

func FuzzDecode(f *testing.F) { decodertest.Fuzz(f, New()) }

func BenchmarkCases(b *testing.B) { decodertest.Bench(b, New()) }
