package file

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// found is a file that a walk or a notification found.
type found struct {
	path string
	stamp
	id       inode
	target   string // of the path, when it is a symbolic link
	metadata bool
	document bool // of the patterns to tail
}

// walk looks for files that match the patterns, below their roots.
type walk struct {
	patterns *patterns
	trees    *trees
	// wants reports whether a file is to be tailed. Metadata files are looked for beside
	// such files only.
	wants   func(found) bool
	enter   func(dir string, at []matchState) // called before a directory is read
	report  func(path, reason, detail string)
	readDir func(string) ([]os.DirEntry, error)

	// links are the directories entered by a symbolic link, with their states. Entering one
	// again with the same states would find nothing new, and never end in a loop.
	links map[string]struct{}
	files []found
}

// roots walks all patterns. A root that is not there yet is replaced by the
// nearest directory above it that is, so that its creation is noticed.
func (w *walk) roots(ctx context.Context) {
	at := make(map[string][]matchState)
	for i, p := range w.patterns.tailed() {
		n := p.fixed
		for n > 0 {
			if info, err := os.Stat(p.root(n)); err == nil && info.IsDir() {
				break
			}
			n--
		}
		at[p.root(n)] = w.patterns.from(at[p.root(n)], i, n)
	}
	for _, dir := range slices.Sorted(maps.Keys(at)) {
		w.dir(ctx, dir, at[dir])
	}
}

// dir walks one directory with those states.
func (w *walk) dir(ctx context.Context, dir string, at []matchState) {
	if ctx.Err() != nil {
		return
	}
	w.enter(dir, at)
	entries, err := w.readDir(dir)
	if err != nil {
		if !notFound(err) {
			w.report(dir, reasonOf(err), err.Error())
		}
		return
	}
	transcripts, metadata := w.patterns.split(at)
	beside := w.patterns.metadataStates()
	active := false
	var subs []subdir
	var documents map[string]struct{} // that are found
	for _, e := range entries {
		next, m := w.patterns.step(transcripts, e.Name())
		if len(next) == 0 && m == 0 {
			continue
		}
		document := m&tailed != 0 && w.patterns.documents(e.Name())
		if _, c := w.patterns.step(beside, e.Name()); c != 0 && !document {
			m = 0
		}
		f, isDir, ok := w.look(dir, e, m)
		switch {
		case isDir && len(next) > 0:
			subs = append(subs, subdir{f, next})
		case ok && document && w.wants(f):
			f.metadata, f.document = true, true
			w.files = append(w.files, f)
			if documents == nil {
				documents = make(map[string]struct{})
			}
			documents[e.Name()] = struct{}{}
		case ok && m != 0 && !document && w.wants(f):
			active = true
			w.files = append(w.files, f)
		}
	}
	if active && len(beside) > 0 {
		metadata = union(metadata, beside)
		w.enter(dir, union(transcripts, metadata))
	}
	for _, s := range w.metadata(dir, entries, metadata, subs, documents) {
		if s.target == "" || w.first(s) {
			w.dir(ctx, s.path, s.at)
		}
	}
}

// one is dir for a single entry that appeared in it.
func (w *walk) one(ctx context.Context, dir string, e os.DirEntry, at []matchState) {
	next, m := w.patterns.step(at, e.Name())
	beside := w.patterns.metadataStates()
	document := m&tailed != 0 && w.patterns.documents(e.Name())
	if _, c := w.patterns.step(beside, e.Name()); c != 0 && !document {
		m &^= tailed | named
	}
	f, isDir, ok := w.look(dir, e, m)
	switch {
	case isDir && len(next) > 0:
		w.dir(ctx, f.path, next)
	case ok && document:
		if w.wants(f) {
			f.metadata, f.document = true, true
			w.files = append(w.files, f)
		}
	case ok && m&tailed != 0 && w.wants(f):
		if len(union(at, beside)) > len(at) { // the first transcript in its directory
			w.dir(ctx, dir, at)
			return
		}
		w.files = append(w.files, f)
	case ok && m&isMetadata != 0:
		f.metadata = true
		w.files = append(w.files, f)
	}
}

type subdir struct {
	found
	at []matchState
}

// metadata looks for metadata files among the entries of dir, and returns subs with the
// directories added that may have more of them.
func (w *walk) metadata(dir string, entries []os.DirEntry, at []matchState, subs []subdir, found map[string]struct{}) []subdir {
	if len(at) == 0 {
		return subs
	}
	for _, e := range entries {
		next, m := w.patterns.step(at, e.Name())
		if len(next) == 0 && m == 0 {
			continue
		}
		f, isDir, ok := w.look(dir, e, m&isMetadata)
		switch {
		case isDir && len(next) > 0:
			if i := slices.IndexFunc(subs, func(s subdir) bool { return s.path == f.path }); i >= 0 {
				subs[i].at = union(subs[i].at, next)
			} else {
				subs = append(subs, subdir{f, next})
			}
		case ok && m != 0:
			if _, is := found[e.Name()]; !is {
				f.metadata = true
				w.files = append(w.files, f)
			}
		}
	}
	return subs
}

