package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// object appends a JSON object of a client as the JSON of a message. Clients differ: some
// have the field names of the .proto, names of enums, numbers for integers of 64 bits, or ids in base64. A
// member that is no field stays as it is.
func object(dst []byte, m *message, v jsonv.Value, limit int) ([]byte, error) {
	dst, err := members(append(dst, '{'), m, v, nil, limit)
	return append(dst, '}'), err
}

// members appends the members of an object, without those of the field apart.
func members(dst []byte, m *message, v jsonv.Value, apart *field, limit int) ([]byte, error) {
	if !v.Is(jsonv.Object) {
		return dst, fmt.Errorf("%s: not an object", m.name)
	}
	var seen uint64
	first := true
	for key, value := range v.Members() {
		f := m.names[string(key.Bytes())]
		if f != nil && (f == apart || !value.Exists()) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if f == nil {
			dst = append(jsonv.AppendQuote(dst, key.Bytes()), ':')
			dst = appendCompact(dst, value.Peek())
			continue
		}
		if seen&f.bit != 0 {
			return dst, at(m, f, errTwice)
		}
		seen |= f.bit
		dst = append(dst, f.head...)
		var err error
		if f.repeated {
			dst, err = list(dst, f, value, limit)
		} else {
			dst, err = f.appendJSON(dst, value, limit)
		}
		if err != nil {
			return dst, at(m, f, err)
		}
		if len(dst) > limit {
			return dst, errLong
		}
	}
	return dst, nil
}

func list(dst []byte, f *field, v jsonv.Value, limit int) ([]byte, error) {
	if !v.Is(jsonv.Array) {
		return dst, errors.New("not an array")
	}
	dst = append(dst, '[')
	first := true
	for e := range v.Elems() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		var err error
		if dst, err = f.appendJSON(dst, e, limit); err != nil {
			return dst, err
		}
		if len(dst) > limit {
			return dst, errLong
		}
	}
	return append(dst, ']'), nil
}

// appendCompact appends valid JSON on one line.
func appendCompact(dst, raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return append(dst, "null"...)
	}
	return append(dst, b.Bytes()...)
}

// appendJSON appends one value of the field.
func (f *field) appendJSON(dst []byte, v jsonv.Value, limit int) ([]byte, error) {
	switch f.form {
	case formMessage:
		return object(dst, f.message, v, limit)
	case formText:
		if !v.Is(jsonv.String) {
			return dst, errors.New("not a string")
		}
		return append(dst, v.Peek()...), nil
	case formHex, formBase64:
		return f.appendID(dst, v)
	case formBool:
		switch s := string(v.Peek()); s {
		case "true", "false":
			return append(dst, s...), nil
		case `"true"`, `"false"`:
			return append(dst, s[1:len(s)-1]...), nil
		}
		return dst, errors.New("neither true nor false")
	case formFloating:
		text := v.Peek()
		if v.Is(jsonv.String) {
			text = v.Escaped()
			if s := string(text); s == "NaN" || s == "Infinity" || s == "-Infinity" {
				return append(dst, v.Peek()...), nil
			}
		} else if !v.Is(jsonv.Number) {
			return dst, errors.New("not a number")
		}
		n, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return dst, errors.New("not a number")
		}
		return appendFloat(dst, n, 64), nil
	}
	return f.appendWhole(dst, v)
}

// appendWhole appends an integer or an enum's value.
func (f *field) appendWhole(dst []byte, v jsonv.Value) ([]byte, error) {
	text := v.Peek()
	if v.Is(jsonv.String) {
		text = v.Escaped()
		if f.values != nil {
			if e := f.values.ByName(protoreflect.Name(text)); e != nil {
				return strconv.AppendInt(dst, int64(e.Number()), 10), nil
			}
		}
	} else if !v.Is(jsonv.Number) {
		return dst, errors.New("not a number")
	}
	bits := 64
	if f.form == formNumber {
		bits = 32
	}
	n, err := strconv.ParseInt(string(text), 10, bits)
	out := uint64(n)
	if f.unsigned() {
		out, err = strconv.ParseUint(string(text), 10, bits)
	}
	if err != nil {
		// 1e9 and 5.0 are whole numbers too.
		d, ferr := strconv.ParseFloat(string(text), 64)
		if ferr != nil || d != math.Trunc(d) || math.Abs(d) > 1<<53 || f.unsigned() && d < 0 || bits == 32 && math.Abs(d) > math.MaxInt32 {
			return dst, errors.New("not a whole number in range")
		}
		out = uint64(int64(d))
	}
	if f.form == formQuoted {
		dst = append(dst, '"')
	}
	if f.unsigned() {
		dst = strconv.AppendUint(dst, out, 10)
	} else {
		dst = strconv.AppendInt(dst, int64(out), 10)
	}
	if f.form == formQuoted {
		dst = append(dst, '"')
	}
	return dst, nil
}

func (f *field) unsigned() bool {
	switch f.kind {
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return true
	}
	return false
}

// appendID appends an id, or other bytes. OTLP has ids in hexadecimal; protobuf's own JSON, which some
// clients send, has them in base64.
func (f *field) appendID(dst []byte, v jsonv.Value) ([]byte, error) {
	if !v.Is(jsonv.String) {
		return dst, errors.New("not a string")
	}
	text := v.Chars()
	if f.form == formHex {
		if b, err := hex.AppendDecode(nil, text); err == nil {
			return f.appendBytes(dst, b), nil
		}
	}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		b, err := e.AppendDecode(nil, text)
		if err == nil && (f.form == formBase64 || len(b) == 16 || len(b) == 8) {
			return f.appendBytes(dst, b), nil
		}
	}
	if f.form == formHex {
		return dst, errors.New("not an id in hexadecimal")
	}
	return dst, errors.New("not base64")
}
