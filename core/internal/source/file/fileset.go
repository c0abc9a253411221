package file

import (
	"cmp"
	"container/list"
	"context"
	"os"
	"slices"
	"sync"
	"time"
)

type kind uint8

const (
	transcript kind = iota // read by lines; it may grow
	archive                // a .gz or .zst, unpacked and read by lines
	metadata               // one frame
)

// file is one tracked inode, under any name. Every file below the patterns has one,
// so it is small.
type file struct {
	// The fileset's mu guards these.
	path        string // its present name
	id          inode
	stamp       stamp  // at its last sighting
	scan        uint32 // the last scan that saw it
	kind        kind
	document    bool // one JSON document, of the patterns to tail
	detected    bool // a document by its content: its name is that of a transcript
	queued      queueState
	initial     bool          // it was there at the start and has not been read to its end
	preexisting bool          // it was there when the source ran for the first time
	lost        bool          // its name leads elsewhere; a worker has to trace it
	outside     bool          // no pattern covers its name
	candidate   bool          // no pattern ever did: it is dropped unless it continues a stream
	failed      bool          // reading it failed; the next scan retries
	partial     bool          // its last line has no newline yet
	blocks      string        // the rotation set that waits for it
	previous    []*stream     // read from this inode in an earlier run, not yet compared with it
	stream      *stream       // nil until it is identified
	duplicate   *duplicate    // of a copy, which has no stream
	orphan      *orphan       // of one without a name, or without its former content
	element     *list.Element // in the list of idle descriptors

	// fd belongs to the worker that processes the file. Between turns the schedule closes
	// it when too many are open.
	fd *os.File
}

func (f *file) close() {
	if f.fd != nil {
		f.fd.Close()
		f.fd = nil
	}
}

// duplicate records a comparison: with that stamp and size, all of a file was in
// the stream.
type duplicate struct {
	stream *stream
	at     stamp
	size   int64
}

// fileset holds the tracked files by inode and by path, their rotation sets, the
// orphaned streams and the workers' schedule. One mutex guards all of it, because a
// renamed file changes all of them at once. It is not held while a file is read or the
// sink is called.
type fileset struct {
	patterns *patterns

	mu        sync.Mutex
	byInode   map[inode]*file
	byPath    map[string]*file // by every name a file was seen under
	rotations rotations
	orphans   orphans
	keys      streamKeys
	schedule  schedule
	requests  []request
	scanned   bool // at least once
	finishing bool // no more is going to be written

	wake chan struct{} // signals requests
}

// request is a task that a worker has for the discovery.
type request struct {
	file     *file // look up its path, and where it went
	copiesOf *file // look for copies of the content of this orphan
}

func newFileset(patterns *patterns, maxOpen int) *fileset {
	s := &fileset{
		patterns:  patterns,
		byInode:   make(map[inode]*file),
		byPath:    make(map[string]*file),
		rotations: newRotations(),
		orphans:   make(orphans),
		keys:      make(streamKeys),
		wake:      make(chan struct{}, 1),
	}
	s.schedule = newSchedule(&s.mu, maxOpen)
	return s
}

// outside reports whether no pattern covers the name of a transcript or archive.
func (s *fileset) outside(k kind, path string) bool { return k != metadata && !s.patterns.covers(path) }

// The methods from here to recheck are called with mu held.

func (s *fileset) request(r request) {
	s.requests = append(s.requests, r)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *fileset) add(f *file) {
	s.byInode[f.id] = f
	s.rotations.add(f)
	if f.previous != nil {
		s.rotations.block(f)
	}
}

// rename sets the present name of a file. Whether its content is still the same, or the
// inode was reused, shows when it is read.
func (s *fileset) rename(f *file, path string) {
	f.lost = false
	if f.stream != nil {
		s.rotations.block(f)
	} else {
		s.rotations.unblock(f)
		s.rotations.invalidate(rotationBase(f.path))
	}
	if s.byPath[f.path] == f {
		delete(s.byPath, f.path)
	}
	s.rotations.remove(f)
	f.path, f.outside = path, s.outside(f.kind, path)
	f.candidate = f.candidate && f.outside
	s.rotations.add(f)
	s.byPath[path] = f
}

