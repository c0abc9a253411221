package grace

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
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
	if d.Framing == undecided {
		d.decide(f)
	}
	switch data := bytes.TrimSpace(f.Data); {
	case d.Framing == inChunks && string(data) == "[DONE]":
	case d.Framing == inBase64 && !looksPlain(data):
		decoded, err := base64.StdEncoding.AppendDecode(nil, data)
		if err != nil {
			d.Out.Problem(reasonBase64, err.Error())
		} else if !utf8.Valid(decoded) {
			d.Out.Problem(msg.ReasonInvalidUTF8, "the payload is not text")
		} else {
			d.payload(decoded, wrapped)
		}
	case !bytes.HasPrefix(data, []byte(markerStart)) && (d.Framing == inChunks || d.Framing != plain && looksPlain(data)):
		d.payload(f.Data, beside)
	default:
		d.payload(f.Data, bare)
	}
}

// decide finds how the stream wraps its payloads. Upstream names the events in base64 and no others.
func (d *stream) decide(f *frame.Frame) {
	decoded, err := base64.StdEncoding.AppendDecode(nil, bytes.TrimSpace(f.Data))
	root, _, _ := d.ParseFirst(f.Data)
	switch {
	case bytes.HasPrefix(f.Data, []byte(markerStart)), isMessage(root):
		d.Framing = plain
	case isChunk(root):
		d.Framing = inChunks
	case f.Kind == frame.Event && err == nil && utf8.Valid(decoded) && (looksPlain(decoded) || f.Name == "message"):
		d.Framing = inBase64
	}
	root.MarkRead() // it is read again
}

// looksPlain reports whether data begins as nothing in base64 does.
func looksPlain(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && (strings.IndexByte(`{["`, data[0]) >= 0 || bytes.HasPrefix(data, []byte(markerStart)))
}

// place is how payloads arrived, which decides which of them may be text.
type place uint8

const (
	wrapped place = iota // all but messages
	bare                 // nor JSON with a type of its own
	beside               // payloads that are wrapped: nothing
)

// payload decodes the payloads of a frame, which follow one another: markers, JSON objects up to their closing brace, and in
// chat mode text.
func (d *stream) payload(p []byte, at place) {
	for more := true; more; more = len(p) > 0 {
		if d.isMarker(p) {
			p = d.marker(p)
			continue
		}
		root, rest, err := d.ParseFirst(p)
		whole := err == nil && len(rest) == 0
		switch {
		case d.chatting() && at < beside && !(whole && (isMessage(root) || at == bare && root.First("type", "event").Is(jsonv.String))):
			root.MarkRead() // as the text that it is
			p = d.text(p)
		case whole, err == nil && root.Is(jsonv.Object):
			d.value(root)
			p = rest
		default:
			root.MarkRead()
			d.Parse(p) // reports it: nothing marks where the next payload begins
			return
		}
	}
}

// value decodes a payload that is JSON, or the chunk of a completion that wraps one.
func (d *stream) value(root jsonv.Value) {
	switch {
	case d.Framing == inChunks && isChunk(root):
		ident.Of(root.Get("id")) // of the completion that the stream imitates
		for choice := range root.Get("choices").Elems() {
			if content := choice.Path("delta", "content"); content.Is(jsonv.String) {
				d.payload(content.Text().Append(nil), wrapped)
				return
			}
		}
	case root.Is(jsonv.Object):
		d.message(root)
	case root.Is(jsonv.String): // in place of a message
		m := d.addToTurn(msg.Assistant, "message:"+msg.HashKey("bare", root.Str()))
		m.Role, m.Content = msg.RoleAssistant, root.Text()
		m.SetAttr("bare", "true")
	default:
		d.Out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
	}
}

