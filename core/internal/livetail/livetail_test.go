package livetail

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// taker takes frames and counts them.
type taker struct {
	source.Sink
	source.Stream
	frames int
}

func (k *taker) Open(context.Context, source.ID, func(int64)) (source.Stream, int64, error) {
	return k, 0, nil
}

func (k *taker) Deliver(_ context.Context, b *frame.Batch) error {
	k.frames += len(b.Frames)
	return nil
}

func batch(texts ...string) *frame.Batch {
	b := &frame.Batch{}
	for i, s := range texts {
		b.Append(frame.Frame{Kind: frame.Event, Name: "delta", At: int64(i + 1), Pos: int64(i)}, []byte(s))
	}
	return b
}

func open(t *testing.T, p *Hub, k *taker, name, format string) source.Stream {
	t.Helper()
	s, _, err := p.Sink(name, format, k).Open(t.Context(), source.ID{Origin: "/o/" + name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func watch(t *testing.T, p *Hub, dir string, query url.Values) (*json.Decoder, func()) {
	t.Helper()
	before := p.watching.Load()
	body, err := Watch(t.Context(), dir, query)
	if err != nil {
		t.Fatal(err)
	}
	for p.watching.Load() == before {
		<-time.After(time.Millisecond)
	}
	return json.NewDecoder(bufio.NewReader(body)), func() { _ = body.Close() }
}

func TestFramesAreShown(t *testing.T) {
	p, dir, k := &Hub{}, t.TempDir(), &taker{}
	s, err := Listen(p, t.TempDir(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, b := open(t, p, k, "quay", "legion"), open(t, p, k, "harbour", "agno")
	deliver := func(s source.Stream, texts ...string) {
		if err := s.Deliver(t.Context(), batch(texts...)); err != nil {
			t.Fatal(err)
		}
	}
	deliver(a, "nobody sees this")
	everything, end := watch(t, p, dir, nil)
	defer end()
	some, end2 := watch(t, p, dir, url.Values{"source": {"harbour"}, "format": {"agno"}, "match": {"tide"}})
	defer end2()
	deliver(a, `{"tide":1}`)
	deliver(b, "low water", "high tide", "\xff tide")
	want := func(d *json.Decoder, list ...string) {
		t.Helper()
		for _, w := range list {
			var l Line
			if err := d.Decode(&l); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(l.Source, " ", l.Format, " ", l.Origin, " ", l.Kind, " ", l.Name, " ", l.Pos, " ", l.Bytes, " ", l.Data, l.Base64); got != w {
				t.Errorf("got %q, want %q", got, w)
			}
		}
	}
	want(everything, `quay legion /o/quay event delta 0 10 {"tide":1}`, "harbour agno /o/harbour event delta 0 9 low water",
		"harbour agno /o/harbour event delta 1 9 high tide", "harbour agno /o/harbour event delta 2 6 /yB0aWRl")
	want(some, "harbour agno /o/harbour event delta 1 9 high tide", "harbour agno /o/harbour event delta 2 6 /yB0aWRl")
	if k.frames != 5 {
		t.Errorf("%d frames were delivered", k.frames)
	}
}

// TestSlowWatcherMisses has a watcher that does not read: it blocks nothing, and receives the
// number of frames that it missed.
func TestSlowWatcherMisses(t *testing.T) {
	p, k := &Hub{}, &taker{}
	me := &watcher{lines: make(chan Line, depth)}
	p.watchers = map[*watcher]struct{}{me: {}}
	p.watching.Add(1)
	s := open(t, p, k, "quay", "legion")
	for range depth + 10 {
		if err := s.Deliver(t.Context(), batch("x")); err != nil {
			t.Fatal(err)
		}
	}
	if len(me.lines) != depth || me.missed.Load() != 10 || k.frames != depth+10 {
		t.Errorf("%d lines, %d missed, %d delivered", len(me.lines), me.missed.Load(), k.frames)
	}
}

// TestNobodyRuns: without a sidecar, and after one that was killed.
func TestNobodyRuns(t *testing.T) {
	dir, sockets := t.TempDir(), t.TempDir()
	if _, err := Watch(t.Context(), dir, nil); !errors.Is(err, ErrNotRunning) {
		t.Error(err)
	}
	s, err := Listen(&Hub{}, sockets, dir)
	if err != nil {
		t.Fatal(err)
	}
	body, err := Watch(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	s.Close()
	_, _ = io.ReadAll(body) // who watches is let go
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := Watch(t.Context(), dir, nil); !errors.Is(err, ErrNotRunning) {
		t.Error(err)
	}
}
