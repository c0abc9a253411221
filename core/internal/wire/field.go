package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// value is a field's value: num for varints and fixed widths, bytes for the
// rest. bytes aliases the input.
type value struct {
	num   uint64
	bytes []byte
}

// fields calls f for each field of a protobuf message. Groups are refused: proto3
// has none.
func fields(in []byte, f func(protowire.Number, value) error) error {
	for len(in) > 0 {
		num, typ, n := protowire.ConsumeTag(in)
		if n < 0 {
			return fmt.Errorf("wire: tag: %w", protowire.ParseError(n))
		}
		in = in[n:]
		var v value
		switch typ {
		case protowire.VarintType:
			v.num, n = protowire.ConsumeVarint(in)
		case protowire.Fixed64Type:
			v.num, n = protowire.ConsumeFixed64(in)
		case protowire.Fixed32Type:
			var x uint32
			x, n = protowire.ConsumeFixed32(in)
			v.num = uint64(x)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(in)
		default:
			return fmt.Errorf("wire: field %d: wire type %d", num, typ)
		}
		if n < 0 {
			return fmt.Errorf("wire: field %d: %w", num, protowire.ParseError(n))
		}
		if err := f(num, v); err != nil {
			return err
		}
		in = in[n:]
	}
	return nil
}

// The append functions leave out zero values, as proto3 does.

func appendUint(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

func appendBool(dst []byte, num protowire.Number, v bool) []byte {
	if !v {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), 1)
}

func appendString(dst []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, num, protowire.BytesType), s)
}

func appendBytes(dst []byte, num protowire.Number, b []byte) []byte {
	if len(b) == 0 {
		return dst
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), b)
}
