package file

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// errMoved: the file is not at its path.
var errMoved = errors.New("file was moved")

// tailer processes files: it identifies each, reads its lines and delivers them to the
// sink. Every method of it works on the one file that its worker has taken.
type tailer struct {
	*Settings
	files         *fileset
	identity      *identifier
	reader        *reader
	streams       *streams
	metadata      *metadataReader
	problems      *problems
	open          func(path string) (*os.File, error)
	completeAfter time.Duration // a file without changes for so long is complete
}

// work processes files from a queue until ctx ends.
func (t *tailer) work(ctx context.Context, q *queue) {
	for {
		f, initial := t.files.take(ctx, q)
		if f == nil {
			return
		}
		t.files.done(ctx, q, f, initial, t.process(ctx, f))
	}
}

// process does the next step of the work on a file.
func (t *tailer) process(ctx context.Context, f *file) result {
	st := t.files.status(f, t.completeAfter)
	if st.lost {
		t.trace(f, !st.tracked)
		st = t.files.status(f, t.completeAfter)
	}
	if !st.tracked && !st.orphaned { // dropped meanwhile
		return result{}
	}
	if st.orphaned {
		t.gone(f)
	}
	var res result
	var err error
	switch {
	case st.orphaned && f.fd == nil && st.expired:
		err = t.expire(ctx, f)
	case st.orphaned && f.fd == nil:
		err = t.streams.flush(ctx, f)
	default:
		res, err = t.read(ctx, f, st)
	}
	res = t.resultOf(ctx, f, res, err)
	if st.expired && f.fd != nil && !res.again && res.after == 0 && ctx.Err() == nil { // all of it was read
		return t.resultOf(ctx, f, result{}, t.expire(ctx, f))
	}
	return res
}

// gone lets the sink know, once, that a file has no name or no longer its content.
func (t *tailer) gone(f *file) {
	st := f.stream
	if f.orphan.noted || st == nil || st.out == nil {
		return
	}
	f.orphan.noted = true
	path, outside := t.files.name(f)
	id := st.id(f, path, outside, st.fingerprint)
	id.Gone = true
	st.out.Save(id)
}

// read reads a part of a file, or all of one that is complete.
func (t *tailer) read(ctx context.Context, f *file, st status) (result, error) {
	at, err := t.ensureOpen(f)
	if err != nil {
		return result{}, err
	}
	if err := t.detect(f); err != nil {
		return result{}, err
	}
	switch f.kind {
	case metadata:
		defer f.close()
		return t.metadata.read(ctx, f, at)
	case archive:
		defer f.close()
		return t.unpack(ctx, f, at)
	}
	res, err := t.tail(ctx, f, at, st.final)
	if f.partial && st.completeIn > 0 { // then its last line is complete without a newline
		res.after = max(res.after, st.completeIn)
	}
	return res, err
}

// detect makes a transcript that has no stream yet a document if it begins like one.
func (t *tailer) detect(f *file) error {
	if len(t.Documents) == 0 || f.kind != transcript || f.stream != nil || f.candidate || f.orphan != nil {
		return nil
	}
	head, _, err := firstLine(f.fd)
	if err != nil {
		return err
	}
	if path, _ := t.files.name(f); ShapeOf(path, head, t.Documents) == Document {
		t.files.mu.Lock()
		defer t.files.mu.Unlock()
		f.kind, f.document, f.detected = metadata, true, true
	}
	return nil
}

// tail reads a batch of lines from a file that may grow.
func (t *tailer) tail(ctx context.Context, f *file, at stamp, final bool) (result, error) {
	if f.stream == nil {
		res, err := t.identity.identify(f, f.fd, at, final)
		if err != nil || f.stream == nil {
			return res, err
		}
	}
	if f.stream.exhausted(at) {
		t.confirm(f)
		return result{}, nil
	}
	f.stream.done = stamp{}
	return t.deliver(ctx, f, f.fd, at, at.size, final)
}

// unpack reads an archive to its end, in one turn: to take it up again would mean to
// unpack it again.
func (t *tailer) unpack(ctx context.Context, f *file, at stamp) (result, error) {
	if age := time.Since(time.Unix(0, at.mtime)); age >= 0 && age < t.completeAfter {
		return result{after: t.completeAfter - age}, nil // it is still being written
	}
	if f.stream != nil && f.stream.exhausted(at) {
		return result{}, nil
	}
	r := newUnpacker(f.fd, t.reader.maxRead)
	if f.stream == nil {
		res, err := t.identity.identify(f, r, at, true)
		if err != nil || f.stream == nil || f.stream.done == at {
			return res, err
		}
	}
	f.stream.done = stamp{}
	for ctx.Err() == nil {
		res, err := t.deliver(ctx, f, r, at, unknown, true)
		switch {
		case err != nil:
			return result{}, err
		case res.eof:
			return result{}, t.streams.complete(ctx, f, at)
		}
	}
	return result{}, nil
}

