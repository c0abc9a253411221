package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

type recorder struct {
	ss     *streams
	source string
}

func (r *recorder) Begin(_ context.Context, format string, id source.ID) (source.Recording, error) {
	ss := r.ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.writer.closed {
		return nil, ErrClosed
	}
	if id.Key != "" {
		if s := ss.byKey[streamKey(r.source, id.Key)]; s != nil && !s.ending {
			if s.format != format {
				return nil, fmt.Errorf("journal: recording %s of format %s is continued as %s", id.Key, s.format, format)
			}
			if s.origin != id.Origin {
				s.origin, s.moved = id.Origin, true
			}
			return &recording{ss, s}, nil
		}
	}
	return &recording{ss, ss.begin(r.source, format, id)}, nil
}

// recording is an open stream, as its listener sees it.
type recording struct {
	ss *streams
	s  *stream
}

func (r *recording) Record(ctx context.Context, f *frame.Frame) error {
	ss, s := r.ss, r.s
	need := sizeOf(f)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for {
		switch {
		case ss.writer.closed || s.ending:
			return ErrClosed
		case ss.writer.pending+need <= ss.settings.MaxPending || ss.writer.pending == 0 && ss.writer.failing == nil:
			// Also when the disk fails: it may be back before memory is full.
			ss.flush(s)
			ss.record(s, f, need)
			return nil
		case ss.writer.failing != nil && ss.settings.WhenFull == DropOldest:
			n := int64(len(f.Data)) + f.Dropped + 1
			s.lost.add(ReasonFull, n)
			s.dropped, ss.outstanding = true, true
			ss.refused += n
			return nil
		}
		if err := ss.mu.await(ctx); err != nil {
			return fmt.Errorf("journal: record: %w", err)
		}
	}
}

func (r *recording) Gap(reason string, _, bytes int64) {
	if reason == "" {
		reason = "gap"
	}
	r.control(func(s *stream) { s.lost.add(reason, bytes) })
}

func (r *recording) Mark(state []byte) error {
	if len(state) > maxString {
		return fmt.Errorf("journal: mark: %d bytes, more than %d", len(state), maxString)
	}
	state = bytes.Clone(state)
	return r.control(func(s *stream) { s.state, s.marked = state, true })
}

func (r *recording) Close() error {
	err := r.control(func(s *stream) { s.ending = true })
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// control changes a stream in a way that takes little room: it waits for none.
func (r *recording) control(change func(*stream)) error {
	ss, s := r.ss, r.s
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.writer.closed || s.ending {
		return ErrClosed
	}
	change(s)
	if s.ending && s.segment == nil {
		ss.dropUnknown(s)
		return nil
	}
	if ss.writer.crowded() {
		ss.outstanding = true
		return nil
	}
	ss.flush(s)
	return nil
}

func (r *recording) State() []byte {
	r.ss.mu.Lock()
	defer r.ss.mu.Unlock()
	return bytes.Clone(r.s.state)
}

func (r *recording) Sync(ctx context.Context) error {
	ss, s := r.ss, r.s
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if err := ss.writer.sync(ctx, ss.writer.appended); err != nil {
		return err
	}
	if s.dropped {
		s.dropped = false
		return ErrDropped
	}
	return nil
}
