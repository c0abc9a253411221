package file

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

// retryDelay is how long a file waits for others of its rotation set.
const retryDelay = 20 * time.Millisecond

// identifier finds the stream that the content of a file belongs to.
type identifier struct {
	*Settings
	files *fileset
	open  func(path string) (*os.File, error)
}

// identify sets the stream of f: one that was read from it in an earlier run, the one of
// an orphan, or a new one. f.stream stays nil while it cannot be decided, and of a
// duplicate. at is the stamp of the file; final: it has all the content that it will have.
//
// The answer depends on the content of the other files of the rotation set. So only one of
// a set is identified at a time, and the result is discarded when another one lost its
// file meanwhile.
func (i *identifier) identify(f *file, r io.ReaderAt, at stamp, final bool) (result, error) {
	if err := i.resume(f, r, at); err != nil || f.stream != nil {
		return result{}, err
	}
	s := i.files
	s.mu.Lock()
	s.rotations.unblock(f) // it has no content of its own to lose
	base, candidate := rotationBase(f.path), f.candidate
	orphans, ok := i.claimOrphans(f, base)
	if ok {
		s.rotations.begin(base)
	}
	s.mu.Unlock()
	if !ok {
		return result{after: retryDelay}, nil
	}
	decided, err := i.decide(f, r, orphans, candidate, final)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range orphans {
		s.release(g, result{})
	}
	valid := s.rotations.end(base)
	switch {
	case err != nil || f.stream != nil:
		return result{}, err
	case !valid || !decided:
		return result{after: retryDelay}, nil
	case candidate:
		s.remove(f)
	}
	return result{}, nil
}

// claimOrphans claims the orphans of a rotation set for the identification of f, the one
// that was read furthest first. ok is false while f has to wait. The fileset's mu is held.
func (i *identifier) claimOrphans(f *file, base string) (orphans []*file, ok bool) {
	s := i.files
	if !s.rotations.free(base) {
		return nil, false
	}
	for _, g := range s.orphans[base] {
		if g.stream == nil || g == f {
			continue
		}
		if g.queued != idle {
			return nil, false
		}
		orphans = append(orphans, g)
	}
	for _, g := range orphans {
		s.schedule.claim(g)
	}
	slices.SortFunc(orphans, func(a, b *file) int {
		return cmp.Compare(b.stream.fingerprint.off, a.stream.fingerprint.off)
	})
	return orphans, true
}

// decide identifies f once no other file of its rotation set is being identified. It
// returns false while the answer is open.
func (i *identifier) decide(f *file, r io.ReaderAt, orphans []*file, candidate, final bool) (decided bool, err error) {
	// A file that was orphaned up to now had been copied before: the copy is complete by
	// now, and may not have been at the stamp that the caller has.
	info, err := f.fd.Stat()
	if err != nil {
		return false, err
	}
	_, at, _ := describe(info)
	if !i.hasName(f) {
		return false, nil
	}
	if f.kind == transcript {
		r = io.NewSectionReader(r, 0, at.size) // later content is not compared
	}
	if err := i.adopt(f, orphans, r, at); err != nil || f.stream != nil || candidate {
		return true, err
	}
	switch rel, err := i.compare(f, r, at); {
	case err != nil || rel == undecided:
		return false, err
	case rel == isDuplicate:
		return true, nil
	}
	return true, i.begin(f, r, at, final)
}

// hasName reports whether f still has its name, by which its originals are found. Otherwise it
// asks the discovery for the present one. An orphan has no name any more.
func (i *identifier) hasName(f *file) bool {
	path, _ := i.files.name(f)
	if x, ok := statFile(path); f.orphan != nil || ok && x.id == f.id {
		return true
	}
	i.files.locate(f)
	return false
}

