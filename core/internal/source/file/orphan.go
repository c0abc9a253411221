package file

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// orphan is the state of an orphaned file: one whose name is gone, or whose content was
// replaced. It holds its stream until a file continues that, or the lingering is over.
type orphan struct {
	since      time.Time
	lingerFrom time.Time // the lingering counts from here
	expired    bool      // the lingering is over
	unread     int64     // bytes that are lost with it, unless a copy is found
	noted      bool      // the sink knows
	flushed    bool      // the stream's decoder has emitted all it held
}

// orphans are the orphaned files by rotation set. The fileset's mu guards them.
type orphans map[string][]*file

func (o orphans) remove(g *file) {
	base := rotationBase(g.path)
	o[base] = slices.DeleteFunc(o[base], func(f *file) bool { return f == g })
	if len(o[base]) == 0 {
		delete(o, base)
	}
}

// metadata returns the orphan in a rotation set that has the stream of a metadata file
// with that key, and that no worker processes.
func (o orphans) metadata(base, key string) *file {
	for _, g := range o[base] {
		if g.kind == metadata && g.queued == idle && g.stream != nil && g.stream.key == key {
			return g
		}
	}
	return nil
}

// trace finds out where a file is whose name leads elsewhere, and renames or detaches it.
// reused: another file has its inode now.
func (t *tailer) trace(f *file, reused bool) {
	if reused {
		f.close()
	}
	s := t.files
	now, _ := s.name(f)
	found := false
	info, err := os.Stat(now)
	switch {
	case err == nil:
		id, _, _ := describe(info)
		found = id == f.id && !reused
	case !notFound(err):
		found = true // an unreadable path does not mean that it is gone
	}
	if !found && !reused && f.fd != nil {
		if name, ok := nameOf(f.fd, f.id); ok {
			now, found = name, true
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !f.lost: // the discovery found it meanwhile
	case found:
		s.rename(f, now)
	default:
		s.detach(f)
	}
}

// replaced orphans the stream of a file whose content was replaced, by truncation or by
// the reuse of its inode. The file is identified again.
func (t *tailer) replaced(f *file) result {
	if f.stream == nil { // replaced while it was identified
		return result{after: retryDelay}
	}
	s := t.files
	s.mu.Lock()
	defer s.mu.Unlock()
	st := f.stream
	t.Logger.Info("file content was replaced", "path", f.path, "stream", st.key, "read", st.cursor.line)
	g := &file{path: f.path, id: f.id, kind: f.kind, stream: st}
	f.stream, f.partial, f.initial, f.candidate = nil, false, false, f.outside
	s.addOrphan(g, max(0, st.size-st.cursor.line))
	s.rotations.unblock(f)
	if base := rotationBase(f.path); base != rotationBase(g.path) {
		s.recheck(base)
	}
	return result{again: true}
}

// expire forgets an orphan and its stream, and reports the losses.
func (t *tailer) expire(ctx context.Context, g *file) error {
	if st := g.stream; st != nil {
		if n := g.orphan.unread; n > 0 {
			t.problems.report(g.path, ReasonUnread, fmt.Sprintf("%d bytes were not read before they were gone", n))
		}
		if pos, ok := st.rewind.take(); ok {
			t.problems.report(g.path, ReasonReplay, fmt.Sprintf("frames from %d on are to be delivered again, but are gone", pos))
		}
		if err := t.streams.forget(ctx, g, st); err != nil {
			return err
		}
	}
	t.problems.clear(g.path)
	t.files.mu.Lock()
	defer t.files.mu.Unlock()
	t.files.dropOrphan(g)
	return nil
}
