package file

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// stream is one stream of frames, and the content that they are read from.
type stream struct {
	rewind rewind

	// The fileset's mu guards these. The worker that processes the file writes the
	// fingerprint, and reads it without the lock.
	file        *file // that has the content
	fingerprint fingerprint

	// These belong to that worker.
	key        string
	anchor     int64
	origin     string        // the path that the sink knows
	out        source.Stream // nil while it is not open
	cursor     cursor
	done       stamp // of a file that was read to its end; zero: there may be more
	safe       int64 // position up to which an earlier run delivered it
	size       int64 // of the file at the last read
	reachedEnd bool  // the end of the file was read once
	end        int64 // the last position that was the end: later frames were written while the file was tailed
}

// id returns the identity of the stream for the sink, with the state of a stream that was
// read from f up to m.
func (st *stream) id(f *file, path string, outside bool, m fingerprint) source.ID {
	s := state{
		V: stateV, Kind: f.kind, Dev: f.id.dev, Ino: f.id.ino, Outside: outside,
		Base: st.cursor.base, Off: m.off, Head: m.head, HeadLen: m.headLen, Tail: m.tail,
		DoneSize: st.done.size, DoneMtime: st.done.mtime,
	}
	return source.ID{Key: st.key, Origin: path, Anchor: st.anchor, State: s.encode()}
}

// exhausted reports whether a file with that stamp has nothing more to deliver.
func (st *stream) exhausted(at stamp) bool { return st.done == at && !st.rewind.pending() }

// rewind is the position from which the sink wants frames again, if any.
type rewind struct{ next atomic.Int64 } // the position plus 1

func (r *rewind) request(pos int64) { r.next.Store(pos + 1) }

func (r *rewind) pending() bool { return r.next.Load() > 0 }

func (r *rewind) clear() { r.next.Store(0) }

func (r *rewind) take() (pos int64, ok bool) {
	pos = r.next.Swap(0) - 1
	return pos, pos >= 0
}

// putBack restores a request that could not be met, unless there is a newer one.
func (r *rewind) putBack(pos int64) { r.next.CompareAndSwap(0, pos+1) }

// streamKeys are the keys of all streams.
type streamKeys map[string]struct{}

// unused returns a key that depends on the file alone, so that it is the same after a
// restart without a checkpoint.
func (k streamKeys) unused(id inode, first digest) string {
	key := fmt.Sprintf("%x-%x-%016x", id.dev, id.ino, uint64(first))
	for n := 2; ; n++ {
		if _, taken := k[key]; !taken {
			k[key] = struct{}{}
			return key
		}
		key = fmt.Sprintf("%x-%x-%016x-%d", id.dev, id.ino, uint64(first), n)
	}
}

// sinkError is an error of the sink, which is none of the file.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

func sinkFailed(op string, err error) error { return sinkError{fmt.Errorf("%s: %w", op, err)} }

// streams opens and closes streams at the sink.
type streams struct {
	sink  source.Sink
	files *fileset
}

// open opens a stream and returns the position that the sink wants next.
func (s *streams) open(ctx context.Context, f *file, st *stream, path string, outside bool) (pos int64, err error) {
	st.rewind.clear()
	out, pos, err := s.sink.Open(ctx, st.id(f, path, outside, st.fingerprint), func(pos int64) { s.files.rewind(st, pos) })
	if err != nil {
		return 0, sinkFailed("open", err)
	}
	st.out = out
	return pos, nil
}

// openFinished opens a stream that has nothing more to deliver.
func (s *streams) openFinished(ctx context.Context, f *file, st *stream) error {
	out, _, err := s.sink.Open(ctx, st.id(f, st.origin, false, st.fingerprint), func(int64) {})
	if err != nil {
		return sinkFailed("open", err)
	}
	st.out = out
	return nil
}

// flush closes the stream of an orphan, so that its decoder emits all it holds. The
// checkpoint keeps the stream: it continues if its content is found again.
func (s *streams) flush(ctx context.Context, g *file) error {
	st := g.stream
	if st == nil || st.out != nil || g.kind == metadata || g.orphan.flushed {
		return nil
	}
	if err := s.openFinished(ctx, g, st); err != nil {
		return err
	}
	err := st.out.Close(ctx, false)()
	if !errors.Is(err, source.ErrRewound) {
		st.out = nil
	}
	if err != nil {
		return sinkFailed("close", err)
	}
	g.orphan.flushed = true
	return nil
}

// complete closes the stream of a file that was read to its end for good.
func (s *streams) complete(ctx context.Context, f *file, at stamp) error {
	st := f.stream
	st.done = at
	path, outside := s.files.name(f)
	st.out.Save(st.id(f, path, outside, st.fingerprint))
	return s.close(ctx, st, false)
}

// forget closes streams of f, drops them from the checkpoint and frees their keys.
func (s *streams) forget(ctx context.Context, f *file, old ...*stream) error {
	for _, st := range old {
		if st.out == nil {
			if err := s.openFinished(ctx, f, st); err != nil {
				return err
			}
		}
		if err := s.close(ctx, st, true); err != nil {
			return err
		}
		s.files.mu.Lock()
		delete(s.files.keys, st.key)
		s.files.mu.Unlock()
	}
	return nil
}

func (s *streams) close(ctx context.Context, st *stream, forget bool) error {
	if err := st.out.Close(ctx, forget)(); err != nil {
		return sinkFailed("close", err)
	}
	st.out = nil
	return nil
}
