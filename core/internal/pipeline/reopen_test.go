package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
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
			if err := st.Close(ctx, forget)(); err != nil {
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
	if l := w.table.ledger["k20"]; l.Read != 3 || l.Messages != 3 || len(w.table.letters) > 0 {
		t.Errorf("the stream that was forgotten: %+v, %q", l, w.table.deadLetters())
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
		if err := st.Close(ctx, false)(); err != nil {
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

// TestDetachedSourceGoesOn has a source replaced while the sidecar runs, as a new configuration does: when Detach returns, its frames are with the
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

// vanishing is a source whose file has three lines, and is gone after a restart.
type vanishing struct {
	t    *testing.T
	gone bool
	feed *pipeline.Feed
	done chan struct{}
}

func (r *vanishing) Drained() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *vanishing) Run(ctx context.Context, sink source.Sink) error {
	defer func() { close(r.done); <-ctx.Done() }()
	r.feed.SetRedactor(starred{})
	r.feed.SetServer("quay:80")
	st, pos, err := sink.Open(ctx, source.ID{Key: "k", Origin: "/o", Anchor: 1_700_000_000e9}, func(int64) {})
	if err != nil || (pos == 1) != r.gone { // where the first snapshot is
		r.t.Errorf("opened at %d, %v", pos, err)
		return nil
	}
	if r.gone {
		if err := st.Close(ctx, true)(); err != nil {
			r.t.Error(err)
		}
		return nil
	}
	for n, line := range []string{`{"n":1,"run":"r","kind":"user","text":"a secret","t":1700000000}`, `{"secret`, `{"kind":"a strange secret"}`} {
		b := &frame.Batch{}
		b.Append(frame.Frame{Pos: int64(n), End: int64(n) + 1, Clean: n == 0}, []byte(line))
		if err := st.Deliver(ctx, b); err != nil {
			r.t.Error(err)
		}
	}
	return nil
}

// starred is a redactor that hides one word.
type starred struct{}

func (starred) String(s string) string    { return strings.ReplaceAll(s, "secret", "***") }
func (r starred) Payload(b []byte) []byte { return []byte(r.String(string(b))) }
func (r starred) Message(m *msg.Message, clean []byte) {
	if clean == nil {
		m.Content = msg.Plain(r.String(m.Content.String()))
	}
}

// TestForgottenWithoutItsState: the state of a decoder since its last snapshot is lost with a stream that is gone after a restart: a dead letter says how
// much. Each row is redacted, and has the source's server.
func TestForgottenWithoutItsState(t *testing.T) {
	var r *vanishing
	w := &world{t: t, dir: t.TempDir(), table: newTable(), attach: func(f *pipeline.Feed) source.Source { r.feed = f; return r }}
	w.settings.SnapEvery = time.Hour
	stop := make(chan struct{})
	r = &vanishing{t: t, done: make(chan struct{})}
	w.during = func(p *pipeline.Pipeline) {
		<-r.done
		eventually(t, func() bool { return p.Progress().Frames == 3 && p.Drained(t.Context()) })
		close(stop)
	}
	w.run(stop)
	want := []string{`decode invalid_json {"***`}
	if got := w.table.deadLetters(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, m := range w.table.messages {
		if text := m.Content.String(); text != "a secret" && text != `{"kind":"a strange ***"}` || m.Host.Server != "quay:80" {
			t.Errorf("message %q of %s", text, m.Host.Server)
		}
	}
	w.during, r = nil, &vanishing{t: t, done: make(chan struct{}), gone: true}
	w.run(nil)
	for _, l := range w.table.letters {
		if l.Reason == msg.ReasonStateLost {
			want = append(want, "read state_lost ")
			if !strings.HasPrefix(l.Detail, "2 bytes ") {
				t.Errorf("lost: %s", l.Detail)
			}
		}
	}
	if got := w.table.deadLetters(); len(want) != 2 || !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