// resume sets the stream of f to the one of an earlier run that was read from it. The
// others that were read from it have another content, and are orphaned.
func (i *identifier) resume(f *file, r io.ReaderAt, at stamp) error {
	if len(f.previous) == 0 {
		return nil
	}
	var mine *stream
	for _, st := range f.previous {
		is, err := st.done == at && at != stamp{}, error(nil)
		if !is {
			is, err = st.fingerprint.in(r)
		}
		if err != nil {
			return err
		}
		if is {
			mine = st
			break
		}
	}
	s := i.files
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orphanPrevious(f, mine)
	if mine != nil {
		f.stream, mine.file = mine, f
	}
	s.rotations.unblock(f)
	return nil
}

// adopt sets the stream of f to the one of an orphan, when f holds all that was read of
// it: an archive, a copy, or a file that was written again with the same beginning. A
// shorter content must have been compared while the orphan had its file: that it begins
// alike proves nothing, and its later lines would be lost.
func (i *identifier) adopt(f *file, orphans []*file, r io.ReaderAt, at stamp) error {
	s := i.files
	for _, g := range orphans {
		if g.kind == metadata {
			continue
		}
		st := g.stream
		shorter := f.duplicate != nil && f.duplicate.stream == st && f.duplicate.at == at && f.duplicate.size < st.fingerprint.off
		if !shorter {
			is, err := st.fingerprint.in(r)
			if err != nil {
				return err
			}
			if !is {
				continue
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		i.Logger.Info("stream continues in another file", "stream", st.key, "from", g.path, "path", f.path)
		s.dropOrphan(g)
		g.stream = nil
		f.stream, st.file, f.duplicate = st, f, nil
		if st.done = (stamp{}); shorter {
			st.done = at
		}
		return nil
	}
	return nil
}

// begin sets the stream of f to a new one, once it has a line to derive the key from.
func (i *identifier) begin(f *file, r io.ReaderAt, at stamp, final bool) error {
	s := i.files
	head, whole, err := firstLine(r)
	if err != nil {
		return err
	}
	if !whole && !final || len(head) == 0 {
		s.mu.Lock()
		f.partial, f.initial = len(head) > 0, false
		s.mu.Unlock()
		return nil
	}
	st := &stream{anchor: at.mtime}
	if f.preexisting && i.StartAt == End {
		if st.cursor.base, err = sizeOf(r, at); err == nil && f.kind != archive {
			st.cursor.base, err = lastLine(r, at.size)
		}
		if err != nil {
			return err
		}
	}
	st.cursor = st.cursor.at(st.cursor.base)
	if st.fingerprint, err = fingerprintAt(r, st.cursor.base, len(head)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.rotations.valid(rotationBase(f.path)) {
		return nil
	}
	st.key = s.keys.unused(f.id, digestOf(head))
	i.Logger.Debug("new stream", "stream", st.key, "path", f.path)
	f.stream, st.file, f.duplicate = st, f, nil
	return nil
}

// relation is the result of comparing a file with others of its rotation set.
type relation uint8

const (
	distinct    relation = iota // it has content of its own
	isDuplicate                 // all its content is in another one
	undecided                   // another one has to be read first
)

// relative is another file of a rotation set, as it was when the comparison began.
type relative struct {
	*file
	path        string
	stream      *stream // nil: not identified yet
	fingerprint fingerprint
}

// relatives returns the files that f may be a copy of. The file with the base name is
// written to, and so no copy, unless it is an orphan.
func (i *identifier) relatives(f *file) (path string, out []relative) {
	s := i.files
	s.mu.Lock()
	defer s.mu.Unlock()
	base := rotationBase(f.path)
	if f.path == base && f.orphan == nil {
		return f.path, nil
	}
	for _, o := range s.members(base) {
		if o == f || o.kind == metadata {
			continue
		}
		r := relative{file: o, path: o.path, stream: o.stream}
		if o.stream != nil {
			r.fingerprint = o.stream.fingerprint
		}
		out = append(out, r)
	}
	return f.path, out
}

// compare compares f with the files that it may be a copy of. A duplicate is identified
// again when its original loses its content.
func (i *identifier) compare(f *file, r io.ReaderAt, at stamp) (relation, error) {
	path, relatives := i.relatives(f)
	for _, o := range relatives {
		like := false
		if o.stream != nil {
			var err error
			if like, _, err = o.fingerprint.match(r); err != nil {
				return distinct, err
			}
		}
		if !like && (o.kind == archive || !slices.Contains(originals(path), o.path)) {
			continue
		}
		rel, size, err := i.compareWith(o, r, at)
		if err != nil {
			return distinct, err
		}
		i.files.mu.Lock()
		switch rel {
		case isDuplicate:
			f.duplicate, f.initial = &duplicate{o.stream, at, size}, false
		case undecided:
			i.files.schedule.push(o.file)
			i.files.request(request{file: o.file})
		}
		i.files.mu.Unlock()
		if rel != distinct {
			return rel, nil
		}
	}
	return distinct, nil
}

// compareWith compares a content with the present one of a relative, and returns its size.
// When the relative cannot be read, the content counts as distinct.
func (i *identifier) compareWith(o relative, r io.ReaderAt, at stamp) (rel relation, size int64, err error) {
	fd, err := i.open(o.path)
	switch {
	case err == nil:
	case notFound(err) || tooManyOpen(err):
		return undecided, 0, nil
	default:
		return distinct, 0, nil
	}
	defer fd.Close()
	info, err := fd.Stat()
	if err != nil {
		return distinct, 0, nil
	}
	if id, _, _ := describe(info); id != o.id {
		return undecided, 0, nil
	}
	if o.stream == nil {
		if _, whole, err := firstLine(fd); whole && err == nil {
			return undecided, 0, nil // it is identified first
		}
		return distinct, 0, nil
	}
	var its io.ReaderAt = fd
	if o.kind == archive {
		its = newUnpacker(fd, i.MaxRead)
	} else if rel := o.intact(fd); rel != isDuplicate { // before r is unpacked in vain
		return rel, 0, nil
	}
	if size, err = sizeOf(r, at); err != nil || size == 0 {
		return distinct, 0, err
	}
	mine, err := fingerprintAt(r, size, 1)
	if err != nil {
		return distinct, 0, err
	}
	theirs, err := fingerprintAt(its, size, 1)
	switch {
	case err != nil && !errors.Is(err, errReplaced):
		return distinct, 0, nil
	case o.kind == transcript:
		rel = o.intact(fd) // compared last: then it had the stream's content before, too
	default:
		rel = isDuplicate
	}
	if rel == isDuplicate && (err != nil || mine != theirs) {
		rel = distinct
	}
	return rel, size, nil
}

// intact returns isDuplicate when r still has the content of the relative's stream.
func (o relative) intact(r io.ReaderAt) relation {
	switch is, err := o.fingerprint.in(r); {
	case err != nil:
		return distinct
	case !is:
		return undecided
	}
	return isDuplicate
}

// sizeOf returns the size of a content. An archive is unpacked for it.
func sizeOf(r io.ReaderAt, at stamp) (int64, error) {
	if g, ok := r.(*unpacker); ok {
		return g.size()
	}
	return at.size, nil
}

// firstLine returns the beginning of a content, up to its first newline. It is whole when
// there is one, or when the line is longer than a digest covers.
func firstLine(r io.ReaderAt) (line []byte, whole bool, err error) {
	head := make([]byte, printLen)
	n, eof, err := readAt(r, head, 0)
	if i := bytes.IndexByte(head[:n], '\n'); i >= 0 {
		return head[:i+1], true, err
	}
	return head[:n], !eof, err
}

// lastLine returns where the last line of the first size bytes begins: behind the
// last newline.
func lastLine(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		b := buf[:min(end, int64(len(buf)))]
		n, _, err := readAt(r, b, end-int64(len(b)))
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
			return end - int64(len(b)) + int64(i) + 1, nil
		}
		end -= int64(len(b))
	}
	return 0, nil
}
