package jsonv

import (
	"iter"
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
)

// Value is a value of a document, valid as long as the document is. The methods
// never fail: a method for another kind returns the zero value, so that a decoder
// reads past the errors of a peer.
type Value struct {
	d *Doc
	i int32
}

func (v Value) node() *node {
	if v.d == nil {
		return &node{}
	}
	return &v.d.nodes[v.i]
}

// Kind returns the value's type.
func (v Value) Kind() Kind { return v.node().kind }

// Exists reports whether the value is there and is not null.
func (v Value) Exists() bool { k := v.Kind(); return k != Missing && k != Null }

// Is reports whether the value has that kind.
func (v Value) Is(k Kind) bool { return v.Kind() == k }

// Raw returns the value's JSON; it aliases the input.
func (v Value) Raw() []byte {
	v.MarkRead()
	return v.Peek()
}

// Peek is Raw for who looks at a value, to hash or to compare it, and does not pass it
// on: it does not count as read.
func (v Value) Peek() []byte {
	n := v.node()
	switch n.kind {
	case Missing:
		return nil
	case String:
		return v.d.data[n.start-1 : n.end+1]
	}
	return v.d.data[n.start:n.end]
}

// Text returns a string's text, or the JSON of any other value; nothing for null
// and for a missing value. It aliases the input.
func (v Value) Text() msg.Text {
	v.MarkRead()
	return v.PeekText()
}

// PeekText is Text for a comparison: the value does not count as read.
func (v Value) PeekText() msg.Text {
	n := v.node()
	switch n.kind {
	case Missing, Null:
		return msg.Text{}
	case String:
		if n.escaped {
			return msg.Quoted(v.d.data[n.start:n.end])
		}
	}
	return msg.Raw(v.d.data[n.start:n.end])
}

// JSON returns the value's JSON as a text that aliases the input; nothing for
// a missing value.
func (v Value) JSON() msg.Text { return msg.Raw(v.Raw()) }

// Str returns a copy of a string's text, and "" for any other kind.
func (v Value) Str() string {
	if v.Kind() != String {
		return ""
	}
	return v.Text().String()
}

// PeekStr is Str for who only compares the text: it does not count as read.
func (v Value) PeekStr() string {
	if v.Kind() != String {
		return ""
	}
	return v.PeekText().String()
}

// Chars returns the text of a string as bytes, nil for any other kind. They alias the input
// unless the string has escapes. It does not count as read.
func (v Value) Chars() []byte {
	n := v.node()
	switch {
	case n.kind != String:
		return nil
	case n.escaped:
		return v.PeekText().Append(nil)
	}
	return v.d.data[n.start:n.end]
}

// Escaped returns the bytes between the quotes of a string, with its escapes as they are in
// the input; nil for any other kind. It does not count as read.
func (v Value) Escaped() []byte {
	n := v.node()
	if n.kind != String {
		return nil
	}
	return v.d.data[n.start:n.end]
}

// HasPrefix reports whether the value is a string that begins with prefix, which has no
// character that JSON escapes. It does not count as read.
func (v Value) HasPrefix(prefix string) bool {
	b := v.Escaped()
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// Equal reports whether the value is the string s, without copying it. It counts as
// read if it is: then all of it is known.
func (v Value) Equal(s string) bool {
	if !equal(v, s) {
		return false
	}
	v.MarkRead()
	return true
}

// In reports whether the value is one of the strings; it counts as read if it is.
func (v Value) In(words ...string) bool {
	for _, w := range words {
		if v.Equal(w) {
			return true
		}
	}
	return false
}

// Word is In that returns the string; "" if the value is none of them.
func Word(v Value, words ...string) string {
	for _, w := range words {
		if v.Equal(w) {
			return w
		}
	}
	return ""
}

// equal is Equal of a value or a key, without the mark.
func equal(v Value, s string) bool {
	n := v.node()
	if n.kind != String {
		return false
	}
	if n.escaped {
		// An escape is at most six bytes for one, and never one byte for one.
		size := int(n.end - n.start)
		return size > len(s) && size <= 6*len(s) && v.PeekStr() == s
	}
	return string(v.d.data[n.start:n.end]) == s
}

// Bool reports whether the value is true.
func (v Value) Bool() bool { return v.Kind() == True }

// Int returns a number's integer part that fits; 0 for any other kind. A number
// with a fraction or an exponent is truncated.
func (v Value) Int() int64 {
	if v.Kind() != Number {
		return 0
	}
	raw := string(v.Peek())
	if i, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return i
	}
	f, _ := strconv.ParseFloat(raw, 64)
	if f > -1<<62 && f < 1<<62 {
		return int64(f)
	}
	return 0
}

