package grace

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
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

// isMarker reports whether p begins with a marker. In chat mode only those that are
// known are no text.
func (d *stream) isMarker(p []byte) bool {
	known := func(marker string) bool { return bytes.HasPrefix(p, []byte(marker)) }
	return known(markerStart) && (!d.chatting() || known(modeMarker) || known(endMarker) || known(chatMarker))
}

// marker decodes the marker at the start of p and returns the bytes after it.
func (d *stream) marker(p []byte) (rest []byte) {
	name, body, _ := bytes.Cut(p[len(markerStart):], []byte("__"))
	kind, search := bytes.CutPrefix(name, []byte("chat_"))
	kind, start := bytes.CutSuffix(kind, []byte("_start"))
	if search = search && start; search || string(name) == "mode" || string(name) == "out_end" {
		v, rest, err := d.ParseFirst(body)
		switch {
		case err != nil || !v.Is(jsonv.Object):
		case search:
			d.search(string(kind), v)
			return bytes.TrimPrefix(rest, []byte(chatMarker+string(kind)+"_end__"))
		case string(name) == "mode":
			d.setMode(v.Get("mode"))
			return rest
		default:
			d.endChat(ident.OrNumber(v.Get("message_id")), ident.OrNumber(v.Get("pid")))
			return rest
		}
	}
	d.keepRaw(markerStart+string(bytes.ToValidUTF8(name[:min(len(name), 64)], nil)), p)
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

// raw decodes payloads that follow one another without a delimiter, as responseType stream
// sends them and as a log has them: JSON objects up to their closing brace, text up to the next
// marker. In chat mode text cannot be separated from an object that follows it, and stays one
// piece.
func (d *stream) raw(p []byte, line bool) {
	for ok := true; ok && len(p) > 0; {
		switch {
		case d.isMarker(p):
			p = d.marker(p)
		case d.chatting():
			p = d.rawText(p, line)
		default:
			p, ok = d.rawValue(p) // after a problem nothing marks where the next one begins
		}
	}
}

// rawText decodes the text at the start of p, up to a marker, and returns the rest.
func (d *stream) rawText(p []byte, line bool) (rest []byte) {
	if d.object(p, true) {
		return nil
	}
	for at := 0; ; at++ {
		i := bytes.Index(p[at:], []byte(markerStart))
		if i < 0 {
			break
		}
		if at += i; d.isMarker(p[at:]) {
			d.delta(p[:at])
			return p[at:]
		}
	}
	if line {
		p = append(bytes.Clone(p), '\n')
	}
	d.delta(p)
	return nil
}

// rawValue decodes the JSON value at the start of p and returns the rest. ok is
// false after a problem.
func (d *stream) rawValue(p []byte) (rest []byte, ok bool) {
	p = bytes.TrimSpace(p)
	root, rest, err := d.ParseFirst(p)
	if err != nil || len(rest) > 0 && !root.Is(jsonv.Object) {
		root.MarkRead()
		d.Parse(p) // reports it
		return nil, false
	}
	problems := len(d.Out.Problems)
	d.value(root)
	return rest, len(d.Out.Problems) == problems
}

// chat is a chat answer that is still open: pieces of text until the end marker names the rows
// under which it was stored.
type chat struct {
	Text    []byte `json:",omitempty"`
	Dropped int    `json:",omitempty"` // bytes beyond the limit
	Search  string `json:",omitempty"` // results of the web search
	Source  string `json:",omitempty"` // name of the search
	Links   string `json:",omitempty"` // its links as JSON
}

// chatting reports whether payloads are pieces of an answer's text.
func (d *stream) chatting() bool { return d.Mode == "chat" }

func (d *dialogue) chat() *chat {
	if d.Chat == nil {
		d.Chat = &chat{}
	}
	return d.Chat
}

// search decodes the sources of a chat answer: a search and its results.
func (d *dialogue) search(kind string, v jsonv.Value) {
	c := d.chat()
	if c.Search == "" && c.Links == "" { // a later search is kept raw
		c.Search, c.Links = conversation.Cut(v.Get("content").Text().String(), maxText), short(v.Get("json"))
	}
	c.Source = strings.ToLower(strings.ToValidUTF8(kind[:min(len(kind), 32)], ""))
}

// delta adds a piece of text to the answer.
func (d *dialogue) delta(p []byte) {
	if !utf8.Valid(p) {
		d.Out.Problem(msg.ReasonInvalidUTF8, "the piece of an answer is not text")
		return
	}
	c := d.chat()
	part := conversation.Cut(p, maxText-len(c.Text))
	c.Text = append(c.Text, part...)
	c.Dropped += len(p) - len(part)
}

// endChat emits a chat answer once its row and its question's row are named: the database has
// both under these ids.
func (d *dialogue) endChat(answer, question string) {
	c, draft := d.chat(), d.draftKey()
	d.Chat = nil
	if len(c.Text) > 0 {
		m := d.addStatus(draft, "chat_draft")
		m.SetAttr("message_id", answer)
		m.SetAttr("pid", question)
	}
	d.setRun(chatRun(cmp.Or(question, answer)))
	d.addQuestion(conversation.Time{})
	d.addSearch(cmp.Or(answer, draft), msg.Plain(c.Source), msg.Plain(c.Search), c.Links, conversation.Time{})
	key := "message:" + answer
	if answer == "" {
		key = draft + "/text"
	}
	m := d.addToTurn(msg.Assistant, key)
	m.Role, m.Content = msg.RoleAssistant, msg.Plain(string(c.Text))
	m.SetAttr("truncated_bytes", conversation.NonZero(c.Dropped))
	d.Intents.read(m)
	d.endRun(m, "stop", false)
}

// addSearch emits the search on which a chat answer is based. Its query is not on the wire.
func (d *dialogue) addSearch(answer string, source, found msg.Text, links string, t conversation.Time) {
	if answer == "" || found.IsZero() && links == "" {
		return
	}
	c := call{Call: conversation.Call{ID: "search:" + answer, Name: "web_search"}}
	m := c.mark(d.addToTurn(msg.ToolCall, "call:"+c.ID))
	t.Set(m)
	m.SetAttr("source", source.String())
	m = c.mark(d.addToTurn(msg.ToolResult, "result:"+c.ID))
	t.Set(m)
	m.Role, m.Content = msg.RoleTool, found
	m.SetAttr("json", links)
}

// chatRun is the run of a chat answer: that of the question's row.
func chatRun(question string) string { return "chat-" + question }

// draftKey is the key of an answer whose row is not known yet.
func (d *dialogue) draftKey() string {
	asked := d.origin
	if d.Asked != nil {
		asked = d.Asked.Hash
	}
	return "draft:" + msg.HashKey(asked, d.Turn.Run)
}
