package letta

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// attach describes the picture of a content part by its size and hash, or by where it
// is kept:
//
//	{"type":"base64","media_type":"image/png","data":"..."}
//	{"type":"url","url":"https://..."}
//	{"type":"letta","file_id":"file-..."}
func attach(source jsonv.Value) (a msg.Attachment, ok bool) {
	a.MediaType = ident(source.Get("media_type"))
	a.Name = ident(source.Get("file_id"))
	a.URL = ident(source.Get("url"))
	if data := source.Get("data"); data.Is(jsonv.String) && len(data.Peek()) > 2 {
		if a.Size, a.SHA256 = digest(data); a.SHA256 != "" {
			data.MarkRead()
		}
		return a, true
	}
	return a, a.Name != "" || a.URL != ""
}

// digest decodes base64 and returns the size and the hash of what it holds; of what
// breaks off, the size of the part that is whole and no hash.
func digest(data jsonv.Value) (size int64, sum string) {
	h := sha256.New()
	size, err := io.Copy(h, base64.NewDecoder(base64.StdEncoding, strings.NewReader(data.PeekStr())))
	if err != nil {
		return size, ""
	}
	return size, hex.EncodeToString(h.Sum(nil))
}
