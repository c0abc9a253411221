// Package body cuts the bodies of requests and responses into frames, and undoes
// their content encodings. It works on a listener's own copy of the bytes.
package body

import (
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/cut"
	"github.com/earshot-dev/earshot/core/frame/eventstream"
	"github.com/earshot-dev/earshot/core/frame/sse"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// cutter is the common interface of packages sse, eventstream and cut.
type cutter interface {
	Feed(b *frame.Batch, chunk []byte, at int64)
	Finish(b *frame.Batch, at int64)
	Held() int
}

// Cutter cuts one body. It is not safe for concurrent use.
type Cutter struct {
	shape Shape
	limit int
	cut   cutter

	lost    bool  // a document has a hole
	seeking bool  // for the next beginning of a frame
	ended   byte  // while seeking: the line end just seen, or 0
	skipped int64 // while seeking
}

// New returns a cutter whose frames hold at most limit bytes. Opaque bodies are
// cut as documents: the caller knows a decoder that reads them.
func New(shape Shape, limit int) *Cutter {
	c := &Cutter{shape: shape, limit: limit}
	c.begin()
	return c
}

func (c *Cutter) begin() {
	switch c.shape {
	case Events:
		c.cut = sse.New(0, c.limit)
	case Lines:
		c.cut = cut.NewLines(frame.Line, c.limit)
	case Messages:
		c.cut = eventstream.New(c.limit)
	default:
		c.cut = cut.NewDocument(c.limit)
	}
}

// Feed takes the next bytes, read at that time, and adds the frames they complete.
func (c *Cutter) Feed(b *frame.Batch, chunk []byte, at int64) {
	if c.seeking {
		if chunk = c.seek(chunk); c.seeking {
			return
		}
	}
	c.cut.Feed(b, chunk, at)
}

// Lost records a hole: bytes are missing here. The frame in progress is emitted with
// Reason, and the bytes after the hole are skipped up to the next frame.
func (c *Cutter) Lost(b *frame.Batch, at int64, reason string) {
	if c.shape == Messages { // they are found again by their checksums
		c.partial(b, at, reason)
		return
	}
	if c.shape != Events && c.shape != Lines {
		if d, ok := c.cut.(*cut.Document); ok && !c.lost {
			d.Lost()
		}
		c.lost = true
		return
	}
	if !c.seeking {
		c.partial(b, at, reason)
	}
	c.seeking, c.ended = true, 0
}

// partial emits the frame in progress with a reason, so that it is not decoded.
func (c *Cutter) partial(b *frame.Batch, at int64, reason string) {
	n := len(b.Frames)
	c.cut.Finish(b, at)
	for i := n; i < len(b.Frames); i++ {
		if b.Frames[i].Reason == "" || c.lost {
			b.Frames[i].Reason = reason
		}
	}
	c.begin()
}

// Finish ends the body. If the peer ended it properly (whole), the frame in progress is
// complete; otherwise it is emitted with the reason connection_lost.
func (c *Cutter) Finish(b *frame.Batch, at int64, whole bool) {
	switch {
	case c.lost:
		c.partial(b, at, source.ReasonFull)
	case c.seeking:
	case whole:
		c.cut.Finish(b, at)
	default:
		c.partial(b, at, source.ReasonBroken)
	}
}

// Held is the number of bytes in memory that are in no frame yet.
func (c *Cutter) Held() int { return c.cut.Held() }

// Skipped returns the number of bytes skipped since its last call.
func (c *Cutter) Skipped() int64 {
	n := c.skipped
	c.skipped = 0
	return n
}

// seek skips to where a frame begins: behind a line end, or, for events, behind a
// blank line.
func (c *Cutter) seek(chunk []byte) []byte {
	for i, x := range chunk {
		found := false
		switch {
		case x != '\n' && (x != '\r' || c.shape == Lines):
			c.ended = 0
			continue
		case c.shape == Lines:
			found = true
		case x == '\n' && c.ended == '\r': // the second half of one end
		default:
			found = c.ended != 0
		}
		c.ended = x
		if found {
			c.seeking = false
			c.skipped += int64(i + 1)
			return chunk[i+1:]
		}
	}
	c.skipped += int64(len(chunk))
	return nil
}
