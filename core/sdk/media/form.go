package media

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// Limits of a form: the kept bytes of a field, and the number of parts.
const (
	maxField = 8 << 20
	maxParts = 1024
)

// Form returns the fields of an HTTP form as a JSON object, and describes its files. A frame has no content type: a
// multipart form begins with its boundary, and of other bodies one that has one of these fields is a URL-encoded form.
// The object is nil for a body that is no form.
func Form(body []byte, known ...string) (object []byte, files []msg.Attachment) {
	fields := make(map[string]string)
	if bytes.HasPrefix(body, []byte("--")) {
		if files = multipartForm(body, fields); files == nil && len(fields) == 0 {
			return nil, nil
		}
	} else {
		values, err := url.ParseQuery(string(body))
		if err != nil || !slices.ContainsFunc(known, func(name string) bool { return values.Get(name) != "" }) {
			return nil, nil
		}
		for name, list := range values {
			fields[valid(name)] = valid(strings.Join(list, "\n"))
		}
	}
	object, err := json.Marshal(fields)
	if err != nil { // strings always have a JSON form
		return nil, nil
	}
	return object, files
}

// multipartForm reads the fields of a multipart form, and returns its files. A truncated body yields the parts before the cut.
func multipartForm(body []byte, fields map[string]string) (files []msg.Attachment) {
	line, _, _ := bytes.Cut(body, []byte("\n"))
	boundary := string(bytes.TrimSpace(line[2:]))
	if boundary == "" || len(boundary) > 200 {
		return nil
	}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for range maxParts {
		p, err := r.NextRawPart()
		if err != nil {
			break
		}
		if name := p.FileName(); name != "" {
			h := sha256.New()
			size, err := io.Copy(h, p)
			a := msg.Attachment{Name: valid(name), MediaType: valid(p.Header.Get("Content-Type")), Size: size}
			if err == nil {
				a.SHA256 = hex.EncodeToString(h.Sum(nil))
			}
			files = append(files, a)
			continue
		}
		value, err := io.ReadAll(io.LimitReader(p, maxField))
		fields[valid(p.FormName())] = valid(string(value))
		if err != nil {
			break
		}
	}
	return files
}

// valid returns typed text as UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
