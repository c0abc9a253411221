package letta

import (
	"bytes"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

// head is the first element of a list.
func head(list jsonv.Value) jsonv.Value {
	for e := range list.Elems() {
		return e
	}
	return jsonv.Value{}
}

// markRepeated marks the members of v that equal those of first as read.
func markRepeated(v, first jsonv.Value) {
	for k, m := range first.Members() {
		if repeated := v.Get(string(k.Bytes())); bytes.Equal(repeated.Peek(), m.Peek()) {
			repeated.MarkRead()
		}
	}
}

// hash is 64 bits of FNV-1a: enough for the few entries of the state, and the same in every
// process.
func hash[T string | []byte](s T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// sum is the hash of a text, never 0.
func sum(t msg.Text) uint64 {
	if h := hash(t.String()); h != 0 {
		return h
	}
	return 1
}

// dates parses dates, and caches the last one because neighbours mostly have the same date.
type dates struct {
	raw  []byte
	ns   int64
	prec msg.Precision
}

func (d *dates) read(v jsonv.Value) (int64, msg.Precision) {
	raw := v.Peek()
	if len(raw) == 0 || len(raw) > ident.Max {
		return 0, 0
	}
	if string(raw) != string(d.raw) {
		d.raw = append(d.raw[:0], raw...)
		d.ns, d.prec, _ = when.Value(v)
	}
	if d.ns != 0 {
		v.MarkRead()
	}
	return d.ns, d.prec
}

// contentOf returns the text of a content, which is a string or a list of parts, and the
// pictures in it. A part of another kind is its JSON in the text.
func contentOf(v jsonv.Value) (msg.Text, []msg.Attachment) {
	if v.Is(jsonv.Object) && v.Get("type").Equal("text") {
		return v.Get("text").Text(), nil
	}
	if !v.Is(jsonv.Array) {
		return v.Text(), nil
	}
	var files []msg.Attachment
	var one msg.Text
	var joined []byte
	texts := 0
	for p := range v.Elems() {
		t := p.Get("text")
		switch typ := p.Get("type"); {
		case typ.Equal("text"):
		case typ.Equal("image"):
			if a, ok := attach(p.Get("source")); ok {
				files = append(files, a)
				continue
			}
			t = p
		default:
			t = p
		}
		switch texts++; texts {
		case 1:
			one = t.Text()
		case 2:
			joined = t.Text().Append(append(one.Append(nil), '\n'))
		default:
			joined = t.Text().Append(append(joined, '\n'))
		}
	}
	if texts > 1 {
		return msg.Plain(string(joined)), files
	}
	return one, files
}

// lines joins a list of strings.
func lines(v jsonv.Value) string {
	if !v.Is(jsonv.Array) {
		return v.Text().String()
	}
	var out []string
	for e := range v.Elems() {
		out = append(out, e.Text().String())
	}
	return strings.Join(out, "\n")
}
