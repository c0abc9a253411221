// Package media describes images, sounds and documents, whose bytes no row keeps: by type,
// size and hash where the bytes are in the record, by URL or path where they are not.
//
// Bytes that break off, or are no base64, have the size of the part that is whole and no
// hash. They do not count as read then, so that the decoder's unknown.Keeper keeps them.
//
// Form reads the fields of an HTTP form, and describes its files.
package media

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Base64 describes the bytes that the string v has as base64.
func Base64(v jsonv.Value, mediaType string) msg.Attachment {
	return describe(v, v.Chars(), mediaType, io.Discard)
}

// Sniffed is Base64 for a format that names no types: the type follows from the first bytes.
// The string may be a data URL, whose type is ignored.
func Sniffed(v jsonv.Value) msg.Attachment {
	data := v.Chars()
	if bytes.HasPrefix(data, []byte("data:")) {
		if _, after, ok := bytes.Cut(data, []byte(",")); ok {
			data = after
		}
	}
	var first prefix
	a := describe(v, data, "", &first)
	a.MediaType = first.mediaType()
	return a
}

// URL describes a data URL (data:image/png;base64,…) by its bytes, any other URL by itself.
func URL(v jsonv.Value) msg.Attachment {
	rest, ok := bytes.CutPrefix(v.Chars(), []byte("data:"))
	if !ok {
		return msg.Attachment{URL: v.Str()}
	}
	head, data, ok := bytes.Cut(rest, []byte(","))
	head, _, _ = bytes.Cut(head[:min(len(head), ident.Max)], []byte(";"))
	mediaType := strings.ToValidUTF8(string(head), "\uFFFD")
	if !ok {
		return msg.Attachment{MediaType: mediaType}
	}
	return describe(v, data, mediaType, io.Discard)
}

// Of describes a file by its bytes, as base64, where a format has them in the record, else by where it is.
func Of(data, url jsonv.Value, mediaType string) msg.Attachment {
	if data.Is(jsonv.String) {
		return Base64(data, mediaType)
	}
	a := URL(url)
	a.MediaType = cmp.Or(mediaType, a.MediaType)
	return a
}

// File describes a file by its path.
func File(path string) msg.Attachment {
	return msg.Attachment{Name: path[strings.LastIndexAny(path, `/\`)+1:], URL: path}
}

func describe(v jsonv.Value, data []byte, mediaType string, decoded io.Writer) msg.Attachment {
	sum, encoding := sha256.New(), base64.StdEncoding
	if bytes.ContainsAny(data, "-_") { // as Google's clients write it
		encoding = base64.URLEncoding
	}
	size, err := io.Copy(io.MultiWriter(sum, decoded), base64.NewDecoder(encoding, bytes.NewReader(data)))
	a := msg.Attachment{MediaType: mediaType, Size: size}
	if err == nil {
		v.MarkRead()
		a.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	return a
}

// prefix is a writer that keeps the first bytes.
type prefix struct {
	b [16]byte
	n int
}

func (p *prefix) Write(b []byte) (int, error) {
	p.n += copy(p.b[p.n:], b)
	return len(b), nil
}

func (p *prefix) mediaType() string {
	b := p.b[:p.n]
	for _, c := range [...]struct{ magic, mediaType string }{
		{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"}, {"GIF8", "image/gif"}, {"BM", "image/bmp"}, {"%PDF-", "application/pdf"},
	} {
		if bytes.HasPrefix(b, []byte(c.magic)) {
			return c.mediaType
		}
	}
	if len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP" {
		return "image/webp"
	}
	return "application/octet-stream"
}
