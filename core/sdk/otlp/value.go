package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

// Value is the value of an attribute, or the body of a log record.
type Value struct {
	leaf jsonv.Value // a string, number or boolean, or JSON as it is
	json string      // of a list or a map of OTLP
}

// valueOf reads an AnyValue; in a flat object the value is JSON as it is.
func valueOf(v jsonv.Value, flat bool) Value {
	if flat || !v.Is(jsonv.Object) {
		return Value{leaf: v}
	}
	for key, m := range v.Members() {
		switch string(key.Bytes()) {
		case "stringValue", "string_value", "intValue", "int_value", "doubleValue", "double_value",
			"boolValue", "bool_value", "bytesValue", "bytes_value":
			return Value{leaf: m}
		case "arrayValue", "array_value", "kvlistValue", "kvlist_value":
			if b, ok := appendJSON(nil, v); ok && m.Get("values").Is(jsonv.Array) {
				return Value{leaf: v, json: string(b)}
			}
		}
	}
	return Value{leaf: v}
}

// appendJSON appends an AnyValue as plain JSON; false where it is not as the protocol has it.
func appendJSON(b []byte, v jsonv.Value) ([]byte, bool) {
	if v.Len() != 1 {
		return append(b, "null"...), v.Is(jsonv.Object) && v.Len() == 0
	}
	for key, m := range v.Members() {
		values, ok := m.Get("values"), true
		switch string(key.Bytes()) {
		case "arrayValue", "array_value":
			b = append(b, '[')
			for e := range values.Elems() {
				if b[len(b)-1] != '[' {
					b = append(b, ',')
				}
				var known bool
				b, known = appendJSON(b, e)
				ok = ok && known
			}
			return append(b, ']'), ok && only(m, values)
		case "kvlistValue", "kvlist_value":
			b = append(b, '{')
			for e := range values.Elems() {
				name := e.Get("key")
				if !name.Is(jsonv.String) || e.Len() != 2 {
					return b, false
				}
				if b[len(b)-1] != '{' {
					b = append(b, ',')
				}
				var known bool
				b, known = appendJSON(append(append(b, name.Peek()...), ':'), e.Get("value"))
				ok = ok && known
			}
			return append(b, '}'), ok && only(m, values)
		case "intValue", "int_value":
			if _, err := strconv.ParseInt(m.PeekStr(), 10, 64); err == nil {
				return append(b, m.PeekStr()...), true
			}
			return append(b, m.Peek()...), m.Is(jsonv.Number)
		case "stringValue", "string_value", "bytesValue", "bytes_value":
			return append(b, m.Peek()...), m.Is(jsonv.String)
		case "doubleValue", "double_value":
			return append(b, m.Peek()...), m.Is(jsonv.Number)
		case "boolValue", "bool_value":
			return append(b, m.Peek()...), m.Is(jsonv.True) || m.Is(jsonv.False)
		}
	}
	return b, false
}

// only reports whether the list, or nothing, is all that an object has.
func only(v, list jsonv.Value) bool {
	return v.Is(jsonv.Object) && (v.Len() == 0 || v.Len() == 1 && list.Is(jsonv.Array))
}

// Exists reports whether there is a value.
func (v Value) Exists() bool { return v.json != "" || v.leaf.Exists() }

// Text is the value as text: a string, or the JSON of any other value. It counts as read.
func (v Value) Text() string {
	if v.json != "" {
		v.leaf.MarkRead()
		return v.json
	}
	return v.leaf.Text().String()
}

// size is the length of the value in the frame.
func (v Value) size() int { return len(v.leaf.Peek()) }

// ID is a short string or a number; ok is false for any other value, which stays unread.
func (v Value) ID() (id string, ok bool) {
	if v.json != "" {
		return "", false
	}
	id = ident.OrNumber(v.leaf)
	return id, id != ""
}

// First is ID, or that of the first element of a list.
func (v Value) First() (id string, ok bool) {
	var doc jsonv.Doc
	if list := v.parsed(&doc); list.Is(jsonv.Array) {
		for e := range list.Elems() {
			if id = ident.PeekOrNumber(e); id != "" && list.Len() == 1 {
				v.leaf.MarkRead()
			}
			return id, id != ""
		}
	}
	return v.ID()
}

