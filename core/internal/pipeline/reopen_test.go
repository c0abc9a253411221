package pipeline_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
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
	for i := range int64(21) {
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
		if i == 20 { // it is not read again
			use(0, 3, true)
			continue
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
	if l := w.table.ledger["k20"]; l.Read != 3 || l.Messages != 3 {
		t.Errorf("the stream that was forgotten: %+v", l)
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
	for _, k := range sink.Known() {
		if k.Key == "k20" {
			r.t.Errorf("%+v was forgotten", k)
		}
	}
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

// saving is a source that has a new path and a new state of its stream before each line.
type saving struct {
	t     *testing.T
	lines int64
	was   []source.Known // when it began
	done  chan struct{}
}

func (r *saving) Drained() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *saving) Run(ctx context.Context, sink source.Sink) error {
	defer func() { close(r.done); <-ctx.Done() }()
	r.was = sink.Known()
	st, pos, err := sink.Open(ctx, source.ID{Key: "k", Origin: "/o", Anchor: 1_700_000_000e9, State: []byte("opened")}, func(int64) {})
	if err != nil {
		r.t.Error(err)
		return nil
	}
	for n := pos; n < r.lines; n++ {
		st.Save(source.ID{Key: "k", Origin: fmt.Sprint("/o", n), State: fmt.Append(nil, "state ", n)})
		b := &frame.Batch{}
		b.Append(frame.Frame{Pos: n, End: n + 1}, fmt.Appendf(nil, `{"n":%d,"run":"r","in":"s","kind":"user","text":"%03d","t":1700000000}`, n, n))
		if err := st.Deliver(ctx, b); err != nil {
			r.t.Error(err)
		}
	}
	return nil
}

// TestSavedIsKnown: a source finds the path and the state of its stream that it saved last, and messages that follow have the path.
func TestSavedIsKnown(t *testing.T) {
	var r *saving
	w := &world{t: t, dir: t.TempDir(), table: newTable(), attach: func(*pipeline.Feed) source.Source { return r }}
	for run := range int64(3) {
		r = &saving{t: t, lines: 4 * run, done: make(chan struct{})}
		w.run(nil)
		switch {
		case run == 0 && len(r.was) == 0:
		case run == 1 && len(r.was) == 1 && r.was[0].Origin == "/o" && string(r.was[0].State) == "opened" && r.was[0].Pos == 0:
		case run == 2 && len(r.was) == 1 && r.was[0].Origin == "/o3" && string(r.was[0].State) == "state 3" && r.was[0].Pos == 4 && r.was[0].Anchor == 1_700_000_000e9:
		default:
			t.Errorf("run %d finds %+v", run, r.was)
		}
	}
	for _, m := range w.table.messages {
		if n := m.Content.String(); n == "007" && m.Host.Origin != "/o7" {
			t.Errorf("message %s is of %s", n, m.Host.Origin)
		}
	}
	if len(w.table.messages) != 8 {
		t.Errorf("%d messages", len(w.table.messages))
	}
}

// TestDetachedSourceGoesOn has a source replaced while the sidecar runs, as a new configuration does: when Detach returns, what it delivered is with the
// exporters, the former stream takes nothing more, and the next source of that name goes on behind it.
func TestDetachedSourceGoesOn(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), table: newTable()}
	w.settings.Metrics = telemetry.New()
	w.during = func(p *pipeline.Pipeline) {
		batch := func(n int64) *frame.Batch {
			b := &frame.Batch{}
			b.Append(frame.Frame{Pos: n, End: n + 1}, fmt.Appendf(nil, `{"n":%d,"run":"r","in":"s","kind":"user","text":"%03d","t":1700000000}`, n, n))
			return b
		}
		for round := range int64(3) {
			feed, err := p.AddFeed("moved", "default", "notes", "", false)
			if err != nil {
				t.Error(err)
				return
			}
			st, pos, err := feed.Open(t.Context(), source.ID{Key: "k", Origin: "/o", Anchor: 1_700_000_000e9}, func(int64) {})
			if err != nil || pos != 4*round {
				t.Errorf("round %d begins at %d, %v", round, pos, err)
				return
			}
			for n := pos; n < pos+4; n++ {
				if err := st.Deliver(t.Context(), batch(n)); err != nil {
					t.Error(err)
				}
			}
			if err := feed.Detach(t.Context()); err != nil {
				t.Error(err)
			}
			if n := w.table.stored(); n != int(pos)+4 {
				t.Errorf("round %d: %d messages are stored", round, n)
			}
			if err := st.Deliver(t.Context(), batch(pos+4)); err != nil {
				t.Error(err)
			}
		}
		if _, err := p.AddFeed("moved", "default", "unknown", "", false); err == nil {
			t.Error("a source has a format without a decoder")
		}
	}
	w.run(nil)
	if l := w.table.ledger["k"]; l.Read != 12 || l.Messages != 12 || w.table.stored() != 12 {
		t.Errorf("%d messages, %+v", w.table.stored(), l)
	}
	if n := figures(t, w.settings.Metrics)["earshot_streams"]; n != 0 {
		t.Errorf("%v streams are open", n)
	}
}