func isChunk(v jsonv.Value) bool {
	return v.Get("choices").Is(jsonv.Array) && v.Get("object").Equal("chat.completion.chunk")
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

// Markers stand between the messages and the text:
//
//	__lemon_mode__{"mode":"agent"}\n\n
//	__lemon_chat_SEARCH_start__\n{…}\n__lemon_chat_SEARCH_end__
//	__lemon_out_end__{"message_id":"42","pid":"41"}\n\n
const (
	markerStart = "__lemon_"
	modeMarker  = "__lemon_mode__"
	endMarker   = "__lemon_out_end__"
	chatMarker  = "__lemon_chat_"
)

// isMarker reports whether p begins with a marker. In chat mode only those that are
// known are no text.
func (d *stream) isMarker(p []byte) bool {
	known := func(marker string) bool { return bytes.HasPrefix(p, []byte(marker)) }
	return known(markerStart) && (!d.chatting() || known(modeMarker) || known(endMarker) || known(chatMarker))
}

// marker decodes the marker at the start of p and returns the bytes after it.
func (d *stream) marker(p []byte) (rest []byte) {
	head, body, _ := bytes.Cut(p[len(markerStart):], []byte("__"))
	name := string(head[:min(len(head), 64)])
	kind, search := strings.CutPrefix(name, "chat_")
	kind, start := strings.CutSuffix(kind, "_start")
	v, rest, err := d.ParseFirst(body)
	switch {
	case err != nil || !v.Is(jsonv.Object):
	case name == "mode":
		d.setMode(v.Get("mode"))
		return rest
	case name == "out_end":
		d.endChat(ident.OrNumber(v.Get("message_id")), ident.OrNumber(v.Get("pid")))
		return rest
	case search && start:
		d.search(kind, v)
		return bytes.TrimPrefix(rest, []byte(chatMarker+kind+"_end__"))
	}
	v.MarkRead()
	d.keepRaw(markerStart+strings.ToValidUTF8(name, ""), p)
	return nil
}

// setMode decodes the mode marker. In the mode twins the work of the agent follows a chat
// answer, and the database has it under a question of its own: the request's question is
// open again.
func (d *stream) setMode(mode jsonv.Value) {
	if !mode.Is(jsonv.String) {
		return
	}
	d.Mode, d.Fresh = ident.Peek(mode), true
	if d.Mode == "agent" && d.Ask == nil && d.Asked != nil && strings.HasPrefix(d.Turn.Run, chatRun("")) {
		a := *d.Asked
		a.Key = ""
		d.Ask = &a
	}
}

// chatting reports whether payloads are pieces of an answer's text.
func (d *stream) chatting() bool { return d.Mode == "chat" }

// body decodes a whole response: the rows of a conversation, one message, or the
// bytes of a stream without delimiters.
//
//	{"code":200,"data":[{"id":1,"conversation_id":"…","role":"user","meta":"{…}",…},…],"msg":""}
func (d *stream) body(data []byte) {
	root, rest, err := d.ParseFirst(data)
	if err != nil || len(rest) > 0 {
		root.MarkRead()
		d.payload(bytes.TrimSpace(data), bare)
		return
	}
	v := jsonv.Or(root.Get("data"), root)
	if list := jsonv.Or(v.First("messages", "list", "rows"), v); list.Is(jsonv.Array) {
		d.rows(list)
	} else {
		d.value(root)
	}
}

// rows decodes all messages of a conversation, or of several, oldest first. The state of earlier frames does
// not apply to them.
func (d *stream) rows(list jsonv.Value) {
	sessions := append(slices.Clip(d.Others), d.session)
	for i, s := range sessions {
		if s.Ask != nil { // nothing had answered it
			s.Shown = s.Ask.Key
		}
		sessions[i] = session{Session: s.Session, Fresh: true, Shown: s.Shown, Calls: conversation.Calls[*call]{Ended: s.Calls.Ended}}
	}
	d.Others, d.session = sessions[:len(d.Others)], sessions[len(d.Others)]
	d.listed = true
	for v := range list.Elems() {
		if v.Is(jsonv.Object) {
			d.message(v)
		} else {
			d.Unknown("row", v).Run = ""
		}
	}
	d.listed = false
}
