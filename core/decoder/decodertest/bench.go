package decodertest

import (
	"os"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/frame"
)

// Bench decodes every case of ./testdata in this process, over and over: each
// time with a new decoder, in one batch, as the SDK does.
func Bench(b *testing.B, factory decoder.Factory) {
	b.Helper()
	cases, err := conformance.Load(os.DirFS(dir))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range cases {
		b.Run(c.Name, func(b *testing.B) {
			var size int64
			for i := range c.Frames {
				size += int64(len(c.Frames[i].Data))
			}
			b.SetBytes(size)
			b.ReportAllocs()
			var out decoder.Output
			for b.Loop() {
				if err := once(factory, c.Stream, c.Frames, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(c.Frames)), "frames/op")
		})
	}
}

func once(factory decoder.Factory, s decoder.Stream, frames []frame.Frame, out *decoder.Output) error {
	d, err := factory.New(s)
	if err != nil {
		return err
	}
	out.Reset()
	for i := range frames {
		out.Begin(int32(i))
		if err := d.Decode(&frames[i], out); err != nil {
			return err
		}
	}
	return d.Flush(out)
}
