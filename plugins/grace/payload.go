package grace

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
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
func (d *stream) event(f *frame.Frame) {
	switch wrapped := f.Kind == frame.Event; {
	case d.Framing == inChunks && string(bytes.TrimSpace(f.Data)) == "[DONE]":
	case d.Framing == inChunks, d.Framing != plain && looksPlain(f.Data):
		d.notBase64(f.Data)
	case d.Framing == inBase64, d.Framing == undecided && wrapped:
		d.encoded(f)
	default:
		d.payload(f.Data, true)
	}
}

// looksPlain reports whether data begins as nothing in base64 does.
func looksPlain(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && (strings.IndexByte(`{["`, data[0]) >= 0 || bytes.HasPrefix(data, []byte(markerStart)))
}

// notBase64 decodes data that is not base64: a chunk of a chat completion, or a payload without wrapping, also among
// events in base64.
func (d *stream) notBase64(data []byte) {
	if bytes.HasPrefix(data, []byte(markerStart)) {
		if d.Framing == undecided {
			d.Framing = plain
		}
		d.payload(data, true)
		return
	}
	root, ok := d.Parse(data)
	if !ok {
		return
	}
	chunk := root.Get("choices").Is(jsonv.Array) && root.Get("object").Equal("chat.completion.chunk")
	switch {
	case d.Framing != undecided:
	case chunk:
		d.Framing = inChunks
	case isMessage(root):
		d.Framing = plain
	}
	if d.Framing != inChunks || root.Is(jsonv.Object) && !chunk {
		d.value(root)
		return
	}
	if id := root.Get("id"); id.Is(jsonv.String) { // of the completion that it is dressed as
		id.MarkRead()
	}
	for choice := range root.Get("choices").Elems() {
		if content := choice.Path("delta", "content"); content.Is(jsonv.String) {
			d.payload(content.Text().Append(nil), false)
			return
		}
	}
	if !chunk {
		d.Out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
	}
}

// encoded decodes an event in base64.
func (d *stream) encoded(f *frame.Frame) {
	data := bytes.TrimSpace(f.Data)
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(decoded, data)
	decoded = decoded[:n]
	switch sure, text := d.Framing == inBase64, utf8.Valid(decoded); {
	case !sure && (err != nil || !text):
		d.payload(f.Data, true)
	case err != nil:
		d.Out.Problem(reasonBase64, err.Error())
	case !text:
		d.Out.Problem(msg.ReasonInvalidUTF8, "the payload is not text")
	case sure, looksPlain(decoded), f.Name == "message": // upstream names the events of this framing and no others
		d.Framing = inBase64
		d.payload(decoded, false)
	default:
		d.payload(f.Data, false)
	}
}

// payload decodes one payload. Bare means that it arrived without any wrapping: then JSON with
// a type of its own is no text, in every mode.
func (d *stream) payload(p []byte, bare bool) {
	switch {
	case d.isMarker(p):
		d.marker(p)
	case !d.chatting():
		if root, ok := d.Parse(p); ok {
			d.value(root)
		}
	case !d.object(p, bare):
		d.delta(p)
	}
}

// value decodes a payload that is JSON.
func (d *stream) value(root jsonv.Value) {
	switch root.Kind() {
	case jsonv.Object:
		d.message(root)
	case jsonv.String: // in place of a message
		m := d.addToTurn(msg.Assistant, "message:"+msg.HashKey("bare", root.Str()))
		m.Role, m.Content = msg.RoleAssistant, root.Text()
		m.SetAttr("bare", "true")
	default:
		d.Out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
	}
}

// object decodes p if it is a message, or an event where those are no text, and reports
// whether it is. Nearly all text is no object, and is not worth a parse.
func (d *stream) object(p []byte, events bool) bool {
	t := bytes.TrimSpace(p)
	if len(t) < 2 || t[0] != '{' || t[len(t)-1] != '}' {
		return false
	}
	root, rest, err := d.ParseFirst(t)
	if err != nil {
		return false
	}
	if len(rest) > 0 || !isMessage(root) && (!events || !root.Get("type").Is(jsonv.String) && !root.Get("event").Is(jsonv.String)) {
		root.MarkRead() // as the text that it is
		return false
	}
	d.message(root)
	return true
}

// isMessage reports whether the object has the shape of a message: with its meta,
// without it as in GRACE's logs, or with nothing but a role, a text and a time.
func isMessage(v jsonv.Value) bool {
	role, t := v.Get("role").Is(jsonv.String), v.Get("timestamp").Exists()
	if v.Get("handledBySpecialist").Bool() || role && t && v.Get("content").Exists() {
		return true
	}
	action := v.Get("action_type").Is(jsonv.String) || v.Path("meta", "action_type").Is(jsonv.String) || v.Get("meta").Is(jsonv.String)
	return action && (role || t || v.Get("status").Is(jsonv.String))
}

// body decodes a whole response: the rows of a conversation, one message, or the
// bytes of a stream without delimiters.
//
//	{"code":200,"data":[{"id":1,"conversation_id":"…","role":"user","meta":"{…}",…},…],"msg":""}
func (d *stream) body(data []byte) {
	data = bytes.TrimSpace(data)
	root, rest, err := d.ParseFirst(data)
	switch {
	case err == nil && len(rest) == 0:
	case bytes.HasPrefix(data, []byte(markerStart)), d.chatting(), root.Is(jsonv.Object):
		d.raw(data, false)
		return
	default:
		root.MarkRead()
		d.Parse(data) // reports it
		return
	}
	for _, v := range [...]jsonv.Value{
		root, root.Get("data"), root.Get("messages"), root.Path("data", "messages"), root.Path("data", "list"), root.Path("data", "rows"),
	} {
		if v.Is(jsonv.Array) {
			d.rows(v)
			return
		}
	}
	if root.Is(jsonv.Object) {
		d.message(root)
	} else {
		d.Out.Problem(msg.ReasonWrongType, "expected an object or a list, got "+root.Kind().String())
	}
}

// rows decodes all messages of a conversation, oldest first. The state of earlier frames does
// not apply to them.
func (d *stream) rows(list jsonv.Value) {
	*d.state = state{Session: d.Session, Framing: d.Framing, Mode: d.Mode, Fresh: true, Shown: d.Shown, Chat: d.Chat,
		Calls: conversation.Calls[*call]{Ended: d.Calls.Ended}}
	d.listed = true
	defer func() { d.listed = false }()
	for v := range list.Elems() {
		if v.Is(jsonv.Object) {
			d.message(v)
		} else {
			d.keepRaw("row", v.Raw())
		}
	}
	if d.Ask != nil { // nothing has answered it yet
		d.Ask.Key = "asked:" + d.Ask.Hash
		d.Shown = d.Ask.Key
	}
}
