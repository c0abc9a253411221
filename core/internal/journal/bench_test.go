package journal

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

func BenchmarkAppend(b *testing.B) {
	for _, streams := range []int{1, 1000} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			j, err := Open(Settings{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			recs := make([]source.Recording, streams)
			for i := range recs {
				if recs[i], err = j.Recorder("s").Begin(b.Context(), "f", source.ID{Key: fmt.Sprint(i)}); err != nil {
					b.Fatal(err)
				}
			}
			f := &frame.Frame{Kind: frame.Event, Name: "delta", Data: []byte(strings.Repeat("x", 300))}
			b.SetBytes(int64(len(f.Data)))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if err := recs[i%streams].Record(context.Background(), f); err != nil {
					b.Fatal(err)
				}
				i++
			}
			if err := recs[0].Sync(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// count is a sink that counts the bytes of its frames.
type count struct {
	mu   sync.Mutex
	n    int64
	want int64
	done chan struct{}
}

type counted struct{ *count }

func (c *count) Known() []source.Known          { return nil }
func (c *count) Forget(...string)               {}
func (c *count) Trouble(string, string, string) {}
func (c *count) Open(context.Context, source.ID, func(int64)) (source.Stream, int64, error) {
	return counted{c}, 0, nil
}
func (c counted) Save(source.ID)                           {}
func (c counted) Mark(int64, []byte)                       {}
func (c counted) Close(context.Context, bool) func() error { return func() error { return nil } }
func (c counted) Deliver(_ context.Context, b *frame.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += int64(len(b.Data)); c.n >= c.want {
		select {
		case <-c.done:
		default:
			close(c.done)
		}
	}
	b.Done()
	return nil
}

func BenchmarkReplay(b *testing.B) {
	for _, streams := range []int{1, 1000} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			j, err := Open(Settings{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			const size = 128 << 20
			data := []byte(strings.Repeat("x", 300))
			for i := 0; i < size; i += len(data) {
				r, err := j.Recorder("s").Begin(b.Context(), "f", source.ID{Key: fmt.Sprint(i / len(data) % streams)})
				if err != nil {
					b.Fatal(err)
				}
				if err := r.Record(b.Context(), &frame.Frame{Kind: frame.Event, Name: "delta", Data: data}); err != nil {
					b.Fatal(err)
				}
				if i == 0 || i+len(data) >= size {
					if err := r.Sync(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				c := &count{want: size, done: make(chan struct{})}
				ctx, cancel := context.WithCancel(b.Context())
				end := make(chan error, 1)
				go func() { end <- j.Reader("s", "f", nil).Run(ctx, c) }()
				<-c.done
				cancel()
				if err := <-end; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
