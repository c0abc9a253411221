package otlp

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// maxDepth is how deep values may lie in each other. The deepest that OTLP itself has is 8.
const maxDepth = 64

var (
	// errTwice is the error for a field that is encoded in parts. Encoders do not do that, and
	// decoders must accept it.
	errTwice = errors.New("a field is encoded twice")
	// errLong is the error for a record whose JSON is longer than it may be.
	errLong  = errors.New("too long")
	errDepth = fmt.Errorf("nested deeper than %d", maxDepth)
	errUTF8  = errors.New("a text is not UTF-8")
)

// protobuf writes messages in protobuf's encoding as JSON. It makes no values of them, because
// a request is text on its way to the journal.
type protobuf struct {
	limit int // of the length of dst
}

// message appends a message as a JSON object.
func (p *protobuf) message(dst []byte, m *message, in []byte, depth int) ([]byte, error) {
	if m.attribute && depth < maxDepth {
		if out, ok := appendAttribute(dst, in); ok {
			return out, nil
		}
	}
	dst, err := p.members(append(dst, '{'), m, in, depth, nil)
	return append(dst, '}'), err
}

// members appends the members of a message's object, without those of the field apart.
func (p *protobuf) members(dst []byte, m *message, in []byte, depth int, apart *field) ([]byte, error) {
	if depth > maxDepth {
		return dst, errDepth
	}
	var seen uint64
	first := true
	for len(in) > 0 {
		var number protowire.Number
		var wire protowire.Type
		n := 1
		if c := in[0]; c < 0x80 && c >= 8 { // most tags are one byte
			number, wire = protowire.Number(c>>3), protowire.Type(c&7)
		} else if number, wire, n = protowire.ConsumeTag(in); n < 0 {
			return dst, malformed(m, n)
		}
		f := m.field(number)
		packed := f != nil && f.repeated && wire == protowire.BytesType && f.wire != protowire.BytesType
		if f == nil || f == apart || wire != f.wire && !packed {
			size := protowire.ConsumeFieldValue(number, wire, in[n:])
			if size < 0 {
				return dst, malformed(m, size)
			}
			in = in[n+size:]
			continue
		}
		if seen&f.bit != 0 {
			return dst, errTwice
		}
		seen |= f.bit
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, f.head...)
		var err error
		switch {
		case packed:
			dst, in, err = p.packed(dst, f, in[n:])
		case f.repeated:
			dst, in, err = p.list(dst, f, in, n, depth)
		default:
			dst, in, err = p.value(dst, f, in[n:], depth)
		}
		if err != nil {
			return dst, at(m, f, err)
		}
		if len(dst) > p.limit {
			return dst, errLong
		}
	}
	return dst, nil
}

// each calls do with the messages of a repeated field of a message.
func each(m *message, f *field, in []byte, do func([]byte) error) error {
	for len(in) > 0 {
		number, wire, n := protowire.ConsumeTag(in)
		if n < 0 {
			return malformed(m, n)
		}
		size := protowire.ConsumeFieldValue(number, wire, in[n:])
		if size < 0 {
			return malformed(m, size)
		}
		if m.field(number) == f && wire == protowire.BytesType {
			b, _ := protowire.ConsumeBytes(in[n:])
			if err := do(b); err != nil {
				return err
			}
		}
		in = in[n+size:]
	}
	return nil
}

func (m *message) field(n protowire.Number) *field {
	if int(n) < len(m.fields) {
		return m.fields[n]
	}
	return nil
}

func malformed(m *message, n int) error {
	return fmt.Errorf("%s: %w", m.name, protowire.ParseError(n))
}

// list appends the values of a repeated field, whose tags follow each other; in begins with
// the first tag, of n bytes.
func (p *protobuf) list(dst []byte, f *field, in []byte, n, depth int) (_, rest []byte, err error) {
	tag := in[:n]
	dst = append(dst, '[')
	for {
		if dst, in, err = p.value(dst, f, in[n:], depth); err != nil {
			return dst, nil, err
		}
		if len(in) < n || string(in[:n]) != string(tag) {
			return append(dst, ']'), in, nil
		}
		if len(dst) > p.limit {
			return dst, nil, errLong
		}
		dst = append(dst, ',')
	}
}

