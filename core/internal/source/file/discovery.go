package file

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	rescanDelay = 50 * time.Millisecond
	// scanShare bounds the processor time of scans: one part in this many.
	scanShare = 20
)

// discovery finds files and keeps their names up to date: by scans of everything below the
// patterns, by notifications, and where a worker asks. All of it runs in one goroutine.
type discovery struct {
	*Settings
	files      *fileset
	patterns   *patterns
	trees      *trees
	dirs       *directories
	checkpoint checkpoint
	problems   *problems
	readDir    func(string) ([]os.DirEntry, error)

	firstRun bool // the checkpoint was empty
	scans    uint32
}

// run finds files until ctx ends.
func (d *discovery) run(ctx context.Context) {
	took := d.scan(ctx)
	timer := time.NewTimer(max(d.PollInterval, scanShare*took))
	defer timer.Stop()
	events := d.dirs.watcher.Events()
	for {
		again := false
		select {
		case <-ctx.Done():
			return
		case batch, ok := <-events:
			if !ok {
				events = nil
			}
			again = d.notice(ctx, batch)
		case <-d.files.wake:
			d.answer(ctx)
		case <-timer.C:
			took = d.scan(ctx)
			timer.Reset(max(d.PollInterval, scanShare*took))
		}
		if again {
			timer.Reset(max(rescanDelay, scanShare*took))
		}
	}
}

func (d *discovery) newWalk() *walk {
	return &walk{patterns: d.patterns, trees: d.trees, wants: d.wants, report: d.problems.report, readDir: d.readDir, enter: d.dirs.enter}
}

// wants reports whether a file is to be tracked: not one that was last modified long
// before it was first seen.
func (d *discovery) wants(x found) bool {
	if d.IgnoreOlderThan == 0 || time.Since(time.Unix(0, x.mtime)) <= d.IgnoreOlderThan || len(d.checkpoint[x.id.ino]) > 0 {
		return true
	}
	s := d.files
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byInode[x.id] != nil || len(s.orphans[rotationBase(x.path)]) > 0
}

// scan walks all directories. It finds the changes that the notifications missed.
func (d *discovery) scan(ctx context.Context) (took time.Duration) {
	began := time.Now()
	d.scans++
	d.dirs.reset()
	w := d.newWalk()
	w.roots(ctx)
	if ctx.Err() != nil {
		return 0
	}
	d.files.pause(true)
	d.trackAll(w.files)
	if d.scans == 1 {
		d.trackCheckpointed()
	}
	d.loseMissing()
	d.sweepOrphans(w.files)
	d.files.pause(false)
	return time.Since(began)
}

// loseMissing handles the files that the last walk did not find.
func (d *discovery) loseMissing() {
	var missing, outside []*file
	s := d.files
	s.mu.Lock()
	for _, f := range s.byInode {
		switch {
		case f.scan == d.scans || f.lost:
		case f.outside:
			outside = append(outside, f)
		default:
			missing = append(missing, f)
		}
	}
	s.mu.Unlock()
	for _, f := range outside {
		if x, ok := statFile(f.path); ok && x.id == f.id {
			d.track(x)
		} else {
			missing = append(missing, f)
		}
	}
	d.lose(missing, true)
}

// sweepOrphans goes through the orphans after a scan. It schedules those that still have a
// descriptor, since a process that has the file open may have written to it, and those whose
// lingering is over. That does not begin while nothing at all is below their pattern: then a
// file system is probably not mounted.
func (d *discovery) sweepOrphans(seen []found) {
	alive := make(map[string]bool)
	for _, p := range d.patterns.tailed() {
		root := p.root(p.fixed)
		alive[root] = alive[root] || slices.ContainsFunc(seen, func(x found) bool { return within(root, x.path) })
	}
	now := time.Now()
	s := d.files
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.byPath, func(_ string, f *file) bool { return s.byInode[f.id] != f })
	for _, orphans := range s.orphans {
		for _, g := range orphans {
			here := s.byPath[g.path]
			waits := here != nil && here.queued != idle && here.stream == nil // it may continue the stream
			for root, alive := range alive {
				waits = waits || !alive && within(root, g.path)
			}
			if waits {
				g.orphan.lingerFrom = now
			}
			g.orphan.expired = now.Sub(g.orphan.lingerFrom) > d.Linger
			if g.orphan.expired || g.fd != nil {
				s.schedule.push(g)
			}
		}
	}
}

