package letta

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// attach describes the picture of a content part by its size and hash, or by where it
// is kept:
//
//	{"type":"base64","media_type":"image/png","data":"..."}
//	{"type":"url","url":"https://..."}
//	{"type":"letta","file_id":"file-..."}
func attach(source jsonv.Value) (a msg.Attachment, ok bool) {
	a.MediaType = ident.Of(source.Get("media_type"))
	a.Name = ident.Of(source.Get("file_id"))
	a.URL = ident.Of(source.Get("url"))
	if data := source.Get("data"); data.Is(jsonv.String) && len(data.Peek()) > 2 {
		b := media.Base64(data, a.MediaType)
		b.Name, b.URL = a.Name, a.URL
		return b, true
	}
	return a, a.Name != "" || a.URL != ""
}
