package codex

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

// attach describes what a URL stands for: data:image/png;base64,… by size and hash,
// any other by itself.
func attach(url jsonv.Value) msg.Attachment {
	raw, quoted := url.Text().Alias()
	rest, ok := bytes.CutPrefix(raw, []byte("data:"))
	if !ok {
		return msg.Attachment{URL: ident(url)}
	}
	if quoted {
		rest = []byte(url.Str())[len("data:"):]
	}
	head, data, _ := bytes.Cut(rest, []byte(","))
	media, _, _ := strings.Cut(string(head[:min(len(head), maxIdent)]), ";")
	a := msg.Attachment{MediaType: strings.ToValidUTF8(media, "\uFFFD")}
	a.Size, a.SHA256 = digest(data)
	return a
}

// local describes a file that only its path tells of.
func local(path jsonv.Value) msg.Attachment {
	s := ident(path)
	return msg.Attachment{Name: s[strings.LastIndexAny(s, `/\`)+1:], URL: s}
}

// digest decodes base64 and returns the size and the hash of what it holds; of
// what breaks off, the size of the part that is whole and no hash.
func digest(data []byte) (size int64, sum string) {
	h := sha256.New()
	size, err := io.Copy(h, base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data)))
	if err != nil {
		return size, ""
	}
	return size, hex.EncodeToString(h.Sum(nil))
}