func within(dir, path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// notice handles notifications. again asks for a scan.
func (d *discovery) notice(ctx context.Context, batch []event) (again bool) {
	var removed, moved []*file
	for _, e := range batch {
		f := d.files.at(e.path)
		switch {
		case e.kind == wrote && f != nil:
			d.files.mu.Lock()
			f.initial = false
			d.files.schedule.push(f)
			d.files.mu.Unlock()
		case e.kind == wrote, e.kind == appeared:
			d.look(ctx, e.path)
		case e.kind == dirMoved, e.kind == overflowed, d.dirs.has(e.path):
			again = true
		case f == nil:
		case e.kind == deleted:
			removed = append(removed, f)
		default:
			moved = append(moved, f)
		}
	}
	d.lose(removed, false)
	d.lose(moved, true)
	return again
}

// look tracks the file that is at a path now.
func (d *discovery) look(ctx context.Context, path string) {
	info, err := os.Lstat(path)
	if err != nil {
		if f := d.files.at(path); f != nil && notFound(err) {
			d.lose([]*file{f}, true)
		}
		return
	}
	dir := filepath.Dir(path)
	at, ok := d.dirs.states[dir]
	if !ok {
		d.lookAgain(path)
		return
	}
	w := d.newWalk()
	w.one(ctx, dir, fs.FileInfoToDirEntry(info), at)
	if len(w.files) == 0 {
		d.lookAgain(path)
	}
	d.trackAll(w.files)
}

// lookAgain is for a path that no pattern covers, but that a tracked file may have: the
// target of a symbolic link, or the name after a rotation.
func (d *discovery) lookAgain(path string) {
	f := d.files.at(path)
	if f == nil {
		return
	}
	if x, ok := statFile(f.path); ok && x.id == f.id {
		d.track(x)
	} else {
		d.lose([]*file{f}, true)
	}
}

// answer handles the requests of the workers.
func (d *discovery) answer(ctx context.Context) {
	d.files.mu.Lock()
	requests := d.files.requests
	d.files.requests = nil
	d.files.mu.Unlock()
	for _, r := range requests {
		if r.copiesOf != nil {
			d.seekCopies(r.copiesOf)
		} else {
			d.seek(ctx, r.file)
		}
	}
}

// seek looks for a file that a worker did not find at its path, and tracks the one that is
// there instead.
func (d *discovery) seek(ctx context.Context, f *file) {
	path, _ := d.files.name(f)
	d.look(ctx, path)
	x, ok := statFile(path)
	now, _ := d.files.name(f)
	if now == path && !(ok && x.id == f.id) {
		d.lose([]*file{f}, true)
	}
}

// seekCopies looks for files that may have the content of an orphan: copies and archives
// beside it that no pattern covers. Those that turn out to have another one are dropped.
func (d *discovery) seekCopies(g *file) {
	path, _ := d.files.name(g)
	if g.kind == metadata {
		return
	}
	dir := filepath.Dir(path)
	entries, err := d.readDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		p := filepath.Join(dir, e.Name())
		if e.IsDir() || p == path || !slices.Contains(originals(p), rotationBase(path)) {
			continue
		}
		if x, ok := statFile(p); ok {
			d.track(x)
		}
	}
}

func (d *discovery) trackAll(files []found) {
	inOrder(files, d.NewestFirst)
	for _, x := range files {
		d.track(x)
	}
}

// track records a file that was found, under a name that is new or not, and schedules it
// if there may be something to read.
func (d *discovery) track(x found) {
	f, renamed, taken := d.known(x)
	if dir := filepath.Dir(x.target); x.target != "" && !d.dirs.has(dir) {
		d.dirs.watch(dir)
	}
	if taken != nil {
		d.lose([]*file{taken}, true) // before f is read, which may be a copy of it
	}

	s := d.files
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byInode[x.id] != f {
		return // a worker dropped it meanwhile; the next scan finds it if it is still there
	}
	push := renamed
	switch {
	case f == nil:
		f = d.newFile(x)
		s.add(f)
		push = true
	case renamed:
		s.rename(f, x.path)
	case f.lost: // it may be back
		f.lost, push = f.path != x.path, true
	}
	if f.stamp != x.stamp || f.failed {
		f.stamp, f.initial = x.stamp, false
		push = true
	}
	f.scan = d.scans
	s.byPath[x.path] = f
	if x.target != "" {
		s.byPath[x.target] = f
	}
	if push {
		s.schedule.push(f)
	}
}

