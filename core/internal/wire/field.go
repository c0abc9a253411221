package wire

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// value is a field's value: num for varints and fixed widths, bytes for the
// rest. bytes aliases the input.
type value struct {
	num   uint64
	bytes []byte
}

// fields calls f for each field of a protobuf message.
func fields(in []byte, f func(protowire.Number, value) error) error {
	for len(in) > 0 {
		num, v, n, err := next(in)
		if err == nil {
			err = f(num, v)
		}
		if err != nil {
			return err
		}
		in = in[n:]
	}
	return nil
}

// next reads the first field of a protobuf message, which takes n bytes. Groups are refused: proto3
// has none.
func next(in []byte) (num protowire.Number, v value, n int, err error) {
	tag, n := uint64(in[0]), 1
	if tag >= 0x80 {
		tag, n = varint(in)
	}
	num, typ := protowire.DecodeTag(tag)
	if n < 0 || num < protowire.MinValidNumber {
		_, _, n = protowire.ConsumeTag(in)
		return 0, v, 0, fmt.Errorf("wire: tag: %w", protowire.ParseError(n))
	}
	in, size := in[n:], 0
	switch typ {
	case protowire.VarintType:
		v.num, size = varint(in)
	case protowire.Fixed64Type:
		v.num, size = protowire.ConsumeFixed64(in)
	case protowire.Fixed32Type:
		var x uint32
		x, size = protowire.ConsumeFixed32(in)
		v.num = uint64(x)
	case protowire.BytesType:
		if len(in) > 0 && int(in[0]) < min(len(in), 0x80) {
			size = 1 + int(in[0])
			v.bytes = in[1:size]
		} else {
			v.bytes, size = protowire.ConsumeBytes(in)
		}
	default:
		return num, v, 0, fmt.Errorf("wire: field %d: wire type %d", num, typ)
	}
	if size < 0 {
		return num, v, 0, fmt.Errorf("wire: field %d: %w", num, protowire.ParseError(size))
	}
	return num, v, n + size, nil
}

// varint is protowire.ConsumeVarint with a short path for short values, as nearly
// everything is.
func varint(in []byte) (v uint64, n int) {
	switch {
	case len(in) > 0 && in[0] < 0x80:
		return uint64(in[0]), 1
	case len(in) > 1 && in[1] < 0x80:
		return uint64(in[0]&0x7f) | uint64(in[1])<<7, 2
	}
	return protowire.ConsumeVarint(in)
}

// The append functions leave out zero values, as proto3 does. Most fields of most
// messages are zero, so that much is inlined.

func appendUint(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return appendVarint(dst, num, v)
}

func appendBool(dst []byte, num protowire.Number, v bool) []byte {
	if !v {
		return dst
	}
	return appendVarint(dst, num, 1)
}

// appendString appends a string and replaces bytes that are not valid UTF-8.
func appendString(dst []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return dst
	}
	return appendValid(dst, num, s)
}

func appendBytes(dst []byte, num protowire.Number, b []byte) []byte {
	if len(b) == 0 {
		return dst
	}
	return protowire.AppendBytes(appendTag(dst, num, protowire.BytesType), b)
}

func appendTag(dst []byte, num protowire.Number, typ protowire.Type) []byte {
	tag := uint(num)<<3 | uint(typ)
	if tag < 0x80 {
		return append(dst, byte(tag))
	}
	return append(dst, byte(tag)|0x80, byte(tag>>7)) // there is no field beyond 2047
}

func appendVarint(dst []byte, num protowire.Number, v uint64) []byte {
	dst = appendTag(dst, num, protowire.VarintType)
	if v < 0x80 {
		return append(dst, byte(v))
	}
	return protowire.AppendVarint(dst, v)
}

// appendValid appends a string, with invalid UTF-8 replaced: protobuf strings must be
// valid, and a peer with generated code would refuse the whole response.
func appendValid(dst []byte, num protowire.Number, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	dst = appendTag(dst, num, protowire.BytesType)
	if len(s) < 0x80 {
		return append(append(dst, byte(len(s))), s...)
	}
	return protowire.AppendString(dst, s)
}

// begin appends the beginning of a message in a field, with room for its length;
// end writes that. from is where the message begins.
func begin(dst []byte, num protowire.Number, room int) (out []byte, from int) {
	dst = append(appendTag(dst, num, protowire.BytesType), "\x00\x00\x00\x00\x00"[:room]...)
	return dst, len(dst)
}

// end writes the length of the message that begins at from into the room before it:
// a varint may have bytes to spare. The rare message that is too long is moved.
func end(dst []byte, from, room int) []byte {
	size := len(dst) - from
	if more := protowire.SizeVarint(uint64(size)) - room; more > 0 {
		dst = append(dst, make([]byte, more)...)
		copy(dst[from+more:], dst[from:])
		room += more
		from += more
	}
	for i := from - room; i < from-1; i++ {
		dst[i] = byte(size) | 0x80
		size >>= 7
	}
	dst[from-1] = byte(size)
	return dst
}

func appendInt32(dst []byte, num protowire.Number, v int32) []byte {
	return appendUint(dst, num, uint64(int64(v)))
}

// enum returns an enumerated value in one byte. A value that does not fit is of a newer
// protocol, and msg.Validate refuses it.
func enum(v value) uint8 { return uint8(min(v.num, 255)) }
