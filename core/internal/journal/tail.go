package journal

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// tail is a stream that is being delivered.
type tail struct {
	number uint64
	origin string
	out    source.Stream
	next   int64 // position of the next frame to be delivered
	ended  bool  // its end was read

	frames    []frame.Frame // to be delivered next; their data lies in the reader's buffer
	lastLen   int           // how many there were in the batch before
	closeNext bool          // close the stream behind them
	closing   chan error    // not nil while it is being closed
}

// tail returns the stream, opened.
func (r *Reader) tail(ctx context.Context, e *entry) (*tail, error) {
	if t := r.tails[e.number]; t != nil {
		return t, nil
	}
	n := e.number
	out, pos, err := r.sink.Open(ctx, e.id(), func(pos int64) { r.inbox.rewind(n, pos) })
	if err != nil {
		return nil, err
	}
	t := &tail{number: n, origin: e.origin, out: out, next: pos}
	r.tails[n] = t
	delete(r.known, n)
	return t, nil
}

// tailAt returns the stream of a record at pos. A stream that is opened for it gets its
// last mark first. A mark alone does not open a stream: a recording without frames and
// without an end does not exist for the pipeline.
func (r *Reader) tailAt(ctx context.Context, e *entry, pos int64) (*tail, error) {
	known := r.tails[e.number] != nil
	t, err := r.tail(ctx, e)
	if err != nil {
		return nil, err
	}
	if !known {
		t.mark(pos, e.state)
	}
	return t, nil
}

// mark passes the listener's state at a position on to the pipeline.
func (t *tail) mark(pos int64, state []byte) {
	if len(state) > 0 {
		t.out.Mark(pos, state)
	}
}

// take handles a record.
func (r *Reader) take(ctx context.Context, rec *record) error {
	if rec.kind == kindBegin {
		return r.takeBegin(ctx, rec)
	}
	e, named := r.here[rec.stream]
	if !named {
		// The record that named it is damaged. A stream that is open here is known anyway.
		t := r.tails[rec.stream]
		if t == nil {
			return nil // deliverIndexed counts it, if the index has it
		}
		e = &entry{number: t.number}
	}
	if e == nil {
		return nil
	}
	switch rec.kind {
	case kindFrame, kindGap:
		f, err := rec.frame(r.names)
		if err != nil {
			r.reportDamage(r.window.at, int64(headSize+len(rec.payload)))
			return nil
		}
		t, err := r.tailAt(ctx, e, f.Pos)
		if err != nil {
			return err
		}
		if f.End <= t.next {
			return nil
		}
		r.addGap(t, f.Pos, f.At, ReasonCorrupt)
		f.Pos = t.next
		r.add(t, f)
	case kindMark:
		e.state = bytes.Clone(rec.payload)
		if t := r.tails[rec.stream]; t != nil {
			t.mark(rec.pos, e.state)
		}
	case kindEnd:
		t, err := r.tailAt(ctx, e, rec.pos)
		if err != nil {
			return err
		}
		r.addGap(t, rec.pos, rec.at, ReasonCorrupt)
		r.end(t)
	}
	return nil
}

// takeBegin handles a record that names a stream.
func (r *Reader) takeBegin(ctx context.Context, rec *record) error {
	e := new(entry)
	if e.parse(rec) != nil {
		r.reportDamage(r.window.at, int64(headSize+len(rec.payload)))
		return nil
	}
	if e.source != r.source || e.format != r.format || r.inbox.isFinished(e.number) || r.known[e.number].Closed {
		r.here[e.number] = nil
		return nil
	}
	r.here[e.number] = e
	t := r.tails[e.number]
	if t == nil {
		return nil
	}
	t.mark(e.to, e.state)
	r.addGap(t, e.to, rec.at, ReasonCorrupt)
	if t.origin != e.origin && e.to >= t.next {
		t.origin = e.origin
		t.out.Save(e.id())
	}
	return nil
}

// addGap adds a frame without data for the bytes that are missing before pos.
func (r *Reader) addGap(t *tail, pos, at int64, reason string) {
	if pos > t.next {
		r.add(t, frame.Frame{At: at, Pos: t.next, End: pos, Dropped: pos - t.next, Reason: reason})
	}
}

func (r *Reader) add(t *tail, f frame.Frame) {
	r.markTouched(t)
	if t.frames == nil {
		t.frames = make([]frame.Frame, 0, max(t.lastLen, 1))
	}
	t.frames = append(t.frames, f)
	t.next = f.End
}

