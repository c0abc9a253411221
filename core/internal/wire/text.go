package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// Field numbers of Range.
const (
	rangeOffset = 1
	rangeLength = 2
	rangeQuoted = 3
)

// appendText encodes a text as a range when it lies in the batch's data, and as a value
// otherwise.
func appendText(dst []byte, num, numAt protowire.Number, data []byte, t msg.Text) []byte {
	if t.IsZero() {
		return dst
	}
	if raw, quoted := t.Alias(); len(raw) > 0 {
		if off, ok := frame.Offset(data, raw); ok {
			dst, at := begin(dst, numAt, 1)
			dst = appendUint(dst, rangeOffset, uint64(off))
			dst = appendUint(dst, rangeLength, uint64(len(raw)))
			dst = appendBool(dst, rangeQuoted, quoted)
			return end(dst, at, 1)
		}
	}
	return appendString(dst, num, t.String())
}

// readRange returns the text in data that a Range names; field is for errors.
func readRange(field string, in, data []byte) (msg.Text, error) {
	var off, length uint64
	var quoted bool
	for len(in) > 0 {
		num, v, n, err := next(in)
		if err != nil {
			return msg.Text{}, err
		}
		in = in[n:]
		switch num {
		case rangeOffset:
			off = v.num
		case rangeLength:
			length = v.num
		case rangeQuoted:
			quoted = v.num != 0
		}
	}
	if off > uint64(len(data)) || length > uint64(len(data))-off {
		return msg.Text{}, fmt.Errorf("wire: %s: range %d+%d of %d bytes", field, off, length, len(data))
	}
	b := data[off : off+length]
	if quoted {
		return msg.Escaped(b), nil
	}
	return msg.Raw(b), nil
}

// text holds the bytes of a result and the same bytes as one string: the strings of the
// result are parts of it, so that they take one allocation.
type text struct {
	b []byte
	s string
}

func (s text) of(part []byte) string {
	off, ok := frame.Offset(s.b, part)
	if !ok {
		return string(part)
	}
	return s.s[off : off+len(part)]
}
