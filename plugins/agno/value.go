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

// maxID limits the length of an id in the state; a longer one is replaced by its hash.
const maxID = 200

// rawString returns a string's bytes, which alias the document unless it has escapes. The
// value does not count as read.
func rawString(v jsonv.Value) []byte {
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
	id := peekID(v)
	if id != "" {
		v.MarkRead()
	}
	return id
}

// peekID is ident for a comparison: the value does not count as read.
func peekID(v jsonv.Value) string {
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

// or returns the time; if it is not set, the other one.
func (t stamp) or(other stamp) stamp {
	if t.NS == 0 {
		return other
	}
	return t
}

// asText returns a value as the text of a message: a string's text, and any other value as
// JSON without white space, because the forms of a conversation differ in it.
func asText(v jsonv.Value) msg.Text {
	if v.Is(jsonv.Array) || v.Is(jsonv.Object) {
		return compact(v)
	}
	return v.Text()
}

// peekText is asText for a comparison: the value does not count as read.
func peekText(v jsonv.Value) msg.Text {
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
	if firstSpace(raw) == len(raw) {
		return msg.Raw(raw)
	}
	return msg.Plain(string(appendCompact(make([]byte, 0, len(raw)), raw)))
}

// firstSpace returns the index of the first white space outside of strings.
func firstSpace(raw []byte) int {
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i) - 1
		case ' ', '\t', '\n', '\r':
			return i
		}
	}
	return len(raw)
}

// stringEnd returns the index after the string that begins at i.
func stringEnd(raw []byte, i int) int {
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
		n := firstSpace(raw)
		dst = append(dst, raw[:n]...)
		raw = bytes.TrimLeft(raw[n:], " \t\r\n")
	}
	return dst
}

// canonical returns an object's JSON without white space and without the index of a resumable
// stream, so that the same event has the same text in every form.
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

// sessionOf derives a session from the stream's origin, for messages before the first event
// with a session: the id in /sessions/<id>/runs, else the file's name or the URL's path.
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
