package file

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// BenchmarkRead reads the lines of 50 MB of Legion traffic in 20 files, from the page
// cache: the bytes alone, in reads as large as the source's and into one buffer, and
// with the source, which watches the files, buffers and cuts. Cut is the cutting alone, of
// the same lines in memory.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	if _, err := gen.Legion(gen.Options{Bytes: 50e6, Sessions: 20, Seed: 1}).Write(dir); err != nil {
		b.Fatal(err)
	}
	pattern := filepath.Join(dir, "sessions/*/messages.jsonl")
	paths, err := filepath.Glob(pattern)
	if err != nil {
		b.Fatal(err)
	}
	const room = 256 << 10
	b.Run("bytes", func(b *testing.B) {
		b.ReportAllocs()
		buf, size := make([]byte, room), int64(0)
		for b.Loop() {
			for _, path := range paths {
				n, err := readFile(path, buf)
				if err != nil {
					b.Fatal(err)
				}
				size += n
			}
		}
		b.SetBytes(size / int64(b.N))
	})
	b.Run("source", func(b *testing.B) {
		b.ReportAllocs()
		var sink countingSink
		for b.Loop() {
			src, err := New(Settings{Name: "x", Paths: []string{pattern}})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- src.Run(ctx, &sink) }()
			for tick := time.NewTicker(time.Millisecond); !src.Drained(); <-tick.C {
			}
			cancel()
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(sink.bytes.Load() / int64(b.N))
		b.ReportMetric(float64(sink.frames.Load())/float64(b.N), "records/op")
	})
	b.Run("cut", func(b *testing.B) {
		b.ReportAllocs()
		data, err := os.ReadFile(paths[0])
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(data)))
		var frames []frame.Frame
		records := 0
		for b.Loop() {
			records = 0
			for p := (cursor{}); p.line < int64(len(data)); {
				rest := data[p.line:]
				frames, p = p.cut(frames[:0], rest[:min(len(rest), room)], 64<<20, 1)
				if len(frames) == 0 {
					break
				}
				records += len(frames)
			}
		}
		b.ReportMetric(float64(records), "records/op")
	})
}

func readFile(path string, buf []byte) (size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for {
		n, err := f.Read(buf)
		size += int64(n)
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}

// countingSink takes everything and keeps nothing.
type countingSink struct{ frames, bytes atomic.Int64 }

func (k *countingSink) Known() []source.Known { return nil }
func (k *countingSink) Open(context.Context, source.ID, func(int64)) (source.Stream, int64, error) {
	return k, 0, nil
}
func (k *countingSink) Forget(...string)               {}
func (k *countingSink) Trouble(string, string, string) {}
func (k *countingSink) Deliver(_ context.Context, b *frame.Batch) error {
	k.frames.Add(int64(len(b.Frames)))
	k.bytes.Add(b.End() - b.Frames[0].Pos)
	b.Done()
	return nil
}
func (k *countingSink) Save(source.ID)                           {}
func (k *countingSink) Mark(int64, []byte)                       {}
func (k *countingSink) Close(context.Context, bool) func() error { return func() error { return nil } }