// look classifies an entry: a directory, a file to read, or neither.
func (w *walk) look(dir string, e os.DirEntry, m match) (f found, isDir, ok bool) {
	f.path = filepath.Join(dir, e.Name())
	if w.patterns.excluded(f.path) {
		return f, false, false
	}
	if e.IsDir() {
		if m&named != 0 {
			w.report(f.path, ReasonDirectory, "a directory where a file was named")
		}
		return f, true, false
	}
	if m&(tailed|isMetadata) == 0 && e.Type()&fs.ModeSymlink == 0 {
		return f, false, false
	}
	return w.stat(f.path, e.Type()&fs.ModeSymlink != 0, m)
}

// stat is look for a path whose type is not known yet.
func (w *walk) stat(path string, link bool, m match) (f found, isDir, ok bool) {
	f.path = path
	info, err := os.Stat(path)
	if err != nil {
		if !notFound(err) && !errors.Is(err, syscall.ELOOP) {
			w.report(path, reasonOf(err), err.Error())
		}
		return f, false, false
	}
	f.id, f.stamp, _ = describe(info)
	if link && (m != 0 || info.IsDir()) {
		if f.target, err = w.trees.resolve(path); errors.As(err, new(refusal)) {
			w.report(path, reasonOf(err), err.Error())
			return f, false, false
		}
	}
	switch {
	case info.IsDir():
		if m&named != 0 {
			w.report(path, ReasonDirectory, "a directory where a file was named")
		}
		return f, true, false
	case !info.Mode().IsRegular():
		if m != 0 {
			w.report(path, ReasonNotRegular, "not a regular file: "+info.Mode().Type().String())
		}
		return f, false, false
	case m != 0:
		if err := w.trees.checkOwner(info); err != nil {
			w.report(path, reasonOf(err), err.Error())
			return f, false, false
		}
	}
	return f, false, true
}

// first reports whether a linked directory is entered with these states for the first time.
func (w *walk) first(s subdir) bool {
	b := make([]byte, 0, 64)
	b = binary.LittleEndian.AppendUint64(b, s.id.dev)
	b = binary.LittleEndian.AppendUint64(b, s.id.ino)
	states := slices.SortedFunc(slices.Values(s.at), func(a, b matchState) int {
		return cmp.Or(cmp.Compare(a.pattern, b.pattern), cmp.Compare(a.segment, b.segment))
	})
	for _, p := range states {
		b = binary.LittleEndian.AppendUint16(b, p.pattern)
		b = binary.LittleEndian.AppendUint16(b, p.segment)
	}
	if _, ok := w.links[string(b)]; ok {
		return false
	}
	if w.links == nil {
		w.links = make(map[string]struct{})
	}
	w.links[string(b)] = struct{}{}
	return true
}

// inOrder sorts files into the order in which they are best read: those higher up
// first, since a parent's transcript lies above its children's, metadata before
// transcripts, and the oldest first or the newest.
func inOrder(files []found, newestFirst bool) {
	slices.SortStableFunc(files, func(a, b found) int {
		if c := cmp.Compare(depth(a.path), depth(b.path)); c != 0 {
			return c
		}
		if a.metadata != b.metadata {
			if a.metadata {
				return -1
			}
			return 1
		}
		if newestFirst {
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(a.mtime, b.mtime), cmp.Compare(a.path, b.path))
	})
}

// Unread is a path that matches and cannot be read, with the reason.
type Unread struct{ Path, Reason, Detail string }

// List returns the files that match now, without metadata files, in the order in which a
// source reads them, and those that cannot be read. open reports whether a file may be
// read; nil opens it. The error is that of a malformed pattern or an unknown user.
func (c *Config) List(ctx context.Context, open func(path string) error) (files []string, unread []Unread, err error) {
	ps, err := compile(c.Paths, nil, nil, c.Exclude)
	if err != nil {
		return nil, nil, err
	}
	trees, err := newTrees(ps, c.FollowSymlinks, c.Owners)
	if err != nil {
		return nil, nil, err
	}
	if open == nil {
		open = trees.try
	}
	w := &walk{
		patterns: ps,
		trees:    trees,
		wants:    func(found) bool { return true },
		enter:    func(string, []matchState) {},
		report:   func(path, reason, detail string) { unread = append(unread, Unread{path, reason, detail}) },
		readDir:  os.ReadDir,
	}
	w.roots(ctx)
	inOrder(w.files, false)
	for _, f := range w.files {
		switch err := open(f.path); {
		case err == nil:
			files = append(files, f.path)
		case !notFound(err):
			unread = append(unread, Unread{f.path, reasonOf(err), err.Error()})
		}
	}
	return files, unread, ctx.Err()
}

// try opens a file and closes it.
func (t *trees) try(path string) error {
	f, err := t.open(path)
	if err != nil {
		return err
	}
	return f.Close()
}
