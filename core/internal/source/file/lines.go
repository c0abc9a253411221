package file

import (
	"bytes"
	"errors"
	"io"
	"math"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// unknown is the size of what can only be read forward: an archive.
const unknown = math.MaxInt64

// lines reads batches of lines from something that can be read anywhere.
type lines struct {
	maxLine, maxRead int
	buffers          *buffers
	now              func() int64 // Unix ns
}

func newLines(maxLine, maxRead int) *lines {
	maxRead = max(maxRead, minRead)
	return &lines{maxLine, maxRead, newBuffers(maxRead), func() int64 { return time.Now().UnixNano() }}
}

// read is what one call of next had from the file.
type read struct {
	*chunk        // nil when nothing was cut
	to     place  // where the reader stands behind it
	used   []byte // the bytes of the file that end at to.line, as far as they are in the chunk
	eof    bool   // nothing follows
}

// hand makes a batch of it, which belongs to who gets it.
func (r *read) hand() *frame.Batch {
	b := r.batch()
	r.chunk = nil
	return b
}

// drop gives the chunk back when nobody else got it.
func (r *read) drop() {
	if r.chunk != nil {
		r.chunk.release()
		r.chunk = nil
	}
}

// next reads at p: as many whole lines as a buffer holds, or one line that is
// longer, or a part of a line that is longer still. size is how far the file
// goes. With final the last line needs no newline.
//
// When r fails after some bytes, what those hold is returned with the error.
func (l *lines) next(r io.ReaderAt, p place, size int64, final bool) (read, error) {
	want := int64(l.maxRead)
	if p.step > 0 {
		want = int64(p.step)
	}
	if p.zeros {
		if rd, more, err := l.zeros(r, p, size, final); !more {
			return rd, err
		} else {
			p = rd.to
		}
	}
	want = max(min(want, size-p.line), 1)
	if p.seen > p.line {
		end, q, eof, err := l.find(r, p, size)
		n := q.seen - q.line
		switch {
		case err != nil:
			return read{to: q}, err
		case end < 0 && !(eof && final):
			return read{to: q, eof: eof}, nil
		case end < 0 && q.head != nil:
			return l.long(q, q.seen, true), nil
		case q.head != nil:
			return l.long(q, end, false), nil
		}
		p, want = q, max(want, n+1)
	}
	return l.fill(r, p, want, size, final)
}

// zeros reads one more buffer of what may go on to be NUL bytes. more says that it
// does not.
func (l *lines) zeros(r io.ReaderAt, p place, size int64, final bool) (rd read, more bool, err error) {
	c := l.buffers.get(int(max(min(int64(l.maxRead), size-p.seen), 1)))
	defer c.release()
	n, eof, err := readAt(r, c.buf, p.seen)
	rest := bytes.TrimLeft(c.buf[:n], "\x00")
	p.seen += int64(n - len(rest))
	eof = len(rest) == 0 && (eof || p.seen >= size)
	switch {
	case len(rest) > 0 || eof && final:
		p.skip(p.seen)
	case eof:
		p.skip(p.line) // to be read again, since they may be filled in
	}
	return read{to: p, eof: eof}, len(rest) > 0, err
}

// find looks in one more buffer for the end of a line whose beginning is known.
// end is behind the newline, or -1.
func (l *lines) find(r io.ReaderAt, p place, size int64) (end int64, q place, eof bool, err error) {
	c := l.buffers.get(int(max(min(int64(l.maxRead), size-p.seen), 1)))
	defer c.release()
	n, eof, err := readAt(r, c.buf, p.seen)
	end = -1
	if i := bytes.IndexByte(c.buf[:n], '\n'); i >= 0 {
		end = p.seen + int64(i) + 1
		n = i
	}
	p.seen += int64(n)
	if p.seen-p.line > int64(l.maxLine) && p.head == nil {
		head := make([]byte, min(keptOfLong, l.maxLine))
		if _, _, err := readAt(r, head, p.line); err != nil {
			return -1, p, false, err
		}
		p.head = head
	}
	return end, p, eof || p.seen >= size, err
}

// long returns the frame of a line beyond the limit, of which the head was kept.
func (l *lines) long(p place, end int64, eof bool) read {
	c := l.buffers.get(len(p.head))
	copy(c.buf, p.head)
	c.frames = p.emit(c.frames, c.buf, p.seen-p.line, end, l.maxLine, l.now())
	return read{chunk: c, to: p, eof: eof}
}

// fill reads want bytes at p. When there is no end of a line in them, it reads on
// if it must (what can only be read forward), and else leaves that to find, which
// tells how large a buffer the line needs.
func (l *lines) fill(r io.ReaderAt, p place, want, size int64, final bool) (read, error) {
	c := l.buffers.get(int(want))
	got := 0
	for {
		n, eof, err := readAt(r, c.buf[got:min(len(c.buf), got+l.maxRead)], p.line+int64(got))
		whole := bytes.IndexByte(c.buf[got:got+n], '\n') >= 0
		got += n
		eof = eof || p.line+int64(got) >= size
		if whole || eof || err != nil || c.buf[0] == 0 {
			return l.take(c, got, p, eof, final && err == nil), err
		}
		if got < len(c.buf) && got <= l.maxLine {
			continue
		}
		if size == unknown && got <= l.maxLine {
			c = l.grow(c)
			continue
		}
		p.seen = p.line + int64(got)
		if got > l.maxLine {
			p.head = bytes.Clone(c.buf[:min(keptOfLong, l.maxLine)])
		}
		c.release()
		return read{to: p}, nil
	}
}

// grow returns a chunk with the same bytes and room for more.
func (l *lines) grow(c *chunk) *chunk {
	bigger := l.buffers.get(min(4*len(c.buf), max(l.maxLine, len(c.buf))+l.maxRead))
	copy(bigger.buf, c.buf)
	c.release()
	return bigger
}

// take cuts the first n bytes of c, which were read at p.line.
func (l *lines) take(c *chunk, n int, p place, eof, final bool) read {
	at := l.now()
	b := c.buf[:n]
	frames, to := p.cut(c.frames, b, l.maxLine, at)
	eof = eof && to.seen == p.line+int64(n)
	rest := b[to.line-p.line:]
	switch {
	case eof && to.zeros && final:
		to.skip(to.seen)
	case eof && to.zeros, !eof && !to.zeros:
		to.skip(to.line) // to be read from the beginning of the line, not behind what is known of it
	case eof && final && (len(rest) > l.maxLine || !blank(rest)):
		frames = to.emit(frames, rest, int64(len(rest)), to.seen, l.maxLine, at)
	}
	c.buf, c.frames = b[:to.line-p.line], frames
	switch {
	case len(frames) == maxFrames:
		to.step = max(len(c.buf), minRead)
	case p.step > 0 && 2*p.step < l.maxRead:
		to.step = 2 * p.step
	default:
		to.step = 0
	}
	return read{chunk: c, to: to, used: c.buf, eof: eof}
}

// readAt is r.ReadAt with the end of the file as a result instead of an error.
func readAt(r io.ReaderAt, p []byte, off int64) (n int, eof bool, err error) {
	n, err = r.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		return n, true, nil
	}
	return n, false, err
}
