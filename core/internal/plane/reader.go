package plane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/earshot-dev/earshot/core/internal/wire"
)

const (
	// firstBuffer is the size of a reader's buffer until a message needs more.
	firstBuffer = 16 << 10
	// ahead is how far a reader reads beyond a message: a small one takes one call of the system,
	// and what was read of the next one is cheap to move.
	ahead = 4 << 10
	// keep is the size of buffer that is used again for the next message.
	keep = 4 << 20
)

// reader cuts a stream into messages, which lie in its buffer.
type reader struct {
	from io.Reader
	// buf[:used] is the message that next returned, buf[used:] the beginning of the next one.
	buf  []byte
	used int
}

// next returns the next message, which is valid until the call after it. The error is io.EOF when the
// stream ends between messages.
func (r *reader) next() ([]byte, error) {
	r.drop()
	err := r.fill(lengthSize)
	if errors.Is(err, io.EOF) && len(r.buf) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(r.buf)
	if n > wire.MaxMessage {
		return nil, fmt.Errorf("plane: a message of %d bytes, the limit is %d", n, wire.MaxMessage)
	}
	if err := r.fill(lengthSize + int(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	r.used = lengthSize + int(n)
	return r.buf[lengthSize:r.used:r.used], nil
}

// drop lets go of the last message, and of a large buffer.
func (r *reader) drop() {
	rest := r.buf[r.used:]
	if cap(r.buf) > keep {
		r.buf = append(make([]byte, 0, max(firstBuffer, len(rest))), rest...)
	} else if r.used > 0 {
		r.buf = r.buf[:copy(r.buf, rest)]
	}
	r.used = 0
}

// fill reads until the buffer has n bytes, or more. It grows with what was read: a length
// that is not followed by bytes takes no memory.
func (r *reader) fill(n int) error {
	for len(r.buf) < n {
		if len(r.buf) == cap(r.buf) {
			grown := make([]byte, len(r.buf), max(firstBuffer, min(n+ahead, 2*cap(r.buf))))
			copy(grown, r.buf)
			r.buf = grown
		}
		to := min(cap(r.buf), n+ahead)
		got, err := r.from.Read(r.buf[len(r.buf):to])
		r.buf = r.buf[:len(r.buf)+got]
		if err != nil && len(r.buf) < n {
			return err
		}
	}
	return nil
}
