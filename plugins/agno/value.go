package agno

import (
	"bytes"
	"path"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

// maxID is how long an id may be; a longer one is replaced by its hash, because
// ids are remembered.
const maxID = 200

// chars returns a string's bytes, which alias the document unless it has escapes. The
// value does not count as read.
func chars(v jsonv.Value) []byte {
	if !v.Is(jsonv.String) {
		return nil
	}
	raw := v.Peek()
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	return []byte(v.PeekStr())
}

// ident returns a copy of an id, a name or a number.
func ident(v jsonv.Value) string {
	id := glance(v)
	if id != "" {
		v.MarkRead()
	}
	return id
}

// glance is ident for what is only compared: the value does not count as read.
func glance(v jsonv.Value) string {
	var id string
	switch v.Kind() {
	case jsonv.String:
		id = v.PeekStr()
	case jsonv.Number:
		id = string(v.Peek())
	}
	if len(id) > maxID {
		return msg.HashKey(id)
	}
	return id
}

// stamp is a time of the protocol.
type stamp struct {
	NS        int64
	Precision msg.Precision
}

func stampOf(v jsonv.Value) stamp {
	ns, p, ok := when.Value(v)
	if !ok {
		return stamp{}
	}
	return stamp{ns, p}
}

// or returns the time, or else the other one.
func (t stamp) or(other stamp) stamp {
	if t.NS == 0 {
		return other
	}
	return t
}

// written returns a value as the text of a message: a string's text, and any
// other value as JSON without white space. The forms of a conversation are
// formatted differently, and the text is to be the same.
func written(v jsonv.Value) msg.Text {
	if v.Is(jsonv.Array) || v.Is(jsonv.Object) {
		return compact(v)
	}
	return v.Text()
}

// glimpse is written for what is only compared: the value does not count as read.
func glimpse(v jsonv.Value) msg.Text {
	switch v.Kind() {
	case jsonv.Missing, jsonv.Null:
		return msg.Text{}
	case jsonv.String:
		return msg.Plain(v.PeekStr())
	}
	return compacted(v.Peek())
}

// compact returns a value's JSON without white space.
func compact(v jsonv.Value) msg.Text { return compacted(v.Raw()) }

func compacted(raw []byte) msg.Text {
	if gap(raw) == len(raw) {
		return msg.Raw(raw)
	}
	return msg.Plain(string(appendCompact(make([]byte, 0, len(raw)), raw)))
}

// gap returns where the first white space outside of strings is.
func gap(raw []byte) int {
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = past(raw, i) - 1
		case ' ', '\t', '\n', '\r':
			return i
		}
	}
	return len(raw)
}

// past returns where the string that begins at i is over.
func past(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

func appendCompact(dst, raw []byte) []byte {
	for len(raw) > 0 {
		n := gap(raw)
		dst = append(dst, raw[:n]...)
		raw = bytes.TrimLeft(raw[n:], " \t\r\n")
	}
	return dst
}

// canonical returns an object's JSON without white space and without the place
// that a resumable stream gave it, so that the same event has the same text in
// every form.
func (s *stream) canonical(v jsonv.Value) string {
	if !v.Get("event_index").Exists() {
		return compact(v).String()
	}
	b := append(s.buf[:0], '{')
	for k, x := range v.Members() {
		if k.Is("event_index") {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, k.String()), ':')
		b = appendCompact(b, x.Raw())
	}
	s.buf = append(b, '}')
	return string(s.buf)
}

// hash is FNV-1a, so that texts can be compared without being kept.
type hash uint64

const noText hash = 14695981039346656037

func (h hash) add(b []byte) hash {
	for _, c := range b {
		h = (h ^ hash(c)) * 1099511628211
	}
	return h
}

// hashOf returns the hash of a text.
func (s *stream) hashOf(t msg.Text) hash {
	s.buf = t.Append(s.buf[:0])
	return noText.add(s.buf)
}

// slug makes names comparable: a model writes web-content-gather for the agent
// web_content_gather, or for "Web Content Gather".
func slug(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r == '-' || r == '_' || r == ' ' || r == '.'
	}), "-")
}

// sessionOf derives a session from the stream's origin, for what comes before an
// event that names one: the id in /sessions/<id>/runs, else the file's name or
// the URL's path.
func sessionOf(origin string) string {
	p, _, _ := strings.Cut(origin, "?")
	_, url, isURL := strings.Cut(p, "://")
	if isURL {
		_, p, _ = strings.Cut(url, "/")
		p = "/" + p
	} else {
		p = strings.TrimSuffix(p, path.Ext(p))
	}
	if _, rest, ok := strings.Cut(p, "/sessions/"); ok && rest != "" {
		p, _, _ = strings.Cut(rest, "/")
	} else if !isURL {
		p = path.Base(p)
	}
	if p = strings.Trim(p, "/."); p != "" {
		return p
	}
	return "agno"
}
