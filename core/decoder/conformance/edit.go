package conformance

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// parse returns the document's root; Missing when data is not JSON.
func parse(data []byte) jsonv.Value {
	var d jsonv.Doc
	if d.Parse(data) != nil {
		return jsonv.Value{}
	}
	return d.Root()
}

// addMember adds a member ("name":value) to a JSON object, as its first or last;
// in an array of objects, to each of them. ok is false when data has
// no such object.
func addMember(data []byte, member string, first bool) (out []byte, ok bool) {
	root := parse(data)
	var objects []jsonv.Value
	switch root.Kind() {
	case jsonv.Object:
		objects = append(objects, root)
	case jsonv.Array:
		for v := range root.Elems() {
			if v.Is(jsonv.Object) {
				objects = append(objects, v)
			}
		}
	}
	out = bytes.Clone(data)
	for _, v := range slices.Backward(objects) {
		raw := v.Raw()
		start, _ := frame.Offset(data, raw)
		at, text := start+1, member
		if v.Len() > 0 {
			text = member + ","
			if !first {
				text = "," + member
			}
		}
		if !first {
			at = start + len(raw) - 1
		}
		out = slices.Insert(out, at, []byte(text)...)
	}
	return out, len(objects) > 0
}

// values returns the ranges of all values of a document but the outermost.
func values(data []byte) [][2]int {
	var out [][2]int
	var walk func(jsonv.Value)
	add := func(v jsonv.Value) {
		raw := v.Raw()
		at, _ := frame.Offset(data, raw)
		out = append(out, [2]int{at, at + len(raw)})
		walk(v)
	}
	walk = func(v jsonv.Value) {
		for _, m := range v.Members() {
			add(m)
		}
		for e := range v.Elems() {
			add(e)
		}
	}
	walk(parse(data))
	return out
}

// Delta names a string that a sender may split at any character: the JSON pointer to it,
// and the values that other strings of the frame must have.
//
//	{"at": "/delta/text", "when": {"/type": "content_block_delta"}}
//
// Number is the pointer to the number of a frame, where the sender numbers its frames: the pieces of a string
// that is cut have numbers of their own, and the frames behind follow; a frame that the sender repeats keeps the
// number that it had. It is one pointer for all frames. A frame of an unknown type, which is kept with its number,
// is not in such a case.
type Delta struct {
	At     string            `json:"at"`
	When   map[string]string `json:"when,omitempty"`
	Number string            `json:"number,omitempty"`
}

// numbers renumbers frames of which some are cut.
type numbers struct {
	at    string // the pointer; empty: the frames have no numbers
	added int64  // how many frames are there by cuts
	as    map[int64]int64
}

func newNumbers(deltas []Delta) *numbers {
	n := &numbers{as: make(map[int64]int64)}
	for _, d := range deltas {
		n.at = cmp.Or(n.at, d.Number)
	}
	return n
}

// next returns the data with the number that the frame has among the others, and whether the sender repeats it.
func (n *numbers) next(data []byte) (_ []byte, again bool) {
	v := lookup(parse(data), n.at)
	if n.at == "" || !v.Is(jsonv.Number) {
		return data, false
	}
	was := v.Int()
	if _, again = n.as[was]; !again {
		n.as[was] = was + n.added
	}
	raw := v.Raw()
	at, _ := frame.Offset(data, raw)
	return slices.Concat(data[:at], strconv.AppendInt(nil, n.as[was], 10), data[at+len(raw):]), again
}

// cut returns the data of the second piece of a frame, which has the next number.
func (n *numbers) cut(data []byte) []byte {
	n.added++
	v := lookup(parse(data), n.at)
	if n.at == "" || !v.Is(jsonv.Number) {
		return data
	}
	raw := v.Raw()
	at, _ := frame.Offset(data, raw)
	return slices.Concat(data[:at], strconv.AppendInt(nil, v.Int()+1, 10), data[at+len(raw):])
}

// delta is such a string of a frame.
type delta struct {
	before, after []byte // the data around the JSON string
	text          string
}

// findDelta returns the first of the deltas that the frame has.
func findDelta(data []byte, deltas []Delta) (found delta, ok bool) {
	root := parse(data)
	for _, d := range deltas {
		v := lookup(root, d.At)
		if !v.Is(jsonv.String) || !d.applies(root) {
			continue
		}
		raw := v.Raw()
		at, _ := frame.Offset(data, raw)
		return delta{before: data[:at], after: data[at+len(raw):], text: v.Str()}, true
	}
	return delta{}, false
}

func (d *Delta) applies(root jsonv.Value) bool {
	for pointer, want := range d.When {
		if lookup(root, pointer).Str() != want {
			return false
		}
	}
	return true
}

// with returns the frame's data with another text.
func (d delta) with(text string) []byte {
	quoted, err := marshal(text)
	if err != nil {
		return nil
	}
	return slices.Concat(d.before, quoted, d.after)
}

// lookup follows a JSON pointer (RFC 6901).
func lookup(v jsonv.Value, pointer string) jsonv.Value {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = unescape.Replace(part)
		if v.Is(jsonv.Object) {
			v = v.Get(part)
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return jsonv.Value{}
		}
		var found jsonv.Value
		for e := range v.Elems() {
			if n == 0 {
				found = e
			}
			n--
		}
		v = found
	}
	return v
}