// remove drops a file that has no stream.
func (s *fileset) remove(f *file) {
	if s.byPath[f.path] == f {
		delete(s.byPath, f.path)
	}
	s.unindex(f)
	f.close()
}

// unindex takes a file out of all indexes but the one by path.
func (s *fileset) unindex(f *file) {
	if s.byInode[f.id] == f {
		delete(s.byInode, f.id)
	}
	s.rotations.remove(f)
	f.lost = false
	s.rotations.unblock(f)
}

// orphanPrevious orphans the streams of an earlier run that f does not have: all but mine.
func (s *fileset) orphanPrevious(f *file, mine *stream) {
	for _, st := range f.previous {
		if st != mine {
			s.addOrphan(&file{path: cmp.Or(st.origin, f.path), id: f.id, kind: f.kind, stream: st}, 0)
		}
	}
	f.previous = nil
}

// detach orphans the streams of a file whose name is gone. Its open descriptor, if there
// is one, still leads to the content.
func (s *fileset) detach(f *file) {
	s.unindex(f)
	if s.byPath[f.path] == f && f.fd == nil { // a process that has it open may still write to it
		delete(s.byPath, f.path)
	}
	s.orphanPrevious(f, nil)
	unread := int64(0)
	if f.fd == nil && f.kind == transcript && f.stream != nil {
		unread = max(0, f.stamp.size-f.stream.cursor.line)
	}
	if f.fd != nil || f.stream != nil {
		s.addOrphan(f, unread)
	}
}

// addOrphan makes an orphan of g, which is in no index. unread are the bytes that
// cannot be read any more.
func (s *fileset) addOrphan(g *file, unread int64) {
	now := time.Now()
	g.orphan = &orphan{since: now, lingerFrom: now, unread: unread}
	if st := g.stream; st != nil {
		st.file = g
		if st.origin != "" {
			g.path = st.origin // its inode or name may belong to another rotation set by now
		}
	}
	base := rotationBase(g.path)
	s.orphans[base] = append(s.orphans[base], g)
	s.recheck(base)
	s.request(request{copiesOf: g})
	if g.fd == nil && g.stream != nil {
		s.schedule.push(g)
	}
}

// dropOrphan forgets an orphan.
func (s *fileset) dropOrphan(g *file) {
	s.orphans.remove(g)
	if s.byPath[g.path] == g {
		delete(s.byPath, g.path)
	}
	if g.stream != nil && g.stream.file == g {
		g.stream.file = nil
	}
	g.close()
}

// members returns the tracked files of a rotation set.
func (s *fileset) members(base string) []*file {
	all := s.rotations.rotated[base]
	if f := s.byPath[base]; f != nil && f.path == base && s.byInode[f.id] == f {
		all = append(slices.Clip(all), f)
	}
	return all
}

// recheck invalidates the identification that runs in a rotation set, and schedules all
// its files without a stream: they may be copies of the file that has just lost its own.
func (s *fileset) recheck(base string) {
	s.rotations.invalidate(base)
	for _, f := range append(slices.Clip(s.members(base)), s.orphans[base]...) {
		if f.stream == nil && f.kind != metadata {
			s.schedule.push(f)
		}
	}
}

// The methods from here on lock mu.

// name returns the present name of a file, and whether no pattern covers it.
func (s *fileset) name(f *file) (path string, outside bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.path, f.outside
}

// at returns the file that was last seen under a path.
func (s *fileset) at(path string) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byPath[path]
}

// status returns the state of a file at the beginning of a worker's turn, and resets its
// failure. A file is final when it has all the content that it will have; an orphan is
// final after completeIn.
func (s *fileset) status(f *file, completeAfter time.Duration) (st status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.failed = false
	st = status{lost: f.lost, tracked: s.byInode[f.id] == f, final: s.finishing}
	if f.orphan == nil {
		return st
	}
	st.orphaned, st.expired = true, f.orphan.expired
	if !st.final {
		st.completeIn = completeAfter - time.Since(f.orphan.since)
		st.final = st.completeIn <= 0
	}
	return st
}

