package grok

import (
	"testing"

	"github.com/earshot-dev/earshot/core/decoder/decodertest"
)

func TestDecoder(t *testing.T) { decodertest.Run(t, New()) }

func FuzzDecode(f *testing.F) { decodertest.Fuzz(f, New()) }

func BenchmarkDecode(b *testing.B) { decodertest.Bench(b, New()) }
