// Package unknown keeps the fields of a frame that its decoder does not read (D7). A peer
// that is newer than its decoder adds fields, or sends a list in the place of a string, in a
// frame whose type is known; those fields would be lost silently.
//
// A Keeper looks at a document once its frame is decoded. Strings of at least MinSize
// bytes that were not read (see jsonv.Value.MarkRead) are kept raw, with the containers
// in which nothing was read: as the attribute Attr of the frame's first message, or, if the
// frame has no message or the fields are large, as the content of a message of kind unknown
// and of the type Attr. Either is a JSON object, from paths to values:
//
//	{"/message/content/*/citations": [...], "/message/container/id": "..."}
//
// Fields that are left out on purpose are named, with the reason, in a list that the
// conformance suite reads too (check C14).
package unknown

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Attr is the name of the attribute, and the type of the message, that keeps unread fields.
const Attr = msg.AttrUnknownFields

// MinSize is how many bytes a string has at least that is kept.
const MinSize = 16

// maxAttr is how many bytes are an attribute at most; more are a message.
const maxAttr = 2 << 10

// LeftOut is a field that a decoder leaves out on purpose.
type LeftOut struct {
	// Path is where it is, with all that is below: keys with a slash before each, * for
	// any one key or element, ** for any number of them.
	Path string `json:"path"`
	Why  string `json:"why"`
	// Partly is set if it is left out in some cases only, which the decoder knows: it
	// marks those values as read, and the others are kept.
	Partly bool `json:"partly,omitempty"`
	// Texts are the only strings that are left out there, where not all are: phrases that
	// the decoder knows, and marks as read. A * is any text.
	Texts []string `json:"texts,omitempty"`
	// Cases are those of testdata in which it is left out, where it is not in all of them.
	Cases []string `json:"cases,omitempty"`
}

// List is a parsed list of left-out fields. The zero value leaves out nothing.
type List struct {
	Entries  []LeftOut
	patterns [][]string
}

// Parse reads a list: a JSON array of LeftOut.
func Parse(data []byte) (List, error) {
	var l List
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&l.Entries); err != nil {
		return List{}, fmt.Errorf("left-out fields: %w", err)
	}
	for _, e := range l.Entries {
		if !strings.HasPrefix(e.Path, "/") || e.Path == "/" || e.Why == "" {
			return List{}, fmt.Errorf("left-out fields: %q: %w", e.Path, errors.New("expected a path with a slash before each key, and the reason why"))
		}
		l.patterns = append(l.patterns, strings.Split(e.Path[1:], "/"))
	}
	return l, nil
}

// In returns the list as it is for one case.
func (l List) In(name string) List {
	var in List
	for i, e := range l.Entries {
		if len(e.Cases) == 0 || slices.Contains(e.Cases, name) {
			in.Entries, in.patterns = append(in.Entries, e), append(in.patterns, l.patterns[i])
		}
	}
	return in
}

// Has reports whether the list names the path, or one above it, for all that is there.
func (l List) Has(path []string) bool {
	for i, p := range l.patterns {
		if len(l.Entries[i].Texts) == 0 && matches(p, path) {
			return true
		}
	}
	return false
}

// HasText reports whether the list names the string at the path: for all that is there, or
// among the phrases that are known.
func (l List) HasText(path []string, text string) bool {
	for i, p := range l.patterns {
		texts := l.Entries[i].Texts
		if matches(p, path) && (len(texts) == 0 || slices.ContainsFunc(texts, func(t string) bool { return like(t, text) })) {
			return true
		}
	}
	return false
}

// like reports whether the text is the phrase, in which the first * is any text.
func like(phrase, text string) bool {
	before, after, open := strings.Cut(phrase, "*")
	return text == phrase || open && len(text) >= len(before)+len(after) && strings.HasPrefix(text, before) && strings.HasSuffix(text, after)
}

// matches reports whether the pattern matches the beginning of the path.
func matches(pattern, path []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range path {
				if matches(pattern[1:], path[i:]) {
					return true
				}
			}
			return false
		}
		if len(path) == 0 || pattern[0] != "*" && pattern[0] != path[0] {
			return false
		}
		pattern, path = pattern[1:], path[1:]
	}
	return true
}

// Keeper keeps unread fields.
type Keeper struct{ skip func(path []string) bool }

// NewKeeper returns a Keeper that leaves out the fields of the list, which was compiled into
// the program: a list that cannot be read panics.
func NewKeeper(list []byte) *Keeper {
	l, err := Parse(list)
	if err != nil {
		panic(err)
	}
	var always List
	for i, e := range l.Entries {
		if !e.Partly && len(e.Texts) == 0 && len(e.Cases) == 0 {
			always.Entries = append(always.Entries, e)
			always.patterns = append(always.patterns, l.patterns[i])
		}
	}
	return &Keeper{always.Has} // bound once: a method value is an allocation in every frame
}

// Keep keeps the unread fields of the document of a frame whose messages are those of out
// from the index from on. Of a message that it adds, fill sets the session, and the run
// if there is one.
func (k *Keeper) Keep(doc *jsonv.Doc, out *decoder.Output, from int, fill func(*msg.Message)) {
	found := doc.Unread(MinSize, k.skip)
	doc.Root().MarkRead() // once
	if len(found) == 0 {
		return
	}
	raw := object(found)
	if len(out.Messages) > from && len(raw) <= maxAttr {
		m := &out.Messages[from]
		if m.Attr(Attr) == "" { // not of another document of the same frame
			m.SetAttr(Attr, string(raw))
			return
		}
	}
	m := out.Unknown(Attr, raw)
	fill(m)
	m.Key = Attr + ":" + msg.HashKey(m.Session, string(raw))
}

// object is the JSON object of the unread fields. Values of one path are a list.
func object(found []jsonv.Unread) []byte {
	var paths []string
	values := make(map[string][][]byte)
	for _, f := range found {
		path := "/" + strings.Join(f.Path, "/")
		if values[path] == nil {
			paths = append(paths, path)
		}
		values[path] = append(values[path], f.Value.Peek())
	}
	slices.Sort(paths)
	var b bytes.Buffer
	for i, path := range paths {
		b.WriteByte(",{"[min(i, 1)^1])
		key, err := json.Marshal(path)
		if err != nil { // a string always has a JSON form
			continue
		}
		b.Write(append(key, ':'))
		if v := values[path]; len(v) == 1 {
			b.Write(v[0])
		} else {
			b.WriteByte('[')
			b.Write(bytes.Join(v, []byte{','}))
			b.WriteByte(']')
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}
