// Package reassemble puts the messages of a WebSocket together again from the
// bytes of one direction, as a tap copies them (RFC 6455, and permessage-deflate of
// RFC 7692). It is passive: it sends nothing and closes nothing, and a protocol error of a
// peer ends only the reassembly.
//
//	 0               1               2 ...
//	|F|R|R|R| opcode|M| length 7, 7+16 or 7+64 | mask 0 or 32 | payload
//	         first frame of a message: R1: the message is compressed
//
// Messages may be fragmented, with control frames between the fragments. Violations of the
// RFC are accepted unless they change the meaning of the bytes.
package reassemble

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/msg"
)

// Deflate is the agreement on permessage-deflate for one direction.
type Deflate struct {
	On bool
	// Takeover: a message may refer to the ones before it, in this direction.
	Takeover bool
}

// opcodes
const (
	opContinue = 0
	opText     = 1
	opBinary   = 2
	opClose    = 8
)

// maxControl is the longest payload of a control frame.
const maxControl = 125

// keep is the maximum memory that is kept for the next message.
const keep = 64 << 10

// Assembler reassembles one direction of one connection. It is not safe for
// concurrent use.
type Assembler struct {
	limit      int
	fromClient bool
	inflate    *inflater // nil: nothing is compressed

	head    [14]byte // of the frame in progress
	headLen int
	inFrame bool

	left    uint64 // bytes of its payload to come
	masked  bool
	mask    [4]byte
	maskPos int
	control bool
	op      byte
	final   bool

	open       bool // a message has begun
	text       bool
	compressed bool
	data       []byte
	dropped    int64

	closed bool
	err    error
}

// New returns an assembler of the bytes from the client, or from the server. Of a message
// with more than limit bytes the head is kept, in a frame whose Reason is too_long.
func New(limit int, fromClient bool, d Deflate) *Assembler {
	a := &Assembler{limit: limit, fromClient: fromClient}
	if d.On {
		a.inflate = &inflater{takeover: d.Takeover, limit: limit}
	}
	return a
}

// Closed reports whether a close frame has arrived; later bytes are skipped.
func (a *Assembler) Closed() bool { return a.closed }

// Held is the number of bytes in memory that are in no frame yet.
func (a *Assembler) Held() int {
	if a.inflate == nil {
		return len(a.data)
	}
	return len(a.data) + len(a.inflate.window)
}

// Open reports whether a message has begun and not ended.
func (a *Assembler) Open() bool { return a.open || a.inFrame || a.headLen > 0 }

// Feed takes the next bytes, read at that time, and adds the messages they
// complete. An error is permanent: the bytes are not those of a WebSocket, or a
// compressed message cannot be read. Nothing after it can be reassembled.
func (a *Assembler) Feed(b *frame.Batch, chunk []byte, at int64) error {
	for len(chunk) > 0 && a.err == nil && !a.closed {
		if !a.inFrame {
			chunk = a.header(chunk)
			if a.inFrame && a.left == 0 && a.err == nil {
				a.frameEnd(b, at)
			}
			continue
		}
		n := int(min(a.left, uint64(len(chunk))))
		a.payload(chunk[:n])
		chunk = chunk[n:]
		if a.left -= uint64(n); a.left == 0 {
			a.frameEnd(b, at)
		}
	}
	return a.err
}

// header takes bytes of a frame's head and returns the rest.
func (a *Assembler) header(chunk []byte) []byte {
	need := 2
	for {
		if a.headLen >= 2 {
			need = headSize(a.head[1])
		}
		if a.headLen == need {
			a.begin()
			return chunk
		}
		if len(chunk) == 0 {
			return nil
		}
		n := copy(a.head[a.headLen:need], chunk)
		a.headLen += n
		chunk = chunk[n:]
	}
}

func headSize(second byte) int {
	n := 2
	switch second & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if second&0x80 != 0 {
		n += 4
	}
	return n
}

