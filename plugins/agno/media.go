package agno

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
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
		Name:      ident(v.First("name", "filename", "filepath", "id")),
		MediaType: cmp.Or(ident(v.Get("mime_type")), ident(v.Get("format"))),
		URL:       v.Get("url").Str(),
		Size:      max(v.Get("size").Int(), 0),
	}
	if c := v.Get("content"); c.Is(jsonv.String) {
		whole := media.Base64(c, a.MediaType)
		a.Size, a.SHA256 = whole.Size, whole.SHA256
	}
	return a
}
