package journal

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// aWhile is how long a test gives a goroutine that should wait. A machine that stalls for longer hides
// a defect, and shows none that is not there.
const aWhile = 50 * time.Millisecond

// TestCarriedWhileAReaderStarts removes segments when a reader that starts is about to read their indexes, and names their
// streams in segments that began after that: no stream is lost.
func TestCarriedWhileAReaderStarts(t *testing.T) {
	d := &brokenDisk{}
	s := still(t, t.TempDir())
	s.disk, s.SegmentSize = d, 1 // a segment for each stream
	j, k := open(t, s), newSink(t)
	a, b := begin(t, j, "a"), begin(t, j, "b")
	long := strings.Repeat("x", 200)
	put(t, a, long)
	put(t, b, long)
	sync_(t, b)
	drain(t, j, k)
	k.crash()
	swept := false
	d.onRead = func(path string) error {
		if !swept && strings.HasSuffix(path, extIndex) {
			swept = true
			j.sweep(t)
		}
		return nil
	}
	drain(t, j, k)
	if names := files(t, s.Dir, extData); slices.Contains(names, j.segments.dir.File(1, extData)) || len(k.troubles) > 0 || len(k.Known()) != 2 {
		t.Errorf("files %q, troubles %q, %d streams are known", names, k.details, len(k.Known()))
	}
	k.crash()
	put(t, a, "more")
	drain(t, j, k)
	if got := k.content("a"); !slices.Equal(got, []string{long, "more"}) {
		t.Errorf("%q", got)
	}
}

// TestEndedWhileAnotherReaderWaits ends a stream and removes its segment before the reader of another format starts: the stream is not lost.
func TestEndedWhileAnotherReaderWaits(t *testing.T) {
	j, k := open(t, still(t, t.TempDir())), newSink(t)
	a := begin(t, j, "a")
	put(t, a, "x")
	drain(t, j, k)
	k.crash()
	reader, late := j.Reader("s", "f", k.Known()), j.Reader("s", "g", k.Known())
	closed(t, a)
	if _, err := j.seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- reader.Run(ctx, k) }()
	k.until("it is closed", func() bool { return len(k.safe) == 1 && k.safe[k.names("a")[0]].closed })
	j.sweep(t)
	if names := files(t, j.settings.Dir, "*"); len(names) > 0 || len(k.Known()) > 0 {
		t.Errorf("files %q, %d streams are known", names, len(k.Known()))
	}
	readAll(t, late, k)
	cancel()
	if err := <-done; err != nil || len(k.troubles) > 0 {
		t.Errorf("%v, troubles %q", err, k.details)
	}
}

// TestOpenedWhileItIsRemoved removes the file of a segment when a reader is about to open it, and is not done with that
// when the reader finds it gone: that is no trouble.
func TestOpenedWhileItIsRemoved(t *testing.T) {
	d := &brokenDisk{}
	s := still(t, t.TempDir())
	s.disk = d
	j, k := open(t, s), newSink(t)
	a := begin(t, j, "a")
	put(t, a, strings.Repeat("x", 200))
	sync_(t, a)
	removed, again, swept := make(chan struct{}), make(chan struct{}), make(chan struct{})
	path, opened := j.segments.dir.File(2, extData), 0
	d.onRemove = func(p string, remove func() error) error {
		err := remove()
		if p == path {
			close(removed)
			select {
			case <-again:
			case <-time.After(aWhile):
			}
		}
		return err
	}
	d.onRead = func(p string) error {
		if p != path {
			return nil
		}
		switch opened++; opened {
		case 1:
			if _, err := j.seal(t.Context()); err != nil {
				t.Error(err)
			}
			go func() { defer close(swept); j.sweep(t) }()
			<-removed
		case 2: // it reported that, and tries again
			close(again)
		}
		return nil
	}
	reader, stop := follow(t, j, k)
	defer stop()
	poll(t, "drained", reader.Drained)
	if _, err := j.seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.sweep(t) // the second segment names the stream
	<-swept
	put(t, a, "more")
	sync_(t, a)
	poll(t, "drained", reader.Drained)
	if stop(); opened != 1 || len(k.troubles) > 0 {
		t.Errorf("it was opened %d times, troubles %q", opened, k.details)
	}
}

// TestRewoundWhileASegmentGoes has a reader go on to another segment and back to the oldest while that is being removed: a stream that ended there is
// not opened again.
func TestRewoundWhileASegmentGoes(t *testing.T) {
	d := &brokenDisk{}
	s := still(t, t.TempDir())
	s.disk, s.SegmentSize = d, 1 // a segment for each record
	j, k := open(t, s), newSink(t)
	k.auto = false
	reader, stop := follow(t, j, k)
	defer stop()
	ended, open := begin(t, j, "ended"), begin(t, j, "open")
	put(t, ended, "x")
	closed(t, ended)
	put(t, open, "1")
	sync_(t, open)
	poll(t, "drained", reader.Drained)
	k.commit()
	path, found := j.segments.dir.File(2, extIndex), false
	d.onRemove = func(p string, remove func() error) error {
		if p == path {
			found = true
			put(t, open, "2")
			sync_(t, open)
			poll(t, "drained", reader.Drained)
			k.rewind(func(int) int { return 0 })
			poll(t, "drained again", reader.Drained)
		}
		return remove()
	}
	j.sweep(t)
	if got := k.content("open"); !found || !slices.Equal(got, []string{"1", "2"}) || len(k.troubles) > 0 {
		t.Errorf("the end was removed: %t, %q, troubles %q", found, got, k.details)
	}
}

// TestEvictedOnce evicts a segment for two reasons at a time: its bytes are counted once.
func TestEvictedOnce(t *testing.T) {
	d := &brokenDisk{}
	s := still(t, t.TempDir())
	s.disk = d
	j := open(t, s)
	put(t, begin(t, j, "a"), "x")
	if _, err := j.seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, other := j.segments.list()[0], make(chan error, 1)
	begun := false
	d.onRemove = func(_ string, remove func() error) error {
		if begun {
			return remove()
		}
		begun = true
		done := make(chan struct{})
		go func() { defer close(done); other <- j.retention.evict(g, overSize) }()
		select {
		case <-done:
		case <-time.After(aWhile):
		}
		return remove()
	}
	if err := j.retention.evict(g, overAge); err != nil {
		t.Error(err)
	}
	if err := <-other; err != nil || j.Stats().Evicted != g.size {
		t.Errorf("%v, %d bytes are evicted of %d", err, j.Stats().Evicted, g.size)
	}
}
