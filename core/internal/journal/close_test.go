package journal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/segment"
)

// slowDisk needs 20 ms for every sync, and never fails.
type slowDisk struct{ lazyDisk }

func (d slowDisk) Open(path string) (segment.File, error) {
	f, err := d.lazyDisk.Open(path)
	return slowFile{f}, err
}

type slowFile struct{ segment.File }

func (slowFile) Sync() error {
	time.Sleep(20 * time.Millisecond)
	return nil
}

// TestCloseWaitsForASlowDisk closes a journal with a long backlog: Close aborts when the disk
// fails, not when it is slow.
// TestStreamsEndInOrder has a stream end before the next one begins, as they were recorded: a request that is sent again
// after a failure is another one while the first is still open.
func TestStreamsEndInOrder(t *testing.T) {
	dir := t.TempDir()
	j := open(t, still(t, dir))
	var want []string
	for i := range 50 {
		name := fmt.Sprintf("%02d", i)
		r := begin(t, j, name)
		put(t, r, "x")
		closed(t, r)
		want = append(want, name, name+" ends")
	}
	j.mustClose(t)
	j, k := open(t, still(t, dir)), newSink(t)
	drain(t, j, k)
	j.mustClose(t)
	for i := range k.order {
		k.order[i] = k.order[i][strings.LastIndexByte(k.order[i], '/')+1:]
	}
	if !slices.Equal(k.order, want) {
		t.Errorf("order %q, want %q", k.order, want)
	}
}

func TestCloseWaitsForASlowDisk(t *testing.T) {
	const frames = 150 // a segment each
	s := still(t, t.TempDir())
	s.SegmentSize, s.disk = 4<<10, slowDisk{}
	j := open(t, s)
	r := begin(t, j, "a")
	for range frames {
		put(t, r, strings.Repeat("x", 4<<10))
	}
	closed(t, r)
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	k := newSink(t)
	s.disk = lazyDisk{}
	drain(t, open(t, s), k)
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.streams[k.names("a")[0]].frames); n != frames {
		t.Errorf("%d frames of %d", n, frames)
	}
}

// TestStreamThatIsAwaited has a stream that cannot be closed yet: it is closed again later,
// blocks no other stream meanwhile, and can be delivered again; its segments stay until it
// is closed.
func TestStreamThatIsAwaited(t *testing.T) {
	s := small(t, t.TempDir())
	s.reclose, s.SegmentSize = 20*time.Millisecond, 1<<10
	j := open(t, s)
	a := begin(t, j, "a")
	put(t, a, "one")
	put(t, a, "two")
	closed(t, a)
	k := newSink(t)
	k.awaits = 1 << 20
	r, stop := follow(t, j, k)
	defer stop()
	poll(t, "drained, although it is not closed", r.Drained)
	b := begin(t, j, "b") // another segment
	put(t, b, strings.Repeat("x", 2<<10))
	k.until("a second try", func() bool { return k.awaits < 1<<20-2 })
	if n := len(files(t, s.Dir, "seg")); n < 2 {
		t.Errorf("%d segments: what may be delivered again is gone", n)
	}
	k.mu.Lock()
	of := k.streams[k.names("a")[0]]
	of.frames, of.next, of.again = nil, 0, true
	k.safe[of.id.Key] = taken{}
	k.mu.Unlock()
	of.rewind(0)
	k.until("delivered again", func() bool { return len(of.frames) == 2 && !of.closed })
	k.mu.Lock()
	k.awaits = 0
	k.mu.Unlock()
	k.until("closed", func() bool {
		return of.closed && slices.Equal([]string{"one", "two"}, []string{string(of.frames[0].Data), string(of.frames[1].Data)})
	})
	of.rewind(0) // too late: the stream has ended
	r.inbox.retry(r.j.streams.number)
	poll(t, "drained at the end", r.Drained)
}

// TestCloseEndsWhatWaits has a disk that hangs, and a record that waits for room: Close ends it at once.
func TestCloseEndsWhatWaits(t *testing.T) {
	d := &brokenDisk{gate: make(chan struct{}), waiting: make(chan struct{}, 1)}
	s := still(t, t.TempDir())
	s.disk, s.MaxPending = d, 1000
	j := open(t, s)
	r := begin(t, j, "a")
	put(t, r, strings.Repeat("x", 900))
	<-d.waiting
	waits := make(chan error, 1)
	go func() { waits <- r.Record(t.Context(), frameOf(strings.Repeat("y", 900))) }()
	select {
	case err := <-waits:
		t.Fatalf("there was room: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	ends := make(chan error, 1)
	go func() { ends <- j.Close() }()
	if err := <-waits; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	close(d.gate)
	if err := <-ends; err != nil {
		t.Error(err)
	}
}

// TestCloseTriesForAWhile closes a journal whose disk fails, and works again: nothing is lost. Meanwhile writes are retried at growing intervals, and the log has one line of it.
func TestCloseTriesForAWhile(t *testing.T) {
	var log bytes.Buffer
	d := &brokenDisk{write: syscall.EIO}
	s := still(t, t.TempDir())
	s.disk, s.retry, s.Logger = d, 200*time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
	j := open(t, s)
	began := time.Now()
	put(t, begin(t, j, "a"), "x")
	poll(t, "it fails", func() bool { return j.Stats().Failures > 0 })
	if !strings.Contains(log.String(), "journal cannot write") {
		t.Error("it is not said at once")
	}
	time.Sleep(50 * time.Millisecond)
	if n, most := j.Stats().Failures, 1+int64(time.Since(began)/(s.retry/2)); n > most {
		t.Errorf("it was tried %d times at once", n)
	}
	ends := make(chan error, 1)
	go func() { ends <- j.Close() }()
	poll(t, "it fails again", func() bool { return j.Stats().Failures > 1 })
	d.set(func() { d.write = nil })
	if err := <-ends; err != nil || d.files != 0 {
		t.Errorf("%v, %d files are open", err, d.files)
	}
	for _, line := range []string{"journal cannot write", "journal writes again"} {
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("%q is said %d times", line, n)
		}
	}
}
