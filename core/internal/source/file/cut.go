package file

import (
	"bytes"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

const (
	keptOfLong = 64 << 10 // bytes kept of a line beyond the limit
	maxFrames  = 4096     // of a batch, so that a buffer of tiny lines does not make a huge slice
	minRead    = 4 << 10
)

// place is where a reader stands in a file, in offsets of the file.
type place struct {
	base int64 // where the stream's position 0 is
	pos  int64 // the next frame begins here
	line int64 // the next line begins here; all between pos and line is blank
	seen int64 // there is no newline between line and here

	// zeros says that there are only NUL bytes between line and seen. They are
	// skipped once something follows them: a writer that allocates its file in
	// advance will put its next line in their place.
	zeros bool
	head  []byte // the first bytes of the line, once it is longer than the limit
	step  int    // bytes worth reading at once; 0: as many as allowed
}

// at returns the place where the line at off begins.
func (p place) at(off int64) place { return place{base: p.base, pos: off, line: off, seen: off} }

// skip moves the beginning of the line to off.
func (p *place) skip(off int64) { p.line, p.seen, p.zeros, p.head = off, off, false, nil }

// emit appends the frame of a line of n bytes that ends at end in the file. data is
// the line, or its beginning when it is beyond the limit.
func (p *place) emit(frames []frame.Frame, data []byte, n, end int64, limit int, at int64) []frame.Frame {
	f := frame.Frame{Kind: frame.Line, At: at, Data: data, Pos: p.pos - p.base, End: end - p.base}
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
func (p place) cut(frames []frame.Frame, b []byte, limit int, at int64) ([]frame.Frame, place) {
	start := p.line
	known := min(int(p.seen-p.line), len(b)) // bytes known to hold no newline
	for rest := b; len(rest) > 0 && len(frames) < maxFrames; rest = b[p.line-start:] {
		if rest[0] == 0 {
			n := len(rest) - len(bytes.TrimLeft(rest, "\x00"))
			if n == len(rest) {
				p.seen, p.zeros = p.line+int64(n), true
				break
			}
			p.skip(p.line + int64(n))
			known = 0
			continue
		}
		i := bytes.IndexByte(rest[known:], '\n')
		if i < 0 {
			p.seen = p.line + int64(len(rest))
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
