package claudecode

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// attach describes an image or document block by its size and hash:
//
//	{"type":"image","source":{"type":"base64","media_type":"image/png","data":"…"}}
//	{"type":"image","source":{"type":"url","url":"…"}}
//
// ok is false when the block holds neither, and is then text like any other.
func attach(b jsonv.Value) (a msg.Attachment, ok bool) {
	source := b.Get("source")
	a.Name = first(b, "title", "name", "filename").Str()
	a.MediaType = source.Get("media_type").Str()
	if url := source.Get("url"); url.Is(jsonv.String) {
		a.URL = url.Str()
		return a, true
	}
	data := source.Get("data")
	if !data.Is(jsonv.String) {
		return a, false
	}
	if source.Get("type").Equal("text") {
		return a, false
	}
	a.Size, a.SHA256 = digest(data)
	return a, true
}

// digest decodes base64 and returns the size and the hash of what it holds; of
// what breaks off, the size of the part that is whole and no hash.
func digest(data jsonv.Value) (size int64, sum string) {
	raw, quoted := data.Text().Alias()
	if quoted {
		raw = []byte(data.Str())
	}
	h := sha256.New()
	size, err := io.Copy(h, base64.NewDecoder(base64.StdEncoding, bytes.NewReader(raw)))
	if err != nil {
		return size, ""
	}
	return size, hex.EncodeToString(h.Sum(nil))
}
