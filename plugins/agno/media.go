package agno

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// attachments describes the media of an event:
//
//	{"images":[{"id":"i1","url":"https://…"},{"id":"i2","mime_type":"image/png","content":"<base64>"}],"videos":[],"audio":[],"files":[]}
func attachments(v jsonv.Value) []msg.Attachment {
	var out []msg.Attachment
	for _, field := range [...]string{"images", "videos", "audio", "files"} {
		for x := range v.Get(field).Elems() {
			if x.Is(jsonv.Object) {
				out = append(out, attachment(x))
			}
		}
	}
	if a := v.Get("response_audio"); a.Is(jsonv.Object) && (a.Get("content").Exists() || a.Get("url").Exists()) {
		out = append(out, attachment(a))
	}
	return out
}

func attachment(v jsonv.Value) msg.Attachment {
	a := msg.Attachment{
		Name:      ident(first(v, "name", "filename", "filepath", "id")),
		MediaType: cmp.Or(ident(v.Get("mime_type")), ident(v.Get("format"))),
		URL:       v.Get("url").Str(),
		Size:      max(v.Get("size").Int(), 0),
	}
	if c := v.Get("content"); c.Is(jsonv.String) {
		raw := chars(c)
		h := sha256.New()
		size, err := io.Copy(h, base64.NewDecoder(base64.StdEncoding, bytes.NewReader(raw)))
		if a.Size = size; err == nil {
			c.MarkRead()
			a.SHA256 = hex.EncodeToString(h.Sum(nil))
		}
	}
	return a
}