// deliver reads a batch of f from r and delivers it. size is the size of r.
func (t *tailer) deliver(ctx context.Context, f *file, r io.ReaderAt, at stamp, size int64, final bool) (result, error) {
	st := f.stream
	if st.out == nil {
		path, outside := t.files.name(f)
		pos, err := t.streams.open(ctx, f, st, path, outside)
		if err != nil {
			return result{}, err
		}
		st.origin = path
		if err := t.seek(st, r, pos); err != nil {
			return result{}, err
		}
	}
	if pos, ok := st.rewind.take(); ok {
		if err := t.seek(st, r, pos); err != nil {
			return result{}, err
		}
	}
	read, m, failed, err := t.reader.next(st, r, size, final)
	defer read.release()
	if err != nil {
		return result{}, err
	}
	path, outside := t.confirm(f)
	if read.chunk != nil && len(read.frames) > 0 {
		st.out.Save(st.id(f, path, outside, m))
		b := read.batch()
		b.Written, b.Backlog = at.mtime, st.backlog(b)
		if err := st.out.Deliver(ctx, b); err != nil {
			return result{}, sinkFailed("deliver", err)
		}
	}
	return t.files.advance(f, read, m, at), failed
}

// backlog reports whether frames were in the file before it was tailed.
func (st *stream) backlog(b *frame.Batch) bool { return !st.reachedEnd || b.Frames[0].Pos < st.end }

// seek moves the cursor of a stream to a position that the sink wants.
func (t *tailer) seek(st *stream, r io.ReaderAt, pos int64) error {
	to := st.cursor.at(st.cursor.base + pos)
	m, err := st.fingerprint.seek(r, to.pos)
	if err != nil {
		st.rewind.putBack(pos)
		return err
	}
	t.files.mu.Lock()
	defer t.files.mu.Unlock()
	st.cursor, st.fingerprint = to, m
	return nil
}

// confirm records that f has the content of its stream, after a comparison, and saves its
// name if that is new to the sink.
func (t *tailer) confirm(f *file) (path string, outside bool) {
	path, outside = t.files.unblock(f)
	if st := f.stream; st.out != nil && st.origin != path {
		st.out.Save(st.id(f, path, outside, st.fingerprint))
		st.origin = path
	}
	return path, outside
}

// ensureOpen opens a file if it is not open, and makes sure that it is the tracked one.
func (t *tailer) ensureOpen(f *file) (at stamp, err error) {
	path, _ := t.files.name(f)
	if f.fd == nil {
		if f.fd, err = t.open(path); err != nil {
			f.fd = nil
			return stamp{}, err
		}
	}
	info, err := f.fd.Stat()
	if err != nil {
		return stamp{}, err
	}
	id, at, _ := describe(info)
	if id != f.id {
		f.close()
		return stamp{}, errMoved
	}
	t.problems.clear(path)
	return at, nil
}

// resultOf turns an error into the result for a file: a report, a retry, an orphan.
func (t *tailer) resultOf(ctx context.Context, f *file, res result, err error) result {
	if err == nil {
		return res
	}
	var refused sinkError
	var broken archiveError
	switch {
	case errors.As(err, &refused) && ctx.Err() != nil:
		return result{}
	case errors.Is(err, source.ErrRewound): // it is to be closed again after that
		return result{after: retryDelay}
	case errors.As(err, &refused):
		t.problems.report(t.files.fail(f, true), ReasonRefused, err.Error())
	case errors.Is(err, errReplaced):
		return t.replaced(f)
	case errors.Is(err, errMoved), notFound(err): // its rotation set waits until it is found
		t.files.locate(f)
		return result{after: retryDelay}
	case tooManyOpen(err):
		t.files.closeIdle()
		return result{after: time.Second}
	case errors.As(err, &broken):
		t.problems.report(t.files.fail(f, false), ReasonArchive, err.Error())
	default:
		if f.orphan == nil { // the descriptor of an orphan is the only way to it
			f.close()
		}
		t.problems.report(t.files.fail(f, true), reasonOf(err), err.Error())
	}
	return result{}
}
