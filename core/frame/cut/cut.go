// Package cut cuts a stream of bytes into lines, or into one document. Server-sent events
// are package sse. All of them are pure: neither the sizes of the chunks nor their pace
// changes a frame.
package cut

import (
	"bytes"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// keep is the maximum memory that is kept for the next line.
const keep = 256 << 10

// Lines cuts at \n. Blank lines are no frames; they belong to the range of the
// frame that follows. It is not safe for concurrent use.
type Lines struct {
	max  int
	kind frame.Kind

	pos, start int64
	open       []byte // the line in progress
	dropped    int64
}

// NewLines returns a cutter whose frames have that kind. Of a line of more than
// max bytes the head is kept, in a frame whose Reason is too_long.
func NewLines(kind frame.Kind, maxLine int) *Lines { return &Lines{max: maxLine, kind: kind} }

// Feed takes the next bytes, read at that time, and adds the frames they complete.
func (l *Lines) Feed(b *frame.Batch, chunk []byte, at int64) {
	for len(chunk) > 0 {
		i := bytes.IndexByte(chunk, '\n')
		if i < 0 {
			l.add(chunk)
			l.pos += int64(len(chunk))
			return
		}
		l.add(chunk[:i])
		l.pos += int64(i + 1)
		l.end(b, at)
		chunk = chunk[i+1:]
	}
}

// Finish adds the last line, which no \n has ended, if there is one.
func (l *Lines) Finish(b *frame.Batch, at int64) { l.end(b, at) }

// Held is the number of bytes in memory that are in no frame yet.
func (l *Lines) Held() int { return len(l.open) }

func (l *Lines) add(part []byte) {
	n := min(len(part), l.max-len(l.open))
	l.open = append(l.open, part[:n]...)
	l.dropped += int64(len(part) - n)
}

func (l *Lines) end(b *frame.Batch, at int64) {
	if len(bytes.TrimSpace(l.open)) > 0 || l.dropped > 0 {
		f := frame.Frame{Kind: l.kind, At: at, Pos: l.start, End: l.pos, Dropped: l.dropped}
		if l.dropped > 0 {
			f.Reason = msg.ReasonTooLong
		}
		b.Append(f, l.open)
		l.start = l.pos
	}
	l.dropped = 0
	if l.open = l.open[:0]; cap(l.open) > keep {
		l.open = nil
	}
}

// Document cuts everything as one Body frame, which Finish adds. It is not safe for
// concurrent use.
type Document struct {
	max     int
	data    []byte
	dropped int64
}

// headOfLost is how much is kept of a document with a hole, to show which one it was.
const headOfLost = 64 << 10

// Lost records that bytes are missing here: no more of the document is kept.
func (d *Document) Lost() {
	n := min(len(d.data), headOfLost)
	d.dropped += int64(len(d.data) - n)
	d.data, d.max = bytes.Clone(d.data[:n]), n
}

// NewDocument returns a cutter that keeps the first maxBody bytes.
func NewDocument(maxBody int) *Document { return &Document{max: maxBody} }

// Feed takes the next bytes.
func (d *Document) Feed(_ *frame.Batch, chunk []byte, _ int64) {
	n := min(len(chunk), d.max-len(d.data))
	d.data = append(d.data, chunk[:n]...)
	d.dropped += int64(len(chunk) - n)
}

// Finish adds the document, unless it is blank.
func (d *Document) Finish(b *frame.Batch, at int64) {
	if len(bytes.TrimSpace(d.data)) == 0 && d.dropped == 0 {
		return
	}
	f := frame.Frame{Kind: frame.Body, At: at, End: int64(len(d.data)) + d.dropped, Dropped: d.dropped}
	if d.dropped > 0 {
		f.Reason = msg.ReasonTooLong
	}
	if len(b.Data) == 0 { // no second copy of a piece that may be large
		b.Data, d.data = d.data, nil
		f.Data = b.Data
		b.Frames = append(b.Frames, f)
		return
	}
	b.Append(f, d.data)
}

// Held is the number of bytes in memory that are in no frame yet.
func (d *Document) Held() int { return len(d.data) }
