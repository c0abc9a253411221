package claudestream

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// content returns the text of a content that is a string or a list of blocks.
// Images and documents become attachments of the message; a block of another
// kind stands in the text as its JSON.
func (d *stream) content(v jsonv.Value, m *msg.Message) msg.Text {
	if !v.Is(jsonv.Array) {
		return v.Text()
	}
	var one msg.Text
	var joined []byte
	texts := 0
	for b := range v.Elems() {
		var t msg.Text
		typ := b.Get("type")
		switch {
		case typ.Equal("text"):
			t = b.Get("text").Text()
		case typ.Equal("image"), typ.Equal("document"):
			if a, ok := attach(b); ok {
				m.Attachments = append(m.Attachments, a)
				continue
			}
			t = b.JSON()
		case typ.Equal("tool_reference"):
			t = b.Get("tool_name").Text()
		default:
			t = b.Text()
		}
		switch texts++; texts {
		case 1:
			one = t
		case 2:
			joined = t.Append(append(one.Append(nil), '\n'))
		default:
			joined = t.Append(append(joined, '\n'))
		}
	}
	if texts > 1 {
		return msg.Plain(string(joined))
	}
	return one
}

// attach describes an image or document block by its size and hash:
//
//	{"type":"image","source":{"type":"base64","media_type":"image/png","data":"…"}}
//	{"type":"image","source":{"type":"url","url":"…"}}
//
// ok is false when the block holds neither, and is then text like any other.
func attach(b jsonv.Value) (a msg.Attachment, ok bool) {
	source := b.Get("source")
	a.Name = ident(first(b, "title", "name", "filename"))
	a.MediaType = ident(source.Get("media_type"))
	if url := source.Get("url"); url.Is(jsonv.String) {
		a.URL = url.Str()
		return a, true
	}
	data := source.Get("data")
	if !data.Is(jsonv.String) || source.Get("type").Equal("text") {
		return a, false
	}
	raw, quoted := data.Text().Alias()
	if quoted {
		raw = []byte(data.Str())
	}
	h := sha256.New()
	size, err := io.Copy(h, base64.NewDecoder(base64.StdEncoding, bytes.NewReader(raw)))
	if a.Size = size; err == nil { // of what breaks off there is no hash
		a.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	return a, true
}
