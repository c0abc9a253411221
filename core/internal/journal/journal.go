package journal

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// Journal is described in the package comment.
type Journal struct {
	settings Settings

	mu       sync.Mutex
	segments []*segment // oldest first; the last is the one that grows
	open     map[uint64]*stream
	byKey    map[string]*stream // by streamKey
	full     map[string]*stream // by source and format: counts what is given up of streams that the disk never knew
	readers  []*Reader
	number   uint64 // of the next stream
	changed  chan struct{}
	closed   bool

	// What is on its way to the disk.
	groups    []*group // oldest first
	writing   *group
	spare     []byte
	pending   int64 // bytes of groups and writing
	appended  int64 // bytes ever
	durable   int64 // bytes of them that are synced
	urgent    int64 // up to where somebody waits in Sync
	failing   error // why nothing can be written now
	unsettled bool  // streams have something outstanding because of that
	lost      bool  // the journal was closed before everything could be written

	stats Stats
	wake  chan struct{}
	stop  context.CancelFunc
	done  sync.WaitGroup

	sealing sync.Mutex // held while segments are sealed and their files are closed
}

// group is what one write brings to one segment.
type group struct {
	segment *segment
	buf     []byte
}

// Stats are the journal's own figures.
type Stats struct {
	Segments  int   // with data
	Bytes     int64 // on disk
	Pending   int64 // bytes in memory
	Streams   int   // open recordings
	Syncs     int64 // groups that were written and synced
	Failures  int64 // of the disk
	GivenUp   int64 // bytes of segments given up before everything in them was safe
	Refused   int64 // bytes of frames that there was no room for
	Corrupt   int64 // damaged bytes that were skipped
	Truncated int64 // bytes of an unfinished end, cut at Open
}

// Open opens or creates a journal. Its end is repaired; what an earlier process
// left unfinished is known again. An error means that the directory cannot be
// used.
func Open(s Settings) (*Journal, error) {
	if err := s.defaults(); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{
		settings: s,
		open:     make(map[uint64]*stream),
		byKey:    make(map[string]*stream),
		full:     make(map[string]*stream),
		changed:  make(chan struct{}),
		wake:     make(chan struct{}, 1),
		number:   uint64(time.Now().UnixNano()), // greater than any that a lost journal gave out
	}
	if err := j.load(); err != nil {
		return nil, fmt.Errorf("journal: %s: %w", s.Dir, err)
	}
	j.mu.Lock()
	for _, st := range j.open {
		if st.key == "" { // of a connection that ended with its process
			j.end(st)
		}
	}
	j.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	j.stop = cancel
	j.done.Add(2)
	go func() { defer j.done.Done(); j.flush() }()
	go func() { defer j.done.Done(); j.tidy(ctx) }()
	return j, nil
}

// Close makes durable what was recorded, and ends. Recordings that are open go on
// when the journal is opened again.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.announce()
	j.mu.Unlock()
	j.stop()
	j.hurry()
	j.done.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lost {
		return fmt.Errorf("journal: %d bytes are lost: %w", j.pending, j.failing)
	}
	return nil
}

// Stats returns the journal's figures.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Pending, s.Streams = j.pending, len(j.open)
	for _, g := range j.segments {
		if !g.gone {
			s.Segments++
			s.Bytes += g.size
		}
		s.Bytes += g.indexed
	}
	return s
}

// Sources returns the pairs of source and format of which something may have to
// be delivered yet, so that a sidecar can tell what nobody reads any more.
func (j *Journal) Sources() ([][2]string, error) {
	seen := make(map[[2]string]bool)
	var out [][2]string
	err := j.each(func(_ *segment, e *entry) {
		if k := [2]string{e.source, e.format}; !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	})
	return out, err
}

// each gives what every segment has.
func (j *Journal) each(give func(*segment, *entry)) error {
	for _, g := range j.list() {
		err := j.entries(g, func(e *entry) { give(g, e) })
		if err != nil && !missing(err) {
			return err
		}
	}
	return nil
}

// list returns the segments of this moment.
func (j *Journal) list() []*segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]*segment(nil), j.segments...)
}

// entries gives what a segment has: from its index, or from memory. The entries
// are copies.
func (j *Journal) entries(g *segment, give func(*entry)) error {
	j.mu.Lock()
	if !g.sealed {
		list := make([]entry, 0, len(g.contents))
		for _, e := range g.contents {
			list = append(list, *e)
		}
		j.mu.Unlock()
		for i := range list {
			give(&list[i])
		}
		return nil
	}
	j.mu.Unlock()
	_, _, _, err := j.readIndex(g, give)
	return err
}

// announce wakes whoever waits for a change. mu is held.
func (j *Journal) announce() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// hurry wakes the flusher.
func (j *Journal) hurry() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func streamKey(sourceName, key string) string { return sourceName + "\x00" + key }

// Recorder returns the journal as the listener of one source sees it.
func (j *Journal) Recorder(sourceName string) source.Recorder { return &recorder{j, sourceName} }
