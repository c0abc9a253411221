package file

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

const (
	keptOfLong = 64 << 10 // bytes kept of a line beyond the limit
	maxFrames  = 4096     // of a batch, so that a buffer of tiny lines does not make a huge slice
	minRead    = 4 << 10
)

// endlessLine is the number of max_lines that an archive is unpacked for without finding the
// end of a line. A few bytes of it stand for that many.
const endlessLine = 4

// unknown is the size of a content that can only be read forward: an archive.
const unknown = math.MaxInt64

// reader reads batches of lines.
type reader struct {
	maxLine, maxRead int
	buffers          *buffers
	now              func() int64 // Unix ns
}

func newReader(maxLine, maxRead int) *reader {
	maxRead = max(maxRead, minRead)
	return &reader{maxLine, maxRead, newBuffers(maxRead), func() int64 { return time.Now().UnixNano() }}
}

// lines are the result of one read.
type lines struct {
	*chunk        // nil when no frame was cut
	to     cursor // the position after it
	used   []byte // the bytes of the file that end at to.line, as far as they are in the chunk
	eof    bool   // the end of the file was read
}

// batch returns the frames and their buffer, which belong to the caller then.
func (l *lines) batch() *frame.Batch {
	b := &frame.Batch{Data: l.buf, Frames: l.frames, Release: l.chunk.release}
	l.chunk = nil
	return b
}

// release returns the chunk to its pool, unless batch has returned it.
func (l *lines) release() {
	if l.chunk != nil {
		l.chunk.release()
		l.chunk = nil
	}
}

// next reads the lines after the stream's cursor, and makes sure that they belong to the
// stream. It returns them with the fingerprint of the content up to their end. The
// content before the cursor is compared after the new bytes were read: when it is still
// the stream's, they follow it. That of an archive, which does not grow, is compared
// before, and once for a line, since reading backward means to unpack it again. failed is the
// error that ended the reading; with err, none of the lines belong to the stream.
func (l *reader) next(st *stream, r io.ReaderAt, size int64, final bool) (read lines, m fingerprint, failed, err error) {
	var buf [printLen]byte
	var before []byte
	c := st.cursor
	within := size == unknown && c.scanned > c.line
	if size == unknown && !within {
		if before, err = bytesBefore(r, st.fingerprint.off, buf[:]); err != nil {
			return read, m, nil, err
		}
	} else if size < c.scanned {
		c.scanned, c.head = c.line, nil // a part of the last line was truncated
	}
	if read = (lines{to: c, eof: true}); size > c.scanned || final {
		read, failed = l.readLines(r, c, size, final)
	}
	if size == unknown && read.to.scanned-read.to.line > endlessLine*int64(l.maxLine) {
		return read, m, nil, archiveError{errors.New("no line ends"), read.to.scanned}
	}
	m = st.fingerprint
	n := read.to.line - c.line
	inChunk := n == int64(len(read.used))
	if !inChunk {
		if m, err = m.movedTo(r, read.to.line); err != nil {
			return read, m, nil, err
		}
	}
	if size != unknown {
		if before, err = bytesBefore(r, st.fingerprint.off, buf[:]); err != nil {
			return read, m, nil, err
		}
	}
	if !within && digestOf(before) != st.fingerprint.tail {
		return read, m, nil, errReplaced
	}
	if !within && st.fingerprint.off < int64(st.fingerprint.headLen) { // the tail is short
		if same, err := st.fingerprint.in(r); err != nil || !same {
			return read, m, nil, cmp.Or(err, errReplaced)
		}
	}
	if within && n > 0 {
		if m, err = m.movedTo(r, read.to.line); err != nil {
			return read, m, nil, err
		}
	} else if inChunk && n > 0 {
		m = m.moved(before, read.used, read.to.line)
	}
	return read, m, failed, nil
}

// readLines reads at p: as many whole lines as a buffer holds, or one line that is
// longer, or a part of a line that is longer still. size is the size of the file. With
// final the last line needs no newline.
//
// When r fails after some bytes, the lines in those are returned with the error.
func (l *reader) readLines(r io.ReaderAt, p cursor, size int64, final bool) (lines, error) {
	want := int64(l.maxRead)
	if p.step > 0 {
		want = int64(p.step)
	}
	if p.zeros {
		if rd, more, err := l.zeros(r, p, size, final); !more || size == unknown { // the bytes before the line are still in the window
			return rd, err
		} else {
			p = rd.to
		}
	}
	want = max(min(want, size-p.line), 1)
	if p.scanned > p.line {
		end, q, eof, err := l.find(r, p, size)
		n := q.scanned - q.line
		switch {
		case err != nil:
			return lines{to: q}, err
		case end < 0 && !(eof && final):
			return lines{to: q, eof: eof}, nil
		case end < 0 && q.head != nil:
			return l.long(q, q.scanned, true), nil
		case q.head != nil:
			return l.long(q, end, false), nil
		}
		p, want = q, max(want, n+1)
	}
	return l.fill(r, p, want, size, final)
}