// known returns the tracked file with the inode of x, whether x.path is its new name, and
// the other file that has had that name.
func (d *discovery) known(x found) (f *file, renamed bool, taken *file) {
	s := d.files
	s.mu.Lock()
	f, taken = s.byInode[x.id], s.byPath[x.path]
	if taken == f || taken != nil && taken.path != x.path {
		taken = nil
	}
	if k := kindOf(x); f != nil && f.kind != k && !(f.detected && k == transcript) { // the inode was reused
		delete(s.byInode, x.id)
		f.lost = true
		s.rotations.block(f)
		s.schedule.push(f)
		f = nil
	}
	var path string
	if f != nil {
		path = f.path
	}
	s.mu.Unlock()
	if f != nil && path != x.path {
		at, ok := statFile(path)
		renamed = !ok || at.id != x.id
	}
	return f, renamed, taken
}

func kindOf(x found) kind {
	switch {
	case x.metadata:
		return metadata
	case ShapeOf(x.path, nil, nil) == Archive:
		return archive
	}
	return transcript
}

// newFile returns a file that is not in the fileset yet. Its mu is held.
func (d *discovery) newFile(x found) *file {
	kind := kindOf(x)
	outside := d.files.outside(kind, x.path)
	return &file{
		path: x.path, id: x.id, stamp: x.stamp, kind: kind, document: x.document,
		initial: x.size > 0 && !d.files.scanned, preexisting: d.firstRun && !d.files.scanned,
		outside: outside, candidate: outside, previous: d.checkpoint.take(x),
	}
}

// lose handles files whose names lead elsewhere now. With search it looks for them in
// their directories, where rotation leaves them; a worker traces the others.
func (d *discovery) lose(files []*file, search bool) {
	if len(files) == 0 {
		return
	}
	s := d.files
	paths := make(map[*file]string, len(files))
	byDir := make(map[string][]*file)
	s.mu.Lock()
	for _, f := range files {
		if !f.lost && s.byInode[f.id] == f {
			f.lost = true
			s.rotations.block(f)
			paths[f] = f.path
			dir := filepath.Dir(f.path)
			byDir[dir] = append(byDir[dir], f)
		}
	}
	s.mu.Unlock()
	if search {
		for dir, group := range byDir {
			d.seekMoved(dir, group, paths)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range paths {
		s.schedule.push(f)
	}
}

// seekMoved looks for files in the directory they were in, and removes those that it
// finds from paths.
func (d *discovery) seekMoved(dir string, files []*file, paths map[*file]string) {
	entries, err := d.readDir(dir)
	if err != nil {
		return
	}
	ids := make(map[inode]*file)
	stems := make(map[string]struct{})
	for _, f := range files {
		ids[f.id] = f
		stems[stem(filepath.Base(paths[f]))] = struct{}{}
	}
	for _, e := range entries {
		if _, ok := stems[stem(e.Name())]; !ok || e.IsDir() {
			continue
		}
		x, ok := statFile(filepath.Join(dir, e.Name()))
		if f := ids[x.id]; ok && f != nil && paths[f] != "" {
			delete(paths, f)
			d.track(x)
		}
	}
}

// trackCheckpointed handles the streams of an earlier run whose files no pattern leads to
// now: it tracks those that were renamed, and orphans the others. Streams that the patterns
// no longer cover, because the configuration changed, are left alone.
func (d *discovery) trackCheckpointed() {
	dirs := make(map[string][]os.DirEntry)
	for _, c := range slices.Concat(slices.Collect(maps.Values(d.checkpoint))...) {
		if !c.outside && d.files.outside(c.kind, c.origin) {
			continue
		}
		if x, ok := d.locate(c, dirs); ok {
			d.track(x)
			continue
		}
		g := &file{path: c.origin, id: c.id, kind: c.kind, stream: c.stream}
		d.files.mu.Lock()
		d.files.addOrphan(g, 0)
		d.files.mu.Unlock()
	}
	clear(d.checkpoint)
}

// locate looks for the file of a stream at its path and in its directory. dirs caches
// directories.
func (d *discovery) locate(c *checkpointed, dirs map[string][]os.DirEntry) (found, bool) {
	if x, ok := statFile(c.origin); ok && c.isOf(x) {
		return x, true
	}
	dir := filepath.Dir(c.origin)
	entries, ok := dirs[dir]
	if !ok {
		entries, _ = d.readDir(dir)
		dirs[dir] = entries
	}
	for _, e := range entries {
		if e.IsDir() || stem(e.Name()) != stem(filepath.Base(c.origin)) {
			continue
		}
		if x, ok := statFile(filepath.Join(dir, e.Name())); ok && c.isOf(x) {
			return x, true
		}
	}
	return found{}, false
}