// Uint returns a count: Int with 0 for a negative number, and the digits of a string, as which protobuf's JSON and some
// gateways write their counts.
func (v Value) Uint() uint64 {
	n, _ := count(v)
	return n
}

// IsCount reports whether Uint has a count to return: a number, or a string of digits.
func (v Value) IsCount() bool {
	_, ok := count(v)
	return ok
}

func count(v Value) (n uint64, ok bool) {
	if v.Kind() != String {
		return uint64(max(v.Int(), 0)), v.Kind() == Number
	}
	n, err := strconv.ParseUint(v.PeekStr(), 10, 63)
	if err != nil { // n may be the highest
		return 0, false
	}
	return n, true
}

// Digits returns a number as it is written, for an attribute; "" for any other kind and for a
// number of more than 32 bytes. It does not count as read.
func (v Value) Digits() string {
	const most = 32
	if raw := v.Peek(); v.Is(Number) && len(raw) <= most {
		return string(raw)
	}
	return ""
}

// Float returns a number's value; 0 for any other kind.
func (v Value) Float() float64 {
	if v.Kind() != Number {
		return 0
	}
	f, _ := strconv.ParseFloat(string(v.Peek()), 64)
	return f
}

// Len is the number of elements of an array or members of an object.
func (v Value) Len() int {
	n := 0
	switch v.Kind() {
	case Array:
		for range v.Elems() {
			n++
		}
	case Object:
		for range v.Members() {
			n++
		}
	}
	return n
}

// Get returns the member of an object; Missing when there is none or v is no
// object.
func (v Value) Get(key string) Value {
	n := v.node()
	if n.kind != Object {
		return Value{}
	}
	var found Value
	nodes := v.d.nodes
	for i := v.i + 1; i < n.next; i = nodes[i+1].next {
		k := &nodes[i]
		if !k.escaped {
			if int(k.end-k.start) == len(key) && string(v.d.data[k.start:k.end]) == key {
				found = Value{v.d, i + 1}
			}
		} else if (Value{v.d, i}).PeekStr() == key {
			found = Value{v.d, i + 1}
		}
	}
	return found
}

// First returns the first of the members that is there and is not null; Missing when there is
// none.
func (v Value) First(keys ...string) Value {
	for _, key := range keys {
		if m := v.Get(key); m.Exists() {
			return m
		}
	}
	return Value{}
}

// Or returns the first of the values that is there and is not null; Missing when none is.
func Or(values ...Value) Value {
	for _, v := range values {
		if v.Exists() {
			return v
		}
	}
	return Value{}
}

// FirstText is the first text of the values that is not empty. The values after it do not count as read.
func FirstText(values ...Value) (t msg.Text) {
	for _, v := range values {
		if t = v.Text(); !t.IsZero() {
			break
		}
	}
	return t
}

// Path is Get for each key in turn.
func (v Value) Path(keys ...string) Value {
	for _, k := range keys {
		v = v.Get(k)
	}
	return v
}

// Members yields the members of an object in order.
func (v Value) Members() iter.Seq2[Key, Value] {
	return func(yield func(Key, Value) bool) {
		n := v.node()
		if n.kind != Object {
			return
		}
		for i := v.i + 1; i < n.next; i = v.d.nodes[i+1].next {
			if !yield(Key{Value{v.d, i}}, Value{v.d, i + 1}) {
				return
			}
		}
	}
}

// Elems yields the elements of an array in order.
func (v Value) Elems() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		n := v.node()
		if n.kind != Array {
			return
		}
		for i := v.i + 1; i < n.next; i = v.d.nodes[i].next {
			if !yield(Value{v.d, i}) {
				return
			}
		}
	}
}

// Key is the key of a member.
type Key struct{ v Value }

// Is reports whether the key is s.
func (k Key) Is(s string) bool { return equal(k.v, s) }

// Bytes returns the key for a switch; it aliases the input where it can.
func (k Key) Bytes() []byte {
	n := k.v.node()
	if n.escaped {
		return []byte(k.v.PeekStr())
	}
	return k.v.d.data[n.start:n.end]
}

// String returns a copy of the key.
func (k Key) String() string { return k.v.PeekStr() }

// Each yields the elements of a list, or the value itself where it is none.
func Each(v Value) iter.Seq[Value] {
	return func(yield func(Value) bool) { // one function, which a loop then calls without an allocation
		if v.Is(Array) {
			v.Elems()(yield)
		} else {
			yield(v)
		}
	}
}