// begin begins the frame whose head is complete.
func (a *Assembler) begin() {
	first, second, rest := a.head[0], a.head[1], a.head[2:a.headLen]
	a.headLen, a.inFrame = 0, true
	a.final, a.op, a.masked, a.maskPos = first&0x80 != 0, first&0x0f, second&0x80 != 0, 0
	a.control = a.op&0x8 != 0
	switch n := second & 0x7f; n {
	case 126:
		a.left, rest = uint64(binary.BigEndian.Uint16(rest)), rest[2:]
	case 127:
		a.left, rest = binary.BigEndian.Uint64(rest), rest[8:]
	default:
		a.left = uint64(n)
	}
	if a.masked {
		copy(a.mask[:], rest)
	}
	rsv1 := first&0x40 != 0
	switch {
	case first&0x30 != 0:
		a.err = errors.New("reserved bits are set")
	case rsv1 && (a.inflate == nil || a.control || a.op == opContinue):
		a.err = errors.New("a compressed frame where none was agreed on")
	case a.control && (a.left > maxControl || !a.final):
		a.err = errors.New("a long or fragmented control frame")
	case a.left > 1<<62:
		a.err = errors.New("a frame of more than 2^62 bytes")
	case a.control:
	case a.op == opContinue && !a.open, a.op != opContinue && a.open:
		a.err = fmt.Errorf("a frame with opcode %d out of order", a.op)
	case a.op > opBinary:
		a.err = fmt.Errorf("unknown opcode %d", a.op)
	case a.op != opContinue:
		a.open, a.text, a.compressed = true, a.op == opText, rsv1
	}
}

// payload takes bytes of the frame's payload.
func (a *Assembler) payload(p []byte) {
	if a.control {
		return
	}
	n := min(len(p), a.limit-len(a.data))
	at := len(a.data)
	a.data = append(a.data, p[:n]...)
	a.dropped += int64(len(p) - n)
	if a.masked {
		unmask(a.data[at:], a.mask, a.maskPos)
		a.maskPos = (a.maskPos + len(p)) & 3
	}
}

func unmask(p []byte, mask [4]byte, pos int) {
	for len(p) > 0 && pos&3 != 0 {
		p[0] ^= mask[pos&3]
		p, pos = p[1:], pos+1
	}
	word := uint64(binary.LittleEndian.Uint32(mask[:]))
	word |= word << 32
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(p)^word)
		p = p[8:]
	}
	for i := range p {
		p[i] ^= mask[i&3]
	}
}

// frameEnd ends a frame, and the message if it was its last.
func (a *Assembler) frameEnd(b *frame.Batch, at int64) {
	a.inFrame = false
	switch {
	case a.op == opClose:
		a.closed = true
		return
	case a.control || !a.final:
		return
	}
	a.emit(b, at, "")
}

// emit emits the message in progress.
func (a *Assembler) emit(b *frame.Batch, at int64, reason string) {
	data, dropped := a.data, a.dropped
	if a.compressed && reason == "" {
		switch {
		case dropped > 0:
			reason = msg.ReasonTooLong
			if a.inflate.takeover {
				a.err = errors.New("a compressed message beyond the limit; those after it refer to it")
			}
		default:
			var err error
			if data, dropped, err = a.inflate.message(data); err != nil {
				reason, data, dropped, a.err = source.ReasonEncoding, a.data, 0, err
			}
		}
	}
	if dropped > 0 && reason == "" {
		reason = msg.ReasonTooLong
	}
	f := frame.Frame{Kind: frame.Binary, FromClient: a.fromClient, At: at, Dropped: dropped, Reason: reason}
	if a.text {
		f.Kind = frame.Text
	}
	b.Append(f, data)
	a.open, a.dropped = false, 0
	if a.data = a.data[:0]; cap(a.data) > keep {
		a.data = nil
	}
}

// Abandon emits the message in progress with a reason, so that it is not decoded, and ends
// the reassembly.
func (a *Assembler) Abandon(b *frame.Batch, at int64, reason string) {
	if a.open && (len(a.data) > 0 || a.dropped > 0) {
		a.emit(b, at, reason)
	}
	a.open = false
	if a.err == nil {
		a.err = errors.New("abandoned: " + reason)
	}
}
