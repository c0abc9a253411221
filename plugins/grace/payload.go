package grace

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// framing is how a stream wraps its payloads. The first event that can only be
// meant in one way decides it.
type framing uint8

const (
	undecided framing = iota
	plain
	inBase64
	inChunks // of an OpenAI chat completion
)

const reasonBase64 = "invalid_base64"

// event decodes an SSE event or a WebSocket message.
func (d *stream) event(f *frame.Frame, out *decoder.Output) {
	switch {
	case d.Framing == plain:
		d.payload(f.Data, true, out)
	case d.Framing == inChunks:
		d.chunk(f.Data, out)
	case looksPlain(f.Data):
		d.notBase64(f.Data, out)
	case d.Framing == inBase64 || f.Kind == frame.Event:
		d.encoded(f, out)
	default:
		d.payload(f.Data, true, out)
	}
}

// looksPlain reports whether data begins as nothing in base64 does.
func looksPlain(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && (bytes.IndexByte([]byte(`{["`), data[0]) >= 0 || hasPrefix(data, markerStart))
}

// notBase64 decodes data that is not base64, while the stream's framing is undecided or
// although it is base64.
func (d *stream) notBase64(data []byte, out *decoder.Output) {
	if hasPrefix(data, markerStart) {
		if d.Framing == undecided {
			d.Framing = plain
		}
		d.payload(data, true, out)
		return
	}
	root, ok := d.parse(data, out)
	switch {
	case !ok:
	case d.Framing == undecided && isChunk(root):
		d.Framing = inChunks
		d.chunkContent(root, out)
	case d.Framing == undecided && isMessage(root):
		d.Framing = plain
		d.message(root, out)
	default:
		d.value(root, out)
	}
}

// encoded decodes an event in base64.
func (d *stream) encoded(f *frame.Frame, out *decoder.Output) {
	data := bytes.TrimSpace(f.Data)
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(decoded, data)
	decoded = decoded[:n]
	switch sure := d.Framing == inBase64; {
	case err != nil && !sure:
		d.payload(f.Data, true, out)
		return
	case err != nil:
		out.Problem(reasonBase64, err.Error())
		return
	case !utf8.Valid(decoded) && !sure:
		d.payload(f.Data, true, out)
		return
	case !utf8.Valid(decoded):
		out.Problem(msg.ReasonInvalidUTF8, "the payload is not text")
		return
	}
	// Upstream names the events of this framing and no others.
	if looksPlain(decoded) || f.Name == "message" {
		d.Framing = inBase64
	}
	if d.Framing != inBase64 {
		decoded = f.Data
	}
	d.payload(decoded, false, out)
}

// isChunk reports whether the value is a chunk of a chat completion.
func isChunk(v jsonv.Value) bool {
	return v.Get("choices").Is(jsonv.Array) && v.Get("object").Equal("chat.completion.chunk")
}

// chunk decodes a chunk of a chat completion whose delta holds the payload.
func (d *stream) chunk(data []byte, out *decoder.Output) {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		return
	}
	root, ok := d.parse(data, out)
	if !ok {
		return
	}
	switch {
	case isMessage(root):
		d.message(root, out)
		return
	case !root.Is(jsonv.Object):
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return
	case !isChunk(root):
		d.unknown(root, out)
		return
	}
	d.chunkContent(root, out)
}

// chunkContent decodes the payload in a chunk.
func (d *stream) chunkContent(root jsonv.Value, out *decoder.Output) {
	if id := root.Get("id"); id.Is(jsonv.String) { // of the completion that it is dressed as
		id.MarkRead()
	}
	for choice := range root.Get("choices").Elems() {
		if content := choice.Path("delta", "content"); content.Is(jsonv.String) {
			d.payload(content.Text().Append(nil), false, out)
			return
		}
	}
}

// payload decodes one payload. Bare means that it arrived without any wrapping: then JSON with
// a type of its own is no text, in every mode.
func (d *stream) payload(p []byte, bare bool, out *decoder.Output) {
	if d.isMarker(p) {
		d.marker(p, out)
		return
	}
	if d.chatting() {
		if !d.object(p, bare, out) {
			d.delta(p, out)
		}
		return
	}
	if root, ok := d.parse(p, out); ok {
		d.value(root, out)
	}
}

// value decodes a payload that is JSON.
func (d *stream) value(root jsonv.Value, out *decoder.Output) {
	switch root.Kind() {
	case jsonv.Object:
		d.message(root, out)
	case jsonv.String:
		d.bareText(root, out)
	default:
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
	}
}

// object decodes p if it is a message, or an event where those are no text, and reports
// whether it is. Nearly all text is no object, and is not worth a parse.
func (d *stream) object(p []byte, events bool, out *decoder.Output) bool {
	t := bytes.TrimSpace(p)
	if len(t) < 2 || t[0] != '{' || t[len(t)-1] != '}' || d.parseNext(t, out) != nil {
		return false
	}
	root := d.doc.Root()
	if !isMessage(root) && (!events || !isEvent(root)) {
		root.MarkRead() // as the text that it is
		return false
	}
	d.message(root, out)
	return true
}

// isMessage reports whether the object has the shape of a message: with its meta,
// without it as in GRACE's logs, or with nothing but a role, a text and a time.
func isMessage(v jsonv.Value) bool {
	if v.Get("handledBySpecialist").Bool() {
		return true
	}
	role, t := v.Get("role").Is(jsonv.String), v.Get("timestamp").Exists()
	if role && t && v.Get("content").Exists() {
		return true
	}
	action := v.Get("action_type").Is(jsonv.String) || v.Path("meta", "action_type").Is(jsonv.String) || v.Get("meta").Is(jsonv.String)
	return action && (role || t || v.Get("status").Is(jsonv.String))
}

// isEvent reports whether the object has a type. No piece of text does.
func isEvent(v jsonv.Value) bool {
	return v.Get("type").Is(jsonv.String) || v.Get("event").Is(jsonv.String)
}
