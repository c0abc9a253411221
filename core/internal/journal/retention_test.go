package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// TestSyncWaits has an fsync that hangs: Sync returns after it.
func TestSyncWaits(t *testing.T) {
	d := &brokenDisk{gate: make(chan struct{}), waiting: make(chan struct{}, 1)}
	s := small(t, t.TempDir())
	s.disk = d
	j := open(t, s)
	r := begin(t, j, "a")
	put(t, r, "x")
	done := make(chan error, 1)
	go func() { done <- r.Sync(t.Context()) }()
	<-d.waiting // the flusher is in fsync
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Sync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	select {
	case err := <-done:
		t.Fatalf("Sync returned before the fsync: %v", err)
	default:
	}
	if n := j.Stats().Bytes; n != 0 {
		t.Errorf("%d bytes are shown to readers before they are synced", n)
	}
	close(d.gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := r.Sync(t.Context()); err != nil { // nothing to wait for
		t.Error(err)
	}
}

// TestGroupCommit has a hundred goroutines wait in Sync: they share a few fsyncs.
func TestGroupCommit(t *testing.T) {
	d := &brokenDisk{gate: make(chan struct{}), waiting: make(chan struct{}, 1)}
	s := small(t, t.TempDir())
	s.disk, s.FsyncInterval = d, time.Hour
	j := open(t, s)
	first := begin(t, j, "first")
	put(t, first, "x")
	<-d.waiting // while the first is being synced, the others come
	const n = 100
	var wg sync.WaitGroup
	for i := range n {
		r := begin(t, j, fmt.Sprint(i))
		put(t, r, "y")
		wg.Go(func() {
			if err := r.Sync(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	before := d.syncs
	close(d.gate)
	wg.Wait()
	d.set(func() {
		if got := d.syncs - before; got > 2 {
			t.Errorf("%d fsyncs for %d who waited", got, n)
		}
	})
}

// TestFsyncInterval records without Sync: the journal syncs at once after a pause, and then
// every FsyncInterval.
func TestFsyncInterval(t *testing.T) {
	d := &brokenDisk{}
	s := small(t, t.TempDir())
	s.disk, s.FsyncInterval, s.MaxPending = d, time.Hour, 10_000
	j := open(t, s)
	r := begin(t, j, "a")
	sync_(t, r) // nothing to wait for
	put(t, r, "x")
	poll(t, "the first is durable", func() bool { return j.Stats().Pending == 0 })
	put(t, r, "x")
	sync_(t, r)
	n := j.Stats().Syncs
	write := func() {
		for range 20 {
			put(t, r, "y")
			time.Sleep(time.Millisecond / 2)
		}
	}
	write()
	if got := j.Stats(); got.Syncs != n || got.Pending == 0 {
		t.Errorf("%d syncs, then %d; %d bytes pending", n, got.Syncs, got.Pending)
	}
	sync_(t, r)
	put(t, r, strings.Repeat("z", 6000)) // half of MaxPending
	poll(t, "the long one is durable", func() bool { return j.Stats().Pending == 0 })
	write()
	j.mustClose(t) // makes the rest durable
	if got := j.Stats(); got.Pending != 0 {
		t.Errorf("%d bytes pending after Close", got.Pending)
	}
}

// TestSegmentsGoWhenSafe advances the checkpoint: a segment is removed when every stream is
// safe past it, and not before.
func TestSegmentsGoWhenSafe(t *testing.T) {
	dir := t.TempDir()
	s := small(t, dir)
	s.SegmentSize, s.sweep = 512, time.Hour // by hand here
	j, k := open(t, s), newSink(t)
	k.auto = false
	reader, stop := follow(t, j, k)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Reader("t", "f", nil).Run(ended, newSink(t)); err != nil { // another source is taken away
		t.Error(err)
	}
	long := begin(t, j, "long")
	for i := range 20 {
		r := begin(t, j, "")
		put(t, r, strings.Repeat(fmt.Sprint(i%10), 200))
		closed(t, r)
		if i == 3 {
			put(t, long, "early")
		}
	}
	sync_(t, long)
	poll(t, "drained", reader.Drained)
	n := len(files(t, dir, "seg"))
	if n < 10 {
		t.Fatalf("%d segments", n)
	}
	// Everything is read, nothing is safe.
	j.sweep(t)
	if got := len(files(t, dir, "seg")); got != n {
		t.Fatalf("%d of %d segments are left before anything was safe", got, n)
	}
	// One stream in the middle is not safe.
	k.commit()
	k.mu.Lock()
	var middle string
	for _, key := range k.names("") {
		if string(k.safe[key].frames[0].Data[:1]) == "5" {
			middle = key
			break
		}
	}
	held := k.safe[middle]
	held.closed = false
	k.safe[middle] = held
	k.mu.Unlock()
	for range 2 {
		j.sweep(t)
		if got := len(files(t, dir, "seg")); got >= n || got < 10 {
			t.Errorf("%d segments of %d", got, n)
		}
	}
	put(t, long, strings.Repeat("l", 600)) // in a segment of its own
	sync_(t, long)
	poll(t, "drained", reader.Drained)
	k.commit()
	j.sweep(t)
	if seg, idx := files(t, dir, "seg"), files(t, dir, "idx"); len(seg) != 1 || len(idx) != 0 {
		t.Errorf("segments %q, indexes %q", seg, idx)
	}
	// The checkpoint remembers nothing but the stream that continues.
	if known := k.Known(); len(known) != 1 || !strings.HasPrefix(known[0].Key, "long~") {
		t.Errorf("known: %v", known)
	}
	put(t, long, "and on")
	sync_(t, long)
	poll(t, "drained", reader.Drained)
	stop()
	// Nor does the reader.
	if n := []int{len(reader.tails), len(reader.here), len(reader.inbox.finished)}; !slices.Equal(n, []int{1, 1, 0}) {
		t.Errorf("the reader has %d streams, %d in the segment, %d that ended", n[0], n[1], n[2])
	}
	// And it continues, though the segment that it was in is gone.
	j.mustClose(t)
	k.crash()
	j = open(t, s)
	put(t, begin(t, j, "long"), "late")
	drain(t, j, k)
	if got := k.content("long"); !slices.Equal(got, []string{"early", strings.Repeat("l", 600), "and on", "late"}) {
		t.Errorf("long: %q", got)
	}
}

// TestWhatNobodyReadsStays: the segments of a source and format that has no reader are not removed, although another reader of the source runs.
func TestWhatNobodyReadsStays(t *testing.T) {
	s := still(t, t.TempDir())
	s.SegmentSize = 1 // a segment for each record
	j, k := open(t, s), newSink(t)
	run := func(format string) (stop func()) {
		r := j.Reader("s", format, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx, k) }()
		poll(t, "drained", r.Drained)
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	for _, format := range []string{"g", "f"} {
		r, err := j.Recorder("s").Begin(t.Context(), format, source.ID{Key: format})
		if err != nil {
			t.Fatal(err)
		}
		put(t, r, "x")
		put(t, r, "y")
		sync_(t, r)
	}
	stops := []func(){run("g"), run("f")}
	stops[0]()
	if j.sweep(t); j.Stats().Segments != 4 {
		t.Errorf("without the reader of the first: %+v", j.Stats())
	}
	k.mu.Lock()
	k.streams[k.names("g")[0]].open = false
	k.mu.Unlock()
	stop := run("g")
	if j.sweep(t); j.Stats().Segments > 2 {
		t.Errorf("with both: %+v", j.Stats())
	}
	stop()
	stops[1]()
}

// TestRoomOfWhatIsSafe: segments that are safe make room before others are evicted.
func TestRoomOfWhatIsSafe(t *testing.T) {
	s := still(t, t.TempDir())
	s.SegmentSize, s.MaxSize = 1000, 4000
	j, k := open(t, s), newSink(t)
	k.auto = false
	reader, stop := follow(t, j, k)
	defer stop()
	r := begin(t, j, "a")
	write := func() {
		for range 20 {
			put(t, r, strings.Repeat("x", 50))
			sync_(t, r)
		}
		poll(t, "drained", reader.Drained)
	}
	write()
	k.commit()
	before := j.Stats().Segments
	write()
	if st := j.Stats(); st.Evicted > 0 || st.Segments > before+1 || st.Segments < 3 {
		t.Errorf("%d segments, then %+v", before, st)
	}
}

// TestSlowCheckpoint has a checkpoint that takes long to list the safe positions: it is asked seldom.
func TestSlowCheckpoint(t *testing.T) {
	s := small(t, t.TempDir())
	s.SegmentSize = 1
	j, k := open(t, s), newSink(t)
	k.auto, k.dear = false, 5*time.Millisecond
	reader, stop := follow(t, j, k)
	defer stop()
	r := begin(t, j, "a")
	put(t, r, "x")
	put(t, r, "y")
	sync_(t, r)
	poll(t, "drained", reader.Drained)
	count := func() int { k.mu.Lock(); defer k.mu.Unlock(); return k.asked }
	began, before := time.Now(), count()
	time.Sleep(250 * time.Millisecond)
	if n, most := count()-before, 2+int(time.Since(began)/(20*k.dear)); n > most {
		t.Errorf("it was asked %d times in %v", n, time.Since(began))
	}
}

// TestStallOfTheCheckpoint has the checkpoint take a minute once, as on a machine that stalls: the next second it is asked again.
func TestStallOfTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := still(t, t.TempDir())
		s.SegmentSize, s.sweep = 1, time.Second
		j, k := open(t, s), newSink(t)
		k.auto = false
		_, stop := follow(t, j, k)
		defer stop()
		k.dear = time.Minute
		r := begin(t, j, "a")
		put(t, r, "x")
		put(t, r, "y")
		sync_(t, r)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		k.dear = 0
		count := func() int { k.mu.Lock(); defer k.mu.Unlock(); return k.asked }
		if n := count(); n != 1 { // by follow
			t.Errorf("it has answered %d times", n)
		}
		time.Sleep(45 * time.Second)
		if n := count(); n < 10 {
			t.Errorf("it was asked %d times", n)
		}
	})
}

// TestAge: a segment that grows slowly ends after a quarter of the time, and its data go after all of it.
func TestAge(t *testing.T) {
	var log bytes.Buffer
	s := still(t, t.TempDir())
	s.MaxAge, s.Logger = time.Hour, slog.New(slog.NewTextHandler(&log, nil))
	j, k := open(t, s), newSink(t)
	reader, stop := follow(t, j, k)
	defer func() { stop() }()
	age := func(after time.Duration, segments, sealed int) {
		t.Helper()
		sw := sweeper{settings: j.settings, mu: j.mu, retention: j.retention, segments: j.segments, streams: j.streams, writer: j.writer}
		sw.age(time.Now().Add(after))
		poll(t, "drained", reader.Drained)
		if seg, idx := len(files(t, s.Dir, "seg")), len(files(t, s.Dir, "idx")); seg != segments || idx != sealed || len(j.segments.list()) != sealed+1 {
			t.Errorf("after %v, %d segments, %d sealed, %d in all", after, seg, idx, len(j.segments.list()))
		}
	}
	age(2*time.Hour, 0, 0) // nothing is recorded
	r := begin(t, j, "a")
	put(t, r, "x")
	sync_(t, r)
	age(14*time.Minute, 1, 0)
	stop()
	j.mustClose(t)
	k.crash()
	j = open(t, s)
	reader, stop = follow(t, j, k)
	age(14*time.Minute, 1, 0)
	age(16*time.Minute, 1, 1)
	r = begin(t, j, "a")
	put(t, r, "y")
	sync_(t, r)
	age(14*time.Minute, 2, 1)
	age(16*time.Minute, 2, 2)
	age(59*time.Minute, 2, 2)
	age(61*time.Minute, 0, 2)
	if j.Stats().Evicted == 0 || strings.Contains(log.String(), "cannot") {
		t.Errorf("%+v\n%s", j.Stats(), &log)
	}
}

// TestFreeSpaceIsAskedSeldom: the file system is asked for each segment and once a second, and not at all without a limit.
func TestFreeSpaceIsAskedSeldom(t *testing.T) {
	for limit, most := range map[int64]int{0: 0, 1000: 3} {
		d := &brokenDisk{}
		s := still(t, t.TempDir())
		s.disk, s.MinFree = d, limit
		began := time.Now()
		j := open(t, s)
		r := begin(t, j, "a")
		for range 50 {
			put(t, r, "x")
			sync_(t, r)
		}
		j.mustClose(t)
		if most > 0 {
			most += int(time.Since(began) / time.Second)
		}
		if d.frees > most {
			t.Errorf("with a limit of %d it was asked %d times", limit, d.frees)
		}
	}
}

// TestWritingTakesLittleMemory writes long frames, one after the other: their buffers are used again, and released if they were too long.
func TestWritingTakesLittleMemory(t *testing.T) {
	s := still(t, t.TempDir())
	s.MaxPending = 1 << 20
	j := open(t, s)
	r := begin(t, j, "a")
	write := func(size, times int) (allocated, held int64) {
		data := make([]byte, size)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range times {
			if err := r.Record(t.Context(), &frame.Frame{Data: data}); err != nil {
				t.Fatal(err)
			}
			sync_(t, r)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		return int64(after.TotalAlloc - before.TotalAlloc), int64(after.HeapAlloc) - int64(before.HeapAlloc)
	}
	if n, _ := write(200<<10, 50); n > 3<<20 {
		t.Errorf("50 frames of 200 KiB take %d KiB", n>>10)
	}
	if _, n := write(4<<20, 1); n > 1<<20 {
		t.Errorf("%d KiB are held after a frame of 4 MiB", n>>10)
	}
}

// TestIdleStreamsAreNotCarriedForEver has idle open streams: they do not cause new segments
// for ever.
func TestIdleStreamsAreNotCarriedForEver(t *testing.T) {
	s := small(t, t.TempDir())
	s.SegmentSize, s.sweep = 300, time.Hour // by hand here
	j, k := open(t, s), newSink(t)
	r, stop := follow(t, j, k)
	defer stop()
	for i := range 10 {
		rec := begin(t, j, fmt.Sprintf("%060d", i))
		put(t, rec, strings.Repeat("x", 200))
		sync_(t, rec)
	}
	poll(t, "drained", r.Drained)
	newest := func() uint64 { l := j.segments.list(); return l[len(l)-1].id }
	for range 20 {
		j.sweep(t)
	}
	before := newest()
	for range 20 {
		j.sweep(t)
	}
	if after := newest(); after != before {
		t.Errorf("segment %d, then %d", before, after)
	}
}

// TestDropOldest fills a journal: the newest frames survive, and the dropped ones are counted,
// also for streams that ended in an evicted segment, and after a restart.
func TestDropOldest(t *testing.T) {
	for _, restart := range []bool{false, true} {
		dir := t.TempDir()
		s := small(t, dir)
		s.SegmentSize, s.MaxSize = 1000, 4000
		j, k := open(t, s), newSink(t)
		long := begin(t, j, "long")
		var size int64
		for i := range 60 {
			r := begin(t, j, fmt.Sprintf("k%02d", i))
			put(t, r, strings.Repeat("x", 100))
			closed(t, r)
			put(t, long, fmt.Sprintf("%03d", i))
			size += 101 + 4
			sync_(t, long)
		}
		indexes, gone := indexed(j)
		if got := j.Stats(); got.Bytes-indexes > 4000 || got.Evicted != gone || gone == 0 {
			t.Errorf("%d bytes on disk, %d given up of %d", got.Bytes, got.Evicted, gone)
		}
		if restart {
			j.mustClose(t)
			j = open(t, s)
		}
		drain(t, j, k)
		k.mu.Lock()
		var read, dropped int64
		for _, st := range k.streams {
			read += st.next
			for _, f := range st.frames {
				dropped += f.Dropped
				if f.Reason != "" && f.Reason != ReasonDropped {
					t.Errorf("reason %q", f.Reason)
				}
			}
			if !st.closed && !strings.HasPrefix(st.id.Key, "long~") {
				t.Errorf("%s is open", st.id.Key)
			}
		}
		if len(k.streams) != 61 || read != size || dropped == 0 || len(k.troubles) != 0 {
			t.Errorf("%d streams, %d bytes read of %d, %d dropped, trouble %q", len(k.streams), read, size, dropped, k.troubles)
		}
		k.mu.Unlock()
		if got := k.content("long"); got[len(got)-1] != "059" || !strings.HasPrefix(got[0], "<journal_dropped") || len(got) < 5 {
			t.Errorf("long: %q", got)
		}
	}
}

// indexed are the bytes of the indexes, and those of the segments of which only the index is left.
func indexed(j *Journal) (indexes, gone int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, g := range j.segments.all {
		if indexes += g.indexed; g.gone {
			gone += g.size
		}
	}
	return indexes, gone
}

// TestDropWhileReading evicts a segment that a reader is in: the reader continues.
func TestDropWhileReading(t *testing.T) {
	s := small(t, t.TempDir())
	s.SegmentSize, s.MaxSize = 3<<20, 6<<20
	j, k := open(t, s), newSink(t)
	k.gate = make(chan struct{})
	_, stop := follow(t, j, k)
	r := begin(t, j, "a")
	var size int64
	write := func(n int) {
		for range n {
			put(t, r, strings.Repeat("x", 100_000))
			size += 100_001
			sync_(t, r)
		}
	}
	write(20)
	k.gate <- struct{}{} // a part of the first segment
	write(100)
	close(k.gate)
	k.until("everything was read or counted", func() bool { n := k.names("a"); return len(n) == 1 && k.streams[n[0]].next == size })
	stop()
	if j.Stats().Evicted == 0 {
		t.Error("nothing was given up")
	}
}

// TestBackpressure fills a journal: Record waits until there is room, and nothing is lost.
func TestBackpressure(t *testing.T) {
	s := small(t, t.TempDir())
	s.SegmentSize, s.MaxSize, s.MaxPending, s.WhenFull = 1000, 3000, 2000, Backpressure
	j, k := open(t, s), newSink(t)
	r := begin(t, j, "a")
	var want []string
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	refused := false
	for i := 0; !refused && i < 1000; i++ {
		data := fmt.Sprintf("%0100d", i)
		err := r.Record(ended, frameOf(data))
		if err == nil {
			want = append(want, data)
		}
		refused = errors.Is(err, context.Canceled)
		if err == nil && i%3 == 0 {
			poll(t, "written or full", func() bool { st := j.Stats(); return st.Pending == 0 || st.Failures > 0 })
		}
	}
	if !refused {
		t.Fatal("a context that has ended was never refused")
	}
	if n := j.Stats().Bytes; n > 3000+1000 {
		t.Errorf("%d bytes on disk", n)
	}
	done := make(chan error, 1)
	go func() { done <- r.Record(t.Context(), frameOf("last")) }()
	_, stop := follow(t, j, k)
	defer stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want = append(want, "last")
	k.until("read", func() bool { n := k.names("a"); return len(n) == 1 && len(k.streams[n[0]].frames) == len(want) })
	if got := k.content("a"); !slices.Equal(got, want) {
		t.Errorf("%d frames, want %d", len(got), len(want))
	}
	if j.Stats().Evicted != 0 {
		t.Error("something was given up")
	}
}

// TestDiskThatFails has a disk that is full, or broken: the journal continues, its memory is
// bounded, and the frames that find no room are counted.
func TestDiskThatFails(t *testing.T) {
	for name, how := range map[string]struct{ breakIt, mend func(*brokenDisk) }{
		"no space":  {func(d *brokenDisk) { d.write = syscall.ENOSPC }, func(d *brokenDisk) { d.write = nil }},
		"bad write": {func(d *brokenDisk) { d.write = syscall.EIO }, func(d *brokenDisk) { d.write = nil }},
		"bad sync":  {func(d *brokenDisk) { d.sync = syscall.EIO }, func(d *brokenDisk) { d.sync = nil }},
		"little":    {func(d *brokenDisk) { d.left = 10 }, func(d *brokenDisk) { d.left = 0 }},
	} {
		for _, segment := range []int64{0, 3000} {
			t.Run(fmt.Sprintf("%s, segments of %d", name, segment), func(t *testing.T) {
				dir := t.TempDir()
				d := &brokenDisk{}
				s := small(t, dir)
				s.disk, s.MaxPending, s.SegmentSize, s.MinFree = d, 10_000, segment, 1000
				j, k := open(t, s), newSink(t)
				k.auto = false
				r := begin(t, j, "a")
				put(t, r, "before")
				sync_(t, r)
				d.set(func() { how.breakIt(d) })
				var size int64
				for i := range 1000 {
					put(t, r, fmt.Sprintf("%0100d", i)) // never waits
					size += 101
					if i%50 == 0 && j.Stats().Failures == 0 {
						if name == "little" {
							j.mu.Lock()
							j.writer.failing = errFull // it is looked at once a second
							j.mu.Unlock()
						} else {
							poll(t, "the disk fails", func() bool { return j.Stats().Failures > 0 })
						}
					}
					if n := j.Stats().Pending; n > 10_100 {
						t.Fatalf("%d bytes in memory", n)
					}
				}
				before := j.Stats().Streams
				for _, size := range []int{9_500, 300, 190} {
					short := begin(t, j, "")
					if err := short.Record(t.Context(), &frame.Frame{Data: make([]byte, size), Dropped: 3}); err != nil {
						t.Fatal(err)
					}
					closed(t, short)
				}
				if n := j.Stats().Streams; n > before+1 {
					t.Errorf("%d streams are open, then %d: those that ended take memory", before, n)
				}
				if err := r.Mark([]byte("state")); err != nil {
					t.Fatal(err)
				}
				// A recording that was closed meanwhile can begin again.
				twice := begin(t, j, "twice")
				put(t, twice, "")
				closed(t, twice)
				if err := begin(t, j, "twice").Record(t.Context(), frameOf("")); err != nil {
					t.Errorf("begun anew: %v", err)
				}
				d.set(func() { how.mend(d) })
				if err := r.Sync(t.Context()); !errors.Is(err, ErrDropped) {
					t.Errorf("Sync after frames were given up: %v", err)
				}
				put(t, r, "after")
				sync_(t, r)
				drain(t, j, k)
				j.mustClose(t)
				got := k.content("a")
				// With little room left, the oldest segment is evicted first.
				if got[0] != "before" && (name != "little" || segment == 0) || got[len(got)-1] != "after" || len(got) < 20 {
					t.Errorf("%.300q", got)
				}
				k.mu.Lock()
				if n := k.streams[k.names("a")[0]].next; n != 7+size+6 {
					t.Errorf("position %d, want %d", n, 7+size+6)
				}
				var read, refused int64
				for _, st := range k.streams {
					read += st.next
					for _, f := range st.frames {
						if f.Reason == ReasonFull {
							refused += f.Dropped
						}
					}
				}
				if n := j.Stats().Refused; n != refused {
					t.Errorf("%d bytes were refused, and %d are counted", refused, n)
				}
				if read != 7+size+6+10_002+2 {
					t.Errorf("%d bytes are accounted for, want %d", read, 7+size+6+10_002+2)
				}
				k.mu.Unlock()
				// And so it is after a restart.
				k2 := newSink(t)
				j = open(t, s)
				if got := string(begin(t, j, "a").State()); got != "state" {
					t.Errorf("state %q", got)
				}
				drain(t, j, k2)
				if again := k2.content("a"); !slices.Equal(got, again) {
					t.Errorf("after a restart: %.300q", again)
				}
			})
		}
	}
}

// TestCloseOfALongFrame closes a stream whose only frame is all that may be pending: it ends although nothing is recorded behind it.
func TestCloseOfALongFrame(t *testing.T) {
	d := &brokenDisk{gate: make(chan struct{})}
	s := small(t, t.TempDir())
	s.disk, s.MaxPending = d, 1000
	j, k := open(t, s), newSink(t)
	r := begin(t, j, "a")
	put(t, r, strings.Repeat("x", 2000))
	closed(t, r)
	close(d.gate)
	drain(t, j, k)
	if st := k.streams[k.names("a")[0]]; st.next != 2001 || !st.closed {
		t.Errorf("at %d, closed %v", st.next, st.closed)
	}
}

// TestLimitBelowASegment has a journal that may have less than one segment: it goes on, because nothing that is older can go.
func TestLimitBelowASegment(t *testing.T) {
	for _, full := range []Policy{DropOldest, Backpressure} {
		s := small(t, t.TempDir())
		s.MaxSize, s.SegmentSize, s.WhenFull = 100, 10_000, full
		j, k := open(t, s), newSink(t)
		r := begin(t, j, "a")
		for range 3 {
			put(t, r, "twelve bytes")
			sync_(t, r)
		}
		drain(t, j, k)
		if n := len(k.content("a")); n != 3 || j.Stats().Evicted+j.Stats().Refused > 0 {
			t.Errorf("%s: %d frames, %+v", full, n, j.Stats())
		}
	}
}

// TestLittleFreeSpace has a disk with less free space than is to be left to others: nothing is written until there is more.
func TestLittleFreeSpace(t *testing.T) {
	d := &brokenDisk{left: 5000}
	s := still(t, t.TempDir())
	s.disk, s.MinFree, s.SegmentSize = d, 1000, 4001
	j, k := open(t, s), newSink(t)
	r := begin(t, j, "a")
	put(t, r, "x")
	poll(t, "it waits", func() bool { return j.Stats().Failures > 0 })
	if n := len(files(t, s.Dir, "seg")); n != 0 {
		t.Errorf("%d segments are written", n)
	}
	d.set(func() { d.left = 5001 })
	sync_(t, r)
	drain(t, j, k)
	if got := k.content("a"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("%q", got)
	}
}

// TestCloseOfABrokenDisk closes a journal that cannot write: Close returns how much is lost.
func TestCloseOfABrokenDisk(t *testing.T) {
	d := &brokenDisk{write: syscall.EIO}
	s := still(t, t.TempDir())
	s.disk = d
	j := open(t, s)
	r := begin(t, j, "a")
	put(t, r, "x")
	waits := make(chan error, 1)
	go func() { waits <- r.Sync(t.Context()) }()
	poll(t, "it fails", func() bool { return j.Stats().Failures > 1 })
	err := j.Close()
	if want := fmt.Sprintf("journal: %d bytes are lost: ", j.Stats().Pending); !errors.Is(err, syscall.EIO) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if err := <-waits; !errors.Is(err, ErrClosed) {
		t.Errorf("who waits for the disk gets %v", err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("again: %v", err)
	}
}

// TestFileThatIsGone removes the file of a segment behind the journal's back: its frames are counted as dropped.
func TestFileThatIsGone(t *testing.T) {
	s := still(t, t.TempDir())
	s.SegmentSize = 1 // a segment for each record
	j, k := open(t, s), newSink(t)
	r := begin(t, j, "a")
	for _, data := range []string{"one", "two", "three"} {
		put(t, r, data)
		sync_(t, r)
	}
	if err := os.Remove(files(t, s.Dir, "seg")[1]); err != nil {
		t.Fatal(err)
	}
	drain(t, j, k)
	if got := k.content("a"); !slices.Equal(got, []string{"one", "<journal_dropped 4>", "three"}) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(k.troubles, slices.Repeat([]string{"journal_unreadable"}, 6)) || j.Stats().Segments != 2 {
		t.Errorf("troubles %q, %+v", k.troubles, j.Stats())
	}
}

// TestDiskThatCannotBeRead has reads fail for a while: nothing is lost.
func TestDiskThatCannotBeRead(t *testing.T) {
	d := &brokenDisk{}
	s := small(t, t.TempDir())
	s.disk = d
	j, k := open(t, s), newSink(t)
	r := begin(t, j, "a")
	put(t, r, "x")
	sync_(t, r)
	began := time.Now()
	d.set(func() { d.readErr = syscall.EIO })
	_, stop := follow(t, j, k)
	defer stop()
	for i := range 2 { // each outage begins at the first attempt
		k.until("trouble", func() bool { return len(k.troubles) >= 4*(i+1) })
		if took := time.Since(began); took < (1+2+3)*2*s.retry {
			t.Errorf("four attempts in %v", took)
		}
		d.set(func() { d.readErr = nil })
		k.until("read", func() bool { n := k.names("a"); return len(n) == 1 && len(k.streams[n[0]].frames) == i+1 })
		began = time.Now()
		d.set(func() { d.readErr = syscall.EIO })
		put(t, r, "x")
	}
	if got := k.content("a"); !slices.Equal(got, []string{"x", "x"}) {
		t.Errorf("%q", got)
	}
}

// TestSyncFailsWhileReading has a sync fail, after which the segment is another file: who reads it goes on in that.
func TestSyncFailsWhileReading(t *testing.T) {
	var log bytes.Buffer
	d := &brokenDisk{}
	s := still(t, t.TempDir())
	s.disk, s.Logger = d, slog.New(slog.NewTextHandler(&log, nil))
	j, k := open(t, s), newSink(t)
	reader, stop := follow(t, j, k)
	defer stop()
	r := begin(t, j, "a")
	put(t, r, "one")
	sync_(t, r)
	poll(t, "drained", reader.Drained)
	d.set(func() { d.sync = syscall.EIO })
	put(t, r, "two")
	poll(t, "it fails", func() bool { return j.Stats().Failures > 0 })
	d.set(func() { d.sync = nil })
	sync_(t, r)
	put(t, r, "three")
	sync_(t, r)
	poll(t, "drained", reader.Drained)
	if got := k.content("a"); !slices.Equal(got, []string{"one", "two", "three"}) || len(k.troubles) > 0 {
		t.Errorf("%q, troubles %q", got, k.troubles)
	}
	stop()
	j.mustClose(t)
	if n := strings.Count(log.String(), "journal writes again"); n != 1 {
		t.Errorf("%d times it is said that the journal writes again", n)
	}
}

// TestGoneBeforeItIsRead evicts a segment, and ends a reader, when the reader is about to open the file: neither is trouble.
func TestGoneBeforeItIsRead(t *testing.T) {
	for _, end := range []bool{false, true} {
		d := &brokenDisk{}
		s := still(t, t.TempDir())
		s.disk, s.SegmentSize = d, 1 // a segment for each record
		j, k := open(t, s), newSink(t)
		r := begin(t, j, "a")
		put(t, r, "one")
		put(t, r, "two")
		sync_(t, r)
		ctx, cancel := context.WithCancel(t.Context())
		d.onRead = func(path string) error {
			switch {
			case path != files(t, s.Dir, "seg")[0] || len(files(t, s.Dir, "seg")) < 2:
				return nil
			case end:
				cancel()
				return syscall.EIO
			}
			if err := j.retention.evict(j.segments.list()[0], overAge); err != nil {
				t.Error(err)
			}
			return nil
		}
		reader := j.Reader("s", "f", nil)
		done := make(chan error, 1)
		go func() { done <- reader.Run(ctx, k) }()
		if !end {
			poll(t, "drained", reader.Drained)
			cancel()
			if got := k.content("a"); !slices.Equal(got, []string{"<journal_dropped 4>", "two"}) {
				t.Errorf("%q", got)
			}
		}
		if err := <-done; err != nil || len(k.troubles) > 0 {
			t.Errorf("%v, troubles %q", err, k.details)
		}
	}
}

func TestOldSegmentsGo(t *testing.T) {
	dir := t.TempDir()
	s := small(t, dir)
	s.MaxAge = 40 * time.Millisecond
	j, k := open(t, s), newSink(t)
	r := begin(t, j, "")
	put(t, r, "x")
	closed(t, r)
	poll(t, "its data is gone", func() bool { return j.Stats().Evicted > 0 && len(files(t, dir, "seg")) == 0 })
	_, stop := follow(t, j, k)
	defer stop()
	k.until("its loss is counted", func() bool { n := k.names(""); return len(n) == 1 && k.streams[n[0]].closed })
	if got := k.content(""); !slices.Equal(got, []string{"<journal_dropped 2>"}) {
		t.Errorf("%q", got)
	}
	poll(t, "its index is gone", func() bool { return len(files(t, dir, "idx")) == 0 })
}

// TestJournalIsRemoved removes the files of a journal: new frames are delivered, and the
// checkpoint forgets the streams that are gone.
func TestJournalIsRemoved(t *testing.T) {
	dir := t.TempDir()
	j, k := open(t, small(t, dir)), newSink(t)
	r := begin(t, j, "a")
	put(t, r, "old")
	drain(t, j, k)
	j.mustClose(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	k.crash()
	j = open(t, small(t, dir))
	put(t, begin(t, j, "a"), "new")
	drain(t, j, k)
	if got := k.content("a"); !slices.Equal(got, []string{"old", "new"}) {
		t.Errorf("%q", got)
	}
	if len(k.Known()) != 1 || !slices.Equal(k.troubles, []string{"journal_lost"}) {
		t.Errorf("%d known, trouble %q", len(k.Known()), k.troubles)
	}
}

func TestLongFramesAreCut(t *testing.T) {
	j, k := open(t, small(t, t.TempDir())), newSink(t)
	r := begin(t, j, "a")
	if err := r.Record(t.Context(), &frame.Frame{Data: make([]byte, MaxFrame+5)}); err != nil {
		t.Fatal(err)
	}
	drain(t, j, k)
	f := k.streams[k.names("a")[0]].frames[0]
	if len(f.Data) != MaxFrame || f.Dropped != 5 || f.Reason != reasonTooLong || f.End != MaxFrame+6 {
		t.Errorf("%d bytes, dropped %d, %q, ends at %d", len(f.Data), f.Dropped, f.Reason, f.End)
	}
}
