package claude

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// The rules by which a record has no message of its own.
const (
	RuleRepeated  = "repeated line"     // the same record of a response
	RuleUsageOnly = "nothing but usage" // adds to the counts of the response
)

// Response is one response of the model. The ID of the conversation.Response is Message,
// unless two requests share that.
type Response struct {
	conversation.Response
	conversation.Deltas // pieces of its parts, of a stream

	Session string
	Message string              // id by the protocol
	Request string              `json:",omitempty"`
	Lines   bounded.Set[uint64] `json:",omitzero"` // digests of the uuids of its records, or of their contents
	Copied  bool                `json:",omitempty"`
	Began   bool                `json:",omitempty"` // its first piece has come
	Extra   []msg.Attr          `json:",omitempty"` // counts without a token class

	// Of a response of several passes: those of other models, and the counts that leave out a part of them, of which
	// the sum of a turn is made.
	Several bool                `json:",omitempty"`
	Passes  []conversation.Pass `json:",omitempty"`
	Above   conversation.Counts `json:",omitzero"`
}

// Summed are the counts of the response in the sum of a turn.
func (r *Response) Summed() conversation.Counts {
	if r.Several {
		return r.Above
	}
	return r.Counts
}

// Assistant decodes a record of a response. It returns the rule by which the record has no
// message, if it has none.
func (ln *Line) Assistant() (rule string) {
	m := ln.Root.Get("message")
	if !m.Is(jsonv.Object) {
		return ""
	}
	if m.Get("model").Equal("<synthetic>") || ln.Root.Get("isApiErrorMessage").Bool() {
		ln.synthetic(m)
		return ""
	}
	ln.Wake(true)
	ln.Lane.Failed = false
	r := ln.Open(m)
	usage := m.Get("usage")
	r.Count(ln, usage)
	r.StopFor(ln.Lane, m.Get("stop_reason"))
	content := m.Get("content")
	record := ln.Digest()
	if !IsID(ln.UUID) {
		record = Digest(content.Peek())
	}
	if !r.Lines.Add(record, maxLines) {
		return RuleRepeated
	}
	if content.Is(jsonv.String) {
		r.text(ln, content)
	}
	for b := range content.Elems() {
		r.block(ln, b)
	}
	if ln.Emitted == 0 && usage.Is(jsonv.Object) {
		return RuleUsageOnly
	}
	return ""
}

// Open returns the response that the message m of a record belongs to.
func (ln *Line) Open(m jsonv.Value) *Response {
	l := ln.Lane
	id, request, model := m.Get("id"), ln.Root.First("requestId", "request_id"), m.Get("model")
	if l.Response == nil || !l.Response.is(ln.Name, id, request) {
		ln.Finish(ln, l)
		l.Response = ln.open(id, request)
	}
	r := l.Response
	if r.Model == "" {
		r.Model = ident.Of(model)
		r.Provider = anthropic.Provider(r.Message, r.Model)
	}
	model.Equal(r.Model) // counts as read
	return r
}

// is reports whether a record with that message id and request id belongs to r.
func (r *Response) is(session string, id, request jsonv.Value) bool {
	switch {
	case r.Session != session:
		return false
	case !id.Is(jsonv.String):
		return r.Message == r.Request && request.Is(jsonv.String) && ident.Is(request, r.Request)
	}
	return ident.Is(id, r.Message) && (r.Request == "" || !request.Is(jsonv.String) || ident.Is(request, r.Request))
}

// open begins a response, or opens one again that has ended. Some gateways number the
// messages of each request from 1, so that an id alone does not name one.
func (ln *Line) open(id, request jsonv.Value) *Response {
	taken := false
	for i := len(ln.Recent) - 1; i >= 0; i-- {
		r := ln.Recent[i]
		if r.is(ln.Name, id, request) {
			ln.Recent = slices.Delete(ln.Recent, i, i+1)
			return r
		}
		taken = taken || r.Session == ln.Name && ident.Is(id, r.Message)
	}
	r := &Response{Session: ln.Name, Request: ident.Of(request), Copied: ln.Copied}
	r.Message = cmp.Or(ident.Of(id), r.Request)
	if r.Message == "" {
		r.Message = ln.ID()
	}
	r.Run = ln.Run
	if r.ID = r.Message; taken {
		r.ID += ":" + r.Request
	}
	return r
}

// QwenCode is the agent whose output has these records, too. Its input includes the tokens that a cache had.
const QwenCode = "qwen-code"

// Bill reads a usage object of the lane.
func (l *Lane) Bill(usage jsonv.Value) anthropic.Billed {
	b := anthropic.Bill(usage)
	if l.Fork == QwenCode {
		b.Counts.Input -= min(b.Counts.Input, b.Counts.CacheRead)
	}
	return b
}

// Count adds the counts of a record.
func (r *Response) Count(ln *Line, usage jsonv.Value) {
	r.At = ln.Time
	r.Stated = max(r.Stated, msg.Dollars(ln.Root.Get("costUSD").Digits())) // which early versions write on each line of the response
	if !usage.Is(jsonv.Object) {
		return
	}
	b := ln.Lane.Bill(usage)
	if ln.Lane.Fork != "" && b.Counts == (conversation.Counts{}) {
		return // they are not known: Qwen Code writes zeros for a sub-agent's
	}
	r.Tier = cmp.Or(anthropic.Tier(usage), r.Tier)
	r.Extra = b.Extra.Set(r.Extra)
	switch {
	case b.Several:
		if !r.Several {
			r.Counts = conversation.Counts{}
		}
		r.Several, r.Passes, r.Above = true, b.Passes, b.Above
	case r.Several: // as it was before the last pass
		return
	case b.Counts.Output >= r.Counts.Output: // as it was later: a server may find out in between how much of the input its cache had
		r.Counts = b.Counts.Over(r.Counts)
	default:
		b.Counts = r.Counts.Over(b.Counts)
	}
	r.Response.Count(b.Counts, msg.TranscriptPartial)
}