// zeros reads one more buffer of a run of NUL bytes. more reports other bytes after
// them.
func (l *reader) zeros(r io.ReaderAt, p cursor, size int64, final bool) (rd lines, more bool, err error) {
	c := l.buffers.get(int(max(min(int64(l.maxRead), size-p.scanned), 1)))
	defer c.release()
	n, eof, err := readAt(r, c.buf, p.scanned)
	rest := bytes.TrimLeft(c.buf[:n], "\x00")
	p.scanned += int64(n - len(rest))
	eof = len(rest) == 0 && (eof || p.scanned >= size)
	switch {
	case len(rest) > 0 || eof && final:
		p.skip(p.scanned)
	case eof:
		p.skip(p.line) // read them again: they may be overwritten
	}
	return lines{to: p, eof: eof}, len(rest) > 0, err
}

// find searches one more buffer for the end of a line whose beginning is known.
// end is the offset after the newline, or -1.
func (l *reader) find(r io.ReaderAt, p cursor, size int64) (end int64, q cursor, eof bool, err error) {
	c := l.buffers.get(int(max(min(int64(l.maxRead), size-p.scanned), 1)))
	defer c.release()
	n, eof, err := readAt(r, c.buf, p.scanned)
	end = -1
	if i := bytes.IndexByte(c.buf[:n], '\n'); i >= 0 {
		end = p.scanned + int64(i) + 1
		n = i
	}
	p.scanned += int64(n)
	if p.scanned-p.line > int64(l.maxLine) && p.head == nil {
		head := make([]byte, min(keptOfLong, l.maxLine))
		if _, _, err := readAt(r, head, p.line); err != nil {
			return -1, p, false, err
		}
		p.head = head
	}
	return end, p, eof || p.scanned >= size, err
}

// long returns the frame of a line beyond the limit, of which the head was kept.
func (l *reader) long(p cursor, end int64, eof bool) lines {
	c := l.buffers.get(len(p.head))
	copy(c.buf, p.head)
	c.frames = p.emit(c.frames, c.buf, p.scanned-p.line, end, l.maxLine, l.now())
	return lines{chunk: c, to: p, eof: eof}
}

// fill reads want bytes at p. When no line ends in them, it reads on if it must (an
// archive), and else leaves that to find, by which the next call knows how large a
// buffer the line needs.
func (l *reader) fill(r io.ReaderAt, p cursor, want, size int64, final bool) (lines, error) {
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
		p.scanned = p.line + int64(got)
		if got > l.maxLine {
			p.head = bytes.Clone(c.buf[:min(keptOfLong, l.maxLine)])
		}
		c.release()
		return lines{to: p}, nil
	}
}

// grow returns a chunk with the same bytes and room for more.
func (l *reader) grow(c *chunk) *chunk {
	bigger := l.buffers.get(min(4*len(c.buf), max(l.maxLine, len(c.buf))+l.maxRead))
	copy(bigger.buf, c.buf)
	c.release()
	return bigger
}

// take cuts the first n bytes of c, which were read at p.line.
func (l *reader) take(c *chunk, n int, p cursor, eof, final bool) lines {
	at := l.now()
	b := c.buf[:n]
	frames, to := p.cut(c.frames, b, l.maxLine, at)
	eof = eof && to.scanned == p.line+int64(n)
	rest := b[to.line-p.line:]
	switch {
	case eof && to.zeros && final:
		to.skip(to.scanned)
	case eof && to.zeros, !eof && !to.zeros:
		to.skip(to.line) // read it again from the beginning of the line
	case eof && final && (len(rest) > l.maxLine || !blank(rest)):
		frames = to.emit(frames, rest, int64(len(rest)), to.scanned, l.maxLine, at)
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
	return lines{chunk: c, to: to, used: c.buf, eof: eof}
}

// readAt is r.ReadAt with the end of the file as a result instead of an error.
func readAt(r io.ReaderAt, p []byte, off int64) (n int, eof bool, err error) {
	n, err = r.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		return n, true, nil
	}
	return n, false, err
}

