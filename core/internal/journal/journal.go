package journal

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/earshot-dev/earshot/core/internal/segment"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// Journal is described in the package comment.
type Journal struct {
	settings  Settings
	mu        *lock
	segments  *segments  // the files on the disk
	retention *retention // which of them can be removed
	writer    *writer    // the bytes on their way to the disk
	streams   *streams   // the recordings
	stop      context.CancelFunc
	done      sync.WaitGroup
}

// lock guards the state of the whole journal: a record changes its stream, the contents of
// its segment and the pending bytes, and readers must see all three or none.
type lock struct {
	sync.Mutex
	changed chan struct{} // closed, and another one made, at every change
}

// announce wakes every goroutine that waits for a change. The lock is held.
func (l *lock) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits for a change. The lock is held before and after, not meanwhile.
func (l *lock) await(ctx context.Context) error {
	changed := l.changed
	l.Unlock()
	defer l.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats are the journal's own figures.
type Stats struct {
	Segments  int   // with data
	Bytes     int64 // on disk
	Pending   int64 // bytes in memory
	Streams   int   // open recordings
	Syncs     int64 // groups that were written and synced
	Failures  int64 // of the disk
	Evicted   int64 // bytes of segments that were removed before everything in them was safe
	Refused   int64 // bytes of frames that there was no room for
	Corrupt   int64 // damaged bytes that were skipped
	Truncated int64 // bytes of an unfinished end, cut at Open
}

// Open opens or creates a journal. It repairs the journal's end and restores the recordings
// that an earlier process left open. An error means that the directory cannot be used.
func Open(s Settings) (*Journal, error) {
	if err := s.defaults(); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	mu := &lock{changed: make(chan struct{})}
	segs := &segments{dir: segment.Dir{Path: s.Dir, Disk: s.disk}, logger: s.Logger, mu: mu}
	ret := &retention{settings: s, mu: mu, segments: segs}
	w := &writer{settings: s, mu: mu, segments: segs, room: ret.room, wake: make(chan struct{}, 1)}
	st := newStreams(s, mu, segs, w)
	w.recovered = st.flushAll
	j := &Journal{settings: s, mu: mu, segments: segs, retention: ret, writer: w, streams: st}
	if err := segs.load(st.restore); err != nil {
		return nil, fmt.Errorf("journal: %s: %w", s.Dir, err)
	}
	st.endUnnamed()
	ctx, cancel := context.WithCancel(context.Background())
	j.stop = cancel
	j.done.Add(2)
	go func() { defer j.done.Done(); w.run() }()
	clean := &sweeper{settings: s, mu: mu, retention: ret, segments: segs, streams: st, writer: w}
	go func() { defer j.done.Done(); clean.run(ctx) }()
	return j, nil
}

// Close writes and syncs everything that was recorded. Recordings that are open continue
// when the journal is opened again.
func (j *Journal) Close() error {
	if !j.writer.close() {
		return nil
	}
	j.stop()
	j.done.Wait()
	return j.writer.lost()
}

// Stats returns the journal's figures.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Stats{
		Pending: j.writer.pending, Streams: len(j.streams.open), Syncs: j.writer.syncs, Failures: j.writer.failures,
		Evicted: j.retention.evicted, Refused: j.streams.refused, Corrupt: j.segments.corrupt, Truncated: j.segments.truncated,
	}
	for _, g := range j.segments.all {
		if !g.gone {
			s.Segments++
			s.Bytes += g.size
		}
		s.Bytes += g.indexed
	}
	return s
}

// Sources returns the pairs of source and format of which something may still have to
// be delivered, so that a sidecar can report the pairs that have no reader any more.
func (j *Journal) Sources() ([][2]string, error) {
	seen := make(map[[2]string]bool)
	var out [][2]string
	err := j.segments.each(func(e *entry) {
		if k := [2]string{e.source, e.format}; !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	})
	return out, err
}

// Recorder returns the recorder of one source's listener.
func (j *Journal) Recorder(sourceName string) source.Recorder {
	return &recorder{j.streams, sourceName}
}

// drained reports whether a place is the end of the journal, and nothing waits to be written.
func (j *Journal) drained(at place) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	g := j.segments.newest()
	return j.writer.pending == 0 && !j.streams.outstanding && at == place{g.id, g.size}
}
