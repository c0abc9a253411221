package agno

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// asText returns a value as the text of a message: a string's text, and any other value as
// JSON without white space, because the forms of a conversation differ in it.
func asText(v jsonv.Value) msg.Text {
	v.MarkRead()
	return peekText(v)
}

// str is asText as an attribute, or as a part of a key.
func str(v jsonv.Value) string { return asText(v).String() }

// peekText is asText for a comparison: the value does not count as read.
func peekText(v jsonv.Value) msg.Text {
	if v.Is(jsonv.Object) || v.Is(jsonv.Array) {
		return msg.Raw(compact(v.Peek()))
	}
	return v.PeekText()
}

// compact returns JSON without white space.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if bytes.ContainsAny(raw, " \t\r\n") && json.Compact(&b, raw) == nil {
		return b.Bytes()
	}
	return raw
}

// chars returns the bytes of a text, which alias it where they can.
func chars(t msg.Text) []byte {
	if b, quoted := t.Alias(); b != nil && !quoted {
		return b
	}
	return t.Append(nil)
}

// sumOf returns the checksum of a value as a text.
func sumOf(v jsonv.Value) conversation.Sum { return conversation.SumOfText(peekText(v)) }

// markRepeat marks a value that repeats an emitted text.
func markRepeat(v jsonv.Value, text conversation.Sum) {
	if v.Is(jsonv.String) && sumOf(v) == text {
		v.MarkRead()
	}
}

// blank reports whether a value has no text.
func blank(v jsonv.Value) bool { return !v.Exists() || v.Equal("") }

// canonical returns an object's JSON without white space and without the index of a resumable
// stream, so that the same event has the same text in every form.
func canonical(v jsonv.Value) string {
	if !v.Get("event_index").Exists() {
		return peekText(v).String()
	}
	b := []byte{'{'}
	for k, x := range v.Members() {
		if k.Is("event_index") {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, k.String()), ':')
		b = append(b, compact(x.Peek())...)
	}
	return string(append(b, '}'))
}

// attachments describes the media of an event:
//
//	{"images":[{"id":"i1","url":"https://…"},{"id":"i2","mime_type":"image/png","content":"<base64>"}],"videos":[],"audio":[],"files":[]}
func attachments(v jsonv.Value) (out []msg.Attachment) {
	for _, field := range [...]string{"images", "videos", "audio", "files", "response_audio"} {
		for x := range jsonv.Each(v.Get(field)) {
			if x.Is(jsonv.Object) && (field != "response_audio" || x.First("content", "url").Exists()) {
				out = append(out, attachment(x))
			}
		}
	}
	return out
}

func attachment(v jsonv.Value) msg.Attachment {
	a := msg.Attachment{
		Name:      ident.OrNumber(v.First("name", "filename", "filepath", "id")),
		MediaType: cmp.Or(ident.OrNumber(v.Get("mime_type")), ident.OrNumber(v.Get("format"))),
		URL:       v.Get("url").Str(),
		Size:      max(v.Get("size").Int(), 0),
	}
	if c := v.Get("content"); c.Is(jsonv.String) {
		whole := media.Base64(c, a.MediaType)
		a.Size, a.SHA256 = whole.Size, whole.SHA256
	}
	return a
}

// sessionOf derives a session from the stream's origin, for messages before the first event
// with a session: the id in /sessions/<id>/runs, else the file's name or the URL's path.
func sessionOf(origin string) string {
	p, _, _ := strings.Cut(origin, "?")
	_, url, isURL := strings.Cut(p, "://")
	if isURL {
		p = url[max(strings.IndexByte(url, '/'), 0):]
	} else {
		p = strings.TrimSuffix(p, path.Ext(p))
	}
	switch _, rest, stored := strings.Cut(p, "/sessions/"); {
	case stored && rest != "":
		p, _, _ = strings.Cut(rest, "/")
	case !isURL:
		p = path.Base(p)
	}
	return cmp.Or(strings.Trim(p, "/."), "agno")
}