// end has a stream closed behind the frames that were read of it.
func (r *Reader) end(t *tail) {
	if t.closing != nil {
		return
	}
	r.markTouched(t)
	t.ended, t.closeNext = true, true
	r.inbox.ended(t.number)
}

func (r *Reader) markTouched(t *tail) {
	if len(t.frames) == 0 && !t.closeNext {
		r.touched = append(r.touched, t)
	}
}

// deliver delivers the frames that were read, in a batch for each stream.
func (r *Reader) deliver(ctx context.Context) error {
	for len(r.touched) > 0 {
		t := r.touched[0]
		r.touched = r.touched[1:]
		if len(t.frames) > 0 {
			b := batch(t.frames)
			t.lastLen, t.frames = len(t.frames), nil
			if err := t.out.Deliver(ctx, b); err != nil {
				return err
			}
		}
		if t.closeNext {
			t.closeNext = false
			if err := r.close(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// batch moves frames into a buffer of their own. With one buffer for all streams every
// decoder would receive every stream's bytes.
func batch(frames []frame.Frame) *frame.Batch {
	n := 0
	for i := range frames {
		n += len(frames[i].Data)
	}
	b := &frame.Batch{Data: make([]byte, 0, n), Frames: frames}
	for i := range frames {
		from := len(b.Data)
		b.Data = append(b.Data, frames[i].Data...)
		frames[i].Data = b.Data[from:]
	}
	return b
}

// close closes a stream, and does not wait until it is closed.
func (r *Reader) close(ctx context.Context, t *tail) error {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	t.closing = done
	r.closers.Add(1)
	wait := t.out.Close(ctx, false)
	go func() {
		defer r.closers.Done()
		err := wait()
		<-r.slots
		awaited := errors.Is(err, source.ErrAwaited)
		r.inbox.update(func() {
			if err == nil {
				r.inbox.finished[t.number] = true
				r.inbox.shut = append(r.inbox.shut, t.number)
			}
			if err == nil || awaited {
				delete(r.inbox.unfinished, t.number)
			}
			done <- err // after finished is set: Run may read the stream's frames again
		})
		if awaited {
			time.AfterFunc(r.j.settings.reclose, func() { r.inbox.retry(t.number) })
		}
	}()
	return nil
}

// retryCloses closes the streams that could not be closed before. One that was rewound
// meanwhile is closed when its end is read again.
func (r *Reader) retryCloses(ctx context.Context) error {
	for _, n := range r.inbox.takeRetries() {
		t := r.tails[n]
		if t == nil {
			continue
		}
		select {
		case err := <-t.closing:
			t.closing = nil
			if errors.Is(err, source.ErrAwaited) {
				r.end(t)
			}
		default:
		}
	}
	return r.deliver(ctx)
}

// rewind handles the pipeline's rewinds: it moves to the oldest segment with frames to be
// delivered again, which the indexes show. It also drops the streams that were closed.
func (r *Reader) rewind(ctx context.Context) error {
	rewinds, shut := r.inbox.takeRewinds()
	for _, n := range shut {
		delete(r.tails, n)
	}
	move := false
	for n, pos := range rewinds {
		t := r.tails[n]
		if t == nil {
			continue
		}
		if t.closing != nil {
			// Until Close has returned, the stream takes no frames.
			select {
			case err := <-t.closing:
				t.closing = nil
				if err := r.handleClose(t, err); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
			if r.tails[n] == nil {
				continue
			}
		}
		move = move || pos < t.next || t.ended
		t.next = pos
	}
	if !move {
		return nil
	}
	return r.enter(r.j.segments.from(0))
}

// handleClose handles the result of a Close.
func (r *Reader) handleClose(t *tail, err error) error {
	switch {
	case err == nil:
		delete(r.tails, t.number)
		return nil
	case errors.Is(err, source.ErrRewound), errors.Is(err, source.ErrAwaited):
		return nil
	}
	return err
}

// deliverIndexed delivers gaps for the ranges that a sealed segment has by its index and
// that could not be read in it, and the ends.
func (r *Reader) deliverIndexed(ctx context.Context, gone bool) error {
	reason := ReasonCorrupt
	if gone {
		reason = ReasonDropped
	}
	var list []*entry
	if err := r.j.segments.entries(r.at, func(e *entry) {
		if r.needs(e) {
			list = append(list, e)
		}
	}); err != nil && !missing(err) {
		return err
	}
	now := time.Now().UnixNano()
	for _, e := range list {
		t, err := r.tail(ctx, e)
		if err != nil {
			return err
		}
		t.mark(e.to, e.state)
		r.addGap(t, e.to, now, reason)
		if e.ended {
			r.end(t)
		}
	}
	return r.deliver(ctx)
}