// packed appends the values of a repeated field that lie in one sequence of bytes.
func (p *protobuf) packed(dst []byte, f *field, in []byte) (_, rest []byte, err error) {
	values, n := protowire.ConsumeBytes(in)
	if n < 0 {
		return dst, nil, protowire.ParseError(n)
	}
	dst = append(dst, '[')
	for i := 0; len(values) > 0; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, values, err = p.value(dst, f, values, 0); err != nil {
			return dst, nil, err
		}
		if len(dst) > p.limit {
			return dst, nil, errLong
		}
	}
	return append(dst, ']'), in[n:], nil
}

// value appends a value, with which in begins.
func (p *protobuf) value(dst []byte, f *field, in []byte, depth int) (_, rest []byte, err error) {
	switch f.wire {
	case protowire.BytesType:
		var b []byte
		n := 0
		if len(in) > 0 && in[0] < 0x80 && int(in[0]) < len(in) { // most are short
			n = 1 + int(in[0])
			b = in[1:n]
		} else if b, n = protowire.ConsumeBytes(in); n < 0 {
			return dst, nil, protowire.ParseError(n)
		}
		switch f.form {
		case formMessage:
			dst, err = p.message(dst, f.message, b, depth+1)
		case formText:
			dst, err = appendText(dst, b)
		default:
			dst = f.appendBytes(dst, b)
		}
		return dst, in[n:], err
	case protowire.VarintType:
		v, n := protowire.ConsumeVarint(in)
		if n < 0 {
			return dst, nil, protowire.ParseError(n)
		}
		return f.appendInteger(dst, v), in[n:], nil
	case protowire.Fixed64Type:
		if len(in) < 8 {
			return dst, nil, errCut
		}
		v := binary.LittleEndian.Uint64(in)
		if f.form == formFloating {
			return appendFloat(dst, math.Float64frombits(v), 64), in[8:], nil
		}
		return f.appendInteger(dst, v), in[8:], nil
	default:
		if len(in) < 4 {
			return dst, nil, errCut
		}
		v := binary.LittleEndian.Uint32(in)
		if f.form == formFloating {
			return appendFloat(dst, float64(math.Float32frombits(v)), 32), in[4:], nil
		}
		if f.kind == protoreflect.Sfixed32Kind {
			return strconv.AppendInt(dst, int64(int32(v)), 10), in[4:], nil
		}
		return strconv.AppendUint(dst, uint64(v), 10), in[4:], nil
	}
}

var errCut = errors.New("cut off")

// appendInteger appends an integer as its kind has it.
func (f *field) appendInteger(dst []byte, v uint64) []byte {
	if f.form == formBool {
		return strconv.AppendBool(dst, v != 0)
	}
	if f.form == formQuoted {
		dst = append(dst, '"')
	}
	switch f.kind {
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		dst = strconv.AppendUint(dst, v, 10)
	case protoreflect.Uint32Kind:
		dst = strconv.AppendUint(dst, uint64(uint32(v)), 10)
	case protoreflect.Int32Kind, protoreflect.EnumKind:
		dst = strconv.AppendInt(dst, int64(int32(v)), 10)
	case protoreflect.Sint32Kind:
		dst = strconv.AppendInt(dst, int64(int32(protowire.DecodeZigZag(v&math.MaxUint32))), 10)
	case protoreflect.Sint64Kind:
		dst = strconv.AppendInt(dst, protowire.DecodeZigZag(v), 10)
	default:
		dst = strconv.AppendInt(dst, int64(v), 10)
	}
	if f.form == formQuoted {
		dst = append(dst, '"')
	}
	return dst
}

// appendBytes appends bytes in hexadecimal or base64.
func (f *field) appendBytes(dst, b []byte) []byte {
	dst = append(dst, '"')
	if f.form == formHex {
		dst = hex.AppendEncode(dst, b)
	} else {
		dst = base64.StdEncoding.AppendEncode(dst, b)
	}
	return append(dst, '"')
}

// appendFloat appends a number, or the texts that JSON has for those that are none.
func appendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, bits)
}

// appendText appends a text as a JSON string.
func appendText(dst, s []byte) ([]byte, error) {
	if plain(s, 0, len(s)) {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"'), nil
	}
	if !utf8.Valid(s) {
		return dst, errUTF8
	}
	return jsonv.AppendQuote(dst, s), nil
}

// at is an error with the innermost field in which it is.
func at(m *message, f *field, err error) error {
	if known := (*fieldError)(nil); errors.As(err, &known) || errors.Is(err, errLong) || errors.Is(err, errTwice) {
		return err
	}
	return &fieldError{m.name + "." + f.name(), err}
}

type fieldError struct {
	path string
	error
}

func (e *fieldError) Error() string { return e.path + ": " + e.error.Error() }
func (e *fieldError) Unwrap() error { return e.error }
