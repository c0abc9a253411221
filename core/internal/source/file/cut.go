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

	head []byte // the first bytes of the line, once it is longer than the limit
	step int    // bytes worth reading at once; 0: as many as allowed
}

func (p place) at(off int64) place {
	return place{base: p.base, pos: off, line: off, seen: off}
}

// emit appends the frame of a line whose data is at hand, which ends at end in
// the file; n is the length of the whole line.
func (p *place) emit(frames []frame.Frame, data []byte, n, end int64, limit int, at int64) []frame.Frame {
	f := frame.Frame{Kind: frame.Line, At: at, Data: data, Pos: p.pos - p.base, End: end - p.base}
	if n > int64(limit) {
		f.Data = data[:min(len(data), keptOfLong, limit)]
		f.Dropped, f.Reason = n-int64(len(f.Data)), msg.ReasonTooLong
	}
	p.pos, p.line, p.seen, p.head = end, end, end, nil
	return append(frames, f)
}

// cut appends the frames of the whole lines in b, which are the bytes of the file
// from p.line on. eof says that the file ends with b and may be continued.
func (p place) cut(frames []frame.Frame, b []byte, eof bool, limit int, at int64) ([]frame.Frame, place) {
	start := p.line
	known := min(int(p.seen-p.line), len(b)) // bytes known to hold no newline
	for rest := b; len(rest) > 0 && len(frames) < maxFrames; rest = b[p.line-start:] {
		if n := padding(rest, eof); n > 0 {
			p.line += int64(n)
			p.seen = max(p.seen, p.line)
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
		data := rest[:i]
		if i > 0 && data[i-1] == '\r' {
			data = data[:i-1]
		}
		end := p.line + int64(i) + 1
		if blank(data) {
			p.line, p.seen = end, end
			continue
		}
		frames = p.emit(frames, data, int64(len(data)), end, limit, at)
	}
	return frames, p
}

// padding counts the NUL bytes that b begins with. Those that a file ends with are
// no padding yet: they may be filled in later.
func padding(b []byte, eof bool) int {
	if b[0] != 0 {
		return 0
	}
	n := len(b) - len(bytes.TrimLeft(b, "\x00"))
	if n == len(b) && eof {
		return 0
	}
	return n
}

func blank(line []byte) bool {
	return len(line) == 0 || line[0] <= ' ' && len(bytes.TrimLeft(line, " \t\r")) == 0
}
