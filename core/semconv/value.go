package semconv

import (
	"encoding/json"
	"strconv"
)

// ValueKind is the type of a Value.
type ValueKind uint8

// The types.
const (
	StringValue ValueKind = iota
	IntValue
	FloatValue
	BoolValue
	StringsValue
)

// Value is an attribute's value: a small union that is passed without an
// allocation.
type Value struct {
	Kind    ValueKind
	Str     string
	Int     int64
	Float   float64
	Bool    bool
	Strings []string // of the span: not to be changed
}

// AppendText appends the value as the collector writes it into a
// Map(String, String): numbers in decimal, lists as JSON.
func (v Value) AppendText(dst []byte) []byte {
	switch v.Kind {
	case IntValue:
		return strconv.AppendInt(dst, v.Int, 10)
	case FloatValue:
		return strconv.AppendFloat(dst, v.Float, 'f', -1, 64)
	case BoolValue:
		return strconv.AppendBool(dst, v.Bool)
	case StringsValue:
		b, err := json.Marshal(v.Strings)
		if err != nil { // strings always marshal
			return dst
		}
		return append(dst, b...)
	}
	return append(dst, v.Str...)
}
