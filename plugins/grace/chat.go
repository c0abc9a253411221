package grace

import (
	"cmp"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
)

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

func (d *stream) chat() *chat {
	if d.Chat == nil {
		d.Chat = &chat{}
	}
	return d.Chat
}

// delta adds a piece of text to the answer.
func (d *stream) delta(p []byte, out *decoder.Output) {
	if !utf8.Valid(p) {
		out.Problem(msg.ReasonInvalidUTF8, "the piece of an answer is not text")
		return
	}
	c := d.chat()
	n := min(len(p), max(maxText-len(c.Text), 0))
	for n < len(p) && n > 0 && !utf8.RuneStart(p[n]) {
		n--
	}
	c.Text = append(c.Text, p[:n]...)
	c.Dropped += len(p) - n
}

// endChat emits a chat answer once its row and its question's row are named: the database has
// both under these ids.
func (d *stream) endChat(answer, question string, out *decoder.Output) {
	c, draft := d.chat(), d.draftKey()
	d.Chat = nil
	if len(c.Text) > 0 {
		m := d.status(out, draft, "chat_draft")
		m.SetAttr("message_id", answer)
		m.SetAttr("pid", question)
	}
	if question == "" {
		question = answer
	}
	d.setRun(chatRun(question))
	d.addQuestion(at{}, out)
	d.addSearch(out, cmp.Or(answer, draft), msg.Plain(c.Source), msg.Plain(c.Search), c.Links, at{})
	key := "message:" + answer
	if answer == "" {
		key = draft + "/text"
	}
	m := d.addMessage(out, msg.Assistant, key)
	m.Role, m.Content = msg.RoleAssistant, msg.Plain(string(c.Text))
	m.SetAttr("truncated_bytes", nonZero(c.Dropped))
	d.modelText(m)
	d.endRun(m, "stop", false)
}

// addSearch emits the search on which a chat answer is based. Its query is not on the wire.
func (d *stream) addSearch(out *decoder.Output, answer string, source, found msg.Text, links string, t at) {
	if answer == "" || found.IsZero() && links == "" {
		return
	}
	call := "search:" + answer
	m := d.addMessage(out, msg.ToolCall, "call:"+call)
	m.Tool.CallID, m.Tool.Name = call, "web_search"
	m.Time, m.Precision = t.Time, t.Precision
	m.SetAttr("source", source.String())
	m = d.addMessage(out, msg.ToolResult, "result:"+call)
	m.Role = msg.RoleTool
	m.Tool.CallID, m.Tool.Name, m.Content = call, "web_search", found
	m.Time, m.Precision = t.Time, t.Precision
	m.SetAttr("json", links)
}

// chatRun is the run of a chat answer: that of the question's row.
func chatRun(question string) string { return "chat-" + question }

// draftKey is the key of an answer whose row is not known yet.
func (d *stream) draftKey() string {
	asked := d.origin
	if d.Asked != nil {
		asked = d.Asked.Hash
	}
	return "draft:" + msg.HashKey(asked, d.Turn.Run)
}

// addDraftAnswer emits the text of an answer that is still being written.
func (d *stream) addDraftAnswer(out *decoder.Output) {
	m := out.Add()
	m.Kind, m.Role, m.Key, m.Session = msg.Assistant, msg.RoleAssistant, d.draftKey(), d.session()
	m.Agent = agent()
	m.Content = msg.Plain(string(d.Chat.Text))
}
