package grace

import (
	"bytes"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

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

// hasPrefix reports whether p begins with the marker.
func hasPrefix(p []byte, marker string) bool {
	return len(p) >= len(marker) && string(p[:len(marker)]) == marker
}

// isMarker reports whether p begins with a marker. In chat mode only those that are
// known are no text.
func (d *stream) isMarker(p []byte) bool {
	return hasPrefix(p, markerStart) && (!d.chatting() || hasPrefix(p, modeMarker) || hasPrefix(p, endMarker) || hasPrefix(p, chatMarker))
}

// nextMarker returns where the next marker begins, or -1.
func (d *stream) nextMarker(p []byte) int {
	for at := 0; ; at++ {
		i := bytes.Index(p[at:], []byte(markerStart))
		if i < 0 {
			return -1
		}
		if at += i; d.isMarker(p[at:]) {
			return at
		}
	}
}

// marker decodes the marker at the start of p and returns the bytes after it.
func (d *stream) marker(p []byte, out *decoder.Output) (rest []byte) {
	switch {
	case hasPrefix(p, modeMarker):
		v, rest, ok := d.markerValue(p[len(modeMarker):], out)
		if !ok {
			break
		}
		if mode := v.Get("mode"); mode.Is(jsonv.String) {
			d.Mode, d.Fresh = ident.Peek(mode), true
			if d.Mode == "agent" {
				d.reopenQuestion()
			}
		}
		return rest
	case hasPrefix(p, endMarker):
		v, rest, ok := d.markerValue(p[len(endMarker):], out)
		if !ok {
			break
		}
		d.endChat(ident.OrNumber(v.Get("message_id")), ident.OrNumber(v.Get("pid")), out)
		return rest
	case hasPrefix(p, chatMarker):
		if rest, ok := d.chatMarker(p, out); ok {
			return rest
		}
	}
	name, _, _ := bytes.Cut(p[len(markerStart):], []byte("__"))
	m := out.Unknown("__lemon_"+string(bytes.ToValidUTF8(name[:min(len(name), 64)], nil)), p)
	m.Session, m.Key = d.session(), "unknown:"+msg.HashKey(string(p))
	return nil
}

// markerValue parses the JSON object after a marker.
func (d *stream) markerValue(p []byte, out *decoder.Output) (v jsonv.Value, rest []byte, ok bool) {
	n := objectEnd(p)
	if n < 0 || d.parseNext(p[:n], out) != nil {
		return v, nil, false
	}
	return d.doc.Root(), bytes.TrimLeft(p[n:], "\n"), true
}

// chatMarker decodes the sources of a chat answer: a search and its results.
func (d *stream) chatMarker(p []byte, out *decoder.Output) (rest []byte, ok bool) {
	kind, body, found := bytes.Cut(p[len(chatMarker):], []byte("_start__"))
	if !found {
		return nil, false
	}
	v, rest, ok := d.markerValue(bytes.TrimLeft(body, "\n"), out)
	if !ok {
		return nil, false
	}
	end := []byte(chatMarker + string(kind) + "_end__")
	rest = bytes.TrimPrefix(rest, end)
	c := d.chat()
	if c.Search == "" && c.Links == "" { // a later search is kept raw
		c.Search, c.Links = limitText(v.Get("content").Text()), short(v.Get("json"))
	}
	c.Source = strings.ToLower(string(bytes.ToValidUTF8(kind[:min(len(kind), 32)], nil)))
	return rest, true
}

// raw decodes payloads that follow one another without a delimiter, as responseType stream
// sends them and as a log has them: JSON objects up to their closing brace, text up to the next
// marker. In chat mode text cannot be separated from an object that follows it, and stays one
// piece.
func (d *stream) raw(p []byte, line bool, out *decoder.Output) {
	for len(p) > 0 {
		switch {
		case d.isMarker(p):
			p = d.marker(p, out)
		case d.chatting():
			p = d.rawText(p, line, out)
		default:
			var ok bool
			if p, ok = d.rawValue(p, out); !ok { // nothing marks where the next one begins
				return
			}
		}
	}
}

// rawText decodes the text at the start of p, up to a marker, and returns the rest.
func (d *stream) rawText(p []byte, line bool, out *decoder.Output) (rest []byte) {
	if d.object(p, true, out) {
		return nil
	}
	text := p
	if i := d.nextMarker(p); i >= 0 {
		text, rest = p[:i], p[i:]
	} else if line {
		text = append(bytes.Clone(p), '\n')
	}
	d.delta(text, out)
	return rest
}

// rawValue decodes the JSON value at the start of p and returns the rest. ok is
// false after a problem.
func (d *stream) rawValue(p []byte, out *decoder.Output) (rest []byte, ok bool) {
	p = bytes.TrimLeft(p, " \t\r\n")
	err := d.parseNext(p, out)
	if n := objectEnd(p); err != nil && n > 0 && n < len(p) {
		p, rest = p[:n], bytes.TrimLeft(p[n:], " \t\r\n")
		err = d.parseNext(p, out)
	}
	if err != nil {
		reportInvalid(out, err)
		return nil, false
	}
	problems := len(out.Problems)
	d.value(d.doc.Root(), out)
	return rest, len(out.Problems) == problems
}

// objectEnd returns where the JSON object at the start of p ends, or -1.
func objectEnd(p []byte) int {
	if len(p) == 0 || p[0] != '{' {
		return -1
	}
	depth, quoted := 0, false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