type status struct {
	lost, tracked, orphaned, expired, final bool

	completeIn time.Duration
}

// unblock lets no other file wait for f, whose content is known, and returns its name.
func (s *fileset) unblock(f *file) (path string, outside bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotations.unblock(f)
	return f.path, f.outside
}

// fail records that a file cannot be read, and returns its name. With retry the next scan
// schedules it again; otherwise a change of the file does.
func (s *fileset) fail(f *file, retry bool) (path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.failed, f.initial = retry, false
	return f.path
}

// locate asks the discovery for a file that is not at its path.
func (s *fileset) locate(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.request(request{file: f})
}

// rewind has the frames of a stream from pos on delivered again. The sink calls it.
func (s *fileset) rewind(st *stream, pos int64) {
	st.rewind.request(pos)
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.file != nil {
		s.schedule.push(st.file)
	}
}

// again rewinds the wanted streams of files that are a frame each.
func (s *fileset) again(wanted func(key string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.byInode {
		if st := f.stream; st != nil && f.kind == metadata && wanted(st.key) {
			st.rewind.request(0)
			s.schedule.push(f)
		}
	}
}

// advance moves the cursor of the stream of f behind lines that were delivered, unless
// it is to be rewound.
func (s *fileset) advance(f *file, read lines, m fingerprint, at stamp) result {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := f.stream
	rewound := st.rewind.pending()
	if !rewound {
		st.cursor, st.fingerprint = read.to, m
	}
	st.size = at.size
	f.partial = read.to.scanned > read.to.line
	if read.eof {
		f.initial = false
		st.reachedEnd, st.end = true, max(st.end, read.to.pos-read.to.base)
	}
	eof := read.eof && !rewound
	return result{again: !eof, eof: eof}
}

// closeIdle closes all descriptors that no worker uses.
func (s *fileset) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedule.open.trim(0)
}

// take waits for a file to process; nil: ctx has ended.
func (s *fileset) take(ctx context.Context, q *queue) (f *file, initial bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil {
		if !s.schedule.paused {
			f, initial = q.take()
		}
		if f != nil {
			s.schedule.claim(f)
			return f, initial
		}
		q.cond.Wait()
	}
	return nil, false
}

// done ends the processing of a file that take returned.
func (s *fileset) done(ctx context.Context, q *queue, f *file, initial bool, res result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(f, res)
	q.done(initial)
	if res.after == 0 {
		return
	}
	s.schedule.delayed++
	time.AfterFunc(res.after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.schedule.delayed--
		if ctx.Err() == nil {
			s.schedule.push(f)
		}
	})
}

// release takes a file back from its worker. mu is held.
func (s *fileset) release(f *file, res result) {
	again := res.again || f.queued == processingAgain
	if !again && res.after == 0 && !f.lost {
		s.rotations.unblock(f)
	}
	s.schedule.release(f, again)
}

// pause keeps the workers from beginning with files while a scan is incomplete. The end
// of the first scan makes the fileset drainable.
func (s *fileset) pause(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedule.paused = on
	if !on {
		s.scanned = true
		s.schedule.wakeAll()
	}
}

// drained reports whether every file is at its end and delivered.
func (s *fileset) drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scanned && len(s.requests) == 0 && s.schedule.empty()
}

// finish has last lines without a newline delivered.
func (s *fileset) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishing = true
	for _, f := range s.byInode {
		if f.partial {
			s.schedule.push(f)
		}
	}
	for _, orphans := range s.orphans {
		for _, g := range orphans {
			if g.partial {
				s.schedule.push(g)
			}
		}
	}
}

// stop wakes the workers after their context has ended.
func (s *fileset) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedule.wakeAll()
}
