package pipeline_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// returning is a source whose stream ends, and goes on before the checkpoint has that it ended, as the stream of a file
// that is rotated and compressed at once.
type returning struct {
	t    *testing.T
	done chan struct{}
}

func (r *returning) Drained() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *returning) Run(ctx context.Context, sink source.Sink) error {
	defer func() { close(r.done); <-ctx.Done() }()
	for i := range int64(20) {
		key := fmt.Sprint("k", i)
		use := func(wants, to int64, forget bool) {
			st, pos, err := sink.Open(ctx, source.ID{Key: key, Origin: "/o"}, func(int64) {})
			if err != nil || pos != wants {
				r.t.Errorf("%s is opened at %d, %v, want %d", key, pos, err, wants)
				return
			}
			b := &frame.Batch{}
			for n := pos; n < to; n++ {
				b.Append(frame.Frame{Pos: n, End: n + 1}, fmt.Appendf(nil, `{"n":%d,"run":"r%d","kind":"user","text":"%03d","t":1700000000}`, n, i, n))
			}
			if len(b.Frames) > 0 {
				if err := st.Deliver(ctx, b); err != nil {
					r.t.Error(err)
				}
			}
			if err := st.Close(ctx, forget); err != nil {
				r.t.Error(err)
			}
		}
		use(0, 2, false)
		use(2, 2, false)
		use(2, 5, false)
		if i%2 == 0 {
			use(5, 5, true)
			use(0, 7, false)
		}
	}
	return nil
}

// TestReopenedBeforeTheCommit: the account of a stream goes on from where it ended, and only the last one is written.
func TestReopenedBeforeTheCommit(t *testing.T) {
	r := &returning{t: t, done: make(chan struct{})}
	w := &world{t: t, dir: t.TempDir(), table: newTable(), attach: func(*pipeline.Feed) source.Source { return r }}
	w.settings.FlushInterval = 200 * time.Millisecond
	w.run(nil)
	r.done = make(chan struct{})
	for i := range 20 {
		want := int64(5)
		if i%2 == 0 {
			want = 7
		}
		if l := w.table.ledger[fmt.Sprint("k", i)]; l.Read != want || l.Decoded != want || l.Frames != want || l.Messages != want {
			t.Errorf("k%d: read %d, decoded %d, %d frames, %d messages, want %d", i, l.Read, l.Decoded, l.Frames, l.Messages, want)
		}
	}
	again := &reader{t: t, done: make(chan struct{})}
	w.attach = func(*pipeline.Feed) source.Source { return again }
	w.run(nil)
}

// reader opens the streams of returning after a restart.
type reader struct {
	t    *testing.T
	done chan struct{}
}

func (r *reader) Drained() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *reader) Run(ctx context.Context, sink source.Sink) error {
	defer func() { close(r.done); <-ctx.Done() }()
	for i := range 20 {
		want := int64(5)
		if i%2 == 0 {
			want = 7
		}
		st, pos, err := sink.Open(ctx, source.ID{Key: fmt.Sprint("k", i), Origin: "/o"}, func(int64) {})
		if err != nil || pos != want {
			r.t.Errorf("k%d goes on at %d, %v, want %d", i, pos, err, want)
			continue
		}
		if err := st.Close(ctx, false); err != nil {
			r.t.Error(err)
		}
	}
	return nil
}
