package codexexec

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// files gives the files that a call changed: [{path, kind: add | delete | update, diff?}].
func (d *stream) files(c *call, changes jsonv.Value) {
	for v := range changes.Elems() {
		path := ident(v.Get("path"))
		if path == "" {
			continue
		}
		m := d.give(msg.File, "file:"+c.ID+":"+path)
		m.Tool.CallID = c.ID
		m.Content = v.Get("diff").Text()
		m.Attachments = append(m.Attachments, msg.Attachment{Name: path[strings.LastIndexAny(path, `/\`)+1:], URL: path})
		m.SetAttr("change", ident(v.Get("kind")))
	}
}

// attach describes a picture of an MCP result, {type, data: base64, mimeType}, by its
// size and hash; of what breaks off, by the size of the part that is whole.
func attach(v jsonv.Value) msg.Attachment {
	raw, quoted := v.Get("data").Text().Alias()
	if quoted {
		raw = []byte(v.Get("data").Str())
	}
	a := msg.Attachment{MediaType: ident(v.Get("mimeType"))}
	h := sha256.New()
	size, err := io.Copy(h, base64.NewDecoder(base64.StdEncoding, bytes.NewReader(raw)))
	if a.Size = size; err == nil {
		a.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	return a
}