// cursor is the position of a stream in a file, in offsets of the file.
type cursor struct {
	base    int64 // the stream's position 0
	pos     int64 // the next frame begins here
	line    int64 // the next line begins here; all between pos and line is blank
	scanned int64 // there is no newline between line and here

	// zeros: there are only NUL bytes between line and seen. They are skipped once other
	// bytes follow: a writer that allocates its file in advance overwrites them with its
	// next line.
	zeros bool
	head  []byte // the first bytes of the line, once it is longer than the limit
	step  int    // bytes worth reading at once; 0: as many as allowed
}

// at returns the cursor before the line at off.
func (p cursor) at(off int64) cursor { return cursor{base: p.base, pos: off, line: off, scanned: off} }

// skip moves the beginning of the line to off.
func (p *cursor) skip(off int64) { p.line, p.scanned, p.zeros, p.head = off, off, false, nil }

// mark is the byte order mark, with which some editors begin a file.
var mark = []byte("\xef\xbb\xbf")

// emit appends the frame of a line of n bytes that ends at end in the file. data is
// the line, or its beginning when it is beyond the limit.
func (p *cursor) emit(frames []frame.Frame, data []byte, n, end int64, limit int, at int64) []frame.Frame {
	f := frame.Frame{Kind: frame.Line, At: at, Data: data, Pos: p.pos - p.base, End: end - p.base}
	if p.line == 0 {
		data = bytes.TrimPrefix(data, mark)
	}
	if n > int64(limit) {
		f.Data = data[:min(len(data), keptOfLong, limit)]
		f.Dropped, f.Reason = n-int64(len(f.Data)), msg.ReasonTooLong
	} else if end > p.line+n { // there was a newline
		f.Data = bytes.TrimSuffix(data, []byte{'\r'})
	}
	p.pos = end
	p.skip(end)
	return append(frames, f)
}

// cut appends the frames of the whole lines in b, which are the bytes of the file
// from p.line on.
func (p cursor) cut(frames []frame.Frame, b []byte, limit int, at int64) ([]frame.Frame, cursor) {
	start := p.line
	known := min(int(p.scanned-p.line), len(b)) // bytes known to hold no newline
	for rest := b; len(rest) > 0 && len(frames) < maxFrames; rest = b[p.line-start:] {
		if rest[0] == 0 {
			n := len(rest) - len(bytes.TrimLeft(rest, "\x00"))
			if n == len(rest) {
				p.scanned, p.zeros = p.line+int64(n), true
				break
			}
			p.skip(p.line + int64(n))
			known = 0
			continue
		}
		i := bytes.IndexByte(rest[known:], '\n')
		if i < 0 {
			p.scanned = p.line + int64(len(rest))
			break
		}
		i += known
		known = 0
		end := p.line + int64(i) + 1
		if i <= limit && blank(rest[:i]) {
			p.skip(end)
			continue
		}
		frames = p.emit(frames, rest[:i], int64(i), end, limit, at)
	}
	return frames, p
}

func blank(line []byte) bool {
	return len(line) == 0 || line[0] <= ' ' && len(bytes.TrimLeft(line, " \t\r")) == 0
}

// chunk is a buffer and the frames cut from it. A batch carries it through the pipeline
// and returns it to its pool. An append of a few bytes takes a small one, since a batch
// may stay in the pipeline for long.
type chunk struct {
	buf     []byte
	frames  []frame.Frame
	release func() // returns the chunk to its pool
}

// buffers are pools of chunks by the size of the buffer: minRead, twice as much,
// and so on up to max. A larger one serves the one line that needs it and is not pooled.
type buffers struct {
	max   int
	pools []sync.Pool
}

func newBuffers(max int) *buffers {
	return &buffers{max: max, pools: make([]sync.Pool, class(max)+1)}
}

func class(n int) int {
	return bits.Len(uint(max(n, minRead)-1)) - bits.Len(uint(minRead-1))
}

// get returns a chunk with a buffer of n bytes and no frames.
func (p *buffers) get(n int) *chunk {
	if n > p.max {
		return &chunk{buf: make([]byte, n), release: func() {}}
	}
	pool := &p.pools[class(n)]
	c, ok := pool.Get().(*chunk)
	if !ok {
		c = &chunk{buf: make([]byte, minRead<<class(n))}
		c.release = func() { pool.Put(c) }
	}
	c.buf, c.frames = c.buf[:n], c.frames[:0]
	return c
}
