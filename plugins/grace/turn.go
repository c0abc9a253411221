package grace

import (
	"bytes"
	"cmp"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// turn is one run: a question and all that answers it.
type turn struct {
	Run    string `json:",omitempty"`
	Ended  bool   `json:",omitempty"`
	Failed bool   `json:",omitempty"` // one of its tasks has
	Goal   string `json:",omitempty"` // the beginning of the question
}

// between reports whether the next turn has not begun.
func (d *stream) between() bool { return d.Fresh || d.Turn.Run == "" }

// begin makes run the current turn, to which the question belongs that waits for its answer. It has the time of the
// answer where it has none: it was asked by then.
func (d *stream) begin(run string) {
	if d.Fresh = false; run != d.Turn.Run {
		d.Turn, d.Plan, d.Intents = turn{Run: run}, nil, nil
		if d.Session == "" && d.origin == "" {
			d.Session = run
		}
	}
	q := d.Ask
	if q == nil {
		return
	}
	d.Ask = nil
	if q.Key != "" && (!d.listed || d.Shown == q.Key) { // rows are all there is: only the last can be without an answer
		m := d.addStatus(q.Key, "request")
		q.At.Set(m)
		m.SetAttr("mode", q.Mode)
		m.SetAttr("model_id", q.Model)
		m.SetAttr("agent_id", q.Agent)
	}
	if d.Turn.Goal = conversation.Cut(q.Text, maxGoal); q.empty() {
		return
	}
	m := q.mark(d.addToTurn(msg.User, "question:"+d.Turn.Run))
	m.Signal = msg.RunStart
	if q.At.Nanos == 0 && d.At.Nanos != 0 {
		d.At.Set(m)
		m.SetAttr("time_of", "answer")
	}
}

// end makes m the end of the turn.
func (d *stream) end(m *msg.Message, reason string, failed bool) {
	m.Signal, m.FinishReason, m.IsError = msg.RunEnd, reason, failed
	d.Turn.Ended = true
}

// question is a question whose run is not known yet: its answer has not begun.
type question struct {
	Key   string            `json:",omitempty"` // under which it is shown while it waits; empty when it is not
	Text  string            `json:",omitempty"`
	Mode  string            `json:",omitempty"`
	Model string            `json:",omitempty"`
	Agent string            `json:",omitempty"`
	At    conversation.Time `json:",omitzero"`
	Files []msg.Attachment  `json:",omitempty"`
}

// empty reports whether nothing was asked: an answer is written again.
func (q *question) empty() bool { return q.Text == "" && len(q.Files) == 0 }

// mark makes the message the question.
func (q *question) mark(m *msg.Message) *msg.Message {
	m.Role, m.Agent = msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
	m.Content, m.Attachments = msg.Plain(q.Text), q.Files
	q.At.Set(m)
	return m
}

// request decodes the request that is answered by the stream:
//
//	POST /api/agent/run {"question":"…","conversation_id":"…","mode":"auto","model_id":3,"agent_id":7}
//	GET /api/message/list?conversation_id=…
//
// The documents write goal where the routes read question.
func (d *stream) request(f *frame.Frame) {
	_, path, _ := strings.Cut(f.Name, " ")
	path, query, _ := strings.Cut(path, "?")
	if values, err := url.ParseQuery(query); err == nil {
		d.Session = cmp.Or(ident.Bounded(values.Get("conversation_id")), d.Session)
	}
	switch data := bytes.TrimSpace(f.Data); {
	case len(data) == 0:
		return
	case data[0] != '{':
		d.keepRaw("request", f.Data, f.Name)
		return
	}
	root, ok := d.Parse(f.Data)
	if !ok {
		return
	}
	d.Session = cmp.Or(ident.Of(root.Get("conversation_id")), d.Session)
	text := root.First("question", "goal", "message", "content")
	raw := func(name string) string { return string(root.Get(name).Peek()) }
	hash := msg.HashKey(path, text.PeekText().String(), raw("conversation_id"), raw("mode"), raw("pid"), raw("model_id"), raw("agent_id"), raw("fileIds"))
	if !text.Is(jsonv.String) && !strings.HasSuffix(path, "/run") && !strings.HasSuffix(path, "/chat") {
		m := d.addStatus("request:"+hash, "request")
		m.Run = d.Turn.Run
		m.SetAttr("path", path)
		return
	}
	d.Asked = &question{
		Key: "request:" + hash, Text: conversation.Cut(text.Text().String(), maxText),
		Mode: ident.Of(root.Get("mode")), Model: ident.OrNumber(root.Get("model_id")), Agent: ident.OrNumber(root.Get("agent_id")),
	}
	d.ask(d.Asked)
}

// ask makes q the question that waits for its answer. One that was not answered before is emitted.
func (d *stream) ask(q *question) {
	if d.Ask != nil && !d.Ask.empty() {
		d.addOpen(d.Ask)
	}
	d.Ask, d.Fresh = q, true
}

// addOpen emits a question without an answer.
func (d *stream) addOpen(q *question) {
	if q != nil && q.Key != "" {
		m := q.mark(d.Add(msg.User, q.Key))
		m.Complete = msg.Partial
		m.SetAttr("mode", q.Mode)
	}
}

// Flush emits the questions and the chat answer that are still open.
func (d *stream) Flush() {
	for _, d.session = range append(slices.Clip(d.Others), d.session) { // the current one is the last again
		d.addOpen(d.Ask)
	}
	if len(d.Chat.Text) > 0 {
		m := d.addToTurn(msg.Assistant, d.draftKey())
		m.Run, m.Role, m.Complete, m.Content = "", msg.RoleAssistant, msg.Partial, msg.Plain(string(d.Chat.Text))
	}
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

// chatRun is the run of a chat answer: that of the question's row.
func chatRun(question string) string { return "chat-" + question }

// draftKey is the key of an answer whose row is not known yet.
func (d *stream) draftKey() string {
	asked := d.origin
	if d.Asked != nil {
		asked = strings.TrimPrefix(d.Asked.Key, "request:")
	}
	return "draft:" + msg.HashKey(asked, d.Turn.Run)
}

// text adds the piece of text at the start of p to the answer, and returns the bytes after it. In bytes without delimiters, and in
// a log, it ends at the next marker; it cannot be separated from an object that follows it, and stays one piece with that.
func (d *stream) text(p []byte) (rest []byte) {
	end := len(p)
	if d.Frame.Kind == frame.Body || d.Frame.Kind == frame.Line {
		for end = 0; end < len(p) && !d.isMarker(p[end:]); end++ {
		}
	}
	piece, rest := p[:end], p[end:]
	if len(rest) == 0 && d.Frame.Kind == frame.Line {
		piece = append(bytes.Clone(p), '\n')
	}
	if !utf8.Valid(piece) {
		d.Out.Problem(msg.ReasonInvalidUTF8, "the piece of an answer is not text")
		return rest
	}
	kept := conversation.Cut(piece, maxText-len(d.Chat.Text))
	d.Chat.Text = append(d.Chat.Text, kept...)
	d.Chat.Dropped += len(piece) - len(kept)
	return rest
}

// search decodes the sources of a chat answer: a search and its results.
func (d *stream) search(kind string, v jsonv.Value) {
	c := &d.Chat
	if c.Search == "" && c.Links == "" { // a later search is kept raw
		c.Search, c.Links = conversation.Cut(v.Get("content").Text().String(), maxText), short(v.Get("json"))
	}
	c.Source = strings.ToLower(strings.ToValidUTF8(kind[:min(len(kind), 32)], ""))
}

// addSearch emits the search on which a chat answer is based. Its query is not on the wire.
func (d *stream) addSearch(answer, source string, found msg.Text, links string) {
	if found.IsZero() && links == "" {
		return
	}
	c := conversation.Call{ID: "search:" + answer, Name: "web_search"}
	m := d.addToTurn(msg.ToolCall, "call:"+c.ID)
	c.On(m)
	m.SetAttr("source", source)
	m = d.addToTurn(msg.ToolResult, "result:"+c.ID)
	c.On(m)
	m.Role, m.Content = msg.RoleTool, found
	m.SetAttr("json", links)
}

// endChat emits a chat answer once its row and its question's row are named: the database has
// both under these ids.
func (d *stream) endChat(answer, question string) {
	c, draft := d.Chat, d.draftKey()
	d.Chat = chat{}
	if len(c.Text) > 0 {
		m := d.addStatus(draft, "chat_draft")
		m.SetAttr("message_id", answer)
		m.SetAttr("pid", question)
	}
	d.begin(chatRun(cmp.Or(question, answer)))
	d.addSearch(cmp.Or(answer, draft), c.Source, msg.Plain(c.Search), c.Links)
	key := "message:" + answer
	if answer == "" {
		key = draft + "/text"
	}
	m := d.addToTurn(msg.Assistant, key)
	m.Role, m.Content = msg.RoleAssistant, msg.Plain(string(c.Text))
	m.SetAttr("truncated_bytes", conversation.NonZero(c.Dropped))
	d.readIntents(m)
	d.end(m, "stop", false)
}
