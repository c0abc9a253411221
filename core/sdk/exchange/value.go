package exchange

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Options of all decoders of exchanges.
type Options struct {
	// Agent is who speaks to the provider; the traffic does not tell.
	Agent string `json:"agent"`
}

// Schema is the JSON Schema of Options.
const Schema = `{"type":"object","additionalProperties":false,"properties":{"agent":{"type":"string","maxLength":256,"description":"who speaks to the provider; the traffic does not tell"}}}`

// ParseOptions reads a source's options.
func ParseOptions(raw json.RawMessage) (o Options, err error) {
	o.Agent = "agent"
	if len(raw) == 0 {
		return o, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("options: %w", err)
	}
	if o.Agent == "" || len(o.Agent) > maxIdent {
		return o, errors.New("options: agent: expected a name of up to 256 bytes")
	}
	return o, nil
}

// Parse parses a frame, or reports what is wrong with it.
func Parse(doc *jsonv.Doc, data []byte, out *decoder.Output) (jsonv.Value, bool) {
	if err := doc.Parse(data); err != nil {
		reason := msg.ReasonInvalidJSON
		var syntax *jsonv.SyntaxError
		if errors.As(err, &syntax) && syntax.UTF8 {
			reason = msg.ReasonInvalidUTF8
		}
		out.Problem(reason, err.Error())
		return jsonv.Value{}, false
	}
	root := doc.Root()
	if !root.Is(jsonv.Object) {
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return jsonv.Value{}, false
	}
	return root, true
}

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