// StopFor records why the response stopped.
func (r *Response) StopFor(l *Lane, reason jsonv.Value) {
	if reason.Is(jsonv.String) {
		r.Stop = ident.Of(reason)
		l.Stop = r.Stop
	} else if l.Fork != "" {
		l.Stop = "" // Qwen Code names no other reason than a call
	}
}

// Finish ends the open response of a lane and emits its usage.
func (s *State) Finish(ln *Line, l *Lane) {
	r := l.Response
	if r == nil {
		return
	}
	ln.Form.Finishing(ln, l)
	complete := msg.Complete
	if r.Copied {
		complete = msg.Summary
	}
	l.usage(ln.Out, complete)
	l.Response = nil
	if len(s.Recent) == maxRecent {
		s.Recent = slices.Delete(s.Recent, 0, 1)
	}
	r.Done, r.Extra, r.Passes, r.Deltas = true, nil, nil, conversation.Deltas{}
	s.Recent = append(s.Recent, r)
}

// usage emits the tokens of the open response.
func (l *Lane) usage(out *decoder.Output, complete msg.Completeness) {
	r := l.Response
	if r == nil {
		return
	}
	if m := r.Usage(out, complete); m != nil {
		m.Session, m.Agent = l.Session, l.Actor()
		m.SetAttr("request_id", r.Request)
		m.Attrs = append(m.Attrs, r.Extra...)
		conversation.Passes(out, *m, r.Passes)
	}
}

// part adds a part of the response.
func (r *Response) part(ln *Line, kind msg.Kind, key string) *msg.Message {
	parent := ln.Parent
	if !ln.Chained {
		ln.Parent = r.Last
	}
	m := ln.Emit(kind, key)
	m.Role = msg.RoleAssistant
	r.Mark(m)
	if ln.Parent = parent; ln.Chained {
		ln.Parent = key
	}
	r.Last = key
	return m
}

// block decodes one content block of a response.
func (r *Response) block(ln *Line, b jsonv.Value) {
	typ := b.Get("type")
	switch {
	case typ.Equal("text"):
		r.text(ln, b.Get("text"))
	case typ.Equal("thinking"), typ.Equal("redacted_thinking"):
		r.Whole(msg.Reasoning)
		anthropic.Thinking(r.part(ln, msg.Reasoning, r.Key(msg.Reasoning)), b)
	case anthropic.IsCall(typ):
		r.call(ln, b)
	case b.Get("tool_use_id").Is(jsonv.String): // web_search_tool_result and its like
		id := ident.Of(b.Get("tool_use_id"))
		m := r.part(ln, msg.ToolResult, "result:"+id)
		m.Tool.CallID = id
		if c := ln.Calls.Take(id); c != nil {
			m.Tool.Name = c.Name
		}
		anthropic.ServerResult(m, b)
		m.Content, m.Attachments = anthropic.Content(b.Get("content"))
	case typ.Equal("fallback"): // another model goes on: {from: {model}, to: {model}}
		m := r.part(ln, msg.Status, "fallback:"+msg.HashKey(ln.ID(), string(b.Peek())))
		m.Hidden = true
		m.SetAttr("type", "fallback")
		m.SetAttr("from", ident.Of(b.Path("from", "model")))
		m.SetAttr("to", ident.Of(b.Path("to", "model")))
	default:
		ln.Unknown("assistant/"+cmp.Or(typ.Str(), b.Kind().String()), b)
	}
}

// text emits a text of the model. Some models begin with nothing but newlines.
func (r *Response) text(ln *Line, v jsonv.Value) {
	r.Whole(msg.Assistant)
	m := r.part(ln, msg.Assistant, r.Key(msg.Assistant))
	m.Content = v.Text()
	if m.Hidden = blank(m.Content); !m.Hidden && ln.Lane.Text != nil {
		ln.Lane.Text.Set(m.Content)
	}
}

func blank(t msg.Text) bool {
	const most = 32 // more than newlines, escaped
	raw, _ := t.Alias()
	return len(raw) <= most && strings.TrimSpace(t.String()) == ""
}

// synthetic decodes a record that the CLI wrote in place of a response: an error of the API,
// or a phrase in place of no answer at all ("No response requested.").
func (ln *Line) synthetic(m jsonv.Value) {
	content, kind := m.Get("content"), ident.Of(ln.Root.Get("error"))
	failed := ln.Root.Get("isApiErrorMessage").Bool() || kind != ""
	for b := range content.Elems() {
		failed = failed || b.Get("text").HasPrefix("API Error")
	}
	if !failed {
		m.Get("id").MarkRead()
		s := ln.Status(ln.ID(), "synthetic")
		s.Content, s.Attachments = anthropic.Content(content)
		return
	}
	ln.Wake(true)
	ln.Finish(ln, ln.Lane)
	ln.Lane.Failed = true
	e := ln.Emit(msg.Error, ln.ID())
	e.Role, e.IsError = msg.RoleAssistant, true
	e.Content, e.Attachments = anthropic.Content(content)
	e.Tool.ErrorType = cmp.Or(kind, "api_error") // rate_limit, authentication_failed, server_error, ...
	if ln.Lane.Text != nil {
		for b := range content.Elems() {
			ln.Lane.Text.Set(b.Get("text").Text())
		}
	}
	e.SetAttr("status_code", ln.Root.Get("apiErrorStatus").Digits())
	e.SetAttr("request_id", ln.Root.First("requestId", "request_id").Str())
}
