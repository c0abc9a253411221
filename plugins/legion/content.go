package legion

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// contentOf returns the text of a result and the files in it: a string is its
// own text, of blocks the texts are joined with newlines, anything else is kept
// as JSON.
func contentOf(v jsonv.Value) (text msg.Text, files []msg.Attachment) {
	if !v.Is(jsonv.Array) {
		return v.Text(), nil
	}
	var all []byte // of more than one text
	n := 0
	for b := range v.Elems() {
		if a, ok := attachmentOf(b); ok {
			files = append(files, a)
			continue
		}
		s := b.Get("text")
		if !s.Is(jsonv.String) {
			s = b
		}
		t := s.Text()
		switch n++; n {
		case 1:
			text = t
			continue
		case 2:
			all = text.Append(nil)
		}
		all = t.Append(append(all, '\n'))
	}
	if n > 1 {
		text = msg.Plain(string(all))
	}
	return text, files
}

// attachmentOf describes the file in a block {"type":"image","source":{…}}; its
// bytes go no further.
func attachmentOf(b jsonv.Value) (a msg.Attachment, ok bool) {
	src := b.Get("source")
	if !src.Is(jsonv.Object) {
		return a, false
	}
	a.Name = scalar(first(b, "title", "name"))
	a.MediaType = scalar(src.Get("media_type"))
	a.URL = scalar(src.Get("url"))
	data := src.Get("data")
	if !data.Is(jsonv.String) {
		return a, a.URL != "" || a.MediaType != ""
	}
	h := sha256.New()
	n, err := io.Copy(h, base64.NewDecoder(base64.StdEncoding, strings.NewReader(data.PeekStr())))
	if err == nil {
		data.MarkRead()
	} else { // not base64: a text document, which is kept
		h.Reset()
		n, _ = io.Copy(h, strings.NewReader(data.PeekStr()))
	}
	a.Size, a.SHA256 = n, hex.EncodeToString(h.Sum(nil))
	return a, true
}
