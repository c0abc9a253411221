package llmmessage

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// attach describes an image by its size, its hash and what its first bytes say it
// is: the protocol names no type, and its documents guess JPEG for all.
func attach(v jsonv.Value) []msg.Attachment {
	raw := []byte(v.PeekStr())
	if len(raw) == 0 {
		return nil
	}
	if bytes.HasPrefix(raw, []byte("data:")) {
		if _, after, ok := bytes.Cut(raw, []byte(",")); ok {
			raw = after
		}
	}
	sum := sha256.New()
	head := &head{}
	size, err := io.Copy(io.MultiWriter(sum, head), base64.NewDecoder(base64.StdEncoding, bytes.NewReader(raw)))
	a := msg.Attachment{MediaType: head.media(), Size: size}
	if err == nil { // of what breaks off there is no hash: it is kept
		v.MarkRead()
		a.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	return []msg.Attachment{a}
}

// head keeps the first bytes of what is written to it.
type head struct {
	b [16]byte
	n int
}

func (h *head) Write(p []byte) (int, error) {
	h.n += copy(h.b[h.n:], p)
	return len(p), nil
}

func (h *head) media() string {
	b := h.b[:h.n]
	for _, c := range [...]struct{ magic, media string }{
		{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"}, {"GIF8", "image/gif"}, {"BM", "image/bmp"}, {"%PDF-", "application/pdf"},
	} {
		if bytes.HasPrefix(b, []byte(c.magic)) {
			return c.media
		}
	}
	if len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP" {
		return "image/webp"
	}
	return "application/octet-stream"
}
