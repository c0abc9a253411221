package exchange

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

const maxIdent = 256

// Ident is the id or the name in v, "" if v is no string; a hash of it if it is too
// long to be remembered.
func Ident(v jsonv.Value) string {
	if !v.Is(jsonv.String) {
		return ""
	}
	if raw := v.Raw(); len(raw) > maxIdent {
		return "long:" + msg.HashKey(string(raw))
	}
	return v.Str()
}

// Join joins texts by newlines.
func Join(a, b msg.Text) msg.Text {
	if a.IsZero() {
		return b
	}
	return msg.Plain(string(b.Append(append(a.Append(nil), '\n'))))
}

// Base64 describes bytes that are in the text of v.
func Base64(v jsonv.Value, mediaType string) msg.Attachment {
	raw, quoted := v.Text().Alias()
	if quoted {
		raw = []byte(v.Str())
	}
	return digest(raw, mediaType)
}

func digest(raw []byte, mediaType string) msg.Attachment {
	a := msg.Attachment{MediaType: mediaType}
	h := sha256.New()
	size, err := io.Copy(h, base64.NewDecoder(base64.StdEncoding, bytes.NewReader(raw)))
	if a.Size = size; err == nil { // of what breaks off there is no hash
		a.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	return a
}

// Link describes what a URL names, which may be a data URL.
func Link(v jsonv.Value) msg.Attachment {
	url := v.Str()
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return msg.Attachment{URL: url}
	}
	head, data, _ := strings.Cut(rest, ",")
	mediaType, _, _ := strings.Cut(head, ";")
	return digest([]byte(data), mediaType)
}