// Number is a number that is not negative, perhaps written as a string.
func (v Value) Number() (n float64, ok bool) {
	s := ""
	switch {
	case v.json != "":
		return 0, false
	case v.leaf.Is(jsonv.Number):
		s = string(v.leaf.Peek())
	case v.leaf.Is(jsonv.String) && v.size() < 32:
		s = v.leaf.PeekStr()
	default:
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n < 0 || n > 1<<53 {
		return 0, false
	}
	v.leaf.MarkRead()
	return n, true
}

// Bool is a boolean, perhaps written as a string.
func (v Value) Bool() (b, ok bool) {
	switch {
	case v.leaf.Is(jsonv.True), v.leaf.Equal("true"):
		return true, true
	case v.leaf.Is(jsonv.False), v.leaf.Equal("false"):
		return false, true
	}
	return false, false
}

// parsed is the JSON that the value is, or that its string has. It does not count as read.
func (v Value) parsed(doc *jsonv.Doc) jsonv.Value {
	data := []byte(v.json)
	switch {
	case v.json != "":
	case v.leaf.Is(jsonv.String):
		data = v.leaf.Text().Append(nil)
	default:
		return v.leaf
	}
	data = []byte(strings.TrimSpace(string(data)))
	if len(data) == 0 || data[0] != '{' && data[0] != '[' || doc.Parse(data) != nil {
		return jsonv.Value{}
	}
	return doc.Root()
}

// attr is the value as an attribute of a message; ok is false where it is too long, and it then
// stays unread.
func (v Value) attr() (s string, ok bool) {
	if v.size() > conversation.MaxAttr {
		return "", false
	}
	return v.Text(), true
}

// read counts the value as read, unless it is JSON of the frame, whose members do on their own.
func (v Value) read() {
	if v.json != "" || v.leaf.Is(jsonv.String) {
		v.leaf.MarkRead()
	}
}

// unread is the part of the JSON in a value that was not read: its strings, as a list; "" if all was.
func unread(doc *jsonv.Doc) string {
	found := doc.Unread(unknown.MinSize, func([]string) bool { return false })
	if len(found) == 0 {
		return ""
	}
	b := []byte{'['}
	for i, f := range found {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, f.Value.Peek()...)
	}
	return string(append(b, ']'))
}

// hexID reads the id of a trace or a span, which may be in base64. Zeros are no id; a value that is no id stays unread.
func hexID(v jsonv.Value, bytes int) string {
	s := ident.Peek(v)
	if len(s) != 2*bytes || strings.Trim(s, "0123456789abcdefABCDEF") != "" {
		raw, err := base64.StdEncoding.DecodeString(s)
		if err != nil || len(raw) != bytes {
			return ""
		}
		s = hex.EncodeToString(raw)
	}
	v.MarkRead()
	if s = strings.ToLower(s); strings.Trim(s, "0") == "" {
		return ""
	}
	return s
}

// timeOf reads a time: Unix nanoseconds, [seconds, nanoseconds], or ISO 8601.
func timeOf(v jsonv.Value) int64 {
	if v.Is(jsonv.Array) {
		var at [2]int64
		n := 0
		for e := range v.Elems() {
			if n < len(at) && e.Is(jsonv.Number) {
				at[n] = e.Int()
			}
			n++
		}
		const latest = 9e9
		if at[0] < 0 || at[0] > latest || at[1] < 0 || at[1] >= 1e9 {
			return 0
		}
		return at[0]*1e9 + at[1]
	}
	ns, _, _ := when.Value(v)
	return ns
}

// params are the attributes that describe a request, by their names in the conventions.
var params = map[string]string{
	"gen_ai.request.max_tokens": msg.ParamMaxTokens, "gen_ai.request.temperature": msg.ParamTemperature, "gen_ai.request.top_p": msg.ParamTopP,
	"gen_ai.request.top_k": msg.ParamTopK, "gen_ai.request.seed": msg.ParamSeed, "gen_ai.request.frequency_penalty": msg.ParamFrequencyPenalty,
	"gen_ai.request.presence_penalty": msg.ParamPresencePenalty, "gen_ai.request.stop_sequences": msg.ParamStopSequences,
	"gen_ai.request.choice.count": msg.ParamChoices, "gen_ai.output.type": msg.ParamOutputType, "gen_ai.request.stream": msg.ParamStream,
}
